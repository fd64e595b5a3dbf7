//! A bounded frontier: the rows of a batch of queries when only the most promising ones pass messages on.
//!
//! [`Reach`](super::Reach) follows every edge of every row, so its cost grows with the graph. A [`Frontier`] follows the
//! question instead. It grows layer by layer, and in each, for each query,
//!
//! - the rows with the highest priorities pass on (`passing`);
//! - a row with many edges passes along the best of them, and all rows together along a limited number. An edge is as good
//!   as the priority of the node that it leads to, or, if nothing has reached that node yet, of the row that passes;
//! - the nodes that messages arrive at, again a limited number, are the *receivers*. Only they are updated; a node that
//!   was not reached before gets a row. Where the query starts is always among them.
//!
//! Priorities are given from outside: the caller's score of the rows. Ties are decided by fixed numbers. What a layer
//! does is written down as a [`FrontierStep`]: lists of messages by receiver, and for the backward pass by sender and by
//! kind. Nothing is as long as the graph, except one table of nodes for each query, which is cleaned entry by entry and
//! used again.
//!
//! With a bound of at least as many rows as there are nodes, nothing is left out, and messages, their order and the way
//! they are added up are those of [`Reach`](super::Reach).

mod expansion;
mod step;

use std::sync::Arc;

use rayon::prelude::*;

use super::{Missing, NONE, ReachQuery, ScoredRows, Trace, expect_starts};
use crate::edge_index::EdgeIndex;
use crate::error::{Result, TensorError};
use crate::value::Indices;
use expansion::Expansion;
pub use step::FrontierStep;
use step::StepItem;

/// The maximum number of rows of a stretch that a backward pass adds up by itself.
const RUN: usize = 512;

/// How far a layer goes for one query.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Rows that pass messages on, and rows that are updated.
    passing: usize,
    receivers: usize,
    /// Messages, and those of one row.
    messages: usize,
    of_one: usize,
}

impl Bounds {
    /// Receivers for each row that passes on: an update costs as much as some hundred messages.
    const RECEIVERS: usize = 3;
    /// The part of all messages that one row may send.
    const PART: usize = 64;
    /// The fewest messages that a row may always send.
    const LEAST: usize = 64;

    /// For `most` rows that pass on. Messages are as many as so many rows of mean degree have.
    fn new(edge_index: &EdgeIndex, most: usize) -> Bounds {
        if most >= edge_index.nodes() {
            let all = usize::MAX;
            return Bounds { passing: all, receivers: all, messages: all, of_one: all };
        }
        let degree = edge_index.edges().div_ceil(edge_index.nodes().max(1));
        let messages = most.max(1) * degree.max(1);
        Bounds {
            passing: most.max(1),
            receivers: Self::RECEIVERS * most.max(1),
            messages,
            of_one: (messages / Self::PART).max(Self::LEAST),
        }
    }

    fn are_none(self) -> bool {
        self.passing == usize::MAX
    }
}

/// What messages of one query have reached.
struct Touched {
    /// The place of every node in the lists below; `NONE` for a node that is not reached.
    places: Vec<u32>,
    nodes: Vec<u32>,
    rows: Vec<u32>,
    priorities: Vec<f32>,
}

/// The rows of a batch of queries that grow layer by layer. See the module.
pub struct Frontier {
    edge_index: EdgeIndex,
    asks: Vec<ReachQuery>,
    bounds: Bounds,
    touched: Vec<Touched>,
    row_nodes: Vec<u32>,
    row_queries: Vec<u32>,
    row_degrees: Vec<u32>,
    /// Which rows the last layer updated, as (query, place among those it has touched).
    updated: Vec<(u32, u32)>,
    steps: Vec<Arc<FrontierStep>>,
    trace: Option<Arc<Trace>>,
}

impl Frontier {
    /// The starts of `asks`. In every layer at most `most` rows of a query pass messages on.
    ///
    /// # Errors
    /// If a query does not start at a node of the edge index, or the device is not the CPU.
    pub fn new(edge_index: &EdgeIndex, asks: &[ReachQuery], most: usize) -> Result<Frontier> {
        expect_starts(edge_index, asks)?;
        if edge_index.0.device.is_cuda() {
            let why =
                "a bounded frontier runs on the CPU alone; choose the CPU, or a frontier of all".to_owned();
            return Err(TensorError::Parameter { name: "frontier".to_owned(), why });
        }
        let touched = (0..).zip(asks).map(|(row, ask)| {
            let mut places = edge_index.0.spare_places();
            places[ask.start as usize] = 0;
            Touched { places, nodes: vec![ask.start], rows: vec![row], priorities: vec![0.0] }
        });
        let mut frontier = Frontier {
            edge_index: edge_index.clone(),
            asks: asks.to_vec(),
            bounds: Bounds::new(edge_index, most),
            touched: touched.collect(),
            row_nodes: Vec::new(),
            row_queries: Vec::new(),
            row_degrees: Vec::new(),
            updated: Vec::new(),
            steps: Vec::new(),
            trace: None,
        };
        (0..asks.len()).for_each(|query| frontier.add_row(query, asks[query].start));
        Ok(frontier)
    }

