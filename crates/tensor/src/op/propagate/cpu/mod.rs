//! The aggregation on the CPU: items of the edge index on all threads, 32 columns at a time.

mod backward;
mod forward;
mod found;
mod weights;

pub(super) use backward::{Receiver, Slopes, backward, message_derivatives};
pub(super) use forward::{forward, layer};
pub(super) use found::{First, Found, Incoming};
pub(super) use weights::to_weights;

use super::{Masks, Sizes};
use crate::edge_index::Edges;
use crate::memory::Buffer;
use crate::reach::{NONE, Reach};

/// Items that a thread takes at a time.
pub(super) const ITEMS: usize = 32;

/// The inputs of the backward pass.
pub(super) struct Given<'a> {
    pub(super) gradient: Buffer<f32>,
    pub(super) output: &'a Buffer<f32>,
    pub(super) masks: &'a Masks,
}

/// The lists and inputs, as slices.
pub(super) struct View<'a> {
    pub(super) edges: &'a Edges,
    pub(super) reach: &'a Reach,
    pub(super) sizes: Sizes,
    pub(super) state: &'a [f32],
    pub(super) weights: &'a [f32],
    pub(super) start: &'a [f32],
    pub(super) places: &'a [u32],
    pub(super) row_nodes: &'a [u32],
    pub(super) row_queries: &'a [u32],
    pub(super) row_edges: &'a [u32],
    pub(super) row_pieces: &'a [u32],
    pub(super) row_degrees: &'a [u32],
    pub(super) item_rows: &'a [u32],
    pub(super) item_ids: &'a [u32],
    pub(super) item_slots: &'a [u32],
}

/// One item of a batch.
pub(super) struct Item {
    pub(super) row: usize,
    pub(super) node: usize,
    pub(super) query: usize,
    pub(super) slot: u32,
    pub(super) id: usize,
    /// Its edges, and the first edge of its node.
    pub(super) range: std::ops::Range<usize>,
    pub(super) first: usize,
}

impl<'a> View<'a> {
    pub(super) fn new(reach: &'a Reach, sizes: Sizes, [state, weights, start]: [&'a Buffer<f32>; 3]) -> Self {
        View {
            edges: &reach.edge_index.0,
            reach,
            sizes,
            state: state.host(),
            weights: weights.host(),
            start: start.host(),
            places: reach.places.buffer().host(),
            row_nodes: reach.row_nodes.buffer().host(),
            row_queries: reach.row_queries.buffer().host(),
            row_edges: reach.row_edges.buffer().host(),
            row_pieces: reach.row_pieces.buffer().host(),
            row_degrees: reach.row_degrees.buffer().host(),
            item_rows: reach.item_rows.buffer().host(),
            item_ids: reach.item_ids.buffer().host(),
            item_slots: reach.item_slots.buffer().host(),
        }
    }

    pub(super) fn item(&self, at: usize) -> Item {
        let (row, id) = (self.item_rows[at] as usize, self.item_ids[at] as usize);
        let node = self.row_nodes[row] as usize;
        let edge =
            |item: usize| self.edges.piece_edges.host[self.edges.item_pieces.host[item] as usize] as usize;
        Item {
            row,
            node,
            query: self.row_queries[row] as usize,
            slot: self.item_slots[at],
            id,
            range: edge(id)..edge(id + 1),
            first: self.edges.starts.host[node] as usize,
        }
    }

    /// How many items a row has.
    pub(super) fn items_of(&self, row: usize) -> usize {
        let node = self.row_nodes[row] as usize;
        (self.edges.item_starts.host[node + 1] - self.edges.item_starts.host[node]) as usize
    }

    /// The item of a row that has only one.
    pub(super) fn only_item(&self, row: usize) -> Item {
        let (node, query) = (self.row_nodes[row] as usize, self.row_queries[row] as usize);
        let (range, id) = (self.edges.edges_of(node), self.edges.item_starts.host[node] as usize);
        Item { row, node, query, slot: NONE, id, first: range.start, range }
    }

    /// The row of each node for a query.
    #[inline(always)]
    pub(super) fn places_of(&self, query: usize) -> &[u32] {
        &self.places[query * self.edges.nodes..(query + 1) * self.edges.nodes]
    }

    /// Whether `edge` of the item's node is removed for the query; only called where it may be.
    #[inline(always)]
    pub(super) fn is_gone(&self, item: &Item, edge: usize) -> bool {
        let (link, other) = (self.edges.links.host[edge], self.edges.others.host[edge]);
        self.reach.missing(item.query).misses(item.node as u32, link, other)
    }
}
