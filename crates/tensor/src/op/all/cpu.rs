//! The losses on the CPU: the table block by block.

use super::{Derivatives, Smoothing};
use crate::cpu::product::Matrix;
use crate::cpu::{Cpu, product as host, simd};
use crate::random::Dropout;

/// The inputs of one call on the host.
pub(super) struct Problem<'a> {
    pub(super) queries: &'a [f32],
    pub(super) table: &'a [f32],
    pub(super) bias: Option<&'a [f32]>,
    pub(super) count: usize,
    pub(super) rows: usize,
    pub(super) width: usize,
    pub(super) dropout: Dropout,
    pub(super) train: bool,
}

/// Rows of the table per block.
const BLOCK: usize = 512;
/// Runs of blocks, each with its own sum of the queries' gradient; a fixed number, so that the order of
/// additions does not depend on threads.
const RUNS: usize = 8;

impl Problem<'_> {
    pub(super) fn binary(
        &self,
        cpu: &Cpu,
        labels: &[u32],
        starts: &[u32],
        smoothing: Smoothing,
        derivatives: &mut Derivatives,
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
                    self.block_derivatives(rows, &mut scratch, &mut table[range], bias, queries);
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

    /// The scores of all queries against some rows of the table, after dropout.
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

    /// The loss of a block of scores; replaces the scores by their derivatives.
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
                || binary_derivatives(scores, everywhere, scale),
            ));
        }
        labels.iter().for_each(|label| scores[at(label)] -= (1.0 - smoothing.taken) * scale);
        sum - f64::from(1.0 - smoothing.taken) * labelled
    }

    /// Computes the gradient of the block's rows from its derivatives, and adds to the queries' gradient.
    fn block_derivatives(
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

    pub(super) fn softmax(
        &self,
        cpu: &Cpu,
        labels: &[u32],
        starts: &[u32],
        derivatives: &mut Derivatives,
    ) -> f32 {
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
                    || softmax_derivatives(scores, self.bias, labels, scale),
                );
            }
        });
        if self.train {
            let derivatives_matrix = Matrix::new(&scores, self.count, self.rows);
            cpu.product(derivatives.table.host_mut(), derivatives_matrix.transposed(), left, false);
            cpu.product(derivatives.queries.host_mut(), derivatives_matrix, right, false);
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

/// `Σ log(1 + eˣ) − x y` for a label `y` that is the same everywhere; replaces each `x` by `scale (σ(x) − y)`.
#[inline(always)]
fn binary_derivatives(scores: &mut [f32], label: f32, scale: f32) -> f32 {
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

/// The loss of one query's scores; replaces the scores by their derivatives.
#[inline(always)]
fn softmax_derivatives(scores: &mut [f32], bias: Option<&[f32]>, labels: &[u32], scale: f32) -> f32 {
    if let Some(bias) = bias {
        simd::add(scores, bias);
    }
    let total = crate::op::segment::log_sum_exp(scores);
    let share = 1.0 / labels.len().max(1) as f32;
    let aim: f32 = labels.iter().map(|label| scores[*label as usize]).sum::<f32>() * share;
    let weight = if labels.is_empty() { 0.0 } else { scale };
    scores.iter_mut().for_each(|score| *score = weight * simd::exp(*score - total));
    labels.iter().for_each(|label| scores[*label as usize] -= weight * share);
    if labels.is_empty() { 0.0 } else { total - aim }
}

/// Labels as (query, row), grouped by block of the table.
fn labels_by_block(labels: &[u32], starts: &[u32], rows: usize) -> Vec<Vec<(u32, u32)>> {
    let mut blocks = vec![Vec::new(); rows.div_ceil(BLOCK)];
    for (query, bounds) in starts.windows(2).enumerate() {
        for &row in &labels[bounds[0] as usize..bounds[1] as usize] {
            blocks[row as usize / BLOCK].push((query as u32, row));
        }
    }
    blocks
}
