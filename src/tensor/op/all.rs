//! Losses of queries against every row of a table, with the gradients of both computed in the same pass.
//!
//! A table of 40,000 entities against 512 queries has 82 MB of scores. On the CPU the table is taken in
//! blocks: the scores of a block, their loss and derivatives, and both products back are done while the block is
//! in the cache, and the scores are never kept. Labels are ragged lists; no dense label matrix exists.
//!
//! Binary: `mean over all scores of log(1 + eˣ) − x y`, with `y = (1 − taken)·label + floor / rows` by [`Smoothing`].
//! Softmax: `mean over queries of log Σ eˣ − mean of its labels' x`.

use super::product::{Side, product};
use crate::tensor::cpu::product::Matrix;
use crate::tensor::cpu::{Cpu, product as host, simd};
use crate::tensor::cuda::Cuda;
use crate::tensor::cuda::launch::arguments;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::gradients::Target;
use crate::tensor::memory::Buffer;
use crate::tensor::random::Dropout;
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::{Indices, Segments, Tensor};

/// The right answers of every query: a segment of rows of the table for each, without repetition.
#[derive(Clone, Debug)]
pub struct Labels {
    /// The answers of all queries, one query after the other.
    pub rows: Indices,
    /// Which of them belong to which query.
    pub segments: Segments,
}

/// What the binary loss makes of labels: `y = (1 − taken)·label + floor / rows`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothing {
    /// What is taken from every right answer.
    pub taken: f32,
    /// What all rows of the table share.
    pub floor: f32,
}

impl Smoothing {
    /// What is taken from the right answers is spread over all rows.
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
    derivatives: std::cell::RefCell<Option<Slopes>>,
    output: Var,
}

/// The gradients for a loss whose own gradient is 1.
struct Slopes {
    queries: Buffer<f32>,
    table: Buffer<f32>,
    bias: Option<Buffer<f32>>,
}

/// One call's inputs on the host.
struct Problem<'a> {
    queries: &'a [f32],
    table: &'a [f32],
    bias: Option<&'a [f32]>,
    count: usize,
    rows: usize,
    width: usize,
    dropout: Dropout,
    train: bool,
}

impl Tape<'_> {
    /// Binary cross-entropy of every query with every row of `table`, as a mean over all of them.
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

    /// Cross-entropy of the softmax over all rows of `table`, as a mean over the queries; a query with several
    /// labels counts their mean, one without labels counts nothing for them.
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
                let mut derivatives = Slopes {
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

/// One call's inputs on a CUDA device, where the scores are one matrix, used for their derivatives too.
struct DeviceProblem<'a> {
    queries: &'a Buffer<f32>,
    table: &'a Buffer<f32>,
    bias: Option<&'a Buffer<f32>>,
    count: usize,
    rows: usize,
    width: usize,
    dropout: Dropout,
    train: bool,
}

