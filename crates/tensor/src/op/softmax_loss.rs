//! The softmax loss of one target column per row, leaving out some columns; the gradient is computed in the forward
//! pass.

use std::cell::RefCell;

use super::segment::log_sum_exp;
use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Tensor};

struct SoftmaxLoss {
    input: Var,
    output: Var,
    derivatives: RefCell<Option<Buffer<f32>>>,
}

impl Tape<'_> {
    /// The mean over the rows of `log Σ eˣ − x[target]`, a number. `closed` are flat indices of elements that the sum
    /// leaves out; no target may be among them.
    pub fn softmax_loss(&mut self, input: Var, targets: &Indices, closed: &Indices) -> Result<Var> {
        const NAME: &str = "softmax_loss";
        let value = self.input(NAME, input)?;
        let [rows, columns] = value.shape();
        expect_shape(targets.len() == rows, NAME, "targets and rows", &[targets.len()], &[rows, columns])?;
        targets.expect_below(columns, NAME)?;
        closed.expect_below(rows * columns, NAME)?;
        let device = self.device().clone();
        let mut derivatives = value.buffer().duplicate()?;
        let mut losses = device.allocate::<f32>(rows)?;
        let mut out = device.allocate::<f32>(1)?;
        let scale = 1.0 / rows.max(1) as f32;
        match device.backend() {
            Backend::Cpu(cpu) => {
                let (values, targets) = (derivatives.host_mut(), targets.buffer().host());
                closed.buffer().host().iter().for_each(|&at| values[at as usize] = f32::NEG_INFINITY);
                cpu.zip([(values, columns), (losses.host_mut(), 1)], 1, |row, [values, loss]| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let total = log_sum_exp(values);
                            let target = targets[row] as usize;
                            loss[0] = total - values[target];
                            values.iter_mut().for_each(|x| *x = scale * simd::exp(*x - total));
                            values[target] -= scale;
                        },
                    )
                });
                let sum: f64 = losses.host().iter().map(|loss| f64::from(*loss)).sum();
                out.host_mut()[0] = (sum * f64::from(scale)) as f32;
            }
            Backend::Cuda(cuda) => {
                let arguments = arguments![closed.buffer(), closed.len(), &mut derivatives];
                cuda.threads("close_elements", closed.len(), arguments)?;
                let arguments = arguments![&mut derivatives, targets.buffer(), columns, scale, &mut losses];
                cuda.blocks("row_loss", (rows, 1), 1024, arguments)?;
                cuda.sum_all(&losses, None, &mut out, scale)?;
            }
        }
        let derivatives = RefCell::new(Some(derivatives));
        Ok(self.record(Tensor::of(out, 1, 1), &[input], |output| SoftmaxLoss { input, output, derivatives }))
    }
}

impl Operation for SoftmaxLoss {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let Some(mut derivatives) = self.derivatives.take() else { return Ok(()) };
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let factor = gradient.host()[0];
                if factor != 1.0 {
                    cpu.rows(derivatives.host_mut(), 1, |_, part| part.iter_mut().for_each(|x| *x *= factor));
                }
            }
            Backend::Cuda(cuda) => {
                let n = derivatives.len();
                let blocks = n.div_ceil(256).min(2048);
                cuda.blocks(
                    "scale_unless_one",
                    (blocks, 1),
                    256,
                    arguments![&mut derivatives, &gradient, n],
                )?;
            }
        }
        flow.add(self.input, derivatives)
    }
}
