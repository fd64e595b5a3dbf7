//! Which nodes are reached from where: the rows that a batch of queries propagates over, layer by layer.
//!
//! A *row* is a pair of a query and a node that messages from the query's start have reached. Rows are numbered by
//! (steps from the start, query, node), so the rows of layer `l` are the first [`Reach::rows`]`(l)` of all, and a row
//! keeps its number in every later layer. Rows `0..queries` are the starts. Nodes that nothing reaches have no row and
//! cost nothing.
//!
//! An edge may be removed for one query alone ([`ReachQuery::without`]). Everything is computed on the host, one
//! query per task on all threads, and copied to the device asynchronously.

mod frontier;
mod kernels;
mod lists;
mod rows;
mod search;

use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::edge_index::{EdgeIndex, Edges, Hidden};
use super::error::{Result, TensorError};
use super::memory::Buffer;
use super::value::{Indices, Tensor};
pub use frontier::{Frontier, FrontierStep};
use lists::Lists;
pub use rows::{ScoredRows, UpdatedRows};
use search::{Reached, Search};

/// No row, no node, no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// One query: where it starts, and which edges are removed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachQuery {
    /// The node where messages start.
    pub start: u32,
    /// Edges between the start and another node that are removed, in both directions.
    pub without: Option<Without>,
}

/// Edges that are removed for one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Without {
    /// The other end.
    pub node: u32,
    /// The kind of the edge, seen from the start; `None` removes every edge between the two.
    pub kind: Option<u32>,
}

impl ReachQuery {
    /// Whether the edge by `link` from `node` to `other` is removed.
    pub(crate) fn misses(&self, node: u32, link: u32, other: u32) -> bool {
        let Some(Without { node: end, kind }) = self.without else { return false };
        (node == self.start && other == end && kind.is_none_or(|kind| kind == link))
            || (node == end && other == self.start && kind.is_none_or(|kind| kind ^ 1 == link))
    }

    /// Whether an edge of `node` may be removed.
    pub(crate) fn concerns(&self, node: u32) -> bool {
        self.without.is_some_and(|without| node == self.start || node == without.node)
    }
}

/// Which edges carry no messages for one query: those removed for it alone, and those hidden from all.
#[derive(Clone, Copy)]
pub(crate) struct Missing<'a> {
    ask: &'a ReachQuery,
    hidden: Option<&'a Hidden>,
}

impl<'a> Missing<'a> {
    fn new(edge_index: &'a EdgeIndex, ask: &'a ReachQuery) -> Self {
        Missing { ask, hidden: edge_index.1.as_deref() }
    }

    /// Whether the edge by `link` from `node` to `other` is missing.
    pub(crate) fn misses(&self, node: u32, link: u32, other: u32) -> bool {
        self.ask.misses(node, link, other)
            || self.hidden.is_some_and(|hidden| hidden.misses(node, link, other))
    }

    /// Whether an edge of `node` may be missing.
    pub(crate) fn concerns(&self, node: u32) -> bool {
        self.ask.concerns(node) || self.hidden.is_some_and(|hidden| hidden.concerns(node))
    }
}

/// An incoming message: the row that sends it, its kind, and where among the edges of the receiving node the edge is, or
/// with a bounded frontier where among the messages that the row receives.
#[derive(Clone, Copy)]
pub(crate) struct Sender {
    pub(crate) row: u32,
    pub(crate) kind: u32,
    pub(crate) at: u32,
}

/// How much of the lists belongs to the rows of a layer and of all earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) rows: usize,
    /// The edges and pieces of these rows.
    pub(crate) edges: usize,
    pub(crate) pieces: usize,
    /// The items of these rows, the rows with more than one item, and the items of those.
    pub(crate) items: usize,
    pub(crate) bigs: usize,
    pub(crate) slots: usize,
}

impl Extent {
    fn add(&mut self, other: Extent) {
        self.rows += other.rows;
        self.edges += other.edges;
        self.pieces += other.pieces;
        self.items += other.items;
        self.bigs += other.bigs;
        self.slots += other.slots;
    }

    fn of_node(edges: &Edges, node: usize) -> Extent {
        let count = |starts: &[u32]| (starts[node + 1] - starts[node]) as usize;
        let items = count(&edges.item_starts.host);
        let big = items > 1;
        Extent {
            rows: 1,
            edges: count(&edges.starts.host),
            pieces: count(&edges.piece_starts.host),
            items,
            bigs: usize::from(big),
            slots: if big { items } else { 0 },
        }
    }
}

