//! Who is reached from where: the rows that a batch of queries propagates over, layer by layer.
//!
//! A *row* is a pair of a query and a node that messages from the query's start have reached. Rows are numbered by
//! (steps from the start, query, node), so the rows of layer `l` are the first [`Reach::rows`]`(l)` of all, and a row
//! keeps its number in every later layer. Rows `0..queries` are the starts. Nodes that nothing reaches have no row and
//! cost nothing.
//!
//! An edge may be taken out for one query alone ([`Ask::without`]). Everything is made on the host, query by query on
//! all threads, and copied to the device without waiting.

use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::device::{Backend, Device};
use super::draft::Draft;
use super::error::{Result, TensorError, expect_shape};
use super::memory::Buffer;
use super::mesh::{Edges, Mesh};
use super::value::{Indices, Tensor};

/// No row, no node, no slot.
pub(crate) const NONE: u32 = u32::MAX;
/// The most rows of a run.
const RUN: usize = 512;

/// One query: where it starts, and what is taken out of the mesh for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The node where messages start.
    pub start: u32,
    /// Edges between the start and another node that are taken out, in both directions.
    pub without: Option<Without>,
}

/// Edges that are taken out for one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Without {
    /// The other end.
    pub node: u32,
    /// The kind of the edge, seen from the start; `None` takes out every edge between the two.
    pub kind: Option<u32>,
}

impl Ask {
    /// Whether the edge by `link` from `node` to `other` is taken out.
    pub(crate) fn misses(&self, node: u32, link: u32, other: u32) -> bool {
        let Some(Without { node: end, kind }) = self.without else { return false };
        (node == self.start && other == end && kind.is_none_or(|kind| kind == link))
            || (node == end && other == self.start && kind.is_none_or(|kind| kind ^ 1 == link))
    }

    /// Whether an edge of `node` may be taken out.
    pub(crate) fn concerns(&self, node: u32) -> bool {
        self.without.is_some_and(|without| node == self.start || node == without.node)
    }
}

/// How much of the lists belongs to the rows of a layer and of all before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) rows: usize,
    /// Edges and pieces of these rows.
    pub(crate) edges: usize,
    pub(crate) pieces: usize,
    /// Items of these rows; rows with more than one item, and the items of those.
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
    pub(crate) mesh: Mesh,
    pub(crate) asks: Vec<Ask>,
    /// By layer, the starts alone first.
    pub(crate) extents: Vec<Extent>,
    /// The row of every (query, node); `NONE` for a node that is not reached.
    pub(crate) places: Indices,
    pub(crate) row_nodes: Indices,
    /// The node and the query of each row, on the host.
    order: Vec<u32>,
    order_queries: Vec<u32>,
    /// How far each query has come, where layers are added one by one.
    searches: Vec<Search>,
    pub(crate) row_queries: Indices,
    /// The first of the row's edges among the edges of all rows, and the same for pieces.
    pub(crate) row_edges: Indices,
    pub(crate) row_pieces: Indices,
    /// The row's edges that are not taken out, and one more for the start.
    pub(crate) row_degrees: Indices,
    pub(crate) item_rows: Indices,
    pub(crate) item_ids: Indices,
    /// Where an item of a row with several leaves what it found; `NONE` for the only item of its row.
    pub(crate) item_slots: Indices,
    /// Rows of several items, and the first of their slots (one more).
    pub(crate) big_rows: Indices,
    pub(crate) big_slots: Indices,
    /// The items that have a slot.
    pub(crate) slot_items: Indices,
    /// Where stretches of rows of one query start, and, behind all rows, one for each query (one more).
    pub(crate) runs: Indices,
    gone_nodes: Indices,
    gone_links: Indices,
    /// On CUDA: where all lists are.
    pub(crate) descriptor: Option<Buffer<u32>>,
    /// Where the backward pass leaves the slope of every edge, if somebody wants it.
    pub(crate) trace: Option<Arc<Trace>>,
}

/// How much each edge of each layer matters: the slope of what a tape runs backward from, in a weight of one that
/// every message has.
#[derive(Default)]
pub struct Trace(Mutex<Vec<(usize, Tensor)>>);

impl Trace {
    pub(crate) fn put(&self, layer: usize, slopes: Tensor) {
        self.0.lock().expect("no code panics while it holds the trace").push((layer, slopes));
    }

