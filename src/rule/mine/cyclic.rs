//! Cyclic rules: short ones all, longer ones in the order of what they promise.

use super::nominate::{Nominations, Promise};
use super::{Budget, Miner};
use crate::graph::{EntityId, Link};
use crate::rule::Map;
use crate::rule::clause::{RuleType, ScoredRule};
use crate::rule::count::{Lasts, Part, Scratch};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A prefix whose bodies are to be counted.
struct Task {
    prefix: Vec<Link>,
    /// About how many groundings its bodies have.
    cost: u64,
    /// What the sample says about it.
    promise: Promise,
}

/// How many ways there are to walk some links, and to walk one step more.
#[derive(Clone, Copy, Default)]
struct Ways {
    walked: u64,
    onward: u64,
}

type Costs = Map<(Link, Link), Ways>;

/// Walks that a round of nomination makes when time is the limit.
const ROUND: u64 = 1 << 18;

impl Miner<'_> {
    /// Cyclic rules, and the share of the nominated that was counted.
    pub fn cyclic(&self) -> (Vec<ScoredRule>, f64) {
        let costs = self.costs();
        let mut rules = self.count_short(&costs);
        let mut saturation = 1.0;
        for length in 3..=self.options.max_length {
            if self.watch.over() {
                return (rules, 0.0);
            }
            let (found, share) = self.count_long(length, &costs);
            rules.extend(found);
            saturation = share;
        }
        (rules, saturation)
    }

    /// For every two links that follow one another, how many ways there are to walk them.
    fn costs(&self) -> Costs {
        let graph = self.reach.graph();
        let mut costs = Costs::default();
        let mut runs: Vec<(Link, Ways)> = Vec::new();
        for middle in (0..graph.entities() as u32).map(EntityId) {
            runs.clear();
            let edges = graph.edges(middle);
            runs.extend(edges.chunk_by(|a, b| a.link == b.link).map(|run| {
                let onward = run.iter().map(|edge| graph.edges(edge.target).len() as u64).sum();
                (run[0].link, Ways { walked: run.len() as u64, onward })
            }));
            for &(back, sources) in &runs {
                for &(second, ways) in &runs {
                    let cost = costs.entry((back.reversed(), second)).or_default();
                    cost.walked += sources.walked * ways.walked;
                    cost.onward += sources.walked * ways.onward;
                }
            }
        }
        costs
    }

    /// All rules whose body has one or two links.
    fn count_short(&self, costs: &Costs) -> Vec<ScoredRule> {
        let links: Vec<Link> = self.reach.links().collect();
        let mut tasks: Vec<Task> = Vec::new();
        if self.options.max_length >= 2 {
            let mut ways: Map<Link, u64> = Map::default();
            for (&(first, _), cost) in costs {
                *ways.entry(first).or_default() += cost.walked;
            }
            tasks.extend(links.iter().map(|&link| {
                let cost = ways.get(&link).copied().unwrap_or(0);
                Task { prefix: vec![link], cost, promise: Promise::default() }
            }));
            // The longest first, so that no thread is left with one at the end.
            tasks.sort_by_key(|task| (std::cmp::Reverse(task.cost), task.prefix[0]));
        }
        let mut rules = self.count_singles(&links);
        rules.extend(self.count_tasks(&tasks).0);
        rules
    }

    fn count_singles(&self, links: &[Link]) -> Vec<ScoredRule> {
        let mut scratch = Scratch::new(self.reach);
        let mut rules = Vec::new();
        for &link in links.iter().filter(|&&link| link < link.reversed()) {
            for tally in scratch.count(self.reach, &[], Lasts::These(&[link]), Part::WHOLE, &|| false) {
                self.worth.rules(&[], &tally, Part::WHOLE, &mut rules);
            }
        }
        self.watch.note(RuleType::Cyclic, rules.len());
        rules
    }

    /// Rules whose body has `length` links, three or more.
    fn count_long(&self, length: usize, costs: &Costs) -> (Vec<ScoredRule>, f64) {
        let mut nominations = Nominations::new(length, self.options.seed);
        let mut done: Map<Vec<Link>, ()> = Map::default();
        let mut rules = Vec::new();
        loop {
            let walks = match self.options.budget {
                Budget::Samples(samples) => samples,
                Budget::Seconds(_) => ROUND,
            };
            nominations.walk(self.reach, walks, &|| self.watch.over());
            let everything = length == 3 && matches!(self.options.budget, Budget::Seconds(_));
            let mut tasks = self.tasks(&nominations, &done, costs, everything);
            let typical = nominations.typical();
            tasks.sort_by(|a, b| {
                let density = |task: &Task| task.promise.density(typical);
                density(b).total_cmp(&density(a)).then_with(|| a.prefix.cmp(&b.prefix))
            });
            let none = tasks.is_empty();
            let (found, counted) = self.count_tasks(&tasks);
            rules.extend(found);
            let hits = |tasks: &[Task]| tasks.iter().map(|task| task.promise.hits).sum::<u64>() as f64;
            let all = hits(&tasks)
                + done.keys().filter_map(|p| nominations.promise(p)).map(|p| p.hits as f64).sum::<f64>();
            let open = hits(&tasks[counted..]);
            done.extend(tasks.drain(..counted).map(|task| (task.prefix, ())));
            let saturation = if all > 0.0 { 1.0 - open / all } else { 1.0 };
            if everything || none || self.watch.over() || matches!(self.options.budget, Budget::Samples(_)) {
                return (rules, saturation);
            }
        }
    }

    /// What has been nominated and not been done; with `everything`, all else of that length too.
    fn tasks(
        &self,
        nominations: &Nominations,
        done: &Map<Vec<Link>, ()>,
        costs: &Costs,
        everything: bool,
    ) -> Vec<Task> {
        let cost_of = |prefix: &[Link]| {
            // The last three steps of a longer path are what is walked most often.
            let tail = &prefix[prefix.len() - 2..];
            costs.get(&(tail[0], tail[1])).map_or(0, |ways| ways.onward)
        };
        if everything {
            let pairs = costs.iter().map(|(&(first, second), ways)| {
                let prefix = vec![first, second];
                let promise = nominations.promise(&prefix).unwrap_or_default();
                Task { prefix, cost: ways.onward, promise }
            });
            return pairs.collect();
        }
        (nominations.iter())
            .filter(|(prefix, _)| !done.contains_key(*prefix))
            .map(|(prefix, promise)| Task { prefix: prefix.clone(), cost: cost_of(prefix), promise })
            .collect()
    }

    /// Counts the bodies of `tasks` in their order until the time is up. Returns the rules, and how many tasks
    /// from the first on were counted without a gap.
    fn count_tasks(&self, tasks: &[Task]) -> (Vec<ScoredRule>, usize) {
        let next = AtomicUsize::new(0);
        // Before anything is nominated, every task is worth the same.
        let weight = |task: &Task| task.promise.hits.max(1);
        let all: u64 = tasks.iter().map(weight).sum();
        let done = AtomicU64::new(0);
        let found: Mutex<Vec<ScoredRule>> = Mutex::default();
        let missed = AtomicUsize::new(tasks.len());
        rayon::broadcast(|_| {
            let mut scratch = Scratch::new(self.reach);
            let mut mine = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(place) else { break };
                let before = mine.len();
                if self.watch.over() || !self.count_task(task, &mut scratch, &mut mine) {
                    mine.truncate(before);
                    missed.fetch_min(place, Ordering::Relaxed);
                    break;
                }
                self.watch.note(RuleType::Cyclic, mine.len() - before);
                let done = done.fetch_add(weight(task), Ordering::Relaxed) + weight(task);
                self.watch.advance(done as f64 / all as f64);
            }
            found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut mine);
        });
        let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        (found, missed.into_inner())
    }

    /// Counts the bodies of one task; false if the time was up before the end.
    fn count_task(&self, task: &Task, scratch: &mut Scratch, rules: &mut Vec<ScoredRule>) -> bool {
        let share = (self.options.max_groundings as f64 / task.cost.max(1) as f64).min(1.0);
        let part = if share < 1.0 { Part { share, seed: self.options.seed } } else { Part::WHOLE };
        let over = || self.watch.over();
        for tally in scratch.count(self.reach, &task.prefix, Lasts::All, part, &over) {
            self.worth.rules(&task.prefix, &tally, part, rules);
        }
        !self.watch.over()
    }
}
