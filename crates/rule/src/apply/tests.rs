//! Predictions against brute force on small graphs.

use super::*;
use crate::clause::{Counts, Rule};
use crate::frontier::tests::{ends, graph, holds};
use proptest::prelude::*;
use ruleguider_graph::{EntityId, RelationId};
use std::cmp::Ordering;
use std::collections::BTreeMap;

const ENTITIES: u32 = 6;
const RELATIONS: u32 = 2;

fn any_rule() -> impl Strategy<Value = ScoredRule> {
    let link = 3u32..3 + 2 * RELATIONS;
    let entity = 0..ENTITIES;
    let shape = prop_oneof![
        2 => Just(Shape::Cyclic),
        1 => (entity.clone(), prop::option::of(entity))
            .prop_map(|(answer, end)| Shape::Constant { answer: EntityId(answer), end: end.map(EntityId) })
    ];
    (link.clone(), prop::collection::vec(link, 0..4), shape, 1u64..6, 0u64..3).prop_map(
        |(head, body, shape, correct, wrong)| {
            let mut body: Vec<Link> = body.into_iter().map(Link).collect();
            let rule = match shape {
                Shape::Cyclic => {
                    if body.is_empty() {
                        body.push(Link(head));
                    }
                    Rule::cyclic(Link(head), &body)
                }
                Shape::Constant { answer, end } => {
                    let end = end.filter(|_| !body.is_empty());
                    Rule { head: Link(head), body: body.into(), shape: Shape::Constant { answer, end } }
                }
            };
            ScoredRule { rule, counts: Counts::exact(correct + wrong, correct) }
        },
    )
}

/// Whether `rule` predicts that `query` is answered by `entity`.
fn predicts(graph: &Graph, rule: &Rule, query: Query, entity: EntityId, distinct: bool) -> bool {
    match rule.shape {
        Shape::Cyclic => [rule, &rule.reversed()].iter().any(|rule| {
            rule.head == query.link && ends(graph, query.subject, &rule.body, distinct).contains(&entity)
        }),
        Shape::Constant { answer, end } => {
            let holds = |x: EntityId| holds(graph, x, &rule.body, end, answer, distinct);
            let forward = rule.head == query.link && answer == entity && holds(query.subject);
            let back = rule.head.reversed() == query.link && answer == query.subject;
            forward || (back && !rule.body.is_empty() && holds(entity))
        }
    }
}

/// The confidences of all rules that predict each entity, in descending order. Facts of the graph are left out.
fn naive(
    graph: &Graph,
    rules: &[ScoredRule],
    query: Query,
    options: &ApplyOptions,
) -> BTreeMap<EntityId, Vec<f64>> {
    let mut all = BTreeMap::new();
    for entity in (0..ENTITIES).map(EntityId).filter(|&e| !graph.contains(query.subject, query.link, e)) {
        let firing = rules.iter().filter(|s| predicts(graph, &s.rule, query, entity, options.distinct));
        let mut confidences: Vec<f64> = firing.map(|scored| options.confidence(scored)).collect();
        confidences.sort_by(|a, b| b.total_cmp(a));
        if !confidences.is_empty() {
            all.insert(entity, confidences);
        }
    }
    all
}

fn naive_order(aggregate: Aggregate, rules: usize, a: &[f64], b: &[f64]) -> Ordering {
    match aggregate {
        Aggregate::Max => a[0].total_cmp(&b[0]),
        Aggregate::MaxPlus => a.partial_cmp(b).unwrap(),
        Aggregate::NoisyOr => {
            let miss = |list: &[f64]| list.iter().take(rules).map(|c| 1.0 - c).product::<f64>();
            (1.0 - miss(a)).total_cmp(&(1.0 - miss(b)))
        }
    }
}

