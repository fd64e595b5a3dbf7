//! One step of an LSTM layer, fused: products, gates and state in one operation.
//!
//! `[i f g o] = x · Wx + h · Wh + b`, `c' = σ(f) c + σ(i) tanh(g)`, `h' = σ(o) tanh(c')`.
//!
//! With peepholes the gates see the memory too, each unit its own: `i += pᵢ c`, `f += p_f c` and `o += pₒ c'`, element
//! by element.
//!
//! The previous state may have fewer rows than the step: walks that shared a state until now branch, and row `i`
//! continues from row `parents[i]`. The product with `Wh` is done once for each parent, not for each child.
//!
//! ```text
//! previous state            this step             parents = [0, 0, 0, 1]
//! row 0 ─ h · Wh ─┬───────▶ row 0
//!                 ├───────▶ row 1
//!                 └───────▶ row 2
//! row 1 ─ h · Wh ─────────▶ row 3
//! ```
//!
//! On the way back children add up at their parent, before the product with `Whᵀ`. The gates are kept after their
//! activations: `σ' = σ (1 − σ)` and `tanh' = 1 − tanh²` need nothing else.

use super::linear::{add_product_to_weight, column_sums};
use super::product::{Side, product};
use super::scatter::Scatter;
use crate::cpu::{Cpu, simd};
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::random::Dropout;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Tensor};

/// The state of a layer: its output and its memory, a row for each walk.
#[derive(Clone, Copy, Debug)]
pub struct LstmState {
    /// `h`, the output.
    pub hidden: Var,
    /// `c`, the memory.
    pub cell: Var,
}

/// The weights of a layer, for an input of width `n` and a state of width `d`.
#[derive(Clone, Copy, Debug)]
pub struct LstmWeights {
    /// `n × 4d`, gates in the order input, forget, candidate, output.
    pub input: Var,
    /// `d × 4d`.
    pub hidden: Var,
    /// `1 × 4d`.
    pub bias: Var,
    /// `1 × 3d`, the peepholes of the input, forget and output gates; `None` for gates that do not see the memory.
    pub peepholes: Option<Var>,
}

struct Lstm {
    input: Var,
    previous: Option<LstmState>,
    parents: Option<Indices>,
    weights: LstmWeights,
    /// The gates after their activations, `rows × 4d`.
    gates: Buffer<f32>,
    hidden: Var,
    cell: Var,
}

