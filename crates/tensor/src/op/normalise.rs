//! Batch normalisation over the rows (and, for images, the positions) of each channel.
//!
//! `y = scale · (x − mean) / √(variance + ε) + shift`. In training, mean and variance are those of the batch, and the
//! running ones move towards them by [`MOMENTUM`]; the optimiser writes the new running values together with the
//! parameters. Otherwise the running ones are used.

use crate::cpu::Cpu;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::parameters::ParameterId;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// How far the running statistics move towards a batch's: PyTorch's default, which the published models were trained with.
pub const MOMENTUM: f32 = 0.1;
/// Added to variances before dividing by them; also PyTorch's default.
const EPSILON: f32 = 1e-5;

/// The parameters and statistics of a normalisation: each is a column with one element per channel.
#[derive(Clone, Copy, Debug)]
pub struct Normalisation {
    /// Multiplies the normalised value.
    pub scale: ParameterId,
    /// Added to the result.
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
    /// Normalises each of `channels` equal runs of columns (the positions of a channel; one column each for plain
    /// rows).
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
                Backend::Cuda(cuda) => {
                    let parts = channel_parts(&value, None, None, channels)?;
                    let arguments = arguments![
                        &parts,
                        parts.len() / (2 * channels).max(1),
                        channels,
                        rows * (columns / channels),
                        old_mean.buffer(),
                        old_variance.buffer(),
                        &mut mean,
                        &mut inverse,
                        &mut new_mean,
                        &mut new_variance
                    ];
                    cuda.threads("batch_statistics", channels, arguments)?;
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
                Backend::Cuda(cuda) => {
                    let (old_mean, old_variance) = (self.at(running_mean), self.at(running_variance));
                    let arguments = arguments![
                        old_mean.buffer(),
                        old_variance.buffer(),
                        &mut mean,
                        &mut inverse,
                        channels
                    ];
                    cuda.threads("running_statistics", channels, arguments)?;
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
            Backend::Cuda(cuda) => {
                let (n, scale, shift) = (rows * columns, self.at(scale).buffer(), self.at(shift).buffer());
                let places = columns / channels;
                let arguments =
                    arguments![value.buffer(), &mean, &inverse, scale, shift, &mut out, n, columns, places];
                cuda.threads("batch_norm", n, arguments)?;
            }
        }
        let output = Tensor::of(out, rows, columns);
        let inputs = [input, scale, shift];
        Ok(self.record(output, &inputs, |output| BatchNorm { input, scale, shift, mean, inverse, output }))
    }
}

/// On CUDA, two sums of every channel for each chunk of rows: of the values and their squares, or, with a
/// gradient, of the derivatives and of the derivatives times the normalised values.
fn channel_parts(
    values: &Tensor,
    gradient: Option<&Buffer<f32>>,
    normal: Option<(&Buffer<f32>, &Buffer<f32>)>,
    channels: usize,
) -> Result<Buffer<f32>> {
    let [rows, columns] = values.shape();
    let device = values.device();
    let chunks = rows.div_ceil(64).max(1);
    let mut parts = device.allocate::<f32>(chunks * channels * 2)?;
    if let Backend::Cuda(cuda) = device.backend() {
        let (mean, inverse) = (normal.map(|(mean, _)| mean), normal.map(|(_, inverse)| inverse));
        let places = columns / channels;
        let arguments =
            arguments![values.buffer(), gradient, mean, inverse, &mut parts, rows, columns, places];
        cuda.blocks("channel_sums", (channels, chunks), 256, arguments)?;
    }
    Ok(parts)
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
                let (values, derivatives) = (input.buffer().host(), gradient.host());
                let (mean, inverse, scale) = (self.mean.host(), self.inverse.host(), scale.buffer().host());
                let places = columns / channels;
                let sums = channel_sums(cpu, rows, columns, channels, |position, channel| {
                    let derivative = f64::from(derivatives[position]);
                    (
                        derivative,
                        derivative * f64::from((values[position] - mean[channel]) * inverse[channel]),
                    )
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
                            derivatives[position] - (to_shift[channel] + normal * to_scale[channel]) / count;
                        *out = scale[channel] * inverse[channel] * centred;
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let parts =
                    channel_parts(&input, Some(&gradient), Some((&self.mean, &self.inverse)), channels)?;
                let chunks = parts.len() / (2 * channels).max(1);
                let arguments = arguments![&parts, chunks, channels, &mut to_shift, &mut to_scale];
                cuda.threads("batch_norm_sums", channels, arguments)?;
                let (n, places) = (rows * columns, columns / channels);
                let arguments = arguments![
                    input.buffer(),
                    &gradient,
                    &self.mean,
                    &self.inverse,
                    scale.buffer(),
                    &to_shift,
                    &to_scale,
                    &mut to_input,
                    n,
                    columns,
                    places,
                    rows * places
                ];
                cuda.threads("batch_norm_back", n, arguments)?;
            }
        }
        flow.add(self.input, to_input)?;
        flow.add(self.scale, to_scale)?;
        flow.add(self.shift, to_shift)
    }
}
