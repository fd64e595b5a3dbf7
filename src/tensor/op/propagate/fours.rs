//! The aggregation on CUDA when no gradient is wanted: a warp takes four edges at a time, one lane for every four columns.
//!
//! Nobody asks later which edge attained a maximum, so a message costs a multiplication and four accumulations, and one
//! load fetches the states of four edges. Sums are in a fixed order, but in another than in training.

use super::Sizes;
use super::cuda::grid;
use crate::tensor::cuda::Cuda;
use crate::tensor::cuda::launch::{BLOCK, arguments};
use crate::tensor::error::Result;
use crate::tensor::memory::Buffer;
use crate::tensor::reach::Reach;

/// Columns of a lane: the numbers of one load.
const COLUMNS: usize = 4;

// Lanes 0 to 7 visit the first of four edges, lanes 8 to 15 the second, and so on; at the end the four are combined and
// each writes one of the four aggregates.
pub(crate) const KERNELS: &str = r#"
struct Four { float4 sum, squares, most, least; };
#define EACH(does) { does(x) does(y) does(z) does(w) }
__device__ __forceinline__ void take_four(Four& found, float4 h, float4 w) {
    float4 x = make_float4(h.x * w.x, h.y * w.y, h.z * w.z, h.w * w.w);
#define TAKE(c) found.sum.c += x.c; found.squares.c = fmaf(x.c, x.c, found.squares.c); \
    found.most.c = fmaxf(found.most.c, x.c); found.least.c = fminf(found.least.c, x.c);
    EACH(TAKE)
#undef TAKE
}
// Adds what the lanes `offset` apart have found.
__device__ __forceinline__ void join_four(Four& found, u32 offset) {
#define JOIN(c) found.sum.c += __shfl_xor_sync(0xffffffffu, found.sum.c, offset); \
    found.squares.c += __shfl_xor_sync(0xffffffffu, found.squares.c, offset); \
    found.most.c = fmaxf(found.most.c, __shfl_xor_sync(0xffffffffu, found.most.c, offset)); \
    found.least.c = fminf(found.least.c, __shfl_xor_sync(0xffffffffu, found.least.c, offset));
    EACH(JOIN)
#undef JOIN
}
__device__ __forceinline__ float4 aggregate_of(const Four& found, u32 which, u32 degree) {
    if (which == 1) return found.most;
    if (which == 2) return found.least;
    float share = 1.0f / (float)degree;
    float4 mean = make_float4(found.sum.x * share, found.sum.y * share, found.sum.z * share, found.sum.w * share), deviation;
#define DEVIATE(c) deviation.c = sqrtf(fmaxf(found.squares.c * share - mean.c * mean.c, 1e-6f));
    EACH(DEVIATE)
#undef DEVIATE
    return which == 0 ? mean : deviation;
}
extern "C" __global__ void propagate_fours(const Net* nets, const float* __restrict__ state, const float* __restrict__ weights, u32 weight_step,
                                           const float* start, u32 before, u32 items, u32 width, float* out, float* parts) {
    u32 item = WARP;
    if (item >= items) return;
    const Net& net = *nets;
    u32 row = net.item_rows[item], id = net.item_ids[item], slot = net.item_slots[item];
    u32 node = net.row_nodes[row], query = net.row_queries[row];
    u32 from = net.piece_edges[net.item_pieces[id]], end = net.piece_edges[net.item_pieces[id + 1]];
    u32 fourth = LANE >> 3, column = blockIdx.y * 32 + (LANE & 7) * 4, c = min(column, width - 4);
    bool starts_here = row < net.queries, idle = false;
    Gap gap = gap_of(net, query, node);
    const u32* __restrict__ places = net.places + (u64)query * net.nodes;
    const u32* __restrict__ links = net.links;
    const u32* __restrict__ others = net.others;
    const float* __restrict__ w = weights + (u64)query * weight_step + c;
    const float* __restrict__ h = state + c;
    float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float low = NEGATIVE_INFINITY;
    Four found = { zero, zero, make_float4(low, low, low, low), make_float4(-low, -low, -low, -low) };
    if (fourth == 0 && id == net.item_starts[node]) {
        float4 one = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        take_four(found, starts_here ? *(const float4*)(start + (u64)query * width + c) : zero, one);
    }
    for (u32 e = from; e < end; e += 32) {
        u32 j = NONE, link = 0;
        if (e + LANE < end) {
            u32 other = others[e + LANE];
            link = links[e + LANE] ^ 1u;
            j = places[other];
            bool gone = gap.to != NONE && is_gone(gap, link ^ 1u, other);
            idle |= j >= before && !gone;
            if (gone || j >= before) j = NONE;
        }
        u32 count = min(32u, end - e);
        for (u32 k = 0; k < count; k += 16) {
            float4 states[4], factors[4];
            u32 there = 0;
            #pragma unroll
            for (u32 u = 0; u < 4; u++) {
                u32 edge = k + 4 * u + fourth;
                u32 from_row = __shfl_sync(0xffffffffu, j, edge), kind = __shfl_sync(0xffffffffu, link, edge);
                if (from_row != NONE) {
                    states[u] = *(const float4*)(h + (u64)from_row * width);
                    factors[u] = *(const float4*)(w + kind * width);
                    there |= 1u << u;
                }
            }
            #pragma unroll
            for (u32 u = 0; u < 4; u++) if (there >> u & 1) take_four(found, states[u], factors[u]);
        }
    }
    join_four(found, 8);
    join_four(found, 16);
    if (starts_here && __any_sync(0xffffffffu, idle)) {
#define MEET_ZERO(c) found.most.c = fmaxf(found.most.c, 0.0f); found.least.c = fminf(found.least.c, 0.0f);
        EACH(MEET_ZERO)
#undef MEET_ZERO
    }
    if (column >= width) return;
    if (slot == NONE) {
        *(float4*)(out + ((u64)row * 4 + fourth) * width + column) = aggregate_of(found, fourth, net.row_degrees[row]);
    } else {
        // In the order in which `propagate_big` reads them.
        float4 part = fourth == 0 ? found.sum : fourth == 1 ? found.squares : fourth == 2 ? found.most : found.least;
        *(float4*)(parts + ((u64)slot * 4 + fourth) * width + column) = part;
    }
}
"#;

/// Whether rows of this width can be read by fours.
pub(super) fn fit(width: usize) -> bool {
    width.is_multiple_of(COLUMNS)
}

pub(super) fn forward(
    cuda: &Cuda,
    reach: &Reach,
    sizes: Sizes,
    [state, weights, start]: [&Buffer<f32>; 3],
    out: &mut Buffer<f32>,
    parts: &mut Buffer<f32>,
) -> Result<()> {
    let Sizes { before, after, width, weight_step, .. } = sizes;
    let net = reach.descriptor.as_ref();
    let arguments =
        arguments![net, state, weights, weight_step, start, before.rows, after.items, width, out, parts];
    cuda.blocks("propagate_fours", grid(after.items, sizes), BLOCK, arguments)
}
