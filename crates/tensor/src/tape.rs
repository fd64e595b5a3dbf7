//! The tape: records operations as they are done, then runs them backward.
//!
//! A [`Tape`] lives for one step. Its operations are methods (one file each in `op/`) that take and return [`Var`]
//! handles; [`Tape::backward`] walks the records in reverse, and each adds its part to the gradients of its inputs. A
//! record keeps what its backward pass needs; the value of a variable stays on the tape as long as the tape lives.
//!
//! Invariant: only an operation's own file knows its gradient, and only through [`Flow`].

use super::cuda::Precision;
use super::device::Device;
use super::error::{Result, TensorError, expect_shape};
use super::gradients::{Gradients, Target};
use super::memory::Buffer;
use super::parameters::{ParameterId, Parameters};
use super::random::{Dropout, Key};
use super::value::Tensor;

/// A value on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var(u32);

/// A recorded operation: what its backward pass needs.
pub(crate) trait Operation {
    /// Reads the gradients of the outputs and adds to those of the inputs.
    fn backward(&self, flow: &mut Flow) -> Result<()>;
}

struct Node {
    value: Tensor,
    parameter: Option<ParameterId>,
    /// Whether a gradient is needed: whether it depends on a trainable parameter.
    wanted: bool,
}

struct Record {
    operation: Box<dyn Operation>,
    outputs: std::ops::Range<u32>,
}

/// A computation in progress.
pub struct Tape<'a> {
    parameters: &'a Parameters,
    nodes: Vec<Node>,
    records: Vec<Record>,
    parameter_vars: Vec<Option<Var>>,
    training: bool,
    seed: u64,
    drawn: u64,
    precision: Precision,
    pub(super) statistics: Vec<(ParameterId, Tensor)>,
}

impl<'a> Tape<'a> {
    /// A tape that records for a backward pass and applies dropout; use a different `seed` for every step.
    pub fn training(parameters: &'a Parameters, seed: u64) -> Self {
        Self::new(parameters, true, seed)
    }

    /// A tape that only computes: nothing is kept for a backward pass, dropout does nothing and
    /// normalisation uses its running statistics.
    pub fn inference(parameters: &'a Parameters) -> Self {
        Self::new(parameters, false, 0)
    }

    /// A tape over the same parameters and of the same precision that only computes.
    #[must_use]
    pub fn beside(&self) -> Self {
        Tape { precision: self.precision, ..Self::inference(self.parameters) }
    }

    fn new(parameters: &'a Parameters, training: bool, seed: u64) -> Self {
        let parameter_vars = vec![None; parameters.entries.len()];
        let (nodes, records, statistics) = (Vec::new(), Vec::new(), Vec::new());
        let precision = Precision::Rounded;
        Tape { parameters, nodes, records, parameter_vars, training, seed, drawn: 0, precision, statistics }
    }

    /// The same tape; if `exact`, [`linear`](Self::linear) and [`update`](Self::update) multiply in full `f32` on CUDA
    /// too instead of TF32. For ranking: where many scores are nearly the same, rounding decides which is first.
    #[must_use]
    pub fn exact(mut self, exact: bool) -> Self {
        self.precision = if exact { Precision::Full } else { Precision::Rounded };
        self
    }

    /// The precision of its products.
    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// Whether this tape is for training.
    pub fn is_training(&self) -> bool {
        self.training
    }

