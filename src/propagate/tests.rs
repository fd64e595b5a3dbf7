//! A propagator on a graph with one known rule: `grand(x, z) ← parent(x, y), parent(y, z)`.

use super::*;
use crate::eval::{Answers, Protocol, Reasoner, Side, Truth, evaluate};
use crate::graph::{Adjacency, Array, Direction, EntityId, Graph, Known, Link, Query, RelationId, Triple};
use crate::progress::Silent;
use crate::tensor::{Device, Indices, Reach, ReachQuery};

const PARENT: u32 = 0;
const GRAND: u32 = 1;
const NOISE: u32 = 2;

/// Families of a grandparent, two parents and four children each; half of the `grand` facts are kept for validation.
fn families(count: u32) -> (Known, (usize, usize)) {
    let (mut facts, mut valid) = (Vec::new(), Vec::new());
    for family in 0..count {
        let person = |number: u32| family * 7 + number;
        for parent in 1..3 {
            facts.push(Triple::new(person(parent), PARENT, person(0)));
            for child in 0..2 {
                let child = person(3 + (parent - 1) * 2 + child);
                facts.push(Triple::new(child, PARENT, person(parent)));
                let grand = Triple::new(child, GRAND, person(0));
                if (family + child).is_multiple_of(2) { facts.push(grand) } else { valid.push(grand) }
            }
        }
        facts.push(Triple::new(person(6), NOISE, (person(6) * 5 + 1) % (7 * count)));
    }
    let facts: Array<Triple> = facts.into();
    (
        Known { facts: facts.clone(), queries: facts, valid: valid.into(), ..Known::default() },
        (7 * count as usize, 3),
    )
}

fn settings() -> PropagateSettings {
    PropagateSettings {
        layers: 3,
        width: 16,
        hidden: 16,
        epochs: 8,
        learning_rate: 5e-3,
        warm_up: 20,
        ..PropagateSettings::default()
    }
}

fn trained(
    device: &Device,
    settings: &PropagateSettings,
    count: u32,
) -> (TrainedPropagator, Known, (usize, usize)) {
    let (known, size) = families(count);
    let task = PropagateTask {
        known: &known,
        size,
        settings,
        seed: 3,
        device,
        folder: None,
        warm: None,
        initial: None,
    };
    (train(task, &Silent).unwrap(), known, size)
}

#[test]
fn a_rule_is_learnt_and_is_the_reason() {
    let device = Device::cpu(2).unwrap();
    let (made, known, size) = trained(&device, &settings(), 24);
    let valid = made.valid.unwrap();
    assert!(valid.mrr > 0.9, "{valid:?}");
    assert!(made.hides_all_links, "no validation pair is linked in this graph");
    let (mut right, mut lower, mut compared) = (0, 0, 0);
    let graph = Graph::new(size.0, size.1, &known.facts);
    for &triple in known.valid.iter() {
        let (query, target) = Query::of(triple, Direction::Forward);
        let paths = made.propagator.paths(query, target, 3, None).unwrap();
        let links: Vec<Link> = paths[0].hops.iter().map(|hop| hop.link).collect();
        right += usize::from(links == [Link::forward(RelationId(PARENT)); 2]);
        assert_eq!(paths[0].hops.last().unwrap().entity, target);
        // Removing its path lowers the score more than removing another path of the same length from the same
        // subject.
        let score = made.propagator.score_without(query, target, &[]).unwrap();
        let facts = |hops: &[PathHop]| {
            let mut from = query.subject;
            let step = |hop: &PathHop| (std::mem::replace(&mut from, hop.entity), hop.link, hop.entity);
            hops.iter().map(step).collect::<Vec<_>>()
        };
        let without = made.propagator.score_without(query, target, &facts(&paths[0].hops)).unwrap();
        // Paths of as many hops with another first hop.
        let others = graph.edges(query.subject).iter().filter(|edge| edge.target != paths[0].hops[0].entity);
        let others =
            others.flat_map(|first| graph.edges(first.target).iter().map(move |second| [first, second]));
        let others: Vec<_> = others.collect();
        if others.is_empty() {
            continue;
        }
        let other = others[random_place(triple) % others.len()];
        let other = other.map(|edge| PathHop { link: edge.link, entity: edge.target });
        let beside = made.propagator.score_without(query, target, &facts(&other)).unwrap();
        compared += 1;
        lower += usize::from(without < beside && without < score);
    }
    assert!(compared > 0 && lower * 10 >= compared * 9, "{lower} of {compared}");
    assert!(right * 10 >= known.valid.len() * 9, "{right} of {}", known.valid.len());
}