impl Tape<'_> {
    /// The state after `input`. Without `previous` the walk begins with a state of zeros. With `parents`, row `i`
    /// continues from row `parents[i]` of `previous`; without, from row `i`.
    pub fn lstm(
        &mut self,
        input: Var,
        previous: Option<LstmState>,
        parents: Option<&Indices>,
        weights: LstmWeights,
    ) -> Result<LstmState> {
        let [rows, _] = self.input("lstm", input)?.shape();
        let width = self.expect_lstm_shapes(input, previous, parents, weights)?;
        let mut gates = self.device().allocate::<f32>(rows * 4 * width)?;
        let mut hidden = self.device().allocate::<f32>(rows * width)?;
        let mut cell = self.device().allocate::<f32>(rows * width)?;
        let (value, weight) = (self.at(input), self.at(weights.input));
        let right = Side::new(weight.buffer(), value.columns(), 4 * width);
        product(&mut gates, 0, Side::new(value.buffer(), rows, value.columns()), right, false)?;
        let recurrent = self.recurrent(&mut gates, previous, parents, weights, width)?;
        let (bias, memory) =
            (self.at(weights.bias).buffer(), previous.map(|state| self.at(state.cell).buffer()));
        let peepholes = weights.peepholes.map(|peepholes| self.at(peepholes).buffer());
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (bias, memory) = (bias.host(), memory.map(Buffer::host));
                let peepholes = peepholes.map(Buffer::host);
                let parents = parents.map(|parents| parents.buffer().host());
                let recurrent = recurrent.as_ref().map(Buffer::host);
                let arrays =
                    [(gates.host_mut(), 4 * width), (hidden.host_mut(), width), (cell.host_mut(), width)];
                cpu.zip(arrays, Cpu::rows_per_chunk(4 * width), |first, [gates, hidden, cell]| {
                    for index in 0..hidden.len() / width {
                        let parent = parents.map_or(first + index, |parents| parents[first + index] as usize);
                        let range = index * width..(index + 1) * width;
                        forward_row(
                            &mut gates[index * 4 * width..(index + 1) * 4 * width],
                            bias,
                            recurrent.map(|rows| &rows[parent * 4 * width..(parent + 1) * 4 * width]),
                            memory.map(|memory| &memory[parent * width..(parent + 1) * width]),
                            peepholes,
                            &mut hidden[range.clone()],
                            &mut cell[range],
                        );
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (n, parents) = (rows * width, parents.map(Indices::buffer));
                let (gates, hidden, cell) = (&mut gates, &mut hidden, &mut cell);
                let recurrent = recurrent.as_ref();
                let arguments =
                    arguments![gates, bias, recurrent, memory, parents, peepholes, hidden, cell, n, width];
                cuda.threads("lstm", n, arguments)?;
            }
        }
        let mut inputs = vec![input, weights.input, weights.hidden, weights.bias];
        inputs.extend(weights.peepholes);
        inputs.extend(previous.iter().flat_map(|state| [state.hidden, state.cell]));
        let parents = parents.cloned();
        let values = (Tensor::of(hidden, rows, width), Tensor::of(cell, rows, width));
        let (hidden, cell) = self.record_pair(values, &inputs, |hidden, cell| Lstm {
            input,
            previous,
            parents,
            weights,
            gates,
            hidden,
            cell,
        });
        Ok(LstmState { hidden, cell })
    }

    /// The width of the state, if all shapes match.
    fn expect_lstm_shapes(
        &self,
        input: Var,
        previous: Option<LstmState>,
        parents: Option<&Indices>,
        weights: LstmWeights,
    ) -> Result<usize> {
        let ([rows, depth], by_input) = (self.shape(input), self.shape(weights.input));
        let (by_hidden, bias) = (self.shape(weights.hidden), self.shape(weights.bias));
        let width = by_hidden[0];
        expect_shape(
            by_input == [depth, 4 * width],
            "lstm",
            "input and its weight",
            &[rows, depth],
            &by_input,
        )?;
        expect_shape(
            by_hidden[1] == 4 * width,
            "lstm",
            "weight of the state",
            &by_hidden,
            &[width, 4 * width],
        )?;
        expect_shape(bias == [1, 4 * width], "lstm", "bias and weight", &bias, &by_hidden)?;
        if let Some(peepholes) = weights.peepholes.map(|peepholes| self.shape(peepholes)) {
            expect_shape(
                peepholes == [1, 3 * width],
                "lstm",
                "peepholes and weight",
                &peepholes,
                &by_hidden,
            )?;
        }
        let Some(state) = previous else { return Ok(width) };
        let (hidden, cell) = (self.shape(state.hidden), self.shape(state.cell));
        expect_shape(hidden == cell && hidden[1] == width, "lstm", "previous state", &hidden, &cell)?;
        match parents {
            Some(parents) => {
                expect_shape(
                    parents.len() == rows,
                    "lstm",
                    "parents and input",
                    &[parents.len()],
                    &[rows, depth],
                )?;
                parents.expect_below(hidden[0], "lstm")?;
            }
            None => {
                expect_shape(hidden[0] == rows, "lstm", "input and previous state", &[rows, depth], &hidden)?
            }
        }
        Ok(width)
    }

    /// `h · Wh`: added to the gates directly if rows correspond, otherwise returned per parent.
    fn recurrent(
        &self,
        gates: &mut Buffer<f32>,
        previous: Option<LstmState>,
        parents: Option<&Indices>,
        weights: LstmWeights,
        width: usize,
    ) -> Result<Option<Buffer<f32>>> {
        let Some(state) = previous else { return Ok(None) };
        let hidden = self.at(state.hidden);
        let left = Side::new(hidden.buffer(), hidden.rows(), width);
        let right = Side::new(self.at(weights.hidden).buffer(), width, 4 * width);
        if parents.is_none() {
            product(gates, 0, left, right, true)?;
            return Ok(None);
        }
        let mut by_parent = self.device().allocate::<f32>(hidden.rows() * 4 * width)?;
        product(&mut by_parent, 0, left, right, false)?;
        Ok(Some(by_parent))
    }
}

