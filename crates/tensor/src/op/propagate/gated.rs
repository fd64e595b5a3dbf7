//! The gated sum of messages: `Σ gate · state[s] ⊙ weights[k]` over a row's edges, plus the start where a query
//! starts.
//!
//! Cheaper than the four aggregates of `propagate`: one sum forward, one row per edge backward, no masks. The gates
//! are those of [`Tape::gate`], one per piece.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::cpu::{ITEMS, View, to_weights};
use super::cuda::{grid, to_weights as to_weights_on_cuda};
use super::{Derivatives, Sizes};
use crate::cpu::disjoint::Disjoint;
use crate::cpu::{Cpu, simd};
use crate::cuda::Cuda;
use crate::cuda::launch::{BLOCK, arguments};
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::reach::{NONE, Reach};
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

struct Gated {
    state: Var,
    weights: Var,
    start: Var,
    gates: Var,
    output: Var,
    reach: Arc<Reach>,
    sizes: Sizes,
}

impl Tape<'_> {
    /// The messages of layer `layer` (from 1) of `reach`, each multiplied by its gate, summed: `[rows, width]`. The
    /// other arguments are those of [`Tape::propagate`].
    pub fn gated_sum(
        &mut self,
        state: Var,
        weights: Var,
        start: Var,
        gates: Var,
        (reach, layer): (&Arc<Reach>, usize),
    ) -> Result<Var> {
        let sizes = self.message_sizes("gated_sum", [state, weights, start], reach, layer)?;
        let Sizes { before, after, width, .. } = sizes;
        let shape = self.input("gated_sum", gates)?.shape();
        expect_shape(
            shape == [before.pieces, 1],
            "gated_sum",
            "gates and pieces",
            &shape,
            &[before.pieces, 1],
        )?;
        let device = self.device().clone();
        let mut out = device.allocate::<f32>(after.rows * width)?;
        let inputs = [state, weights, start];
        let values = inputs.map(|input| self.at(input).buffer());
        let factors = self.at(gates).buffer();
        match device.backend() {
            Backend::Cpu(cpu) => forward(cpu, &View::new(reach, sizes, values), factors.host(), &mut out),
            Backend::Cuda(cuda) => forward_on_cuda(cuda, reach, sizes, values, factors, &mut out)?,
        }
        let (output, reach) = (Tensor::of(out, after.rows, width), reach.clone());
        let inputs = [state, weights, start, gates];
        Ok(self.record(output, &inputs, |output| Gated {
            state,
            weights,
            start,
            gates,
            output,
            reach,
            sizes,
        }))
    }
}

/// Adds up the slots of every row of several items.
fn combine(cpu: &Cpu, reach: &Reach, bigs: usize, width: usize, parts: &[f32], out: &Disjoint<f32>) {
    let (rows, slots) = (reach.big_rows.buffer().host(), reach.big_slots.buffer().host());
    cpu.each(bigs, |big| {
        let row = rows[big] as usize;
        // SAFETY: there is one task per row, and no row occurs twice.
        let out = unsafe { out.part(row * width..(row + 1) * width) };
        out.fill(0.0);
        for slot in slots[big] as usize..slots[big + 1] as usize {
            simd::add(out, &parts[slot * width..(slot + 1) * width]);
        }
    });
}

