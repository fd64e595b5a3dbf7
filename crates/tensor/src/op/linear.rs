//! A linear layer: products with a weight, bias, ReLU and dropout in one operation.
//!
//! The inputs are concatenated only conceptually, never copied: each is multiplied by its own rows of the weight.

use super::product::{Side, product};
use crate::cpu::{Cpu, simd};
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::gradients::Target;
use crate::memory::Buffer;
use crate::random::Dropout;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// The activation after the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// None.
    Identity,
    /// `max(x, 0)`.
    Relu,
}

/// Rows summed by one block of the kernel.
const SUM_ROWS: usize = 2048;

struct Linear {
    inputs: Vec<Var>,
    weight: Var,
    bias: Option<Var>,
    activation: Activation,
    dropout: Dropout,
    output: Var,
}

impl Tape<'_> {
    /// `dropout(activation([inputs…] · weight + bias))`. The weight has as many rows as the inputs have columns in
    /// total; the bias has one row.
    pub fn linear(
        &mut self,
        inputs: &[Var],
        weight: Var,
        bias: Option<Var>,
        activation: Activation,
        dropout: f32,
    ) -> Result<Var> {
        let dropout = self.dropout_of(dropout);
        let rows = inputs.first().map_or(0, |input| self.shape(*input)[0]);
        let [depth, columns] = self.shape(weight);
        let mut width = 0;
        for input in inputs {
            let shape = self.input("linear", *input)?.shape();
            expect_shape(shape[0] == rows, "linear", "rows of the inputs", &shape, &[rows])?;
            width += shape[1];
        }
        expect_shape(width == depth, "linear", "inputs and weight", &[rows, width], &[depth, columns])?;
        if let Some(bias) = bias {
            let shape = self.shape(bias);
            expect_shape(shape == [1, columns], "linear", "bias and weight", &shape, &[depth, columns])?;
        }
        let mut out = self.device().allocate::<f32>(rows * columns)?;
        let mut start = 0;
        for (index, input) in inputs.iter().enumerate() {
            let (value, weight) = (self.at(*input), self.at(weight));
            let width = value.columns();
            let right = Side::within(weight.buffer(), start * columns, width, columns);
            self.forward_product(&mut out, Side::new(value.buffer(), rows, width), right, index > 0)?;
            start += width;
        }
        if bias.is_some() || activation != Activation::Identity || !dropout.is_none() {
            let bias = bias.map(|bias| self.at(bias));
            match self.device().backend() {
                Backend::Cpu(cpu) => {
                    let bias = bias.map(|bias| bias.buffer().host());
                    cpu.rows(out.host_mut(), columns, |first, out| {
                        finish(out, first * columns, bias, activation, dropout)
                    });
                }
                Backend::Cuda(cuda) => {
                    let (n, relu) = (rows * columns, activation == Activation::Relu);
                    let bias = bias.map(Tensor::buffer);
                    cuda.threads("linear_finish", n, arguments![&mut out, n, columns, bias, relu, dropout])?;
                }
            }
        }
        let output = Tensor::of(out, rows, columns);
        let inputs = inputs.to_vec();
        let mut all = inputs.clone();
        all.extend([weight].into_iter().chain(bias));
        Ok(self.record(output, &all, |output| Linear { inputs, weight, bias, activation, dropout, output }))
    }
}

/// Applies bias, activation and dropout to the elements from `first` on, which is the beginning of a row.
fn finish(out: &mut [f32], first: usize, bias: Option<&[f32]>, activation: Activation, dropout: Dropout) {
    simd::vectorise(
        #[inline(always)]
        || {
            if let Some(bias) = bias {
                out.chunks_exact_mut(bias.len()).for_each(|row| simd::add(row, bias));
            }
            if activation == Activation::Relu {
                out.iter_mut().for_each(|value| *value = if *value > 0.0 { *value } else { 0.0 });
            }
            if !dropout.is_none() {
                dropout.apply(out, first);
            }
        },
    );
}

