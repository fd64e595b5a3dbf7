//! Cyclic rules: all short ones, longer ones in the order of their expected yield.

use super::nominate::{Nominations, Promise};
use super::order::in_order;
use super::shares::{PartialBody, PartialTally, Sum, own_tasks, portions};
use super::{Miner, MiningBudget};
use crate::Map;
use crate::clause::{RuleType, ScoredRule};
use crate::count::{Lasts, Part, Piece, Scratch};
use ruleguider_graph::{EntityId, Link};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A prefix whose bodies are to be counted.
#[derive(Clone)]
pub(crate) struct Task {
    pub prefix: Vec<Link>,
    /// The approximate number of groundings of its bodies; of longer bodies, of their last three links.
    pub cost: u64,
    /// The approximate number of steps that counting takes: what shards are balanced by. Those of a longer prefix follow
    /// from its pairs of links or, if the work is shared and known at once, from a [trial](super::trial).
    pub steps: u64,
    /// Which sources are counted.
    pub piece: Piece,
    /// What the random walks say about it.
    pub promise: Promise,
}

impl Task {
    /// All bodies that begin with `prefix`, without information from random walks.
    pub(crate) fn new(prefix: Vec<Link>, cost: u64) -> Self {
        Self { prefix, cost, steps: cost, piece: Piece::WHOLE, promise: Promise::default() }
    }

    /// The share of its sources that is counted: all of them unless it has more than `max_groundings` groundings.
    fn share(&self, max_groundings: u64) -> f64 {
        (max_groundings as f64 / self.cost.max(1) as f64).min(1.0)
    }

    /// The steps of that share.
    pub(crate) fn sampled_steps(&self, max_groundings: u64) -> u64 {
        (self.steps as f64 * self.share(max_groundings)) as u64
    }

    /// Its weight in the share that is done. Before anything is nominated, every task weighs the same.
    fn weight(&self) -> u64 {
        self.promise.hits.max(1)
    }
}

/// For every two consecutive links, the number of ways to walk them and one more step.
type Costs = Map<(Link, Link), u64>;

/// Bodies up to this length are all counted.
pub(super) const SHORT: usize = 2;
/// Walks per round of nomination if time is the limit.
const ROUND: u64 = 1 << 18;
/// At most this many pairs of links are listed: about 200 MB. A graph with thousands of relations has more.
const PAIRS: usize = 1 << 22;

/// The approximate number of ways to walk `prefix` and one more step. `ways` has the number for every single link. After
/// two links, a step is taken to depend only on the link before it.
fn steps(prefix: &[Link], costs: &Costs, ways: &[u64]) -> u64 {
    let pair = |pair: &[Link]| costs.get(&(pair[0], pair[1])).copied().unwrap_or(0) as f64;
    let onward = |two: &[Link]| pair(two) / ways[two[0].index()].max(1) as f64;
    let mut pairs = prefix.windows(2);
    let first = pairs.next().map_or(0.0, pair);
    pairs.map(onward).fold(first, |steps, onward| steps * onward) as u64
}

/// The costliest first, so that threads finish at about the same time.
fn longest(a: &Task, b: &Task) -> std::cmp::Ordering {
    b.cost.cmp(&a.cost).then_with(|| a.prefix.cmp(&b.prefix)).then(a.piece.index.cmp(&b.piece.index))
}

