//! Training queries: every fact in both directions, shuffled by the seed, with the edges that are hidden from each.

use super::settings::{PropagateSettings, Removal};
use crate::graph::{Adjacency, Direction, EntityId, Graph, Known, Link, Query, Triple};
use crate::tensor::{Device, EdgeIndex, Indices, ReachQuery, Result, Without};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

/// Below this share of linked pairs, validation pairs count as (almost) never linked.
const ALMOST_NEVER: f64 = 0.01;

/// The share of the pairs of `valid` that `graph` links by some relation, in either direction; `None` without pairs.
pub fn linked_share(graph: &Graph, valid: &[Triple]) -> Option<f64> {
    let linked = |triple: &&Triple| graph.edges(triple.head).iter().any(|edge| edge.target == triple.tail);
    (!valid.is_empty()).then(|| valid.iter().filter(linked).count() as f64 / valid.len() as f64)
}

/// The number of a link among the kinds of an edge index.
pub(super) fn kind_of(link: Link) -> u32 {
    link.0 - Link::RESERVED as u32
}

/// The link behind a kind of an edge index.
pub(super) fn link_of(kind: u32) -> Link {
    Link(kind + Link::RESERVED as u32)
}

/// The edges of `graph` on a device.
pub(super) fn edge_index(device: &Device, graph: &Graph) -> Result<EdgeIndex> {
    let adjacency = graph.adjacency();
    let (mut starts, mut links, mut others) = (vec![0], Vec::new(), Vec::new());
    for entity in (0..graph.entities() as u32).map(EntityId) {
        for edge in adjacency.edges(entity) {
            links.push(kind_of(edge.link));
            others.push(edge.target.0);
        }
        starts.push(links.len() as u32);
    }
    EdgeIndex::new(device, 2 * graph.relations(), starts, links, others)
}

