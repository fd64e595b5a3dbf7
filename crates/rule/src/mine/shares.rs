//! How the counting is divided among shards, and among the threads of one.
//!
//! Every process lists all of the work, which is little compared with counting it, and takes its own share: costly
//! items first, each to the shard with the least so far. A prefix too costly for one shard is divided by its sources
//! into pieces; their counts are added when the shards are merged, because thresholds apply only to the sums.
//! In the same way a prefix that would keep one thread busy while the others wait is divided among all of them.

use super::cyclic::Task;
use crate::Map;
use crate::count::{Correct, Piece, Tally};
use ruleguider_graph::Link;
use ruleguider_graph::shard::Shard;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Items that cost more than one part in this many of a shard's work are dealt first. Chosen by hand.
const HEAVY: u64 = 64;
/// A prefix that costs more than one part in this many of a shard's work is divided. Chosen by hand: costs are
/// estimates, and the errors of many small items average out.
const CUT: u64 = 32;
/// A piece is about this many steps or more, one to three milliseconds, because each begins with cold caches and its counts
/// have to be written. The small graphs of tests are divided all the same.
const PIECE_STEPS: u64 = if cfg!(test) { 1 } else { 160 << 10 };

/// A thread's work is at least this many portions, so that all threads end at about the same time.
const PORTIONS: u64 = 32;
/// A portion is at least this many steps, some tens of milliseconds: less is not worth adding up. The small graphs of
/// tests are divided all the same.
const PORTION_STEPS: u64 = if cfg!(test) { 4 } else { 1 << 22 };

/// For each item, given these costs, whether it belongs to `shard`.
pub(crate) fn own(shard: Shard, costs: &[u64]) -> Vec<bool> {
    let parts = shard.count();
    if parts == 1 {
        return vec![true; costs.len()];
    }
    // A cost of 0 is an estimate too, so every item counts at least 1.
    let cost = |at: usize| u128::from(costs[at]) + 1;
    let all: u128 = (0..costs.len()).map(cost).sum();
    let heavy = all / u128::from(parts * HEAVY);
    let (mut first, then): (Vec<usize>, Vec<usize>) = (0..costs.len()).partition(|&at| cost(at) > heavy);
    first.sort_unstable_by_key(|&at| (Reverse(costs[at]), at));
    let mut loads: BinaryHeap<Reverse<(u128, u64)>> = (1..=parts).map(|part| Reverse((0, part))).collect();
    let mut own = vec![false; costs.len()];
    for at in first.into_iter().chain(then) {
        let Reverse((load, part)) = loads.pop().expect("there is a part");
        own[at] = part == shard.index();
        loads.push(Reverse((load + cost(at), part)));
    }
    own
}

/// The tasks of `shard`, whole or in pieces, and the prefixes that only other shards count. Counting a task costs at
/// most `max_groundings`.
pub(super) fn own_tasks(
    shard: Shard,
    mut tasks: Vec<Task>,
    max_groundings: u64,
) -> (Vec<Task>, Vec<Vec<Link>>) {
    if shard.count() == 1 {
        return (tasks, Vec::new());
    }
    // The order of nominations depends on threads.
    tasks.sort_unstable_by(|a, b| a.prefix.cmp(&b.prefix));
    let cost = |task: &Task| task.sampled_steps(max_groundings);
    let all: u128 = tasks.iter().map(|task| u128::from(cost(task))).sum();
    let most = u64::try_from(all / u128::from(shard.count() * CUT)).unwrap_or(u64::MAX).max(PIECE_STEPS);
    // More pieces than shards would not balance the work any better.
    let pieces = |task: &Task| cost(task).div_ceil(most).clamp(1, shard.count());
    let mut costs: Vec<u64> = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let count = pieces(task);
        costs.extend(std::iter::repeat_n(cost(task) / count, count as usize));
    }
    let mut own = own(shard, &costs).into_iter();
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    for task in tasks {
        let (before, count) = (mine.len(), pieces(&task));
        for (index, _) in (0..count).zip(own.by_ref()).filter(|(_, own)| *own) {
            mine.push(Task { piece: Piece { index, count }, ..task.clone() });
        }
        if mine.len() - before < count as usize {
            others.push(task.prefix);
        }
    }
    (mine, others)
}