fn forward(cpu: &Cpu, view: &View, gates: &[f32], out: &mut Buffer<f32>) {
    let Sizes { before, after, width, .. } = view.sizes;
    let mut parts = vec![0.0f32; after.slots * width];
    let (out, slots) = (Disjoint::new(out.host_mut()), Disjoint::new(&mut parts));
    cpu.each(after.items.div_ceil(ITEMS), |task| {
        simd::vectorise(
            #[inline(always)]
            || {
                for at in task * ITEMS..((task + 1) * ITEMS).min(after.items) {
                    let item = view.item(at);
                    // SAFETY: a row without a slot belongs to one item, and so does a slot.
                    let sum = match item.slot {
                        NONE => unsafe { out.part(item.row * width..(item.row + 1) * width) },
                        slot => unsafe { slots.part(slot as usize * width..(slot as usize + 1) * width) },
                    };
                    sum.fill(0.0);
                    let begins = view.edges.item_starts.host[item.node] as usize == item.id;
                    if begins && item.row < view.reach.queries() {
                        sum.copy_from_slice(&view.start[item.query * width..][..width]);
                    }
                    let weights = &view.weights[item.query * view.sizes.weight_step..];
                    let concerned = view.reach.missing(item.query).concerns(item.node as u32);
                    for edge in item.range.clone() {
                        let other = view.edges.others.host[edge] as usize;
                        let row = view.places_of(item.query)[other] as usize;
                        if row >= before.rows || (concerned && view.is_gone(&item, edge)) {
                            continue;
                        }
                        let back = view.edges.starts.host[other] + view.edges.backs.host[edge];
                        let piece = view.row_pieces[row] + view.edges.edge_pieces.host[back as usize];
                        let kind = (view.edges.links.host[edge] ^ 1) as usize;
                        let (gate, state) = (gates[piece as usize], &view.state[row * width..][..width]);
                        let weight = &weights[kind * width..][..width];
                        for column in 0..width {
                            sum[column] = (gate * state[column]).mul_add(weight[column], sum[column]);
                        }
                    }
                }
            },
        )
    });
    combine(cpu, view.reach, after.bigs, width, &parts, &out);
}

fn forward_on_cuda(
    cuda: &Cuda,
    reach: &Reach,
    sizes: Sizes,
    [state, weights, start]: [&Buffer<f32>; 3],
    gates: &Buffer<f32>,
    out: &mut Buffer<f32>,
) -> Result<()> {
    let Sizes { before, after, width, weight_step, .. } = sizes;
    let net = reach.descriptor.as_ref();
    let mut parts = state.device().allocate::<f32>(after.slots * width)?;
    let (rows, items) = (before.rows, after.items);
    let arguments =
        arguments![net, state, weights, weight_step, start, gates, rows, items, width, &mut *out, &mut parts];
    cuda.blocks("gated", grid(items, sizes), BLOCK, arguments)?;
    let arguments = arguments![net, after.bigs, width, &parts, out];
    cuda.blocks("propagate_big_back", grid(after.bigs, sizes), BLOCK, arguments)
}

/// The derivatives of state and gates. Returns the sums of the messages' derivatives per piece.
fn backward(
    cpu: &Cpu,
    view: &View,
    gates: &[f32],
    gradient: &[f32],
    of_state: &mut [f32],
    of_gates: &mut [f32],
) -> Vec<f32> {
    let Sizes { before, after, width, .. } = view.sizes;
    let mut sums = cpu.floats().take(before.pieces * width);
    let mut parts = vec![0.0f32; before.slots * width];
    let (pieces, slots) = (Disjoint::new(&mut sums), Disjoint::new(&mut parts));
    let (of_state, of_gates) = (Disjoint::new(of_state), Disjoint::new(of_gates));
    cpu.each(before.items.div_ceil(ITEMS), |task| {
        simd::vectorise(
            #[inline(always)]
            || {
                for at in task * ITEMS..((task + 1) * ITEMS).min(before.items) {
                    let item = view.item(at);
                    // SAFETY, for all parts: a row without a slot, a slot, and a piece each belong to one item.
                    let total = match item.slot {
                        NONE => unsafe { of_state.part(item.row * width..(item.row + 1) * width) },
                        slot => unsafe { slots.part(slot as usize * width..(slot as usize + 1) * width) },
                    };
                    total.fill(0.0);
                    let weights = &view.weights[item.query * view.sizes.weight_step..];
                    let concerned = view.reach.missing(item.query).concerns(item.node as u32);
                    let state = &view.state[item.row * width..][..width];
                    let first = view.edges.piece_starts.host[item.node];
                    for piece in
                        view.edges.item_pieces.host[item.id]..view.edges.item_pieces.host[item.id + 1]
                    {
                        let place = (view.row_pieces[item.row] + piece - first) as usize;
                        let sum = unsafe { pieces.part(place * width..(place + 1) * width) };
                        sum.fill(0.0);
                        let bounds = &view.edges.piece_edges.host[piece as usize..piece as usize + 2];
                        for edge in bounds[0] as usize..bounds[1] as usize {
                            let row =
                                view.places_of(item.query)[view.edges.others.host[edge] as usize] as usize;
                            if row < after.rows && !(concerned && view.is_gone(&item, edge)) {
                                simd::add(sum, &gradient[row * width..][..width]);
                            }
                        }
                        let kind = view.edges.links.host[bounds[0] as usize] as usize;
                        let weight = &weights[kind * width..][..width];
                        let gate = unsafe { of_gates.part(place..place + 1) };
                        gate[0] = (0..width).map(|column| sum[column] * state[column] * weight[column]).sum();
                        for column in 0..width {
                            sum[column] *= gates[place];
                            total[column] = sum[column].mul_add(weight[column], total[column]);
                        }
                    }
                }
            },
        )
    });
    combine(cpu, view.reach, before.bigs, width, &parts, &of_state);
    sums
}