impl Miner<'_> {
    /// Cyclic rules with short bodies, and the share of them that was counted.
    pub(crate) fn short_cyclic(&self) -> (Vec<ScoredRule>, f64) {
        if self.options.min_length <= SHORT { self.count_short() } else { (Vec::new(), 1.0) }
    }

    /// Cyclic rules with longer bodies, and the share of tasks that was counted: the minimum over lengths.
    pub(crate) fn long_cyclic(&self) -> (Vec<ScoredRule>, f64) {
        let (mut rules, mut saturation) = (Vec::new(), 1.0);
        if self.options.max_length <= SHORT {
            return (rules, saturation);
        }
        let costs = self.costs(PAIRS);
        for length in self.long() {
            if self.watch.over() {
                return (rules, 0.0);
            }
            let (found, share) = self.count_long(length, costs.as_ref());
            rules.extend(found);
            saturation = share.min(saturation);
        }
        (rules, saturation)
    }

    /// The lengths of bodies that are not always counted completely.
    fn long(&self) -> impl Iterator<Item = usize> {
        self.options.min_length.max(SHORT + 1)..=self.options.max_length
    }

    /// All pairs of consecutive links; `None` if there are more than `most`, or if the time is up before they are
    /// listed.
    pub(super) fn costs(&self, most: usize) -> Option<Costs> {
        let graph = self.reach.graph();
        let mut costs = Costs::default();
        let mut runs: Vec<(Link, u64, u64)> = Vec::new();
        for middle in (0..graph.entities() as u32).map(EntityId) {
            if self.watch.over() {
                return None;
            }
            runs.clear();
            runs.extend(graph.edges(middle).chunk_by(|a, b| a.link == b.link).map(|run| {
                let onward = run.iter().map(|edge| graph.edges(edge.target).len() as u64).sum();
                (run[0].link, run.len() as u64, onward)
            }));
            for &(back, sources, _) in &runs {
                for &(second, _, onward) in &runs {
                    *costs.entry((back.reversed(), second)).or_default() += sources * onward;
                }
                if costs.len() > most {
                    return None;
                }
            }
        }
        Some(costs)
    }

    /// The number of ways to walk `first`, `second` and one more step.
    pub(super) fn cost(&self, first: Link, second: Link) -> u64 {
        let graph = self.reach.graph();
        let through = |(middle, sources): (EntityId, &[EntityId])| {
            let ends = graph.targets(middle, second).iter();
            let onward: u64 = ends.map(|&end| graph.edges(end).len() as u64).sum();
            sources.len() as u64 * onward
        };
        graph.pairs(first.reversed()).rows().map(through).sum()
    }

    /// For every link, the number of ways to walk it and one more step.
    fn ways(&self) -> Vec<u64> {
        let graph = self.reach.graph();
        let mut ways = vec![0; graph.links()];
        for middle in (0..graph.entities() as u32).map(EntityId) {
            let edges = graph.edges(middle);
            for edge in edges {
                ways[edge.link.reversed().index()] += edges.len() as u64;
            }
        }
        ways
    }

    /// All prefixes of one link.
    fn short_tasks(&self) -> Vec<Task> {
        let ways = self.ways();
        self.reach.links().map(|link| Task::new(vec![link], ways[link.index()])).collect()
    }

    /// All rules whose body has one or two links, and the share of them that was counted.
    fn count_short(&self) -> (Vec<ScoredRule>, f64) {
        let mut tasks: Vec<Task> = Vec::new();
        if self.options.max_length >= SHORT {
            tasks = own_tasks(self.shard, self.short_tasks(), self.max_groundings).0;
        }
        let links: Vec<Link> = self.reach.links().collect();
        let (mut rules, share) = self.count_singles(&links);
        let counted = match self.options.budget {
            // If the time may be up before the end, many cheap prefixes yield more than a few costly ones.
            MiningBudget::Seconds(_) => self.count_in_order(&mut tasks, |a, b| longest(b, a), &mut rules),
            _ => self.count_in_order(&mut tasks, longest, &mut rules),
        };
        (rules, self.share(counted, tasks.len()).min(share))
    }

    /// All rules whose body has one link, and the share of links that was counted.
    fn count_singles(&self, links: &[Link]) -> (Vec<ScoredRule>, f64) {
        let mut scratch = self.take_scratch();
        let mut rules = Vec::new();
        let singles: Vec<Link> = links.iter().copied().filter(|&link| link < link.reversed()).collect();
        let singles = self.own(singles, |&link| self.reach.pairs(link) as u64);
        let mut counted = 0;
        for link in &singles {
            let tallies = scratch.count(
                self.reach,
                &[],
                Lasts::These(std::slice::from_ref(link)),
                Part::WHOLE,
                &|| self.watch.over(),
            );
            // Interrupted counts are meaningless.
            if self.watch.over() {
                break;
            }
            counted += 1;
            for tally in tallies {
                self.worth.rules(&[], &tally, Part::WHOLE, &mut rules);
            }
        }
        self.keep_scratch(scratch);
        self.watch.note(RuleType::Cyclic, rules.len());
        (rules, self.share(counted, singles.len()))
    }

    /// Rules whose body has `length` links, three or more.
    pub(super) fn count_long(&self, length: usize, costs: Option<&Costs>) -> (Vec<ScoredRule>, f64) {
        let mut nominations = Nominations::new(length, self.options.seed);
        let mut done: Map<Vec<Link>, ()> = Map::default();
        let mut rules = Vec::new();
        let once = self.is_known_at_once(length, costs);
        loop {
            let mut tasks = self.tasks(&mut nominations, &done, costs);
            // What is nominated round after round is not tried out: there would be much of it.
            if once && self.shard.count() > 1 {
                self.try_out(&mut tasks);
            }
            let typical = nominations.typical();
            let none = tasks.is_empty();
            let (mut tasks, others) = own_tasks(self.shard, tasks, self.max_groundings);
            let densest = |a: &Task, b: &Task| {
                let density = |task: &Task| task.promise.density(typical);
                density(b).total_cmp(&density(a)).then_with(|| longest(a, b))
            };
            let counted = self.count_in_order(&mut tasks, densest, &mut rules);
            let hits = |tasks: &[Task]| tasks.iter().map(|task| task.promise.hits).sum::<u64>() as f64;
            let all = hits(&tasks)
                + done.keys().filter_map(|p| nominations.promise(p)).map(|p| p.hits as f64).sum::<f64>();
            let saturation = match all > 0.0 {
                true => 1.0 - hits(&tasks[counted..]) / all,
                false => self.share(counted, tasks.len()),
            };
            done.extend(tasks.drain(..counted).map(|task| (task.prefix, ())));
            done.extend(others.into_iter().map(|prefix| (prefix, ())));
            if once || none || self.watch.over() {
                return (rules, saturation);
            }
        }
    }

    /// The pairs of links, if all of them are prefixes to be counted, nominated or not.
    fn everything<'c>(&self, length: usize, costs: Option<&'c Costs>) -> Option<&'c Costs> {
        costs.filter(|_| length == 3 && !matches!(self.options.budget, MiningBudget::Samples(_)))
    }

    /// Whether one round of nomination lists everything that is to be counted at this length.
    fn is_known_at_once(&self, length: usize, costs: Option<&Costs>) -> bool {
        matches!(self.options.budget, MiningBudget::Samples(_)) || self.everything(length, costs).is_some()
    }

    /// The tasks after one more round of nomination, except those that are `done`.
    fn tasks(
        &self,
        nominations: &mut Nominations,
        done: &Map<Vec<Link>, ()>,
        costs: Option<&Costs>,
    ) -> Vec<Task> {
        let everything = self.everything(nominations.length(), costs);
        let walks = match self.options.budget {
            MiningBudget::Samples(samples) => samples,
            // If everything is counted whatever the walks say and however long it takes, the order does not matter.
            MiningBudget::Saturation if everything.is_some() => 0,
            MiningBudget::Seconds(_) | MiningBudget::Saturation => ROUND,
        };
        nominations.walk(self.reach, walks, &|| self.watch.over());
        match everything {
            Some(costs) => self.all_tasks(nominations, costs),
            None => self.nominated_tasks(nominations, done, costs),
        }
    }

    /// All prefixes of two links, nominated or not.
    fn all_tasks(&self, nominations: &Nominations, costs: &Costs) -> Vec<Task> {
        let pairs = self.while_in_time(costs.iter()).map(|(&(first, second), &cost)| {
            let prefix = vec![first, second];
            let promise = nominations.promise(&prefix).unwrap_or_default();
            Task { promise, ..Task::new(prefix, cost) }
        });
        pairs.collect()
    }

    /// The prefixes that are nominated and not yet counted.
    fn nominated_tasks(
        &self,
        nominations: &Nominations,
        done: &Map<Vec<Link>, ()>,
        costs: Option<&Costs>,
    ) -> Vec<Task> {
        let cost_of = |prefix: &[Link]| {
            // The last three steps of a longer path are walked most often.
            let (first, second) = (prefix[prefix.len() - 2], prefix[prefix.len() - 1]);
            match costs {
                Some(costs) => costs.get(&(first, second)).copied().unwrap_or(0),
                None => self.cost(first, second),
            }
        };
        let ways = self.ways();
        let task = |(prefix, promise): (&Vec<Link>, Promise)| {
            let task = Task { promise, ..Task::new(prefix.clone(), cost_of(prefix)) };
            Task { steps: costs.map_or(task.cost, |costs| steps(prefix, costs, &ways)), ..task }
        };
        (nominations.iter())
            .filter(|(prefix, _)| !done.contains_key(*prefix))
            // Once the time is up, prefixes would not be counted anyway.
            .take_while(|_| !self.watch.over())
            .map(task)
            .collect()
    }

    /// Adds the rules of `tasks`, in the order of `compare`, until the time is up. Returns how many tasks from the
    /// first on were counted without a gap; these are at the front afterwards.
    fn count_in_order(
        &self,
        tasks: &mut [Task],
        compare: impl Fn(&Task, &Task) -> std::cmp::Ordering + Sync,
        rules: &mut Vec<ScoredRule>,
    ) -> usize {
        let all: u64 = tasks.iter().map(Task::weight).sum();
        let done = AtomicU64::new(0);
        let mut counted = 0;
        in_order(tasks, compare, |block| {
            let (found, without_a_gap) = self.count_tasks(block, &done, all);
            rules.extend(found);
            counted += without_a_gap;
            without_a_gap == block.len() && !self.watch.over()
        });
        counted
    }

    /// Counts the bodies of `tasks` in order until the time is up. Returns the rules, and how many tasks from the
    /// first on were counted without a gap. Adds the weight of counted tasks to `done`; `all` is the total.
    fn count_tasks(&self, tasks: &[Task], done: &AtomicU64, all: u64) -> (Vec<ScoredRule>, usize) {
        let portions = portions(tasks, rayon::current_num_threads(), self.max_groundings);
        let divided: Map<usize, Mutex<Divided>> = (portions.iter())
            .filter(|(number, piece)| piece.index == 0 && *piece != tasks[*number].piece)
            .map(|&(number, piece)| {
                (number, Mutex::new(Divided { missing: piece.count, sum: Sum::default() }))
            })
            .collect();
        let next = AtomicUsize::new(0);
        let found: Mutex<Vec<ScoredRule>> = Mutex::default();
        let missed = AtomicUsize::new(tasks.len());
        rayon::broadcast(|_| {
            let mut scratch = self.take_scratch();
            let mut mine = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(number, piece)) = portions.get(place) else { break };
                let (task, before) = (&tasks[number], mine.len());
                let is_done = match divided.get(&number) {
                    _ if self.watch.over() => None,
                    None => self.count_task(task, &mut scratch, &mut mine).then_some(true),
                    Some(divided) => self.count_piece(task, piece, divided, &mut scratch, &mut mine),
                };
                let Some(is_done) = is_done else {
                    mine.truncate(before);
                    missed.fetch_min(number, Ordering::Relaxed);
                    break;
                };
                self.watch.note(RuleType::Cyclic, mine.len() - before);
                if is_done {
                    let done = done.fetch_add(task.weight(), Ordering::Relaxed) + task.weight();
                    self.watch.advance(done as f64 / all as f64);
                }
            }
            self.keep_scratch(scratch);
            found.lock().unwrap_or_else(PoisonError::into_inner).append(&mut mine);
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        (found, missed.into_inner())
    }

    /// Scratch memory that no thread uses.
    fn take_scratch(&self) -> Scratch {
        let unused = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        unused.unwrap_or_else(|| Scratch::new(self.reach))
    }

    /// Keeps scratch memory for the next stage.
    fn keep_scratch(&self, scratch: Scratch) {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }

    /// Which sources of `piece` are walked: all, unless the task has too many groundings.
    fn part(&self, task: &Task, piece: Piece) -> Part {
        let share = task.share(self.max_groundings);
        let seed = if share < 1.0 { self.options.seed } else { Part::WHOLE.seed };
        Part { share, seed, piece }
    }

    /// Counts the bodies of one task; false if the time was up before the end.
    fn count_task(&self, task: &Task, scratch: &mut Scratch, rules: &mut Vec<ScoredRule>) -> bool {
        let part = self.part(task, task.piece);
        let over = || self.watch.over();
        let tallies = scratch.count(self.reach, &task.prefix, Lasts::All, part, &over);
        if task.piece == Piece::WHOLE {
            tallies.iter().for_each(|tally| self.worth.rules(&task.prefix, tally, part, rules));
            return !self.watch.over();
        }
        let counted = (!scratch.has_given_up()).then_some(&tallies[..]);
        let partial = PartialTally::of(&task.prefix, counted, part.share);
        self.partial.lock().unwrap_or_else(PoisonError::into_inner).push(partial);
        !self.watch.over()
    }

    /// Counts a piece of a task that several threads count. Whether it was the last one, which makes the rules; `None`
    /// if the time was up before the end.
    fn count_piece(
        &self,
        task: &Task,
        piece: Piece,
        divided: &Mutex<Divided>,
        scratch: &mut Scratch,
        rules: &mut Vec<ScoredRule>,
    ) -> Option<bool> {
        let part = self.part(task, piece);
        let tallies = scratch.count(self.reach, &task.prefix, Lasts::All, part, &|| self.watch.over());
        if self.watch.over() {
            return None;
        }
        let counted = (!scratch.has_given_up()).then(|| PartialBody::all(&tallies));
        let mut divided = divided.lock().unwrap_or_else(PoisonError::into_inner);
        divided.sum.add(counted);
        divided.missing -= 1;
        if divided.missing > 0 {
            return Some(false);
        }
        let part = Part { piece: Piece::WHOLE, ..part };
        let tallies = std::mem::take(&mut divided.sum).tallies();
        tallies.for_each(|tally| self.worth.rules(&task.prefix, &tally, part, rules));
        Some(true)
    }
}

