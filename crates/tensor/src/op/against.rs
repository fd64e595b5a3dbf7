//! Every row against every row of a table: `x · tableᵀ`, kept as a matrix.
//!
//! For the few hundred relations in training, and for scores of all entities when evaluating. For training
//! against all entities use [`Tape::binary_loss_against_all`](crate::Tape::binary_loss_against_all),
//! which never keeps the matrix.

use super::product::{Side, product};
use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::random::Dropout;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

struct Against {
    input: Var,
    table: Var,
    bias: Option<Var>,
    dropout: Dropout,
    /// The table after dropout, if there was any.
    dropped: Option<Tensor>,
    output: Var,
}

impl Tape<'_> {
    /// `input · dropout(table)ᵀ + bias`: one row of scores per row of `input`, one column per row of `table`; `bias`
    /// has one row per row of the table.
    pub fn against(&mut self, input: Var, table: Var, bias: Option<Var>, dropout: f32) -> Result<Var> {
        let dropout = self.dropout_of(dropout);
        let (left, right) = (self.input("against", input)?.clone(), self.value(table));
        let ([rows, width], [count, _]) = (left.shape(), right.shape());
        expect_shape(width == right.columns(), "against", "input and table", &left.shape(), &right.shape())?;
        if let Some(bias) = bias {
            let shape = self.shape(bias);
            expect_shape(shape == [count, 1], "against", "bias and table", &shape, &right.shape())?;
        }
        let dropped = match dropout.is_none() {
            true => None,
            false => Some(Tensor::of(drop_table(right.buffer(), dropout)?, count, width)),
        };
        let right = dropped.as_ref().unwrap_or(&right);
        let mut out = self.device().allocate::<f32>(rows * count)?;
        let table_side = Side::new(right.buffer(), count, width).transposed();
        product(&mut out, 0, Side::new(left.buffer(), rows, width), table_side, false)?;
        if let Some(bias) = bias {
            let bias = self.at(bias).buffer();
            match self.device().backend() {
                Backend::Cpu(cpu) => {
                    let bias = bias.host();
                    cpu.rows(out.host_mut(), count, |_, out| {
                        simd::vectorise(
                            #[inline(always)]
                            || out.chunks_exact_mut(count).for_each(|row| simd::add(row, bias)),
                        )
                    });
                }
                Backend::Cuda(cuda) => {
                    let n = rows * count;
                    let arguments = arguments![&mut out, n, count, bias, false, Dropout::NONE];
                    cuda.threads("linear_finish", n, arguments)?;
                }
            }
        }
        let output = Tensor::of(out, rows, count);
        let mut inputs = vec![input, table];
        inputs.extend(bias);
        Ok(self.record(output, &inputs, |output| Against { input, table, bias, dropout, dropped, output }))
    }
}

/// A copy of a table with element-wise dropout.
pub(crate) fn drop_table(table: &Buffer<f32>, dropout: Dropout) -> Result<Buffer<f32>> {
    let mut copy = table.duplicate()?;
    apply(&mut copy, dropout)?;
    Ok(copy)
}

/// Applies dropout to a whole buffer.
pub(crate) fn apply(buffer: &mut Buffer<f32>, dropout: Dropout) -> Result<()> {
    let device = buffer.device().clone();
    match device.backend() {
        Backend::Cpu(cpu) => cpu.rows(buffer.host_mut(), 1, |first, values| {
            simd::vectorise(
                #[inline(always)]
                || dropout.apply(values, first),
            )
        }),
        Backend::Cuda(cuda) => {
            let n = buffer.len();
            // Without ReLU the output is not read.
            let arguments = arguments![&mut *buffer, None::<&Buffer<f32>>, n, false, dropout];
            cuda.threads("linear_before_finish", n, arguments)?;
        }
    }
    Ok(())
}

impl Operation for Against {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (input, table) = (flow.value(self.input), flow.value(self.table));
        let right = self.dropped.as_ref().unwrap_or(&table);
        let ([rows, width], count) = (input.shape(), table.rows());
        if let Some(mut target) = flow.target(self.input)? {
            let table_side = Side::new(right.buffer(), count, width);
            product(&mut target.buffer, 0, Side::new(&gradient, rows, count), table_side, !target.fresh)?;
            flow.put(self.input, target.buffer, None);
        }
        if let Some(bias) = self.bias
            && let Some(mut target) = flow.target(bias)?
        {
            super::linear::column_sums(&gradient, rows, count, &mut target)?;
            flow.put(bias, target.buffer, None);
        }
        if flow.wants(self.table) {
            let mut part = flow.device().allocate::<f32>(count * width)?;
            let left = Side::new(&gradient, rows, count).transposed();
            product(&mut part, 0, left, Side::new(input.buffer(), rows, width), false)?;
            if !self.dropout.is_none() {
                apply(&mut part, self.dropout)?;
            }
            flow.add(self.table, part)?;
        }
        Ok(())
    }
}
