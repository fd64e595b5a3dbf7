//! The paths behind an answer: how much, to first order, the score depends on each edge in each layer.
//!
//! Every message has a weight of one; the gradient of the answer's score with respect to that weight says how much the
//! edge matters in its layer. A beam search over the layers collects the best paths from the subject to the answer;
//! staying at an entity for a layer is allowed and does not count as a hop. No path visits an entity twice: a detour that
//! comes back explains nothing. A path's weight is the mean gradient of its hops.

use super::examples::{kind_of, link_of};
use super::rows::{Rows, picking};
use super::settings::FrontierBound;
use super::{NetworkError, Propagator};
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{EntityId, Link, Query};
use crate::tensor::{Gradients, Indices, ReachQuery, Tape, Without};
use std::collections::HashMap;

/// Paths kept per entity from one layer to the next.
const BEAM: usize = 8;

/// Values by entity, hashed fast: every edge is looked up.
type ByEntity<T> = HashMap<u32, T, foldhash::fast::FixedState>;

/// One hop: along `link` to `entity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathHop {
    /// The link of the hop.
    pub link: Link,
    /// Where it leads.
    pub entity: EntityId,
}

/// A path from a query's subject to an answer, every hop a fact of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePath {
    /// The hops in order, at least one.
    pub hops: Vec<PathHop>,
    /// The mean gradient of the answer's score along the hops; higher is more important.
    pub weight: f64,
}

/// A network that answers by messages along paths, and can say along which.
pub trait PathNetwork: Reasoner + Send {
    /// How many edges the longest of these paths has, if there is one to every entity within that many edges.
    fn reaches(&self) -> Option<usize>;

    /// The entities that there is a path to, ascending, if a bounded frontier decides it.
    ///
    /// # Errors
    /// If the device fails.
    fn touched(&self, query: Query) -> Result<Option<Vec<EntityId>>, ReasonerError>;

    /// The `count` most important paths from the query's subject to `answer`, the best first.
    ///
    /// # Errors
    /// If the device fails.
    fn paths(&self, query: Query, answer: EntityId, count: usize) -> Result<Vec<MessagePath>, ReasonerError>;

    /// The score of `answer` when some facts, each (entity, link, entity), are taken out of the graph.
    ///
    /// # Errors
    /// If the device fails.
    fn score_without(
        &self,
        query: Query,
        answer: EntityId,
        facts: &[(EntityId, Link, EntityId)],
    ) -> Result<f32, ReasonerError>;
}

impl PathNetwork for Propagator {
    fn reaches(&self) -> Option<usize> {
        // A bounded frontier leaves edges out.
        (self.settings.frontier == FrontierBound::All).then_some(self.settings.layers)
    }

    fn touched(&self, query: Query) -> Result<Option<Vec<EntityId>>, ReasonerError> {
        Ok(self.touched(query)?)
    }

    fn paths(&self, query: Query, answer: EntityId, count: usize) -> Result<Vec<MessagePath>, ReasonerError> {
        Ok(self.paths(query, answer, count, None)?)
    }

    fn score_without(
        &self,
        query: Query,
        answer: EntityId,
        facts: &[(EntityId, Link, EntityId)],
    ) -> Result<f32, ReasonerError> {
        Ok(self.score_without(query, answer, facts)?)
    }
}

/// A partial path; `before` is the index of its predecessor, which several paths may share.
#[derive(Clone, Copy)]
struct Partial {
    sum: f32,
    hops: u32,
    before: u32,
    hop: Option<PathHop>,
}

/// An edge that carries a message in some layer, and how much the score depends on it.
#[derive(Clone, Copy)]
pub(crate) struct MessageEdge {
    from: u32,
    kind: u32,
    to: u32,
    slope: f32,
}

impl Partial {
    fn mean(&self) -> f32 {
        self.sum / self.hops.max(1) as f32
    }
}

impl Propagator {
    /// The `count` most important paths from the query's subject to `answer`, the best first. With `without`, some links
    /// between the subject and an entity are taken out of the graph, as in training.
    ///
    /// # Errors
    /// If the device fails.
    pub fn paths(
        &self,
        query: Query,
        answer: EntityId,
        count: usize,
        without: Option<(EntityId, Option<Link>)>,
    ) -> Result<Vec<MessagePath>, NetworkError> {
        let device = self.networks.parameters.device();
        let without = without.map(|(entity, link)| Without { node: entity.0, kind: link.map(kind_of) });
        let asks = [ReachQuery { start: query.subject.0, without }];
        let links = Indices::new(device, &[kind_of(query.link)])?;
        // What is traced is the mean score of the answer.
        let share = (self.settings.networks as f32).recip();
        let share = picking(device, self.edge_index.nodes(), answer.index(), share)?;
        let mut layers = Vec::new();
        for network in self.networks.iter() {
            let (mut rows, trace) = network.area(&self.edge_index, &asks)?.traced()?;
            let mut tape = Tape::training(&self.networks.parameters, 0);
            let scores = network.scores(&mut tape, &links, &mut rows)?;
            let score = tape.weighted_sum(scores, &share)?;
            tape.backward(score, &mut Gradients::new(&self.networks.parameters))?;
            add_edges(&mut layers, &rows, &trace.by_layer()?);
        }
        Ok(best_paths(&layers, (query.subject, answer), count))
    }
}

