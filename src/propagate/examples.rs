//! Training queries: every fact in both directions, in an order that the seed gives, with what is hidden from each.

use super::settings::Removal;
use crate::graph::{Adjacency, Direction, EntityId, Graph, Known, Link, Query, Triple};
use crate::tensor::{Ask, Device, Indices, Mesh, Result, Without};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Validation pairs that are linked in the graph count as (almost) never linked below this share.
const ALMOST_NEVER: f64 = 0.01;

/// The share of the pairs of `valid` that `graph` links by some relation, in either direction; `None` without pairs.
pub fn linked_share(graph: &Graph, valid: &[Triple]) -> Option<f64> {
    let linked = |triple: &&Triple| graph.edges(triple.head).iter().any(|edge| edge.target == triple.tail);
    (!valid.is_empty()).then(|| valid.iter().filter(linked).count() as f64 / valid.len() as f64)
}

/// The number of a link among the kinds of a mesh.
pub(super) fn kind_of(link: Link) -> u32 {
    link.0 - Link::RESERVED as u32
}

/// The link behind a kind of a mesh.
pub(super) fn link_of(kind: u32) -> Link {
    Link(kind + Link::RESERVED as u32)
}

/// The edges of `graph` on a device.
pub(super) fn mesh(device: &Device, graph: &Graph) -> Result<Mesh> {
    let adjacency = graph.adjacency();
    let (mut starts, mut links, mut others) = (vec![0], Vec::new(), Vec::new());
    for entity in (0..graph.entities() as u32).map(EntityId) {
        for edge in adjacency.edges(entity) {
            links.push(kind_of(edge.link));
            others.push(edge.target.0);
        }
        starts.push(links.len() as u32);
    }
    Mesh::new(device, 2 * graph.relations(), starts, links, others)
}

/// The facts to be asked for, and what must not be seen meanwhile.
pub(super) struct Examples {
    facts: Vec<Triple>,
    /// Every answer that training knows.
    answers: Adjacency,
    entities: usize,
    all_links: bool,
    seed: u64,
}

/// Queries of one step.
pub(super) struct Batch {
    pub(super) asks: Vec<Ask>,
    /// The kinds of the links that are asked for.
    pub(super) links: Indices,
    pub(super) targets: Indices,
    /// Other answers of the queries, as places in `[queries, entities]`.
    pub(super) closed: Indices,
}

impl Examples {
    pub(super) fn new(graph: &Graph, known: &Known, removal: Removal, seed: u64) -> Examples {
        let all_links = match removal {
            Removal::Auto => linked_share(graph, &known.valid).is_some_and(|share| share < ALMOST_NEVER),
            Removal::Fact => false,
            Removal::Pair => true,
        };
        let answers = Adjacency::new(graph.entities(), &[&known.facts, &known.queries]);
        Examples { facts: known.queries.to_vec(), answers, entities: graph.entities(), all_links, seed }
    }

    /// How many there are: every fact in both directions.
    pub(super) fn len(&self) -> usize {
        2 * self.facts.len()
    }

    /// Whether every link between subject and answer is hidden, not only the fact.
    pub(super) fn hides_all_links(&self) -> bool {
        self.all_links
    }

    /// All examples in the order of pass `pass` over them.
    pub(super) fn shuffled(&self, pass: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(pass);
        for last in (1..order.len()).rev() {
            order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        order
    }

    /// The query and the answer of an example.
    fn asked(&self, number: u32) -> (Query, EntityId) {
        let direction = if number.is_multiple_of(2) { Direction::Forward } else { Direction::Inverse };
        Query::of(self.facts[number as usize / 2], direction)
    }

    /// Where examples start, and what is hidden from them.
    pub(super) fn asks(&self, numbers: &[u32]) -> Vec<Ask> {
        let ask = |&number: &u32| {
            let (query, target) = self.asked(number);
            let kind = (!self.all_links).then(|| kind_of(query.link));
            Ask { start: query.subject.0, without: Some(Without { node: target.0, kind }) }
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
