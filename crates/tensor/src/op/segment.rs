//! Softmax, log-sum-exp and entropy over the segments of a vector.
//!
//! Closed elements (a mask of ones) count as minus infinity. A segment without open elements, such as an empty one,
//! has log-sum-exp minus infinity and entropy 0, and passes no gradient.

use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Segments, Tensor};

struct LogSoftmax {
    input: Var,
    segments: Segments,
    output: Var,
}

struct LogSumExp {
    input: Var,
    segments: Segments,
    closed: Option<Indices>,
    output: Var,
}

struct Entropy {
    input: Var,
    segments: Segments,
    output: Var,
}

impl Tape<'_> {
    /// `x − log Σ eˣ` within each segment; closed elements become minus infinity.
    pub fn segment_log_softmax(
        &mut self,
        input: Var,
        segments: &Segments,
        closed: Option<&Indices>,
    ) -> Result<Var> {
        let value = self.segmented("segment_log_softmax", input, segments, closed)?;
        let mut out = self.device().allocate::<f32>(segments.total())?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (source, starts) = (value.buffer().host(), segments.starts());
                let closed = closed.map(|closed| closed.buffer().host());
                cpu.segments(out.host_mut(), starts, |range, out| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let offset = starts[range.start] as usize;
                            for segment in range {
                                let (start, end) = (starts[segment] as usize, starts[segment + 1] as usize);
                                let out = &mut out[start - offset..end - offset];
                                out.copy_from_slice(&source[start..end]);
                                if let Some(closed) = closed {
                                    close(out, &closed[start..end]);
                                }
                                let total = log_sum_exp(out);
                                if total > f32::NEG_INFINITY {
                                    out.iter_mut().for_each(|value| *value -= total);
                                }
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let (input, starts, closed) =
                    (value.buffer(), segments.buffer(), closed.map(Indices::buffer));
                let arguments = arguments![input, starts, closed, segments.len(), &mut out];
                cuda.warps("segment_log_softmax", segments.len(), arguments)?;
            }
        }
        let output = Tensor::of(out, segments.total(), 1);
        let segments = segments.clone();
        Ok(self.record(output, &[input], |output| LogSoftmax { input, segments, output }))
    }

    /// `log Σ eˣ` of each segment: a vector with one element per segment.
    pub fn segment_log_sum_exp(
        &mut self,
        input: Var,
        segments: &Segments,
        closed: Option<&Indices>,
    ) -> Result<Var> {
        let value = self.segmented("segment_log_sum_exp", input, segments, closed)?;
        let mut out = self.device().allocate::<f32>(segments.len())?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (source, starts) = (value.buffer().host(), segments.starts());
                let closed = closed.map(|closed| closed.buffer().host());
                cpu.zip([(out.host_mut(), 1)], 64, |first, [out]| {
                    let mut open = Vec::new();
                    for (index, out) in out.iter_mut().enumerate() {
                        let range = starts[first + index] as usize..starts[first + index + 1] as usize;
                        open.clear();
                        open.extend_from_slice(&source[range.clone()]);
                        if let Some(closed) = closed {
                            close(&mut open, &closed[range]);
                        }
                        *out = simd::vectorise(
                            #[inline(always)]
                            || log_sum_exp(&open),
                        );
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (input, starts, closed) =
                    (value.buffer(), segments.buffer(), closed.map(Indices::buffer));
                let arguments = arguments![input, starts, closed, segments.len(), &mut out];
                cuda.warps("segment_log_sum_exp", segments.len(), arguments)?;
            }
        }
        let output = Tensor::of(out, segments.len(), 1);
        let (segments, closed) = (segments.clone(), closed.cloned());
        Ok(self.record(output, &[input], |output| LogSumExp { input, segments, closed, output }))
    }

    /// `−Σ eˣ x` of each segment, for an input of log-probabilities: a vector with one element per segment.
    pub fn segment_entropy(&mut self, input: Var, segments: &Segments) -> Result<Var> {
        let value = self.segmented("segment_entropy", input, segments, None)?;
        let mut out = self.device().allocate::<f32>(segments.len())?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (source, starts) = (value.buffer().host(), segments.starts());
                cpu.zip([(out.host_mut(), 1)], 64, |first, [out]| {
                    for (index, out) in out.iter_mut().enumerate() {
                        let range = starts[first + index] as usize..starts[first + index + 1] as usize;
                        let possible = source[range].iter().filter(|value| **value > f32::NEG_INFINITY);
                        *out = -possible.map(|value| simd::exp(*value) * value).sum::<f32>();
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let arguments = arguments![value.buffer(), segments.buffer(), segments.len(), &mut out];
                cuda.warps("segment_entropy", segments.len(), arguments)?;
            }
        }
        let output = Tensor::of(out, segments.len(), 1);
        let segments = segments.clone();
        Ok(self.record(output, &[input], |output| Entropy { input, segments, output }))
    }

    fn segmented(
        &self,
        name: &'static str,
        input: Var,
        segments: &Segments,
        closed: Option<&Indices>,
    ) -> Result<Tensor> {
        let value = self.input(name, input)?;
        let (shape, total) = (value.shape(), segments.total());
        // A matrix is also accepted as a list: its rows one after the other.
        expect_shape(shape[0] * shape[1] == total, name, "input and segments", &shape, &[total, 1])?;
        if let Some(closed) = closed {
            expect_shape(closed.len() == total, name, "mask and segments", &[closed.len()], &[total])?;
        }
        Ok(value.clone())
    }
}

#[inline(always)]
fn close(values: &mut [f32], closed: &[u32]) {
    for (value, closed) in values.iter_mut().zip(closed) {
        *value = if *closed != 0 { f32::NEG_INFINITY } else { *value };
    }
}

/// `log Σ eˣ` in double precision of values on the host; minus infinity if there are none.
pub fn logsumexp(values: &[f32]) -> f64 {
    const LANES: usize = 16;
    simd::vectorise(
        #[inline(always)]
        || {
            let largest = simd::max(values);
            let mut sums = [0.0f64; LANES];
            let chunks = values.chunks_exact(LANES);
            for (lane, value) in chunks.remainder().iter().enumerate() {
                sums[lane] += simd::exp_double(f64::from(value - largest));
            }
            for chunk in chunks {
                for lane in 0..LANES {
                    sums[lane] += simd::exp_double(f64::from(chunk[lane] - largest));
                }
            }
            f64::from(largest) + sums.iter().sum::<f64>().ln()
        },
    )
}

/// `log Σ eˣ` of a slice; minus infinity if it is empty.
#[inline(always)]
pub(crate) fn log_sum_exp(values: &[f32]) -> f32 {
    let largest = simd::max(values);
    if largest == f32::NEG_INFINITY {
        return largest;
    }
    const LANES: usize = 16;
    let mut sums = [0.0f32; LANES];
    let chunks = values.chunks_exact(LANES);
    for (lane, value) in chunks.remainder().iter().enumerate() {
        sums[lane] += simd::exp(value - largest);
    }
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += simd::exp(chunk[lane] - largest);
        }
    }
    largest + sums.iter().sum::<f32>().ln()
}

