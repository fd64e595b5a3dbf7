//! A whole layer: messages, aggregates and new states.
//!
//! Without a gradient the CPU takes a block of rows at a time from their messages to their new states, so that
//! aggregates stay in the cache and are never all in memory. Otherwise a layer is [`Tape::propagate`] and
//! [`Tape::update`].

use std::sync::Arc;

use super::{Sizes, cpu};
use crate::device::Backend;
use crate::error::Result;
use crate::op::update::UpdateWeights;
use crate::reach::Reach;
use crate::tape::{Tape, Var};
use crate::value::Tensor;

/// The inputs of the messages.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// What every row of the previous layer passes on, `[rows, width]`.
    pub passed: Var,
    /// The weights of the kinds, as for [`Tape::propagate`].
    pub weights: Var,
    /// What the queries start with, `[queries, width]`.
    pub start: Var,
}

impl Tape<'_> {
    /// The states after layer `layer` (from 1) of `reach`, from the states before it and the messages along its
    /// edges.
    pub fn propagate_layer(
        &mut self,
        state: Var,
        messages: Messages,
        weights: UpdateWeights,
        (reach, layer): (&Arc<Reach>, usize),
        dropout: f32,
    ) -> Result<Var> {
        let inputs = [messages.passed, messages.weights, messages.start];
        let UpdateWeights { own, mixed, bias, scale, shift } = weights;
        let all = [inputs[0], inputs[1], inputs[2], state, own, mixed, bias, scale, shift];
        let device = self.device().clone();
        let Backend::Cpu(threads) = device.backend() else {
            return self.in_two(state, inputs, weights, (reach, layer), dropout);
        };
        if self.wants(&all) {
            return self.in_two(state, inputs, weights, (reach, layer), dropout);
        }
        let sizes = self.message_sizes("propagate_layer", inputs, reach, layer)?;
        let Sizes { after, width, .. } = sizes;
        let mut out = device.allocate::<f32>(after.rows * width)?;
        let updated = reach.updated_rows(layer);
        let update = self.row_update(state, 4 * width, weights, &updated)?;
        let values = inputs.map(|input| self.at(input).buffer());
        cpu::layer(threads, reach, sizes, values, &update, &mut out);
        self.constant(Tensor::of(out, after.rows, width))
    }

    fn in_two(
        &mut self,
        state: Var,
        [passed, weights, start]: [Var; 3],
        update: UpdateWeights,
        (reach, layer): (&Arc<Reach>, usize),
        dropout: f32,
    ) -> Result<Var> {
        let aggregates = self.propagate(passed, weights, start, reach, layer)?;
        self.update(state, aggregates, update, &reach.updated_rows(layer), dropout)
    }
}