fn forward_row(
    gates: &mut [f32],
    bias: &[f32],
    recurrent: Option<&[f32]>,
    memory: Option<&[f32]>,
    peepholes: Option<&[f32]>,
    hidden: &mut [f32],
    cell: &mut [f32],
) {
    let width = hidden.len();
    simd::vectorise(
        #[inline(always)]
        || {
            simd::add(gates, bias);
            if let Some(recurrent) = recurrent {
                simd::add(gates, recurrent);
            }
            let (first, second) = gates.split_at_mut(2 * width);
            let (enter, forget) = first.split_at_mut(width);
            let (candidate, leave) = second.split_at_mut(width);
            if let (Some(peepholes), Some(memory)) = (peepholes, memory) {
                let (to_enter, to_forget) = peepholes[..2 * width].split_at(width);
                for k in 0..width {
                    enter[k] = to_enter[k].mul_add(memory[k], enter[k]);
                    forget[k] = to_forget[k].mul_add(memory[k], forget[k]);
                }
            }
            // Without a previous state the memory is 0, so c' = σ(i) tanh(g), and the forget gate has no effect.
            for k in 0..width {
                enter[k] = simd::sigmoid(enter[k]);
                forget[k] = simd::sigmoid(forget[k]);
                candidate[k] = simd::tanh(candidate[k]);
                cell[k] = enter[k] * candidate[k];
            }
            if let Some(memory) = memory {
                for k in 0..width {
                    cell[k] = forget[k].mul_add(memory[k], cell[k]);
                }
            }
            // The output gate sees the new memory, the two others saw the old one.
            if let Some(peepholes) = peepholes {
                let to_leave = &peepholes[2 * width..];
                for k in 0..width {
                    leave[k] = to_leave[k].mul_add(cell[k], leave[k]);
                }
            }
            for k in 0..width {
                leave[k] = simd::sigmoid(leave[k]);
                hidden[k] = leave[k] * simd::tanh(cell[k]);
            }
        },
    );
}

/// The incoming gradients of a row of the state; each may be missing.
#[derive(Clone, Copy)]
struct Reaching<'a> {
    hidden: Option<&'a [f32]>,
    cell: Option<&'a [f32]>,
}

/// Turns the incoming gradients of a row into the gradient of its gates before their activations, and of its memory.
fn backward_row(
    gates: &[f32],
    cell: &[f32],
    memory: Option<&[f32]>,
    peepholes: Option<&[f32]>,
    reaching: Reaching,
    derivatives: &mut [f32],
    to_memory: &mut [f32],
) {
    let width = cell.len();
    simd::vectorise(
        #[inline(always)]
        || {
            let (first, second) = gates.split_at(2 * width);
            let (enter, forget) = first.split_at(width);
            let (candidate, leave) = second.split_at(width);
            let (first, second) = derivatives.split_at_mut(2 * width);
            let (to_enter, to_forget) = first.split_at_mut(width);
            let (to_candidate, to_leave) = second.split_at_mut(width);
            // `to_memory` is first ∂L/∂c', collected from all that c' goes into: the next step, the output, and the
            // output gate's peephole. Only then can it be passed on to the gates.
            match reaching.cell {
                Some(cell) => to_memory.copy_from_slice(cell),
                None => to_memory.fill(0.0),
            }
            match reaching.hidden {
                Some(hidden) => {
                    for k in 0..width {
                        let bent = simd::tanh(cell[k]);
                        to_memory[k] += hidden[k] * leave[k] * (1.0 - bent * bent);
                        to_leave[k] = hidden[k] * bent * leave[k] * (1.0 - leave[k]);
                    }
                }
                None => to_leave.fill(0.0),
            }
            if let Some(peepholes) = peepholes {
                let by_leave = &peepholes[2 * width..];
                for k in 0..width {
                    to_memory[k] = by_leave[k].mul_add(to_leave[k], to_memory[k]);
                }
            }
            match memory {
                Some(memory) => {
                    for k in 0..width {
                        to_forget[k] = to_memory[k] * memory[k] * forget[k] * (1.0 - forget[k]);
                    }
                }
                None => to_forget.fill(0.0),
            }
            for k in 0..width {
                to_enter[k] = to_memory[k] * candidate[k] * enter[k] * (1.0 - enter[k]);
                to_candidate[k] = to_memory[k] * enter[k] * (1.0 - candidate[k] * candidate[k]);
                // From here on it is ∂L/∂c of the previous state.
                to_memory[k] *= forget[k];
            }
            if let Some(peepholes) = peepholes {
                let (by_enter, by_forget) = peepholes[..2 * width].split_at(width);
                for k in 0..width {
                    to_memory[k] += by_enter[k] * to_enter[k] + by_forget[k] * to_forget[k];
                }
            }
        },
    );
}

