//! The backward pass: from the derivatives of the aggregates to those of states, weights and starts.
#![allow(unsafe_code)]

use pulp::{Simd, WithSimd};

use super::super::{Derivatives, FREE_DEVIATION, LANES, Sizes};
use super::found::pair;
use super::weights::to_weights;
use super::{Given, ITEMS, Item, View};
use crate::cpu::disjoint::Disjoint;
use crate::cpu::{Cpu, simd};
use crate::memory::Buffer;
use crate::reach::{NONE, Reach};

pub(in super::super) fn backward(
    cpu: &Cpu,
    reach: &Reach,
    sizes: Sizes,
    inputs: [&Buffer<f32>; 3],
    given: Given,
    derivatives: &mut Derivatives,
) {
    let view = View::new(reach, sizes, inputs);
    let Given { mut gradient, output, masks } = given;
    let (width, output) = (sizes.width, output.host());
    cpu.rows(gradient.host_mut(), 4 * width, |first, gradient| {
        for (index, gradient) in gradient.chunks_exact_mut(4 * width).enumerate() {
            let row = first + index;
            message_derivatives(
                gradient,
                &output[row * 4 * width..][..4 * width],
                view.row_degrees[row],
                width,
            );
        }
    });
    let gradient = gradient.host();
    let (edge_masks, start_masks) = (masks.edges.host(), masks.starts.host());
    for (query, derivative) in derivatives.start.host_mut().chunks_exact_mut(width.max(1)).enumerate() {
        let row = &gradient[query * 4 * width..][..4 * width];
        for column in 0..width {
            let at = (query * sizes.words + column / LANES) * 2;
            let bit = |which: usize| start_masks[at + which] >> (column % LANES) & 1 == 1;
            let x = view.start[query * width + column];
            derivative[column] = row[column]
                + row[3 * width + column] * x
                + if bit(0) { row[width + column] } else { 0.0 }
                + if bit(1) { row[2 * width + column] } else { 0.0 };
        }
    }
    if let Some(edges) = &mut derivatives.edges {
        trace(&view, gradient, edge_masks, edges.host_mut());
    }
    let sums = to_states(cpu, &view, gradient, edge_masks, derivatives);
    to_weights(cpu, &view, &sums, derivatives);
    cpu.floats().give(sums);
}

/// Replaces, in place, the derivatives of mean and deviation by the two factors `a` and `b` of a message's
/// derivative.
pub(in super::super) fn message_derivatives(gradient: &mut [f32], output: &[f32], degree: u32, width: usize) {
    let share = 1.0 / degree as f32;
    for column in 0..width {
        let (mean, deviation) = (output[column], output[3 * width + column]);
        let derivative = gradient[3 * width + column];
        let factor = if deviation > FREE_DEVIATION { derivative / deviation * share } else { 0.0 };
        gradient[3 * width + column] = factor;
        gradient[column] = gradient[column] * share - factor * mean;
    }
}

/// The derivative with respect to a weight of 1 on the message of each edge.
fn trace(view: &View, gradient: &[f32], masks: &[u32], derivatives: &mut [f32]) {
    let Sizes { width, words, before, after, .. } = view.sizes;
    for item in (0..before.items).map(|at| view.item(at)) {
        let weights = &view.weights[item.query * view.sizes.weight_step..];
        for edge in item.range.clone() {
            let row = view.places_of(item.query)[view.edges.others.host[edge] as usize] as usize;
            let out = &mut derivatives[view.row_edges[item.row] as usize + edge - item.first];
            *out = 0.0;
            if row >= after.rows || view.is_gone(&item, edge) {
                continue;
            }
            let kind = view.edges.links.host[edge] as usize;
            let back = view.row_edges[row] as usize + view.edges.backs.host[edge] as usize;
            for column in 0..width {
                let x = view.state[item.row * width + column] * weights[kind * width + column];
                let derivative = |part: usize| gradient[row * 4 * width + part * width + column];
                let bit = |which: usize| {
                    masks[(back * words + column / LANES) * 2 + which] >> (column % LANES) & 1 == 1
                };
                let most = if bit(0) { derivative(1) } else { 0.0 };
                let least = if bit(1) { derivative(2) } else { 0.0 };
                *out += x * (derivative(0) + derivative(3) * x + most + least);
            }
        }
    }
}

