//! Edge cases: one entity, isolated subjects, relations without facts, no training queries.

use super::{Small, plain, rules, small, train_all};
use crate::graph::{EntityId, Graph, Known, Link, Query, RelationId, Triple};
use crate::progress::Silent;
use crate::tensor::Device;
use crate::walk::{Agents, NoRules, Teacher, TrainOptions, WalkConfig, Walker};

fn query(subject: u32, relation: u32) -> Query {
    Query { subject: EntityId(subject), link: Link::forward(RelationId(relation)) }
}

fn trained(config: &WalkConfig, graph: &Graph, known: &Known) -> Walker {
    let mut walker = Walker::new(config, graph, known, &Device::cpu(1).unwrap(), 1).unwrap();
    let teacher = Teacher { rules: &NoRules, soft: None };
    let config = WalkConfig { epochs: 1, ..config.clone() };
    walker.config = config;
    let small = Small { graph: graph.clone(), known: known.clone() };
    train_all(&mut walker, &small, teacher, TrainOptions::default(), &Silent).unwrap();
    walker
}

#[test]
fn the_only_entity_of_a_graph_is_its_own_answer() {
    let facts = [Triple::new(0, 0, 0)];
    let known = Known { facts: facts.into(), queries: facts.into(), valid: [].into(), ..Known::default() };
    let graph = Graph::new(1, 1, &facts);
    for agents in [Agents::Two, Agents::Single] {
        let walker = trained(&plain(agents), &graph, &known);
        // Its one answer is known from training and therefore closed at inference.
        assert!(walker.answers(&[query(0, 0)]).unwrap()[0].is_empty());
        let inverse = Query { subject: EntityId(0), link: Link::inverse_of(RelationId(0)) };
        assert!(walker.answers(&[inverse]).unwrap()[0].is_empty());
        let open = trained(&plain(agents).minerva(), &graph, &known);
        assert_eq!(open.answers(&[query(0, 0)]).unwrap()[0][0].entity, EntityId(0));
    }
}

#[test]
fn an_isolated_subject_can_only_stay() {
    let facts = [Triple::new(0, 0, 1), Triple::new(1, 1, 2)];
    let known = Known { facts: facts.into(), queries: facts.into(), valid: [].into(), ..Known::default() };
    let graph = Graph::new(4, 2, &facts);
    let walker = trained(&plain(Agents::Two), &graph, &known);
    let answers = walker.answers(&[query(3, 0)]).unwrap();
    assert_eq!(answers[0].len(), 1);
    assert_eq!(answers[0][0].entity, EntityId(3));
    assert!(answers[0][0].path.iter().all(|step| step.link == Link::NO_OP && step.entity_score.abs() < 1e-6));
    let closed = trained(&WalkConfig { close_subject: true, ..plain(Agents::Two) }, &graph, &known);
    assert!(closed.answers(&[query(3, 0)]).unwrap()[0].is_empty(), "and then it has no answer");
}

#[test]
fn a_relation_without_facts_can_be_asked_and_walks_of_every_length_work() {
    for hops in 1..=5 {
        let mut small = small(8, 20, 4);
        small.graph = Graph::new(8, 5, &small.known.facts);
        let config = WalkConfig { hops, beam: 16, ..plain(Agents::Two) };
        let mut walker =
            Walker::new(&config, &small.graph, &small.known, &Device::cpu(1).unwrap(), 1).unwrap();
        let table = rules(hops);
        let teacher = Teacher { rules: &table, soft: None };
        walker.config.epochs = 1;
        train_all(&mut walker, &small, teacher, TrainOptions::default(), &Silent).unwrap();
        let answers = walker.answers(&[query(1, 4), query(2, 3)]).unwrap();
        for answers in &answers {
            assert!(!answers.is_empty());
            assert!(answers.iter().all(|answer| answer.path.len() == hops && answer.score.is_finite()));
        }
    }
}

#[test]
fn nothing_to_learn_from_leaves_the_walker_as_it_was() {
    let known = Known {
        facts: [].into(),
        queries: [].into(),
        valid: [Triple::new(0, 0, 1)].into(),
        ..Known::default()
    };
    let graph = Graph::new(3, 1, &[]);
    let walker = trained(&plain(Agents::Two), &graph, &known);
    assert_eq!(walker.answers(&[query(0, 0)]).unwrap()[0][0].entity, EntityId(0));
    assert!(walker.answers(&[]).unwrap().is_empty());
}

#[test]
fn impossible_settings_are_refused_before_anything_is_built() {
    let small = small(3, 4, 1);
    let config = WalkConfig { beam: 0, ..plain(Agents::Two) };
    let error = Walker::new(&config, &small.graph, &small.known, &Device::cpu(1).unwrap(), 1).err().unwrap();
    assert!(error.to_string().starts_with("`beam`: expected a whole number from 1 to"), "{error}");
}
