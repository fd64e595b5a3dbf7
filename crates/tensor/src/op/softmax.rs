//! Log-softmax over each row of a matrix, with leading columns closed: the distribution over relations.

use super::segment::{log_sum_exp, softmax_derivatives};
use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

struct RowLogSoftmax {
    input: Var,
    output: Var,
}

impl Tape<'_> {
    /// `x − log Σ eˣ` in each row; the first `closed` columns (reserved relations) are left out and become minus
    /// infinity.
    pub fn log_softmax(&mut self, input: Var, closed: usize) -> Result<Var> {
        let value = self.input("log_softmax", input)?;
        let [rows, columns] = value.shape();
        expect_shape(closed <= columns, "log_softmax", "closed columns", &[closed], &[rows, columns])?;
        let mut out = self.device().allocate::<f32>(rows * columns)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let source = value.buffer().host();
                cpu.rows(out.host_mut(), columns, |first, out| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for (index, out) in out.chunks_exact_mut(columns).enumerate() {
                                let from = (first + index) * columns;
                                out.copy_from_slice(&source[from..from + columns]);
                                out[..closed].fill(f32::NEG_INFINITY);
                                let total = log_sum_exp(&out[closed..]);
                                out[closed..].iter_mut().for_each(|value| *value -= total);
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                cuda.warps(
                    "row_log_softmax",
                    rows,
                    arguments![value.buffer(), rows, columns, closed, &mut out],
                )?;
            }
        }
        let output = Tensor::of(out, rows, columns);
        Ok(self.record(output, &[input], |output| RowLogSoftmax { input, output }))
    }
}

impl Operation for RowLogSoftmax {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let mut gradient = flow.output(self.output)?;
        let output = flow.value(self.output);
        let columns = output.columns();
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let output = output.buffer().host();
                cpu.rows(gradient.host_mut(), columns, |first, gradient| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for (index, gradient) in gradient.chunks_exact_mut(columns).enumerate() {
                                let from = (first + index) * columns;
                                softmax_derivatives(gradient, &output[from..from + columns]);
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let (rows, output) = (output.rows(), output.buffer());
                cuda.warps("row_softmax_back", rows, arguments![output, rows, columns, &mut gradient])?;
            }
        }
        flow.add(self.input, gradient)
    }
}
