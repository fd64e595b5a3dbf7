//! The new state of every row from its aggregates: two linear maps, layer normalisation, ReLU, dropout and the old state.
//!
//! `out = dropout(relu(norm(W₀ state + (W₁ + s W₂ + W₃ / s) aggregates + bias))) + state`, where `s` is the logarithm of
//! the row's degree over its mean. The aggregates are multiplied once, by `[W₁ | W₂ | W₃]`, and the three parts combined,
//! so no concatenation is made. Rows that this layer reached for the first time have an old state of zero.

use std::sync::Arc;

use super::linear::{add_product_to_weight, column_sums};
use super::product::{Side, product};
use crate::tensor::cpu::{Cpu, simd};
use crate::tensor::cuda::launch::{BLOCK, arguments};
use crate::tensor::device::{Backend, Device};
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::memory::Buffer;
use crate::tensor::random::Dropout;
use crate::tensor::reach::Reach;
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::Tensor;

/// What is added to a variance before its root is taken.
const EPSILON: f32 = 1e-5;
/// The least factor that a degree gives.
const LEAST_FACTOR: f32 = 1e-2;
/// The widest state: a lane of the kernels holds eight columns.
const WIDEST: usize = 256;
/// Rows that the CPU takes at once.
const ROWS: usize = 128;
/// Blocks of the backward kernel; a fixed number, so that sums have one order.
const BLOCKS: usize = 264;

pub(crate) const KERNELS: &str = r#"
__device__ __forceinline__ float factor_of(u32 degree, float mean_log) { return fmaxf(logf((float)degree) / mean_log, 1e-2f); }
// A warp for each row. `sum` has the product of the old state and becomes the sum before normalisation.
extern "C" __global__ void update(const float* state, const float* mixed, const u32* degrees, float mean_log, u32 before, u32 rows, u32 width, u32 parts,
                                  const float* bias, const float* scale, const float* shift, Dropout dropout, float* sum, float* out) {
    u32 row = WARP;
    if (row >= rows) return;
    float s = factor_of(degrees[row], mean_log), z[8], mean = 0.0f, square = 0.0f;
    const float* a = mixed + (u64)row * parts * width;
    #pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        z[u] = 0.0f;
        if (c >= width) continue;
        z[u] = (row < before ? sum[(u64)row * width + c] : 0.0f) + bias[c] + a[c];
        if (parts == 3) z[u] += s * a[width + c] + a[2 * width + c] / s;
        sum[(u64)row * width + c] = z[u];
        mean += z[u];
    }
    mean = warp_sum(mean) / width;
    #pragma unroll
    for (u32 u = 0; u < 8; u++) if (u * 32 + LANE < width) square += (z[u] - mean) * (z[u] - mean);
    float root = rsqrtf(warp_sum(square) / width + 1e-5f);
    #pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        if (c >= width) continue;
        u32 at = row * width + c;
        float y = fmaxf((z[u] - mean) * root * scale[c] + shift[c], 0.0f) * kept(dropout, at);
        out[at] = y + (row < before ? state[at] : 0.0f);
    }
}
// Warps visit rows in turn; each block leaves the sums of its rows for scale, shift and bias.
extern "C" __global__ void update_back(const float* sum, const float* gradient, const u32* degrees, float mean_log, u32 rows, u32 width, u32 parts,
                                       const float* scale, const float* shift, Dropout dropout, float* slope, float* mixed_slope,
                                       float* scales, float* shifts, float* biases) {
    __shared__ float all[8][3][256];
    u32 warp = threadIdx.x >> 5;
    float of_scale[8], of_shift[8], of_bias[8];
    #pragma unroll
    for (u32 u = 0; u < 8; u++) of_scale[u] = of_shift[u] = of_bias[u] = 0.0f;
    for (u32 row = WARP; row < rows; row += gridDim.x * 8) {
        float x[8], g[8], mean = 0.0f, square = 0.0f;
        #pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            x[u] = c < width ? sum[(u64)row * width + c] : 0.0f;
            mean += x[u];
        }
        mean = warp_sum(mean) / width;
        #pragma unroll
        for (u32 u = 0; u < 8; u++) if (u * 32 + LANE < width) square += (x[u] - mean) * (x[u] - mean);
        float root = rsqrtf(warp_sum(square) / width + 1e-5f), first = 0.0f, second = 0.0f;
        #pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            g[u] = 0.0f;
            if (c >= width) continue;
            x[u] = (x[u] - mean) * root;
            u32 at = row * width + c;
            float d = x[u] * scale[c] + shift[c] > 0.0f ? gradient[at] * kept(dropout, at) : 0.0f;
            of_scale[u] += d * x[u];
            of_shift[u] += d;
            g[u] = d * scale[c];
            first += g[u];
            second += g[u] * x[u];
        }
        first = warp_sum(first) / width;
        second = warp_sum(second) / width;
        float s = factor_of(degrees[row], mean_log);
        float* to = mixed_slope + (u64)row * parts * width;
        #pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            if (c >= width) continue;
            float z = root * (g[u] - first - x[u] * second);
            of_bias[u] += z;
            slope[(u64)row * width + c] = z;
            to[c] = z;
            if (parts == 3) {
                to[width + c] = s * z;
                to[2 * width + c] = z / s;
            }
        }
    }
    #pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        all[warp][0][c] = of_scale[u];
        all[warp][1][c] = of_shift[u];
        all[warp][2][c] = of_bias[u];
    }
    __syncthreads();
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float total[3] = { 0.0f, 0.0f, 0.0f };
        for (u32 w = 0; w < 8; w++) for (u32 k = 0; k < 3; k++) total[k] += all[w][k][c];
        scales[blockIdx.x * width + c] = total[0];
        shifts[blockIdx.x * width + c] = total[1];
        biases[blockIdx.x * width + c] = total[2];
    }
}
"#;

