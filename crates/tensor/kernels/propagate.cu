// Messages along the edges and their four aggregates: mean, maximum, minimum, standard deviation.
//
//                  columns 0..31        32..63       blockIdx.y: the group of 32 columns
//      item 0      warp: 32 lanes       warp         an item is a stretch of the edges of one row
//      item 1      warp                 warp         a row with many edges has several items
//
// Lanes load 32 edges in parallel, one each; then all lanes visit these edges one by one, each for its own
// column, so the state of a neighbour is read as one line of memory. A row of one item writes its result at
// once; rows of several leave parts, which `propagate_big` joins in the order of the items.
//
// On the way back nothing is searched again: the forward pass notes, by one bit per edge and column, which
// edge gave the maximum and which the minimum. Every sum has an order fixed by the edge index, so there are
// no atomic additions of floats and the same batch gives the same bits.

#define ZERO_AT 0xfffffffeu
#define START_AT 0xffffffffu
#define TOGETHER 8
struct Found {
    float sum, squares, most, least;
    u32 most_at, least_at;
};
__device__ __forceinline__ void finish_row(
        const Found& found, u32 degree, u32 width, u32 column, float* out) {
    float share = 1.0f / (float)degree, mean = found.sum * share,
          variance = found.squares * share - mean * mean;
    if (column >= width) return;
    out[column] = mean;
    out[width + column] = found.most;
    out[2 * width + column] = found.least;
    out[3 * width + column] = sqrtf(fmaxf(variance, 1e-6f));
}
// Notes which of the edges `first..end` of a row decided a column. Bits are set by integer operations, in any
// order.
__device__ void mark_edges(const Found& found, u32 first, u32 end, bool live, uint2* masks) {
    __shared__ u32 windows[8][2][32];
    u32(*window)[32] = windows[threadIdx.x >> 5];
    for (u32 at = first; at < end; at += 32) {
        window[0][LANE] = 0;
        window[1][LANE] = 0;
        __syncwarp();
        if (live && found.most_at - at < 32u) atomicOr(&window[0][found.most_at - at], 1u << LANE);
        if (live && found.least_at - at < 32u) atomicOr(&window[1][found.least_at - at], 1u << LANE);
        __syncwarp();
        if (at + LANE < end)
            masks[(u64)(at + LANE) * gridDim.y] = make_uint2(window[0][LANE], window[1][LANE]);
        __syncwarp();
    }
}
__device__ __forceinline__ void mark_start(const Found& found, u32 query, bool live, uint2* starts) {
    u32 most = __ballot_sync(0xffffffffu, live && found.most_at == START_AT);
    u32 least = __ballot_sync(0xffffffffu, live && found.least_at == START_AT);
    if (LANE == 0) starts[query * gridDim.y + blockIdx.y] = make_uint2(most, least);
}
extern "C" __global__ void propagate(const Net* nets, const float* __restrict__ state,
        const float* __restrict__ weights, u32 weight_step, const float* start, u32 before, u32 items,
        u32 width, float* out, uint2* masks, uint2* starts, float* parts, u32* part_places) {
    u32 item = WARP;
    if (item >= items) return;
    const Net& net = *nets;
    u32 row = net.item_rows[item], id = net.item_ids[item], slot = net.item_slots[item];
    u32 node = net.row_nodes[row], query = net.row_queries[row];
    u32 first = net.starts[node], from = net.piece_edges[net.item_pieces[id]],
        end = net.piece_edges[net.item_pieces[id + 1]];
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1);
    bool live = column < width, starts_here = row < net.queries, begins = id == net.item_starts[node],
         idle = false;
    Gap gap = gap_of(net, query, node);
    const u32* __restrict__ places = net.places + (u64)query * net.nodes;
    const u32* __restrict__ links = net.links;
    const u32* __restrict__ others = net.others;
    const float* __restrict__ w = weights + (u64)query * weight_step + c;
    const float* __restrict__ h = state + c;
    Found found = {0.0f, 0.0f, NEGATIVE_INFINITY, -NEGATIVE_INFINITY, ZERO_AT, ZERO_AT};
    if (begins) {
        float x = starts_here ? start[(u64)query * width + c] : 0.0f;
        found.sum = x;
        found.squares = x * x;
        found.most = found.least = x;
        if (starts_here) found.most_at = found.least_at = START_AT;
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
        for (u32 k = 0; k < count; k += TOGETHER) {
            float x[TOGETHER];
            u32 there = 0;
#pragma unroll
            for (u32 u = 0; u < TOGETHER; u++) {
                u32 from_row = __shfl_sync(0xffffffffu, j, k + u),
                    kind = __shfl_sync(0xffffffffu, link, k + u);
                x[u] = 0.0f;
                if (from_row != NONE) {
                    x[u] = h[(u64)from_row * width] * w[kind * width];
                    there |= 1u << u;
                }
            }
#pragma unroll
            for (u32 u = 0; u < TOGETHER; u++) {
                if (!(there >> u & 1)) continue;
                u32 at = e - first + k + u;
                found.sum += x[u];
                found.squares = fmaf(x[u], x[u], found.squares);
                if (x[u] > found.most) {
                    found.most = x[u];
                    found.most_at = at;
                }
                if (x[u] < found.least) {
                    found.least = x[u];
                    found.least_at = at;
                }
            }
        }
    }
    if (starts_here && __any_sync(0xffffffffu, idle)) {
        if (0.0f > found.most) {
            found.most = 0.0f;
            found.most_at = ZERO_AT;
        }
        if (0.0f < found.least) {
            found.least = 0.0f;
            found.least_at = ZERO_AT;
        }
    }
    if (slot == NONE) {
        finish_row(found, net.row_degrees[row], width, column, out + (u64)row * 4 * width);
        if (masks) {
            mark_edges(found, from - first, end - first, live,
                    masks + (u64)net.row_edges[row] * gridDim.y + blockIdx.y);
            if (starts_here) mark_start(found, query, live, starts);
        }
    } else if (live) {
        float* part = parts + (u64)slot * 4 * width + column;
        part[0] = found.sum;
        part[width] = found.squares;
        part[2 * width] = found.most;
        part[3 * width] = found.least;
        part_places[(u64)slot * 2 * width + column] = found.most_at;
        part_places[(u64)slot * 2 * width + width + column] = found.least_at;
    }
}
// A warp for each row of several items.
extern "C" __global__ void propagate_big(const Net* nets, u32 bigs, u32 width, const float* parts,
        u32* part_places, float* out, uint2* starts) {
    u32 big = WARP;
    if (big >= bigs) return;
    const Net& net = *nets;
    u32 row = net.big_rows[big], slot = net.big_slots[big], end = net.big_slots[big + 1];
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1);
    bool live = column < width;
    Found found = {0.0f, 0.0f, NEGATIVE_INFINITY, -NEGATIVE_INFINITY, ZERO_AT, ZERO_AT};
    for (u32 s = slot; s < end; s++) {
        const float* part = parts + (u64)s * 4 * width + c;
        const u32* at = part_places + (u64)s * 2 * width + c;
        found.sum += part[0];
        found.squares += part[width];
        if (part[2 * width] > found.most) {
            found.most = part[2 * width];
            found.most_at = at[0];
        }
        if (part[3 * width] < found.least) {
            found.least = part[3 * width];
            found.least_at = at[width];
        }
    }
    finish_row(found, net.row_degrees[row], width, column, out + (u64)row * 4 * width);
    if (!starts) return;
    if (row < net.queries) mark_start(found, net.row_queries[row], live, starts);
    for (u32 s = slot; live && s < end; s++) {
        part_places[(u64)s * 2 * width + column] = found.most_at;
        part_places[(u64)s * 2 * width + width + column] = found.least_at;
    }
}
// A warp for each item of such rows.
extern "C" __global__ void propagate_marks(
        const Net* nets, u32 slots, u32 width, const u32* part_places, uint2* masks) {
    u32 slot = WARP;
    if (slot >= slots) return;
    const Net& net = *nets;
    u32 item = net.slot_items[slot], row = net.item_rows[item], id = net.item_ids[item],
        first = net.starts[net.row_nodes[row]];
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1);
    Found found;
    found.most_at = part_places[(u64)slot * 2 * width + c];
    found.least_at = part_places[(u64)slot * 2 * width + width + c];
    u32 from = net.piece_edges[net.item_pieces[id]] - first,
        end = net.piece_edges[net.item_pieces[id + 1]] - first;
    mark_edges(found, from, end, column < width, masks + (u64)net.row_edges[row] * gridDim.y + blockIdx.y);
}
// The derivatives of mean and deviation become the factors `a` and `b` of a message's derivative, in their
// places.
extern "C" __global__ void propagate_derivatives(
        const u32* degrees, u32 n, u32 width, const float* out, float* gradient) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = i / width, column = i % width;
    u64 at = (u64)row * 4 * width + column;
    float share = 1.0f / (float)degrees[row], mean = out[at], deviation = out[at + 3 * width];
    float factor = deviation > 1.0005e-3f ? gradient[at + 3 * width] / deviation * share : 0.0f;
    gradient[at + 3 * width] = factor;
    gradient[at] = gradient[at] * share - factor * mean;
}
extern "C" __global__ void propagate_start_back(u32 queries, u32 width, const float* start,
        const float* gradient, const uint2* starts, float* derivative) {
    u32 i = THREAD;
    if (i >= queries * width) return;
    u32 query = i / width, column = i % width;
    const float* row = gradient + (u64)query * 4 * width + column;
    uint2 mask = starts[query * ((width + 31) / 32) + column / 32];
    derivative[i] = row[0] + row[3 * width] * start[i] + (mask.x >> (column & 31) & 1 ? row[width] : 0.0f) +
                    (mask.y >> (column & 31) & 1 ? row[2 * width] : 0.0f);
}
extern "C" __global__ void propagate_back(const Net* nets, const float* __restrict__ state,
        const float* __restrict__ weights, u32 weight_step, const float* __restrict__ gradient,
        const uint2* __restrict__ masks, u32 rows, u32 items, u32 width, float* sums, float* derivative,
        float* parts) {
    u32 item = WARP;
    if (item >= items) return;
    const Net& net = *nets;
    u32 row = net.item_rows[item], id = net.item_ids[item], slot = net.item_slots[item];
    u32 node = net.row_nodes[row], query = net.row_queries[row];
    u32 piece = net.item_pieces[id], from = net.piece_edges[piece],
        end = net.piece_edges[net.item_pieces[id + 1]];
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1);
    bool live = column < width;
    Gap gap = gap_of(net, query, node);
    const u32* __restrict__ places = net.places + (u64)query * net.nodes;
    const u32* __restrict__ links = net.links;
    const u32* __restrict__ others = net.others;
    const u32* __restrict__ backs = net.backs;
    const u32* __restrict__ row_edges = net.row_edges;
    const float* __restrict__ w = weights + (u64)query * weight_step + c;
    float* to = sums + (u64)(net.row_pieces[row] + piece - net.piece_starts[node]) * width + column;
    float h = state[(u64)row * width + c], weight = 0.0f, x = 0.0f, sum = 0.0f, total = 0.0f;
    u32 kind = NONE;
    for (u32 e = from; e < end; e += 32) {
        u32 i = NONE, link = 0;
        uint2 mask = make_uint2(0, 0);
        if (e + LANE < end) {
            u32 other = others[e + LANE];
            link = links[e + LANE];
            i = places[other];
            if (i >= rows || (gap.to != NONE && is_gone(gap, link, other)))
                i = NONE;
            else
                mask = masks[(u64)(row_edges[i] + backs[e + LANE]) * gridDim.y + blockIdx.y];
        }
        u32 count = min(32u, end - e);
        for (u32 k = 0; k < count; k += TOGETHER) {
            float a[TOGETHER], b[TOGETHER];
#pragma unroll
            for (u32 u = 0; u < TOGETHER; u++) {
                u32 at = __shfl_sync(0xffffffffu, i, k + u);
                u32 most = __shfl_sync(0xffffffffu, mask.x, k + u),
                    least = __shfl_sync(0xffffffffu, mask.y, k + u);
                a[u] = b[u] = 0.0f;
                if (at != NONE) {
                    const float* from_row = gradient + (u64)at * 4 * width + c;
                    a[u] = from_row[0];
                    b[u] = from_row[3 * width];
                    if (most >> LANE & 1) a[u] += from_row[width];
                    if (least >> LANE & 1) a[u] += from_row[2 * width];
                }
            }
#pragma unroll
            for (u32 u = 0; u < TOGETHER; u++) {
                u32 next = __shfl_sync(0xffffffffu, link, k + u);
                if (k + u >= count) continue;
                if (next != kind) {
                    if (kind != NONE) {
                        if (live) *to = sum;
                        to += width;
                        total = fmaf(sum, weight, total);
                    }
                    kind = next;
                    weight = w[kind * width];
                    x = h * weight;
                    sum = 0.0f;
                }
                sum += fmaf(b[u], x, a[u]);
            }
        }
    }
    if (kind != NONE) {
        if (live) *to = sum;
        total = fmaf(sum, weight, total);
    }
    if (!live) return;
    if (slot == NONE)
        derivative[(u64)row * width + column] = total;
    else
        parts[(u64)slot * width + column] = total;
}
extern "C" __global__ void propagate_big_back(
        const Net* nets, u32 bigs, u32 width, const float* parts, float* derivative) {
    u32 big = WARP, column = blockIdx.y * 32 + LANE;
    if (big >= bigs || column >= width) return;
    const Net& net = *nets;
    float sum = 0.0f;
    for (u32 s = net.big_slots[big]; s < net.big_slots[big + 1]; s++) sum += parts[(u64)s * width + column];
    derivative[(u64)net.big_rows[big] * width + column] = sum;
}
// The derivative of a weight of one that the message of each edge has; a warp for each item, all columns.
extern "C" __global__ void propagate_trace(const Net* nets, const float* state, const float* weights,
        u32 weight_step, const float* gradient, const uint2* masks, u32 rows, u32 items, u32 width, u32 words,
        float* derivatives) {
    u32 item = WARP;
    if (item >= items) return;
    const Net& net = *nets;
    u32 row = net.item_rows[item], id = net.item_ids[item], node = net.row_nodes[row],
        query = net.row_queries[row], first = net.starts[node];
    u32 from = net.piece_edges[net.item_pieces[id]], end = net.piece_edges[net.item_pieces[id + 1]];
    Gap gap = gap_of(net, query, node);
    for (u32 e = from; e < end; e++) {
        u32 other = net.others[e], link = net.links[e], i = net.places[(u64)query * net.nodes + other];
        float sum = 0.0f;
        if (i < rows && !(gap.to != NONE && is_gone(gap, link, other))) {
            for (u32 c = LANE; c < width; c += 32) {
                float x = state[(u64)row * width + c] *
                          weights[(u64)query * weight_step + (u64)link * width + c];
                const float* derivative = gradient + (u64)i * 4 * width + c;
                uint2 mask = masks[(u64)(net.row_edges[i] + net.backs[e]) * words + c / 32];
                sum += x * (derivative[0] + derivative[3 * width] * x +
                                   (mask.x >> LANE & 1 ? derivative[width] : 0.0f) +
                                   (mask.y >> LANE & 1 ? derivative[2 * width] : 0.0f));
            }
        }
        sum = warp_sum(sum);
        if (LANE == 0) derivatives[net.row_edges[row] + e - first] = sum;
    }
}
// A warp for each query and chunk of pieces of one kind.
extern "C" __global__ void propagate_weights(const Net* nets, const float* __restrict__ state,
        const float* __restrict__ sums, u32 before, u32 width, float* parts) {
    const Net& net = *nets;
    u32 task = WARP;
    if (task >= net.queries * net.chunks) return;
    u32 query = task / net.chunks, chunk = task % net.chunks;
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1), from = net.chunk_starts[chunk],
        end = net.chunk_starts[chunk + 1];
    const u32* __restrict__ places = net.places + (u64)query * net.nodes;
    const u32* __restrict__ nodes = net.kind_nodes;
    const u32* __restrict__ pieces = net.kind_pieces;
    const u32* __restrict__ row_pieces = net.row_pieces;
    float total = 0.0f;
    for (u32 at = from; at < end; at += 32) {
        u32 row = NONE, piece = 0;
        if (at + LANE < end) {
            row = places[nodes[at + LANE]];
            if (row >= before)
                row = NONE;
            else
                piece = row_pieces[row] + pieces[at + LANE];
        }
        u32 there = __ballot_sync(0xffffffffu, row != NONE);
        while (there) {
            float x[4];
#pragma unroll
            for (u32 u = 0; u < 4; u++) {
                u32 lane = there ? __ffs(there) - 1 : 0;
                u32 r = __shfl_sync(0xffffffffu, row, lane), p = __shfl_sync(0xffffffffu, piece, lane);
                x[u] = there ? sums[(u64)p * width + c] * state[(u64)r * width + c] : 0.0f;
                there &= there - 1;
            }
#pragma unroll
            for (u32 u = 0; u < 4; u++) total += x[u];
        }
    }
    if (column < width) parts[(u64)task * width + column] = total;
}
// The chunks of each kind, added up in order for each query.
extern "C" __global__ void propagate_kinds(
        const Net* nets, u32 width, const float* parts, float* derivative) {
    const Net& net = *nets;
    u32 task = WARP, column = blockIdx.y * 32 + LANE;
    if (task >= net.queries * net.kinds || column >= width) return;
    u32 query = task / net.kinds, kind = task % net.kinds;
    const float* from = parts + (u64)query * net.chunks * width + column;
    float sum = 0.0f;
#pragma unroll 4
    for (u32 chunk = net.kind_chunks[kind]; chunk < net.kind_chunks[kind + 1]; chunk++)
        sum += from[(u64)chunk * width];
    derivative[(u64)task * width + column] = sum;
}
