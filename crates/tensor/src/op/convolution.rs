//! Two-dimensional convolution without padding, for ConvE.
//!
//! A row of the input is an image of `channels × height × width`; a row of the output one of
//! `filters × (height − kernel height + 1) × (width − kernel width + 1)`.

use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// The sizes of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Channels of the input.
    pub channels: usize,
    /// Height of the input.
    pub height: usize,
    /// Width of the input.
    pub width: usize,
    /// Height of a filter.
    pub kernel_height: usize,
    /// Width of a filter.
    pub kernel_width: usize,
}

impl Image {
    /// The number of values of an input image.
    pub fn input_len(&self) -> usize {
        self.channels * self.height * self.width
    }

    /// The number of values that a filter sees at one position.
    pub fn taps(&self) -> usize {
        self.channels * self.kernel_height * self.kernel_width
    }

    /// Height and width of the output.
    pub fn output_size(&self) -> (usize, usize) {
        (
            (self.height + 1).saturating_sub(self.kernel_height),
            (self.width + 1).saturating_sub(self.kernel_width),
        )
    }

    /// The number of positions at which a filter is applied.
    pub fn places(&self) -> usize {
        let (height, width) = self.output_size();
        height * width
    }

    /// For every tap, the input offset at which each output row begins: calls `each(tap, output row, start)`.
    #[inline(always)]
    fn for_rows(&self, mut each: impl FnMut(usize, usize, usize)) {
        let (height, _) = self.output_size();
        for tap in 0..self.taps() {
            let (channel, rest) = (
                tap / (self.kernel_height * self.kernel_width),
                tap % (self.kernel_height * self.kernel_width),
            );
            let (down, right) = (rest / self.kernel_width, rest % self.kernel_width);
            for row in 0..height {
                each(tap, row, (channel * self.height + row + down) * self.width + right);
            }
        }
    }
}

struct Convolution {
    input: Var,
    filters: Var,
    bias: Option<Var>,
    image: Image,
    output: Var,
}

impl Tape<'_> {
    /// Applies every row of `filters` (`taps` columns: channel, then row, then column) at every position of every
    /// image, and adds `bias`, a column with one element per filter.
    pub fn convolve(&mut self, input: Var, filters: Var, bias: Option<Var>, image: Image) -> Result<Var> {
        let (value, kernel) = (self.input("convolve", input)?, self.at(filters));
        let ([rows, columns], [count, taps]) = (value.shape(), kernel.shape());
        let sizes = [image.channels, image.height, image.width];
        expect_shape(columns == image.input_len(), "convolve", "input and image", &value.shape(), &sizes)?;
        expect_shape(
            taps == image.taps(),
            "convolve",
            "filters and image",
            &kernel.shape(),
            &[count, image.taps()],
        )?;
        let kernel_size = [image.kernel_height, image.kernel_width];
        expect_shape(image.places() > 0, "convolve", "image and filter", &sizes, &kernel_size)?;
        if let Some(bias) = bias {
            let shape = self.shape(bias);
            expect_shape(shape == [count, 1], "convolve", "bias and filters", &shape, &[count, taps])?;
        }
        let places = image.places();
        let mut out = self.device().allocate::<f32>(rows * count * places)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (images, kernel) = (value.buffer().host(), kernel.buffer().host());
                let bias = bias.map(|bias| self.at(bias).buffer().host());
                cpu.zip([(out.host_mut(), count * places)], 8, |first, [out]| {
                    let mut unrolled = vec![0.0; taps * places];
                    for (index, out) in out.chunks_exact_mut(count * places).enumerate() {
                        let from = (first + index) * columns;
                        unroll(&images[from..from + columns], image, &mut unrolled);
                        simd::vectorise(
                            #[inline(always)]
                            || {
                                for (filter, out) in out.chunks_exact_mut(places).enumerate() {
                                    out.fill(bias.map_or(0.0, |bias| bias[filter]));
                                    for (tap, source) in unrolled.chunks_exact(places).enumerate() {
                                        simd::add_scaled(out, kernel[filter * taps + tap], source);
                                    }
                                }
                            },
                        );
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let n = rows * count * places;
                let bias = bias.map(|bias| self.at(bias).buffer());
                let (height, width) = image.output_size();
                let arguments = arguments![
                    value.buffer(),
                    kernel.buffer(),
                    bias,
                    &mut out,
                    n,
                    count,
                    image.channels,
                    image.height,
                    image.width,
                    image.kernel_height,
                    image.kernel_width,
                    height,
                    width
                ];
                cuda.threads("convolve", n, arguments)?;
            }
        }
        let output = Tensor::of(out, rows, count * places);
        let mut inputs = vec![input, filters];
        inputs.extend(bias);
        Ok(self.record(output, &inputs, |output| Convolution { input, filters, bias, image, output }))
    }
}

