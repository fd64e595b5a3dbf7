//! A layer of a bounded frontier: the messages of a [`FrontierStep`], and new states for those who receive them.
//!
//! Messages, aggregates and derivatives are those of [`Tape::propagate`], over lists that hold what is sent and nothing
//! else. Rows that receive nothing keep their state.

mod backward;
mod forward;
mod settle;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::layer::Messages;
use super::{LANES, Masks};
use crate::device::{Backend, Device};
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::op::update::UpdateWeights;
use crate::reach::FrontierStep;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// Why nothing here runs on CUDA.
const ON_CPU: &str = "a frontier is made on the CPU alone";

/// The states after a layer.
#[derive(Clone, Copy, Debug)]
pub struct FrontierStates {
    /// Of all rows.
    pub all: Var,
    /// Of the rows that were updated, in their order.
    pub updated: Var,
}

/// The sizes of one aggregation.
#[derive(Clone, Copy)]
struct Sizes {
    width: usize,
    words: usize,
    /// The offset between the weights of consecutive queries; 0 if all queries share them.
    weight_step: usize,
}

struct Bounded {
    state: Var,
    weights: Var,
    start: Var,
    output: Var,
    step: Arc<FrontierStep>,
    sizes: Sizes,
    masks: Masks,
}

/// The derivatives of the inputs, as in `propagate`.
struct Derivatives {
    state: Buffer<f32>,
    weights: Buffer<f32>,
    start: Buffer<f32>,
    messages: Option<Buffer<f32>>,
}

impl Tape<'_> {
    /// The states after a layer of a bounded frontier, from the states of its rows before it. `messages.passed` is that
    /// state, too.
    pub fn frontier_layer(
        &mut self,
        messages: Messages,
        weights: UpdateWeights,
        step: &Arc<FrontierStep>,
        dropout: f32,
    ) -> Result<FrontierStates> {
        let Messages { passed: state, weights: kinds, start } = messages;
        let old = match step.updates_all() {
            true => state,
            false => self.gather(state, &step.old_receivers, 0.0)?,
        };
        let UpdateWeights { own, mixed, bias, scale, shift } = weights;
        let rows = step.updated_rows();
        let updated = if self.wants(&[state, kinds, start, own, mixed, bias, scale, shift]) {
            let aggregates = self.propagate_frontier(state, kinds, start, step)?;
            self.update(old, aggregates, weights, &rows, dropout)?
        } else {
            // A block of rows at a time, so that aggregates stay in the cache.
            let sizes = self.frontier_sizes([state, kinds, start], step)?;
            let device = self.device().clone();
            let Backend::Cpu(cpu) = device.backend() else { unreachable!("{ON_CPU}") };
            let mut out = device.allocate::<f32>(step.updates() * sizes.width)?;
            let update = self.row_update(old, 4 * sizes.width, weights, &rows)?;
            let values = [state, kinds, start].map(|input| self.at(input).buffer());
            forward::layer(cpu, step, sizes, values, &update, &mut out);
            self.constant(Tensor::of(out, step.updates(), sizes.width))?
        };
        let all = if step.updates_all() { updated } else { self.settle(state, updated, step)? };
        Ok(FrontierStates { all, updated })
    }

    /// Aggregates the messages of a step: from the state of its rows, `[rows, width]`, to `[receivers, 4 width]`. The
    /// other arguments are those of [`Tape::propagate`].
    pub fn propagate_frontier(
        &mut self,
        state: Var,
        weights: Var,
        start: Var,
        step: &Arc<FrontierStep>,
    ) -> Result<Var> {
        let inputs = [state, weights, start];
        let sizes = self.frontier_sizes(inputs, step)?;
        let (width, count) = (sizes.width, step.updates());
        let device = self.device().clone();
        let Backend::Cpu(cpu) = device.backend() else { unreachable!("{ON_CPU}") };
        let mut out = device.allocate::<f32>(count * 4 * width)?;
        let mut masks = match self.wants(&inputs) {
            true => Some(Masks {
                edges: device.zeros(step.messages() * sizes.words * 2)?,
                starts: device.zeros(step.queries * sizes.words * 2)?,
            }),
            false => None,
        };
        let values = inputs.map(|input| self.at(input).buffer());
        forward::aggregate(cpu, step, sizes, values, &mut out, masks.as_mut());
        let output = Tensor::of(out, count, 4 * width);
        let step = step.clone();
        Ok(self.record(output, &inputs, |output| {
            let masks = masks.expect("what is recorded wants a gradient");
            Bounded { state, weights, start, output, step, sizes, masks }
        }))
    }

    /// The sizes of an aggregation, after checking that all shapes match.
    fn frontier_sizes(&self, [state, weights, start]: [Var; 3], step: &FrontierStep) -> Result<Sizes> {
        const NAME: &str = "propagate_frontier";
        let [rows, width] = self.input(NAME, state)?.shape();
        expect_shape(rows == step.before, NAME, "state and rows", &[rows, width], &[step.before])?;
        let shape = self.input(NAME, start)?.shape();
        expect_shape(
            shape == [step.queries, width],
            NAME,
            "start and queries",
            &shape,
            &[step.queries, width],
        )?;
        let shape = self.input(NAME, weights)?.shape();
        let own = shape != [step.kinds, width];
        let fits = !own || shape == [step.queries, step.kinds * width];
        expect_shape(fits, NAME, "weights and kinds", &shape, &[step.kinds, width])?;
        let weight_step = if own { step.kinds * width } else { 0 };
        Ok(Sizes { width, words: width.div_ceil(LANES), weight_step })
    }
}

impl Derivatives {
    fn new(device: &Device, inputs: &[Tensor; 3], step: &FrontierStep) -> Result<Derivatives> {
        let [state, weights, start] =
            inputs.each_ref().map(|input| device.zeros::<f32>(input.rows() * input.columns()));
        let messages = step.trace.as_ref().map(|_| device.allocate(step.messages())).transpose()?;
        Ok(Derivatives { state: state?, weights: weights?, start: start?, messages })
    }
}

impl Operation for Bounded {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let mut gradient = flow.output(self.output)?;
        let output = flow.value(self.output);
        let inputs = [self.state, self.weights, self.start].map(|input| flow.value(input));
        let device = flow.device();
        let Backend::Cpu(cpu) = device.backend() else { unreachable!("{ON_CPU}") };
        let mut derivatives = Derivatives::new(&device, &inputs, &self.step)?;
        let values = inputs.each_ref().map(|input| input.buffer().host());
        backward::to_messages(cpu, &self.step, self.sizes, &mut gradient, output.buffer().host());
        let given = backward::Given::new(&self.step, self.sizes, values, gradient.host(), &self.masks);
        given.differentiate(cpu, &mut derivatives);
        if let (Some(trace), Some(messages)) = (&self.step.trace, derivatives.messages) {
            let count = messages.len();
            trace.put(self.step.layer, Tensor::of(messages, count, 1));
        }
        flow.add(self.start, derivatives.start)?;
        flow.add(self.weights, derivatives.weights)?;
        flow.add(self.state, derivatives.state)
    }
}
