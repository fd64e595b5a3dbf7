//! What counting a long prefix takes, estimated by walking it from a few of its sources.
//!
//! The numbers of ways to walk every two links say little about three and more of them: hubs follow hubs, and many
//! paths share their ends, which are looked at once. On WN18RR such estimates were wrong by a factor of 20 and more, in
//! both directions. A trial walks as counting does. It always takes the same sources, so that all processes that share
//! the work agree on it.

use super::Miner;
use super::cyclic::Task;
use crate::count::STEPS_FROM_ONE_SOURCE;
use crate::frontier::{Frontier, Places};
use crate::reach::Reach;
use ruleguider_graph::{EntityId, Link};

/// The shortest prefix that is tried out; the steps of shorter ones are known.
const LONG: usize = 3;

/// One source in this many is walked, chosen by hand.
const ONE_IN: usize = 256;
/// But at least this many, if they are not more than one in [`AT_MOST_ONE_IN`].
const SOURCES: usize = 64;
/// A trial must stay cheap compared with counting, for prefixes with few sources, too.
const AT_MOST_ONE_IN: usize = 8;

/// A trial ends after this many steps, about a millisecond, if it has enough sources for an estimate.
const STEPS: u64 = 1 << 18;
/// How many sources are enough then.
const ENOUGH: u64 = 16;

/// Counting looks twice at every edge of an entity that a prefix reaches: for its link, and for its target.
const LOOKS: u64 = 2;

impl Miner<'_> {
    /// Replaces the steps of the `tasks` with long prefixes by those of a trial. Stops once the time is up.
    pub(super) fn try_out(&self, tasks: &mut [Task]) {
        let long = |task: &&mut Task| task.prefix.len() >= LONG;
        let mut trial = Trial::new(self.reach);
        for task in tasks.iter_mut().filter(long).take_while(|_| !self.watch.over()) {
            task.steps = trial.steps(&task.prefix);
        }
    }
}

/// Walks from a few sources.
struct Trial<'a> {
    reach: &'a Reach,
    frontier: Frontier,
    places: Places<'static>,
}

impl<'a> Trial<'a> {
    fn new(reach: &'a Reach) -> Self {
        let places = Places::with_limit(reach.graph().entities(), STEPS_FROM_ONE_SOURCE);
        Self { reach, frontier: Frontier::default(), places }
    }

    /// The approximate number of steps to count all bodies that begin with `prefix`.
    fn steps(&mut self, prefix: &[Link]) -> u64 {
        let sources = self.reach.sources(prefix[0]);
        let (mut steps, mut walked) = (0u64, 0u64);
        for source in spread(sources) {
            let here = self.steps_from(source, prefix);
            if self.places.has_given_up() {
                // Counting gives up here, too.
                return scaled(steps, sources.len(), walked).saturating_add(here);
            }
            steps = steps.saturating_add(here);
            walked += 1;
            if walked >= ENOUGH && steps >= STEPS {
                break;
            }
        }
        scaled(steps, sources.len(), walked)
    }

    fn steps_from(&mut self, source: EntityId, prefix: &[Link]) -> u64 {
        self.frontier.walk(self.reach, source, prefix, &mut self.places);
        let edges = |&node: &EntityId| self.reach.graph().edges(node).len() as u64;
        let looks = LOOKS * self.frontier.nodes().iter().map(edges).sum::<u64>();
        looks.saturating_add(self.places.take_work() as u64)
    }
}

/// `steps` from `walked` sources, scaled to all `sources`.
fn scaled(steps: u64, sources: usize, walked: u64) -> u64 {
    (steps as f64 * sources as f64 / walked.max(1) as f64) as u64
}

/// Some of `sources`, spread evenly over all of them, however many are taken from the first on: multiples of the golden
/// ratio.
fn spread(sources: &[EntityId]) -> impl Iterator<Item = EntityId> {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let count = (sources.len() / AT_MOST_ONE_IN).clamp(1, SOURCES).max(sources.len() / ONE_IN);
    let place = |number: u64| (u128::from(number.wrapping_mul(GOLDEN)) * sources.len() as u128) >> 64;
    (1..=count as u64).map(place).filter_map(|place| sources.get(place as usize)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruleguider_graph::{Graph, RelationId, Triple};
    use std::sync::Arc;

    /// A ring of entities, with links to the next `degree` of them.
    fn ring(entities: u32, degree: u32) -> Reach {
        let facts = (0..entities)
            .flat_map(|head| (1..=degree).map(move |step| Triple::new(head, 0, (head + step) % entities)));
        Reach::new(&Arc::new(Graph::new(entities as usize, 1, &facts.collect::<Vec<_>>())), true)
    }

    #[test]
    fn where_all_sources_are_alike_a_trial_is_exact() {
        let (entities, degree) = (1000, 3);
        let reach = ring(entities, degree);
        let walks = 3 + 9 + 27;
        // Three steps of one to three lead three to nine entities on; each of those has edges in both directions.
        let looks = LOOKS * 7 * 2 * u64::from(degree);
        let steps = Trial::new(&reach).steps(&[Link::forward(RelationId(0)); 3]);
        assert_eq!(steps, u64::from(entities) * (walks + looks));
    }

    #[test]
    fn sources_are_spread_evenly_and_few_compared_with_all() {
        for all in [0, 1, 7, 100, 5000, 1_000_000] {
            let sources: Vec<EntityId> = (0..all).map(EntityId).collect();
            let taken: Vec<EntityId> = spread(&sources).collect();
            let most = (all as usize / AT_MOST_ONE_IN).max(1);
            assert!(taken.len() <= most && (all == 0) == taken.is_empty(), "{} of {all}", taken.len());
            let low = taken.iter().filter(|source| source.0 < all / 2).count();
            assert!(taken.len() < 10 || (2 * low).abs_diff(taken.len()) <= 4, "{low} of {}", taken.len());
        }
    }
}