    /// The slopes of the edges of each layer, in the order in which [`Reach::each_edge`] visits them.
    ///
    /// # Errors
    /// If the device fails.
    pub fn by_layer(&self) -> Result<Vec<Vec<f32>>> {
        let mut layers = self.0.lock().expect("no code panics while it holds the trace").clone();
        layers.sort_by_key(|(layer, _)| *layer);
        layers.iter().map(|(_, slopes)| slopes.to_vec()).collect()
    }
}

/// What one query reaches: nodes by (steps, node), and how much of the lists each step needs.
struct Reached {
    nodes: Vec<u32>,
    steps: Vec<Extent>,
}

impl Reach {
    /// What the messages of `asks` reach in `layers` steps.
    ///
    /// # Errors
    /// If a query starts at no node of the mesh, or the device fails.
    pub fn new(mesh: &Mesh, asks: &[Ask], layers: usize) -> Result<Reach> {
        expect_starts(mesh, asks)?;
        let edges = &*mesh.0;
        let searches = asks.par_iter().map(|ask| {
            let mut search = Search::new(edges, ask);
            (1..=layers).for_each(|step| search.go_on(edges, ask, step, None));
            search
        });
        let searches: Vec<Search> = searches.collect();
        Reach::of(mesh, asks, &searches, layers, false)
    }

    /// The starts alone, of which some are to be gone on from: see [`Reach::grown`].
    ///
    /// # Errors
    /// As [`Reach::new`].
    pub fn start(mesh: &Mesh, asks: &[Ask]) -> Result<Reach> {
        expect_starts(mesh, asks)?;
        let searches: Vec<Search> = asks.iter().map(|ask| Search::new(&mesh.0, ask)).collect();
        let mut reach = Reach::of(mesh, asks, &searches, 0, true)?;
        reach.searches = searches;
        Ok(reach)
    }

    /// The same with one layer more, reached from the rows of `passing` alone (one flag a row). Rows keep their
    /// numbers.
    ///
    /// # Errors
    /// If there is not one flag a row, the reach was not begun by [`Reach::start`], or the device fails.
    pub fn grown(&self, passing: &[bool]) -> Result<Reach> {
        let (edges, layer) = (&*self.mesh.0, self.layers() + 1);
        let fits = passing.len() == self.rows(layer - 1) && self.searches.len() == self.queries();
        expect_shape(fits, "grown", "flags and rows", &[passing.len()], &[self.rows(layer - 1)])?;
        let mut from: Vec<Vec<u32>> = vec![Vec::new(); self.queries()];
        for ((&node, &query), _) in
            self.order.iter().zip(&self.order_queries).zip(passing).filter(|(_, pass)| **pass)
        {
            from[query as usize].push(node);
        }
        let mut searches = self.searches.clone();
        let all = searches.par_iter_mut().zip(&self.asks).zip(&from);
        all.for_each(|((search, ask), from)| search.go_on(edges, ask, layer, Some(from)));
        let mut reach = Reach::of(&self.mesh, &self.asks, &searches, layer, true)?;
        (reach.searches, reach.trace) = (searches, self.trace.clone());
        Ok(reach)
    }

    fn of(mesh: &Mesh, asks: &[Ask], searches: &[Search], layers: usize, keep: bool) -> Result<Reach> {
        let edges = &*mesh.0;
        let reached: Vec<Reached> = searches.par_iter().map(|search| search.reached(edges, layers)).collect();
        let total: usize = reached.iter().flat_map(|one| &one.steps).map(|step| step.edges).sum();
        if total.max(asks.len() * edges.nodes) >= NONE as usize {
            let why = format!("{} queries at once reach {total} edges; ask fewer at a time", asks.len());
            return Err(TensorError::Parameter { name: "reach".to_string(), why });
        }
        Lists::new(mesh, asks, &reached, layers).finish(mesh, asks, keep || asks.len() == 1)
    }

    /// The query of every row, for a reach that grows layer by layer.
    pub fn row_queries(&self) -> &[u32] {
        &self.order_queries
    }

    /// How many queries there are.
    pub fn queries(&self) -> usize {
        self.asks.len()
    }

    /// How many layers there are.
    pub fn layers(&self) -> usize {
        self.extents.len() - 1
    }

    /// How many rows have been reached after so many layers.
    pub fn rows(&self, layer: usize) -> usize {
        self.extents[layer].rows
    }

    /// From now on the backward pass of a tape that propagates over these rows leaves the slope of every edge.
    pub fn trace(&mut self) -> Arc<Trace> {
        self.trace.get_or_insert_default().clone()
    }

