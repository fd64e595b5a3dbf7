//! On a generated family the planted rules become the top paths.

use super::{Small, train_all};
use crate::eval::{Protocol, Truth, evaluate};
use crate::generate::family;
use crate::graph::{Direction, Link, Query};
use crate::progress::Silent;
use crate::tensor::Device;
use crate::walk::{PathRules, PathTable, Pool, Teacher, TrainOptions, WalkConfig, Walker};

#[test]
fn a_family_is_learnt_in_seconds_and_its_paths_are_the_planted_rules() {
    let family = family(360, 1);
    let dataset = &family.dataset;
    let graph = dataset.graph();
    // As the demonstration, but without its soft reward, for fewer epochs, and validated less often.
    let config = WalkConfig {
        dimension: 64,
        history: 64,
        layers: 1,
        bandwidth: 64,
        batch: 128,
        rollouts: 10,
        learning_rate: 0.005,
        final_rate: 0.1,
        entropy: 0.01,
        pretrain_epochs: 4.0,
        epochs: 20,
        validate_every: 4,
        beam: 64,
        pool: Pool::Sum,
        ..WalkConfig::default()
    };
    let rules = family
        .rules
        .iter()
        .map(|rule| (Link::forward(rule.head), rule.body.as_slice(), rule.expected_in_train() as f32))
        .filter(|(_, _, confidence)| *confidence > 0.15);
    let table = PathTable::new(config.hops, rules);
    let device = Device::cpu(2).unwrap();
    let mut walker = Walker::new(&config, &graph, &dataset.known, &device, 1).unwrap();
    let teacher = Teacher { rules: &table, soft: None };
    let small = Small { graph: (*graph).clone(), known: dataset.known.clone() };
    train_all(&mut walker, &small, teacher, TrainOptions::default(), &Silent).unwrap();

    let answers = dataset.answers();
    let truth = Truth { graph: &graph, answers: &answers };
    let evaluation = evaluate(&walker, &dataset.test, truth, Protocol::default(), &Silent).unwrap();
    let figures = evaluation.figures();
    assert!(figures.hits_at_1 >= 0.9, "{figures:?}");

    let queries: Vec<Query> =
        dataset.test.iter().map(|&triple| Query::of(triple, Direction::Forward).0).collect();
    assert!(walker.rule_share(&queries, &table).unwrap() > 0.3);
    let uncle = dataset.names.relations.get("uncle_of").unwrap();
    let link = Link::forward(crate::graph::RelationId(uncle));
    let of_uncles: Vec<Query> = queries.into_iter().filter(|query| query.link == link).collect();
    assert!(!of_uncles.is_empty());
    let top = walker.answers(&of_uncles).unwrap();
    let by_rule = top.iter().filter(|answers| table.confidence(link, &answers[0].links()) > 0.0).count();
    assert!(3 * by_rule > of_uncles.len(), "{by_rule} of {} uncles", of_uncles.len());
}
