//! The environment: what a walker may do where it stands.
//!
//! An entity's actions are those of [`graph::Actions`](crate::graph::Actions) less what is *closed*:
//! - while training on `(s, q, o)`: the edge `(s, q, o)` and its inverse `(o, q⁻¹, s)`, on every hop;
//! - on the last hop, in training and at inference: every action that ends in another known training answer
//!   of `(s, q, ?)`, so that the walker aims at this `o` (at inference such answers are filtered anyway);
//! - on the last hop as well: every action that ends in `s` itself, unless the query's relation is known to link
//!   some entity with itself. Paths that return to where they began, such as `parent⁻¹, parent` for siblings,
//!   follow a rule to an answer that no fact supports.
//!
//! Invariant: the answers that are closed come from facts and training queries alone. A [`World`] is built from
//! [`Known`], which holds no test split, and it never reads the validation split in there.

use super::config::WalkConfig;
use super::layer::Layer;
use crate::graph::{Actions, Adjacency, Edge, EntityId, Graph, Known, Link, Query, pagerank};
use rayon::prelude::*;

/// One query that walks set out for, and in training the answer they should find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What is asked.
    pub query: Query,
    /// The answer to aim at; none at inference.
    pub target: Option<EntityId>,
}

/// The graph as the walker meets it.
pub struct World {
    actions: Actions,
    answers: Adjacency,
    links: usize,
    close_answers: bool,
    /// By link: whether the last hop may not end in the subject.
    close_subject: Vec<bool>,
}

/// The open actions of some states, one ragged list after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidates {
    /// Where each state's list starts; one more than there are states.
    pub(super) starts: Vec<u32>,
    /// The link of every action; within a list, actions of one link stand together.
    pub(super) links: Vec<u32>,
    /// The entity that every action leads to.
    pub(super) targets: Vec<u32>,
}

/// States that one task works on.
const CHUNK: usize = 64;
/// So many actions are listed faster by one thread than handed to several.
const FEW: usize = 100_000;

impl World {
    /// The world of `graph`, in which the answers of `known`'s facts and training queries are the known ones.
    pub fn new(graph: &Graph, known: &Known, config: &WalkConfig) -> Self {
        let rank = pagerank(graph.adjacency());
        let mut close_subject = vec![config.close_subject; graph.links()];
        for fact in known.facts.iter().chain(known.queries.iter()).filter(|fact| fact.head == fact.tail) {
            close_subject[Link::forward(fact.relation).index()] = false;
            close_subject[Link::inverse_of(fact.relation).index()] = false;
        }
        Self {
            actions: Actions::new(graph.adjacency(), &rank, config.bandwidth),
            answers: Adjacency::new(graph.entities(), &[&known.facts, &known.queries]),
            links: graph.links(),
            close_answers: config.close_answers,
            close_subject,
        }
    }

    /// How many entities there are.
    pub fn entities(&self) -> usize {
        self.actions.entities()
    }

    /// How many links there are, reserved ones included.
    pub fn links(&self) -> usize {
        self.links
    }

    /// Whether the last hop of a walk for `ask` may not end in `entity`.
    pub(super) fn is_closed_end(&self, ask: &Ask, entity: EntityId) -> bool {
        let Query { subject, link } = ask.query;
        ask.target != Some(entity)
            && (entity == subject && self.close_subject[link.index()]
                || self.close_answers && self.answers.contains(subject, link, entity))
    }

    /// The open actions of every state of `layer`. While training, a state of which everything is closed can
    /// still stay where it is, for a walk has to go on; at inference its list is empty and the path ends.
    pub(super) fn candidates(&self, asks: &[Ask], layer: &Layer, last: bool) -> Candidates {
        let actions: usize =
            layer.entities.iter().map(|&entity| self.actions.of(EntityId(entity)).len()).sum();
        if actions < FEW {
            let mut closed = ClosedEnds::new(self, last);
            return Candidates::joined(&[self.part(asks, &layer.entities, &layer.items, &mut closed)]);
        }
        let parts: Vec<Candidates> = layer
            .entities
            .par_chunks(CHUNK)
            .zip(layer.items.par_chunks(CHUNK))
            .map_init(
                || ClosedEnds::new(self, last),
                |closed, (entities, items)| self.part(asks, entities, items, closed),
            )
            .collect();
        Candidates::joined(&parts)
    }

