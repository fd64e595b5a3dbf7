//! Open actions, compared with a scan of every edge.

use super::slow::open;
use super::{Small, asks, plain, small};
use crate::graph::{Edge, EntityId, Graph, Known, Link, Query, Triple};
use crate::walk::layer::{Layer, Move};
use crate::walk::world::{Ask, World};
use crate::walk::{Agents, WalkConfig};
use proptest::prelude::*;

/// Walks every path of `hops` hops and compares the lists on the way.
fn check(small: &Small, world: &World, asks: &[Ask], hops: usize) {
    let (mut layer, mut stands) = Layer::first(asks);
    let mut paths: Vec<(usize, Vec<Edge>)> = (0..asks.len()).map(|item| (item, Vec::new())).collect();
    for hop in 0..hops {
        let last = hop + 1 == hops;
        let candidates = world.candidates(asks, &layer, last);
        let (mut moves, mut longer) = (Vec::new(), Vec::new());
        for (stand, (item, path)) in stands.iter().zip(&paths) {
            let list = candidates.list(stand.state);
            let ours: Vec<Edge> = list
                .map(|at| Edge { link: Link(candidates.links[at]), target: EntityId(candidates.targets[at]) })
                .collect();
            assert_eq!(ours, open(small, &asks[*item], path, last), "{:?} after {path:?}", asks[*item]);
            for edge in ours {
                moves.push(Move { from: *stand, link: edge.link.0, target: edge.target.0 });
                longer.push((*item, [path.as_slice(), &[edge]].concat()));
            }
        }
        (layer, stands) = layer.after(Agents::Two, asks, &moves);
        paths = longer;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn open_actions_are_those_of_a_look_at_every_edge(seed in 0u64..1000, entities in 1u32..6, facts in 0usize..14) {
        let small = small(entities, facts, seed);
        let world = World::new(&small.graph, &small.known, &plain(Agents::Two));
        let training = asks(&small.known.queries);
        check(&small, &world, &training, 3);
        let asked: Vec<Ask> = training.iter().map(|ask| Ask { target: None, ..*ask }).collect();
        check(&small, &world, &asked, 2);
        let heads: Vec<Ask> = small
            .known
            .queries
            .iter()
            .map(|&triple| Query::of(triple, crate::graph::Direction::Inverse))
            .map(|(query, target)| Ask { query, target: Some(target) })
            .collect();
        check(&small, &world, &heads, 2);
    }
}

#[test]
fn other_answers_are_closed_on_the_last_hop_only_and_only_if_the_settings_say_so() {
    let facts = [Triple::new(0, 0, 1), Triple::new(0, 0, 2), Triple::new(0, 1, 2)];
    let known = Known { facts: facts.into(), queries: facts.into(), valid: [].into(), ..Known::default() };
    let graph = Graph::new(3, 2, &facts);
    let targets = |config: &WalkConfig, last| {
        let world = World::new(&graph, &known, config);
        let asks = asks(&facts[..1]);
        let candidates = world.candidates(&asks, &Layer::first(&asks).0, last);
        candidates.targets.iter().copied().zip(candidates.links.iter().copied()).collect::<Vec<_>>()
    };
    let (first, second) =
        (Link::forward(crate::graph::RelationId(0)).0, Link::forward(crate::graph::RelationId(1)).0);
    let stay = (0, Link::NO_OP.0);
    let config = plain(Agents::Two);
    assert_eq!(targets(&config, false), [stay, (2, first), (2, second)]);
    assert_eq!(targets(&config, true), [stay], "2 is another answer of (0, r0, ?), by whatever link");
    assert_eq!(targets(&config.minerva(), true), [stay, (2, first), (2, second)]);
}

#[test]
fn many_states_are_offered_what_each_is_offered_alone() {
    let small = small(60, 3000, 7);
    let world = World::new(&small.graph, &small.known, &plain(Agents::Two));
    let asks = asks(&small.known.queries);
    let (first, stands) = Layer::first(&asks);
    let places = stands.iter().flat_map(|&from| (0..60).map(move |target| Move { from, link: 3, target }));
    let (layer, _) = first.after(Agents::Two, &asks, &places.collect::<Vec<_>>());
    for last in [false, true] {
        let all = world.candidates(&asks, &layer, last);
        assert!(all.total() > 200_000, "so many are listed by several threads");
        for state in (0..layer.states()).step_by(97) {
            let alone = Layer {
                items: vec![layer.items[state]],
                entities: vec![layer.entities[state]],
                ..Layer::default()
            };
            let alone = world.candidates(&asks, &alone, last);
            let list = all.list(state as u32);
            assert_eq!(all.links[list.clone()], alone.links[..], "state {state}");
            assert_eq!(all.targets[list], alone.targets[..], "state {state}");
        }
    }
}

#[test]
fn validation_answers_are_never_closed() {
    let facts = [Triple::new(0, 0, 1), Triple::new(0, 1, 2)];
    let known = Known {
        facts: facts.into(),
        queries: facts.into(),
        valid: [Triple::new(0, 0, 2)].into(),
        ..Known::default()
    };
    let graph = Graph::new(3, 2, &facts);
    let world = World::new(&graph, &known, &plain(Agents::Two));
    let asks = [Ask { target: None, ..asks(&facts)[0] }];
    let candidates = world.candidates(&asks, &Layer::first(&asks).0, true);
    assert_eq!(
        candidates.targets[..],
        [0, 2],
        "2 is a validation answer and stays open; 1 is a training answer"
    );
}

#[test]
fn a_walk_may_not_end_in_its_subject_unless_the_relation_links_something_with_itself() {
    // r0 is reflexive somewhere, r1 nowhere.
    let facts = [Triple::new(0, 0, 1), Triple::new(2, 0, 2), Triple::new(0, 1, 1)];
    let known = Known { facts: facts.into(), queries: facts.into(), valid: [].into(), ..Known::default() };
    let graph = Graph::new(3, 2, &facts);
    let config = WalkConfig { close_subject: true, close_answers: false, ..plain(Agents::Two) };
    let world = World::new(&graph, &known, &config);
    let may_stay = |triple: Triple, last| {
        let asks = asks(&[triple]);
        world.candidates(&asks, &Layer::first(&asks).0, last).links.contains(&Link::NO_OP.0)
    };
    assert!(may_stay(facts[0], true), "r0 may return");
    assert!(!may_stay(facts[2], true), "r1 may not");
    assert!(may_stay(facts[2], false), "before the last hop everybody may");
    assert!(may_stay(Triple::new(0, 1, 0), true), "the target itself is never closed");
}