impl Operation for Lstm {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let (from_hidden, from_cell) = (flow.take(self.hidden), flow.take(self.cell));
        let cell = flow.value(self.cell);
        let [rows, width] = cell.shape();
        let mut derivatives = flow.device().allocate::<f32>(rows * 4 * width)?;
        let mut to_memory = flow.device().allocate::<f32>(rows * width)?;
        let memory = self.previous.map(|state| flow.value(state.cell));
        let peepholes = self.weights.peepholes.map(|peepholes| flow.value(peepholes));
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let peepholes = peepholes.as_ref().map(|peepholes| peepholes.buffer().host());
                let memory = memory.as_ref().map(|memory| memory.buffer().host());
                let parents = self.parents.as_ref().map(|parents| parents.buffer().host());
                let (gates, cell) = (self.gates.host(), cell.buffer().host());
                let (from_hidden, from_cell) = (from_hidden.as_ref(), from_cell.as_ref());
                let arrays = [(derivatives.host_mut(), 4 * width), (to_memory.host_mut(), width)];
                cpu.zip(arrays, Cpu::rows_per_chunk(4 * width), |first, [derivatives, to_memory]| {
                    for index in 0..to_memory.len() / width {
                        let row = first + index;
                        let parent = parents.map_or(row, |parents| parents[row] as usize);
                        let range = row * width..(row + 1) * width;
                        backward_row(
                            &gates[row * 4 * width..(row + 1) * 4 * width],
                            &cell[range.clone()],
                            memory.map(|memory| &memory[parent * width..(parent + 1) * width]),
                            peepholes,
                            Reaching {
                                hidden: from_hidden.map(|derivative| &derivative.host()[range.clone()]),
                                cell: from_cell.map(|derivative| &derivative.host()[range]),
                            },
                            &mut derivatives[index * 4 * width..(index + 1) * 4 * width],
                            &mut to_memory[index * width..(index + 1) * width],
                        );
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (n, memory) = (rows * width, memory.as_ref().map(Tensor::buffer));
                let parents = self.parents.as_ref().map(Indices::buffer);
                let arguments = arguments![
                    &self.gates,
                    cell.buffer(),
                    memory,
                    parents,
                    peepholes.as_ref().map(Tensor::buffer),
                    from_hidden.as_ref(),
                    from_cell.as_ref(),
                    &mut derivatives,
                    &mut to_memory,
                    n,
                    width
                ];
                cuda.threads("lstm_back", n, arguments)?;
            }
        }
        drop((from_hidden, from_cell));
        if let Some(mut target) = flow.target(self.weights.bias)? {
            column_sums(&derivatives, rows, 4 * width, &mut target)?;
            flow.put(self.weights.bias, target.buffer, None);
        }
        if let Some(peepholes) = self.weights.peepholes
            && let Some(mut target) = flow.target(peepholes)?
        {
            let products = self.peephole_products(&derivatives, &cell, memory.as_ref())?;
            column_sums(&products, rows, 3 * width, &mut target)?;
            flow.put(peepholes, target.buffer, None);
        }
        add_sides(flow, self.input, self.weights.input, &derivatives, 4 * width)?;
        let Some(state) = self.previous else { return Ok(()) };
        let Some(parents) = &self.parents else {
            flow.add(state.cell, to_memory)?;
            return add_sides(flow, state.hidden, self.weights.hidden, &derivatives, 4 * width);
        };
        let count = flow.value(state.cell).rows();
        let (derivatives, to_memory) = by_parent(parents, count, &derivatives, &to_memory, width)?;
        flow.add(state.cell, to_memory)?;
        add_sides(flow, state.hidden, self.weights.hidden, &derivatives, 4 * width)
    }
}

