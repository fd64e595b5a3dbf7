//! Operations on two or more values with the same rows: sum, product, dot product of rows, a factor for each row,
//! concatenation.

use crate::cpu::{Cpu, simd};
use crate::cuda::launch::arguments;
use crate::device::{Backend, Device};
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

struct Sum {
    left: Var,
    right: Var,
    output: Var,
}

struct Product {
    left: Var,
    right: Var,
    output: Var,
}

struct RowDot {
    left: Var,
    right: Var,
    output: Var,
}

struct ScaledRows {
    input: Var,
    factors: Var,
    output: Var,
}

struct Concatenation {
    inputs: Vec<Var>,
    output: Var,
}

impl Tape<'_> {
    /// `left + right`, of the same shape.
    pub fn add(&mut self, left: Var, right: Var) -> Result<Var> {
        let output = self.pairwise("add", left, right, false, |out, left, right| {
            out.iter_mut().zip(left).zip(right).for_each(|((out, x), y)| *out = x + y)
        })?;
        Ok(self.record(output, &[left, right], |output| Sum { left, right, output }))
    }

    /// `left · right`, element by element; also DistMult's query.
    pub fn multiply(&mut self, left: Var, right: Var) -> Result<Var> {
        let output = self.pairwise("multiply", left, right, true, |out, left, right| {
            out.iter_mut().zip(left).zip(right).for_each(|((out, x), y)| *out = x * y)
        })?;
        Ok(self.record(output, &[left, right], |output| Product { left, right, output }))
    }

    fn pairwise(
        &self,
        name: &'static str,
        left: Var,
        right: Var,
        multiply: bool,
        formula: impl Fn(&mut [f32], &[f32], &[f32]) + Sync + Send,
    ) -> Result<Tensor> {
        let (left, right) = (self.input(name, left)?, self.input(name, right)?);
        expect_shape(left.shape() == right.shape(), name, "both inputs", &left.shape(), &right.shape())?;
        let [rows, columns] = left.shape();
        let mut out = self.device().allocate::<f32>(rows * columns)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (left, right) = (left.buffer().host(), right.buffer().host());
                cpu.rows(out.host_mut(), 1, |first, out| {
                    let range = first..first + out.len();
                    formula(out, &left[range.clone()], &right[range]);
                });
            }
            Backend::Cuda(cuda) => {
                let n = rows * columns;
                cuda.threads(
                    "pairwise",
                    n,
                    arguments![left.buffer(), right.buffer(), &mut out, n, multiply],
                )?;
            }
        }
        Ok(Tensor::of(out, rows, columns))
    }

    /// The dot product of each row of `left` with the same row of `right`: a vector.
    pub fn row_dot(&mut self, left: Var, right: Var) -> Result<Var> {
        let (a, b) = (self.input("row_dot", left)?, self.input("row_dot", right)?);
        expect_shape(a.shape() == b.shape(), "row_dot", "both inputs", &a.shape(), &b.shape())?;
        let output = Tensor::of(dots(self.device(), a.shape(), a.buffer(), b.buffer())?, a.rows(), 1);
        Ok(self.record(output, &[left, right], |output| RowDot { left, right, output }))
    }

    /// Each row of `input` times its own element of `factors`, a vector.
    pub fn scale_rows(&mut self, input: Var, factors: Var) -> Result<Var> {
        let (value, by) = (self.input("scale_rows", input)?, self.input("scale_rows", factors)?);
        let [rows, columns] = value.shape();
        expect_shape(by.shape() == [rows, 1], "scale_rows", "factors and rows", &by.shape(), &[rows, 1])?;
        let out = scaled(self.device(), [rows, columns], value.buffer(), by.buffer())?;
        let output = Tensor::of(out, rows, columns);
        Ok(self.record(output, &[input, factors], |output| ScaledRows { input, factors, output }))
    }

    /// The columns of all inputs side by side.
    pub fn concatenate(&mut self, inputs: &[Var]) -> Result<Var> {
        let rows = inputs.first().map_or(0, |input| self.shape(*input)[0]);
        let mut columns = 0;
        for input in inputs {
            let shape = self.input("concatenate", *input)?.shape();
            expect_shape(shape[0] == rows, "concatenate", "rows", &shape, &[rows])?;
            columns += shape[1];
        }
        let mut out = self.device().allocate::<f32>(rows * columns)?;
        let mut start = 0;
        for input in inputs {
            let value = self.at(*input);
            let width = value.columns();
            match self.device().backend() {
                Backend::Cpu(cpu) => {
                    let source = value.buffer().host();
                    cpu.rows(out.host_mut(), columns, |first, out| {
                        for (index, out) in out.chunks_exact_mut(columns).enumerate() {
                            let row = first + index;
                            out[start..start + width]
                                .copy_from_slice(&source[row * width..(row + 1) * width]);
                        }
                    });
                }
                Backend::Cuda(cuda) => {
                    let n = rows * width;
                    let arguments = arguments![value.buffer(), &mut out, n, width, columns, start, false];
                    cuda.threads("copy_columns", n, arguments)?;
                }
            }
            start += width;
        }
        let output = Tensor::of(out, rows, columns);
        let inputs = inputs.to_vec();
        Ok(self.record(output, &inputs.clone(), |output| Concatenation { inputs, output }))
    }
}

