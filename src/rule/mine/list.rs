//! The tasks for bodies of two and more links, listed once for all processes that share the counting.
//!
//! Only what is known before counting starts can be listed: all prefixes of one link, and the prefixes that a number of
//! walks nominate, or all prefixes of two links. With saturation as the budget, every process nominates bodies of four
//! and more links by itself, round after round.

use super::cyclic::Task;
use super::nominate::Promise;
use super::{MineOptions, Miner, Watch};
use crate::graph::{Array, ArrayReader, ArrayWriter, GraphError, Link};
use crate::progress::Progress;
use crate::rule::clause::RuleType;
use crate::rule::reach::Reach;
use crate::shard::Shard;
use std::sync::Mutex;

/// The prefixes of bodies of one length, ascending, with the cost and promise of each.
pub(in crate::rule) struct TaskList {
    /// How many links the bodies have.
    pub length: usize,
    prefixes: Array<Link>,
    costs: Array<u64>,
    steps: Array<u64>,
    promises: Array<Promise>,
}

impl TaskList {
    /// All lists for `options` that can be made before counting starts; `None` once the user interrupts.
    pub fn all(reach: &Reach, options: &MineOptions, progress: &dyn Progress) -> Option<Vec<Self>> {
        let watch = Watch::new(None, progress);
        let worth = options.worth(reach.graph().links());
        let miner = Miner {
            reach,
            options,
            max_groundings: options.groundings_in_time(),
            worth: &worth,
            watch: &watch,
            shard: Shard::WHOLE,
            lists: &[],
            partial: &Mutex::default(),
            scratch: &Mutex::default(),
        };
        let lists = match options.types.contains(&RuleType::Cyclic) {
            true => miner.lists(),
            false => Vec::new(),
        };
        (!watch.over()).then_some(lists)
    }

    pub fn new(length: usize, mut tasks: Vec<Task>) -> Self {
        tasks.sort_unstable_by(|a, b| a.prefix.cmp(&b.prefix));
        Self {
            length,
            prefixes: tasks.iter().flat_map(|task| task.prefix.iter().copied()).collect::<Vec<_>>().into(),
            costs: tasks.iter().map(|task| task.cost).collect::<Vec<_>>().into(),
            steps: tasks.iter().map(|task| task.steps).collect::<Vec<_>>().into(),
            promises: tasks.iter().map(|task| task.promise).collect::<Vec<_>>().into(),
        }
    }

    /// The tasks that are listed.
    pub(super) fn tasks(&self) -> Vec<Task> {
        let prefixes = self.prefixes.chunks_exact(self.length - 1);
        let listed = prefixes.zip(self.costs.iter().zip(self.steps.iter())).zip(self.promises.iter());
        let task = |((prefix, (&cost, &steps)), &promise): ((&[Link], _), _)| Task {
            promise,
            steps,
            ..Task::new(prefix.to_vec(), cost)
        };
        listed.map(task).collect()
    }

    /// Adds its arrays to a file.
    pub fn write<'a>(&'a self, out: &mut ArrayWriter<'a>) {
        out.add(&self.prefixes);
        out.add(&self.costs);
        out.add(&self.steps);
        out.add(&self.promises);
    }

    /// The list that was [written](Self::write) for bodies of `length` links.
    pub fn mapped(length: usize, file: &mut ArrayReader) -> Result<Self, GraphError> {
        let (prefixes, costs, steps, promises) =
            (file.array()?, file.array()?, file.array::<u64>()?, file.array()?);
        let list = Self { length, prefixes, costs, steps, promises };
        let links = length.checked_sub(1).and_then(|links| list.costs.len().checked_mul(links));
        let same = [list.steps.len(), list.promises.len()].iter().all(|&len| len == list.costs.len());
        match same && links == Some(list.prefixes.len()) {
            true => Ok(list),
            false => Err(file.damaged("prefixes without costs")),
        }
    }
}
