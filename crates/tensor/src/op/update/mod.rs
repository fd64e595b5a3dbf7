//! The new state of every row from its aggregates: two linear maps, layer normalisation, ReLU, dropout and a
//! residual.
//!
//! `out = dropout(relu(norm(W₀ state + (W₁ + s W₂ + W₃ / s) aggregates + bias))) + state`, where `s` is the logarithm
//! of the row's degree divided by its mean over all nodes. The aggregates are multiplied once, by `[W₁ | W₂ | W₃]`,
//! and the three parts combined, so nothing is concatenated. Rows that this layer reaches for the first time have an
//! old state of zero.

mod cpu;

use crate::cpu::simd;
use crate::cuda::launch::{BLOCK, arguments};
use crate::device::{Backend, Device};
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::op::linear::{add_product_to_weight, column_sums};
use crate::op::product::{Side, product};
use crate::random::Dropout;
use crate::reach::UpdatedRows;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Tensor};

pub(crate) use cpu::RowUpdate;

/// Added to a variance before the square root.
const EPSILON: f32 = 1e-5;
/// The minimum of the degree factor.
const LEAST_FACTOR: f32 = 1e-2;
/// The widest state: a lane of the kernels holds eight columns.
const WIDEST: usize = 256;
/// Rows that the CPU processes at a time.
const ROWS: usize = 128;
/// Blocks of the backward kernel; a fixed number, so that sums have one order.
const BLOCKS: usize = 264;

/// The weights of an update: `own` `[width, width]` for the old state, `mixed` for the aggregates (as many columns as
/// the state, or three times as many if degrees are used), and rows for the bias and for the scale and shift of the
/// normalisation.
#[derive(Clone, Copy, Debug)]
pub struct UpdateWeights {
    /// `W₀`.
    pub own: Var,
    /// `[W₁ | W₂ | W₃]`.
    pub mixed: Var,
    /// Added before normalisation.
    pub bias: Var,
    /// The factor on normalised values.
    pub scale: Var,
    /// Added to the scaled values.
    pub shift: Var,
}

/// The sizes and constants that both devices need.
#[derive(Clone, Copy)]
struct Sizes {
    before: usize,
    rows: usize,
    width: usize,
    /// The number of parts of the mixed aggregates: 1 or 3.
    parts: usize,
    mean_log: f32,
    dropout: Dropout,
}

struct Update {
    state: Var,
    aggregates: Var,
    weights: UpdateWeights,
    output: Var,
    degrees: Indices,
    sizes: Sizes,
    /// The sum before normalisation.
    sum: Buffer<f32>,
}

impl Tape<'_> {
    /// The new state of the rows of `updated`, from their old state and their aggregates.
    pub fn update(
        &mut self,
        state: Var,
        aggregates: Var,
        weights: UpdateWeights,
        updated: &UpdatedRows,
        dropout: f32,
    ) -> Result<Var> {
        let dropout = self.dropout_of(dropout);
        let [rows, depth] = self.input("update", aggregates)?.shape();
        let sizes = self.update_sizes(state, [rows, depth], weights, updated, dropout)?;
        let Sizes { before, width, parts, .. } = sizes;
        let device = self.device().clone();
        let mut mixed = device.allocate::<f32>(rows * parts * width)?;
        let (left, right) = (self.at(aggregates).buffer(), self.at(weights.mixed).buffer());
        let right = Side::new(right, depth, parts * width);
        self.forward_product(&mut mixed, Side::new(left, rows, depth), right, false)?;
        let mut sum = device.allocate::<f32>(rows * width)?;
        let (old, own) = (self.at(state).buffer(), self.at(weights.own).buffer());
        let old_side = Side::new(old, before, width);
        self.forward_product(&mut sum, old_side, Side::new(own, width, width), false)?;
        let mut out = device.allocate::<f32>(rows * width)?;
        let [bias, scale, shift] =
            [weights.bias, weights.scale, weights.shift].map(|weight| self.at(weight).buffer());
        let degrees = updated.degrees.buffer();
        match device.backend() {
            Backend::Cpu(threads) => {
                let inputs = [old, &mixed, bias, scale, shift].map(Buffer::host);
                cpu::forward(threads, sizes, inputs, degrees.host(), sum.host_mut(), out.host_mut());
            }
            Backend::Cuda(cuda) => {
                let mean_log = sizes.mean_log;
                let arguments = arguments![
                    old, &mixed, degrees, mean_log, before, rows, width, parts, bias, scale, shift, dropout,
                    &mut sum, &mut out
                ];
                cuda.warps("update", rows, arguments)?;
            }
        }
        let output = Tensor::of(out, rows, width);
        let UpdateWeights { own, mixed, bias, scale, shift } = weights;
        let inputs = [state, aggregates, own, mixed, bias, scale, shift];
        let degrees = updated.degrees.clone();
        Ok(self.record(output, &inputs, |output| Update {
            state,
            aggregates,
            weights,
            output,
            degrees,
            sizes,
            sum,
        }))
    }
}

