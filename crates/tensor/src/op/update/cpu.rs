//! The update on the CPU: all rows on all threads, or some rows on one thread.

use super::{Derivatives, EPSILON, LEAST_FACTOR, ROWS, Sizes};
use crate::cpu::product::{self as host, Matrix};
use crate::cpu::{Cpu, simd};

/// The degree factor, by which the second part of the aggregates is multiplied and the third divided.
fn factor_of(degree: u32, mean_log: f32) -> f32 {
    ((degree as f32).ln() / mean_log).max(LEAST_FACTOR)
}

/// The mean and the inverse standard deviation of a row.
#[inline(always)]
fn moments(row: &[f32]) -> (f32, f32) {
    let mean = simd::sum(row) / row.len() as f32;
    let squares = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>();
    (mean, 1.0 / (squares / row.len() as f32 + EPSILON).sqrt())
}

pub(super) fn forward(
    cpu: &Cpu,
    sizes: Sizes,
    inputs: [&[f32]; 5],
    degrees: &[u32],
    sum: &mut [f32],
    out: &mut [f32],
) {
    let (width, parts) = (sizes.width, sizes.parts);
    let [state, mixed, bias, scale, shift] = inputs;
    cpu.zip([(sum, width), (out, width)], ROWS, |first, [sums, outs]| {
        let mixed = &mixed[first * parts * width..];
        simd::vectorise(
            #[inline(always)]
            || rows_from(first, sizes, [state, mixed, bias, scale, shift], degrees, sums, outs),
        )
    });
}

/// Updates the rows from `first` on, as many as `out` holds. `sums` contains the products of the old states and
/// becomes the sums before normalisation; `mixed` begins with the row `first`.
#[inline(always)]
fn rows_from(
    first: usize,
    sizes: Sizes,
    [state, mixed, bias, scale, shift]: [&[f32]; 5],
    degrees: &[u32],
    sums: &mut [f32],
    outs: &mut [f32],
) {
    let Sizes { before, width, parts, mean_log, dropout, .. } = sizes;
    let rows = sums.chunks_exact_mut(width).zip(outs.chunks_exact_mut(width));
    for (index, (sum, out)) in rows.enumerate() {
        let row = first + index;
        let mixed = &mixed[index * parts * width..][..parts * width];
        if row >= before {
            sum.fill(0.0);
        }
        for column in 0..width {
            sum[column] += bias[column] + mixed[column];
        }
        if parts == 3 {
            let factor = factor_of(degrees[row], mean_log);
            let inverse = 1.0 / factor;
            let (second, third) = mixed[width..].split_at(width);
            for column in 0..width {
                sum[column] += factor * second[column] + third[column] * inverse;
            }
        }
        let (mean, root) = moments(sum);
        for column in 0..width {
            let y = (sum[column] - mean) * root * scale[column] + shift[column];
            out[column] = if y > 0.0 { y } else { 0.0 };
        }
        if !dropout.is_none() {
            dropout.apply(out, row * width);
        }
        if row < before {
            simd::add(out, &state[row * width..][..width]);
        }
    }
}

/// The update of a block of rows on the CPU, without a gradient: for a layer whose aggregates are never all in
/// memory.
pub(crate) struct RowUpdate<'a> {
    pub(super) sizes: Sizes,
    /// The state, `W₀`, `[W₁ | W₂ | W₃]`, and rows of bias, scale and shift.
    pub(super) values: [&'a [f32]; 6],
    pub(super) degrees: &'a [u32],
}

impl RowUpdate<'_> {
    /// The new states of the rows from `first` on, from their aggregates.
    pub(crate) fn rows(&self, cpu: &Cpu, first: usize, aggregates: &[f32], out: &mut [f32]) {
        let Sizes { before, width, parts, .. } = self.sizes;
        let [state, own, mixing, bias, scale, shift] = self.values;
        let (rows, depth) = (out.len() / width, mixing.len() / (parts * width));
        let mut mixed = cpu.floats().take(rows * parts * width);
        let mut sums = cpu.floats().take(rows * width);
        host::alone(
            &mut mixed,
            Matrix::new(aggregates, rows, depth),
            Matrix::new(mixing, depth, parts * width),
            false,
        );
        let old = before.saturating_sub(first).min(rows);
        let states = &state[first.min(before) * width..];
        host::alone(&mut sums, Matrix::new(states, old, width), Matrix::new(own, width, width), false);
        simd::vectorise(
            #[inline(always)]
            || {
                let inputs = [state, &mixed, bias, scale, shift];
                rows_from(first, self.sizes, inputs, self.degrees, &mut sums, out)
            },
        );
        cpu.floats().give(mixed);
        cpu.floats().give(sums);
    }
}

pub(super) fn backward(
    cpu: &Cpu,
    sizes: Sizes,
    [sum, gradient, scale, shift]: [&[f32]; 4],
    degrees: &[u32],
    derivatives: &mut Derivatives,
) {
    let Sizes { rows, width, parts, mean_log, dropout, .. } = sizes;
    let [scales, shifts, biases] =
        derivatives.rows.each_mut().map(|rows| rows.host_mut().chunks_exact_mut(width));
    let sums = derivatives.sum.host_mut().chunks_mut(ROWS * width);
    let mixed = derivatives.mixed.host_mut().chunks_mut(ROWS * parts * width);
    let tasks: Vec<_> = sums.zip(mixed).zip(scales).zip(shifts).zip(biases).enumerate().collect();
    cpu.run(tasks, |(task, ((((sum_derivatives, mixed_derivatives), of_scale), of_shift), of_bias))| {
        simd::vectorise(
            #[inline(always)]
            || {
                let mut normal = vec![0.0f32; width];
                for row in task * ROWS..((task + 1) * ROWS).min(rows) {
                    let sum = &sum[row * width..][..width];
                    let derivative = &mut sum_derivatives[(row - task * ROWS) * width..][..width];
                    derivative.copy_from_slice(&gradient[row * width..][..width]);
                    if !dropout.is_none() {
                        dropout.apply(derivative, row * width);
                    }
                    let (mean, root) = moments(sum);
                    for column in 0..width {
                        normal[column] = (sum[column] - mean) * root;
                        let open = normal[column] * scale[column] + shift[column] > 0.0;
                        let passed = if open { derivative[column] } else { 0.0 };
                        of_scale[column] += passed * normal[column];
                        of_shift[column] += passed;
                        derivative[column] = passed * scale[column];
                    }
                    let first = simd::sum(derivative) / width as f32;
                    let second = simd::dot(derivative, &normal) / width as f32;
                    for column in 0..width {
                        derivative[column] = root * (derivative[column] - first - normal[column] * second);
                        of_bias[column] += derivative[column];
                    }
                    let mixed =
                        &mut mixed_derivatives[(row - task * ROWS) * parts * width..][..parts * width];
                    mixed[..width].copy_from_slice(derivative);
                    if parts == 3 {
                        let factor = factor_of(degrees[row], mean_log);
                        let inverse = 1.0 / factor;
                        for column in 0..width {
                            mixed[width + column] = factor * derivative[column];
                            mixed[2 * width + column] = derivative[column] * inverse;
                        }
                    }
                }
            },
        )
    });
}
