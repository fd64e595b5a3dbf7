//! RotatE's score: the distance of rotated heads from candidates, ragged for training, against all for ranking.
//!
//! `distance = Σₖ |qₖ − eₖ|` over complex numbers (real parts first, then imaginary parts).

use super::scatter::Scatter;
use crate::tensor::cpu::simd;
use crate::tensor::cuda::launch::arguments;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::random::Dropout;
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::{Indices, Segments, Tensor};

pub(crate) const KERNELS: &str = r#"
#define TINY 1e-12f
extern "C" __global__ void gather_distance(const float* queries, const float* table, const u32* indices, const u32* owners,
                                           float* out, u32 n, u32 half) {
    u32 position = WARP;
    if (position >= n) return;
    const float* q = queries + (u64)owners[position] * 2 * half;
    const float* e = table + (u64)indices[position] * 2 * half;
    float sum = 0.0f;
    for (u32 k = LANE; k < half; k += 32) {
        float x = q[k] - e[k], y = q[half + k] - e[half + k];
        sum += sqrtf(x * x + y * y + TINY);
    }
    sum = warp_sum(sum);
    if (LANE == 0) out[position] = sum;
}
extern "C" __global__ void gather_distance_queries(const float* queries, const float* table, const u32* indices, const u32* starts,
                                                   const float* gradient, float* target, u32 half) {
    u32 segment = blockIdx.x;
    for (u32 k = threadIdx.x; k < half; k += blockDim.x) {
        u64 real = (u64)segment * 2 * half + k, imaginary = real + half;
        float to_real = 0.0f, to_imaginary = 0.0f;
        for (u32 p = starts[segment]; p < starts[segment + 1]; p++) {
            const float* e = table + (u64)indices[p] * 2 * half;
            float x = queries[real] - e[k], y = queries[imaginary] - e[half + k];
            float factor = gradient[p] / sqrtf(x * x + y * y + TINY);
            to_real += factor * x;
            to_imaginary += factor * y;
        }
        target[real] += to_real;
        target[imaginary] += to_imaginary;
    }
}
extern "C" __global__ void gather_distance_rows(const float* queries, const float* table, const u32* indices, const u32* owners,
                                                const float* gradient, float* slopes, u32 n, u32 half) {
    u64 i = THREAD;
    u32 position = i / half, k = i % half;
    if (position >= n) return;
    const float* q = queries + (u64)owners[position] * 2 * half;
    const float* e = table + (u64)indices[position] * 2 * half;
    float x = e[k] - q[k], y = e[half + k] - q[half + k];
    float factor = gradient[position] / sqrtf(x * x + y * y + TINY);
    slopes[(u64)position * 2 * half + k] = factor * x;
    slopes[(u64)position * 2 * half + half + k] = factor * y;
}
// Tiles of 32 queries by 32 rows; 256 threads do four pairs each.
extern "C" __global__ void distance_against(const float* queries, const float* table, float* out, u32 rows, u32 count, u32 half) {
    __shared__ float q[2][16][33], e[2][16][33];
    u32 lane = threadIdx.x & 31, slot = threadIdx.x >> 5;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (u32 base = 0; base < half; base += 16) {
        for (u32 i = threadIdx.x; i < 1024; i += 256) {
            u32 part = i >> 9, item = (i >> 4) & 31, k = i & 15;
            u32 row = blockIdx.y * 32 + item, other = blockIdx.x * 32 + item;
            bool inside = base + k < half;
            q[part][k][item] = inside && row < rows ? queries[((u64)row * 2 + part) * half + base + k] : 0.0f;
            e[part][k][item] = inside && other < count ? table[((u64)other * 2 + part) * half + base + k] : 0.0f;
        }
        __syncthreads();
        u32 steps = min(16u, half - base);
        for (u32 k = 0; k < steps; k++)
            for (u32 j = 0; j < 4; j++) {
                float x = q[0][k][slot * 4 + j] - e[0][k][lane], y = q[1][k][slot * 4 + j] - e[1][k][lane];
                sums[j] += sqrtf(x * x + y * y + TINY);
            }
        __syncthreads();
    }
    for (u32 j = 0; j < 4; j++) {
        u32 row = blockIdx.y * 32 + slot * 4 + j, other = blockIdx.x * 32 + lane;
        if (row < rows && other < count) out[(u64)row * count + other] = sums[j];
    }
}
"#;

/// Keeps the slope finite where a query meets its candidate exactly.
const TINY: f32 = 1e-12;

