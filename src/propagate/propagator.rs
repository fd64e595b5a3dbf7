//! A propagator over a graph: weights and the edges they are used on.

use super::NetworkError;
use super::examples::{edge_index, kind_of};
use super::network::CUDA_BATCH;
use super::networks::Networks;
use super::rows::{Area, Rows};
use super::settings::{FrontierBound, PropagateSettings};
use crate::eval::{Answers, Reasoner, ReasonerError};
use crate::graph::{EntityId, Graph, Link, Query};
use crate::tensor::{Device, Download, EdgeIndex, Indices, ReachQuery, Tensor};
use std::time::Instant;

/// Queries that are answered at once on a CPU. A card takes more: its host lists their rows on many threads.
const BATCH: usize = 16;
/// Queries of a call's first batch on a card, which has nothing to do while the host lists their rows. Each further batch
/// is half as large again: its rows are listed in less time than the one before it takes.
const CUDA_FIRST: usize = 16;
/// Queries of one call, the same on every device. With more, the scores of WN18RR would not fit into the blocks that the
/// allocator reuses.
const CALL: usize = 2 * CUDA_BATCH;
/// About the most rows per batch; bounds the memory on large graphs.
const ROWS: usize = 1 << 22;

/// A trained network, or several, on a graph. Answers queries about the graph's entities.
pub struct Propagator {
    pub(super) settings: PropagateSettings,
    pub(super) networks: Networks,
    pub(super) edge_index: EdgeIndex,
}

impl Propagator {
    /// A network with initial weights over `graph`.
    ///
    /// # Errors
    /// If the settings are wrong or the device fails.
    pub fn new(
        settings: &PropagateSettings,
        graph: &Graph,
        device: &Device,
        seed: u64,
    ) -> Result<Self, NetworkError> {
        let networks = Networks::new(settings, graph.relations(), device, seed)?;
        Propagator::of(settings.clone(), networks, graph)
    }

    /// A network over `graph`.
    pub(super) fn of(
        settings: PropagateSettings,
        networks: Networks,
        graph: &Graph,
    ) -> Result<Self, NetworkError> {
        let edge_index = edge_index(networks.parameters.device(), graph)?;
        Ok(Propagator { settings, networks, edge_index })
    }

    /// The same weights over another graph with the same relations.
    ///
    /// # Errors
    /// If the other graph has another number of relations, or the device fails.
    pub fn on(self, graph: &Graph) -> Result<Self, NetworkError> {
        if self.edge_index.kinds() != 2 * graph.relations() {
            let (ours, theirs) = (self.edge_index.kinds() / 2, graph.relations());
            let why = format!("the network was trained for {ours} relations, the graph has {theirs}");
            return Err(NetworkError::Unsuitable { why });
        }
        let edge_index = edge_index(self.networks.parameters.device(), graph)?;
        Ok(Propagator { edge_index, ..self })
    }

    /// The same weights with another frontier.
    ///
    /// # Errors
    /// If the network cannot have it.
    pub fn with_frontier(mut self, frontier: FrontierBound) -> Result<Self, NetworkError> {
        self.settings.frontier = frontier;
        self.settings.check()?;
        self.networks.set_frontier(frontier);
        Ok(self)
    }

    /// Its settings.
    pub fn settings(&self) -> &PropagateSettings {
        &self.settings
    }

    /// The edges it runs on.
    pub fn edge_index(&self) -> &EdgeIndex {
        &self.edge_index
    }

    /// The number of parameters.
    pub fn parameters(&self) -> usize {
        self.networks.parameters.len()
    }

    /// The score of `answer` when some facts, each (entity, link, entity), are taken out of the graph. Tells whether
    /// the answer depends on them.
    ///
    /// # Errors
    /// If the device fails.
    pub fn score_without(
        &self,
        query: Query,
        answer: EntityId,
        facts: &[(EntityId, Link, EntityId)],
    ) -> Result<f32, NetworkError> {
        let gone: Vec<(u32, u32, u32)> =
            facts.iter().map(|&(from, link, to)| (from.0, kind_of(link), to.0)).collect();
        let asks = [ReachQuery { start: query.subject.0, without: None }];
        let area = self.networks.area(&self.edge_index.hiding(&gone)?, &asks)?;
        let links = Indices::new(self.networks.parameters.device(), &[kind_of(query.link)])?;
        Ok(self.networks.answers(&links, &area)?.to_vec()?[answer.index()])
    }