/// The derivatives of the state. Returns the sums of the messages' derivatives per piece.
fn to_states(
    cpu: &Cpu,
    view: &View,
    gradient: &[f32],
    masks: &[u32],
    derivatives: &mut Derivatives,
) -> Vec<f32> {
    let Sizes { width, before, .. } = view.sizes;
    let mut sums = cpu.floats().take(before.pieces * width);
    let mut parts = vec![0.0f32; before.slots * width];
    let states = Disjoint::new(derivatives.state.host_mut());
    let (pieces, slots) = (Disjoint::new(&mut sums), Disjoint::new(&mut parts));
    let output = Output { states: &states, pieces: &pieces, slots: &slots };
    cpu.each(before.items.div_ceil(ITEMS), |task| {
        let range = task * ITEMS..((task + 1) * ITEMS).min(before.items);
        pulp::Arch::new().dispatch(Items { view, gradient, masks, output, range });
    });
    let (big_rows, big_slots) = (view.reach.big_rows.buffer().host(), view.reach.big_slots.buffer().host());
    cpu.each(before.bigs, |big| {
        let row = big_rows[big] as usize;
        // SAFETY: a row of several items belongs to one task, and all items are done.
        let out = unsafe { states.part(row * width..(row + 1) * width) };
        out.fill(0.0);
        for slot in big_slots[big] as usize..big_slots[big + 1] as usize {
            simd::add(out, unsafe { slots.part(slot * width..(slot + 1) * width) });
        }
    });
    sums
}

/// Where derivatives are written: those of rows, of pieces, and of the items of rows that have several.
#[derive(Clone, Copy)]
struct Output<'a> {
    states: &'a Disjoint<'a, f32>,
    pieces: &'a Disjoint<'a, f32>,
    slots: &'a Disjoint<'a, f32>,
}

/// A range of items, processed in order.
struct Items<'a> {
    view: &'a View<'a>,
    gradient: &'a [f32],
    masks: &'a [u32],
    output: Output<'a>,
    range: std::ops::Range<usize>,
}

impl WithSimd for Items<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (view, width) = (self.view, self.view.sizes.width);
        let Sizes { words, .. } = view.sizes;
        let slopes = Slopes { gradient: self.gradient, masks: self.masks, width, words };
        let mut receivers = Vec::new();
        for at in self.range.clone() {
            let item = view.item(at);
            let first_piece = view.edges.piece_starts.host[item.node];
            let range = view.edges.item_pieces.host[item.id]..view.edges.item_pieces.host[item.id + 1];
            // SAFETY, for all parts: pieces and slots belong to one item, and a row without a slot belongs to one
            // item too.
            let out = match item.slot {
                NONE => unsafe { self.output.states.part(item.row * width..(item.row + 1) * width) },
                slot => unsafe { self.output.slots.part(slot as usize * width..(slot as usize + 1) * width) },
            };
            out.fill(0.0);
            for piece in range {
                view.receivers(&item, piece as usize, &mut receivers);
                let place = (view.row_pieces[item.row] + piece - first_piece) as usize;
                let sum = unsafe { self.output.pieces.part(place * width..(place + 1) * width) };
                let kind = view.edges.links.host[view.edges.piece_edges.host[piece as usize] as usize];
                let state = &view.state[item.row * width..][..width];
                let weight = item.query * view.sizes.weight_step + kind as usize * width;
                let weight = &view.weights[weight..][..width];
                slopes.send(simd, [state, weight], &receivers, sum, out);
            }
        }
    }
}

