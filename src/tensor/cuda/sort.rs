//! A stable sort of keys on the device, and sums that do not depend on the order of threads.
//!
//! The sort goes byte by byte from the lowest: count the keys of each value in each tile, add the counts up,
//! put every key in its place. Only integers are counted concurrently, so the result is always the same.

use super::launch::arguments;
use super::{Cuda, Result};
use crate::tensor::device::Device;
use crate::tensor::memory::Buffer;

/// Keys that a block sorts.
const TILE: usize = 4096;

pub(crate) const KERNELS: &str = r#"
#define SORT_TILE 4096
extern "C" __global__ void sort_count(const u32* keys, u32 n, u32 shift, u32* counts, u32 tiles) {
    __shared__ u32 histogram[256];
    histogram[threadIdx.x] = 0;
    __syncthreads();
    u32 first = blockIdx.x * SORT_TILE;
    for (u32 i = first + threadIdx.x; i < min(first + SORT_TILE, n); i += 256)
        atomicAdd(&histogram[(keys[i] >> shift) & 255], 1u);
    __syncthreads();
    counts[threadIdx.x * tiles + blockIdx.x] = histogram[threadIdx.x];
}
// One block of 1024 threads turns counts into the sums of all counts before them.
extern "C" __global__ void sort_scan(u32* counts, u32 n) {
    __shared__ u32 sums[1024];
    u32 each = (n + 1023) / 1024, first = threadIdx.x * each, end = min(first + each, n);
    u32 total = 0;
    for (u32 i = first; i < end; i++) total += counts[i];
    sums[threadIdx.x] = total;
    __syncthreads();
    for (u32 step = 1; step < 1024; step <<= 1) {
        u32 other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
        __syncthreads();
    }
    u32 before = sums[threadIdx.x] - total;
    for (u32 i = first; i < end; i++) { u32 count = counts[i]; counts[i] = before; before += count; }
}
extern "C" __global__ void sort_place(const u32* keys, const u32* order, u32* keys_out, u32* order_out,
                                      u32 n, u32 shift, const u32* counts, u32 tiles) {
    __shared__ u32 next[256];
    __shared__ u32 in_warp[8][256];
    u32 t = threadIdx.x, warp = t >> 5, lane = t & 31;
    next[t] = counts[t * tiles + blockIdx.x];
    for (u32 w = 0; w < 8; w++) in_warp[w][t] = 0;
    __syncthreads();
    u32 first = blockIdx.x * SORT_TILE, end = min(first + SORT_TILE, n);
    for (u32 round = first; round < end; round += 256) {
        u32 i = round + t;
        bool live = i < end;
        u32 key = live ? keys[i] : 0;
        u32 digit = live ? (key >> shift) & 255 : 256;
        u32 same = __match_any_sync(0xffffffffu, digit);
        u32 rank = __popc(same & ((1u << lane) - 1));
        if (live && rank == 0) in_warp[warp][digit] = __popc(same);
        __syncthreads();
        if (live) {
            u32 to = next[digit] + rank;
            for (u32 w = 0; w < warp; w++) to += in_warp[w][digit];
            keys_out[to] = key;
            order_out[to] = order ? order[i] : i;
        }
        __syncthreads();
        u32 total = 0;
        for (u32 w = 0; w < 8; w++) { total += in_warp[w][t]; in_warp[w][t] = 0; }
        next[t] += total;
        __syncthreads();
    }
}
// The second half of a sum: parts of each of `columns` sums, added in order.
extern "C" __global__ void sum_parts(const float* parts, u32 count, u32 columns, float* out, float factor, u32 accumulate) {
    u32 column = THREAD;
    if (column >= columns) return;
    float total = 0.0f;
    for (u32 i = 0; i < count; i++) total += parts[(u64)i * columns + column];
    out[column] = total * factor + (accumulate ? out[column] : 0.0f);
}
// The same for a single number, by one block.
extern "C" __global__ void sum_all(const float* parts, u32 count, float* out, float factor) {
    float total = 0.0f;
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) total += parts[i];
    total = block_sum(total);
    if (threadIdx.x == 0) out[0] = total * factor;
}
"#;

impl Cuda {
    /// The keys in rising order, all below `limit`, and the position each had; equal keys keep their order.
    pub(crate) fn sorted(
        &self,
        device: &Device,
        keys: &Buffer<u32>,
        limit: usize,
    ) -> Result<(Buffer<u32>, Buffer<u32>)> {
        let n = keys.len();
        let tiles = n.div_ceil(TILE);
        let mut counts = device.allocate::<u32>(256 * tiles)?;
        let bits = usize::BITS - limit.saturating_sub(1).leading_zeros();
        let mut current: Option<(Buffer<u32>, Buffer<u32>)> = None;
        for shift in (0..bits.max(1)).step_by(8) {
            let (mut keys_out, mut order_out) = (device.allocate::<u32>(n)?, device.allocate::<u32>(n)?);
            let (source, order) = match &current {
                Some((keys, order)) => (keys, Some(order)),
                None => (keys, None),
            };
            self.blocks("sort_count", (tiles, 1), 256, arguments![source, n, shift, &mut counts, tiles])?;
            if tiles > 0 {
                self.blocks("sort_scan", (1, 1), 1024, arguments![&mut counts, 256 * tiles])?;
            }
            let arguments =
                arguments![source, order, &mut keys_out, &mut order_out, n, shift, &counts, tiles];
            self.blocks("sort_place", (tiles, 1), 256, arguments)?;
            current = Some((keys_out, order_out));
        }
        Ok(current.expect("there is at least one round"))
    }

    /// Adds the parts of a sum, in order.
    pub(crate) fn sum_all(&self, parts: &Buffer<f32>, out: &mut Buffer<f32>, factor: f32) -> Result<()> {
        self.blocks("sum_all", (1, 1), 1024, arguments![parts, parts.len(), out, factor])
    }
}