struct GatherDistance {
    queries: Var,
    table: Var,
    indices: Indices,
    segments: Segments,
    output: Var,
}

impl Tape<'_> {
    /// For every position `p` in segment `s`: the distance of row `s` of `queries` from row `indices[p]` of
    /// `table`. Gives a vector.
    pub fn gather_distance(
        &mut self,
        queries: Var,
        table: Var,
        indices: &Indices,
        segments: &Segments,
    ) -> Result<Var> {
        let (left, right) = (self.input("gather_distance", queries)?, self.at(table));
        let columns = left.columns();
        let fits = columns == right.columns() && columns % 2 == 0;
        expect_shape(fits, "gather_distance", "queries and table", &left.shape(), &right.shape())?;
        let (count, total) = (segments.len(), segments.total());
        expect_shape(
            count == left.rows(),
            "gather_distance",
            "segments and queries",
            &[count],
            &left.shape(),
        )?;
        expect_shape(
            total == indices.len(),
            "gather_distance",
            "segments and indices",
            &[total],
            &[indices.len()],
        )?;
        indices.expect_below(right.rows(), "gather_distance")?;
        let mut out = self.device().allocate::<f32>(total)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (queries, table) = (left.buffer().host(), right.buffer().host());
                let (indices, starts) = (indices.buffer().host(), segments.starts());
                cpu.segments_of(out.host_mut(), starts, columns, |range, out| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let offset = starts[range.start] as usize;
                            for segment in range {
                                let query = &queries[segment * columns..(segment + 1) * columns];
                                for position in starts[segment] as usize..starts[segment + 1] as usize {
                                    let from = indices[position] as usize * columns;
                                    out[position - offset] = distance(query, &table[from..from + columns]);
                                }
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let owners = segments.owners()?;
                let (queries, table, indices, owners) =
                    (left.buffer(), right.buffer(), indices.buffer(), owners.buffer());
                let arguments = arguments![queries, table, indices, owners, &mut out, total, columns / 2];
                cuda.warps("gather_distance", total, arguments)?;
            }
        }
        let output = Tensor::of(out, total, 1);
        let (indices, segments) = (indices.clone(), segments.clone());
        Ok(self.record(output, &[queries, table], |output| GatherDistance {
            queries,
            table,
            indices,
            segments,
            output,
        }))
    }

    /// The distance of every query from every row of `table`, for ranking; no gradient flows.
    pub fn distance_against(&mut self, queries: Var, table: Var) -> Result<Var> {
        let (left, right) = (self.input("distance_against", queries)?, self.at(table));
        let ([rows, columns], count) = (left.shape(), right.rows());
        let fits = columns == right.columns() && columns % 2 == 0;
        expect_shape(fits, "distance_against", "queries and table", &left.shape(), &right.shape())?;
        let mut out = self.device().allocate::<f32>(rows * count)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (queries, table) = (left.buffer().host(), right.buffer().host());
                // Blocks of a query's row, so that one query alone keeps all threads busy.
                let block = 256;
                let mut chunks = Vec::new();
                for (row, out) in out.host_mut().chunks_exact_mut(count.max(1)).enumerate() {
                    chunks.extend(
                        out.chunks_mut(block).enumerate().map(|(index, out)| (row, index * block, out)),
                    );
                }
                cpu.run(chunks, |(row, first, out)| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let query = &queries[row * columns..(row + 1) * columns];
                            for (index, out) in out.iter_mut().enumerate() {
                                let from = (first + index) * columns;
                                *out = distance(query, &table[from..from + columns]);
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let (queries, table) = (left.buffer(), right.buffer());
                let arguments = arguments![queries, table, &mut out, rows, count, columns / 2];
                cuda.blocks("distance_against", (count.div_ceil(32), rows.div_ceil(32)), 256, arguments)?;
            }
        }
        self.constant(Tensor::of(out, rows, count))
    }
}

#[inline(always)]
fn distance(query: &[f32], row: &[f32]) -> f32 {
    const LANES: usize = 16;
    let half = query.len() / 2;
    let (query_real, query_imaginary) = query.split_at(half);
    let (row_real, row_imaginary) = row.split_at(half);
    let mut sums = [0.0f32; LANES];
    let whole = half / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            let k = start + lane;
            let (x, y) = (query_real[k] - row_real[k], query_imaginary[k] - row_imaginary[k]);
            sums[lane] += x.mul_add(x, y.mul_add(y, TINY)).sqrt();
        }
    }
    for k in whole..half {
        let (x, y) = (query_real[k] - row_real[k], query_imaginary[k] - row_imaginary[k]);
        sums[k - whole] += x.mul_add(x, y.mul_add(y, TINY)).sqrt();
    }
    sums.iter().sum()
}