/// The rows of a batch of queries. See the module.
pub struct Reach {
    pub(crate) edge_index: EdgeIndex,
    pub(crate) asks: Vec<ReachQuery>,
    /// By layer; the first entry has only the starts.
    pub(crate) extents: Vec<Extent>,
    /// The row of every (query, node); `NONE` for a node that is not reached.
    pub(crate) places: Indices,
    pub(crate) row_nodes: Indices,
    /// The node of each row, on the host; only for a single query.
    order: Vec<u32>,
    pub(crate) row_queries: Indices,
    /// The first of the row's edges among the edges of all rows, and the same for pieces.
    pub(crate) row_edges: Indices,
    pub(crate) row_pieces: Indices,
    /// The number of the row's edges that are not removed, plus one for the start.
    pub(crate) row_degrees: Indices,
    pub(crate) item_rows: Indices,
    pub(crate) item_ids: Indices,
    /// Where an item of a row with several items writes its result; `NONE` for the only item of its row.
    pub(crate) item_slots: Indices,
    /// Rows with several items, and the first of their slots (one entry more).
    pub(crate) big_rows: Indices,
    pub(crate) big_slots: Indices,
    /// The items that have a slot.
    pub(crate) slot_items: Indices,
    /// Where stretches of rows of one query start and, after all rows, one for each query (one entry more).
    pub(crate) runs: Indices,
    gone_nodes: Indices,
    gone_links: Indices,
    /// On CUDA: the addresses of all lists.
    pub(crate) descriptor: Option<Buffer<u32>>,
    /// Where the backward pass stores the derivative of every edge, if requested.
    pub(crate) trace: Option<Arc<Trace>>,
}

/// How much each edge of each layer matters: the derivative of the output from which a tape runs backward, with
/// respect to a weight of 1 on every message.
#[derive(Default)]
pub struct Trace(Mutex<Vec<(usize, Tensor)>>);

impl Trace {
    pub(crate) fn put(&self, layer: usize, derivatives: Tensor) {
        self.0.lock().expect("no code panics while it holds the trace").push((layer, derivatives));
    }

    /// The derivatives of the edges of each layer, in the order in which [`Reach::each_edge`] visits them.
    ///
    /// # Errors
    /// If the device fails.
    pub fn by_layer(&self) -> Result<Vec<Vec<f32>>> {
        let mut layers = self.0.lock().expect("no code panics while it holds the trace").clone();
        layers.sort_by_key(|(layer, _)| *layer);
        layers.iter().map(|(_, derivatives)| derivatives.to_vec()).collect()
    }
}

impl Reach {
    /// How many nodes the graph has, reached or not.
    pub fn nodes(&self) -> usize {
        self.edge_index.nodes()
    }

    /// The rows that the messages of `asks` reach in `layers` steps.
    ///
    /// # Errors
    /// If a query does not start at a node of the edge index, or the device fails.
    pub fn new(edge_index: &EdgeIndex, asks: &[ReachQuery], layers: usize) -> Result<Reach> {
        expect_starts(edge_index, asks)?;
        let edges = &*edge_index.0;
        let searches = asks.par_iter().map(|ask| {
            let mut search = Search::new(edges, ask);
            let missing = Missing::new(edge_index, ask);
            (1..=layers).for_each(|step| search.go_on(edges, missing, step));
            search.reached()
        });
        let reached: Vec<Reached> = searches.collect();
        Reach::of(edge_index, asks, &reached, layers)
    }

    /// As [`Reach::new`], but from the first layer on every node has a row for every query, reached or not.
    ///
    /// # Errors
    /// As [`Reach::new`].
    pub fn whole(edge_index: &EdgeIndex, asks: &[ReachQuery], layers: usize) -> Result<Reach> {
        expect_starts(edge_index, asks)?;
        let searches = asks.par_iter().map(|ask| Search::whole(&edge_index.0, ask, layers).reached());
        let reached: Vec<Reached> = searches.collect();
        Reach::of(edge_index, asks, &reached, layers)
    }

    fn of(edge_index: &EdgeIndex, asks: &[ReachQuery], reached: &[Reached], layers: usize) -> Result<Reach> {
        let edges = &*edge_index.0;
        let total: usize = reached.iter().flat_map(|one| &one.steps).map(|step| step.edges).sum();
        if total.max(asks.len() * edges.nodes) >= NONE as usize {
            let why = format!("{} queries at once reach {total} edges; ask fewer at a time", asks.len());
            return Err(TensorError::Parameter { name: "reach".to_string(), why });
        }
        Lists::new(edge_index, asks, reached, layers).finish(edge_index, asks)
    }

