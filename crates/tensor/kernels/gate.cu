// How much of each message passes: one warp per row, one lane per piece (the edges of a row along one kind of
// link, whose messages are all equal and share a gate). On the way back, sums by kind and by query go over
// chunks and runs of fixed size, never through atomic additions.

extern "C" __global__ void gate(const Net* nets, const float* of_state, const float* of_kind,
        const float* of_query, const float* weights, u32 rows, u32 width, float* out) {
    u32 row = WARP;
    if (row >= rows) return;
    const Net& net = *nets;
    u32 node = net.row_nodes[row], query = net.row_queries[row], first = net.piece_starts[node],
        end = net.piece_starts[node + 1];
    for (u32 piece = first + LANE; piece < end; piece += 32) {
        u32 kind = net.links[net.piece_edges[piece]];
        float sum = 0.0f;
        for (u32 c = 0; c < width; c++)
            sum += weights[c] * fmaxf(of_state[(u64)row * width + c] + of_kind[kind * width + c] +
                                                of_query[query * width + c],
                                        0.0f);
        out[net.row_pieces[row] + piece - first] = sigmoid_of(sum);
    }
}
// Leaves the derivatives before the ReLU for every piece, and their sums, with those of the weights, for
// every row.
extern "C" __global__ void gate_back(const Net* nets, const float* of_state, const float* of_kind,
        const float* of_query, const float* weights, const float* out, const float* gradient, u32 rows,
        u32 width, float* pieces, float* of_rows, float* of_weights) {
    u32 row = WARP;
    if (row >= rows) return;
    const Net& net = *nets;
    u32 node = net.row_nodes[row], query = net.row_queries[row], first = net.piece_starts[node],
        end = net.piece_starts[node + 1];
    float to_row[8], to_weights[8];
#pragma unroll
    for (u32 c = 0; c < 8; c++) to_row[c] = to_weights[c] = 0.0f;
    for (u32 piece = first + LANE; piece < end; piece += 32) {
        u32 kind = net.links[net.piece_edges[piece]], at = net.row_pieces[row] + piece - first;
        float y = out[at], derivative = gradient[at] * y * (1.0f - y);
#pragma unroll
        for (u32 c = 0; c < 8; c++) {
            if (c >= width) continue;
            float x =
                    of_state[(u64)row * width + c] + of_kind[kind * width + c] + of_query[query * width + c];
            float d = x > 0.0f ? derivative * weights[c] : 0.0f;
            pieces[(u64)at * width + c] = d;
            to_row[c] += d;
            to_weights[c] += derivative * fmaxf(x, 0.0f);
        }
    }
#pragma unroll
    for (u32 c = 0; c < 8; c++) {
        if (c >= width) continue;
        float a = warp_sum(to_row[c]), b = warp_sum(to_weights[c]);
        if (LANE == 0) {
            of_rows[(u64)row * width + c] = a;
            of_weights[(u64)row * width + c] = b;
        }
    }
}
// A thread for each query, chunk of pieces of one kind and column.
extern "C" __global__ void gate_chunks(
        const Net* nets, const float* pieces, u32 before, u32 width, float* parts) {
    const Net& net = *nets;
    u32 i = THREAD;
    if (i >= net.queries * net.chunks * width) return;
    u32 column = i % width, task = i / width, query = task / net.chunks, chunk = task % net.chunks;
    float sum = 0.0f;
    for (u32 at = net.chunk_starts[chunk]; at < net.chunk_starts[chunk + 1]; at++) {
        u32 row = net.places[(u64)query * net.nodes + net.kind_nodes[at]];
        if (row < before) sum += pieces[(u64)(net.row_pieces[row] + net.kind_pieces[at]) * width + column];
    }
    parts[i] = sum;
}
// A thread for each run of rows and column.
extern "C" __global__ void gate_runs(
        const u32* runs, u32 run_count, const float* of_rows, u32 rows, u32 width, float* parts) {
    u32 i = THREAD;
    if (i >= run_count * width) return;
    float sum = 0.0f;
    for (u32 row = runs[i / width]; row < min(runs[i / width + 1], rows); row++)
        sum += of_rows[(u64)row * width + i % width];
    parts[i] = sum;
}
