//! Sums to one number: weighted by a vector of the caller (REINFORCE's rewards), and N3 regularisation.

use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// Elements summed by one block of a kernel.
const SUM_ELEMENTS: usize = 16_384;

struct WeightedSum {
    /// The variable that the sum was added to, if any.
    total: Option<Var>,
    input: Var,
    /// One weight per element; `None` if all are equal.
    weights: Option<Tensor>,
    factor: f32,
    output: Var,
}

struct Cube {
    input: Var,
    factor: f32,
    complex: bool,
    output: Var,
}

impl Tape<'_> {
    /// `Σ weights[i] · input[i]`, a number.
    pub fn weighted_sum(&mut self, input: Var, weights: &Tensor) -> Result<Var> {
        self.add_weighted_sum(None, input, weights)
    }

    /// `total + Σ weights[i] · input[i]`, a number; without `total`, only the sum.
    pub fn add_weighted_sum(&mut self, total: Option<Var>, input: Var, weights: &Tensor) -> Result<Var> {
        let (shape, other) = (self.shape(input), weights.shape());
        expect_shape(shape == other, "weighted_sum", "input and weights", &shape, &other)?;
        if let Some(total) = total {
            let shape = self.shape(total);
            expect_shape(shape == [1, 1], "weighted_sum", "total and a number", &shape, &[1, 1])?;
        }
        self.summed(total, input, Some(weights), 1.0)
    }

    /// The mean of all elements, a number.
    pub fn mean(&mut self, input: Var) -> Result<Var> {
        let [rows, columns] = self.shape(input);
        self.summed(None, input, None, 1.0 / (rows * columns).max(1) as f32)
    }

    fn summed(
        &mut self,
        total: Option<Var>,
        input: Var,
        weights: Option<&Tensor>,
        factor: f32,
    ) -> Result<Var> {
        let value = self.input("weighted_sum", input)?;
        let before = total.map(|total| self.at(total).buffer());
        let mut out = self.device().allocate::<f32>(1)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let values = value.buffer().host();
                let weights = weights.map(|weights| weights.buffer().host());
                let sum = cpu.sum(values.len(), 16_384, |range| {
                    f64::from(simd::vectorise(
                        #[inline(always)]
                        || match weights {
                            Some(weights) => simd::dot(&values[range.clone()], &weights[range]),
                            None => simd::sum(&values[range]),
                        },
                    ))
                });
                let sum = factor * sum as f32;
                out.host_mut()[0] = before.map_or(sum, |before| before.host()[0] + sum);
            }
            Backend::Cuda(cuda) => {
                let (n, by) = (value.rows() * value.columns(), weights.map(Tensor::buffer));
                let blocks = n.div_ceil(SUM_ELEMENTS).max(1);
                if blocks == 1 {
                    let arguments = arguments![value.buffer(), by, n, before, factor, &mut out];
                    cuda.blocks("weighted_sum", (1, 1), 1024, arguments)?;
                } else {
                    let mut parts = self.device().allocate::<f32>(blocks)?;
                    let arguments =
                        arguments![value.buffer(), by, n, None::<&Buffer<f32>>, 1.0f32, &mut parts];
                    cuda.blocks("weighted_sum", (blocks, 1), 1024, arguments)?;
                    cuda.sum_all(&parts, before, &mut out, factor)?;
                }
            }
        }
        let (output, weights) = (Tensor::of(out, 1, 1), weights.cloned());
        let inputs: Vec<Var> = total.into_iter().chain([input]).collect();
        Ok(self.record(output, &inputs, |output| WeightedSum { total, input, weights, factor, output }))
    }

    /// `factor · Σ |x|³`, a number: N3 regularisation. For `complex` rows (real parts, then imaginary parts) `|x|` is
    /// the modulus.
    pub fn cubed_norm(&mut self, input: Var, complex: bool, factor: f32) -> Result<Var> {
        let value = self.input("cubed_norm", input)?;
        let [rows, columns] = value.shape();
        expect_shape(!complex || columns % 2 == 0, "cubed_norm", "complex columns", &[rows, columns], &[2])?;
        let mut out = self.device().allocate::<f32>(1)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let values = value.buffer().host();
                let total = cpu.sum(rows, 64, |range| {
                    let rows = range.map(|row| &values[row * columns..(row + 1) * columns]);
                    rows.map(|row| f64::from(cubes(row, complex))).sum()
                });
                out.host_mut()[0] = factor * total as f32;
            }
            Backend::Cuda(cuda) => {
                let n = rows * columns;
                let blocks = n.div_ceil(SUM_ELEMENTS).max(1);
                let mut parts = self.device().allocate::<f32>(blocks)?;
                let arguments = arguments![value.buffer(), n, columns, complex, &mut parts];
                cuda.blocks("cubed_norm", (blocks, 1), 1024, arguments)?;
                cuda.sum_all(&parts, None, &mut out, factor)?;
            }
        }
        Ok(self.record(Tensor::of(out, 1, 1), &[input], |output| Cube { input, factor, complex, output }))
    }
}

