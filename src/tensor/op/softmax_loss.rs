//! The softmax loss of one target column per row, leaving out some columns; the gradient is computed in the forward
//! pass.

use std::cell::RefCell;

use super::segment::log_sum_exp;
use crate::tensor::cpu::simd;
use crate::tensor::cuda::launch::arguments;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::memory::Buffer;
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::{Indices, Tensor};

pub(crate) const KERNELS: &str = r#"
extern "C" __global__ void close_elements(const u32* closed, u32 n, float* values) {
    u32 i = THREAD;
    if (i < n) values[closed[i]] = NEGATIVE_INFINITY;
}
// A block for each row; scores become derivatives.
extern "C" __global__ void row_loss(float* scores, const u32* targets, u32 columns, float scale, float* losses) {
    float* row = scores + (u64)blockIdx.x * columns;
    u32 target = targets[blockIdx.x];
    float largest = NEGATIVE_INFINITY, sum = 0.0f, aim = row[target];
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) largest = fmaxf(largest, row[c]);
    largest = block_max(largest);
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - largest);
    float total = largest + logf(block_sum(sum));
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) row[c] = scale * (expf(row[c] - total) - (c == target ? 1.0f : 0.0f));
    if (threadIdx.x == 0) losses[blockIdx.x] = total - aim;
}
"#;

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