    /// The device that computes.
    pub fn device(&self) -> &'a Device {
        self.parameters.device()
    }

    /// A parameter as a variable.
    pub fn parameter(&mut self, id: ParameterId) -> Var {
        if let Some(var) = self.parameter_vars[id.0 as usize] {
            return var;
        }
        let wanted = self.training && self.parameters.learns(id);
        self.nodes.push(Node { value: self.parameters.value(id), parameter: Some(id), wanted });
        let var = Var(self.nodes.len() as u32 - 1);
        self.parameter_vars[id.0 as usize] = Some(var);
        var
    }

    /// A value that no gradient flows into.
    pub fn constant(&mut self, value: Tensor) -> Result<Var> {
        expect_number("constant", &value)?;
        Ok(self.node(value, false))
    }

    /// The value of a variable. To continue with it without a gradient, pass it to [`Tape::constant`].
    pub fn value(&self, var: Var) -> Tensor {
        self.at(var).clone()
    }

    /// Rows and columns of a variable.
    pub fn shape(&self, var: Var) -> [usize; 2] {
        self.at(var).shape()
    }

    /// A fresh key for a random operation of this step; the same seed and order of operations give the same key.
    pub fn key(&mut self) -> Key {
        self.drawn += 1;
        Key::new(self.seed, self.drawn)
    }

    /// Runs the tape backward from `loss`, a single number, and adds to `gradients`.
    pub fn backward(self, loss: Var, gradients: &mut Gradients) -> Result<()> {
        if !self.training {
            return Err(TensorError::Backward("this tape was made for inference and recorded nothing"));
        }
        gradients.expect_for(self.parameters)?;
        let shape = self.shape(loss);
        expect_shape(shape == [1, 1], "backward", "the loss and a single number", &shape, &[1, 1])?;
        let device = self.device().clone();
        let mut pending: Vec<Option<Buffer<f32>>> = Vec::new();
        pending.resize_with(self.nodes.len(), || None);
        pending[loss.0 as usize] = Some(device.upload(&[1.0])?);
        gradients.statistics.extend(self.statistics);
        let empty = Tensor::zeros(&device, 0, 0)?;
        let mut flow = Flow { nodes: self.nodes, pending, gradients, device };
        for record in self.records.into_iter().rev() {
            if record.outputs.clone().any(|output| flow.pending[output as usize].is_some()) {
                record.operation.backward(&mut flow)?;
            }
            // No earlier record uses these outputs: free them, and what the record kept.
            for output in record.outputs {
                flow.pending[output as usize] = None;
                flow.nodes[output as usize].value = empty.clone();
            }
        }
        Ok(())
    }

    pub(crate) fn at(&self, var: Var) -> &Tensor {
        &self.nodes[var.0 as usize].value
    }

    /// The value of an input of `operation`; debug builds check it for NaN.
    pub(crate) fn input(&self, operation: &'static str, var: Var) -> Result<&Tensor> {
        let node = &self.nodes[var.0 as usize];
        if node.parameter.is_none() {
            expect_number(operation, &node.value)?;
        }
        Ok(&node.value)
    }

    pub(crate) fn wants(&self, vars: &[Var]) -> bool {
        self.training && vars.iter().any(|var| self.nodes[var.0 as usize].wanted)
    }

    /// Dropout at this rate when training, none otherwise.
    pub(crate) fn dropout_of(&mut self, rate: f32) -> Dropout {
        if self.training && rate > 0.0 { Dropout::new(rate, self.key()) } else { Dropout::NONE }
    }

    /// Puts an output on the tape; `operation` is recorded if a gradient can reach one of `inputs`.
    pub(crate) fn record<O: Operation + 'static>(
        &mut self,
        value: Tensor,
        inputs: &[Var],
        operation: impl FnOnce(Var) -> O,
    ) -> Var {
        let wanted = self.wants(inputs);
        let var = self.node(value, wanted);
        if wanted {
            let operation = Box::new(operation(var));
            self.records.push(Record { operation, outputs: var.0..var.0 + 1 });
        }
        var
    }

    /// As [`Tape::record`], with two outputs.
    pub(crate) fn record_pair<O: Operation + 'static>(
        &mut self,
        values: (Tensor, Tensor),
        inputs: &[Var],
        operation: impl FnOnce(Var, Var) -> O,
    ) -> (Var, Var) {
        let wanted = self.wants(inputs);
        let (first, second) = (self.node(values.0, wanted), self.node(values.1, wanted));
        if wanted {
            let operation = Box::new(operation(first, second));
            self.records.push(Record { operation, outputs: first.0..second.0 + 1 });
        }
        (first, second)
    }

    fn node(&mut self, value: Tensor, wanted: bool) -> Var {
        self.nodes.push(Node { value, parameter: None, wanted });
        Var(self.nodes.len() as u32 - 1)
    }
}

