//! Weights over a graph: answers to queries.

use super::UniversalError;
use super::network::{AskedLinks, Relations};
use super::relations::{RelationGraph, kind_of};
use super::weights::Universal;
use crate::eval::{Answers, Reasoner, ReasonerError};
use crate::graph::{Edge, EntityId, Graph, Link, Query};
use crate::propagate::{
    FrontierBound, MessageEdge, MessagePath, PathNetwork, Rows, add_edges, best_paths, picking,
};
use crate::settings::expect;
use crate::tensor::{Device, Download, EdgeIndex, Gradients, ReachQuery, Tape, Tensor};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Queries that are answered at once on a CPU, and on a card.
const BATCH: usize = 16;
const CUDA_BATCH: usize = 64;
/// About the most rows of a batch, and of vectors of links: these bound the memory on large graphs.
const ROWS: usize = 1 << 22;
const LINK_ROWS: usize = 1 << 18;
/// The most numbers in the weights of the links of a batch.
const LINK_WEIGHTS: usize = 1 << 26;
/// The most numbers in the vectors of links that are remembered.
const REMEMBERED: usize = 1 << 24;
/// The most relations of a graph whose propagator starts from universal weights: its weights grow with their number.
const STARTED_RELATIONS: usize = 2000;
/// The most multiplications of a layer that are done in full precision on a card; see the propagator.
const EXACT: usize = 1 << 31;

/// The weights of a [`Universal`] over a graph. Answers queries about the graph's entities.
pub struct UniversalReasoner {
    universal: Arc<Universal>,
    edge_index: EdgeIndex,
    relations: Relations,
    frontier: FrontierBound,
    /// Vectors of links by the links that were asked for, most recently used last: they do not depend on subjects.
    remembered: Mutex<Vec<(Vec<u32>, Tensor)>>,
}

