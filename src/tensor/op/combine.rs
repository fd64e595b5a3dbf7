//! Operations on two or more values with the same rows: sum, product, dot product of rows, concatenation.

use crate::tensor::cpu::{Cpu, simd};
use crate::tensor::cuda::launch::arguments;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::Tensor;

pub(crate) const KERNELS: &str = r#"
extern "C" __global__ void pairwise(const float* left, const float* right, float* out, u32 n, u32 multiply) {
    u32 i = THREAD;
    if (i < n) out[i] = multiply ? left[i] * right[i] : left[i] + right[i];
}
extern "C" __global__ void row_dot(const float* left, const float* right, float* out, u32 rows, u32 columns) {
    u32 row = WARP;
    if (row >= rows) return;
    float sum = 0.0f;
    for (u32 k = LANE; k < columns; k += 32) sum += left[(u64)row * columns + k] * right[(u64)row * columns + k];
    sum = warp_sum(sum);
    if (LANE == 0) out[row] = sum;
}
extern "C" __global__ void scale_rows(const float* in, const float* factors, float* out, u32 n, u32 columns) {
    u32 i = THREAD;
    if (i < n) out[i] = in[i] * factors[i / columns];
}
// Between a matrix of `width` columns and the columns from `start` on of a wider one.
extern "C" __global__ void copy_columns(const float* in, float* out, u32 n, u32 width, u32 wide, u32 start, u32 take) {
    u32 i = THREAD;
    if (i >= n) return;
    u64 at = (u64)(i / width) * wide + start + i % width;
    if (take) out[i] = in[at]; else out[at] = in[i];
}
"#;

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
        let [rows, columns] = a.shape();
        let mut out = self.device().allocate::<f32>(rows)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (a, b) = (a.buffer().host(), b.buffer().host());
                cpu.zip([(out.host_mut(), 1)], Cpu::rows_per_chunk(columns), |first, [out]| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for (index, out) in out.iter_mut().enumerate() {
                                let range = (first + index) * columns..(first + index + 1) * columns;
                                *out = simd::dot(&a[range.clone()], &b[range]);
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                cuda.warps("row_dot", rows, arguments![a.buffer(), b.buffer(), &mut out, rows, columns])?;
            }
        }
        let output = Tensor::of(out, rows, 1);
        Ok(self.record(output, &[left, right], |output| RowDot { left, right, output }))
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

impl Operation for RowDot {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        for (input, other) in [(self.left, self.right), (self.right, self.left)] {
            if !flow.wants(input) {
                continue;
            }
            let other = flow.value(other);
            let columns = other.columns();
            let mut part = flow.device().allocate::<f32>(other.rows() * columns)?;
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let (other, gradient) = (other.buffer().host(), gradient.host());
                    cpu.rows(part.host_mut(), columns, |first, part| {
                        for (index, part) in part.chunks_exact_mut(columns).enumerate() {
                            let row = first + index;
                            let source = &other[row * columns..(row + 1) * columns];
                            part.iter_mut().zip(source).for_each(|(part, x)| *part = x * gradient[row]);
                        }
                    });
                }
                Backend::Cuda(cuda) => {
                    let n = part.len();
                    cuda.threads(
                        "scale_rows",
                        n,
                        arguments![other.buffer(), &gradient, &mut part, n, columns],
                    )?;
                }
            }
            flow.add(input, part)?;
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