    /// Which nodes each query reaches, as `[queries, nodes]`.
    ///
    /// # Errors
    /// If the device fails.
    pub fn reached(&self) -> Result<Vec<bool>> {
        Ok(self.places.to_vec()?.into_iter().map(|row| row != NONE).collect())
    }

    /// Which edges carry no messages for a query.
    pub(crate) fn missing(&self, query: usize) -> Missing<'_> {
        Missing::new(&self.edge_index, &self.asks[query])
    }

    /// How many queries there are.
    pub fn queries(&self) -> usize {
        self.asks.len()
    }

    /// How many layers there are.
    pub fn layers(&self) -> usize {
        self.extents.len() - 1
    }

    /// How many rows are reached after this many layers.
    pub fn rows(&self, layer: usize) -> usize {
        self.extents[layer].rows
    }

    /// From now on, the backward pass of a tape that propagates over these rows stores the derivative of every edge.
    pub fn trace(&mut self) -> Arc<Trace> {
        self.trace.get_or_insert_default().clone()
    }

    /// Visits the edges that carry messages of layer `layer + 1`, for a reach of one query: the node they leave,
    /// their kind, the node they enter, and their derivative. Removed edges are skipped.
    pub fn each_edge(&self, layer: usize, derivatives: &[f32], mut visit: impl FnMut(u32, u32, u32, f32)) {
        let edges = &*self.edge_index.0;
        let (missing, mut at) = (self.missing(0), 0);
        for &node in self.order.iter().take(self.extents[layer].rows) {
            for edge in edges.edges_of(node as usize) {
                let (link, other) = (edges.links.host[edge], edges.others.host[edge]);
                if !missing.misses(node, link, other) {
                    visit(node, link, other, derivatives[at]);
                }
                at += 1;
            }
        }
    }

    /// The number of edges of the rows up to this layer, including those that carry no message.
    pub fn edges(&self, layer: usize) -> usize {
        self.extents[layer].edges
    }
}

/// An error unless every query starts at a node of the edge index.
fn expect_starts(edge_index: &EdgeIndex, asks: &[ReachQuery]) -> Result<()> {
    let rows = edge_index.nodes();
    match asks.iter().position(|ask| ask.start as usize >= rows) {
        Some(position) => {
            Err(TensorError::Index { operation: "reach", index: asks[position].start, position, rows })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    /// A chain 0 – 1 – 2 – 3 by kind 0, and the isolated node 4.
    fn chain(device: &Device) -> EdgeIndex {
        let (starts, links) = (vec![0, 1, 3, 5, 6, 6], vec![0, 0, 1, 0, 1, 1]);
        EdgeIndex::new(device, 2, starts, links, vec![1, 2, 0, 3, 1, 2]).unwrap()
    }

    #[test]
    fn rows_come_by_step_query_and_node() {
        let device = Device::cpu(2).unwrap();
        let edge_index = chain(&device);
        let cut = Without { node: 2, kind: Some(0) };
        let asks = [
            ReachQuery { start: 1, without: None },
            ReachQuery { start: 1, without: Some(cut) },
            ReachQuery { start: 4, without: None },
        ];
        let reach = Reach::new(&edge_index, &asks, 2).unwrap();
        assert_eq!((0..=2).map(|layer| reach.rows(layer)).collect::<Vec<_>>(), [3, 6, 7]);
        let list = |indices: &Indices| indices.to_vec().unwrap();
        assert_eq!(list(&reach.row_nodes), [1, 1, 4, 0, 2, 0, 3]);
        assert_eq!(list(&reach.row_queries), [0, 1, 2, 0, 0, 1, 0]);
        assert_eq!(list(&reach.row_degrees), [3, 2, 1, 2, 3, 2, 2], "one edge of query 1 is out");
        assert_eq!(list(&reach.places)[..5], [3, 0, 4, 6, NONE]);
        assert_eq!(list(&reach.row_edges), [0, 2, 4, 4, 5, 7, 8]);
        let all = ReachQuery { start: 1, without: Some(Without { node: 2, kind: None }) };
        assert_eq!(Reach::new(&edge_index, &[all], 3).unwrap().rows(3), 2);
        assert!(Reach::new(&edge_index, &[ReachQuery { start: 5, without: None }], 1).is_err());
        let whole = Reach::whole(&edge_index, &asks, 2).unwrap();
        assert_eq!((0..=2).map(|layer| whole.rows(layer)).collect::<Vec<_>>(), [3, 15, 15]);
        assert_eq!(list(&whole.row_nodes), [1, 1, 4, 0, 2, 3, 4, 0, 2, 3, 4, 0, 1, 2, 3]);
        assert_eq!(Reach::new(&edge_index, &[], 3).unwrap().rows(3), 0);
    }
}