impl UniversalReasoner {
    /// `universal` over `graph`.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(universal: Arc<Universal>, graph: &Graph) -> Result<Self, UniversalError> {
        let device = universal.device();
        let relations = Relations::new(device, &RelationGraph::new(graph))?;
        let edge_index = edge_index(device, graph, |_, _| true)?;
        Ok(UniversalReasoner::of(universal, edge_index, relations))
    }

    /// `universal` over a graph that is on its device already.
    pub(super) fn of(universal: Arc<Universal>, edge_index: EdgeIndex, relations: Relations) -> Self {
        let (frontier, remembered) = (FrontierBound::All, Mutex::new(Vec::new()));
        UniversalReasoner { universal, edge_index, relations, frontier, remembered }
    }

    /// The same with a frontier. With a number, entities out of reach have no states.
    #[must_use]
    pub fn with_frontier(self, frontier: FrontierBound) -> Self {
        UniversalReasoner { frontier, ..self }
    }

    /// The weights.
    pub fn universal(&self) -> &Arc<Universal> {
        &self.universal
    }

    /// The edges it runs on.
    pub fn edge_index(&self) -> &EdgeIndex {
        &self.edge_index
    }

    /// The scores of all entities for each of `queries`, row after row, on the host. While the device computes a
    /// batch, the host prepares the next.
    ///
    /// # Errors
    /// If the device fails.
    pub fn scores(&self, queries: &[Query]) -> Result<Vec<f32>, UniversalError> {
        let entities = self.edge_index.nodes();
        let mut scores = vec![0.0; queries.len() * entities];
        let mut places = scores.as_mut_slice();
        let mut before: Option<(Download, &mut [f32])> = None;
        for queries in self.batches(queries) {
            let place = places.split_off_mut(..queries.len() * entities).expect("a place for every score");
            let next = self.batch_scores(queries)?.0.download()?;
            if let Some((scores, place)) = before.replace((next, place)) {
                scores.read_into(place)?;
            }
        }
        if let Some((scores, place)) = before {
            scores.read_into(place)?;
        }
        Ok(scores)
    }

    /// `queries` in batches that suit the device, the size of the graph and its relations.
    fn batches<'a>(&self, queries: &'a [Query]) -> impl Iterator<Item = &'a [Query]> {
        let links = self.edge_index.kinds().max(1);
        let most = if self.universal.device().is_cuda() { CUDA_BATCH } else { BATCH };
        let weights = LINK_WEIGHTS / (links * self.universal.settings.width);
        let most = most.min(ROWS / self.edge_index.nodes().max(1)).min(weights).max(1);
        let most_links = (LINK_ROWS / links).max(1);
        let mut rest = queries;
        std::iter::from_fn(move || {
            let mut distinct = Vec::new();
            let fits = |query: &&Query| {
                if !distinct.contains(&query.link) {
                    distinct.push(query.link);
                }
                distinct.len() <= most_links
            };
            let size = rest.iter().take(most).take_while(fits).count();
            let batch = rest.split_off(..size)?;
            (!batch.is_empty()).then_some(batch)
        })
    }

    /// The scores of one query over `edge_index`, in which some facts may be missing.
    fn scores_over(&self, query: Query, edge_index: &EdgeIndex) -> Result<Vec<f32>, UniversalError> {
        let Universal { network, parameters, .. } = &*self.universal;
        let asked = AskedLinks::new(&[kind_of(query.link)]);
        let states = self.link_states(&asked.distinct)?;
        let asks = [ReachQuery { start: query.subject.0, without: None }];
        let area = network.area(edge_index, &asks, self.frontier)?;
        let (scores, _) = network.answers(parameters, (states, &asked), &area, true)?;
        Ok(scores.to_vec()?)
    }

    /// The layers of edges that carry messages, with the gradient of the answer's score.
    fn traced(&self, query: Query, answer: EntityId) -> Result<Vec<Vec<MessageEdge>>, UniversalError> {
        let Universal { network, parameters, .. } = &*self.universal;
        let asks = [ReachQuery { start: query.subject.0, without: None }];
        let (mut rows, trace) = network.area(&self.edge_index, &asks, self.frontier)?.traced()?;
        let share = picking(parameters.device(), self.edge_index.nodes(), answer.index(), 1.0)?;
        let asked = AskedLinks::new(&[kind_of(query.link)]);
        let states = self.link_states(&asked.distinct)?;
        let mut tape = Tape::training(parameters, 0);
        let scores = network.traced_scores(&mut tape, parameters, (states, &asked), &mut rows)?;
        let score = tape.weighted_sum(scores, &share)?;
        tape.backward(score, &mut Gradients::new(parameters))?;
        let mut layers = Vec::new();
        add_edges(&mut layers, &rows, &trace.by_layer()?);
        Ok(layers)
    }

    /// How many messages a query sends and how many rows it updates in all layers; `None` if nothing is bounded.
    ///
    /// # Errors
    /// If the device fails.
    pub fn work(&self, query: Query) -> Result<Option<[usize; 2]>, UniversalError> {
        Ok(self.batch_scores(&[query])?.1.work())
    }

    fn batch_scores(&self, queries: &[Query]) -> Result<(Tensor, Rows), UniversalError> {
        let Universal { network, parameters, .. } = &*self.universal;
        let links: Vec<u32> = queries.iter().map(|query| kind_of(query.link)).collect();
        let asked = AskedLinks::new(&links);
        let states = self.link_states(&asked.distinct)?;
        let asks: Vec<ReachQuery> =
            queries.iter().map(|query| ReachQuery { start: query.subject.0, without: None }).collect();
        let area = network.area(&self.edge_index, &asks, self.frontier)?;
        let width = network.width();
        let exact = CUDA_BATCH * self.edge_index.nodes() * 12 * width * width <= EXACT;
        network.answers(parameters, (states, &asked), &area, exact)
    }

    /// The vectors of all links given each of the `asked` ones, computed once as long as they are remembered.
    fn link_states(&self, asked: &[u32]) -> Result<Tensor, UniversalError> {
        const NO_PANIC: &str = "no code panics while it holds the vectors";
        let mut remembered = self.remembered.lock().expect(NO_PANIC);
        if let Some(at) = remembered.iter().position(|(links, _)| links == asked) {
            let found = remembered.remove(at);
            remembered.push(found);
            return Ok(remembered[remembered.len() - 1].1.clone());
        }
        drop(remembered);
        let Universal { network, parameters, .. } = &*self.universal;
        let states = network.link_vectors(parameters, &self.relations, asked)?;
        let mut remembered = self.remembered.lock().expect(NO_PANIC);
        remembered.push((asked.to_vec(), states.clone()));
        let size = |state: &Tensor| state.rows() * state.columns();
        while remembered.iter().map(|(_, state)| size(state)).sum::<usize>() > REMEMBERED {
            remembered.remove(0);
        }
        Ok(states)
    }
}