/// The weights of an update: `own` `[width, width]` for the old state, `mixed` for the aggregates (as many columns as
/// the state, or three times as many if degrees count), and rows of bias and of normalisation's scale and shift.
#[derive(Clone, Copy, Debug)]
pub struct UpdateWeights {
    /// `W₀`.
    pub own: Var,
    /// `[W₁ | W₂ | W₃]`.
    pub mixed: Var,
    /// Added before normalisation.
    pub bias: Var,
    /// What normalised values are multiplied by.
    pub scale: Var,
    /// What is added to them.
    pub shift: Var,
}

/// What both devices need to know.
#[derive(Clone, Copy)]
struct Sizes {
    before: usize,
    rows: usize,
    width: usize,
    /// Parts of the mixed aggregates: 1 or 3.
    parts: usize,
    mean_log: f32,
    dropout: Dropout,
}

struct Update {
    state: Var,
    aggregates: Var,
    weights: UpdateWeights,
    output: Var,
    reach: Arc<Reach>,
    sizes: Sizes,
    /// The sum before normalisation.
    sum: Buffer<f32>,
}

impl Tape<'_> {
    /// The state of the rows of layer `layer` of `reach`, from that of the layer before and the rows' aggregates.
    pub fn update(
        &mut self,
        state: Var,
        aggregates: Var,
        weights: UpdateWeights,
        (reach, layer): (&Arc<Reach>, usize),
        dropout: f32,
    ) -> Result<Var> {
        const NAME: &str = "update";
        let dropout = self.dropout_of(dropout);
        let [before, width] = self.input(NAME, state)?.shape();
        let [rows, depth] = self.input(NAME, aggregates)?.shape();
        let here = [reach.rows(layer - 1), reach.rows(layer)];
        expect_shape([before, rows] == here, NAME, "rows and rows reached", &[before, rows], &here)?;
        expect_shape(width <= WIDEST, NAME, "width and the widest", &[width], &[WIDEST])?;
        let [_, columns] = self.shape(weights.mixed);
        let parts = if columns == width { 1 } else { 3 };
        let expected = [
            (weights.own, [width, width]),
            (weights.mixed, [depth, parts * width]),
            (weights.bias, [1, width]),
            (weights.scale, [1, width]),
            (weights.shift, [1, width]),
        ];
        for (weight, wanted) in expected {
            let shape = self.shape(weight);
            expect_shape(shape == wanted, NAME, "weight and state", &shape, &wanted)?;
        }
        let device = self.device().clone();
        let mut mixed = device.allocate::<f32>(rows * parts * width)?;
        let (left, right) = (self.at(aggregates).buffer(), self.at(weights.mixed).buffer());
        product(&mut mixed, 0, Side::new(left, rows, depth), Side::new(right, depth, parts * width), false)?;
        let mut sum = device.allocate::<f32>(rows * width)?;
        let (old, own) = (self.at(state).buffer(), self.at(weights.own).buffer());
        product(&mut sum, 0, Side::new(old, before, width), Side::new(own, width, width), false)?;
        let mut out = device.allocate::<f32>(rows * width)?;
        let sizes = Sizes { before, rows, width, parts, mean_log: reach.mesh.0.mean_log, dropout };
        let [bias, scale, shift] =
            [weights.bias, weights.scale, weights.shift].map(|weight| self.at(weight).buffer());
        let degrees = reach.row_degrees.buffer();
        match device.backend() {
            Backend::Cpu(cpu) => {
                let inputs = [old, &mixed, bias, scale, shift].map(Buffer::host);
                forward(cpu, sizes, inputs, degrees.host(), sum.host_mut(), out.host_mut());
            }
            Backend::Cuda(cuda) => {
                let mean_log = sizes.mean_log;
                let arguments = arguments![
                    old, &mixed, degrees, mean_log, before, rows, width, parts, bias, scale, shift, dropout,
                    &mut sum, &mut out
                ];
                cuda.warps("update", rows, arguments)?;
            }
        }
        let output = Tensor::of(out, rows, width);
        let UpdateWeights { own, mixed, bias, scale, shift } = weights;
        let inputs = [state, aggregates, own, mixed, bias, scale, shift];
        let reach = reach.clone();
        Ok(self.record(output, &inputs, |output| Update {
            state,
            aggregates,
            weights,
            output,
            reach,
            sizes,
            sum,
        }))
    }
}

