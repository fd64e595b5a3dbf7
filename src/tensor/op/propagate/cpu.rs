//! The aggregation on the CPU: items of the mesh on all threads, 32 columns at a time.
#![allow(unsafe_code)]

use super::{FREE_DEVIATION, LANES, LEAST_VARIANCE, Masks, Sizes, Slopes};
use crate::tensor::cpu::disjoint::Disjoint;
use crate::tensor::cpu::{Cpu, simd};
use crate::tensor::memory::Buffer;
use crate::tensor::mesh::Edges;
use crate::tensor::reach::{NONE, Reach};

/// Items that a thread takes at once.
pub(super) const ITEMS: usize = 32;
/// The place of a maximum that no edge decided: a zero, or the query's start.
const ZERO: u32 = NONE - 1;
const START: u32 = NONE;

/// What the backward pass is given.
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

/// What an item has found in some columns.
#[derive(Clone, Copy)]
struct Found {
    sum: [f32; LANES],
    squares: [f32; LANES],
    most: [f32; LANES],
    least: [f32; LANES],
    most_at: [u32; LANES],
    least_at: [u32; LANES],
}

impl<'a> View<'a> {
    pub(super) fn new(reach: &'a Reach, sizes: Sizes, [state, weights, start]: [&'a Buffer<f32>; 3]) -> Self {
        View {
            edges: &reach.mesh.0,
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

    /// The rows of the nodes for a query.
    #[inline(always)]
    pub(super) fn places_of(&self, query: usize) -> &[u32] {
        &self.places[query * self.edges.nodes..(query + 1) * self.edges.nodes]
    }

    /// Whether the query has an edge of `node` taken out; asked only where it may be.
    #[inline(always)]
    pub(super) fn is_gone(&self, item: &Item, edge: usize) -> bool {
        let (link, other) = (self.edges.links.host[edge], self.edges.others.host[edge]);
        self.reach.asks[item.query].misses(item.node as u32, link, other)
    }

    /// Aggregates the messages of an item in the columns from `column` on, of which there are `len`.
    #[inline(always)]
    fn gather(&self, item: &Item, column: usize, len: usize) -> Found {
        let width = self.sizes.width;
        let begins = self.edges.item_starts.host[item.node] as usize == item.id;
        let starts_here = item.row < self.reach.queries();
        let mut found = Found::neutral();
        if begins && starts_here {
            let start = &self.start[item.query * width + column..][..len];
            for lane in 0..len {
                found.sum[lane] = start[lane];
                found.squares[lane] = start[lane] * start[lane];
                (found.most[lane], found.least[lane]) = (start[lane], start[lane]);
                (found.most_at[lane], found.least_at[lane]) = (START, START);
            }
        } else if begins {
            (found.most, found.least) = ([0.0; LANES], [0.0; LANES]);
        }
        let places = self.places_of(item.query);
        let weights = &self.weights[item.query * self.sizes.weight_step..];
        let concerned = self.reach.asks[item.query].concerns(item.node as u32);
        let mut idle = false;
        for edge in item.range.clone() {
            let row = places[self.edges.others.host[edge] as usize] as usize;
            let gone = concerned && self.is_gone(item, edge);
            idle |= !gone && row >= self.sizes.before.rows;
            if gone || row >= self.sizes.before.rows {
                continue;
            }
            let kind = (self.edges.links.host[edge] ^ 1) as usize;
            let state = &self.state[row * width + column..][..len];
            let weight = &weights[kind * width + column..][..len];
            found.take(state, weight, (edge - item.first) as u32, len);
        }
        // Where the query starts, zeros from nodes that are not reached count beside the start.
        if starts_here && idle {
            found.combine(&Found { most: [0.0; LANES], least: [0.0; LANES], ..Found::neutral() });
        }
        found
    }
}

impl Found {
    fn neutral() -> Found {
        Found {
            sum: [0.0; LANES],
            squares: [0.0; LANES],
            most: [f32::NEG_INFINITY; LANES],
            least: [f32::INFINITY; LANES],
            most_at: [ZERO; LANES],
            least_at: [ZERO; LANES],
        }
    }

    /// One message more.
    #[inline(always)]
    fn take(&mut self, state: &[f32], weight: &[f32], at: u32, len: usize) {
        for lane in 0..len {
            let x = state[lane] * weight[lane];
            self.sum[lane] += x;
            self.squares[lane] = x.mul_add(x, self.squares[lane]);
            let (more, less) = (x > self.most[lane], x < self.least[lane]);
            self.most[lane] = if more { x } else { self.most[lane] };
            self.most_at[lane] = if more { at } else { self.most_at[lane] };
            self.least[lane] = if less { x } else { self.least[lane] };
            self.least_at[lane] = if less { at } else { self.least_at[lane] };
        }
    }

    /// What a later item of the same row has found.
    fn combine(&mut self, later: &Found) {
        for lane in 0..LANES {
            self.sum[lane] += later.sum[lane];
            self.squares[lane] += later.squares[lane];
            if later.most[lane] > self.most[lane] {
                (self.most[lane], self.most_at[lane]) = (later.most[lane], later.most_at[lane]);
            }
            if later.least[lane] < self.least[lane] {
                (self.least[lane], self.least_at[lane]) = (later.least[lane], later.least_at[lane]);
            }
        }
    }

    /// Writes the aggregates of a row with so many messages.
    #[inline(always)]
    fn finish(&self, degree: u32, out: &mut [f32], width: usize, column: usize, len: usize) {
        let share = 1.0 / degree as f32;
        for lane in 0..len {
            let mean = self.sum[lane] * share;
            let variance = self.squares[lane] * share - mean * mean;
            out[column + lane] = mean;
            out[width + column + lane] = self.most[lane];
            out[2 * width + column + lane] = self.least[lane];
            out[3 * width + column + lane] =
                (if variance > LEAST_VARIANCE { variance } else { LEAST_VARIANCE }).sqrt();
        }
    }

    /// Notes which edges of a row decided its maximum and minimum; `edges` are the row's masks.
    fn mark(&self, edges: &mut [u32], starts: Option<&mut [u32]>, words: usize, word: usize, len: usize) {
        let mut start = [0, 0];
        for (which, places) in [&self.most_at, &self.least_at].into_iter().enumerate() {
            for (lane, &at) in places[..len].iter().enumerate() {
                match at {
                    START => start[which] |= 1 << lane,
                    ZERO => {}
                    edge => edges[(edge as usize * words + word) * 2 + which] |= 1 << lane,
                }
            }
        }
        if let Some(starts) = starts {
            starts[2 * word..2 * word + 2].copy_from_slice(&start);
        }
    }
}

pub(super) fn forward(
    cpu: &Cpu,
    reach: &Reach,
    sizes: Sizes,
    inputs: [&Buffer<f32>; 3],
    out: &mut Buffer<f32>,
    masks: Option<&mut Masks>,
) {
    let view = View::new(reach, sizes, inputs);
    let Sizes { width, words, after, .. } = sizes;
    let mut parts = vec![Found::neutral(); after.slots * words];
    let (mut no_edges, mut no_starts) = (Vec::new(), Vec::new());
    let marking = masks.is_some();
    let (edge_masks, start_masks) = match masks {
        Some(masks) => (masks.edges.host_mut(), masks.starts.host_mut()),
        None => (no_edges.as_mut_slice(), no_starts.as_mut_slice()),
    };
    let (out, slots) = (Disjoint::new(out.host_mut()), Disjoint::new(&mut parts));
    let (edge_masks, start_masks) = (Disjoint::new(edge_masks), Disjoint::new(start_masks));
    // SAFETY, of all parts: an item has its own edges and its own slot, and only one item, or one task below for
    // a row of several items, finishes a row.
    let row_marks = |row: usize, found: &Found, word: usize, len: usize, degree: usize| {
        let first = view.row_edges[row] as usize;
        let edges = unsafe { edge_masks.part(first * words * 2..(first + degree) * words * 2) };
        let query = view.row_queries[row] as usize;
        let starts = (row < reach.queries())
            .then(|| unsafe { start_masks.part(query * words * 2..(query + 1) * words * 2) });
        found.mark(edges, starts, words, word, len);
    };
    let finish = |row: usize, found: &Found, word: usize, len: usize| {
        let out = unsafe { out.part(row * 4 * width..(row + 1) * 4 * width) };
        found.finish(view.row_degrees[row], out, width, word * LANES, len);
        if marking {
            row_marks(row, found, word, len, view.edges.edges_of(view.row_nodes[row] as usize).len());
        }
    };
    cpu.each(after.items.div_ceil(ITEMS), |task| {
        simd::vectorise(
            #[inline(always)]
            || {
                for at in task * ITEMS..((task + 1) * ITEMS).min(after.items) {
                    let item = view.item(at);
                    if marking {
                        let first = view.row_edges[item.row] as usize + item.range.start - item.first;
                        let range = first * words * 2..(first + item.range.len()) * words * 2;
                        unsafe { edge_masks.part(range) }.fill(0);
                    }
                    for word in 0..words {
                        let len = LANES.min(width - word * LANES);
                        // A constant length lets the compiler keep the sums in registers.
                        let found = match len {
                            LANES => view.gather(&item, word * LANES, LANES),
                            len => view.gather(&item, word * LANES, len),
                        };
                        match item.slot {
                            NONE => finish(item.row, &found, word, len),
                            slot => {
                                let slot = slot as usize * words + word;
                                let place = unsafe { slots.part(slot..slot + 1) };
                                place[0] = found;
                            }
                        }
                    }
                }
            },
        )
    });
    let (big_rows, big_slots) = (reach.big_rows.buffer().host(), reach.big_slots.buffer().host());
    cpu.each(after.bigs, |big| {
        for word in 0..words {
            let range = big_slots[big] as usize..big_slots[big + 1] as usize;
            let mut all = Found::neutral();
            for slot in range {
                all.combine(&unsafe { slots.part(slot * words + word..slot * words + word + 1) }[0]);
            }
            finish(big_rows[big] as usize, &all, word, LANES.min(width - word * LANES));
        }
    });
}

pub(super) fn backward(
    cpu: &Cpu,
    reach: &Reach,
    sizes: Sizes,
    inputs: [&Buffer<f32>; 3],
    given: Given,
    slopes: &mut Slopes,
) {
    let view = View::new(reach, sizes, inputs);
    let Given { mut gradient, output, masks } = given;
    let (width, output) = (sizes.width, output.host());
    cpu.rows(gradient.host_mut(), 4 * width, |first, gradient| {
        for (index, gradient) in gradient.chunks_exact_mut(4 * width).enumerate() {
            let row = first + index;
            message_slopes(gradient, &output[row * 4 * width..][..4 * width], view.row_degrees[row], width);
        }
    });
    let gradient = gradient.host();
    let (edge_masks, start_masks) = (masks.edges.host(), masks.starts.host());
    for (query, slope) in slopes.start.host_mut().chunks_exact_mut(width.max(1)).enumerate() {
        let row = &gradient[query * 4 * width..][..4 * width];
        for column in 0..width {
            let at = (query * sizes.words + column / LANES) * 2;
            let bit = |which: usize| start_masks[at + which] >> (column % LANES) & 1 == 1;
            let x = view.start[query * width + column];
            slope[column] = row[column]
                + row[3 * width + column] * x
                + if bit(0) { row[width + column] } else { 0.0 }
                + if bit(1) { row[2 * width + column] } else { 0.0 };
        }
    }
    if let Some(edges) = &mut slopes.edges {
        trace(&view, gradient, edge_masks, edges.host_mut());
    }
    let sums = to_states(cpu, &view, gradient, edge_masks, slopes);
    to_weights(cpu, &view, &sums, slopes);
    cpu.floats().give(sums);
}

/// Turns the slopes of mean and deviation into the two factors `a` and `b` of a message's slope, in their places.
fn message_slopes(gradient: &mut [f32], output: &[f32], degree: u32, width: usize) {
    let share = 1.0 / degree as f32;
    for column in 0..width {
        let (mean, deviation) = (output[column], output[3 * width + column]);
        let slope = gradient[3 * width + column];
        let factor = if deviation > FREE_DEVIATION { slope / deviation * share } else { 0.0 };
        gradient[3 * width + column] = factor;
        gradient[column] = gradient[column] * share - factor * mean;
    }
}

/// The slope of a weight of one that the message of each edge has.
fn trace(view: &View, gradient: &[f32], masks: &[u32], slopes: &mut [f32]) {
    let Sizes { width, words, before, after, .. } = view.sizes;
    for item in (0..before.items).map(|at| view.item(at)) {
        let weights = &view.weights[item.query * view.sizes.weight_step..];
        for edge in item.range.clone() {
            let row = view.places_of(item.query)[view.edges.others.host[edge] as usize] as usize;
            let out = &mut slopes[view.row_edges[item.row] as usize + edge - item.first];
            *out = 0.0;
            if row >= after.rows || view.is_gone(&item, edge) {
                continue;
            }
            let kind = view.edges.links.host[edge] as usize;
            let back = view.row_edges[row] as usize + view.edges.backs.host[edge] as usize;
            for column in 0..width {
                let x = view.state[item.row * width + column] * weights[kind * width + column];
                let slope = |part: usize| gradient[row * 4 * width + part * width + column];
                let bit = |which: usize| {
                    masks[(back * words + column / LANES) * 2 + which] >> (column % LANES) & 1 == 1
                };
                let most = if bit(0) { slope(1) } else { 0.0 };
                let least = if bit(1) { slope(2) } else { 0.0 };
                *out += x * (slope(0) + slope(3) * x + most + least);
            }
        }
    }
}

/// The slopes of the state; gives the sums of the messages' slopes, piece by piece.
fn to_states(cpu: &Cpu, view: &View, gradient: &[f32], masks: &[u32], slopes: &mut Slopes) -> Vec<f32> {
    let Sizes { width, words, before, .. } = view.sizes;
    let mut sums = cpu.floats().take(before.pieces * width);
    let mut parts = vec![0.0f32; before.slots * width];
    let slope = Disjoint::new(slopes.state.host_mut());
    let (pieces, slots) = (Disjoint::new(&mut sums), Disjoint::new(&mut parts));
    // SAFETY, of all parts: pieces and slots belong to one item, and a row without a slot to one item too.
    cpu.each(before.items.div_ceil(ITEMS), |task| {
        simd::vectorise(
            #[inline(always)]
            || {
                for at in task * ITEMS..((task + 1) * ITEMS).min(before.items) {
                    let item = view.item(at);
                    let node_pieces = view.edges.piece_starts.host[item.node] as usize;
                    let range = view.edges.item_pieces.host[item.id] as usize - node_pieces
                        ..view.edges.item_pieces.host[item.id + 1] as usize - node_pieces;
                    let first = view.row_pieces[item.row] as usize;
                    let own =
                        unsafe { pieces.part((first + range.start) * width..(first + range.end) * width) };
                    let out = match item.slot {
                        NONE => unsafe { slope.part(item.row * width..(item.row + 1) * width) },
                        slot => unsafe { slots.part(slot as usize * width..(slot as usize + 1) * width) },
                    };
                    let node_pieces = node_pieces + range.start;
                    for word in 0..words {
                        let len = LANES.min(width - word * LANES);
                        match len {
                            LANES => view.send(&item, node_pieces, gradient, masks, word, LANES, own, out),
                            len => view.send(&item, node_pieces, gradient, masks, word, len, own, out),
                        }
                    }
                }
            },
        )
    });
    let (big_rows, big_slots) = (view.reach.big_rows.buffer().host(), view.reach.big_slots.buffer().host());
    cpu.each(before.bigs, |big| {
        let row = big_rows[big] as usize;
        let out = unsafe { slope.part(row * width..(row + 1) * width) };
        out.fill(0.0);
        for slot in big_slots[big] as usize..big_slots[big + 1] as usize {
            simd::add(out, unsafe { slots.part(slot * width..(slot + 1) * width) });
        }
    });
    sums
}

impl View<'_> {
    /// The slopes of the messages that an item's row sends: their sum for each piece, and all of them times their
    /// weights.
    #[allow(clippy::too_many_arguments, reason = "an inner loop, inlined twice")]
    #[inline(always)]
    fn send(
        &self,
        item: &Item,
        first_piece: usize,
        gradient: &[f32],
        masks: &[u32],
        word: usize,
        len: usize,
        pieces: &mut [f32],
        out: &mut [f32],
    ) {
        let (width, words, column) = (self.sizes.width, self.sizes.words, word * LANES);
        let places = self.places_of(item.query);
        let weights = &self.weights[item.query * self.sizes.weight_step..];
        let concerned = self.reach.asks[item.query].concerns(item.node as u32);
        let state = &self.state[item.row * width + column..][..len];
        let mut total = [0.0f32; LANES];
        for (index, piece) in pieces.chunks_exact_mut(width).enumerate() {
            let bounds = &self.edges.piece_edges.host[first_piece + index..first_piece + index + 2];
            let kind = self.edges.links.host[bounds[0] as usize] as usize;
            let weight = &weights[kind * width + column..][..len];
            let (mut constant, mut linear) = ([0.0f32; LANES], [0.0f32; LANES]);
            for edge in bounds[0] as usize..bounds[1] as usize {
                let row = places[self.edges.others.host[edge] as usize] as usize;
                if row >= self.sizes.after.rows || (concerned && self.is_gone(item, edge)) {
                    continue;
                }
                let row_slopes = &gradient[row * 4 * width..][..4 * width];
                let (a, b) = (&row_slopes[column..][..len], &row_slopes[3 * width + column..][..len]);
                for lane in 0..len {
                    constant[lane] += a[lane];
                    linear[lane] += b[lane];
                }
                let edge = self.row_edges[row] as usize + self.edges.backs.host[edge] as usize;
                for which in 0..2 {
                    let mut mask = masks[(edge * words + word) * 2 + which];
                    while mask != 0 {
                        let lane = mask.trailing_zeros() as usize;
                        constant[lane] += row_slopes[(1 + which) * width + column + lane];
                        mask &= mask - 1;
                    }
                }
            }
            let piece = &mut piece[column..][..len];
            for lane in 0..len {
                let sum = linear[lane].mul_add(state[lane] * weight[lane], constant[lane]);
                piece[lane] = sum;
                total[lane] = sum.mul_add(weight[lane], total[lane]);
            }
        }
        out[column..][..len].copy_from_slice(&total[..len]);
    }
}