impl Universal {
    /// The initial weights of a propagator over `graph` that answers nearly as these weights do, by the names of its
    /// parameters. It has their width, layers and hidden width, and weights of links from the query.
    ///
    /// # Errors
    /// If the graph has too many relations for that, or the device fails.
    pub fn propagator_start(&self, graph: &Graph) -> Result<BTreeMap<String, Vec<f32>>, UniversalError> {
        let most = STARTED_RELATIONS;
        expect(
            graph.relations() <= most,
            "propagate.start",
            &format!("`random` with more than {most} relations"),
            "universal",
        )?;
        let relations = Relations::new(self.device(), &RelationGraph::new(graph))?;
        self.network.as_propagator(&self.parameters, &relations)
    }
}

/// The edges of `graph` that `keep` accepts, on a device; it must accept an edge in both directions or in neither.
pub(super) fn edge_index(
    device: &Device,
    graph: &Graph,
    keep: impl Fn(EntityId, &Edge) -> bool,
) -> Result<EdgeIndex, UniversalError> {
    let (mut starts, mut links, mut others) = (vec![0], Vec::new(), Vec::new());
    for entity in (0..graph.entities() as u32).map(EntityId) {
        for edge in graph.edges(entity).iter().filter(|edge| keep(entity, edge)) {
            links.push(kind_of(edge.link));
            others.push(edge.target.0);
        }
        starts.push(links.len() as u32);
    }
    Ok(EdgeIndex::new(device, 2 * graph.relations(), starts, links, others)?.compared_among_linked()?)
}

impl PathNetwork for UniversalReasoner {
    fn reaches(&self) -> Option<usize> {
        (self.frontier == FrontierBound::All).then(|| self.universal.network.depth())
    }

    fn touched(&self, query: Query) -> Result<Option<Vec<EntityId>>, ReasonerError> {
        if self.frontier == FrontierBound::All {
            return Ok(None);
        }
        let (_, rows) = self.batch_scores(&[query])?;
        let mut touched = rows.touched().unwrap_or_default().to_vec();
        touched.sort_unstable();
        Ok(Some(touched.into_iter().map(EntityId).collect()))
    }

    fn paths(&self, query: Query, answer: EntityId, count: usize) -> Result<Vec<MessagePath>, ReasonerError> {
        let layers = self.traced(query, answer)?;
        Ok(best_paths(&layers, (query.subject, answer), count))
    }

    fn score_without(
        &self,
        query: Query,
        answer: EntityId,
        facts: &[(EntityId, Link, EntityId)],
    ) -> Result<f32, ReasonerError> {
        let gone: Vec<(u32, u32, u32)> =
            facts.iter().map(|&(from, link, to)| (from.0, kind_of(link), to.0)).collect();
        Ok(self.scores_over(query, &self.edge_index.hiding(&gone)?)?[answer.index()])
    }
}

impl Reasoner for UniversalReasoner {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        Ok(Answers::Dense { scores: self.scores(queries)?, entities: self.edge_index.nodes() })
    }

    fn batch(&self) -> usize {
        (4 * ROWS / self.edge_index.nodes().max(1)).clamp(1, 2 * CUDA_BATCH)
    }
}