    /// Visits the edges along which messages of layer `layer + 1` go, for a reach of one query: the node they leave,
    /// their kind, the node they come to, and their slope. Edges that are taken out have none.
    pub fn each_edge(&self, layer: usize, slopes: &[f32], mut visit: impl FnMut(u32, u32, u32, f32)) {
        let edges = &*self.mesh.0;
        let mut at = 0;
        for &node in self.order.iter().take(self.extents[layer].rows) {
            for edge in edges.edges_of(node as usize) {
                let (link, other) = (edges.links.host[edge], edges.others.host[edge]);
                if !self.asks[0].misses(node, link, other) {
                    visit(node, link, other, slopes[at]);
                }
                at += 1;
            }
        }
    }

    /// How many edges end at the rows of this layer, those included along which nothing comes.
    pub fn edges(&self, layer: usize) -> usize {
        self.extents[layer].edges
    }
}

/// An error unless every query starts at a node of the mesh.
fn expect_starts(mesh: &Mesh, asks: &[Ask]) -> Result<()> {
    let rows = mesh.nodes();
    match asks.iter().position(|ask| ask.start as usize >= rows) {
        Some(position) => {
            Err(TensorError::Index { operation: "reach", index: asks[position].start, position, rows })
        }
        None => Ok(()),
    }
}

/// The search of one query: at which step each node was reached.
#[derive(Clone)]
struct Search {
    step_of: Vec<u8>,
    /// The nodes that were reached last.
    frontier: Vec<u32>,
}

impl Search {
    fn new(edges: &Edges, ask: &Ask) -> Search {
        let mut step_of = vec![u8::MAX; edges.nodes];
        step_of[ask.start as usize] = 0;
        Search { step_of, frontier: vec![ask.start] }
    }

    /// Goes on from `passing` (or from all that was reached last) to the nodes that are reached at `step`.
    fn go_on(&mut self, edges: &Edges, ask: &Ask, step: usize, passing: Option<&[u32]>) {
        let outgoing =
            |nodes: &[u32]| nodes.iter().map(|&node| edges.edges_of(node as usize).len()).sum::<usize>();
        // With most nodes reached it is less work to ask the others whether a neighbour is.
        self.frontier = match passing {
            None if outgoing(&self.frontier) > edges.others.host.len() / 4 => {
                self.look_back(edges, ask, step)
            }
            None => {
                let frontier = std::mem::take(&mut self.frontier);
                self.look_ahead(edges, ask, step, &frontier)
            }
            Some(passing) => self.look_ahead(edges, ask, step, passing),
        };
    }

    /// Visits the edges of nodes that were reached.
    fn look_ahead(&mut self, edges: &Edges, ask: &Ask, step: usize, passing: &[u32]) -> Vec<u32> {
        let mut next = Vec::new();
        for &node in passing {
            let concerned = ask.concerns(node);
            for edge in edges.edges_of(node as usize) {
                let other = edges.others.host[edge];
                let gone = || concerned && ask.misses(node, edges.links.host[edge], other);
                if self.step_of[other as usize] == u8::MAX && !gone() {
                    self.step_of[other as usize] = step as u8;
                    next.push(other);
                }
            }
        }
        next
    }

    /// Visits the edges of nodes that were not, each until one leads to a node that was.
    fn look_back(&mut self, edges: &Edges, ask: &Ask, step: usize) -> Vec<u32> {
        let mut next = Vec::new();
        for node in 0..edges.nodes {
            if self.step_of[node] != u8::MAX {
                continue;
            }
            let concerned = ask.concerns(node as u32);
            let is_reached = |edge: usize| {
                let other = edges.others.host[edge];
                (self.step_of[other as usize] as usize) < step
                    && !(concerned && ask.misses(node as u32, edges.links.host[edge], other))
            };
            if edges.edges_of(node).any(is_reached) {
                self.step_of[node] = step as u8;
                next.push(node as u32);
            }
        }
        next
    }

    /// The nodes by (step, node): one pass over all nodes counts the rows of each step, and one puts them in order.
    fn reached(&self, edges: &Edges, layers: usize) -> Reached {
        let mut steps = vec![Extent::default(); layers + 1];
        for (node, &step) in self.step_of.iter().enumerate() {
            if step != u8::MAX {
                steps[step as usize].add(Extent::of_node(edges, node));
            }
        }
        let firsts = steps.iter().scan(0, |total, step| Some(std::mem::replace(total, *total + step.rows)));
        let mut next: Vec<usize> = firsts.collect();
        let mut nodes = vec![0; steps.iter().map(|step| step.rows).sum()];
        for (node, &step) in self.step_of.iter().enumerate() {
            if step != u8::MAX {
                nodes[next[step as usize]] = node as u32;
                next[step as usize] += 1;
            }
        }
        Reached { nodes, steps }
    }
}