impl Lstm {
    /// What each row adds to the gradient of the peepholes, `rows × 3d`, from the gradient of its gates: a peephole
    /// is a weight between the memory and a gate.
    fn peephole_products(
        &self,
        derivatives: &Buffer<f32>,
        cell: &Tensor,
        memory: Option<&Tensor>,
    ) -> Result<Buffer<f32>> {
        let [rows, width] = cell.shape();
        let mut products = derivatives.device().allocate::<f32>(rows * 3 * width)?;
        let (cell, memory) = (cell.buffer(), memory.map(Tensor::buffer));
        let parents = self.parents.as_ref().map(Indices::buffer);
        match derivatives.device().backend() {
            Backend::Cpu(cpu) => {
                let (derivatives, cell, memory) = (derivatives.host(), cell.host(), memory.map(Buffer::host));
                let parents = parents.map(Buffer::host);
                let arrays = [(products.host_mut(), 3 * width)];
                cpu.zip(arrays, Cpu::rows_per_chunk(3 * width), |first, [products]| {
                    for (row, products) in (first..).zip(products.chunks_exact_mut(3 * width)) {
                        let parent = parents.map_or(row, |parents| parents[row] as usize);
                        let gates = &derivatives[row * 4 * width..(row + 1) * 4 * width];
                        for k in 0..width {
                            let old = memory.map_or(0.0, |memory| memory[parent * width + k]);
                            products[k] = gates[k] * old;
                            products[width + k] = gates[width + k] * old;
                            products[2 * width + k] = gates[3 * width + k] * cell[row * width + k];
                        }
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let n = rows * width;
                let arguments = arguments![derivatives, cell, memory, parents, &mut products, n, width];
                cuda.threads("lstm_peepholes", n, arguments)?;
            }
        }
        Ok(products)
    }
}

/// The gradients of the gates and of the memory, added up over the children of each of `count` parents.
fn by_parent(
    parents: &Indices,
    count: usize,
    derivatives: &Buffer<f32>,
    to_memory: &Buffer<f32>,
    width: usize,
) -> Result<(Buffer<f32>, Buffer<f32>)> {
    let device = derivatives.device();
    if let Backend::Cuda(cuda) = device.backend() {
        let mut sums = (device.allocate::<f32>(count * 4 * width)?, device.allocate::<f32>(count * width)?);
        let (groups, n) = (parents.groups(count)?, parents.len());
        let slots = if n > 16 * count { 8 } else { 1usize };
        let (keys, order) = (&groups.rows_of_order, &groups.order);
        let (to_derivatives, to_cell) = (&mut sums.0, &mut sums.1);
        let arguments =
            arguments![keys, order, n, derivatives, to_memory, to_derivatives, to_cell, width, slots];
        cuda.blocks("lstm_parents", (count, (5 * width).div_ceil(256 / slots)), 256, arguments)?;
        return Ok(sums);
    }
    let sum = |source: &Buffer<f32>, columns: usize| -> Result<Buffer<f32>> {
        let mut sums = device.zeros::<f32>(count * columns)?;
        let (owners, scale, dropout) = (None, None, Dropout::NONE);
        Scatter { indices: parents, source, owners, scale, dropout, columns }
            .add_to(&mut sums, None, count)?;
        Ok(sums)
    };
    Ok((sum(derivatives, 4 * width)?, sum(to_memory, width)?))
}

/// The gradients of both factors of `input · weight`.
fn add_sides(flow: &mut Flow, input: Var, weight: Var, gradient: &Buffer<f32>, columns: usize) -> Result<()> {
    let value = flow.value(input);
    if let Some(mut target) = flow.target(weight)? {
        add_product_to_weight(&mut target, &value, gradient, 0, columns)?;
        flow.put(weight, target.buffer, None);
    }
    let weight = flow.value(weight);
    if let Some(mut target) = flow.target(input)? {
        let right = Side::new(weight.buffer(), value.columns(), columns).transposed();
        product(&mut target.buffer, 0, Side::new(gradient, value.rows(), columns), right, !target.fresh)?;
        flow.put(input, target.buffer, None);
    }
    Ok(())
}
