//! Batch normalisation over the rows (and, for images, the places) of each channel.
//!
//! `y = scale · (x − mean) / √(variance + ε) + shift`. When training, mean and variance are the batch's, and
//! the running ones move towards them by [`MOMENTUM`]; the new running values are written by the optimiser
//! together with the parameters. Otherwise the running ones are used.

use crate::tensor::cpu::Cpu;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::memory::Buffer;
use crate::tensor::parameters::ParameterId;
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::Tensor;

/// How far the running statistics move towards a batch's.
pub const MOMENTUM: f32 = 0.1;
const EPSILON: f32 = 1e-5;

/// What a normalisation learns and keeps: a column with an element for each channel, each.
#[derive(Clone, Copy, Debug)]
pub struct Normalisation {
    /// Multiplies the normalised value.
    pub scale: ParameterId,
    /// Is added to it.
    pub shift: ParameterId,
    /// The running mean, a statistic.
    pub mean: ParameterId,
    /// The running variance, a statistic.
    pub variance: ParameterId,
}

struct BatchNorm {
    input: Var,
    scale: Var,
    shift: Var,
    /// Mean and `1 / √(variance + ε)` of each channel.
    mean: Buffer<f32>,
    inverse: Buffer<f32>,
    output: Var,
}

impl Tape<'_> {
    /// Normalises each of `channels` equal runs of columns (a channel's places; one column each for plain rows).
    pub fn batch_norm(&mut self, input: Var, channels: usize, normalisation: Normalisation) -> Result<Var> {
        let (scale, shift) = (self.parameter(normalisation.scale), self.parameter(normalisation.shift));
        let (running_mean, running_variance) =
            (self.parameter(normalisation.mean), self.parameter(normalisation.variance));
        let value = self.input("batch_norm", input)?.clone();
        let [rows, columns] = value.shape();
        let fits = channels > 0 && columns % channels == 0;
        expect_shape(fits, "batch_norm", "columns and channels", &[rows, columns], &[channels])?;
        for part in [scale, shift, running_mean, running_variance] {
            let shape = self.shape(part);
            expect_shape(
                shape == [channels, 1],
                "batch_norm",
                "parameter and channels",
                &shape,
                &[channels, 1],
            )?;
        }
        let device = self.device().clone();
        let (mut mean, mut inverse) = (device.allocate::<f32>(channels)?, device.allocate::<f32>(channels)?);
        let mut out = device.allocate::<f32>(rows * columns)?;
        if self.is_training() {
            let mut new_mean = device.allocate::<f32>(channels)?;
            let mut new_variance = device.allocate::<f32>(channels)?;
            let (old_mean, old_variance) = (self.at(running_mean), self.at(running_variance));
            match device.backend() {
                Backend::Cpu(cpu) => {
                    let statistics = batch_statistics(cpu, value.buffer().host(), columns, channels);
                    let count = (rows * (columns / channels)) as f64;
                    for (channel, (average, variance)) in statistics.into_iter().enumerate() {
                        mean.host_mut()[channel] = average as f32;
                        inverse.host_mut()[channel] = (1.0 / (variance + f64::from(EPSILON)).sqrt()) as f32;
                        let unbiased = variance * count / (count - 1.0).max(1.0);
                        let blend = |old: f32, new: f64| old + MOMENTUM * (new as f32 - old);
                        new_mean.host_mut()[channel] = blend(old_mean.buffer().host()[channel], average);
                        new_variance.host_mut()[channel] =
                            blend(old_variance.buffer().host()[channel], unbiased);
                    }
                }
            }
            self.statistics.push((normalisation.mean, Tensor::of(new_mean, channels, 1)));
            self.statistics.push((normalisation.variance, Tensor::of(new_variance, channels, 1)));
        } else {
            match device.backend() {
                Backend::Cpu(_) => {
                    mean.host_mut().copy_from_slice(self.at(running_mean).buffer().host());
                    let variance = self.at(running_variance).buffer().host();
                    for (inverse, variance) in inverse.host_mut().iter_mut().zip(variance) {
                        *inverse = 1.0 / (variance + EPSILON).sqrt();
                    }
                }
            }
        }
        match device.backend() {
            Backend::Cpu(cpu) => {
                let (source, places) = (value.buffer().host(), columns / channels);
                let (mean, inverse) = (mean.host(), inverse.host());
                let (scale, shift) = (self.at(scale).buffer().host(), self.at(shift).buffer().host());
                cpu.rows(out.host_mut(), columns, |first, out| {
                    for (index, out) in out.chunks_exact_mut(columns).enumerate() {
                        let from = (first + index) * columns;
                        for (channel, out) in out.chunks_exact_mut(places).enumerate() {
                            let factor = scale[channel] * inverse[channel];
                            let rest = shift[channel] - factor * mean[channel];
                            let source = &source[from + channel * places..from + (channel + 1) * places];
                            out.iter_mut().zip(source).for_each(|(out, x)| *out = factor * x + rest);
                        }
                    }
                });
            }
        }
        let output = Tensor::of(out, rows, columns);
        let inputs = [input, scale, shift];
        Ok(self.record(output, &inputs, |output| BatchNorm { input, scale, shift, mean, inverse, output }))
    }
}