impl Operation for Linear {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let mut gradient = flow.output(self.output)?;
        let output = flow.value(self.output);
        let [rows, columns] = output.shape();
        if self.activation == Activation::Relu || !self.dropout.is_none() {
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let output = output.buffer().host();
                    cpu.rows(gradient.host_mut(), 1, |first, gradient| {
                        let output = &output[first..first + gradient.len()];
                        before_finish(gradient, output, first, self.activation, self.dropout);
                    });
                }
                Backend::Cuda(cuda) => {
                    let (n, relu) = (rows * columns, self.activation == Activation::Relu);
                    let arguments = arguments![&mut gradient, output.buffer(), n, relu, self.dropout];
                    cuda.threads("linear_before_finish", n, arguments)?;
                }
            }
        }
        if let Some(bias) = self.bias
            && let Some(mut target) = flow.target(bias)?
        {
            column_sums(&gradient, rows, columns, &mut target)?;
            flow.put(bias, target.buffer, None);
        }
        let weight = flow.value(self.weight);
        let mut start = 0;
        let mut weight_target = flow.target(self.weight)?;
        for input in &self.inputs {
            let value = flow.value(*input);
            let width = value.columns();
            if let Some(target) = &mut weight_target {
                add_product_to_weight(target, &value, &gradient, start, columns)?;
            }
            if let Some(mut target) = flow.target(*input)? {
                let right = Side::within(weight.buffer(), start * columns, width, columns).transposed();
                product(&mut target.buffer, 0, Side::new(&gradient, rows, columns), right, !target.fresh)?;
                flow.put(*input, target.buffer, None);
            }
            start += width;
        }
        if let Some(target) = weight_target {
            flow.put(self.weight, target.buffer, None);
        }
        Ok(())
    }
}

/// The backward pass of activation and dropout, element by element.
fn before_finish(
    gradient: &mut [f32],
    output: &[f32],
    first: usize,
    activation: Activation,
    dropout: Dropout,
) {
    simd::vectorise(
        #[inline(always)]
        || match activation {
            // An output above zero was neither cut off nor dropped.
            Activation::Relu => gradient.iter_mut().zip(output).for_each(|(derivative, value)| {
                *derivative = if *value > 0.0 { *derivative * dropout.scale } else { 0.0 }
            }),
            Activation::Identity => dropout.apply(gradient, first),
        },
    );
}

/// `target[start..] += inputᵀ · gradient`: one input's part of a weight's gradient.
pub(crate) fn add_product_to_weight(
    target: &mut Target,
    input: &Tensor,
    gradient: &Buffer<f32>,
    start: usize,
    columns: usize,
) -> Result<()> {
    let [rows, width] = input.shape();
    let left = Side::new(input.buffer(), rows, width).transposed();
    product(&mut target.buffer, start * columns, left, Side::new(gradient, rows, columns), !target.fresh)
}

/// Adds the column sums to `target`.
pub(crate) fn column_sums(
    values: &Buffer<f32>,
    rows: usize,
    columns: usize,
    target: &mut Target,
) -> Result<()> {
    match values.device().backend() {
        Backend::Cpu(cpu) => {
            let values = values.host();
            let chunk = Cpu::rows_per_chunk(columns).max(64);
            let mut parts = vec![0.0f32; rows.div_ceil(chunk) * columns];
            cpu.zip([(&mut parts, columns)], 1, |index, [part]| {
                simd::vectorise(
                    #[inline(always)]
                    || {
                        for row in index * chunk..((index + 1) * chunk).min(rows) {
                            simd::add(part, &values[row * columns..(row + 1) * columns]);
                        }
                    },
                )
            });
            let target_values = target.buffer.host_mut();
            if target.fresh {
                target_values.fill(0.0);
            }
            for part in parts.chunks_exact(columns.max(1)) {
                simd::add(target_values, part);
            }
        }
        Backend::Cuda(cuda) => {
            let chunks = rows.div_ceil(SUM_ROWS).max(1);
            let (blocks, add) = ((columns.div_ceil(32), chunks), !target.fresh);
            if chunks == 1 {
                let arguments = arguments![values, rows, columns, &mut target.buffer, add];
                cuda.blocks("column_sums", blocks, 1024, arguments)?;
            } else {
                let mut parts = values.device().allocate::<f32>(chunks * columns)?;
                cuda.blocks(
                    "column_sums",
                    blocks,
                    1024,
                    arguments![values, rows, columns, &mut parts, false],
                )?;
                let arguments = arguments![&parts, chunks, columns, &mut target.buffer, 1.0f32, add];
                cuda.threads("sum_parts", columns, arguments)?;
            }
        }
    }
    target.fresh = false;
    Ok(())
}