/// The slopes of the weights, from the sums of the messages' slopes.
pub(super) fn to_weights(cpu: &Cpu, view: &View, sums: &[f32], slopes: &mut Slopes) {
    let Sizes { width, before, weight_step, .. } = view.sizes;
    let (chunks, queries, edges) = (view.edges.chunks(), view.reach.queries(), view.edges);
    let mut parts = cpu.floats().take(queries * chunks * width);
    cpu.zip([(&mut parts, width)], 16, |first, [parts]| {
        simd::vectorise(
            #[inline(always)]
            || {
                for (index, part) in parts.chunks_exact_mut(width).enumerate() {
                    let (query, chunk) = ((first + index) / chunks, (first + index) % chunks);
                    let places = view.places_of(query);
                    part.fill(0.0);
                    let range =
                        edges.chunk_starts.host[chunk] as usize..edges.chunk_starts.host[chunk + 1] as usize;
                    for at in range {
                        let row = places[edges.kind_nodes.host[at] as usize] as usize;
                        if row >= before.rows {
                            continue;
                        }
                        let piece = view.row_pieces[row] as usize + edges.kind_pieces.host[at] as usize;
                        let (sum, state) =
                            (&sums[piece * width..][..width], &view.state[row * width..][..width]);
                        for column in 0..width {
                            part[column] = sum[column].mul_add(state[column], part[column]);
                        }
                    }
                }
            },
        )
    });
    let bounds = &edges.kind_chunks.host;
    let kinds = edges.kinds;
    cpu.zip([(slopes.weights.host_mut(), width)], 64, |first, [slopes]| {
        for (index, slope) in slopes.chunks_exact_mut(width).enumerate() {
            let (own, kind) = ((first + index) / kinds, (first + index) % kinds);
            let asked = if weight_step > 0 { own..own + 1 } else { 0..queries };
            slope.fill(0.0);
            for query in asked {
                for chunk in bounds[kind] as usize..bounds[kind + 1] as usize {
                    simd::add(slope, &parts[(query * chunks + chunk) * width..][..width]);
                }
            }
        }
    });
    cpu.floats().give(parts);
}
