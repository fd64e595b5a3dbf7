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
use crate::tensor::cpu::disjoint::Disjoint;
use crate::tensor::cpu::{Cpu, simd};
use crate::tensor::cuda::Cuda;
use crate::tensor::cuda::launch::{BLOCK, arguments};
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::memory::Buffer;
use crate::tensor::reach::{NONE, Reach};
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::Tensor;

pub(crate) const KERNELS: &str = r#"
extern "C" __global__ void gated(const Net* nets, const float* __restrict__ state, const float* __restrict__ weights, u32 weight_step, const float* start,
                                 const float* __restrict__ gates, u32 before, u32 items, u32 width, float* out, float* parts) {
    u32 item = WARP;
    if (item >= items) return;
    const Net& net = *nets;
    u32 row = net.item_rows[item], id = net.item_ids[item], slot = net.item_slots[item];
    u32 node = net.row_nodes[row], query = net.row_queries[row];
    u32 from = net.piece_edges[net.item_pieces[id]], end = net.piece_edges[net.item_pieces[id + 1]];
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1);
    Gap gap = gap_of(net, query, node);
    const u32* __restrict__ places = net.places + (u64)query * net.nodes;
    const float* __restrict__ w = weights + (u64)query * weight_step + c;
    const float* __restrict__ h = state + c;
    float sum = id == net.item_starts[node] && row < net.queries ? start[(u64)query * width + c] : 0.0f;
    for (u32 e = from; e < end; e += 32) {
        u32 j = NONE, link = 0;
        float gate = 0.0f;
        if (e + LANE < end) {
            u32 other = net.others[e + LANE];
            link = net.links[e + LANE] ^ 1u;
            j = places[other];
            if (j >= before || (gap.to != NONE && is_gone(gap, link ^ 1u, other))) j = NONE;
            else gate = gates[net.row_pieces[j] + net.edge_pieces[net.starts[other] + net.backs[e + LANE]]];
        }
        u32 count = min(32u, end - e);
        for (u32 k = 0; k < count; k += TOGETHER) {
            // Where nothing comes the gate is zero, and the first row is read in vain.
            float x[TOGETHER], y[TOGETHER];
            #pragma unroll
            for (u32 u = 0; u < TOGETHER; u++) {
                u32 from_row = __shfl_sync(0xffffffffu, j, k + u), kind = __shfl_sync(0xffffffffu, link, k + u);
                x[u] = h[(u64)(from_row == NONE ? 0 : from_row) * width];
                y[u] = w[kind * width];
            }
            #pragma unroll
            for (u32 u = 0; u < TOGETHER; u++) sum = fmaf(__shfl_sync(0xffffffffu, gate, k + u) * x[u], y[u], sum);
        }
    }
    if (column >= width) return;
    if (slot == NONE) out[(u64)row * width + column] = sum;
    else parts[(u64)slot * width + column] = sum;
}
extern "C" __global__ void gated_back(const Net* nets, const float* __restrict__ state, const float* __restrict__ weights, u32 weight_step,
                                      const float* __restrict__ gates, const float* __restrict__ gradient, u32 rows, u32 items, u32 width,
                                      float* sums, float* derivative, float* parts, float* of_gates) {
    u32 item = WARP;
    if (item >= items) return;
    const Net& net = *nets;
    u32 row = net.item_rows[item], id = net.item_ids[item], slot = net.item_slots[item];
    u32 node = net.row_nodes[row], query = net.row_queries[row], first = net.piece_starts[node];
    Gap gap = gap_of(net, query, node);
    const u32* __restrict__ places = net.places + (u64)query * net.nodes;
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1);
    bool live = column < width;
    float h = state[(u64)row * width + c], total = 0.0f;
    for (u32 piece = net.item_pieces[id]; piece < net.item_pieces[id + 1]; piece++) {
        u32 at = net.row_pieces[row] + piece - first, kind = net.links[net.piece_edges[piece]];
        float weight = weights[(u64)query * weight_step + kind * width + c], sum = 0.0f;
        for (u32 e = net.piece_edges[piece]; e < net.piece_edges[piece + 1]; e++) {
            u32 other = net.others[e], i = places[other];
            if (i < rows && !(gap.to != NONE && is_gone(gap, kind, other))) sum += gradient[(u64)i * width + c];
        }
        float of_gate = warp_sum(live ? sum * h * weight : 0.0f);
        if (LANE == 0) of_gates[(u64)at * gridDim.y + blockIdx.y] = of_gate;
        sum *= gates[at];
        if (live) sums[(u64)at * width + column] = sum;
        total = fmaf(sum, weight, total);
    }
    if (!live) return;
    if (slot == NONE) derivative[(u64)row * width + column] = total;
    else parts[(u64)slot * width + column] = total;
}
// The parts of the groups of columns, added up in order.
extern "C" __global__ void gated_gates(const float* parts, u32 n, u32 words, float* out) {
    u32 i = THREAD;
    if (i >= n) return;
    float sum = 0.0f;
    for (u32 word = 0; word < words; word++) sum += parts[(u64)i * words + word];
    out[i] = sum;
}
"#;

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
                    let concerned = view.reach.asks[item.query].concerns(item.node as u32);
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
                    let concerned = view.reach.asks[item.query].concerns(item.node as u32);
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