/// What the threads take one after the other: the number of a task, and all of its sources or a piece of them.
pub(super) fn portions(tasks: &[Task], threads: usize, max_groundings: u64) -> Vec<(usize, Piece)> {
    let steps = |task: &Task| task.sampled_steps(max_groundings);
    let all: u128 = tasks.iter().map(|task| u128::from(steps(task))).sum();
    let most = u64::try_from(all / (threads as u128 * u128::from(PORTIONS))).unwrap_or(u64::MAX);
    let mut portions = Vec::with_capacity(tasks.len());
    for (number, task) in tasks.iter().enumerate() {
        let pieces = match task.piece {
            Piece::WHOLE if threads > 1 => steps(task) / most.max(PORTION_STEPS),
            _ => 1,
        };
        match pieces {
            0 | 1 => portions.push((number, task.piece)),
            count => portions.extend((0..count).map(|index| (number, Piece { index, count }))),
        }
    }
    portions
}

/// The number of pairs that a body predicts, and by link how many of them are correct.
type BodyCounts = (u64, Map<Link, u32>);

/// The counts of all bodies with one prefix, added up over pieces of their sources, by the last link of the body. None
/// if a piece was given up.
pub(crate) struct Sum(Option<Map<u32, BodyCounts>>);

impl Default for Sum {
    fn default() -> Self {
        Self(Some(Map::default()))
    }
}

impl Sum {
    /// Adds a piece; none if it was given up.
    pub(crate) fn add(&mut self, bodies: Option<Vec<PartialBody>>) {
        let (Some(sum), Some(bodies)) = (self.0.as_mut(), bodies) else {
            // What is too much for one piece is too much for all.
            self.0 = None;
            return;
        };
        for PartialBody(last, predicted, correct) in bodies {
            let (all, counts) = sum.entry(last).or_default();
            // The counts of a part that comes from elsewhere may be anything.
            *all = all.saturating_add(predicted);
            for (link, count) in correct {
                let sum: &mut u32 = counts.entry(Link(link)).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }

    /// The bodies, once every piece is added.
    pub(crate) fn tallies(self) -> impl Iterator<Item = Tally> {
        let tally = |(last, (predicted, counts))| Tally {
            last: Link(last),
            predicted,
            correct: Correct::Sparse(counts),
        };
        self.0.into_iter().flatten().map(tally)
    }
}

/// The counts of all bodies with one prefix, over a piece of their sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartialTally {
    /// The links of the bodies but the last.
    pub prefix: Vec<u32>,
    /// The share of the sources that is sampled; 1 for all.
    pub share: f64,
    /// The bodies; none if there were too many groundings to count any.
    pub bodies: Option<Vec<PartialBody>>,
}

/// The counts of one of these bodies: its last link, the number of distinct pairs it predicts, and by link how many of
/// those pairs it also joins. A tuple, because there are many of them in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartialBody(pub u32, pub u64, pub Vec<(u32, u32)>);

impl PartialTally {
    /// The `tallies` of `prefix` over the share of its sources; `None` if it was given up.
    pub(crate) fn of(prefix: &[Link], tallies: Option<&[Tally]>, share: f64) -> Self {
        let prefix = prefix.iter().map(|link| link.0).collect();
        Self { prefix, share, bodies: tallies.map(PartialBody::all) }
    }

    /// The ids of all links in it.
    pub(crate) fn links(&self) -> impl Iterator<Item = u32> {
        let bodies = self.bodies.iter().flatten();
        let of_bodies = bodies
            .flat_map(|PartialBody(last, _, correct)| correct.iter().map(|&(link, _)| link).chain([*last]));
        self.prefix.iter().copied().chain(of_bodies)
    }
}

impl PartialBody {
    pub(super) fn all(tallies: &[Tally]) -> Vec<Self> {
        tallies.iter().map(Self::of).collect()
    }

