//! A residual step of a state: `state + relu(norm(x) ⊙ scale + shift)`, where `norm` takes every row to mean 0 and
//! variance 1 (layer normalisation).
//!
//! The same formula as the end of [`Tape::update`], for rows that are not those of an edge index.

use crate::cpu::simd;
use crate::cuda::launch::{BLOCK, arguments};
use crate::device::{Backend, Device};
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::op::linear::column_sums;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// Added to the variance of a row.
const EPSILON: f32 = 1e-5;
/// The widest row: a lane of the kernels holds eight columns.
const WIDEST: usize = 256;
/// Rows that a thread takes at a time on the CPU.
const ROWS: usize = 64;
/// Blocks of the backward pass on CUDA; each leaves one row of sums.
const BLOCKS: usize = 256;

struct ResidualNorm {
    input: Var,
    state: Var,
    scale: Var,
    shift: Var,
    output: Var,
}

/// The derivative of the input, and one row of those of scale and shift for every part of the work.
struct Derivatives {
    input: Buffer<f32>,
    scale: Buffer<f32>,
    shift: Buffer<f32>,
    parts: usize,
}

/// The mean and the inverse standard deviation of a row.
#[inline(always)]
fn moments(row: &[f32]) -> (f32, f32) {
    let mean = simd::sum(row) / row.len() as f32;
    let squares = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>();
    (mean, 1.0 / (squares / row.len() as f32 + EPSILON).sqrt())
}

impl Tape<'_> {
    /// `state + relu(norm(input) ⊙ scale + shift)`, row by row; `scale` and `shift` are rows.
    pub fn residual_norm(&mut self, input: Var, state: Var, scale: Var, shift: Var) -> Result<Var> {
        const NAME: &str = "residual_norm";
        let [rows, width] = self.input(NAME, input)?.shape();
        expect_shape(width <= WIDEST, NAME, "width and the widest", &[width], &[WIDEST])?;
        let shape = self.input(NAME, state)?.shape();
        expect_shape(shape == [rows, width], NAME, "state and input", &shape, &[rows, width])?;
        for weight in [scale, shift] {
            let shape = self.shape(weight);
            expect_shape(shape == [1, width], NAME, "weight and input", &shape, &[1, width])?;
        }
        let mut out = self.device().allocate::<f32>(rows * width)?;
        let inputs = [input, state, scale, shift];
        let values = inputs.map(|input| self.at(input).buffer());
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let [values, state, scale, shift] = values.map(Buffer::host);
                cpu.zip([(out.host_mut(), width)], ROWS, |first, [out]| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for (index, out) in out.chunks_exact_mut(width).enumerate() {
                                let range = (first + index) * width..(first + index + 1) * width;
                                let (row, old) = (&values[range.clone()], &state[range]);
                                let (mean, root) = moments(row);
                                for column in 0..width {
                                    let y = (row[column] - mean) * root * scale[column] + shift[column];
                                    out[column] = old[column] + if y > 0.0 { y } else { 0.0 };
                                }
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let [values, state, scale, shift] = values;
                let arguments = arguments![values, state, scale, shift, rows, width, &mut out];
                cuda.warps("residual_norm", rows, arguments)?;
            }
        }
        let output = Tensor::of(out, rows, width);
        Ok(self.record(output, &inputs, |output| ResidualNorm { input, state, scale, shift, output }))
    }
}

impl ResidualNorm {
    fn derivatives(
        device: &Device,
        [input, scale, shift]: &[Tensor; 3],
        gradient: &Buffer<f32>,
    ) -> Result<Derivatives> {
        let [rows, width] = input.shape();
        let parts = if device.is_cuda() { BLOCKS } else { rows.div_ceil(ROWS) };
        let mut derivatives = Derivatives {
            input: device.allocate(rows * width)?,
            scale: device.zeros(parts * width)?,
            shift: device.zeros(parts * width)?,
            parts,
        };
        let [input, scale, shift] = [input, scale, shift].map(Tensor::buffer);
        match device.backend() {
            Backend::Cpu(cpu) => {
                let [input, scale, shift, gradient] = [input, scale, shift, gradient].map(Buffer::host);
                let of_scale = derivatives.scale.host_mut().chunks_exact_mut(width);
                let of_shift = derivatives.shift.host_mut().chunks_exact_mut(width);
                let rows = derivatives.input.host_mut().chunks_mut(ROWS * width);
                let tasks: Vec<_> = rows.zip(of_scale).zip(of_shift).enumerate().collect();
                cpu.run(tasks, |(task, ((out, of_scale), of_shift))| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let mut normal = vec![0.0f32; width];
                            for (index, out) in out.chunks_exact_mut(width).enumerate() {
                                let from = (task * ROWS + index) * width;
                                let (row, gradient) = (&input[from..][..width], &gradient[from..][..width]);
                                let (mean, root) = moments(row);
                                for column in 0..width {
                                    normal[column] = (row[column] - mean) * root;
                                    let open = normal[column] * scale[column] + shift[column] > 0.0;
                                    let passed = if open { gradient[column] } else { 0.0 };
                                    of_scale[column] += passed * normal[column];
                                    of_shift[column] += passed;
                                    out[column] = passed * scale[column];
                                }
                                let first = simd::sum(out) / width as f32;
                                let second = simd::dot(out, &normal) / width as f32;
                                for column in 0..width {
                                    out[column] = root * (out[column] - first - normal[column] * second);
                                }
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let Derivatives { input: to_input, scale: scales, shift: shifts, .. } = &mut derivatives;
                let arguments =
                    arguments![input, gradient, scale, shift, rows, width, to_input, scales, shifts];
                cuda.blocks("residual_norm_back", (BLOCKS, 1), BLOCK, arguments)?;
            }
        }
        Ok(derivatives)
    }
}

impl Operation for ResidualNorm {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let values = [self.input, self.scale, self.shift].map(|var| flow.value(var));
        let width = values[0].columns();
        let derivatives = Self::derivatives(&flow.device(), &values, &gradient)?;
        for (input, sums) in [(self.scale, &derivatives.scale), (self.shift, &derivatives.shift)] {
            if let Some(mut target) = flow.target(input)? {
                column_sums(sums, derivatives.parts, width, &mut target)?;
                flow.put(input, target.buffer, None);
            }
        }
        flow.add(self.input, derivatives.input)?;
        flow.add(self.state, gradient)
    }
}