proptest! {
    #[test]
    fn answers_stand_in_the_order_of_brute_force(
        facts in prop::collection::vec((0..ENTITIES, 0..RELATIONS, 0..ENTITIES), 0..20),
        rules in prop::collection::vec(any_rule(), 0..12),
        distinct in any::<bool>(),
        noisy_or_rules in 1usize..4,
    ) {
        let graph = graph(&facts, ENTITIES as usize, RELATIONS as usize);
        for aggregate in [Aggregate::MaxPlus, Aggregate::Max, Aggregate::NoisyOr] {
            let options = ApplyOptions {
                aggregate, distinct, noisy_or_rules, by_frequency: false, ..ApplyOptions::default()
            };
            let reasoner = RuleReasoner::new(&graph, rules.clone(), options.clone());
            for query in queries() {
                let expected = naive(&graph, &rules, query, &options);
                let answers = reasoner.answer_one(query);
                let mut listed: Vec<EntityId> = answers.iter().map(|a| a.entity).collect();
                listed.sort_unstable();
                prop_assert_eq!(listed, expected.keys().copied().collect::<Vec<_>>());
                for a in &answers {
                    for b in &answers {
                        let order = naive_order(
                            aggregate, noisy_or_rules, &expected[&a.entity], &expected[&b.entity],
                        );
                        prop_assert_eq!(a.score.total_cmp(&b.score), order);
                    }
                    let reasons = reasoner.explain(query, a.entity);
                    let why: Vec<f64> = reasons.iter().map(|reason| reason.confidence).collect();
                    prop_assert_eq!(&why, &expected[&a.entity]);
                    let all = reasoner.firings(query, a.entity, &|| false).unwrap();
                    prop_assert_eq!(all.iter().map(|one| one.0).collect::<Vec<f64>>(), why.clone());
                    for (reason, &(_, rule)) in reasons.iter().zip(&all) {
                        prop_assert_eq!(reason.rule, &rules[rule as usize]);
                        let by_it = reasoner.explain_by(query, a.entity, rule);
                        prop_assert_eq!(by_it.as_ref(), Some(reason));
                    }
                    // Scores that are not lowered to keep the order are the aggregated confidences of the rules.
                    if aggregate == Aggregate::NoisyOr {
                        let score = reasoner.aggregated(why.into_iter()).unwrap();
                        prop_assert!((a.score - score).abs() < 1e-12, "{} {score}", a.score);
                    }
                    for reason in reasons {
                        for (step, &link) in reason.path.iter().enumerate() {
                            let [from, to] = [reason.grounding[step], reason.grounding[step + 1]];
                            prop_assert!(graph.contains(from, link, to));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn stopping_early_changes_nothing_among_the_wanted(
        facts in prop::collection::vec((0..ENTITIES, 0..RELATIONS, 0..ENTITIES), 0..20),
        rules in prop::collection::vec(any_rule(), 0..12),
        repeats in 1usize..20,
        top in 1usize..4,
    ) {
        let graph = graph(&facts, ENTITIES as usize, RELATIONS as usize);
        // Many rules of descending confidence, so that stopping early makes a difference.
        let rules: Vec<ScoredRule> = (0..repeats as u64)
            .flat_map(|round| rules.iter().map(move |scored| {
                let Counts { predicted, correct, .. } = scored.counts;
                ScoredRule { counts: Counts::exact(predicted + round, correct), ..scored.clone() }
            }))
            .collect();
        for aggregate in [Aggregate::MaxPlus, Aggregate::Max, Aggregate::NoisyOr] {
            for by_frequency in [false, true] {
                let all = ApplyOptions { aggregate, by_frequency, ..ApplyOptions::default() };
                let some = ApplyOptions { top, ..all.clone() };
                let [all, some] = [all, some].map(|options| RuleReasoner::new(&graph, rules.clone(), options));
                for query in queries() {
                    let (all, some) = (all.answer_one(query), some.answer_one(query));
                    let wanted = all.iter().take(top).map(|a| a.entity);
                    prop_assert!(wanted.eq(some.iter().take(top).map(|a| a.entity)), "{:?} {:?}", all, some);
                }
            }
        }
    }
}

fn queries() -> impl Iterator<Item = Query> {
    let links = (3..3 + 2 * RELATIONS).map(Link);
    (0..ENTITIES)
        .flat_map(move |subject| links.clone().map(move |link| Query { subject: EntityId(subject), link }))
}

proptest! {
    #[test]
    fn a_crowd_is_what_would_be_listed_last(
        facts in prop::collection::vec((0..ENTITIES, 0..RELATIONS, 0..ENTITIES), 0..20),
        rules in prop::collection::vec(any_rule(), 0..6),
        distinct in any::<bool>(),
        top in 1usize..5,
    ) {
        let graph = graph(&facts, ENTITIES as usize, RELATIONS as usize);
        let options = ApplyOptions { distinct, top, ..ApplyOptions::default() };
        let reasoner = RuleReasoner::new(&graph, rules, options);
        let queries: Vec<Query> = queries().collect();
        let crowded = reasoner.answer_with_crowds(&queries).unwrap().unwrap();
        for (query, (listed, crowd)) in queries.into_iter().zip(crowded) {
            let all = reasoner.answer_one(query);
            let (first, last) = all.split_at(listed.len());
            prop_assert_eq!(first, &*listed);
            prop_assert_eq!(crowd.as_ref().map_or(0, Crowd::size), last.len());
            let Some(crowd) = crowd else { continue };
            prop_assert!(last.iter().all(|one| one.score == last[0].score && crowd.has(one.entity)));
            let others = (0..ENTITIES).map(EntityId).filter(|&entity| crowd.has(entity));
            prop_assert_eq!(others.count(), last.len());
            prop_assert_eq!(crowd.scored().collect::<Vec<_>>(), last);
            prop_assert!(first.last().is_none_or(|one| one.score > last[0].score));
        }
    }
}

#[test]
fn many_that_are_equally_frequent_are_not_listed_for_every_query() {
    // A hub of 2,000 entities, half of which are a chain.
    let mut facts: Vec<(u32, u32, u32)> = (1..2001).map(|leaf| (0, 0, leaf)).collect();
    facts.extend((1..1001).map(|at| (at, 1, at + 1)));
    let graph = graph(&facts, 2001, 2);
    let reasoner = RuleReasoner::new(&graph, [], ApplyOptions::default());
    let queries: Vec<Query> = facts
        .iter()
        .map(|&(head, relation, _)| Query {
            subject: EntityId(head),
            link: Link::forward(RelationId(relation)),
        })
        .collect();
    let crowded = reasoner.answer_with_crowds(&queries).unwrap().unwrap();
    let listed: usize = crowded.iter().map(|(listed, _)| listed.len()).sum();
    assert_eq!(listed, 0);
    // A link of the chain may lead to any of the thousand but the one that it is known to lead to, and back to itself.
    assert!(crowded[2001..].iter().all(|(_, crowd)| crowd.as_ref().is_some_and(|crowd| crowd.size() == 998)));
    assert!(reasoner.answer(&queries[2000..2010]).unwrap().into_lists().iter().all(|list| list.len() >= 998));
}

#[test]
fn equals_and_the_unpredicted_follow_by_frequency() {
    // Everybody likes 3, some like 4; all that is known of 0 is that it stands beside 4 and 2.
    let graph = graph(&[(1, 0, 3), (2, 0, 3), (2, 0, 4), (5, 0, 3), (0, 1, 4), (0, 1, 2)], 6, 2);
    let [likes, beside] = [0, 1].map(|id| Link::forward(RelationId(id)));
    let rules = vec![ScoredRule { rule: Rule::cyclic(likes, &[beside]), counts: Counts::exact(9, 3) }];
    let reasoner = RuleReasoner::new(&graph, rules, ApplyOptions::default());
    let answers = reasoner.answer_one(Query { subject: EntityId(0), link: likes });
    let order: Vec<u32> = answers.iter().map(|answer| answer.entity.0).collect();
    assert_eq!(order, [4, 2, 3], "4 is liked by one more than 2; 3, that no rule predicts, comes last");
    assert!(answers.windows(2).all(|two| two[0].score > two[1].score));
}

#[test]
fn a_fact_that_is_asked_for_is_scored_by_the_rules_like_any_entity() {
    // 0 likes 1, 2 and 3, and stands beside 1 and 4; the rule says that one likes those one stands beside.
    let graph = graph(&[(0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 1), (0, 1, 4)], 9, 2);
    let [likes, beside] = [0, 1].map(|id| Link::forward(RelationId(id)));
    let rules = vec![ScoredRule { rule: Rule::cyclic(likes, &[beside]), counts: Counts::exact(9, 3) }];
    let reasoner =
        RuleReasoner::new(&graph, rules, ApplyOptions { by_frequency: false, ..ApplyOptions::default() });
    let query = Query { subject: EntityId(0), link: likes };
    let listed = |answers: Vec<Scored>| -> Vec<(u32, f64)> {
        answers.iter().map(|answer| (answer.entity.0, answer.score)).collect()
    };
    let score = 1.0 - (1.0 - 3.0 / 14.0);
    assert_eq!(
        listed(reasoner.answer_for_fact(query, EntityId(1)).unwrap().unwrap()),
        [(1, score), (4, score)]
    );
    assert_eq!(listed(reasoner.answer_for_fact(query, EntityId(2)).unwrap().unwrap()), [(4, score)]);
    assert_eq!(listed(reasoner.answer_one(query)), [(4, score)], "and leaves no trace");
}

#[test]
fn senseless_options_are_refused_by_name() {
    let good = ApplyOptions::default();
    assert!(good.check().is_ok());
    for (options, name) in [
        (ApplyOptions { noisy_or_rules: 0, ..good.clone() }, "noisy_or_rules"),
        (ApplyOptions { top: 0, ..good.clone() }, "top"),
        (ApplyOptions { unseen: f64::NAN, ..good.clone() }, "unseen"),
        (ApplyOptions { unseen: -3.0, ..good.clone() }, "unseen"),
        (ApplyOptions { open_weight: 1.5, ..good.clone() }, "open_weight"),
        (ApplyOptions { zero_weight: f64::INFINITY, ..good.clone() }, "zero_weight"),
        (ApplyOptions { long_weight: -0.1, ..good.clone() }, "long_weight"),
    ] {
        let message = options.check().unwrap_err().to_string();
        assert!(message.starts_with(&format!("`{name}`: expected a ")), "{message}");
    }
}

#[test]
fn predictions_are_written_as_anyburl_writes_them() {
    let names = ruleguider_graph::Names {
        entities: ["ann", "bob", "cat"].into_iter().collect(),
        relations: ["likes", "beside"].into_iter().collect(),
        ..Default::default()
    };
    let graph = graph(&[(0, 1, 1), (2, 0, 1)], 3, 2);
    let [likes, beside] = [0, 1].map(|id| Link::forward(RelationId(id)));
    let rules = vec![ScoredRule { rule: Rule::cyclic(likes, &[beside]), counts: Counts::exact(3, 2) }];
    let reasoner =
        RuleReasoner::new(&graph, rules, ApplyOptions { by_frequency: false, ..Default::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("predictions.txt");
    let triples = [ruleguider_graph::Triple::new(0, 0, 1)];
    assert!(
        write_predictions(&path, &triples, &reasoner, &names, &ruleguider_support::progress::Silent).unwrap()
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "ann likes bob\nHeads: ann\t0.25\t\nTails: bob\t0.25\t\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_knows_little_of_the_subject_or_holds_by_chance_weighs_less() {
    let link = Link::forward(RelationId(0));
    let cyclic = |length: usize| Rule::cyclic(link, &vec![link; length]);
    let constant = |body: &[Link], end: Option<EntityId>| Rule {
        head: link,
        body: body.into(),
        shape: Shape::Constant { answer: EntityId(0), end },
    };
    let options =
        ApplyOptions { open_weight: 0.5, zero_weight: 0.25, long_weight: 0.1, ..ApplyOptions::default() };
    for (rule, weight) in [
        (cyclic(1), 1.0),
        (cyclic(3), 1.0),
        (cyclic(4), 0.1),
        (cyclic(5), 0.01),
        (constant(&[link; 4], Some(EntityId(1))), 1.0),
        (constant(&[link], None), 0.5),
        (constant(&[], None), 0.25),
    ] {
        let confidence = options.confidence(&ScoredRule { rule, counts: Counts::exact(15, 10) });
        assert!((confidence - 0.5 * weight).abs() < 1e-12, "{confidence} instead of {weight} / 2");
    }
}
