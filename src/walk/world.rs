//! The environment: the actions available in a state.
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
use crate::tensor::{Device, Draft};
use rayon::prelude::*;

/// One query, and in training the answer that its walks should find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The subject and the link asked for.
    pub query: Query,
    /// The answer to aim at; none at inference.
    pub target: Option<EntityId>,
}

/// The graph as the walker sees it.
pub struct World {
    actions: Actions,
    answers: Adjacency,
    links: usize,
    close_answers: bool,
    /// By link: whether the last hop may not end in the subject.
    close_subject: Vec<bool>,
    /// The device that the lists are sent to.
    device: Device,
}

/// The open actions of some states: ragged lists, concatenated.
pub(super) struct Candidates {
    /// Where each state's list starts; one more than there are states.
    pub(super) starts: Vec<u32>,
    /// The link of every action; within a list, actions of one link are adjacent.
    pub(super) links: Draft,
    /// The entity that every action leads to.
    pub(super) targets: Draft,
}

/// States per task when open actions are counted.
const CHUNK: usize = 64;
/// Actions per task when they are listed.
const PART: usize = 8192;
/// Up to this many actions, one thread is faster than several.
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
            device: Device::cpu(1).expect("one thread is always there"),
        }
    }

    /// The same world, with its lists sent to `device`.
    pub(super) fn near(self, device: &Device) -> Self {
        Self { device: device.clone(), ..self }
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

    /// The open actions of every state of `layer`. While training, a walk can still stay in a state whose
    /// actions are all closed, because it needs an action; at inference its list is empty and the path ends.
    pub(super) fn candidates(&self, asks: &[Ask], layer: &Layer, last: bool) -> Candidates {
        let offers = Offers { world: self, asks, layer };
        let actions: usize =
            layer.entities.iter().map(|&entity| self.actions.of(EntityId(entity)).len()).sum();
        let mut starts = vec![0u32; layer.states() + 1];
        let ends = &mut starts[1..];
        if actions < FEW {
            offers.count(0, ends, &mut ClosedEnds::new(self, last));
        } else {
            ends.par_chunks_mut(CHUNK).enumerate().for_each_init(
                || ClosedEnds::new(self, last),
                |closed, (chunk, ends)| offers.count(chunk * CHUNK, ends, closed),
            );
        }
        let mut total = 0;
        for end in ends {
            total += *end;
            *end = total;
        }
        let total = total as usize;
        let (mut links, mut targets) = (Draft::new(&self.device, total), Draft::new(&self.device, total));
        let lists = (links.values_mut(), targets.values_mut());
        if actions < FEW {
            offers.list(0, &starts, lists, &mut ClosedEnds::new(self, last));
        } else {
            parts(&starts, lists).into_par_iter().for_each_init(
                || ClosedEnds::new(self, last),
                |closed, (first, starts, lists)| offers.list(first, starts, lists, closed),
            );
        }
        Candidates { starts, links, targets }
    }
}

/// Links and targets of some states' lists.
type Lists<'a> = (&'a mut [u32], &'a mut [u32]);

/// Cuts lists into parts of about the same size: the first state of each, its starts and its lists.
fn parts<'a>(starts: &'a [u32], (mut links, mut targets): Lists<'a>) -> Vec<(usize, &'a [u32], Lists<'a>)> {
    let (mut parts, mut first) = (Vec::new(), 0);
    let states = starts.len() - 1;
    while first < states {
        let size = |end: usize| (starts[end] - starts[first]) as usize;
        let end = (first + 1..states).find(|&end| size(end) >= PART).unwrap_or(states);
        let (own_links, rest_links) = links.split_at_mut(size(end));
        let (own_targets, rest_targets) = targets.split_at_mut(size(end));
        parts.push((first, &starts[first..=end], (own_links, own_targets)));
        (links, targets, first) = (rest_links, rest_targets, end);
    }
    parts
}

/// The actions of the states of a layer.
#[derive(Clone, Copy)]
struct Offers<'a> {
    world: &'a World,
    asks: &'a [Ask],
    layer: &'a Layer,
}

impl<'a> Offers<'a> {
    /// All actions of a state, and those edges that its own query closes.
    fn of(&self, state: usize, closed: &mut ClosedEnds) -> (&'a [Edge], Option<[Edge; 2]>, &'a Ask) {
        let (entity, item) = (EntityId(self.layer.entities[state]), self.layer.items[state]);
        let ask = &self.asks[item as usize];
        closed.hold(self.world, item, ask);
        let forbidden = ask.target.and_then(|target| forbidden_edges(entity, ask.query, target));
        (self.world.actions.of(entity), forbidden, ask)
    }

    /// Counts the actions that will be listed for the states from `first` on.
    fn count(&self, first: usize, counts: &mut [u32], closed: &mut ClosedEnds) {
        for (state, count) in (first..).zip(counts) {
            let (actions, forbidden, ask) = self.of(state, closed);
            let open = match forbidden {
                None if closed.marked.is_empty() => actions.len(),
                None => actions.iter().filter(|action| !closed.has(action.target)).count(),
                _ => actions.iter().filter(|action| is_open(action, forbidden, closed)).count(),
            };
            *count = if open == 0 && ask.target.is_some() { 1 } else { open as u32 };
        }
        closed.release();
    }

    /// Lists the actions of the states from `first` on, whose lists start where `starts` says.
    fn list(&self, first: usize, starts: &[u32], (links, targets): Lists, closed: &mut ClosedEnds) {
        let mut place = 0;
        for (state, bounds) in (first..).zip(starts.windows(2)) {
            let (actions, forbidden, _) = self.of(state, closed);
            let end = place + (bounds[1] - bounds[0]) as usize;
            let mut put = |place: usize, action: &Edge| {
                links[place] = action.link.0;
                targets[place] = action.target.0;
            };
            if end - place == actions.len() {
                (place..end).zip(actions).for_each(|(place, action)| put(place, action));
            } else if place < end {
                // A masked action is written too and overwritten by the next one, which avoids a branch.
                let mut next = place;
                for action in actions {
                    if next == end {
                        break;
                    }
                    put(next, action);
                    next += usize::from(is_open(action, forbidden, closed));
                }
                // Where nothing is open, a training walk stays.
                if next == place {
                    put(place, &actions[0]);
                }
            }
            place = end;
        }
        closed.release();
    }
}

fn is_open(action: &Edge, forbidden: Option<[Edge; 2]>, closed: &ClosedEnds) -> bool {
    !closed.has(action.target) && forbidden.is_none_or(|edges| !edges.contains(action))
}

/// The edges of `entity` that are the query's own: the edge itself, its inverse, or both if the fact links an
/// entity with itself.
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
    /// How many actions there are in all lists.
    pub(super) fn total(&self) -> usize {
        self.links.len()
    }

    /// The places of state `state`'s list.
    pub(super) fn list(&self, state: u32) -> std::ops::Range<usize> {
        self.starts[state as usize] as usize..self.starts[state as usize + 1] as usize
    }
}

/// The entities that the last hop for one query may not end in, as a mask by entity, since every candidate is
/// looked up. On other hops nothing is marked.
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