impl DeviceProblem<'_> {
    fn run(&self, cuda: &Cuda, labels: &Labels, loss: Loss) -> Result<(Buffer<f32>, Slopes)> {
        let device = self.queries.device();
        let dropped = match self.dropout.is_none() {
            true => None,
            false => Some(super::against::drop_table(self.table, self.dropout)?),
        };
        let table = Side::new(dropped.as_ref().unwrap_or(self.table), self.rows, self.width);
        let queries = Side::new(self.queries, self.count, self.width);
        let mut scores = device.allocate::<f32>(self.count * self.rows)?;
        product(&mut scores, 0, queries, table.transposed(), false)?;
        let mut value = device.allocate::<f32>(1)?;
        let (label_rows, starts) = (labels.rows.buffer(), labels.segments.buffer());
        match loss {
            Loss::Binary { smoothing } => {
                let n = self.count * self.rows;
                let (everywhere, scale) = (smoothing.floor / self.rows as f32, 1.0 / n.max(1) as f32);
                // The labels' part of loss and derivative needs the scores as they were, so it comes first and is kept.
                let (chunks, total) = (self.rows.div_ceil(BINARY_COLUMNS).max(1), labels.rows.len());
                let mut parts = device.zeros::<f32>(self.count * chunks + total)?;
                let owners = labels.segments.owners()?;
                let arguments = arguments![
                    &scores,
                    label_rows,
                    owners.buffer(),
                    total,
                    self.rows,
                    self.bias,
                    1.0 - smoothing.taken,
                    &mut parts
                ];
                cuda.threads("binary_labels", total, arguments)?;
                let arguments =
                    arguments![&mut scores, self.bias, self.rows, total, everywhere, scale, &mut parts];
                cuda.blocks("binary_slopes", (chunks, self.count), 256, arguments)?;
                let derivative = (1.0 - smoothing.taken) * scale;
                let arguments =
                    arguments![&mut scores, label_rows, owners.buffer(), total, self.rows, derivative];
                cuda.threads("binary_label_slopes", total, arguments)?;
                cuda.sum_all(&parts, None, &mut value, scale)?;
            }
            Loss::Softmax => {
                let scale = 1.0 / self.count.max(1) as f32;
                let mut parts = device.allocate::<f32>(self.count)?;
                let arguments =
                    arguments![&mut scores, self.bias, label_rows, starts, self.rows, scale, &mut parts];
                cuda.blocks("softmax_slopes", (self.count, 1), 1024, arguments)?;
                cuda.sum_all(&parts, None, &mut value, scale)?;
            }
        }
        let train = |len: usize| device.allocate::<f32>(if self.train { len } else { 0 });
        let mut derivatives = Slopes {
            queries: train(self.count * self.width)?,
            table: train(self.rows * self.width)?,
            bias: None,
        };
        if self.train {
            let scores_side = Side::new(&scores, self.count, self.rows);
            product(&mut derivatives.table, 0, scores_side.transposed(), queries, false)?;
            product(&mut derivatives.queries, 0, scores_side, table, false)?;
            if !self.dropout.is_none() {
                super::against::apply(&mut derivatives.table, self.dropout)?;
            }
            if self.bias.is_some() {
                let mut target = Target { buffer: device.allocate(self.rows)?, fresh: true };
                super::linear::column_sums(&scores, self.count, self.rows, &mut target)?;
                derivatives.bias = Some(target.buffer);
            }
        }
        Ok((value, derivatives))
    }
}

/// Columns of the scores that a block of the kernel takes.
const BINARY_COLUMNS: usize = 2048;