/// A task whose pieces several threads count.
struct Divided {
    /// The number of pieces that are not yet counted.
    missing: u64,
    sum: Sum,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_all_entities_are_alike_the_steps_are_exact() {
        // Every entity has `degree` edges of every link.
        let (entities, degree, links) = (7u64, 2u64, 3u32);
        let onward = degree * u64::from(links);
        let ways = vec![entities * degree * onward; links as usize];
        let pairs = (0..links).flat_map(|first| (0..links).map(move |second| (Link(first), Link(second))));
        let costs: Costs = pairs.map(|pair| (pair, entities * degree.pow(2) * onward)).collect();
        for length in 2..6 {
            let prefix: Vec<Link> = (0..length).map(|at| Link(at % links)).collect();
            assert_eq!(steps(&prefix, &costs, &ways), entities * degree.pow(length) * onward);
        }
        // Links that never follow one another are not walked.
        assert_eq!(steps(&[Link(0), Link(1), Link(2)], &Costs::default(), &ways), 0);
    }

    #[test]
    fn a_sample_of_the_sources_takes_its_share_of_the_steps() {
        let task = Task { steps: 5000, ..Task::new(vec![Link(3), Link(4), Link(5)], 1000) };
        assert_eq!([u64::MAX, 1000, 200].map(|most| task.sampled_steps(most)), [5000, 5000, 1000]);
    }
}
