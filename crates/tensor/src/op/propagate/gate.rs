//! How much of each message passes: `σ(Σ v relu(of_state[s] + of_kind[k] + of_query[q]))` for every row, kind and query.
//!
//! All messages of one row along one kind are equal and share one gate, so there is one gate per piece of the edge index.

use std::sync::Arc;

use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::{Backend, Device};
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::op::linear::column_sums;
use crate::reach::{Extent, Reach};
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// The maximum hidden width of a gate.
const WIDEST: usize = 8;

struct Gate {
    inputs: [Var; 4],
    output: Var,
    reach: Arc<Reach>,
    before: Extent,
    width: usize,
}

impl Tape<'_> {
    /// A gate for every piece of the rows of the layer before `layer`, as a column. `of_state` has those rows,
    /// `of_kind` the kinds, `of_query` the queries, all with up to eight columns, and `weights` is one row of the
    /// same width.
    pub fn gate(
        &mut self,
        of_state: Var,
        of_kind: Var,
        of_query: Var,
        weights: Var,
        (reach, layer): (&Arc<Reach>, usize),
    ) -> Result<Var> {
        const NAME: &str = "gate";
        let inputs = [of_state, of_kind, of_query, weights];
        let before = reach.extents[layer - 1];
        let [_, width] = self.shape(of_state);
        expect_shape(width <= WIDEST, NAME, "width and the widest", &[width], &[WIDEST])?;
        let rows = [before.rows, reach.edge_index.kinds(), reach.queries(), 1];
        for (input, rows) in inputs.into_iter().zip(rows) {
            let shape = self.input(NAME, input)?.shape();
            expect_shape(shape == [rows, width], NAME, "input and rows reached", &shape, &[rows, width])?;
        }
        let mut out = self.device().allocate::<f32>(before.pieces)?;
        let values = inputs.map(|input| self.at(input).buffer());
        match self.device().backend() {
            Backend::Cpu(_) => {
                let out = out.host_mut();
                each_piece(
                    reach,
                    before,
                    values.map(Buffer::host),
                    width,
                    |piece, _, _, before_relu, weights| {
                        let sum: f32 =
                            before_relu.iter().zip(weights).map(|(x, weight)| weight * x.max(0.0)).sum();
                        out[piece] = simd::sigmoid(sum);
                    },
                );
            }
            Backend::Cuda(cuda) => {
                let [state, kind, query, weights] = values;
                let net = reach.descriptor.as_ref();
                let arguments = arguments![net, state, kind, query, weights, before.rows, width, &mut out];
                cuda.warps("gate", before.rows, arguments)?;
            }
        }
        let (output, reach) = (Tensor::of(out, before.pieces, 1), reach.clone());
        Ok(self.record(output, &inputs, |output| Gate { inputs, output, reach, before, width }))
    }
}

/// Visits the pieces of all rows: the piece, its row, its kind, the values before the ReLU, and the weights.
fn each_piece(
    reach: &Reach,
    before: Extent,
    [state, kinds, queries, weights]: [&[f32]; 4],
    width: usize,
    mut visit: impl FnMut(usize, usize, usize, &[f32], &[f32]),
) {
    let edges = &*reach.edge_index.0;
    let mut sums = [0.0f32; WIDEST];
    let mut piece = 0;
    for row in 0..before.rows {
        let node = reach.row_nodes.buffer().host()[row] as usize;
        let query = reach.row_queries.buffer().host()[row] as usize;
        for own in edges.piece_starts.host[node]..edges.piece_starts.host[node + 1] {
            let kind = edges.links.host[edges.piece_edges.host[own as usize] as usize] as usize;
            for column in 0..width {
                sums[column] = state[row * width + column]
                    + kinds[kind * width + column]
                    + queries[query * width + column];
            }
            visit(piece, row, kind, &sums[..width], weights);
            piece += 1;
        }
    }
}

/// The derivatives of the inputs; those of the weights as one row per row of the layer.
struct Derivatives {
    state: Buffer<f32>,
    kinds: Buffer<f32>,
    queries: Buffer<f32>,
    weights: Buffer<f32>,
}