pub(crate) const KERNELS: &str = r#"
#define BINARY_COLUMNS 2048
extern "C" __global__ void binary_labels(const float* scores, const u32* labels, const u32* owners, u32 total, u32 rows,
                                         const float* bias, float weight, float* parts) {
    u32 i = THREAD;
    if (i < total) parts[i] = -weight * (scores[(u64)owners[i] * rows + labels[i]] + (bias ? bias[labels[i]] : 0.0f));
}
extern "C" __global__ void binary_slopes(float* scores, const float* bias, u32 rows, u32 offset, float label, float scale, float* parts) {
    float* from = scores + (u64)blockIdx.y * rows;
    u32 end = min((blockIdx.x + 1) * BINARY_COLUMNS, rows);
    float sum = 0.0f;
    for (u32 c = blockIdx.x * BINARY_COLUMNS + threadIdx.x; c < end; c += 256) {
        float x = from[c] + (bias ? bias[c] : 0.0f);
        float decay = __expf(-fabsf(x)), share = 1.0f / (1.0f + decay);
        sum += fmaxf(x, 0.0f) + log1pf(decay) - x * label;
        from[c] = scale * ((x > 0.0f ? share : decay * share) - label);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[offset + blockIdx.y * gridDim.x + blockIdx.x] = sum;
}
extern "C" __global__ void binary_label_slopes(float* scores, const u32* labels, const u32* owners, u32 total, u32 rows, float derivative) {
    u32 i = THREAD;
    if (i < total) scores[(u64)owners[i] * rows + labels[i]] -= derivative;
}
// A block for each query.
extern "C" __global__ void softmax_slopes(float* scores, const float* bias, const u32* labels, const u32* starts, u32 rows, float scale, float* parts) {
    float* row = scores + (u64)blockIdx.x * rows;
    u32 start = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    float largest = NEGATIVE_INFINITY, sum = 0.0f, aim = 0.0f;
    for (u32 c = threadIdx.x; c < rows; c += blockDim.x) {
        float x = row[c] + (bias ? bias[c] : 0.0f);
        row[c] = x;
        largest = fmaxf(largest, x);
    }
    largest = block_max(largest);
    for (u32 c = threadIdx.x; c < rows; c += blockDim.x) sum += expf(row[c] - largest);
    float total = largest + logf(block_sum(sum));
    for (u32 i = start + threadIdx.x; i < end; i += blockDim.x) aim += row[labels[i]];
    float share = end > start ? 1.0f / (end - start) : 0.0f;
    aim = block_sum(aim) * share;
    float weight = end > start ? scale : 0.0f;
    for (u32 c = threadIdx.x; c < rows; c += blockDim.x) row[c] = weight * expf(row[c] - total);
    __syncthreads();
    for (u32 i = start + threadIdx.x; i < end; i += blockDim.x) row[labels[i]] -= weight * share;
    if (threadIdx.x == 0) parts[blockIdx.x] = end > start ? total - aim : 0.0f;
}
extern "C" __global__ void scale_unless_one(float* values, const float* factor, u32 n) {
    float f = factor[0];
    if (f == 1.0f) return;
    for (u32 i = THREAD; i < n; i += gridDim.x * blockDim.x) values[i] *= f;
}
"#;

/// Rows of the table that are taken at once.
const BLOCK: usize = 512;
/// Runs of blocks, each with its own sum of the queries' gradient; a fixed number, so that the order of
/// additions does not depend on threads.
const RUNS: usize = 8;

impl Problem<'_> {
    fn binary(
        &self,
        cpu: &Cpu,
        labels: &[u32],
        starts: &[u32],
        smoothing: Smoothing,
        derivatives: &mut Slopes,
    ) -> f32 {
        let by_block = labels_by_block(labels, starts, self.rows);
        let run = self.rows.div_ceil(RUNS).next_multiple_of(BLOCK);
        let runs = self.rows.div_ceil(run.max(1)).max(1);
        let mut sums = vec![0.0f64; runs];
        let mut partial = vec![0.0f32; if self.train { runs * self.count * self.width } else { 0 }];
        let whole = if self.train { run * self.width } else { 1 };
        let mut tables = derivatives.table.host_mut().chunks_mut(whole.max(1));
        let mut biases = derivatives.bias.as_mut().map(|bias| bias.host_mut().chunks_mut(run));
        let mut partials = partial.chunks_mut((self.count * self.width).max(1));
        let tasks: Vec<_> = sums
            .iter_mut()
            .enumerate()
            .map(|(index, sum)| {
                let bias = biases.as_mut().and_then(Iterator::next);
                (
                    index * run,
                    sum,
                    tables.next().unwrap_or_default(),
                    bias,
                    partials.next().unwrap_or_default(),
                )
            })
            .collect();
        cpu.run(tasks, |(first, sum, table, mut bias, queries)| {
            let mut scratch = Scratch::default();
            let end = (first + run).min(self.rows);
            for start in (first..end).step_by(BLOCK) {
                let rows = start..(start + BLOCK).min(end);
                self.score_block(rows.clone(), &mut scratch);
                *sum +=
                    self.binary_block(rows.clone(), &by_block[start / BLOCK], smoothing, &mut scratch.scores);
                if self.train {
                    let range = (rows.start - first) * self.width..(rows.end - first) * self.width;
                    let bias = bias.as_mut().map(|bias| &mut bias[rows.start - first..rows.end - first]);
                    self.block_slopes(rows, &mut scratch, &mut table[range], bias, queries);
                }
            }
        });
        if self.train {
            let (first, rest) = partial.split_at(self.count * self.width);
            let target = derivatives.queries.host_mut();
            target.copy_from_slice(first);
            rest.chunks_exact((self.count * self.width).max(1)).for_each(|part| simd::add(target, part));
        }
        (sums.iter().sum::<f64>() / (self.count * self.rows).max(1) as f64) as f32
    }

    /// Scores of all queries with some rows of the table, to which dropout is applied.
    fn score_block(&self, rows: std::ops::Range<usize>, scratch: &mut Scratch) {
        let table = &self.table[rows.start * self.width..rows.end * self.width];
        scratch.scores.resize(self.count * rows.len(), 0.0);
        if !self.dropout.is_none() {
            scratch.table.clear();
            scratch.table.extend_from_slice(table);
            simd::vectorise(
                #[inline(always)]
                || self.dropout.apply(&mut scratch.table, rows.start * self.width),
            );
        }
        let table = if self.dropout.is_none() { table } else { &scratch.table };
        let (left, right) =
            (Matrix::new(self.queries, self.count, self.width), Matrix::new(table, rows.len(), self.width));
        host::alone(&mut scratch.scores, left, right.transposed(), false);
        if let Some(bias) = self.bias {
            scratch
                .scores
                .chunks_exact_mut(rows.len())
                .for_each(|scores| simd::add(scores, &bias[rows.clone()]));
        }
    }

    /// The loss of a block of scores, which become their derivatives.
    fn binary_block(
        &self,
        rows: std::ops::Range<usize>,
        labels: &[(u32, u32)],
        smoothing: Smoothing,
        scores: &mut [f32],
    ) -> f64 {
        let everywhere = smoothing.floor / self.rows as f32;
        let scale = 1.0 / (self.count * self.rows) as f32;
        let at = |&(query, row): &(u32, u32)| query as usize * rows.len() + row as usize - rows.start;
        let labelled: f64 = labels.iter().map(|label| f64::from(scores[at(label)])).sum();
        let mut sum = 0.0f64;
        for scores in scores.chunks_mut(4096) {
            sum += f64::from(simd::vectorise(
                #[inline(always)]
                || binary_slopes(scores, everywhere, scale),
            ));
        }
        labels.iter().for_each(|label| scores[at(label)] -= (1.0 - smoothing.taken) * scale);
        sum - f64::from(1.0 - smoothing.taken) * labelled
    }

    /// Takes a block's derivatives to its rows of the table and adds them to the queries' gradient.
    fn block_slopes(
        &self,
        rows: std::ops::Range<usize>,
        scratch: &mut Scratch,
        to_table: &mut [f32],
        to_bias: Option<&mut [f32]>,
        to_queries: &mut [f32],
    ) {
        let derivatives = Matrix::new(&scratch.scores, self.count, rows.len());
        host::alone(
            to_table,
            derivatives.transposed(),
            Matrix::new(self.queries, self.count, self.width),
            false,
        );
        let table = match self.dropout.is_none() {
            true => &self.table[rows.start * self.width..rows.end * self.width],
            false => &scratch.table,
        };
        host::alone(to_queries, derivatives, Matrix::new(table, rows.len(), self.width), true);
        if !self.dropout.is_none() {
            simd::vectorise(
                #[inline(always)]
                || self.dropout.apply(to_table, rows.start * self.width),
            );
        }
        if let Some(to_bias) = to_bias {
            to_bias.fill(0.0);
            scratch.scores.chunks_exact(rows.len()).for_each(|derivatives| simd::add(to_bias, derivatives));
        }
    }

    fn softmax(&self, cpu: &Cpu, labels: &[u32], starts: &[u32], derivatives: &mut Slopes) -> f32 {
        let dropped = self.dropped_table(cpu);
        let table = dropped.as_deref().unwrap_or(self.table);
        let mut scores = cpu.floats().take(self.count * self.rows);
        let (left, right) =
            (Matrix::new(self.queries, self.count, self.width), Matrix::new(table, self.rows, self.width));
        cpu.product(&mut scores, left, right.transposed(), false);
        let mut losses = vec![0.0f32; self.count];
        let scale = 1.0 / self.count.max(1) as f32;
        cpu.zip([(&mut scores, self.rows), (&mut losses, 1)], 4, |first, [scores, losses]| {
            for (index, (scores, loss)) in scores.chunks_exact_mut(self.rows).zip(losses).enumerate() {
                let labels = &labels[starts[first + index] as usize..starts[first + index + 1] as usize];
                *loss = simd::vectorise(
                    #[inline(always)]
                    || softmax_slopes(scores, self.bias, labels, scale),
                );
            }
        });
        if self.train {
            let slopes_matrix = Matrix::new(&scores, self.count, self.rows);
            cpu.product(derivatives.table.host_mut(), slopes_matrix.transposed(), left, false);
            cpu.product(derivatives.queries.host_mut(), slopes_matrix, right, false);
            if !self.dropout.is_none() {
                cpu.rows(derivatives.table.host_mut(), 1, |first, values| self.dropout.apply(values, first));
            }
            if let Some(bias) = &mut derivatives.bias {
                bias.host_mut().fill(0.0);
                scores
                    .chunks_exact(self.rows)
                    .for_each(|derivatives| simd::add(bias.host_mut(), derivatives));
            }
        }
        cpu.floats().give(scores);
        (losses.iter().map(|loss| f64::from(*loss)).sum::<f64>() * f64::from(scale)) as f32
    }

    fn dropped_table(&self, cpu: &Cpu) -> Option<Vec<f32>> {
        if self.dropout.is_none() {
            return None;
        }
        let mut table = self.table.to_vec();
        cpu.rows(&mut table, 1, |first, values| self.dropout.apply(values, first));
        Some(table)
    }
}