/// The lists in the making.
struct Lists {
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
    fn new(mesh: &Mesh, asks: &[Ask], reached: &[Reached], layers: usize) -> Lists {
        let edges = &*mesh.0;
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
        let mut segments = Vec::with_capacity(befores.len());
        let mut done = vec![0; asks.len()];
        for (index, before) in befores.into_iter().enumerate() {
            let (step, query) = (index / asks.len(), index % asks.len());
            let size = reached[query].steps[step];
            let nodes = &reached[query].nodes[done[query]..done[query] + size.rows];
            done[query] += size.rows;
            segments.push(Segment {
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
        // The rows of a query begin at these places, step by step.
        let firsts: Vec<Vec<usize>> = (0..asks.len())
            .map(|query| {
                segments.iter().skip(query).step_by(asks.len()).map(|segment| segment.before.rows).collect()
            })
            .collect();
        segments.into_par_iter().for_each(|segment| segment.fill(edges, asks));
        let nodes = edges.nodes.max(1);
        lists.places.values_mut().par_chunks_mut(nodes).zip(reached).zip(firsts).for_each(
            |((places, one), firsts)| {
                places.fill(NONE);
                let mut nodes = one.nodes.iter();
                for (step, first) in one.steps.iter().zip(firsts) {
                    for (row, &node) in (first..first + step.rows).zip(&mut nodes) {
                        places[node as usize] = row as u32;
                    }
                }
            },
        );
        lists
    }

    /// Copies the lists to the device; the order of the rows stays on the host too if it is to be kept.
    fn finish(self, mesh: &Mesh, asks: &[Ask], keep: bool) -> Result<Reach> {
        let device = &mesh.0.device;
        let list = Indices::of_draft;
        let [row_nodes, row_queries, row_edges, row_pieces, row_degrees] = &self.rows;
        let [item_rows, item_ids, item_slots] = &self.items;
        let [big_rows, big_slots, slot_items] = &self.bigs;
        let gone = |of: fn(Without) -> Option<u32>| -> Result<Indices> {
            let values: Vec<u32> = asks.iter().map(|ask| ask.without.and_then(of).unwrap_or(NONE)).collect();
            Indices::new(device, &values)
        };
        let mut reach = Reach {
            mesh: mesh.clone(),
            asks: asks.to_vec(),
            extents: self.extents.clone(),
            places: list(&self.places)?,
            row_nodes: list(row_nodes)?,
            order: if keep { row_nodes.to_vec() } else { Vec::new() },
            order_queries: if keep { row_queries.to_vec() } else { Vec::new() },
            searches: Vec::new(),
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
    fn fill(self, edges: &Edges, asks: &[Ask]) {
        let Segment { query, nodes, mut before, rows, items, bigs } = self;
        let ask = &asks[query];
        let [row_nodes, row_queries, row_edges, row_pieces, row_degrees] = rows;
        let [item_rows, item_ids, item_slots] = items;
        let [big_rows, big_slots, slot_items] = bigs;
        let first = before;
        for (index, &node) in nodes.iter().enumerate() {
            let size = Extent::of_node(edges, node as usize);
            let gone = |edge: &usize| ask.misses(node, edges.links.host[*edge], edges.others.host[*edge]);
            let missing = match ask.concerns(node) {
                true => edges.edges_of(node as usize).filter(gone).count(),
                false => 0,
            };
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

// Where the lists of a mesh and of a batch are, for all kernels that go along edges.
pub(crate) const KERNELS: &str = r#"
#define NONE 0xffffffffu
struct Net {
    const u32 *starts, *links, *others, *backs, *piece_starts, *piece_edges, *edge_pieces, *item_starts, *item_pieces;
    const u32 *kind_nodes, *kind_pieces, *chunk_kinds, *chunk_starts, *kind_chunks;
    const u32 *places, *row_nodes, *row_queries, *row_edges, *row_pieces, *row_degrees;
    const u32 *item_rows, *item_ids, *item_slots, *big_rows, *big_slots, *slot_items, *gone_nodes, *gone_links;
    u32 nodes, kinds, queries, chunks;
};
// The query of a row and what is taken out of its edges; `to` is NONE for a row that keeps them all.
struct Gap { u32 node, from, to, link; };
__device__ __forceinline__ Gap gap_of(const Net& net, u32 query, u32 node) {
    Gap gap = { node, net.row_nodes[query], net.gone_nodes[query], net.gone_links[query] };
    if (node != gap.from && node != gap.to) gap.to = NONE;
    return gap;
}
__device__ __forceinline__ bool is_gone(const Gap& gap, u32 link, u32 other) {
    return (gap.node == gap.from && other == gap.to && (gap.link == NONE || gap.link == link))
        || (gap.node == gap.to && other == gap.from && (gap.link == NONE || (gap.link ^ 1u) == link));
}
"#;

impl Reach {
    /// The struct `Net` of the kernels, on the device.
    fn describe(&self, device: &Device) -> Result<Buffer<u32>> {
        let edges = &*self.mesh.0;
        let mesh = [
            &edges.starts,
            &edges.links,
            &edges.others,
            &edges.backs,
            &edges.piece_starts,
            &edges.piece_edges,
            &edges.edge_pieces,
            &edges.item_starts,
            &edges.item_pieces,
            &edges.kind_nodes,
            &edges.kind_pieces,
            &edges.chunk_kinds,
            &edges.chunk_starts,
            &edges.kind_chunks,
        ];
        let own = [
            &self.places,
            &self.row_nodes,
            &self.row_queries,
            &self.row_edges,
            &self.row_pieces,
            &self.row_degrees,
            &self.item_rows,
            &self.item_ids,
            &self.item_slots,
            &self.big_rows,
            &self.big_slots,
            &self.slot_items,
            &self.gone_nodes,
            &self.gone_links,
        ];
        let pointers = mesh
            .iter()
            .map(|list| list.buffer.pointer())
            .chain(own.iter().map(|list| list.buffer().pointer()));
        let mut words: Vec<u32> =
            pointers.flat_map(|pointer| [pointer as u32, (pointer >> 32) as u32]).collect();
        words.extend([edges.nodes, edges.kinds, self.queries(), edges.chunks()].map(|size| size as u32));
        device.upload(&words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain 0 – 1 – 2 – 3 by kind 0, and node 4 alone.
    fn chain(device: &Device) -> Mesh {
        let (starts, links) = (vec![0, 1, 3, 5, 6, 6], vec![0, 0, 1, 0, 1, 1]);
        Mesh::new(device, 2, starts, links, vec![1, 2, 0, 3, 1, 2]).unwrap()
    }

    #[test]
    fn rows_come_by_step_query_and_node() {
        let device = Device::cpu(2).unwrap();
        let mesh = chain(&device);
        let cut = Without { node: 2, kind: Some(0) };
        let asks = [
            Ask { start: 1, without: None },
            Ask { start: 1, without: Some(cut) },
            Ask { start: 4, without: None },
        ];
        let reach = Reach::new(&mesh, &asks, 2).unwrap();
        assert_eq!((0..=2).map(|layer| reach.rows(layer)).collect::<Vec<_>>(), [3, 6, 7]);
        let list = |indices: &Indices| indices.to_vec().unwrap();
        assert_eq!(list(&reach.row_nodes), [1, 1, 4, 0, 2, 0, 3]);
        assert_eq!(list(&reach.row_queries), [0, 1, 2, 0, 0, 1, 0]);
        assert_eq!(list(&reach.row_degrees), [3, 2, 1, 2, 3, 2, 2], "one edge of query 1 is out");
        assert_eq!(list(&reach.places)[..5], [3, 0, 4, 6, NONE]);
        assert_eq!(list(&reach.row_edges), [0, 2, 4, 4, 5, 7, 8]);
        let all = Ask { start: 1, without: Some(Without { node: 2, kind: None }) };
        assert_eq!(Reach::new(&mesh, &[all], 3).unwrap().rows(3), 2);
        assert!(Reach::new(&mesh, &[Ask { start: 5, without: None }], 1).is_err());
        assert_eq!(Reach::new(&mesh, &[], 3).unwrap().rows(3), 0);
        // Layer by layer, from all rows it is the same; from some, what only the others lead to is not reached.
        let mut grown = Reach::start(&mesh, &asks).unwrap();
        for _ in 0..2 {
            grown = grown.grown(&vec![true; grown.rows(grown.layers())]).unwrap();
        }
        assert_eq!(list(&grown.row_nodes), list(&reach.row_nodes));
        assert_eq!(grown.extents, reach.extents);
        let few = Reach::start(&mesh, &asks).unwrap().grown(&[true; 3]).unwrap();
        let few = few.grown(&[true, true, true, true, false, true]).unwrap();
        assert_eq!(list(&few.row_nodes), [1, 1, 4, 0, 2, 0], "node 3 is reached through node 2 alone");
        assert!(few.grown(&[true]).is_err());
    }
}