impl Gated {
    fn backward_on_cuda(
        &self,
        cuda: &Cuda,
        [state, weights]: [&Buffer<f32>; 2],
        (gates, gradient): (&Buffer<f32>, &Buffer<f32>),
        derivatives: &mut Derivatives,
        of_gates: &mut Buffer<f32>,
    ) -> Result<()> {
        let Sizes { before, after, width, words, weight_step, .. } = self.sizes;
        let (net, device) = (self.reach.descriptor.as_ref(), state.device());
        let mut sums = device.allocate::<f32>(before.pieces * width)?;
        let mut parts = device.allocate::<f32>(before.slots * width)?;
        let mut gate_parts = device.allocate::<f32>(before.pieces * words)?;
        let (rows, items) = (after.rows, before.items);
        let arguments = arguments![
            net,
            state,
            weights,
            weight_step,
            gates,
            gradient,
            rows,
            items,
            width,
            &mut sums,
            &mut derivatives.state,
            &mut parts,
            &mut gate_parts
        ];
        cuda.blocks("gated_back", grid(items, self.sizes), BLOCK, arguments)?;
        let arguments = arguments![net, before.bigs, width, &parts, &mut derivatives.state];
        cuda.blocks("propagate_big_back", grid(before.bigs, self.sizes), BLOCK, arguments)?;
        let arguments = arguments![&gate_parts, before.pieces, words, of_gates];
        cuda.threads("gated_gates", before.pieces, arguments)?;
        to_weights_on_cuda(cuda, &self.reach, self.sizes, state, &sums, &mut derivatives.weights)
    }
}

impl Operation for Gated {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let inputs = [self.state, self.weights, self.start].map(|input| flow.value(input));
        let gates = flow.value(self.gates);
        let (device, width) = (flow.device(), self.sizes.width);
        let length = |tensor: &Tensor| tensor.rows() * tensor.columns();
        let mut derivatives = Derivatives {
            state: device.allocate(length(&inputs[0]))?,
            weights: device.allocate(length(&inputs[1]))?,
            start: device.allocate(length(&inputs[2]))?,
            edges: None,
        };
        let mut of_gates = device.allocate::<f32>(length(&gates))?;
        let values = inputs.each_ref().map(Tensor::buffer);
        match device.backend() {
            Backend::Cpu(cpu) => {
                let view = View::new(&self.reach, self.sizes, values);
                let (gates, gradient) = (gates.buffer().host(), gradient.host());
                let count = self.reach.queries() * width;
                derivatives.start.host_mut().copy_from_slice(&gradient[..count]);
                let state = derivatives.state.host_mut();
                let sums = backward(cpu, &view, gates, gradient, state, of_gates.host_mut());
                to_weights(cpu, &view, &sums, &mut derivatives);
                cpu.floats().give(sums);
            }
            Backend::Cuda(cuda) => {
                // The first rows are the starts of the queries.
                let bytes = self.reach.queries() * width * size_of::<f32>();
                cuda.copy(derivatives.start.pointer(), gradient.pointer(), bytes)?;
                let given = (gates.buffer(), &gradient);
                self.backward_on_cuda(cuda, [values[0], values[1]], given, &mut derivatives, &mut of_gates)?;
            }
        }
        flow.add(self.gates, of_gates)?;
        flow.add(self.start, derivatives.start)?;
        flow.add(self.weights, derivatives.weights)?;
        flow.add(self.state, derivatives.state)
    }
}