/// An image as `taps × positions`: what each tap sees at each position.
fn unroll(image: &[f32], sizes: Image, out: &mut [f32]) {
    let (_, width) = sizes.output_size();
    let places = sizes.places();
    sizes.for_rows(|tap, row, start| {
        let to = tap * places + row * width;
        out[to..to + width].copy_from_slice(&image[start..start + width]);
    });
}

impl Operation for Convolution {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (input, filters) = (flow.value(self.input), flow.value(self.filters));
        let ([rows, columns], [count, taps]) = (input.shape(), filters.shape());
        let (image, places) = (self.image, self.image.places());
        let device = flow.device();
        let mut to_input = device.zeros::<f32>(rows * columns)?;
        let mut to_filters = device.zeros::<f32>(count * taps)?;
        let mut to_bias = device.zeros::<f32>(count)?;
        match device.backend() {
            Backend::Cpu(cpu) => {
                let (images, kernel, gradient) =
                    (input.buffer().host(), filters.buffer().host(), gradient.host());
                // Sums over images: one partial sum for each chunk of images, added up in order below.
                let chunk = 32;
                let mut parts = vec![0.0f32; rows.div_ceil(chunk) * (count * taps + count)];
                let width = count * taps + count;
                let inputs: Vec<_> = to_input.host_mut().chunks_mut(chunk * columns).collect();
                let tasks: Vec<_> = parts.chunks_mut(width).zip(inputs).enumerate().collect();
                cpu.run(tasks, |(index, (part, to_input))| {
                    let (mut unrolled, mut back) = (vec![0.0; taps * places], vec![0.0; taps * places]);
                    for (offset, to_image) in to_input.chunks_exact_mut(columns).enumerate() {
                        let row = index * chunk + offset;
                        unroll(&images[row * columns..(row + 1) * columns], image, &mut unrolled);
                        let derivatives = &gradient[row * count * places..(row + 1) * count * places];
                        image_derivatives(derivatives, kernel, &unrolled, &mut back, part, taps);
                        let (_, width) = image.output_size();
                        image.for_rows(|tap, row, start| {
                            let from = tap * places + row * width;
                            simd::add(&mut to_image[start..start + width], &back[from..from + width]);
                        });
                    }
                });
                for part in parts.chunks_exact(width) {
                    simd::add(to_filters.host_mut(), &part[..count * taps]);
                    simd::add(to_bias.host_mut(), &part[count * taps..]);
                }
            }
            Backend::Cuda(cuda) => {
                let (height, width) = image.output_size();
                let n = rows * columns;
                let arguments = arguments![
                    &gradient,
                    filters.buffer(),
                    &mut to_input,
                    n,
                    count,
                    image.channels,
                    image.height,
                    image.width,
                    image.kernel_height,
                    image.kernel_width,
                    height,
                    width
                ];
                cuda.threads("convolve_input", n, arguments)?;
                // One sum per filter, tap (the bias is one more tap) and chunk of images; then a sum over chunks.
                let chunks = rows.div_ceil(16).max(1);
                let mut parts = device.allocate::<f32>(chunks * count * (taps + 1))?;
                let arguments = arguments![
                    &gradient,
                    input.buffer(),
                    &mut parts,
                    rows,
                    count,
                    image.channels,
                    image.height,
                    image.width,
                    image.kernel_height,
                    image.kernel_width,
                    height,
                    width
                ];
                cuda.blocks("convolve_filters", (count * (taps + 1), chunks), 256, arguments)?;
                let arguments = arguments![&parts, chunks, count, taps, &mut to_filters, &mut to_bias];
                cuda.threads("convolve_sums", count * (taps + 1), arguments)?;
            }
        }
        flow.add(self.input, to_input)?;
        flow.add(self.filters, to_filters)?;
        match self.bias {
            Some(bias) => flow.add(bias, to_bias),
            None => Ok(()),
        }
    }
}

/// One image's part of the gradients of filters and biases, and the gradient of what its taps see.
fn image_derivatives(
    derivatives: &[f32],
    kernel: &[f32],
    unrolled: &[f32],
    back: &mut [f32],
    part: &mut [f32],
    taps: usize,
) {
    let places = unrolled.len() / taps;
    let (to_filters, to_bias) = part.split_at_mut(kernel.len());
    simd::vectorise(
        #[inline(always)]
        || {
            back.fill(0.0);
            for (filter, derivatives) in derivatives.chunks_exact(places).enumerate() {
                to_bias[filter] += simd::sum(derivatives);
                for tap in 0..taps {
                    let range = tap * places..(tap + 1) * places;
                    to_filters[filter * taps + tap] += simd::dot(derivatives, &unrolled[range.clone()]);
                    simd::add_scaled(&mut back[range], kernel[filter * taps + tap], derivatives);
                }
            }
        },
    );
}
