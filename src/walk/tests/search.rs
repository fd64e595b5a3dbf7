//! Beam search against exhaustive search.

use super::slow::{Slow, open};
use super::{Small, assert_close, plain, rules, small, walker};
use crate::eval::{Answers, Reasoner};
use crate::graph::{Direction, Edge, EntityId, Query};
use crate::walk::world::Ask;
use crate::walk::{Agents, PathRules, Pool, WalkConfig, Walker};
use std::collections::BTreeMap;

/// All paths with their scores.
fn all_paths(small: &Small, walker: &Walker, query: Query) -> Vec<(f64, Vec<Edge>)> {
    let ask = Ask { query, target: None };
    let slow = Slow::new(walker);
    let hops = walker.config.hops;
    let mut paths: Vec<(f64, Vec<Edge>)> = vec![(0.0, Vec::new())];
    for hop in 0..hops {
        let mut longer = Vec::new();
        for (score, path) in &paths {
            let open = open(small, &ask, path, hop + 1 == hops && walker.config.close_answers);
            for (edge, (relation, entity)) in open.iter().zip(slow.log_probs(&ask, path, &open)) {
                longer.push((score + relation + entity, [path.as_slice(), &[*edge]].concat()));
            }
        }
        paths = longer;
    }
    paths
}

/// The best path to every entity, by exhaustive search.
fn exhaustive(small: &Small, walker: &Walker, query: Query) -> BTreeMap<EntityId, (f64, Vec<Edge>)> {
    let mut best: BTreeMap<EntityId, (f64, Vec<Edge>)> = BTreeMap::new();
    for (score, path) in all_paths(small, walker, query) {
        let end = path[path.len() - 1].target;
        if best.get(&end).is_none_or(|(other, _)| score > *other) {
            best.insert(end, (score, path));
        }
    }
    best
}

fn queries(small: &Small) -> Vec<Query> {
    let both = [Direction::Forward, Direction::Inverse];
    let all =
        small.known.queries.iter().flat_map(|&triple| both.map(|direction| Query::of(triple, direction).0));
    all.take(6).collect()
}

#[test]
fn a_wide_beam_finds_the_best_path_of_every_entity() {
    for (config, seed) in [
        (plain(Agents::Two), 1),
        (WalkConfig { hops: 1, ..plain(Agents::Two) }, 2),
        (WalkConfig { hops: 2, ..plain(Agents::Single) }, 3),
        (plain(Agents::Two).minerva(), 4),
    ] {
        let small = small(6, 12, seed);
        let walker = walker(&WalkConfig { beam: 4096, ..config }, &small);
        let queries = queries(&small);
        for (query, answers) in queries.iter().zip(walker.answers(&queries).unwrap()) {
            let expected = exhaustive(&small, &walker, *query);
            assert_eq!(answers.len(), expected.len(), "{query:?}");
            assert!(answers.windows(2).all(|pair| pair[0].score >= pair[1].score));
            for answer in &answers {
                let (score, path) = &expected[&answer.entity];
                assert_close(f64::from(answer.score), *score, "score");
                let steps: f64 =
                    answer.path.iter().map(|step| f64::from(step.relation_score + step.entity_score)).sum();
                assert_close(f64::from(answer.score), steps, "sum of the steps");
                let ours: Vec<Edge> =
                    answer.path.iter().map(|step| Edge { link: step.link, target: step.entity }).collect();
                assert_eq!(&ours, path, "{query:?}");
            }
        }
    }
}

#[test]
fn pooled_paths_add_their_probabilities_and_show_the_best() {
    let small = small(6, 12, 5);
    let config = WalkConfig { beam: 4096, pool: Pool::Sum, ..plain(Agents::Two) };
    let walker = walker(&config, &small);
    let queries = queries(&small);
    for (query, answers) in queries.iter().zip(walker.answers(&queries).unwrap()) {
        let mut sums: BTreeMap<EntityId, f64> = BTreeMap::new();
        for (score, path) in all_paths(&small, &walker, *query) {
            *sums.entry(path[path.len() - 1].target).or_default() += score.exp();
        }
        let best = exhaustive(&small, &walker, *query);
        assert_eq!(answers.len(), sums.len());
        assert!(answers.windows(2).all(|pair| pair[0].score >= pair[1].score));
        for answer in &answers {
            assert_close(f64::from(answer.score), sums[&answer.entity].ln(), "logarithm of the sum");
            let steps: f64 =
                answer.path.iter().map(|step| f64::from(step.relation_score + step.entity_score)).sum();
            assert_close(steps, best[&answer.entity].0, "score of the path that is shown");
        }
    }
}

#[test]
fn a_narrow_beam_keeps_its_width_and_never_beats_the_best() {
    let small = small(12, 60, 7);
    let wide = walker(&WalkConfig { beam: 4096, ..plain(Agents::Two) }, &small);
    let narrow = walker(&WalkConfig { beam: 3, ..plain(Agents::Two) }, &small);
    let queries = queries(&small);
    let all = wide.answers(&queries).unwrap();
    for (few, all) in narrow.answers(&queries).unwrap().iter().zip(&all) {
        assert!(!few.is_empty() && few.len() <= 3);
        for answer in few {
            let best = all.iter().find(|other| other.entity == answer.entity).unwrap();
            assert!(answer.score <= best.score + 1e-5);
        }
    }
}

#[test]
fn answers_depend_neither_on_the_batch_nor_on_threads() {
    let small = small(12, 60, 8);
    let walker = walker(&WalkConfig { beam: 5, ..plain(Agents::Two) }, &small);
    let queries = queries(&small);
    let together = walker.answers(&queries).unwrap();
    for (query, answers) in queries.iter().zip(&together) {
        let alone = &walker.answers(&[*query]).unwrap()[0];
        assert_eq!(alone.len(), answers.len());
        for (ours, theirs) in alone.iter().zip(answers) {
            assert_eq!((ours.entity, ours.links()), (theirs.entity, theirs.links()));
            assert_close(f64::from(ours.score), f64::from(theirs.score), "score");
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(pool.install(|| walker.answers(&queries).unwrap()), together);
    let Answers::Listed(listed) = walker.answer(&queries).unwrap() else {
        panic!("a walker lists its answers")
    };
    for (scored, answers) in listed.iter().zip(&together) {
        let ours: Vec<_> = scored.iter().map(|scored| scored.entity).collect();
        assert_eq!(ours, answers.iter().map(|answer| answer.entity).collect::<Vec<_>>());
    }
}

#[test]
fn the_share_of_rules_counts_top_answers_whose_path_is_one() {
    let small = small(8, 30, 9);
    let walker = walker(&plain(Agents::Two), &small);
    let (queries, table) = (queries(&small), rules(3));
    let by_hand = walker
        .answers(&queries)
        .unwrap()
        .iter()
        .zip(&queries)
        .filter(|(answers, query)| table.confidence(query.link, &answers[0].links()) > 0.0)
        .count();
    let share = walker.rule_share(&queries, &table).unwrap();
    assert_eq!(share, by_hand as f64 / queries.len() as f64);
    struct Everything;
    impl PathRules for Everything {
        fn confidence(&self, _: crate::graph::Link, _: &[crate::graph::Link]) -> f32 {
            1.0
        }
    }
    assert_eq!(walker.rule_share(&queries, &Everything).unwrap(), 1.0);
    assert_eq!(walker.rule_share(&[], &Everything).unwrap(), 0.0);
}
