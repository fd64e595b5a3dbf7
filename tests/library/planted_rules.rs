//! The rules of the family graph are known; the miner must find them with their true confidence.

use ruleguider::generate::{Family, family};
use ruleguider::graph::{Graph, Link};
use ruleguider::progress::Silent;
use ruleguider::rule::{Counts, MineOptions, MiningBudget, Rule, ScoredRule, count_rules, mine};
use std::collections::BTreeSet;

fn planted(family: &Family) -> Vec<Rule> {
    family.rules.iter().map(|rule| Rule::cyclic(Link::forward(rule.head), &rule.body)).collect()
}

fn counts_of(rules: &[ScoredRule], rule: &Rule) -> Counts {
    rules
        .iter()
        .find(|scored| scored.rule == *rule)
        .unwrap_or_else(|| panic!("{rule:?} was not found"))
        .counts
}

/// The pairs that a body joins and those of them that are facts, grounding by grounding.
fn naive(graph: &Graph, rule: &Rule) -> Counts {
    let mut pairs = BTreeSet::new();
    for &source in graph.pairs(rule.body[0]).sources {
        let mut trails = vec![vec![source]];
        for &link in &rule.body {
            let step = |trail: &Vec<_>| {
                let fresh =
                    graph.targets(trail[trail.len() - 1], link).iter().filter(|next| !trail.contains(next));
                fresh.map(|&next| [&trail[..], &[next]].concat()).collect::<Vec<_>>()
            };
            trails = trails.iter().flat_map(step).collect();
        }
        pairs.extend(trails.iter().map(|trail| (source, trail[trail.len() - 1])));
    }
    let correct = pairs.iter().filter(|(x, y)| graph.contains(*x, rule.head, *y)).count();
    Counts::exact(pairs.len() as u64, correct as u64)
}

#[test]
fn every_planted_rule_is_found_with_its_true_confidence() {
    let family = family(2000, 5);
    let graph = family.dataset.graph();
    let options =
        MineOptions { budget: MiningBudget::Samples(100_000), min_confidence: 0.0, ..MineOptions::default() };
    let mined = mine(&graph, &options, &Silent).unwrap();
    for (rule, planted) in planted(&family).iter().zip(&family.rules) {
        let counts = counts_of(&mined.rules, rule);
        assert_eq!(counts, naive(&graph, rule), "{}", planted.text);
        let expected = planted.expected_in_train();
        let found = counts.confidence(0.0);
        assert!((found - expected).abs() < 0.06, "{}: {found:.3}, expected {expected:.3}", planted.text);
    }
}

#[test]
fn sampled_counts_come_within_a_hundredth() {
    let family = family(20_000, 3);
    let graph = family.dataset.graph();
    let rules = planted(&family);
    let exact = count_rules(&graph, &rules, true);
    let options = MineOptions {
        budget: MiningBudget::Samples(20_000),
        max_groundings: 1_000_000,
        min_confidence: 0.0,
        ..MineOptions::default()
    };
    let mined = mine(&graph, &options, &Silent).unwrap();
    assert!(mined.rules.iter().any(|scored| scored.counts.sampled), "nothing was sampled");
    for (rule, exact) in rules.iter().zip(exact) {
        let found = counts_of(&mined.rules, rule);
        let apart = (found.confidence(0.0) - exact.confidence(0.0)).abs();
        assert!(apart < 0.01, "{rule:?}: {found:?} instead of {exact:?}");
    }
}
