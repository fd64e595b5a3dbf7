//! Messages along the edges, aggregated at every node they reach (principal neighbourhood aggregation).
//!
//! A message from row `s` along an edge of kind `k` is `state[s] ⊙ weights[k]`; the weights may differ by query. A
//! row aggregates the messages of its edges and one more: the query's start vector where the query starts, zero
//! elsewhere (`start`). Nodes that are not reached send zeros, so nothing has to be computed for them. The output is
//! `[mean | max | min | standard deviation]`; the mean is over all edges and the start.
//!
//! In the backward pass, the derivative of a message `x` at row `t` is `a[t] + b[t] x`, plus those of maximum and
//! minimum if `x` attains them. The forward pass records which edge does, with two bits per edge and column. All
//! messages of a row along one kind are equal, so their derivatives are summed first, piece by piece (`edge_index`); the
//! sum goes to the state and, by kind, to the weights. Every sum has a fixed order, given by the edge index: there are no
//! atomic additions.

pub(crate) mod bounded;
mod cpu;
mod cuda;
pub(crate) mod gate;
pub(crate) mod gated;
pub(crate) mod layer;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::device::{Backend, Device};
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::reach::{Extent, Reach};
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// The minimum variance of messages; below it the standard deviation has no derivative.
const LEAST_VARIANCE: f32 = 1e-6;
/// A standard deviation above this does not come from the minimum variance.
const FREE_DEVIATION: f32 = 1.0005e-3;
/// Columns processed at once; a word of a mask has one bit for each.
const LANES: usize = 32;

/// The sizes of one aggregation.
#[derive(Clone, Copy)]
struct Sizes {
    /// The layer, from 1.
    layer: usize,
    /// The extents of the previous layer and of this one.
    before: Extent,
    after: Extent,
    width: usize,
    /// The number of groups of columns.
    words: usize,
    /// The offset between the weights of consecutive queries; 0 if all queries share them.
    weight_step: usize,
}

/// What the forward pass stores for the backward pass: for every edge, group of columns, and maximum or minimum, the
/// columns in which the edge's message attains it; and the same for the start of every query.
struct Masks {
    edges: Buffer<u32>,
    starts: Buffer<u32>,
}

struct Propagate {
    state: Var,
    weights: Var,
    start: Var,
    output: Var,
    reach: Arc<Reach>,
    sizes: Sizes,
    masks: Masks,
}

/// The derivatives of the inputs.
struct Derivatives {
    state: Buffer<f32>,
    weights: Buffer<f32>,
    start: Buffer<f32>,
    /// The derivatives with respect to a weight of 1 on every message; only if they are traced.
    edges: Option<Buffer<f32>>,
}

impl Tape<'_> {
    /// Aggregates the messages of layer `layer` (from 1) of `reach`: from the state of the rows of the previous
    /// layer, `[rows, width]`, to `[rows, 4 width]`. `weights` has one row per kind, or one row per query with the
    /// weights of all kinds in order; `start` has one row per query.
    pub fn propagate(
        &mut self,
        state: Var,
        weights: Var,
        start: Var,
        reach: &Arc<Reach>,
        layer: usize,
    ) -> Result<Var> {
        let sizes = self.message_sizes("propagate", [state, weights, start], reach, layer)?;
        let Sizes { after, width, .. } = sizes;
        let device = self.device().clone();
        let mut out = device.allocate::<f32>(after.rows * 4 * width)?;
        let inputs = [state, weights, start];
        let mut masks = match self.wants(&inputs) {
            true => Some(Masks::new(&device, reach, sizes)?),
            false => None,
        };
        let values = inputs.map(|input| self.at(input).buffer());
        match device.backend() {
            Backend::Cpu(cpu) => cpu::forward(cpu, reach, sizes, values, &mut out, masks.as_mut()),
            Backend::Cuda(cuda) => cuda::forward(cuda, reach, sizes, values, &mut out, masks.as_mut())?,
        }
        let output = Tensor::of(out, after.rows, 4 * width);
        let reach = reach.clone();
        Ok(self.record(output, &inputs, |output| {
            let masks = masks.expect("what is recorded wants a gradient");
            Propagate { state, weights, start, output, reach, sizes, masks }
        }))
    }
}

impl Tape<'_> {
    /// The sizes of an aggregation of layer `layer`, after checking that all shapes match.
    fn message_sizes(
        &self,
        name: &'static str,
        [state, weights, start]: [Var; 3],
        reach: &Reach,
        layer: usize,
    ) -> Result<Sizes> {
        let (queries, kinds, layers) = (reach.queries(), reach.edge_index.kinds(), reach.layers());
        let there = layer >= 1 && layer <= layers;
        expect_shape(there, name, "layer and layers reached", &[layer], &[layers])?;
        let [rows, width] = self.input(name, state)?.shape();
        let (before, after) = (reach.extents[layer - 1], reach.extents[layer]);
        expect_shape(rows == before.rows, name, "state and rows reached", &[rows, width], &[before.rows])?;
        let shape = self.input(name, start)?.shape();
        expect_shape(shape == [queries, width], name, "start and queries", &shape, &[queries, width])?;
        let shape = self.input(name, weights)?.shape();
        // With as many queries as kinds and a width of 1, both shapes would fit; shared weights take precedence.
        let own = shape != [kinds, width];
        let fits = !own || shape == [queries, kinds * width];
        expect_shape(fits, name, "weights and kinds", &shape, &[kinds, width])?;
        let weight_step = if own { kinds * width } else { 0 };
        Ok(Sizes { layer, before, after, width, words: width.div_ceil(LANES), weight_step })
    }
}

impl Masks {
    fn new(device: &Device, reach: &Reach, sizes: Sizes) -> Result<Masks> {
        Ok(Masks {
            edges: device.allocate(sizes.after.edges * sizes.words * 2)?,
            starts: device.allocate(reach.queries() * sizes.words * 2)?,
        })
    }
}

impl Operation for Propagate {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let output = flow.value(self.output);
        let inputs = [self.state, self.weights, self.start].map(|input| flow.value(input));
        let device = flow.device();
        let length = |tensor: &Tensor| tensor.rows() * tensor.columns();
        let mut derivatives = Derivatives {
            state: device.allocate(length(&inputs[0]))?,
            weights: device.allocate(length(&inputs[1]))?,
            start: device.allocate(length(&inputs[2]))?,
            edges: match self.reach.trace {
                Some(_) => Some(device.allocate(self.sizes.before.edges)?),
                None => None,
            },
        };
        let values = inputs.each_ref().map(Tensor::buffer);
        match device.backend() {
            Backend::Cpu(cpu) => {
                let given = cpu::Given { gradient, output: output.buffer(), masks: &self.masks };
                cpu::backward(cpu, &self.reach, self.sizes, values, given, &mut derivatives);
            }
            Backend::Cuda(cuda) => {
                let given = cuda::Given { gradient, output: output.buffer(), masks: &self.masks };
                cuda::backward(cuda, &self.reach, self.sizes, values, given, &mut derivatives)?;
            }
        }
        if let (Some(trace), Some(edges)) = (&self.reach.trace, derivatives.edges) {
            let count = edges.len();
            trace.put(self.sizes.layer, Tensor::of(edges, count, 1));
        }
        flow.add(self.start, derivatives.start)?;
        flow.add(self.weights, derivatives.weights)?;
        flow.add(self.state, derivatives.state)
    }
}
