//! Losses of queries against every row of a table, with the gradients of both computed in the same pass.
//!
//! A table of 40,000 entities against 512 queries has 82 MB of scores. On the CPU the table is taken in
//! blocks: the scores of a block, their loss and derivatives, and both products back are done while the block is
//! in the cache, and the scores are never kept. Labels are ragged lists; no dense label matrix exists.
//!
//! Binary: `mean over all scores of log(1 + eˣ) − x y`, with `y = (1 − taken)·label + floor / rows` by [`Smoothing`].
//! Softmax: `mean over queries of log Σ eˣ − mean of its labels' x`.

mod cpu;
mod cuda;

use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Segments, Tensor};
use cpu::Problem;
use cuda::DeviceProblem;

/// The right answers of every query: one segment of table rows per query, without repetition.
#[derive(Clone, Debug)]
pub struct Labels {
    /// The answers of all queries, one query after the other.
    pub rows: Indices,
    /// Which of them belong to which query.
    pub segments: Segments,
}

/// Label smoothing for the binary loss: `y = (1 − taken)·label + floor / rows`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothing {
    /// The share taken from every right answer.
    pub taken: f32,
    /// The total that is spread over all rows of the table.
    pub floor: f32,
}

impl Smoothing {
    /// Spreads what is taken from the right answers over all rows.
    pub fn even(taken: f32) -> Self {
        Self { taken, floor: taken }
    }
}

#[derive(Clone, Copy)]
enum Loss {
    Binary { smoothing: Smoothing },
    Softmax,
}

struct AgainstAll {
    queries: Var,
    table: Var,
    bias: Option<Var>,
    derivatives: std::cell::RefCell<Option<Derivatives>>,
    output: Var,
}

/// The gradients for a loss whose own gradient is 1.
struct Derivatives {
    queries: Buffer<f32>,
    table: Buffer<f32>,
    bias: Option<Buffer<f32>>,
}

impl Tape<'_> {
    /// Binary cross-entropy of every query with every row of `table`, averaged over all pairs.
    pub fn binary_loss_against_all(
        &mut self,
        queries: Var,
        table: Var,
        bias: Option<Var>,
        labels: &Labels,
        smoothing: Smoothing,
        dropout: f32,
    ) -> Result<Var> {
        self.loss_against_all(
            "binary_loss_against_all",
            (queries, table, bias),
            labels,
            Loss::Binary { smoothing },
            dropout,
        )
    }

    /// Cross-entropy of the softmax over all rows of `table`, averaged over the queries. A query with several labels
    /// uses their mean; one without labels has no label term.
    pub fn softmax_loss_against_all(
        &mut self,
        queries: Var,
        table: Var,
        bias: Option<Var>,
        labels: &Labels,
        dropout: f32,
    ) -> Result<Var> {
        self.loss_against_all(
            "softmax_loss_against_all",
            (queries, table, bias),
            labels,
            Loss::Softmax,
            dropout,
        )
    }

    fn loss_against_all(
        &mut self,
        name: &'static str,
        (queries, table, bias): (Var, Var, Option<Var>),
        labels: &Labels,
        loss: Loss,
        dropout: f32,
    ) -> Result<Var> {
        let dropout = self.dropout_of(dropout);
        let mut inputs = vec![queries, table];
        inputs.extend(bias);
        let train = self.wants(&inputs);
        let (left, right) = (self.input(name, queries)?, self.at(table));
        let ([count, width], rows) = (left.shape(), right.rows());
        expect_shape(width == right.columns(), name, "queries and table", &left.shape(), &right.shape())?;
        let segments = labels.segments.len();
        expect_shape(segments == count, name, "labels and queries", &[segments], &left.shape())?;
        let (total, given) = (labels.segments.total(), labels.rows.len());
        expect_shape(total == given, name, "segments and labels", &[total], &[given])?;
        labels.rows.expect_below(rows, name)?;
        let bias_value = bias.map(|bias| self.at(bias));
        if let Some(bias) = bias_value {
            expect_shape(bias.shape() == [rows, 1], name, "bias and table", &bias.shape(), &right.shape())?;
        }
        let (value, derivatives) = match self.device().backend() {
            Backend::Cpu(cpu) => {
                let problem = Problem {
                    queries: left.buffer().host(),
                    table: right.buffer().host(),
                    bias: bias_value.map(|bias| bias.buffer().host()),
                    count,
                    rows,
                    width,
                    dropout,
                    train,
                };
                let (labels, starts) = (labels.rows.buffer().host(), labels.segments.starts());
                let mut derivatives = Derivatives {
                    queries: self.device().allocate(if train { count * width } else { 0 })?,
                    table: self.device().allocate(if train { rows * width } else { 0 })?,
                    bias: bias.filter(|_| train).map(|_| self.device().allocate(rows)).transpose()?,
                };
                let value = match loss {
                    Loss::Binary { smoothing } => {
                        problem.binary(cpu, labels, starts, smoothing, &mut derivatives)
                    }
                    Loss::Softmax => problem.softmax(cpu, labels, starts, &mut derivatives),
                };
                (self.device().upload(&[value])?, derivatives)
            }
            Backend::Cuda(cuda) => {
                let problem = DeviceProblem {
                    queries: left.buffer(),
                    table: right.buffer(),
                    bias: bias_value.map(Tensor::buffer),
                    count,
                    rows,
                    width,
                    dropout,
                    train,
                };
                problem.run(cuda, labels, loss)?
            }
        };
        Ok(self.record(Tensor::of(value, 1, 1), &inputs, |output| AgainstAll {
            queries,
            table,
            bias,
            derivatives: std::cell::RefCell::new(Some(derivatives)),
            output,
        }))
    }
}

impl Operation for AgainstAll {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let Some(derivatives) = self.derivatives.take() else { return Ok(()) };
        let parts = [(self.queries, Some(derivatives.queries)), (self.table, Some(derivatives.table))];
        let bias = self.bias.map(|bias| (bias, derivatives.bias));
        for (input, part) in parts.into_iter().chain(bias) {
            let Some(mut part) = part.filter(|_| flow.wants(input)) else { continue };
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let factor = gradient.host()[0];
                    if factor != 1.0 {
                        cpu.rows(part.host_mut(), 1, |_, part| {
                            part.iter_mut().for_each(|value| *value *= factor)
                        });
                    }
                }
                Backend::Cuda(cuda) => {
                    let n = part.len();
                    let blocks = n.div_ceil(256).min(2048);
                    cuda.blocks("scale_unless_one", (blocks, 1), 256, arguments![&mut part, &gradient, n])?;
                }
            }
            flow.add(input, part)?;
        }
        Ok(())
    }
}
