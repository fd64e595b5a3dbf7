//! A score for every row from its hidden layer and its query's: `Σ v relu(hidden[row] + hidden_of_query)`.
//!
//! The second half of a perceptron over (state, query): the products with the states and with the few queries are
//! computed separately, so they need not be concatenated. The rows are followed by one score per query for all nodes
//! that were not reached, whose state is zero.

use crate::cpu::simd;
use crate::cuda::launch::{BLOCK, arguments};
use crate::device::{Backend, Device};
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::reach::ScoredRows;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// The widest hidden layer: a lane of the kernels holds eight columns.
const WIDEST: usize = 256;

struct Judge {
    hidden: Var,
    asked: Var,
    weights: Var,
    output: Var,
    scored: ScoredRows,
}

/// The gradients of the inputs; those of the weights as one row per run.
struct Derivatives {
    hidden: Buffer<f32>,
    asked: Buffer<f32>,
    weights: Buffer<f32>,
    runs: usize,
}

impl Tape<'_> {
    /// The score of every row, followed by one for the unreached nodes of each query: a vector. `hidden` has the rows, `asked` the queries, and `weights` is one row of the same width.
    pub fn mlp_score(&mut self, hidden: Var, asked: Var, weights: Var, scored: &ScoredRows) -> Result<Var> {
        const NAME: &str = "mlp_score";
        let (rows, count) = (scored.rows(), scored.queries);
        let [found, width] = self.input(NAME, hidden)?.shape();
        expect_shape(found == rows, NAME, "hidden layer and rows reached", &[found, width], &[rows])?;
        expect_shape(width <= WIDEST, NAME, "width and the widest", &[width], &[WIDEST])?;
        let shape = self.input(NAME, asked)?.shape();
        expect_shape(shape == [count, width], NAME, "hidden layer of the queries", &shape, &[count, width])?;
        let shape = self.input(NAME, weights)?.shape();
        expect_shape(shape == [1, width], NAME, "weights and hidden layer", &shape, &[1, width])?;
        let mut out = self.device().allocate::<f32>(rows + count)?;
        let [values, queries, factors] = [hidden, asked, weights].map(|input| self.at(input).buffer());
        let owners = scored.row_queries.buffer();
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (values, queries, factors, owners) =
                    (values.host(), queries.host(), factors.host(), owners.host());
                cpu.zip([(out.host_mut(), 1)], 128, |first, [out]| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let mut sum = vec![0.0f32; width];
                            for (index, out) in out.iter_mut().enumerate() {
                                let row = first + index;
                                let query = if row < rows { owners[row] as usize } else { row - rows };
                                sum.copy_from_slice(&queries[query * width..][..width]);
                                if row < rows {
                                    simd::add(&mut sum, &values[row * width..][..width]);
                                }
                                sum.iter_mut().for_each(|x| *x = if *x > 0.0 { *x } else { 0.0 });
                                *out = simd::dot(&sum, factors);
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let arguments = arguments![values, queries, factors, owners, rows, count, width, &mut out];
                cuda.warps("mlp_score", rows + count, arguments)?;
            }
        }
        let output = Tensor::of(out, rows + count, 1);
        let inputs = [hidden, asked, weights];
        Ok(self.record(output, &inputs, |output| Judge {
            hidden,
            asked,
            weights,
            output,
            scored: scored.clone(),
        }))
    }
}

impl Judge {
    fn derivatives(
        &self,
        device: &Device,
        values: &[Tensor; 3],
        gradient: &Buffer<f32>,
    ) -> Result<Derivatives> {
        let (rows, width, count) = (values[0].rows(), values[0].columns(), self.scored.queries);
        let (runs, starts) = (self.scored.runs.len() - 1, &self.scored.runs);
        let mut derivatives = Derivatives {
            hidden: device.allocate(rows * width)?,
            asked: device.allocate(count * width)?,
            weights: device.allocate(runs * width)?,
            runs,
        };
        let mut parts = device.allocate::<f32>(runs * width)?;
        let [hidden, asked, weights] = values.each_ref().map(Tensor::buffer);
        let owners = self.scored.row_queries.buffer();
        match device.backend() {
            Backend::Cpu(cpu) => {
                let (hidden, asked, weights, owners) =
                    (hidden.host(), asked.host(), weights.host(), owners.host());
                let starts = starts.buffer().host();
                let mut rests = derivatives.hidden.host_mut();
                let tasks: Vec<_> = parts
                    .host_mut()
                    .chunks_exact_mut(width)
                    .zip(derivatives.weights.host_mut().chunks_exact_mut(width))
                    .zip(starts.windows(2))
                    .map(|((to_asked, to_weights), run)| {
                        let count = if (run[0] as usize) < rows { (run[1] - run[0]) as usize } else { 0 };
                        let (own, rest) = std::mem::take(&mut rests).split_at_mut(count * width);
                        rests = rest;
                        (to_asked, to_weights, run, own)
                    })
                    .collect();
                cpu.run(tasks, |(to_asked, to_weights, run, own)| {
                    let first = run[0] as usize;
                    let query = if first < rows { owners[first] as usize } else { first - rows };
                    let asked = &asked[query * width..][..width];
                    to_asked.fill(0.0);
                    to_weights.fill(0.0);
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for row in first..run[1] as usize {
                                let derivative = gradient.host()[row];
                                for column in 0..width {
                                    let state = if row < rows { hidden[row * width + column] } else { 0.0 };
                                    let x = state + asked[column];
                                    let passed = if x > 0.0 { derivative * weights[column] } else { 0.0 };
                                    to_asked[column] += passed;
                                    to_weights[column] += if x > 0.0 { derivative * x } else { 0.0 };
                                    if row < rows {
                                        own[(row - first) * width + column] = passed;
                                    }
                                }
                            }
                        },
                    );
                });
                let out = derivatives.asked.host_mut();
                out.fill(0.0);
                for (run, part) in starts.iter().zip(parts.host().chunks_exact(width)) {
                    let first = *run as usize;
                    let query = if first < rows { owners[first] as usize } else { first - rows };
                    simd::add(&mut out[query * width..][..width], part);
                }
            }
            Backend::Cuda(cuda) => {
                let starts = starts.buffer();
                let Derivatives { hidden: to_hidden, asked: to_asked, weights: to_weights, .. } =
                    &mut derivatives;
                let arguments = arguments![
                    hidden, asked, weights, owners, starts, rows, width, gradient, to_hidden, &mut parts,
                    to_weights
                ];
                cuda.blocks("mlp_score_back", (runs, 1), BLOCK, arguments)?;
                let arguments = arguments![&parts, owners, starts, runs, rows, count, width, to_asked];
                cuda.threads("mlp_score_asked", count * width, arguments)?;
            }
        }
        Ok(derivatives)
    }
}

impl Operation for Judge {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let values = [self.hidden, self.asked, self.weights].map(|input| flow.value(input));
        let derivatives = self.derivatives(&flow.device(), &values, &gradient)?;
        if let Some(mut target) = flow.target(self.weights)? {
            super::linear::column_sums(
                &derivatives.weights,
                derivatives.runs,
                values[0].columns(),
                &mut target,
            )?;
            flow.put(self.weights, target.buffer, None);
        }
        flow.add(self.asked, derivatives.asked)?;
        flow.add(self.hidden, derivatives.hidden)
    }
}