    /// The scores of all entities for each of `queries`, row after row, on the host. In batches: while the device
    /// computes one, the host prepares the next and puts it in line.
    ///
    /// # Errors
    /// If the device fails.
    pub fn scores(&self, queries: &[Query]) -> Result<Vec<f32>, NetworkError> {
        let entities = self.edge_index.nodes();
        let mut scores = vec![0.0; queries.len() * entities];
        let mut places = scores.as_mut_slice();
        let mut before: Option<(Download, &mut [f32])> = None;
        for queries in self.batches(queries) {
            let place = places.split_off_mut(..queries.len() * entities).expect("a place for every score");
            let area = self.networks.area(&self.edge_index, &asks(queries))?;
            let next = self.scores_over(queries, &area)?.0.download()?;
            if let Some((scores, place)) = before.replace((next, place)) {
                scores.read_into(place)?;
            }
        }
        if let Some((scores, place)) = before {
            scores.read_into(place)?;
        }
        Ok(scores)
    }

    /// `queries` in batches that suit the device and the size of the graph.
    fn batches<'a>(&self, queries: &'a [Query]) -> impl Iterator<Item = &'a [Query]> {
        let (first, most) = match self.networks.parameters.device().is_cuda() {
            true => (CUDA_FIRST, CUDA_BATCH),
            false => (BATCH, BATCH),
        };
        let most = (ROWS / self.edge_index.nodes().max(1)).clamp(1, most);
        let (mut rest, mut size) = (queries, first.min(most));
        std::iter::from_fn(move || {
            let batch = rest.split_off(..size.min(rest.len()))?;
            size = (size + size.div_ceil(2)).min(most);
            (!batch.is_empty()).then_some(batch)
        })
    }

    /// The entities that the frontier of a query touches, ascending; `None` if all pass messages on.
    ///
    /// # Errors
    /// If the device fails.
    pub fn touched(&self, query: Query) -> Result<Option<Vec<EntityId>>, NetworkError> {
        if self.settings.frontier == FrontierBound::All {
            return Ok(None);
        }
        let area = self.networks.area(&self.edge_index, &asks(&[query]))?;
        let (_, rows) = self.scores_over(&[query], &area)?;
        let mut touched: Vec<u32> =
            rows.iter().filter_map(Rows::touched).flat_map(|nodes| nodes.iter().copied()).collect();
        touched.sort_unstable();
        touched.dedup();
        Ok(Some(touched.into_iter().map(EntityId).collect()))
    }

    /// How many messages a query sends in all layers and networks, and how many rows are updated; `None` if all that is
    /// reached passes messages on.
    ///
    /// # Errors
    /// If the device fails.
    pub fn work(&self, query: Query) -> Result<Option<[usize; 2]>, NetworkError> {
        let area = self.networks.area(&self.edge_index, &asks(&[query]))?;
        let (_, rows) = self.scores_over(&[query], &area)?;
        let each = rows.iter().filter_map(Rows::work);
        Ok(each.reduce(|sum, work| [sum[0] + work[0], sum[1] + work[1]]))
    }

    fn scores_over(&self, queries: &[Query], area: &Area) -> Result<(Tensor, Vec<Rows>), NetworkError> {
        let kinds: Vec<u32> = queries.iter().map(|query| kind_of(query.link)).collect();
        let links = Indices::new(self.networks.parameters.device(), &kinds)?;
        self.networks.answers_and_rows(&links, area)
    }
}

/// Where queries start; nothing is hidden from them.
fn asks(queries: &[Query]) -> Vec<ReachQuery> {
    queries.iter().map(|query| ReachQuery { start: query.subject.0, without: None }).collect()
}

/// The name of a part of a step, and the seconds it took.
pub type StepPart = (&'static str, f64);

impl Propagator {
    /// The time of each part of a training step, synchronising with the device after each. For benches.
    ///
    /// # Errors
    /// If the device fails.
    pub fn step_parts(&self, queries: &[Query]) -> Result<Vec<StepPart>, NetworkError> {
        let device = self.networks.parameters.device();
        let asks = asks(queries);
        let kinds: Vec<u32> = queries.iter().map(|query| kind_of(query.link)).collect();
        let links = Indices::new(device, &kinds)?;
        let mut parts = Vec::new();
        for round in 0..2 {
            parts.clear();
            device.synchronise()?;
            let begun = Instant::now();
            let area = self.networks.area(&self.edge_index, &asks)?;
            parts.push(("rows, on the host", begun.elapsed().as_secs_f64()));
            device.synchronise()?;
            parts.push(("rows, with the copy", begun.elapsed().as_secs_f64()));
            self.networks.timed(&links, area.rows()?.all("the time of each part")?, round, &mut parts)?;
        }
        Ok(parts)
    }
}

impl Reasoner for Propagator {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        Ok(Answers::Dense { scores: self.scores(queries)?, entities: self.edge_index.nodes() })
    }

    fn batch(&self) -> usize {
        (4 * ROWS / self.edge_index.nodes().max(1)).clamp(1, CALL)
    }
}