fn cubes(row: &[f32], complex: bool) -> f32 {
    if !complex {
        return row.iter().map(|x| x.abs() * x * x).sum();
    }
    let (real, imaginary) = row.split_at(row.len() / 2);
    let squares = real.iter().zip(imaginary).map(|(x, y)| x * x + y * y);
    squares.map(|square| square * square.sqrt()).sum()
}

impl Operation for WeightedSum {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        if flow.wants(self.input) {
            let part = self.part(flow, &gradient)?;
            flow.add(self.input, part)?;
        }
        match self.total {
            Some(total) => flow.add(total, gradient),
            None => Ok(()),
        }
    }
}

impl WeightedSum {
    /// The gradient of the input.
    fn part(&self, flow: &Flow, gradient: &Buffer<f32>) -> Result<Buffer<f32>> {
        let [rows, columns] = flow.value(self.input).shape();
        let mut part = flow.device().allocate::<f32>(rows * columns)?;
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let derivative = gradient.host()[0] * self.factor;
                let weights = self.weights.as_ref().map(|weights| weights.buffer().host());
                cpu.rows(part.host_mut(), 1, |first, part| match weights {
                    Some(weights) => {
                        part.iter_mut()
                            .zip(&weights[first..])
                            .for_each(|(part, weight)| *part = derivative * weight);
                    }
                    None => part.fill(derivative),
                });
            }
            Backend::Cuda(cuda) => {
                let n = part.len();
                let weights = self.weights.as_ref().map(Tensor::buffer);
                let arguments = arguments![weights, gradient, n, self.factor, &mut part];
                cuda.threads("weighted_sum_back", n, arguments)?;
            }
        }
        Ok(part)
    }
}

impl Operation for Cube {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let input = flow.value(self.input);
        let [rows, columns] = input.shape();
        let mut part = flow.device().allocate::<f32>(rows * columns)?;
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let (values, factor) = (input.buffer().host(), 3.0 * self.factor * gradient.host()[0]);
                let half = columns / 2;
                cpu.rows(part.host_mut(), columns, |first, part| {
                    for (index, part) in part.chunks_exact_mut(columns).enumerate() {
                        let row = &values[(first + index) * columns..(first + index + 1) * columns];
                        if self.complex {
                            for k in 0..half {
                                let modulus = (row[k] * row[k] + row[half + k] * row[half + k]).sqrt();
                                part[k] = factor * modulus * row[k];
                                part[half + k] = factor * modulus * row[half + k];
                            }
                        } else {
                            part.iter_mut().zip(row).for_each(|(part, x)| *part = factor * x.abs() * x);
                        }
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (n, factor) = (part.len(), 3.0 * self.factor);
                let arguments =
                    arguments![input.buffer(), n, columns, self.complex, factor, &gradient, &mut part];
                cuda.threads("cubed_norm_back", n, arguments)?;
            }
        }
        flow.add(self.input, part)
    }
}
