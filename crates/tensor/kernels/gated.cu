// The gated sum of messages, one warp per item of the edge index and group of 32 columns, one lane per
// column; an item is a stretch of one row's edges. Lanes load edges in parallel, then all of them visit the
// edges one by one. Rows of several items add up their parts in a second pass.

extern "C" __global__ void gated(const Net* nets, const float* __restrict__ state,
        const float* __restrict__ weights, u32 weight_step, const float* start,
        const float* __restrict__ gates, u32 before, u32 items, u32 width, float* out, float* parts) {
    u32 item = WARP;
    if (item >= items) return;
    const Net& net = *nets;
    u32 row = net.item_rows[item], id = net.item_ids[item], slot = net.item_slots[item];
    u32 node = net.row_nodes[row], query = net.row_queries[row];
    u32 from = net.piece_edges[net.item_pieces[id]], end = net.piece_edges[net.item_pieces[id + 1]];
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1);
    Gap gap = gap_of(net, query, node);
    const u32* __restrict__ places = net.places + (u64)query * net.nodes;
    const float* __restrict__ w = weights + (u64)query * weight_step + c;
    const float* __restrict__ h = state + c;
    float sum = id == net.item_starts[node] && row < net.queries ? start[(u64)query * width + c] : 0.0f;
    for (u32 e = from; e < end; e += 32) {
        u32 j = NONE, link = 0;
        float gate = 0.0f;
        if (e + LANE < end) {
            u32 other = net.others[e + LANE];
            link = net.links[e + LANE] ^ 1u;
            j = places[other];
            if (j >= before || (gap.to != NONE && is_gone(gap, link ^ 1u, other)))
                j = NONE;
            else
                gate = gates[net.row_pieces[j] + net.edge_pieces[net.starts[other] + net.backs[e + LANE]]];
        }
        u32 count = min(32u, end - e);
        for (u32 k = 0; k < count; k += TOGETHER) {
            // Where nothing comes the gate is zero, and the first row is read in vain.
            float x[TOGETHER], y[TOGETHER];
#pragma unroll
            for (u32 u = 0; u < TOGETHER; u++) {
                u32 from_row = __shfl_sync(0xffffffffu, j, k + u),
                    kind = __shfl_sync(0xffffffffu, link, k + u);
                x[u] = h[(u64)(from_row == NONE ? 0 : from_row) * width];
                y[u] = w[kind * width];
            }
#pragma unroll
            for (u32 u = 0; u < TOGETHER; u++)
                sum = fmaf(__shfl_sync(0xffffffffu, gate, k + u) * x[u], y[u], sum);
        }
    }
    if (column >= width) return;
    if (slot == NONE)
        out[(u64)row * width + column] = sum;
    else
        parts[(u64)slot * width + column] = sum;
}
extern "C" __global__ void gated_back(const Net* nets, const float* __restrict__ state,
        const float* __restrict__ weights, u32 weight_step, const float* __restrict__ gates,
        const float* __restrict__ gradient, u32 rows, u32 items, u32 width, float* sums, float* derivative,
        float* parts, float* of_gates) {
    u32 item = WARP;
    if (item >= items) return;
    const Net& net = *nets;
    u32 row = net.item_rows[item], id = net.item_ids[item], slot = net.item_slots[item];
    u32 node = net.row_nodes[row], query = net.row_queries[row], first = net.piece_starts[node];
    Gap gap = gap_of(net, query, node);
    const u32* __restrict__ places = net.places + (u64)query * net.nodes;
    u32 column = blockIdx.y * 32 + LANE, c = min(column, width - 1);
    bool live = column < width;
    float h = state[(u64)row * width + c], total = 0.0f;
    for (u32 piece = net.item_pieces[id]; piece < net.item_pieces[id + 1]; piece++) {
        u32 at = net.row_pieces[row] + piece - first, kind = net.links[net.piece_edges[piece]];
        float weight = weights[(u64)query * weight_step + kind * width + c], sum = 0.0f;
        for (u32 e = net.piece_edges[piece]; e < net.piece_edges[piece + 1]; e++) {
            u32 other = net.others[e], i = places[other];
            if (i < rows && !(gap.to != NONE && is_gone(gap, kind, other)))
                sum += gradient[(u64)i * width + c];
        }
        float of_gate = warp_sum(live ? sum * h * weight : 0.0f);
        if (LANE == 0) of_gates[(u64)at * gridDim.y + blockIdx.y] = of_gate;
        sum *= gates[at];
        if (live) sums[(u64)at * width + column] = sum;
        total = fmaf(sum, weight, total);
    }
    if (!live) return;
    if (slot == NONE)
        derivative[(u64)row * width + column] = total;
    else
        parts[(u64)slot * width + column] = total;
}
// The parts of the groups of columns, added up in order.
extern "C" __global__ void gated_gates(const float* parts, u32 n, u32 words, float* out) {
    u32 i = THREAD;
    if (i >= n) return;
    float sum = 0.0f;
    for (u32 word = 0; word < words; word++) sum += parts[(u64)i * words + word];
    out[i] = sum;
}