/// An outgoing message: the row that receives it, and the index of the edge's masks there.
#[derive(Clone, Copy)]
pub(in super::super) struct Receiver {
    pub(in super::super) row: u32,
    pub(in super::super) edge: u32,
}

impl View<'_> {
    /// Lists the messages that an item sends along a piece.
    #[inline(always)]
    fn receivers(&self, item: &Item, piece: usize, list: &mut Vec<Receiver>) {
        list.clear();
        let places = self.places_of(item.query);
        let concerned = self.reach.missing(item.query).concerns(item.node as u32);
        let bounds = &self.edges.piece_edges.host[piece..piece + 2];
        for edge in bounds[0] as usize..bounds[1] as usize {
            let row = places[self.edges.others.host[edge] as usize];
            if (row as usize) < self.sizes.after.rows && !(concerned && self.is_gone(item, edge)) {
                let edge = self.row_edges[row as usize] + self.edges.backs.host[edge];
                list.push(Receiver { row, edge });
            }
        }
    }
}

/// The derivatives of the aggregates, as those of a message need them.
#[derive(Clone, Copy)]
pub(in super::super) struct Slopes<'a> {
    /// After [`message_derivatives`].
    pub(in super::super) gradient: &'a [f32],
    pub(in super::super) masks: &'a [u32],
    pub(in super::super) width: usize,
    pub(in super::super) words: usize,
}

impl Slopes<'_> {
    /// Sums the derivatives of the equal messages that a row sends to `receivers`, and adds the sum times their weight
    /// to `out`.
    #[inline(always)]
    pub(in super::super) fn send<S: Simd>(
        &self,
        simd: S,
        [state, weight]: [&[f32]; 2],
        receivers: &[Receiver],
        sum: &mut [f32],
        out: &mut [f32],
    ) {
        let Slopes { width, words, .. } = *self;
        for word in 0..words {
            let (column, len) = (word * LANES, LANES.min(width - word * LANES));
            let (mut constant, mut linear) = ([0.0f32; LANES], [0.0f32; LANES]);
            let both = 2 * S::F32_LANES;
            let mut lane = 0;
            while lane + both <= len {
                let (mut a, mut b) = ([simd.splat_f32s(0.0); 2], [simd.splat_f32s(0.0); 2]);
                for receiver in receivers {
                    let first = receiver.row as usize * 4 * width + column + lane;
                    let more_a = pair::<S>(&self.gradient[first..][..both]);
                    let more_b = pair::<S>(&self.gradient[first + 3 * width..][..both]);
                    for half in 0..2 {
                        a[half] = simd.add_f32s(a[half], more_a[half]);
                        b[half] = simd.add_f32s(b[half], more_b[half]);
                    }
                }
                S::as_mut_simd_f32s(&mut constant[lane..lane + both]).0.copy_from_slice(&a);
                S::as_mut_simd_f32s(&mut linear[lane..lane + both]).0.copy_from_slice(&b);
                lane += both;
            }
            for receiver in receivers {
                let row = &self.gradient[receiver.row as usize * 4 * width..][..4 * width];
                for lane in lane..len {
                    constant[lane] += row[column + lane];
                    linear[lane] += row[3 * width + column + lane];
                }
                for which in 0..2 {
                    let mut mask = self.masks[(receiver.edge as usize * words + word) * 2 + which];
                    while mask != 0 {
                        let lane = mask.trailing_zeros() as usize;
                        constant[lane] += row[(1 + which) * width + column + lane];
                        mask &= mask - 1;
                    }
                }
            }
            let (state, weight) = (&state[column..][..len], &weight[column..][..len]);
            let (sum, out) = (&mut sum[column..][..len], &mut out[column..][..len]);
            for lane in 0..len {
                sum[lane] = linear[lane].mul_add(state[lane] * weight[lane], constant[lane]);
                out[lane] = sum[lane].mul_add(weight[lane], out[lane]);
            }
        }
    }
}