/// A number that depends on a triple alone.
fn random_place(triple: Triple) -> usize {
    (triple.head.0 as usize * 7919 + triple.tail.0 as usize) % 1009
}

#[test]
fn a_bounded_frontier_learns_the_rule_too() {
    let device = Device::cpu(2).unwrap();
    let bounded = PropagateSettings { frontier: FrontierBound::Most(4), ..settings() };
    let (made, known, _) = trained(&device, &bounded, 24);
    let valid = made.valid.unwrap();
    assert!(valid.mrr > 0.8, "{valid:?}");
    let (query, target) = Query::of(known.valid[0], Direction::Forward);
    assert!(!made.propagator.paths(query, target, 1, None).unwrap().is_empty());
}

#[test]
fn weights_serve_any_frontier() {
    let device = Device::cpu(2).unwrap();
    let (made, known, size) = trained(&device, &PropagateSettings { networks: 2, ..settings() }, 24);
    let graph = Graph::new(size.0, size.1, &known.facts);
    let answers = Adjacency::new(size.0, &[&known.facts, &known.valid]);
    let mrr = |propagator: &Propagator| {
        let protocol = Protocol { side: Side::Both, ..Protocol::default() };
        let truth = Truth { graph: &graph, answers: &answers };
        evaluate(propagator, &known.valid, truth, protocol, &Silent).unwrap().mrr()
    };
    let asked: Vec<(Query, EntityId)> =
        known.valid.iter().take(6).map(|&triple| Query::of(triple, Direction::Forward)).collect();
    // What a propagator says of each query: scores, paths, and the score without the first fact of the best one.
    let outcome = |propagator: &Propagator| {
        let one = |&(query, target): &(Query, EntityId)| {
            let scores = propagator.scores(&[query]).unwrap();
            let paths = propagator.paths(query, target, 3, None).unwrap();
            let first = paths[0].hops[0];
            let gone = [(query.subject, first.link, first.entity)];
            let without = propagator.score_without(query, target, &gone).unwrap();
            let hops: Vec<_> = paths.into_iter().map(|path| path.hops).collect();
            (scores.into_iter().map(f32::to_bits).collect::<Vec<_>>(), hops, without.to_bits())
        };
        asked.iter().map(one).collect::<Vec<_>>()
    };
    let all = outcome(&made.propagator);
    let with_all = mrr(&made.propagator);
    let propagator = made.propagator.with_frontier(FrontierBound::Most(size.0)).unwrap();
    assert_eq!(outcome(&propagator), all, "a frontier of all entities leaves nothing out");
    let few = propagator.with_frontier(FrontierBound::Most(6)).unwrap();
    let [messages, updates] = few.work(asked[0].0).unwrap().unwrap();
    let most = 2 * few.settings.layers;
    assert!(messages <= most * 6 * 3 && updates <= most * 3 * 6, "{messages} messages, {updates} updates");
    assert!(mrr(&few) > with_all - 0.05, "{} and {with_all}", mrr(&few));
    let touched = few.touched(asked[0].0).unwrap().unwrap();
    assert!(touched.is_sorted() && touched.contains(&asked[0].0.subject) && touched.len() < size.0);
    let again = few.with_frontier(FrontierBound::All).unwrap();
    assert_eq!(outcome(&again), all);
    assert!(again.touched(asked[0].0).unwrap().is_none());
}