/// The `count` best paths between two entities, by a beam search over the layers.
pub(crate) fn best_paths(
    layers: &[Vec<MessageEdge>],
    (subject, answer): (EntityId, EntityId),
    count: usize,
) -> Vec<MessagePath> {
    let mut all = vec![Partial { sum: 0.0, hops: 0, before: u32::MAX, hop: None }];
    let ends = (subject, answer);
    // Of the entities that were reached, the best paths so far.
    let mut beams: ByEntity<Vec<u32>> = ByEntity::from_iter([(subject.0, vec![0])]);
    for edges in layers {
        let mut next: ByEntity<Vec<Partial>> = ByEntity::default();
        for &MessageEdge { from, kind, to, slope } in edges {
            let hop = Some(PathHop { link: link_of(kind), entity: EntityId(to) });
            let Some(from_beam) = beams.get(&from) else { continue };
            let beam = next.entry(to).or_default();
            for &before in from_beam {
                let so_far = all[before as usize];
                let ended = so_far.hops > 0 && from == answer.0;
                let partial = Partial { sum: so_far.sum + slope, hops: so_far.hops + 1, before, hop };
                let place = place_in(beam, &partial);
                if place < BEAM && !ended && !visits(&all, before, EntityId(to), ends) {
                    beam.insert(place, partial);
                    beam.truncate(BEAM);
                }
            }
        }
        // By entity, since ties are decided by who came first.
        let mut next: Vec<(u32, Vec<Partial>)> = next.into_iter().collect();
        next.sort_unstable_by_key(|(to, _)| *to);
        for (to, found) in next {
            let beam = beams.entry(to).or_default();
            let mut merged: Vec<(f32, u32)> =
                beam.iter().map(|&place| (all[place as usize].mean(), place)).collect();
            for partial in found {
                merged.push((partial.mean(), all.len() as u32));
                all.push(partial);
            }
            merged.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
            merged.truncate(2 * BEAM);
            *beam = merged.into_iter().map(|(_, place)| place).collect();
        }
    }
    let mut paths: Vec<MessagePath> = Vec::new();
    for &place in beams.get(&answer.0).into_iter().flatten() {
        let weight = f64::from(all[place as usize].mean());
        let hops = hops(&all, place);
        if !hops.is_empty() && !paths.iter().any(|path| path.hops == hops) {
            paths.push(MessagePath { hops, weight });
        }
    }
    paths.truncate(count);
    paths
}

/// Adds what the score of one network depends on to what those before it depend on. Their edges are the same unless
/// the frontier is bounded.
pub(crate) fn add_edges(layers: &mut Vec<Vec<MessageEdge>>, rows: &Rows, slopes: &[Vec<f32>]) {
    let first = layers.is_empty();
    layers.resize(slopes.len(), Vec::new());
    for (layer, (edges, slopes)) in layers.iter_mut().zip(slopes).enumerate() {
        rows.each_message(layer, slopes, |from, kind, to, slope| {
            edges.push(MessageEdge { from, kind, to, slope })
        });
        if !first {
            edges.sort_by_key(|edge| (edge.from, edge.kind, edge.to));
            edges.dedup_by(|edge, kept| {
                let same = (edge.from, edge.kind, edge.to) == (kept.from, kept.kind, kept.to);
                kept.slope += if same { edge.slope } else { 0.0 };
                same
            });
        }
    }
}

/// The place of a path in a beam, best first.
fn place_in(beam: &[Partial], partial: &Partial) -> usize {
    beam.partition_point(|other| other.mean() >= partial.mean())
}

/// Whether a partial path has been at `entity`. The subject may be the answer; then its path comes back.
fn visits(
    all: &[Partial],
    mut place: u32,
    entity: EntityId,
    (subject, answer): (EntityId, EntityId),
) -> bool {
    while let Some(hop) = all[place as usize].hop {
        if hop.entity == entity {
            return true;
        }
        place = all[place as usize].before;
    }
    entity == subject && subject != answer
}

/// The hops that led to a partial path.
fn hops(all: &[Partial], mut place: u32) -> Vec<PathHop> {
    let mut hops = Vec::new();
    while let Some(hop) = all[place as usize].hop {
        hops.push(hop);
        place = all[place as usize].before;
    }
    hops.reverse();
    hops
}