fn shuffle(list: &mut [u32], random: &mut ChaCha8Rng) {
    for last in (1..list.len()).rev() {
        list.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// The facts to ask for, and the edges to hide meanwhile.
pub(super) struct Examples {
    facts: Vec<Triple>,
    /// Every answer that training knows.
    answers: Adjacency,
    entities: usize,
    all_links: bool,
    /// Rounds per pass: the facts of a round are taken out of the graph together. 0 if only the fact asked for is
    /// taken out.
    rounds: usize,
    seed: u64,
}

/// Queries of one step.
pub(super) struct Batch {
    pub(super) asks: Vec<ReachQuery>,
    /// The kinds of the links that are asked for.
    pub(super) links: Indices,
    pub(super) targets: Indices,
    /// Other answers of the queries, as places in `[queries, entities]`.
    pub(super) closed: Indices,
}

impl Examples {
    pub(super) fn new(graph: &Graph, known: &Known, settings: &PropagateSettings, seed: u64) -> Examples {
        let all_links = match settings.removal {
            Removal::Auto => linked_share(graph, &known.valid).is_some_and(|share| share < ALMOST_NEVER),
            Removal::Fact => false,
            Removal::Pair => true,
        };
        let answers = Adjacency::new(graph.entities(), &[&known.facts, &known.queries]);
        let facts = known.queries.to_vec();
        let held_out = (settings.hold_out * facts.len() as f64).ceil() as usize;
        let rounds = match held_out.min(settings.hold_out_most) {
            0 => 0,
            most => facts.len().div_ceil(most),
        };
        Examples { facts, answers, entities: graph.entities(), all_links, rounds, seed }
    }

    /// The number of examples: every fact in both directions.
    pub(super) fn len(&self) -> usize {
        2 * self.facts.len()
    }

    /// Whether every link between subject and answer is hidden, not only the fact.
    pub(super) fn hides_all_links(&self) -> bool {
        self.all_links
    }

    /// All examples in the order of pass `pass` over them. Those of a round are adjacent.
    pub(super) fn shuffled(&self, pass: u64) -> Vec<u32> {
        let mut random = self.random(pass);
        if self.rounds == 0 {
            let mut order: Vec<u32> = (0..self.len() as u32).collect();
            shuffle(&mut order, &mut random);
            return order;
        }
        let facts = self.shuffled_facts(&mut random);
        let both = |fact: &u32| [2 * fact, 2 * fact + 1];
        let mut order = Vec::with_capacity(self.len());
        for round in 0..self.rounds {
            let mut part: Vec<u32> = facts[self.facts_of(round)].iter().flat_map(both).collect();
            shuffle(&mut part, &mut random);
            order.append(&mut part);
        }
        order
    }

    /// The round to which the example at `place` of a pass belongs; `None` if nothing is held out.
    pub(super) fn round_of(&self, place: usize) -> Option<usize> {
        (self.rounds > 0).then(|| {
            let ends = (0..self.rounds).map(|round| 2 * self.facts_of(round).end);
            ends.take_while(|&end| end <= place).count()
        })
    }

    /// The edges that are missing in a round of a pass, each (node, kind, other node).
    pub(super) fn held_out(&self, pass: u64, round: usize) -> Vec<(u32, u32, u32)> {
        let facts = self.shuffled_facts(&mut self.random(pass));
        let edge = |&fact: &u32| {
            let Triple { head, relation, tail } = self.facts[fact as usize];
            (head.0, kind_of(Link::forward(relation)), tail.0)
        };
        facts[self.facts_of(round)].iter().map(edge).collect()
    }

    fn random(&self, pass: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(pass);
        random
    }

    fn shuffled_facts(&self, random: &mut ChaCha8Rng) -> Vec<u32> {
        let mut facts: Vec<u32> = (0..self.facts.len() as u32).collect();
        shuffle(&mut facts, random);
        facts
    }

    /// The range of a round's facts among the shuffled ones.
    fn facts_of(&self, round: usize) -> Range<usize> {
        let first = |round: usize| round * self.facts.len() / self.rounds;
        first(round)..first(round + 1)
    }

    /// The query and the answer of an example.
    fn asked(&self, number: u32) -> (Query, EntityId) {
        let direction = if number.is_multiple_of(2) { Direction::Forward } else { Direction::Inverse };
        Query::of(self.facts[number as usize / 2], direction)
    }

    /// The subjects that examples start from, and the edges hidden from them.
    pub(super) fn asks(&self, numbers: &[u32]) -> Vec<ReachQuery> {
        let ask = |&number: &u32| {
            let (query, target) = self.asked(number);
            let kind = (!self.all_links).then(|| kind_of(query.link));
            ReachQuery { start: query.subject.0, without: Some(Without { node: target.0, kind }) }
        };
        numbers.iter().map(ask).collect()
    }

    pub(super) fn batch(&self, device: &Device, numbers: &[u32]) -> Result<Batch> {
        let (mut links, mut targets, mut closed) = (Vec::new(), Vec::new(), Vec::new());
        for (row, &number) in numbers.iter().enumerate() {
            let (query, target) = self.asked(number);
            links.push(kind_of(query.link));
            targets.push(target.0);
            let others = self.answers.targets(query.subject, query.link).filter(|other| *other != target);
            closed.extend(others.map(|other| (row * self.entities) as u32 + other.0));
        }
        Ok(Batch {
            asks: self.asks(numbers),
            links: Indices::new(device, &links)?,
            targets: Indices::new(device, &targets)?,
            closed: Indices::new(device, &closed)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_round_are_missing_while_they_are_asked_for() {
        let facts: crate::graph::Array<Triple> =
            (0..103).map(|at| Triple::new(at, at % 3, (at + 1) % 103)).collect();
        let known =
            Known { facts: facts.clone(), queries: facts.clone(), valid: [].into(), ..Known::default() };
        let graph = Graph::new(103, 3, &facts);
        for (hold_out, hold_out_most, rounds) in [(0.1, 3000, 10), (0.1, 5, 21), (0.0, 3000, 0)] {
            let settings = PropagateSettings { hold_out, hold_out_most, ..PropagateSettings::default() };
            let examples = Examples::new(&graph, &known, &settings, 7);
            assert_eq!(examples.rounds, rounds);
            let order = examples.shuffled(4);
            assert_ne!(order, examples.shuffled(5));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..206), "every example once");
            for (place, &number) in order.iter().enumerate() {
                let Some(round) = examples.round_of(place) else { continue };
                let Triple { head, relation, tail } = facts[number as usize / 2];
                let edge = (head.0, kind_of(Link::forward(relation)), tail.0);
                assert!(examples.held_out(4, round).contains(&edge));
            }
            let all: usize = (0..rounds).map(|round| examples.held_out(4, round).len()).sum();
            assert_eq!(all, if rounds == 0 { 0 } else { 103 });
        }
    }
}