/// Mean and variance of each channel.
fn batch_statistics(cpu: &Cpu, values: &[f32], columns: usize, channels: usize) -> Vec<(f64, f64)> {
    let sums = channel_sums(cpu, values.len() / columns.max(1), columns, channels, |position, _| {
        let x = f64::from(values[position]);
        (x, x * x)
    });
    let count = (values.len() / channels).max(1) as f64;
    sums.into_iter()
        .map(|(sum, squares)| {
            let mean = sum / count;
            (mean, (squares / count - mean * mean).max(0.0))
        })
        .collect()
}

/// Two sums for each channel over all its elements, in the order of fixed chunks of rows.
fn channel_sums(
    cpu: &Cpu,
    rows: usize,
    columns: usize,
    channels: usize,
    terms: impl Fn(usize, usize) -> (f64, f64) + Sync + Send,
) -> Vec<(f64, f64)> {
    let (chunk, places) = (16, columns / channels);
    let mut parts = vec![vec![(0.0, 0.0); channels]; rows.div_ceil(chunk)];
    let tasks: Vec<_> = parts.iter_mut().enumerate().collect();
    cpu.run(tasks, |(index, part)| {
        for row in index * chunk..((index + 1) * chunk).min(rows) {
            for (channel, part) in part.iter_mut().enumerate() {
                for place in 0..places {
                    let (first, second) = terms(row * columns + channel * places + place, channel);
                    *part = (part.0 + first, part.1 + second);
                }
            }
        }
    });
    let mut sums = vec![(0.0, 0.0); channels];
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum = (sum.0 + part.0, sum.1 + part.1));
    }
    sums
}

impl Operation for BatchNorm {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (input, scale) = (flow.value(self.input), flow.value(self.scale));
        let ([rows, columns], channels) = (input.shape(), scale.rows());
        let device = flow.device();
        let mut to_scale = device.allocate::<f32>(channels)?;
        let mut to_shift = device.allocate::<f32>(channels)?;
        let mut to_input = device.allocate::<f32>(rows * columns)?;
        match device.backend() {
            Backend::Cpu(cpu) => {
                let (values, slopes) = (input.buffer().host(), gradient.host());
                let (mean, inverse, scale) = (self.mean.host(), self.inverse.host(), scale.buffer().host());
                let places = columns / channels;
                let sums = channel_sums(cpu, rows, columns, channels, |position, channel| {
                    let slope = f64::from(slopes[position]);
                    (slope, slope * f64::from((values[position] - mean[channel]) * inverse[channel]))
                });
                for (channel, (sum, product)) in sums.iter().enumerate() {
                    to_shift.host_mut()[channel] = *sum as f32;
                    to_scale.host_mut()[channel] = *product as f32;
                }
                let count = (rows * places).max(1) as f32;
                let (to_shift, to_scale) = (to_shift.host(), to_scale.host());
                cpu.rows(to_input.host_mut(), columns, |first, out| {
                    for (index, out) in out.iter_mut().enumerate() {
                        let (position, channel) = (first * columns + index, index % columns / places);
                        let normal = (values[position] - mean[channel]) * inverse[channel];
                        let centred =
                            slopes[position] - (to_shift[channel] + normal * to_scale[channel]) / count;
                        *out = scale[channel] * inverse[channel] * centred;
                    }
                });
            }
        }
        flow.add(self.input, to_input)?;
        flow.add(self.scale, to_scale)?;
        flow.add(self.shift, to_shift)
    }
}