impl Operation for LogSoftmax {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let mut gradient = flow.output(self.output)?;
        let output = flow.value(self.output);
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let (output, starts) = (output.buffer().host(), self.segments.starts());
                cpu.segments(gradient.host_mut(), starts, |range, gradient| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let offset = starts[range.start] as usize;
                            for segment in range {
                                let (start, end) = (starts[segment] as usize, starts[segment + 1] as usize);
                                softmax_derivatives(
                                    &mut gradient[start - offset..end - offset],
                                    &output[start..end],
                                );
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let count = self.segments.len();
                let arguments = arguments![output.buffer(), self.segments.buffer(), count, &mut gradient];
                cuda.warps("segment_softmax_back", count, arguments)?;
            }
        }
        flow.add(self.input, gradient)
    }
}

/// `g − p Σ g`, for log-probabilities; no gradient flows to elements of probability zero.
#[inline(always)]
pub(crate) fn softmax_derivatives(gradient: &mut [f32], output: &[f32]) {
    for (gradient, output) in gradient.iter_mut().zip(output) {
        *gradient = if *output == f32::NEG_INFINITY { 0.0 } else { *gradient };
    }
    let total = simd::sum(gradient);
    for (gradient, output) in gradient.iter_mut().zip(output) {
        *gradient -= simd::exp(*output) * total;
    }
}

impl Operation for LogSumExp {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (input, output) = (flow.value(self.input), flow.value(self.output));
        let mut part = flow.device().allocate::<f32>(self.segments.total())?;
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let (input, output) = (input.buffer().host(), output.buffer().host());
                let (gradient, starts) = (gradient.host(), self.segments.starts());
                let closed = self.closed.as_ref().map(|closed| closed.buffer().host());
                cpu.segments(part.host_mut(), starts, |range, part| {
                    let offset = starts[range.start] as usize;
                    for segment in range {
                        for position in starts[segment] as usize..starts[segment + 1] as usize {
                            let open = closed.is_none_or(|closed| closed[position] == 0);
                            let some = output[segment] > f32::NEG_INFINITY;
                            let share =
                                if open && some { simd::exp(input[position] - output[segment]) } else { 0.0 };
                            part[position - offset] = gradient[segment] * share;
                        }
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (count, closed) = (self.segments.len(), self.closed.as_ref().map(Indices::buffer));
                let (input, output, starts) = (input.buffer(), output.buffer(), self.segments.buffer());
                let arguments = arguments![input, output, starts, closed, count, &gradient, &mut part];
                cuda.warps("segment_log_sum_exp_back", count, arguments)?;
            }
        }
        flow.add(self.input, part)
    }
}

impl Operation for Entropy {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let input = flow.value(self.input);
        let mut part = flow.device().allocate::<f32>(self.segments.total())?;
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let (input, gradient, starts) =
                    (input.buffer().host(), gradient.host(), self.segments.starts());
                cpu.segments(part.host_mut(), starts, |range, part| {
                    let offset = starts[range.start] as usize;
                    for segment in range {
                        for position in starts[segment] as usize..starts[segment + 1] as usize {
                            let x = input[position];
                            let derivative =
                                if x > f32::NEG_INFINITY { -simd::exp(x) * (x + 1.0) } else { 0.0 };
                            part[position - offset] = gradient[segment] * derivative;
                        }
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let count = self.segments.len();
                let arguments =
                    arguments![input.buffer(), self.segments.buffer(), count, &gradient, &mut part];
                cuda.warps("segment_entropy_back", count, arguments)?;
            }
        }
        flow.add(self.input, part)
    }
}
