//! Sums to one number: weighted by a vector of the caller (REINFORCE's rewards), and N3 regularisation.

use crate::tensor::cpu::simd;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::Tensor;

struct WeightedSum {
    input: Var,
    weights: Tensor,
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
        let value = self.input("weighted_sum", input)?;
        let (shape, other) = (value.shape(), weights.shape());
        expect_shape(shape == other, "weighted_sum", "input and weights", &shape, &other)?;
        let mut out = self.device().allocate::<f32>(1)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (values, weights) = (value.buffer().host(), weights.buffer().host());
                let total = cpu.sum(values.len(), 16_384, |range| {
                    f64::from(simd::vectorise(
                        #[inline(always)]
                        || simd::dot(&values[range.clone()], &weights[range]),
                    ))
                });
                out.host_mut()[0] = total as f32;
            }
        }
        let weights = weights.clone();
        Ok(self.record(Tensor::of(out, 1, 1), &[input], |output| WeightedSum { input, weights, output }))
    }

    /// The mean of all elements, a number.
    pub fn mean(&mut self, input: Var) -> Result<Var> {
        let [rows, columns] = self.shape(input);
        let weight = 1.0 / (rows * columns).max(1) as f32;
        let weights = Tensor::new(self.device(), &vec![weight; rows * columns], rows, columns)?;
        self.weighted_sum(input, &weights)
    }

    /// `factor · Σ |x|³`, a number: N3 regularisation, where for `complex` rows (real parts, then imaginary
    /// parts) `|x|` is the modulus.
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
        let mut part = flow.device().allocate::<f32>(self.weights.rows() * self.weights.columns())?;
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let (weights, slope) = (self.weights.buffer().host(), gradient.host()[0]);
                cpu.rows(part.host_mut(), 1, |first, part| {
                    part.iter_mut().zip(&weights[first..]).for_each(|(part, weight)| *part = slope * weight);
                });
            }
        }
        flow.add(self.input, part)
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
        }
        flow.add(self.input, part)
    }
}