#[test]
fn a_frontier_is_all_or_a_number() {
    let of = |text: &str| serde_json::from_str::<PropagateSettings>(&format!(r#"{{"frontier": {text}}}"#));
    for (text, frontier) in
        [("\"all\"", FrontierBound::All), ("0", FrontierBound::All), ("7", FrontierBound::Most(7))]
    {
        let settings = of(text).unwrap();
        assert_eq!(settings.frontier, frontier);
        let written = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<PropagateSettings>(&written).unwrap(), settings);
    }
    for text in ["\"some\"", "-3", "1.5"] {
        let error = of(text).unwrap_err().to_string();
        assert!(error.contains("`all` or a whole number"), "{error}");
    }
    let bounded = PropagateSettings { frontier: FrontierBound::Most(7), ..PropagateSettings::default() };
    bounded.check().unwrap();
    for wrong in [
        PropagateSettings { prior: true, ..bounded.clone() },
        PropagateSettings { aggregate: MessageAggregate::Gated, ..bounded.clone() },
    ] {
        assert!(wrong.check().unwrap_err().to_string().contains("`frontier`: expected `all` with"));
    }
}

#[test]
fn gated_sums_learn_the_rule_too() {
    let device = Device::cpu(2).unwrap();
    let gated = PropagateSettings { aggregate: MessageAggregate::Gated, epochs: 12, ..settings() };
    let (made, ..) = trained(&device, &gated, 24);
    let valid = made.valid.unwrap();
    assert!(valid.mrr > 0.8, "{valid:?}");
}

#[test]
fn several_networks_are_averaged_and_give_one_reason() {
    let device = Device::cpu(2).unwrap();
    let three = PropagateSettings { networks: 3, epochs: 4, ..settings() };
    let (made, known, _) = trained(&device, &three, 24);
    let (query, target) = Query::of(known.valid[0], Direction::Forward);
    let networks = &made.propagator.networks;
    let asks = [ReachQuery { start: query.subject.0, without: None }];
    let area = networks.area(&made.propagator.edge_index, &asks).unwrap();
    let links = Indices::new(&device, &[examples::kind_of(query.link)]).unwrap();
    let each = networks
        .iter()
        .map(|network| network.answers(&networks.parameters, &links, &area).unwrap().0.to_vec().unwrap());
    let each: Vec<Vec<f32>> = each.collect();
    assert!(each[0] != each[1] && each[1] != each[2], "they start from different weights");
    for (entity, score) in made.propagator.scores(&[query]).unwrap().into_iter().enumerate() {
        let mean = each.iter().map(|scores| scores[entity]).sum::<f32>() / 3.0;
        assert!((score - mean).abs() < 1e-4 * (1.0 + mean.abs()), "{score}, not {mean}");
    }
    let paths = made.propagator.paths(query, target, 1, None).unwrap();
    let links: Vec<Link> = paths[0].hops.iter().map(|hop| hop.link).collect();
    assert_eq!(links, [Link::forward(RelationId(PARENT)); 2]);
    // The networks of a bounded frontier look at different edges.
    let bounded =
        PropagateSettings { frontier: FrontierBound::Most(4), networks: 2, epochs: 2, ..settings() };
    let (made, ..) = trained(&device, &bounded, 24);
    assert!(!made.propagator.paths(query, target, 1, None).unwrap().is_empty());
}

#[test]
fn a_prior_tells_entities_apart_that_nothing_reaches() {
    let device = Device::cpu(2).unwrap();
    let query = Query { subject: EntityId(3), link: Link::forward(RelationId(GRAND)) };
    for prior in [false, true] {
        let (made, known, size) = trained(&device, &PropagateSettings { prior, ..settings() }, 24);
        assert!(made.valid.unwrap().mrr > 0.9, "{prior}");
        let scores = made.propagator.scores(&[query]).unwrap();
        let asks = [ReachQuery { start: query.subject.0, without: None }];
        let reach = Reach::new(&made.propagator.edge_index, &asks, 3).unwrap();
        let reached = reach.reached().unwrap();
        let unreached: Vec<usize> = (0..size.0).filter(|&entity| !reached[entity]).collect();
        let answered = |entity: usize| {
            let of = |fact: &&Triple| fact.relation.0 == GRAND && fact.tail.index() == entity;
            known.facts.iter().filter(of).count()
        };
        let never = unreached.iter().find(|&&entity| answered(entity) == 0).unwrap();
        let often = unreached.iter().find(|&&entity| answered(entity) > 1).unwrap();
        assert_eq!(scores[*often] > scores[*never], prior);
        assert_eq!(unreached.iter().all(|&entity| scores[entity] == scores[*never]), !prior);
    }
}

#[test]
fn weights_serve_another_graph_and_come_back_from_a_file() {
    let device = Device::cpu(2).unwrap();
    let (made, ..) = trained(&device, &PropagateSettings { networks: 2, prior: true, ..settings() }, 24);
    let (other, size) = families(9);
    let graph = Graph::new(size.0, size.1, &other.facts);
    let mut names = crate::graph::Names::default();
    ["parent", "grand", "noise"].into_iter().for_each(|name| {
        names.relations.intern(name);
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("propagator.safetensors");
    made.propagator.save(&path, &names).unwrap();
    let there = made.propagator.on(&graph).unwrap();
    let answers = Adjacency::new(size.0, &[&other.facts, &other.valid]);
    let truth = Truth { graph: &graph, answers: &answers };
    let protocol = Protocol { side: Side::Both, ..Protocol::default() };
    let found = evaluate(&there, &other.valid, truth, protocol, &Silent).unwrap();
    assert!(found.mrr() > 0.9, "{}", found.mrr());

    let query = Query { subject: EntityId(3), link: Link::forward(RelationId(GRAND)) };
    let before = there.scores(&[query]).unwrap();
    let loaded = Propagator::load(&path, &names, &graph, &device).unwrap();
    assert_eq!(loaded.scores(&[query]).unwrap(), before);
    // The same relations in another order: the weights follow their names.
    let mut turned = crate::graph::Names::default();
    ["noise", "parent", "grand"].into_iter().for_each(|name| {
        turned.relations.intern(name);
    });
    let renamed: Vec<Triple> = other
        .facts
        .iter()
        .map(|fact| Triple { relation: RelationId((fact.relation.0 + 1) % 3), ..*fact })
        .collect();
    let other_graph = Graph::new(size.0, size.1, &renamed);
    let loaded = Propagator::load(&path, &turned, &other_graph, &device).unwrap();
    let query = Query { subject: EntityId(3), link: Link::forward(RelationId(2)) };
    let after = loaded.scores(&[query]).unwrap();
    for (before, after) in before.iter().zip(&after) {
        assert!((before - after).abs() < 1e-4 * (1.0 + before.abs()), "{before} and {after}");
    }
    turned.relations.intern("unheard of");
    let bigger = Graph::new(size.0, 4, &renamed);
    let error = Propagator::load(&path, &turned, &bigger, &device).err().unwrap().to_string();
    assert!(error.contains("unheard of") && error.contains("propagator.safetensors"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_bits_on_one_thread_and_on_two() {
    let few =
        PropagateSettings { epochs: 1, epoch_queries: 64, validation_queries: 4, dropout: 0.1, ..settings() };
    let scores = |threads: usize, weights: RelationWeights, frontier: FrontierBound| {
        let device = Device::cpu(threads).unwrap();
        let prior = frontier == FrontierBound::All;
        let (made, ..) = trained(&device, &PropagateSettings { weights, frontier, prior, ..few.clone() }, 12);
        let query = Query { subject: EntityId(3), link: Link::forward(RelationId(GRAND)) };
        let Answers::Dense { scores, .. } = made.propagator.answer(&[query]).unwrap() else { unreachable!() };
        scores.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    for weights in [RelationWeights::Query, RelationWeights::Plain] {
        for frontier in [FrontierBound::All, FrontierBound::Most(5)] {
            assert_eq!(scores(1, weights, frontier), scores(2, weights, frontier));
        }
    }
}

#[test]
fn answers_do_not_depend_on_the_other_queries() {
    let device = Device::cpu(1).unwrap();
    let (known, size) = families(6);
    let graph = Graph::new(size.0, size.1, &known.facts);
    let propagator = Propagator::new(&settings(), &graph, &device, 1).unwrap();
    let queries: Vec<Query> = (0..5)
        .map(|number| Query { subject: EntityId(number * 3), link: Link::forward(RelationId(number % 3)) })
        .collect();
    let together = propagator.scores(&queries).unwrap();
    for (row, query) in queries.iter().enumerate() {
        let alone = propagator.scores(&[*query]).unwrap();
        for (left, right) in alone.iter().zip(&together[row * size.0..]) {
            assert!((left - right).abs() < 1e-4 * (1.0 + left.abs()), "{left} and {right}");
        }
    }
}

#[test]
fn the_share_of_linked_pairs_decides_what_is_hidden() {
    let (known, size) = families(3);
    let graph = Graph::new(size.0, size.1, &known.facts);
    assert_eq!(linked_share(&graph, &known.valid), Some(0.0));
    assert_eq!(linked_share(&graph, &known.facts), Some(1.0));
    assert_eq!(linked_share(&graph, &[]), None);
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    for (settings, name) in [
        (PropagateSettings { layers: 0, ..PropagateSettings::default() }, "layers"),
        (PropagateSettings { width: 300, ..PropagateSettings::default() }, "width"),
        (PropagateSettings { dropout: 1.0, ..PropagateSettings::default() }, "dropout"),
        (PropagateSettings { learning_rate: f64::NAN, ..PropagateSettings::default() }, "learning_rate"),
    ] {
        assert!(settings.check().unwrap_err().to_string().contains(name));
    }
    let unknown: Result<PropagateSettings, _> = serde_json::from_str(r#"{"layer": 3}"#);
    assert!(unknown.unwrap_err().to_string().contains("layer"));
    let none = Known::default();
    let device = Device::cpu(1).unwrap();
    let settings = PropagateSettings::default();
    let task = PropagateTask {
        known: &none,
        size: (3, 1),
        settings: &settings,
        seed: 1,
        device: &device,
        folder: None,
        warm: None,
        initial: None,
    };
    assert!(matches!(train(task, &Silent), Err(NetworkError::NoFacts)));
}