    /// Whether priorities decide anything.
    pub fn is_bounded(&self) -> bool {
        !self.bounds.are_none()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.row_nodes.len()
    }

    /// The nodes that a query has reached, in no particular order; the first is its start.
    pub fn touched(&self, query: usize) -> &[u32] {
        &self.touched[query].nodes
    }

    /// How many messages all layers so far have sent.
    pub fn messages(&self) -> usize {
        self.steps.iter().map(|step| step.messages()).sum()
    }

    /// How many rows all layers so far have updated.
    pub fn updates(&self) -> usize {
        self.steps.iter().map(|step| step.updates()).sum()
    }

    /// From now on, the backward pass of a tape that propagates over these rows stores the derivative of every message.
    pub fn trace(&mut self) -> Arc<Trace> {
        self.trace.get_or_insert_default().clone()
    }

    /// Adds a layer. `priorities` are those of the rows that the previous layer updated, in their order; for the first
    /// layer, or if nothing is bounded, there need be none.
    ///
    /// # Errors
    /// If there are too many messages for a list.
    pub fn grow(&mut self, priorities: &[f32]) -> Result<Arc<FrontierStep>> {
        for (&(query, place), &priority) in self.updated.iter().zip(priorities) {
            self.touched[query as usize].priorities[place as usize] = priority;
        }
        let (edge_index, bounds) = (&self.edge_index, self.bounds);
        let expand = |(touched, ask): (&mut Touched, &ReachQuery)| {
            Expansion::new(&edge_index.0, Missing::new(edge_index, ask), touched, bounds)
        };
        let expansions: Vec<Expansion> = self.touched.par_iter_mut().zip(&self.asks).map(expand).collect();
        let before = self.rows();
        for (query, expansion) in expansions.iter().enumerate() {
            for &node in &expansion.new {
                let row = self.rows() as u32;
                let touched = &mut self.touched[query];
                touched.nodes.push(node);
                touched.rows.push(row);
                touched.priorities.push(0.0);
                self.add_row(query, node);
            }
        }
        let step = FrontierStep::new(self, before, &expansions)?;
        self.updated = step.order.clone();
        let step = Arc::new(step);
        self.steps.push(step.clone());
        Ok(step)
    }

    fn add_row(&mut self, query: usize, node: u32) {
        let edges = &*self.edge_index.0;
        let missing = Missing::new(&self.edge_index, &self.asks[query]);
        let range = edges.edges_of(node as usize);
        let gone = |edge: &usize| missing.misses(node, edges.links.host[*edge], edges.others.host[*edge]);
        let gone = if missing.concerns(node) { range.clone().filter(gone).count() } else { 0 };
        self.row_nodes.push(node);
        self.row_queries.push(query as u32);
        // An edge whose other end is silent counts as a message of zero, as with every reach.
        self.row_degrees.push((range.len() - gone + 1) as u32);
    }

    /// All rows, to be scored.
    ///
    /// # Errors
    /// If the device fails.
    pub fn scored_rows(&self) -> Result<ScoredRows> {
        let device = &self.edge_index.0.device;
        let (mut runs, mut row) = (Vec::new(), 0);
        for same in self.row_queries.chunk_by(|one, next| one == next) {
            runs.extend((row..row + same.len()).step_by(RUN).map(|row| row as u32));
            row += same.len();
        }
        runs.extend((row..=row + self.asks.len()).map(|row| row as u32));
        Ok(ScoredRows {
            queries: self.asks.len(),
            nodes: self.edge_index.nodes(),
            row_nodes: Indices::new(device, &self.row_nodes)?,
            row_queries: Indices::new(device, &self.row_queries)?,
            runs: Indices::new(device, &runs)?,
            places: None,
        })
    }

    /// Visits the messages of layer `layer + 1` with their derivatives: the node they leave, their kind, the node they
    /// enter.
    pub fn each_message(&self, layer: usize, derivatives: &[f32], mut visit: impl FnMut(u32, u32, u32, f32)) {
        let step = &self.steps[layer];
        for (index, &receiver) in step.receivers().iter().enumerate() {
            let to = self.row_nodes[receiver as usize];
            for at in step.messages_of(index) {
                let sender = step.senders[at];
                visit(self.row_nodes[sender.row as usize], sender.kind, to, derivatives[at]);
            }
        }
    }
}

impl Drop for Frontier {
    fn drop(&mut self) {
        for touched in &mut self.touched {
            let mut places = std::mem::take(&mut touched.places);
            touched.nodes.iter().for_each(|&node| places[node as usize] = NONE);
            self.edge_index.0.give_places(places);
        }
    }
}
