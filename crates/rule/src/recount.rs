//! Exact counts for rules from other sources.

use super::clause::{Counts, Rule, Shape};
use super::count::{Correct, Lasts, Part, Scratch};
use super::frontier::{Frontier, Marks, Places};
use super::reach::Reach;
use rayon::prelude::*;
use ruleguider_graph::{EntityId, Graph, Link, evenly};
use std::sync::Arc;

/// What each of `rules` predicts in `graph` and how much of it is true, recounted exactly. `distinct` means that
/// variables bind distinct entities (object identity).
pub fn count_rules(graph: &Arc<Graph>, rules: &[Rule], distinct: bool) -> Vec<Counts> {
    let reach = Reach::new(graph, distinct);
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.sort_by(|&a, &b| rules[a].body.cmp(&rules[b].body));
    let groups: Vec<&[usize]> = order.chunk_by(|&a, &b| rules[a].body == rules[b].body).collect();
    let counted: Vec<Vec<(usize, Counts)>> = groups
        .par_iter()
        .map(|group| {
            let mut counter =
                Counter { reach: &reach, body: &rules[group[0]].body, pairs: None, selected: None };
            group.iter().map(|&place| (place, counter.count(&rules[place]))).collect()
        })
        .collect();
    let mut counts = vec![Counts::default(); rules.len()];
    for (place, count) in counted.into_iter().flatten() {
        counts[place] = count;
    }
    counts
}

/// What each of some cyclic rules predicts in `graph` and how much of it is true, estimated from at most `most` of
/// the entities that its body starts from, evenly spread. Variables may bind the same entity: then the ends of a long
/// path are found step by step, whereas there may be billions of paths that visit no entity twice.
pub fn estimate_rules(graph: &Arc<Graph>, rules: &[Rule], most: usize) -> Vec<Counts> {
    let reach = Reach::new(graph, false);
    let scratch = || (Frontier::default(), Places::new(graph.entities()));
    let estimate = |(frontier, places): &mut (Frontier, Places<'static>), rule: &Rule| {
        let Some(&first) = rule.body.first() else { return Counts::default() };
        let sources = reach.sources(first);
        let some = evenly(sources, most);
        let estimated = some.len() < sources.len();
        let (mut predicted, mut correct) = (0, 0);
        for &source in &some {
            frontier.walk(&reach, source, &rule.body, places);
            let facts = graph.targets(source, rule.head);
            predicted += frontier.nodes().len() as u64;
            correct += frontier.nodes().iter().filter(|end| facts.binary_search(end).is_ok()).count() as u64;
        }
        let all = sources.len() as f64;
        let scaled = |count: u64| (count as f64 * all / some.len().max(1) as f64).round() as u64;
        Counts { predicted: scaled(predicted), correct: scaled(correct), sampled: estimated }
    };
    rules.par_iter().map_init(scratch, estimate).collect()
}

/// Counts rules that share a body.
struct Counter<'a> {
    reach: &'a Reach,
    body: &'a [Link],
    /// The number of pairs the body predicts as a cyclic rule, and how many of them each link joins.
    pairs: Option<(u64, Option<Correct>)>,
    /// The last end asked for, and the entities from which the body leads there.
    selected: Option<(Option<EntityId>, Vec<EntityId>)>,
}

impl Counter<'_> {
    fn count(&mut self, rule: &Rule) -> Counts {
        match (rule.shape, self.body.split_last()) {
            (Shape::Cyclic, Some((&last, prefix))) => {
                let (predicted, correct) = self.pairs.get_or_insert_with(|| {
                    let mut scratch = Scratch::unbounded(self.reach);
                    let tallies =
                        scratch.count(self.reach, prefix, Lasts::These(&[last]), Part::WHOLE, &|| false);
                    let tally = tallies.into_iter().next();
                    tally.map_or((0, None), |tally| (tally.predicted, Some(tally.correct)))
                });
                let correct = correct.as_ref().map_or(0, |correct| correct.of(rule.head));
                Counts::exact(*predicted, u64::from(correct))
            }
            (Shape::Constant { answer, .. }, None) => {
                let correct = self.reach.targets(rule.head.reversed(), answer).len();
                Counts::exact(self.reach.pairs(rule.head) as u64, correct as u64)
            }
            (Shape::Constant { answer, end }, Some((&last, prefix))) => {
                if self.selected.as_ref().is_none_or(|(known, _)| *known != end) {
                    self.selected = Some((end, select(self.reach, prefix, last, end)));
                }
                let (_, selected) = self.selected.as_ref().expect("it was just made");
                let fits = |&&x: &&EntityId| {
                    !self.reach.distinct()
                        || (x != answer && self.reach.holds_around(x, self.body, end, answer))
                };
                let fit = selected.iter().filter(fits);
                let graph = self.reach.graph();
                let correct = fit.clone().filter(|&&x| graph.contains(x, rule.head, answer)).count();
                Counts::exact(fit.count() as u64, correct as u64)
            }
            (Shape::Cyclic, None) => Counts::default(),
        }
    }
}

/// The entities from which a path leads to `end`, or anywhere.
pub(super) fn select(reach: &Reach, prefix: &[Link], last: Link, end: Option<EntityId>) -> Vec<EntityId> {
    let entities = reach.graph().entities();
    let (mut places, mut marks) = (Places::new(entities), Marks::new(entities));
    let mut frontier = Frontier::default();
    let first = prefix.first().unwrap_or(&last);
    let leads = |&&source: &&EntityId| {
        frontier.walk(reach, source, prefix, &mut places);
        let mut found = false;
        frontier.step(reach, last, &mut marks, |target| found |= end.is_none_or(|end| end == target));
        found
    };
    reach.sources(*first).iter().filter(leads).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MineOptions, MiningBudget, mine};
    use ruleguider_graph::generate::family;
    use ruleguider_support::progress::Silent;

    #[test]
    fn an_estimate_from_all_sources_is_the_count() {
        let graph = family(60, 1).dataset.graph();
        let budget = MiningBudget::Samples(2000);
        let options = MineOptions { budget, distinct: false, ..MineOptions::default() };
        let mined = mine(&graph, &options, &Silent).unwrap().rules;
        let rules: Vec<Rule> = mined.into_iter().map(|scored| scored.rule).collect();
        assert!(rules.iter().any(|rule| rule.body.len() == 3));
        let exact = count_rules(&graph, &rules, false);
        assert_eq!(estimate_rules(&graph, &rules, usize::MAX), exact);
        let some = estimate_rules(&graph, &rules, 8);
        assert!(some.iter().all(|counts| counts.sampled) && some != exact);
        // Half of the entities give a good estimate for all.
        let sums: [fn(&[Counts]) -> u64; 2] = [
            |counts| counts.iter().map(|counts| counts.predicted).sum(),
            |counts| counts.iter().map(|counts| counts.correct).sum(),
        ];
        let half = estimate_rules(&graph, &rules, 30);
        for sum in sums {
            let (estimated, counted) = (sum(&half), sum(&exact));
            assert!((estimated as f64 / counted as f64 - 1.0).abs() < 0.25, "{estimated} and {counted}");
        }
    }
}
