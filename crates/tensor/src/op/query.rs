//! The queries of the bilinear and rotating models: head and relation combined.
//!
//! A row holds complex numbers, all real parts first, then all imaginary parts. ComplEx multiplies head and
//! relation; RotatE turns the head by the relation's angles. DistMult's query is
//! [`Tape::multiply`](crate::Tape::multiply).

use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The relation holds complex numbers.
    Product,
    /// The relation holds angles.
    Rotation,
}

struct ComplexQuery {
    head: Var,
    relation: Var,
    form: Form,
    output: Var,
}

impl Tape<'_> {
    /// ComplEx: `head · relation` as complex numbers, both of `2d` columns.
    pub fn complex_product(&mut self, head: Var, relation: Var) -> Result<Var> {
        self.complex_query("complex_product", head, relation, Form::Product)
    }

    /// RotatE: `head · e^(i angle)`, for a head of `2d` columns and angles of `d`.
    pub fn rotate(&mut self, head: Var, angle: Var) -> Result<Var> {
        self.complex_query("rotate", head, angle, Form::Rotation)
    }

    fn complex_query(&mut self, name: &'static str, head: Var, relation: Var, form: Form) -> Result<Var> {
        let (left, right) = (self.input(name, head)?, self.input(name, relation)?);
        let [rows, columns] = left.shape();
        let width = if form == Form::Product { columns } else { columns / 2 };
        let fits = columns % 2 == 0 && right.shape() == [rows, width];
        expect_shape(fits, name, "head and relation", &left.shape(), &right.shape())?;
        let mut out = self.device().allocate::<f32>(rows * columns)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (heads, relations) = (left.buffer().host(), right.buffer().host());
                let half = columns / 2;
                cpu.rows(out.host_mut(), columns, |first, out| {
                    for (index, out) in out.chunks_exact_mut(columns).enumerate() {
                        let row = first + index;
                        let head = &heads[row * columns..(row + 1) * columns];
                        let relation = &relations[row * width..(row + 1) * width];
                        for k in 0..half {
                            let (real, imaginary) = factor(form, relation, half, k);
                            out[k] = head[k] * real - head[half + k] * imaginary;
                            out[half + k] = head[k] * imaginary + head[half + k] * real;
                        }
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (n, rotation) = (rows * columns / 2, form == Form::Rotation);
                let arguments = arguments![left.buffer(), right.buffer(), &mut out, n, columns / 2, rotation];
                cuda.threads("complex_query", n, arguments)?;
            }
        }
        let output = Tensor::of(out, rows, columns);
        Ok(self.record(output, &[head, relation], |output| ComplexQuery { head, relation, form, output }))
    }
}

#[inline(always)]
fn factor(form: Form, relation: &[f32], half: usize, k: usize) -> (f32, f32) {
    match form {
        Form::Product => (relation[k], relation[half + k]),
        Form::Rotation => (relation[k].cos(), relation[k].sin()),
    }
}

impl Operation for ComplexQuery {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (head, relation) = (flow.value(self.head), flow.value(self.relation));
        let width = relation.columns();
        if flow.wants(self.head) {
            let part = self.toward_head(&gradient, &head, &relation, width)?;
            flow.add(self.head, part)?;
        }
        if flow.wants(self.relation) {
            let part = self.toward_relation(&gradient, &head, &relation, width)?;
            flow.add(self.relation, part)?;
        }
        Ok(())
    }
}

impl ComplexQuery {
    fn toward_head(
        &self,
        gradient: &Buffer<f32>,
        head: &Tensor,
        relation: &Tensor,
        width: usize,
    ) -> Result<Buffer<f32>> {
        let [rows, columns] = head.shape();
        let (device, half) = (head.device(), columns / 2);
        let mut part = device.allocate::<f32>(rows * columns)?;
        match device.backend() {
            Backend::Cpu(cpu) => {
                let (relations, gradient) = (relation.buffer().host(), gradient.host());
                cpu.rows(part.host_mut(), columns, |first, part| {
                    for (index, part) in part.chunks_exact_mut(columns).enumerate() {
                        let row = first + index;
                        let relation = &relations[row * width..(row + 1) * width];
                        let derivative = &gradient[row * columns..(row + 1) * columns];
                        for k in 0..half {
                            let (real, imaginary) = factor(self.form, relation, half, k);
                            part[k] = derivative[k] * real + derivative[half + k] * imaginary;
                            part[half + k] = derivative[half + k] * real - derivative[k] * imaginary;
                        }
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (n, rotation) = (rows * half, self.form == Form::Rotation);
                let arguments = arguments![gradient, relation.buffer(), &mut part, n, half, rotation];
                cuda.threads("complex_query_head", n, arguments)?;
            }
        }
        Ok(part)
    }

    fn toward_relation(
        &self,
        gradient: &Buffer<f32>,
        head: &Tensor,
        relation: &Tensor,
        width: usize,
    ) -> Result<Buffer<f32>> {
        let [rows, columns] = head.shape();
        let (device, half) = (head.device(), columns / 2);
        let mut part = device.allocate::<f32>(rows * width)?;
        match device.backend() {
            Backend::Cpu(cpu) => {
                let (heads, relations, gradient) =
                    (head.buffer().host(), relation.buffer().host(), gradient.host());
                cpu.rows(part.host_mut(), width, |first, part| {
                    for (index, part) in part.chunks_exact_mut(width).enumerate() {
                        let row = first + index;
                        let head = &heads[row * columns..(row + 1) * columns];
                        let derivative = &gradient[row * columns..(row + 1) * columns];
                        let relation = &relations[row * width..(row + 1) * width];
                        for k in 0..half {
                            let to_real = derivative[k] * head[k] + derivative[half + k] * head[half + k];
                            let to_imaginary =
                                derivative[half + k] * head[k] - derivative[k] * head[half + k];
                            match self.form {
                                Form::Product => (part[k], part[half + k]) = (to_real, to_imaginary),
                                Form::Rotation => {
                                    let (cosine, sine) = factor(self.form, relation, half, k);
                                    part[k] = to_imaginary * cosine - to_real * sine;
                                }
                            }
                        }
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (n, rotation) = (rows * half, self.form == Form::Rotation);
                let (head, relation) = (head.buffer(), relation.buffer());
                let arguments = arguments![gradient, head, relation, &mut part, n, half, rotation];
                cuda.threads("complex_query_relation", n, arguments)?;
            }
        }
        Ok(part)
    }
}