    /// The lists of some states.
    fn part(&self, asks: &[Ask], entities: &[u32], items: &[u32], closed: &mut ClosedEnds) -> Candidates {
        let mut part = Candidates::default();
        for (&entity, &item) in entities.iter().zip(items) {
            closed.hold(self, item, &asks[item as usize]);
            self.add_list(&mut part, EntityId(entity), &asks[item as usize], closed);
        }
        closed.release();
        part
    }

    fn add_list(&self, part: &mut Candidates, entity: EntityId, ask: &Ask, closed: &ClosedEnds) {
        let actions = self.actions.of(entity);
        let before = part.links.len();
        let forbidden = ask.target.and_then(|target| forbidden_edges(entity, ask.query, target));
        let open = |action: &&Edge| {
            !closed.has(action.target) && forbidden.is_none_or(|edges| !edges.contains(action))
        };
        part.links.reserve(actions.len());
        part.targets.reserve(actions.len());
        for action in actions.iter().filter(open) {
            part.links.push(action.link.0);
            part.targets.push(action.target.0);
        }
        if part.links.len() == before && ask.target.is_some() {
            part.links.push(actions[0].link.0);
            part.targets.push(actions[0].target.0);
        }
        part.starts.push(part.links.len() as u32);
    }
}

/// The edges of `entity` that are the query's own: the edge itself, its inverse, or for a fact that links an
/// entity with itself both.
fn forbidden_edges(entity: EntityId, query: Query, target: EntityId) -> Option<[Edge; 2]> {
    let asked = Edge { link: query.link, target };
    let inverse = Edge { link: query.link.reversed(), target: query.subject };
    match (entity == query.subject, entity == target) {
        (true, true) => Some([asked, inverse]),
        (true, false) => Some([asked, asked]),
        (false, true) => Some([inverse, inverse]),
        (false, false) => None,
    }
}

impl Candidates {
    fn joined(parts: &[Candidates]) -> Self {
        let total = parts.iter().map(|part| part.links.len()).sum();
        let mut all = Candidates {
            starts: Vec::with_capacity(parts.iter().map(|part| part.starts.len()).sum::<usize>() + 1),
            links: Vec::with_capacity(total),
            targets: Vec::with_capacity(total),
        };
        all.starts.push(0);
        for part in parts {
            let base = all.links.len() as u32;
            all.starts.extend(part.starts.iter().map(|end| base + end));
            all.links.extend_from_slice(&part.links);
            all.targets.extend_from_slice(&part.targets);
        }
        all
    }

    /// How many actions there are in all lists.
    pub(super) fn total(&self) -> usize {
        self.links.len()
    }

    /// The places of state `state`'s list.
    pub(super) fn list(&self, state: u32) -> std::ops::Range<usize> {
        self.starts[state as usize] as usize..self.starts[state as usize + 1] as usize
    }
}

/// The entities that the last hop for one query may not end in, as marks by entity: asked for every candidate.
/// On other hops nothing is marked.
struct ClosedEnds {
    marks: Vec<bool>,
    marked: Vec<EntityId>,
    item: Option<u32>,
}

impl ClosedEnds {
    fn new(world: &World, last: bool) -> Self {
        let marks = if last { vec![false; world.entities()] } else { Vec::new() };
        Self { marks, marked: Vec::new(), item: None }
    }

    /// Holds the closed ends of `ask`, which is query `item` of the batch.
    fn hold(&mut self, world: &World, item: u32, ask: &Ask) {
        if self.marks.is_empty() || self.item == Some(item) {
            return;
        }
        self.release();
        self.item = Some(item);
        let Query { subject, link } = ask.query;
        if world.close_answers {
            self.marked.extend(world.answers.targets(subject, link));
        }
        if world.close_subject[link.index()] {
            self.marked.push(subject);
        }
        self.marked.retain(|&end| Some(end) != ask.target);
        self.marked.iter().for_each(|end| self.marks[end.index()] = true);
    }

    fn release(&mut self) {
        self.marked.drain(..).for_each(|end| self.marks[end.index()] = false);
        self.item = None;
    }

    fn has(&self, entity: EntityId) -> bool {
        self.marks.get(entity.index()).is_some_and(|&mark| mark)
    }
}