/// The gradients during a backward pass.
pub(crate) struct Flow<'a> {
    nodes: Vec<Node>,
    pending: Vec<Option<Buffer<f32>>>,
    gradients: &'a mut Gradients,
    device: Device,
}

impl Flow<'_> {
    pub(crate) fn device(&self) -> Device {
        self.device.clone()
    }

    pub(crate) fn value(&self, var: Var) -> Tensor {
        self.nodes[var.0 as usize].value.clone()
    }

    pub(crate) fn wants(&self, var: Var) -> bool {
        self.nodes[var.0 as usize].wanted
    }

    /// The gradient of an output, if there is one.
    pub(crate) fn take(&mut self, output: Var) -> Option<Buffer<f32>> {
        self.pending[output.0 as usize].take()
    }

    /// The gradient of the only output of an operation.
    pub(crate) fn output(&mut self, output: Var) -> Result<Buffer<f32>> {
        self.take(output).ok_or(TensorError::Backward("an operation ran backward without a gradient"))
    }

    /// The gradient buffer of an input to add to, or none if it needs no gradient. Return it with [`Flow::put`].
    pub(crate) fn target(&mut self, input: Var) -> Result<Option<Target>> {
        let node = &self.nodes[input.0 as usize];
        if !node.wanted {
            return Ok(None);
        }
        if let Some(id) = node.parameter {
            return self.gradients.take_all(id).map(Some);
        }
        let len = node.value.rows() * node.value.columns();
        Ok(Some(match self.pending[input.0 as usize].take() {
            Some(buffer) => Target { buffer, fresh: false },
            None => Target { buffer: self.device.allocate(len)?, fresh: true },
        }))
    }

    /// As [`Flow::target`], for an operation that adds to some rows only: the buffer is never fresh, and the caller
    /// must mark the touched rows of a table.
    pub(crate) fn target_rows(&mut self, input: Var) -> Result<Option<(Target, Option<Buffer<u32>>)>> {
        let node = &self.nodes[input.0 as usize];
        if !node.wanted {
            return Ok(None);
        }
        if let Some(id) = node.parameter {
            return self.gradients.take_rows(id).map(Some);
        }
        let mut target = self.target(input)?.expect("a wanted variable has a target");
        if target.fresh {
            target.buffer.clear()?;
            target.fresh = false;
        }
        Ok(Some((target, None)))
    }

    /// Returns a gradient buffer.
    pub(crate) fn put(&mut self, input: Var, buffer: Buffer<f32>, touched: Option<Buffer<u32>>) {
        match self.nodes[input.0 as usize].parameter {
            Some(id) => self.gradients.put(id, buffer, touched),
            None => self.pending[input.0 as usize] = Some(buffer),
        }
    }

    /// Hands a finished gradient to an input: moved in if it is the first, else added.
    pub(crate) fn add(&mut self, input: Var, part: Buffer<f32>) -> Result<()> {
        let node = &self.nodes[input.0 as usize];
        if !node.wanted {
            return Ok(());
        }
        if node.parameter.is_none() && self.pending[input.0 as usize].is_none() {
            self.pending[input.0 as usize] = Some(part);
            return Ok(());
        }
        let mut target = self.target(input)?.expect("a wanted variable has a target");
        super::op::elementwise::accumulate(&mut target, &part)?;
        self.put(input, target.buffer, None);
        Ok(())
    }
}

/// In debug builds, an error if a value is NaN.
pub(crate) fn expect_number(operation: &'static str, value: &Tensor) -> Result<()> {
    if cfg!(debug_assertions) {
        let values = value.buffer().read()?;
        if let Some(position) = values.iter().position(|value| value.is_nan()) {
            return Err(TensorError::NotANumber { operation, position, shape: value.shape().to_vec() });
        }
    }
    Ok(())
}
