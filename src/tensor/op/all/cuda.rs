//! The losses on CUDA.

use super::{Derivatives, Labels, Loss};
use crate::tensor::cuda::Cuda;
use crate::tensor::cuda::launch::arguments;
use crate::tensor::error::Result;
use crate::tensor::gradients::Target;
use crate::tensor::memory::Buffer;
use crate::tensor::op::product::{Side, product};
use crate::tensor::random::Dropout;

/// The inputs of one call on a CUDA device. The scores are one matrix, which is reused for their derivatives.
pub(super) struct DeviceProblem<'a> {
    pub(super) queries: &'a Buffer<f32>,
    pub(super) table: &'a Buffer<f32>,
    pub(super) bias: Option<&'a Buffer<f32>>,
    pub(super) count: usize,
    pub(super) rows: usize,
    pub(super) width: usize,
    pub(super) dropout: Dropout,
    pub(super) train: bool,
}

impl DeviceProblem<'_> {
    pub(super) fn run(&self, cuda: &Cuda, labels: &Labels, loss: Loss) -> Result<(Buffer<f32>, Derivatives)> {
        let device = self.queries.device();
        let dropped = match self.dropout.is_none() {
            true => None,
            false => Some(crate::tensor::op::against::drop_table(self.table, self.dropout)?),
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
                // The labels' part of loss and derivative needs the original scores, so it is computed first and
                // kept.
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
                cuda.blocks("binary_derivatives", (chunks, self.count), 256, arguments)?;
                let derivative = (1.0 - smoothing.taken) * scale;
                let arguments =
                    arguments![&mut scores, label_rows, owners.buffer(), total, self.rows, derivative];
                cuda.threads("binary_label_derivatives", total, arguments)?;
                cuda.sum_all(&parts, None, &mut value, scale)?;
            }
            Loss::Softmax => {
                let scale = 1.0 / self.count.max(1) as f32;
                let mut parts = device.allocate::<f32>(self.count)?;
                let arguments =
                    arguments![&mut scores, self.bias, label_rows, starts, self.rows, scale, &mut parts];
                cuda.blocks("softmax_derivatives", (self.count, 1), 1024, arguments)?;
                cuda.sum_all(&parts, None, &mut value, scale)?;
            }
        }
        let train = |len: usize| device.allocate::<f32>(if self.train { len } else { 0 });
        let mut derivatives = Derivatives {
            queries: train(self.count * self.width)?,
            table: train(self.rows * self.width)?,
            bias: None,
        };
        if self.train {
            let scores_side = Side::new(&scores, self.count, self.rows);
            product(&mut derivatives.table, 0, scores_side.transposed(), queries, false)?;
            product(&mut derivatives.queries, 0, scores_side, table, false)?;
            if !self.dropout.is_none() {
                crate::tensor::op::against::apply(&mut derivatives.table, self.dropout)?;
            }
            if self.bias.is_some() {
                let mut target = Target { buffer: device.allocate(self.rows)?, fresh: true };
                crate::tensor::op::linear::column_sums(&scores, self.count, self.rows, &mut target)?;
                derivatives.bias = Some(target.buffer);
            }
        }
        Ok((value, derivatives))
    }
}

/// Columns of scores per block of the kernel.
const BINARY_COLUMNS: usize = 2048;

pub(crate) const KERNELS: &str = r#"
#define BINARY_COLUMNS 2048
extern "C" __global__ void binary_labels(const float* scores, const u32* labels, const u32* owners, u32 total, u32 rows,
                                         const float* bias, float weight, float* parts) {
    u32 i = THREAD;
    if (i < total) parts[i] = -weight * (scores[(u64)owners[i] * rows + labels[i]] + (bias ? bias[labels[i]] : 0.0f));
}
extern "C" __global__ void binary_derivatives(float* scores, const float* bias, u32 rows, u32 offset, float label, float scale, float* parts) {
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
extern "C" __global__ void binary_label_derivatives(float* scores, const u32* labels, const u32* owners, u32 total, u32 rows, float derivative) {
    u32 i = THREAD;
    if (i < total) scores[(u64)owners[i] * rows + labels[i]] -= derivative;
}
// A block for each query.
extern "C" __global__ void softmax_derivatives(float* scores, const float* bias, const u32* labels, const u32* starts, u32 rows, float scale, float* parts) {
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
