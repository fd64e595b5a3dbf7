//! Rules of an earlier version of the graph, recounted on the current graph and merged with newly mined ones.

use super::clause::{Counts, Rule, ScoredRule, Shape, sort_by_confidence};
use super::known::over_known;
use super::mine::MineOptions;
use super::recount::count_rules;
use super::weighted::{KeptRules, weigh_by_confidence};
use ruleguider_graph::{Graph, Known, Renumbering};
use std::collections::HashMap;
use std::sync::Arc;

/// How many rules with a changed confidence are listed at most.
const MOVED: usize = 10;
/// Rules with fewer predictions than this change by chance.
const PREDICTED: u64 = 20;

/// Old and new rules together.
pub struct CarriedRules {
    /// All rules that are good enough, the most confident first.
    pub rules: Vec<ScoredRule>,
    /// How many of them existed before.
    pub kept: usize,
    /// How many earlier rules are no longer good enough, or have names that no longer exist.
    pub gone: usize,
    /// How many are new.
    pub new: usize,
    /// The rules whose confidence changed most.
    pub moved: Vec<MovedRule>,
}

/// A rule whose confidence has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedRule {
    /// The rule.
    pub rule: Rule,
    /// The earlier counts.
    pub before: Counts,
    /// The current counts.
    pub after: Counts,
}

/// Merges the rules just mined from `graph` with those of an earlier version of it, which mining may not have found
/// again. `earlier` has the ids of that version, and `ids` maps them to those of `graph`. Both sets count the same
/// predictions (with `known`, only those about entities of which the relation is known), by the confidences in `data`.
pub fn carry_over(
    (graph, data): (&Arc<Graph>, &Known),
    mined: Vec<ScoredRule>,
    earlier: &[ScoredRule],
    ids: &Renumbering,
    (options, known): (&MineOptions, bool),
) -> CarriedRules {
    let mut now: HashMap<Rule, Counts> =
        mined.into_iter().map(|scored| (scored.rule, scored.counts)).collect();
    let found = now.len();
    let then: Vec<(Rule, Counts)> = earlier
        .iter()
        .filter_map(|scored| Some((renumbered(&scored.rule, ids)?, scored.counts)))
        .filter(|(rule, _)| options.types.contains(&rule.rule_type()))
        .collect();
    let unmet: Vec<Rule> =
        then.iter().map(|(rule, _)| rule).filter(|rule| !now.contains_key(rule)).cloned().collect();
    let counts = count_rules(graph, &unmet, options.distinct);
    let mut unmet: Vec<ScoredRule> =
        unmet.into_iter().zip(counts).map(|(rule, counts)| ScoredRule { rule, counts }).collect();
    let (never, MineOptions { distinct, unseen, .. }) = (|| false, options.clone());
    if data.notes.has_confidence() {
        let all = KeptRules { distinct, unseen, min_support: 0, min_confidence: 0.0 };
        unmet = weigh_by_confidence(graph, &unmet, &data.notes, all, &never).expect("nobody stops it");
    }
    if known {
        unmet =
            over_known(graph, &unmet, &data.negatives, (distinct, unseen), &never).expect("nobody stops it");
    }
    let good = |counts: &Counts| {
        counts.correct >= options.min_support && counts.confidence(options.unseen) >= options.min_confidence
    };
    let unmet = unmet.into_iter().map(|scored| (scored.rule, scored.counts));
    now.extend(unmet.filter(|(_, counts)| good(counts)));
    let kept = then.iter().filter(|(rule, _)| now.contains_key(rule)).count();
    let recounted = now.len() - found;
    let moved = moved(&then, &now, options.unseen);
    let mut rules: Vec<ScoredRule> =
        now.into_iter().map(|(rule, counts)| ScoredRule { rule, counts }).collect();
    // A map has no order, so the rules are sorted here.
    rules.sort_unstable_by(|a, b| a.rule.cmp(&b.rule));
    sort_by_confidence(&mut rules, options.unseen);
    CarriedRules { rules, kept, gone: earlier.len() - kept, new: found + recounted - kept, moved }
}