impl Operation for Sum {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        if flow.wants(self.left) && flow.wants(self.right) {
            flow.add(self.left, gradient.duplicate()?)?;
            return flow.add(self.right, gradient);
        }
        let input = if flow.wants(self.left) { self.left } else { self.right };
        flow.add(input, gradient)
    }
}

impl Operation for Product {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        for (input, other) in [(self.left, self.right), (self.right, self.left)] {
            if !flow.wants(input) {
                continue;
            }
            let other = flow.value(other);
            let mut part = flow.device().allocate::<f32>(gradient.len())?;
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let (other, gradient) = (other.buffer().host(), gradient.host());
                    cpu.rows(part.host_mut(), 1, |first, part| {
                        let range = first..first + part.len();
                        let factors = other[range.clone()].iter().zip(&gradient[range]);
                        part.iter_mut().zip(factors).for_each(|(part, (x, g))| *part = x * g);
                    });
                }
                Backend::Cuda(cuda) => {
                    let n = gradient.len();
                    cuda.threads("pairwise", n, arguments![other.buffer(), &gradient, &mut part, n, true])?;
                }
            }
            flow.add(input, part)?;
        }
        Ok(())
    }
}

/// The dot product of each row of `left` with the same row of `right`.
fn dots(
    device: &Device,
    [rows, columns]: [usize; 2],
    left: &Buffer<f32>,
    right: &Buffer<f32>,
) -> Result<Buffer<f32>> {
    let mut out = device.allocate::<f32>(rows)?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            let (left, right) = (left.host(), right.host());
            cpu.zip([(out.host_mut(), 1)], Cpu::rows_per_chunk(columns), |first, [out]| {
                simd::vectorise(
                    #[inline(always)]
                    || {
                        for (index, out) in out.iter_mut().enumerate() {
                            let range = (first + index) * columns..(first + index + 1) * columns;
                            *out = simd::dot(&left[range.clone()], &right[range]);
                        }
                    },
                )
            });
        }
        Backend::Cuda(cuda) => {
            cuda.warps("row_dot", rows, arguments![left, right, &mut out, rows, columns])?;
        }
    }
    Ok(out)
}

/// Each row times its own factor.
fn scaled(
    device: &Device,
    [rows, columns]: [usize; 2],
    values: &Buffer<f32>,
    factors: &Buffer<f32>,
) -> Result<Buffer<f32>> {
    let mut out = device.allocate::<f32>(rows * columns)?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            let (values, factors) = (values.host(), factors.host());
            cpu.rows(out.host_mut(), columns, |first, out| {
                for (index, out) in out.chunks_exact_mut(columns).enumerate() {
                    let row = first + index;
                    let source = &values[row * columns..(row + 1) * columns];
                    out.iter_mut().zip(source).for_each(|(out, x)| *out = x * factors[row]);
                }
            });
        }
        Backend::Cuda(cuda) => {
            let n = out.len();
            cuda.threads("scale_rows", n, arguments![values, factors, &mut out, n, columns])?;
        }
    }
    Ok(out)
}

impl Operation for RowDot {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        for (input, other) in [(self.left, self.right), (self.right, self.left)] {
            if flow.wants(input) {
                let other = flow.value(other);
                let part = scaled(&flow.device(), other.shape(), other.buffer(), &gradient)?;
                flow.add(input, part)?;
            }
        }
        Ok(())
    }
}

impl Operation for ScaledRows {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (device, input, factors) = (flow.device(), flow.value(self.input), flow.value(self.factors));
        if flow.wants(self.factors) {
            flow.add(self.factors, dots(&device, input.shape(), input.buffer(), &gradient)?)?;
        }
        if flow.wants(self.input) {
            flow.add(self.input, scaled(&device, input.shape(), &gradient, factors.buffer())?)?;
        }
        Ok(())
    }
}

impl Operation for Concatenation {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let columns: usize = self.inputs.iter().map(|input| flow.value(*input).columns()).sum();
        let mut start = 0;
        for input in &self.inputs {
            let [rows, width] = flow.value(*input).shape();
            if flow.wants(*input) {
                let mut part = flow.device().allocate::<f32>(rows * width)?;
                match flow.device().backend() {
                    Backend::Cpu(cpu) => {
                        let gradient = gradient.host();
                        cpu.rows(part.host_mut(), width, |first, part| {
                            for (index, part) in part.chunks_exact_mut(width).enumerate() {
                                let from = (first + index) * columns + start;
                                part.copy_from_slice(&gradient[from..from + width]);
                            }
                        });
                    }
                    Backend::Cuda(cuda) => {
                        let n = rows * width;
                        let arguments = arguments![&gradient, &mut part, n, width, columns, start, true];
                        cuda.threads("copy_columns", n, arguments)?;
                    }
                }
                flow.add(*input, part)?;
            }
            start += width;
        }
        Ok(())
    }
}
