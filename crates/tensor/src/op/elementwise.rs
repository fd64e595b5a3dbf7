//! Element-wise operations: ReLU, sigmoid, scaling, dropout.

use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::Result;
use crate::gradients::Target;
use crate::memory::Buffer;
use crate::random::Dropout;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// A function of one number.
#[derive(Clone, Copy)]
enum Function {
    Relu,
    Sigmoid,
    Scale(f32),
    Dropout(Dropout),
}

impl Function {
    /// The function as arguments of the kernels.
    fn arguments(self) -> (u32, f32, Dropout) {
        match self {
            Function::Relu => (0, 1.0, Dropout::NONE),
            Function::Sigmoid => (1, 1.0, Dropout::NONE),
            Function::Scale(factor) => (2, factor, Dropout::NONE),
            Function::Dropout(dropout) => (3, 1.0, dropout),
        }
    }
}

struct Elementwise {
    input: Var,
    output: Var,
    function: Function,
}

impl Tape<'_> {
    /// `max(x, 0)`.
    pub fn relu(&mut self, input: Var) -> Result<Var> {
        self.elementwise("relu", input, Function::Relu)
    }

    /// `1 / (1 + e^-x)`.
    pub fn sigmoid(&mut self, input: Var) -> Result<Var> {
        self.elementwise("sigmoid", input, Function::Sigmoid)
    }

    /// `factor · x`.
    pub fn scale(&mut self, input: Var, factor: f32) -> Result<Var> {
        self.elementwise("scale", input, Function::Scale(factor))
    }

    /// Sets a random part of the elements to zero and scales the rest so that the expectation is unchanged.
    pub fn dropout(&mut self, input: Var, rate: f32) -> Result<Var> {
        let dropout = self.dropout_of(rate);
        if dropout.is_none() {
            return Ok(input);
        }
        self.elementwise("dropout", input, Function::Dropout(dropout))
    }

    fn elementwise(&mut self, name: &'static str, input: Var, function: Function) -> Result<Var> {
        let value = self.input(name, input)?;
        let [rows, columns] = value.shape();
        let mut out = self.device().allocate::<f32>(rows * columns)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let source = value.buffer().host();
                cpu.rows(out.host_mut(), 1, |first, out| {
                    forward(function, &source[first..first + out.len()], first, out)
                });
            }
            Backend::Cuda(cuda) => {
                let (mode, factor, dropout) = function.arguments();
                let n = rows * columns;
                cuda.threads(
                    "elementwise",
                    n,
                    arguments![value.buffer(), &mut out, n, mode, factor, dropout],
                )?;
            }
        }
        let output = Tensor::of(out, rows, columns);
        Ok(self.record(output, &[input], |output| Elementwise { input, output, function }))
    }
}

fn forward(function: Function, source: &[f32], first: usize, out: &mut [f32]) {
    simd::vectorise(
        #[inline(always)]
        || match function {
            Function::Relu => {
                out.iter_mut().zip(source).for_each(|(out, x)| *out = if *x > 0.0 { *x } else { 0.0 })
            }
            Function::Sigmoid => out.iter_mut().zip(source).for_each(|(out, x)| *out = simd::sigmoid(*x)),
            Function::Scale(factor) => out.iter_mut().zip(source).for_each(|(out, x)| *out = factor * x),
            Function::Dropout(dropout) => {
                out.copy_from_slice(source);
                dropout.apply(out, first);
            }
        },
    );
}

impl Operation for Elementwise {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let mut gradient = flow.output(self.output)?;
        let output = flow.value(self.output);
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let output = output.buffer().host();
                cpu.rows(gradient.host_mut(), 1, |first, gradient| {
                    backward(self.function, &output[first..first + gradient.len()], first, gradient)
                });
            }
            Backend::Cuda(cuda) => {
                let (mode, factor, dropout) = self.function.arguments();
                let n = gradient.len();
                let arguments = arguments![output.buffer(), &mut gradient, n, mode, factor, dropout];
                cuda.threads("elementwise_back", n, arguments)?;
            }
        }
        flow.add(self.input, gradient)
    }
}

/// Multiplies the gradient by the function's derivative, known from its output.
fn backward(function: Function, output: &[f32], first: usize, gradient: &mut [f32]) {
    simd::vectorise(
        #[inline(always)]
        || match function {
            Function::Relu => {
                gradient.iter_mut().zip(output).for_each(|(g, y)| *g = if *y > 0.0 { *g } else { 0.0 })
            }
            Function::Sigmoid => gradient.iter_mut().zip(output).for_each(|(g, y)| *g *= y * (1.0 - y)),
            Function::Scale(factor) => gradient.iter_mut().for_each(|g| *g *= factor),
            Function::Dropout(dropout) => dropout.apply(gradient, first),
        },
    );
}

/// Adds `part` to a gradient, or overwrites a fresh one.
pub(crate) fn accumulate(target: &mut Target, part: &Buffer<f32>) -> Result<()> {
    let fresh = target.fresh;
    match part.device().backend() {
        Backend::Cpu(cpu) => {
            let part = part.host();
            cpu.rows(target.buffer.host_mut(), 1, |first, target| {
                let part = &part[first..first + target.len()];
                match fresh {
                    true => target.copy_from_slice(part),
                    false => simd::vectorise(
                        #[inline(always)]
                        || simd::add(target, part),
                    ),
                }
            });
        }
        Backend::Cuda(cuda) if fresh => {
            cuda.copy(target.buffer.pointer(), part.pointer(), part.len() * size_of::<f32>())?;
        }
        Backend::Cuda(cuda) => {
            cuda.threads("add_to", part.len(), arguments![&mut target.buffer, part, part.len()])?;
        }
    }
    target.fresh = false;
    Ok(())
}
