//! Exact counts for rules that come from elsewhere.

use super::clause::{Counts, Rule, Shape};
use super::count::{Correct, Lasts, Part, Scratch};
use super::frontier::{Frontier, Marks, Places};
use super::reach::Reach;
use crate::graph::{EntityId, Graph, Link};
use rayon::prelude::*;
use std::sync::Arc;

/// What each of `rules` predicts in `graph` and how much of it is true, counted again and exactly. `distinct` says that
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

/// Counts rules that share a body.
struct Counter<'a> {
    reach: &'a Reach,
    body: &'a [Link],
    /// What the body predicts as a cyclic one, and how much of it every link agrees with.
    pairs: Option<(u64, Option<Correct>)>,
    /// The last end asked for, and the entities that the body leads there from.
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
fn select(reach: &Reach, prefix: &[Link], last: Link, end: Option<EntityId>) -> Vec<EntityId> {
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