impl Gate {
    fn derivatives(
        &self,
        device: &Device,
        values: &[Tensor; 4],
        output: &Buffer<f32>,
        gradient: &Buffer<f32>,
    ) -> Result<Derivatives> {
        let (reach, before, width) = (&*self.reach, self.before, self.width);
        let (kinds, queries) = (reach.edge_index.kinds(), reach.queries());
        let mut derivatives = Derivatives {
            state: device.zeros(before.rows * width)?,
            kinds: device.zeros(kinds * width)?,
            queries: device.zeros(queries * width)?,
            weights: device.zeros(before.rows * width)?,
        };
        let buffers = values.each_ref().map(Tensor::buffer);
        match device.backend() {
            Backend::Cpu(_) => {
                let owners = reach.row_queries.buffer().host();
                let (output, gradient) = (output.host(), gradient.host());
                let (of_state, of_kinds) = (derivatives.state.host_mut(), derivatives.kinds.host_mut());
                let (of_queries, of_weights) =
                    (derivatives.queries.host_mut(), derivatives.weights.host_mut());
                each_piece(
                    reach,
                    before,
                    buffers.map(Buffer::host),
                    width,
                    |piece, row, kind, sums, weights| {
                        let y = output[piece];
                        let derivative = gradient[piece] * y * (1.0 - y);
                        let query = owners[row] as usize;
                        for column in 0..width {
                            let passed = if sums[column] > 0.0 { derivative * weights[column] } else { 0.0 };
                            of_state[row * width + column] += passed;
                            of_kinds[kind * width + column] += passed;
                            of_queries[query * width + column] += passed;
                            of_weights[row * width + column] += derivative * sums[column].max(0.0);
                        }
                    },
                );
            }
            Backend::Cuda(cuda) => {
                let (net, rows) = (reach.descriptor.as_ref(), before.rows);
                let mut pieces = device.allocate::<f32>(before.pieces * width)?;
                let [state, kind, query, weights] = buffers;
                let Derivatives { state: of_state, weights: of_weights, .. } = &mut derivatives;
                let arguments = arguments![
                    net,
                    state,
                    kind,
                    query,
                    weights,
                    output,
                    gradient,
                    rows,
                    width,
                    &mut pieces,
                    of_state,
                    of_weights
                ];
                cuda.warps("gate_back", rows, arguments)?;
                let chunks = reach.edge_index.0.chunks();
                let mut parts = device.allocate::<f32>(queries * chunks * width)?;
                let arguments = arguments![net, &pieces, rows, width, &mut parts];
                cuda.threads("gate_chunks", queries * chunks * width, arguments)?;
                let mut each = device.allocate::<f32>(queries * kinds * width)?;
                let arguments = arguments![net, width, &parts, &mut each];
                cuda.warps("propagate_kinds", queries * kinds, arguments)?;
                let arguments =
                    arguments![&each, queries, kinds * width, &mut derivatives.kinds, 1.0f32, false];
                cuda.threads("sum_parts", kinds * width, arguments)?;
                let (runs, count) = (reach.runs.buffer(), reach.runs.len() - 1);
                let mut parts = device.allocate::<f32>(count * width)?;
                let arguments = arguments![runs, count, &derivatives.state, rows, width, &mut parts];
                cuda.threads("gate_runs", count * width, arguments)?;
                let (owners, all) = (reach.row_queries.buffer(), reach.rows(reach.layers()));
                let arguments =
                    arguments![&parts, owners, runs, count, all, queries, width, &mut derivatives.queries];
                cuda.threads("mlp_score_asked", queries * width, arguments)?;
            }
        }
        Ok(derivatives)
    }
}

impl Operation for Gate {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let values = self.inputs.map(|input| flow.value(input));
        let derivatives =
            self.derivatives(&flow.device(), &values, flow.value(self.output).buffer(), &gradient)?;
        let [of_state, of_kind, of_query, weights] = self.inputs;
        if let Some(mut target) = flow.target(weights)? {
            column_sums(&derivatives.weights, self.before.rows, self.width, &mut target)?;
            flow.put(weights, target.buffer, None);
        }
        flow.add(of_query, derivatives.queries)?;
        flow.add(of_kind, derivatives.kinds)?;
        flow.add(of_state, derivatives.state)
    }
}