#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    table: Vec<f32>,
}

/// `Σ log(1 + eˣ) − x y` for a label `y` that is the same everywhere; each `x` becomes `scale (σ(x) − y)`.
#[inline(always)]
fn binary_slopes(scores: &mut [f32], label: f32, scale: f32) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0f32; LANES];
    let mut step = |score: &mut f32, lane: usize| {
        let x = *score;
        let decay = simd::exp(-x.abs());
        let share = 1.0 / (1.0 + decay);
        let positive = if x > 0.0 { x } else { 0.0 };
        sums[lane] += positive + simd::ln(1.0 + decay) - x * label;
        let probability = if x > 0.0 { share } else { decay * share };
        *score = scale * (probability - label);
    };
    let mut chunks = scores.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (lane, score) in chunk.iter_mut().enumerate() {
            step(score, lane);
        }
    }
    for (lane, score) in chunks.into_remainder().iter_mut().enumerate() {
        step(score, lane);
    }
    sums.iter().sum()
}

/// The loss of one query's scores, which become their derivatives.
#[inline(always)]
fn softmax_slopes(scores: &mut [f32], bias: Option<&[f32]>, labels: &[u32], scale: f32) -> f32 {
    if let Some(bias) = bias {
        simd::add(scores, bias);
    }
    let total = super::segment::log_sum_exp(scores);
    let share = 1.0 / labels.len().max(1) as f32;
    let aim: f32 = labels.iter().map(|label| scores[*label as usize]).sum::<f32>() * share;
    let weight = if labels.is_empty() { 0.0 } else { scale };
    scores.iter_mut().for_each(|score| *score = weight * simd::exp(*score - total));
    labels.iter().for_each(|label| scores[*label as usize] -= weight * share);
    if labels.is_empty() { 0.0 } else { total - aim }
}

/// Labels as (query, row), by the block of the table they are in.
fn labels_by_block(labels: &[u32], starts: &[u32], rows: usize) -> Vec<Vec<(u32, u32)>> {
    let mut blocks = vec![Vec::new(); rows.div_ceil(BLOCK)];
    for (query, bounds) in starts.windows(2).enumerate() {
        for &row in &labels[bounds[0] as usize..bounds[1] as usize] {
            blocks[row as usize / BLOCK].push((query as u32, row));
        }
    }
    blocks
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