/// `target += slope · ∂ distance / ∂ query`.
#[inline(always)]
fn add_slopes(target: &mut [f32], slope: f32, query: &[f32], row: &[f32]) {
    let half = query.len() / 2;
    let (to_real, to_imaginary) = target.split_at_mut(half);
    let (query_real, query_imaginary) = query.split_at(half);
    let (row_real, row_imaginary) = row.split_at(half);
    for k in 0..half {
        let (x, y) = (query_real[k] - row_real[k], query_imaginary[k] - row_imaginary[k]);
        let factor = slope / x.mul_add(x, y.mul_add(y, TINY)).sqrt();
        to_real[k] += factor * x;
        to_imaginary[k] += factor * y;
    }
}

impl Operation for GatherDistance {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (queries, table) = (flow.value(self.queries), flow.value(self.table));
        let columns = queries.columns();
        if let Some((mut target, _)) = flow.target_rows(self.queries)? {
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let (queries, table) = (queries.buffer().host(), table.buffer().host());
                    let (indices, starts) = (self.indices.buffer().host(), self.segments.starts());
                    let gradient = gradient.host();
                    cpu.zip([(target.buffer.host_mut(), columns)], 16, |first, [target]| {
                        simd::vectorise(
                            #[inline(always)]
                            || {
                                for (index, target) in target.chunks_exact_mut(columns).enumerate() {
                                    let segment = first + index;
                                    let query = &queries[segment * columns..(segment + 1) * columns];
                                    for position in starts[segment] as usize..starts[segment + 1] as usize {
                                        let from = indices[position] as usize * columns;
                                        add_slopes(
                                            target,
                                            gradient[position],
                                            query,
                                            &table[from..from + columns],
                                        );
                                    }
                                }
                            },
                        )
                    });
                }
                Backend::Cuda(cuda) => {
                    let (queries, table) = (queries.buffer(), table.buffer());
                    let (indices, starts) = (self.indices.buffer(), self.segments.buffer());
                    let arguments = arguments![
                        queries,
                        table,
                        indices,
                        starts,
                        &gradient,
                        &mut target.buffer,
                        columns / 2
                    ];
                    cuda.blocks("gather_distance_queries", (self.segments.len(), 1), 128, arguments)?;
                }
            }
            flow.put(self.queries, target.buffer, None);
        }
        let Some((mut target, mut touched)) = flow.target_rows(self.table)? else { return Ok(()) };
        let rows = table.rows();
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let groups = self.indices.groups(rows)?;
                let (starts, order) = (groups.rows_of_order.host(), groups.order.host());
                if let Some(touched) = &mut touched {
                    super::scatter::touch(touched.host_mut(), starts);
                }
                let owners = self.segments.owners()?;
                let (owners, gradient) = (owners.buffer().host(), gradient.host());
                let (queries, table) = (queries.buffer().host(), table.buffer().host());
                let chunks = super::scatter::split(target.buffer.host_mut(), starts, columns);
                cpu.run(chunks, |(first, chunk)| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for (index, target) in chunk.chunks_exact_mut(columns).enumerate() {
                                let row = first + index;
                                let own = &table[row * columns..(row + 1) * columns];
                                for &position in &order[starts[row] as usize..starts[row + 1] as usize] {
                                    let from = owners[position as usize] as usize * columns;
                                    // The distance is the same seen from the other side.
                                    add_slopes(
                                        target,
                                        gradient[position as usize],
                                        own,
                                        &queries[from..from + columns],
                                    );
                                }
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                // Each candidate's own gradient is made first, then summed by row.
                let owners = self.segments.owners()?;
                let n = self.indices.len();
                let mut slopes = flow.device().allocate::<f32>(n * columns)?;
                let (indices, half) = (self.indices.buffer(), columns / 2);
                let (queries, table, owners) = (queries.buffer(), table.buffer(), owners.buffer());
                let arguments = arguments![queries, table, indices, owners, &gradient, &mut slopes, n, half];
                cuda.threads("gather_distance_rows", n * half, arguments)?;
                let (indices, source) = (&self.indices, &slopes);
                let scatter =
                    Scatter { indices, source, owners: None, scale: None, dropout: Dropout::NONE, columns };
                scatter.add_to(&mut target.buffer, touched.as_mut(), rows)?;
            }
        }
        flow.put(self.table, target.buffer, touched);
        Ok(())
    }
}