impl Tape<'_> {
    /// A [`RowUpdate`] for aggregates of `depth` columns, with all inputs on the CPU.
    pub(crate) fn row_update<'a>(
        &'a self,
        state: Var,
        depth: usize,
        weights: UpdateWeights,
        updated: &'a UpdatedRows,
    ) -> Result<RowUpdate<'a>> {
        let given = [updated.rows, depth];
        let sizes = self.update_sizes(state, given, weights, updated, Dropout::NONE)?;
        let UpdateWeights { own, mixed, bias, scale, shift } = weights;
        let values = [state, own, mixed, bias, scale, shift].map(|var| self.at(var).buffer().host());
        Ok(RowUpdate { sizes, values, degrees: updated.degrees.buffer().host() })
    }

    /// The sizes of an update from aggregates of this shape, after checking that all shapes match.
    fn update_sizes(
        &self,
        state: Var,
        [rows, depth]: [usize; 2],
        weights: UpdateWeights,
        updated: &UpdatedRows,
        dropout: Dropout,
    ) -> Result<Sizes> {
        const NAME: &str = "update";
        let [before, width] = self.input(NAME, state)?.shape();
        let here = [updated.before, updated.rows];
        expect_shape([before, rows] == here, NAME, "rows and rows reached", &[before, rows], &here)?;
        expect_shape(width <= WIDEST, NAME, "width and the widest", &[width], &[WIDEST])?;
        let [_, columns] = self.shape(weights.mixed);
        let parts = if columns == width { 1 } else { 3 };
        let expected = [
            (weights.own, [width, width]),
            (weights.mixed, [depth, parts * width]),
            (weights.bias, [1, width]),
            (weights.scale, [1, width]),
            (weights.shift, [1, width]),
        ];
        for (weight, wanted) in expected {
            let shape = self.shape(weight);
            expect_shape(shape == wanted, NAME, "weight and state", &shape, &wanted)?;
        }
        Ok(Sizes { before, rows, width, parts, mean_log: updated.mean_log, dropout })
    }
}

/// The gradients of the sum and of the mixed aggregates, and, one row per part of the work, of scale, shift and bias.
struct Derivatives {
    sum: Buffer<f32>,
    mixed: Buffer<f32>,
    rows: [Buffer<f32>; 3],
    chunks: usize,
}

impl Update {
    fn derivatives(
        &self,
        device: &Device,
        gradient: &Buffer<f32>,
        scale: &Tensor,
        shift: &Tensor,
    ) -> Result<Derivatives> {
        let Sizes { rows, width, parts, mean_log, dropout, .. } = self.sizes;
        let chunks = if device.is_cuda() { BLOCKS } else { rows.div_ceil(ROWS) };
        let mut derivatives = Derivatives {
            sum: device.allocate(rows * width)?,
            mixed: device.allocate(rows * parts * width)?,
            rows: [
                device.zeros(chunks * width)?,
                device.zeros(chunks * width)?,
                device.zeros(chunks * width)?,
            ],
            chunks,
        };
        let degrees = self.degrees.buffer();
        let (scale, shift) = (scale.buffer(), shift.buffer());
        match device.backend() {
            Backend::Cpu(threads) => {
                let inputs = [&self.sum, gradient, scale, shift].map(Buffer::host);
                cpu::backward(threads, self.sizes, inputs, degrees.host(), &mut derivatives);
            }
            Backend::Cuda(cuda) => {
                let Derivatives { sum, mixed, rows: [scales, shifts, biases], .. } = &mut derivatives;
                let arguments = arguments![
                    &self.sum, gradient, degrees, mean_log, rows, width, parts, scale, shift, dropout, sum,
                    mixed, scales, shifts, biases
                ];
                cuda.blocks("update_back", (BLOCKS, 1), BLOCK, arguments)?;
            }
        }
        Ok(derivatives)
    }
}

impl Operation for Update {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let Sizes { before, rows, width, parts, .. } = self.sizes;
        let UpdateWeights { own, mixed, bias, scale, shift } = self.weights;
        let device = flow.device();
        let derivatives = self.derivatives(&device, &gradient, &flow.value(scale), &flow.value(shift))?;
        for (input, sums) in [scale, shift, bias].into_iter().zip(&derivatives.rows) {
            if let Some(mut target) = flow.target(input)? {
                column_sums(sums, derivatives.chunks, width, &mut target)?;
                flow.put(input, target.buffer, None);
            }
        }
        let (state, aggregates) = (flow.value(self.state), flow.value(self.aggregates));
        let depth = aggregates.columns();
        if let Some(mut target) = flow.target(mixed)? {
            add_product_to_weight(&mut target, &aggregates, &derivatives.mixed, 0, parts * width)?;
            flow.put(mixed, target.buffer, None);
        }
        if let Some(mut target) = flow.target(own)? {
            add_product_to_weight(&mut target, &state, &derivatives.sum, 0, width)?;
            flow.put(own, target.buffer, None);
        }
        if let Some(mut target) = flow.target(self.aggregates)? {
            let weight = flow.value(mixed);
            let right = Side::new(weight.buffer(), depth, parts * width).transposed();
            product(
                &mut target.buffer,
                0,
                Side::new(&derivatives.mixed, rows, parts * width),
                right,
                !target.fresh,
            )?;
            flow.put(self.aggregates, target.buffer, None);
        }
        if let Some(mut target) = flow.target(self.state)? {
            add_first(&mut target.buffer, &gradient, before * width, target.fresh)?;
            let weight = flow.value(own);
            let right = Side::new(weight.buffer(), width, width).transposed();
            product(&mut target.buffer, 0, Side::new(&derivatives.sum, before, width), right, true)?;
            flow.put(self.state, target.buffer, None);
        }
        Ok(())
    }
}

/// Adds the first `count` elements of `part`, or overwrites the target if it is fresh.
fn add_first(target: &mut Buffer<f32>, part: &Buffer<f32>, count: usize, fresh: bool) -> Result<()> {
    let device = target.device().clone();
    match device.backend() {
        Backend::Cpu(_) if fresh => target.host_mut()[..count].copy_from_slice(&part.host()[..count]),
        Backend::Cpu(_) => simd::add(&mut target.host_mut()[..count], &part.host()[..count]),
        Backend::Cuda(cuda) if fresh => {
            cuda.copy(target.pointer(), part.pointer(), count * size_of::<f32>())?;
        }
        Backend::Cuda(cuda) => cuda.threads("add_to", count, arguments![target, part, count])?,
    }
    Ok(())
}