/// What a degree multiplies the second part of the aggregates by, and divides the third by.
fn factor_of(degree: u32, mean_log: f32) -> f32 {
    ((degree as f32).ln() / mean_log).max(LEAST_FACTOR)
}

/// The mean and the inverse deviation of a row.
#[inline(always)]
fn moments(row: &[f32]) -> (f32, f32) {
    let mean = simd::sum(row) / row.len() as f32;
    let squares = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>();
    (mean, 1.0 / (squares / row.len() as f32 + EPSILON).sqrt())
}

fn forward(
    cpu: &Cpu,
    sizes: Sizes,
    [state, mixed, bias, scale, shift]: [&[f32]; 5],
    degrees: &[u32],
    sum: &mut [f32],
    out: &mut [f32],
) {
    let Sizes { before, width, parts, mean_log, dropout, .. } = sizes;
    cpu.zip([(sum, width), (out, width)], ROWS, |first, [sums, outs]| {
        simd::vectorise(
            #[inline(always)]
            || {
                for (index, (sum, out)) in
                    sums.chunks_exact_mut(width).zip(outs.chunks_exact_mut(width)).enumerate()
                {
                    let row = first + index;
                    let mixed = &mixed[row * parts * width..][..parts * width];
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
            },
        )
    });
}

/// The gradients of the sum, of the mixed aggregates, and, one row for each part of the work, of scale, shift and bias.
struct Slopes {
    sum: Buffer<f32>,
    mixed: Buffer<f32>,
    rows: [Buffer<f32>; 3],
    chunks: usize,
}

impl Update {
    fn slopes(
        &self,
        device: &Device,
        gradient: &Buffer<f32>,
        scale: &Tensor,
        shift: &Tensor,
    ) -> Result<Slopes> {
        let Sizes { rows, width, parts, mean_log, dropout, .. } = self.sizes;
        let chunks = if device.is_cuda() { BLOCKS } else { rows.div_ceil(ROWS) };
        let mut slopes = Slopes {
            sum: device.allocate(rows * width)?,
            mixed: device.allocate(rows * parts * width)?,
            rows: [
                device.zeros(chunks * width)?,
                device.zeros(chunks * width)?,
                device.zeros(chunks * width)?,
            ],
            chunks,
        };
        let degrees = self.reach.row_degrees.buffer();
        let (scale, shift) = (scale.buffer(), shift.buffer());
        match device.backend() {
            Backend::Cpu(cpu) => {
                let inputs = [&self.sum, gradient, scale, shift].map(Buffer::host);
                backward(cpu, self.sizes, inputs, degrees.host(), &mut slopes);
            }
            Backend::Cuda(cuda) => {
                let Slopes { sum, mixed, rows: [scales, shifts, biases], .. } = &mut slopes;
                let arguments = arguments![
                    &self.sum, gradient, degrees, mean_log, rows, width, parts, scale, shift, dropout, sum,
                    mixed, scales, shifts, biases
                ];
                cuda.blocks("update_back", (BLOCKS, 1), BLOCK, arguments)?;
            }
        }
        Ok(slopes)
    }
}

fn backward(
    cpu: &Cpu,
    sizes: Sizes,
    [sum, gradient, scale, shift]: [&[f32]; 4],
    degrees: &[u32],
    slopes: &mut Slopes,
) {
    let Sizes { rows, width, parts, mean_log, dropout, .. } = sizes;
    let [scales, shifts, biases] = slopes.rows.each_mut().map(|rows| rows.host_mut().chunks_exact_mut(width));
    let sums = slopes.sum.host_mut().chunks_mut(ROWS * width);
    let mixed = slopes.mixed.host_mut().chunks_mut(ROWS * parts * width);
    let tasks: Vec<_> = sums.zip(mixed).zip(scales).zip(shifts).zip(biases).enumerate().collect();
    cpu.run(tasks, |(task, ((((sum_slopes, mixed_slopes), of_scale), of_shift), of_bias))| {
        simd::vectorise(
            #[inline(always)]
            || {
                let mut normal = vec![0.0f32; width];
                for row in task * ROWS..((task + 1) * ROWS).min(rows) {
                    let sum = &sum[row * width..][..width];
                    let slope = &mut sum_slopes[(row - task * ROWS) * width..][..width];
                    slope.copy_from_slice(&gradient[row * width..][..width]);
                    if !dropout.is_none() {
                        dropout.apply(slope, row * width);
                    }
                    let (mean, root) = moments(sum);
                    for column in 0..width {
                        normal[column] = (sum[column] - mean) * root;
                        let open = normal[column] * scale[column] + shift[column] > 0.0;
                        let passed = if open { slope[column] } else { 0.0 };
                        of_scale[column] += passed * normal[column];
                        of_shift[column] += passed;
                        slope[column] = passed * scale[column];
                    }
                    let first = simd::sum(slope) / width as f32;
                    let second = simd::dot(slope, &normal) / width as f32;
                    for column in 0..width {
                        slope[column] = root * (slope[column] - first - normal[column] * second);
                        of_bias[column] += slope[column];
                    }
                    let mixed = &mut mixed_slopes[(row - task * ROWS) * parts * width..][..parts * width];
                    mixed[..width].copy_from_slice(slope);
                    if parts == 3 {
                        let factor = factor_of(degrees[row], mean_log);
                        let inverse = 1.0 / factor;
                        for column in 0..width {
                            mixed[width + column] = factor * slope[column];
                            mixed[2 * width + column] = slope[column] * inverse;
                        }
                    }
                }
            },
        )
    });
}

impl Operation for Update {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let Sizes { before, rows, width, parts, .. } = self.sizes;
        let UpdateWeights { own, mixed, bias, scale, shift } = self.weights;
        let device = flow.device();
        let slopes = self.slopes(&device, &gradient, &flow.value(scale), &flow.value(shift))?;
        for (input, sums) in [scale, shift, bias].into_iter().zip(&slopes.rows) {
            if let Some(mut target) = flow.target(input)? {
                column_sums(sums, slopes.chunks, width, &mut target)?;
                flow.put(input, target.buffer, None);
            }
        }
        let (state, aggregates) = (flow.value(self.state), flow.value(self.aggregates));
        let depth = aggregates.columns();
        if let Some(mut target) = flow.target(mixed)? {
            add_product_to_weight(&mut target, &aggregates, &slopes.mixed, 0, parts * width)?;
            flow.put(mixed, target.buffer, None);
        }
        if let Some(mut target) = flow.target(own)? {
            add_product_to_weight(&mut target, &state, &slopes.sum, 0, width)?;
            flow.put(own, target.buffer, None);
        }
        if let Some(mut target) = flow.target(self.aggregates)? {
            let weight = flow.value(mixed);
            let right = Side::new(weight.buffer(), depth, parts * width).transposed();
            product(
                &mut target.buffer,
                0,
                Side::new(&slopes.mixed, rows, parts * width),
                right,
                !target.fresh,
            )?;
            flow.put(self.aggregates, target.buffer, None);
        }
        if let Some(mut target) = flow.target(self.state)? {
            add_first(&mut target.buffer, &gradient, before * width, target.fresh)?;
            let weight = flow.value(own);
            let right = Side::new(weight.buffer(), width, width).transposed();
            product(&mut target.buffer, 0, Side::new(&slopes.sum, before, width), right, true)?;
            flow.put(self.state, target.buffer, None);
        }
        Ok(())
    }
}

/// Adds the first `count` elements of `part`, or puts them in place of what is there.
fn add_first(target: &mut Buffer<f32>, part: &Buffer<f32>, count: usize, fresh: bool) -> Result<()> {
    let device = target.device().clone();
    match device.backend() {
        Backend::Cpu(_) if fresh => target.host_mut()[..count].copy_from_slice(&part.host()[..count]),
        Backend::Cpu(_) => simd::add(&mut target.host_mut()[..count], &part.host()[..count]),
        Backend::Cuda(cuda) if fresh => {
            cuda.copy(target.pointer(), part.pointer(), count * size_of::<f32>())?;
        }
        Backend::Cuda(cuda) => cuda.threads("add_to", count, arguments![target, part, count])?,
    }
    Ok(())
}
