//! The lists of a batch: rows, items and rows of several items, filled by all threads.

use rayon::prelude::*;

use super::search::Reached;
use super::{Extent, Missing, NONE, Reach, ReachQuery, Without};
use crate::device::Backend;
use crate::draft::Draft;
use crate::edge_index::{EdgeIndex, Edges};
use crate::error::Result;
use crate::value::Indices;

/// The maximum number of rows of a run.
const RUN: usize = 512;

/// The lists under construction.
pub(super) struct Lists {
    extents: Vec<Extent>,
    runs: Vec<u32>,
    places: Draft,
    /// Nodes, queries, first edges, first pieces and degrees of the rows.
    rows: [Draft; 5],
    /// Rows, ids and slots of the items.
    items: [Draft; 3],
    /// Rows and first slots of rows with several items, and the items that have slots.
    bigs: [Draft; 3],
}

/// The part of the lists that one query has at one step.
struct Segment<'a> {
    query: usize,
    nodes: &'a [u32],
    before: Extent,
    rows: [&'a mut [u32]; 5],
    items: [&'a mut [u32]; 3],
    bigs: [&'a mut [u32]; 3],
}

impl Lists {
    pub(super) fn new(
        edge_index: &EdgeIndex,
        asks: &[ReachQuery],
        reached: &[Reached],
        layers: usize,
    ) -> Lists {
        let edges = &*edge_index.0;
        let device = &edges.device;
        let mut total = Extent::default();
        let (mut extents, mut befores) = (Vec::new(), Vec::new());
        for step in 0..=layers {
            for one in reached {
                befores.push(total);
                total.add(one.steps[step]);
            }
            extents.push(total);
        }
        let draft = |len: usize| Draft::new(device, len);
        let mut runs: Vec<u32> = Vec::new();
        for (index, before) in befores.iter().enumerate() {
            let end = befores.get(index + 1).map_or(total.rows, |next| next.rows);
            runs.extend((before.rows..end).step_by(RUN).map(|row| row as u32));
        }
        runs.extend((total.rows..=total.rows + asks.len()).map(|row| row as u32));
        let mut lists = Lists {
            extents,
            runs,
            places: draft(asks.len() * edges.nodes),
            rows: std::array::from_fn(|_| draft(total.rows)),
            items: std::array::from_fn(|_| draft(total.items)),
            bigs: [draft(total.bigs), draft(total.bigs + 1), draft(total.slots)],
        };
        let mut rows = lists.rows.each_mut().map(|list| list.values_mut());
        let mut items = lists.items.each_mut().map(|list| list.values_mut());
        let mut bigs = lists.bigs.each_mut().map(|list| list.values_mut());
        let last_slot = bigs[1].len() - 1;
        bigs[1][last_slot] = total.slots as u32;
        // Each query fills its own segments, step by step, and its places: one task per query, since waking threads
        // for shorter tasks would cost more than they save.
        let mut own: Vec<Vec<Segment>> = asks.iter().map(|_| Vec::with_capacity(layers + 1)).collect();
        let mut done = vec![0; asks.len()];
        for (index, before) in befores.into_iter().enumerate() {
            let (step, query) = (index / asks.len(), index % asks.len());
            let size = reached[query].steps[step];
            let nodes = &reached[query].nodes[done[query]..done[query] + size.rows];
            done[query] += size.rows;
            own[query].push(Segment {
                query,
                nodes,
                before,
                rows: rows.each_mut().map(|list| cut(list, size.rows)),
                items: items.each_mut().map(|list| cut(list, size.items)),
                bigs: [
                    cut(&mut bigs[0], size.bigs),
                    cut(&mut bigs[1], size.bigs),
                    cut(&mut bigs[2], size.slots),
                ],
            });
        }
        let places = lists.places.values_mut().par_chunks_mut(edges.nodes.max(1));
        places.zip(own).zip(asks).for_each(|((places, segments), ask)| {
            places.fill(NONE);
            let missing = Missing::new(edge_index, ask);
            segments.into_iter().for_each(|segment| segment.fill(edges, missing, places));
        });
        lists
    }

    /// Copies the lists to the device; of a single query, the order of the rows also stays on the host.
    pub(super) fn finish(self, edge_index: &EdgeIndex, asks: &[ReachQuery]) -> Result<Reach> {
        let device = &edge_index.0.device;
        let list = Indices::of_own;
        let [row_nodes, row_queries, row_edges, row_pieces, row_degrees] = self.rows;
        let [item_rows, item_ids, item_slots] = self.items;
        let [big_rows, big_slots, slot_items] = self.bigs;
        let order = if asks.len() == 1 { row_nodes.to_vec() } else { Vec::new() };
        let gone = |of: fn(Without) -> Option<u32>| -> Result<Indices> {
            let values: Vec<u32> = asks.iter().map(|ask| ask.without.and_then(of).unwrap_or(NONE)).collect();
            Indices::new(device, &values)
        };
        let mut reach = Reach {
            edge_index: edge_index.clone(),
            asks: asks.to_vec(),
            extents: self.extents,
            places: list(self.places)?,
            row_nodes: list(row_nodes)?,
            order,
            row_queries: list(row_queries)?,
            row_edges: list(row_edges)?,
            row_pieces: list(row_pieces)?,
            row_degrees: list(row_degrees)?,
            item_rows: list(item_rows)?,
            item_ids: list(item_ids)?,
            item_slots: list(item_slots)?,
            big_rows: list(big_rows)?,
            big_slots: list(big_slots)?,
            slot_items: list(slot_items)?,
            runs: Indices::new(device, &self.runs)?,
            gone_nodes: gone(|without| Some(without.node))?,
            gone_links: gone(|without| without.kind)?,
            descriptor: None,
            trace: None,
        };
        if matches!(device.backend(), Backend::Cuda(_)) {
            reach.descriptor = Some(reach.describe(device)?);
        }
        Ok(reach)
    }
}

/// Takes the first `count` elements off a list.
fn cut<'a>(list: &mut &'a mut [u32], count: usize) -> &'a mut [u32] {
    let (head, tail) = std::mem::take(list).split_at_mut(count);
    *list = tail;
    head
}