/// The rules whose confidence changed most, among those with more than a few predictions before and now.
fn moved(then: &[(Rule, Counts)], now: &HashMap<Rule, Counts>, unseen: f64) -> Vec<MovedRule> {
    let both = then.iter().filter_map(|(rule, before)| Some((rule, *before, *now.get(rule)?)));
    let counted = both.filter(|(_, before, after)| before.predicted.min(after.predicted) >= PREDICTED);
    let change =
        |before: &Counts, after: &Counts| (after.confidence(unseen) - before.confidence(unseen)).abs();
    let mut all: Vec<(&Rule, Counts, Counts)> =
        counted.filter(|(_, before, after)| change(before, after) > 0.0).collect();
    all.sort_by(|a, b| change(&b.1, &b.2).total_cmp(&change(&a.1, &a.2)).then_with(|| a.0.cmp(b.0)));
    all.truncate(MOVED);
    all.into_iter().map(|(rule, before, after)| MovedRule { rule: rule.clone(), before, after }).collect()
}

/// The same rule in the other ids.
fn renumbered(rule: &Rule, ids: &Renumbering) -> Option<Rule> {
    let body: Option<Box<[_]>> = rule.body.iter().map(|&link| ids.link(link)).collect();
    let shape = match rule.shape {
        Shape::Cyclic => Shape::Cyclic,
        Shape::Constant { answer, end } => Shape::Constant {
            answer: ids.entity(answer)?,
            end: match end {
                Some(end) => Some(ids.entity(end)?),
                None => None,
            },
        },
    };
    Some(Rule { head: ids.link(rule.head)?, body: body?, shape })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mine::{MiningBudget, mine};
    use ruleguider_graph::generate::family;
    use ruleguider_support::progress::Silent;
    use std::collections::HashSet;

    #[test]
    fn old_rules_are_recounted_and_new_ones_join_them() {
        let dataset = family(60, 1).dataset;
        let graph = dataset.graph();
        let options =
            MineOptions { budget: MiningBudget::Samples(20_000), max_length: 2, ..MineOptions::default() };
        let all = mine(&graph, &options, &Silent).unwrap().rules;
        let ids = Renumbering::new(&dataset.names, &dataset.names);
        // The graph has lost every third fact, and half of the rules are not found again.
        let kept = dataset.known.facts.iter().enumerate().filter(|(at, _)| at % 3 != 0);
        let fewer: Vec<_> = kept.map(|(_, fact)| *fact).collect();
        let smaller = Arc::new(Graph::new(graph.entities(), graph.relations(), &fewer));
        let found = mine(&smaller, &options, &Silent).unwrap().rules;
        let met: Vec<ScoredRule> = found.iter().step_by(2).cloned().collect();
        let carried = carry_over((&smaller, &Known::default()), met.clone(), &all, &ids, (&options, false));
        assert_eq!(carried.kept + carried.gone, all.len());
        assert_eq!(carried.kept + carried.new, carried.rules.len());
        let rules: HashSet<&Rule> = carried.rules.iter().map(|scored| &scored.rule).collect();
        assert!(met.iter().all(|scored| rules.contains(&scored.rule)));
        let exact = count_rules(
            &smaller,
            &carried.rules.iter().map(|scored| scored.rule.clone()).collect::<Vec<_>>(),
            options.distinct,
        );
        assert!(carried.rules.iter().zip(&exact).all(|(scored, counts)| scored.counts == *counts));
        assert!(carried.gone > 0 && carried.moved.len() == MOVED);
        let by = |moved: &MovedRule| (moved.after.confidence(5.0) - moved.before.confidence(5.0)).abs();
        assert!(carried.moved.is_sorted_by(|a, b| by(a) >= by(b)));
    }
}