    fn of(tally: &Tally) -> Self {
        let correct = tally.correct.all().into_iter().map(|(link, count)| (link.0, count)).collect();
        Self(tally.last.0, tally.predicted, correct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shards(count: u64) -> impl Iterator<Item = Shard> {
        (1..=count).map(move |index| Shard::new(index, count).unwrap())
    }

    proptest! {
        #[test]
        fn every_item_has_one_owner_and_no_part_much_more_than_another(
            costs in prop::collection::vec(0u64..1000, 0..200),
            count in 1u64..9,
        ) {
            let owners: Vec<Vec<bool>> = shards(count).map(|shard| own(shard, &costs)).collect();
            for at in 0..costs.len() {
                prop_assert_eq!(owners.iter().filter(|own| own[at]).count(), 1);
            }
            let load = |own: &Vec<bool>| costs.iter().zip(own).filter(|(_, own)| **own).map(|(c, _)| c + 1).sum::<u64>();
            let loads: Vec<u64> = owners.iter().map(load).collect();
            let (most, least) = (loads.iter().max().unwrap(), loads.iter().min().unwrap());
            prop_assert!(most - least <= 1001, "{:?}", loads);
        }

        #[test]
        fn threads_get_every_task_whole_or_in_all_its_pieces(
            costs in prop::collection::vec(0u64..5000, 1..30),
            threads in 1usize..9,
        ) {
            let task = |(at, &cost): (usize, &u64)| Task::new(vec![Link(at as u32)], cost);
            let tasks: Vec<Task> = costs.iter().enumerate().map(task).collect();
            let portions = portions(&tasks, threads, u64::MAX);
            let expected: Vec<(usize, Piece)> = (0..tasks.len())
                .flat_map(|number| {
                    let count = portions.iter().filter(|portion| portion.0 == number).count() as u64;
                    (0..count).map(move |index| (number, Piece { index, count }))
                })
                .collect();
            prop_assert_eq!(&portions, &expected);
            prop_assert!((0..tasks.len()).all(|number| portions.iter().any(|portion| portion.0 == number)));
            prop_assert!(threads > 1 || portions.len() == tasks.len());
            let all: u64 = costs.iter().sum();
            let most = (all / (threads as u64 * PORTIONS)).max(PORTION_STEPS);
            let cost = |&(number, piece): &(usize, Piece)| costs[number] / piece.count;
            prop_assert!(threads == 1 || portions.iter().all(|portion| cost(portion) < 2 * most));
        }

        #[test]
        fn the_pieces_of_a_task_are_all_there_once(costs in prop::collection::vec(0u64..5000, 1..30), count in 1u64..9) {
            let tasks = || -> Vec<Task> {
                let task = |(at, &cost): (usize, &u64)| Task::new(vec![Link(at as u32)], cost);
                costs.iter().enumerate().map(task).collect()
            };
            let mut seen: Vec<(Vec<Link>, u64, u64)> = Vec::new();
            for shard in shards(count) {
                let (mine, others) = own_tasks(shard, tasks(), u64::MAX);
                for at in 0..costs.len() {
                    let prefix = vec![Link(at as u32)];
                    prop_assert!(others.contains(&prefix) || mine.iter().any(|task| task.prefix == prefix));
                }
                seen.extend(mine.into_iter().map(|task| (task.prefix, task.piece.index, task.piece.count)));
            }
            seen.sort();
            let mut expected = Vec::new();
            for (prefix, _, pieces) in seen.iter().filter(|(_, index, _)| *index == 0) {
                expected.extend((0..*pieces).map(|index| (prefix.clone(), index, *pieces)));
            }
            prop_assert_eq!(seen, expected);
        }
    }
}