impl Segment<'_> {
    /// Fills it, and the `places` of its nodes among those of its query.
    fn fill(self, edges: &Edges, without: Missing, places: &mut [u32]) {
        let Segment { query, nodes, mut before, rows, items, bigs } = self;
        let [row_nodes, row_queries, row_edges, row_pieces, row_degrees] = rows;
        let [item_rows, item_ids, item_slots] = items;
        let [big_rows, big_slots, slot_items] = bigs;
        let first = before;
        for (index, &node) in nodes.iter().enumerate() {
            let size = Extent::of_node(edges, node as usize);
            let gone = |edge: &usize| without.misses(node, edges.links.host[*edge], edges.others.host[*edge]);
            let missing = match without.concerns(node) {
                true => edges.edges_of(node as usize).filter(gone).count(),
                false => 0,
            };
            places[node as usize] = before.rows as u32;
            row_nodes[index] = node;
            row_queries[index] = query as u32;
            row_edges[index] = before.edges as u32;
            row_pieces[index] = before.pieces as u32;
            row_degrees[index] = (size.edges - missing + 1) as u32;
            if size.bigs > 0 {
                big_rows[before.bigs - first.bigs] = before.rows as u32;
                big_slots[before.bigs - first.bigs] = before.slots as u32;
            }
            for item in 0..size.items {
                let at = before.items - first.items + item;
                item_rows[at] = before.rows as u32;
                item_ids[at] = edges.item_starts.host[node as usize] + item as u32;
                item_slots[at] = if size.bigs > 0 { (before.slots + item) as u32 } else { NONE };
                if size.bigs > 0 {
                    slot_items[before.slots - first.slots + item] = (before.items + item) as u32;
                }
            }
            before.add(size);
        }
    }
}
