// What the edges of a node say for it where nothing reaches it: a weighted sum over its kinds of edges, less
// the edge that is removed for this query. One block per query visits all nodes that have no row: first their
// values and the largest, then the level that is subtracted, so that a softmax gives these nodes together
// what it gave before.

// How many edges of a piece are left.
__device__ __forceinline__ u32 edges_left(const Net& net, const Gap& gap, u32 piece) {
    u32 from = net.piece_edges[piece], end = net.piece_edges[piece + 1], count = end - from;
    if (gap.to != NONE)
        for (u32 e = from; e < end; e++) count -= is_gone(gap, net.links[from], net.others[e]);
    return count;
}
// A block for each query. `told` becomes what is added to the nodes that nothing reaches.
extern "C" __global__ void tally(
        const Net* nets, const float* weights, const float* shares, u32 rows, float* told, float* out) {
    const Net& net = *nets;
    u32 query = blockIdx.x;
    u64 first = (u64)query * net.nodes;
    const float* weight = weights + (u64)query * (net.kinds + 2);
    float largest = NEGATIVE_INFINITY, sum = 0.0f, count = 0.0f;
    for (u32 node = threadIdx.x; node < net.nodes; node += blockDim.x) {
        if (net.places[first + node] < rows) continue;
        Gap gap = gap_of(net, query, node);
        float value = 0.0f;
        bool alone = true;
        for (u32 piece = net.piece_starts[node], end = net.piece_starts[node + 1]; piece < end;) {
            u32 kind = net.links[net.piece_edges[piece]], edges = 0;
            for (; piece < end && net.links[net.piece_edges[piece]] == kind; piece++)
                edges += edges_left(net, gap, piece);
            if (edges > 0) {
                value += weight[kind] * logf(1.0f + (float)edges);
                alone = false;
            }
        }
        value += alone ? weight[net.kinds + 1] : weight[net.kinds] * shares[node];
        told[first + node] = value;
        largest = fmaxf(largest, value);
        count += 1.0f;
    }
    largest = block_max(largest);
    count = block_sum(count);
    for (u32 node = threadIdx.x; node < net.nodes; node += blockDim.x)
        if (net.places[first + node] >= rows) sum += expf(told[first + node] - largest);
    float level = largest + logf(block_sum(sum) / count);
    for (u32 node = threadIdx.x; node < net.nodes; node += blockDim.x)
        if (net.places[first + node] >= rows) out[first + node] += told[first + node] -= level;
}
// A block for each query: the derivatives of what is told, from those of the scores.
extern "C" __global__ void tally_slopes(const Net* nets, const float* gradients, u32 rows, float* told) {
    const Net& net = *nets;
    u64 first = (u64)blockIdx.x * net.nodes;
    float sum = 0.0f, count = 0.0f;
    for (u32 node = threadIdx.x; node < net.nodes; node += blockDim.x)
        if (net.places[first + node] >= rows) {
            sum += gradients[first + node];
            count += 1.0f;
        }
    sum = block_sum(sum);
    count = block_sum(count);
    for (u32 node = threadIdx.x; node < net.nodes; node += blockDim.x)
        if (net.places[first + node] >= rows)
            told[first + node] = gradients[first + node] - expf(told[first + node]) / count * sum;
}
// A block for each weight of a query.
extern "C" __global__ void tally_back(
        const Net* nets, const float* gradients, const float* shares, u32 rows, float* derivative) {
    const Net& net = *nets;
    u32 weight = blockIdx.x, query = blockIdx.y;
    const float* gradient = gradients + (u64)query * net.nodes;
    const u32* places = net.places + (u64)query * net.nodes;
    float sum = 0.0f;
    if (weight < net.kinds) {
        u32 from = net.chunk_starts[net.kind_chunks[weight]],
            end = net.chunk_starts[net.kind_chunks[weight + 1]];
        for (u32 at = from + threadIdx.x; at < end; at += blockDim.x) {
            u32 node = net.kind_nodes[at], count = 0;
            // The pieces of a kind are sorted by node: the first one of a node counts for all of them.
            if (places[node] < rows || (at > from && net.kind_nodes[at - 1] == node)) continue;
            Gap gap = gap_of(net, query, node);
            for (u32 next = at; next < end && net.kind_nodes[next] == node; next++)
                count += edges_left(net, gap, net.piece_starts[node] + net.kind_pieces[next]);
            sum += gradient[node] * logf(1.0f + (float)count);
        }
    } else
        for (u32 node = threadIdx.x; node < net.nodes; node += blockDim.x) {
            if (places[node] < rows) continue;
            Gap gap = gap_of(net, query, node);
            bool alone = true;
            for (u32 piece = net.piece_starts[node]; alone && piece < net.piece_starts[node + 1]; piece++)
                alone = edges_left(net, gap, piece) == 0;
            if (alone == (weight > net.kinds)) sum += gradient[node] * (alone ? 1.0f : shares[node]);
        }
    sum = block_sum(sum);
    if (threadIdx.x == 0) derivative[(u64)query * (net.kinds + 2) + weight] = sum;
}
