// From rows to nodes: a matrix with a value for every (query, node). A node without a row shares one value
// per query, which on the way back gets the sum of all of them.

extern "C" __global__ void scatter_nodes(
        const float* in, const u32* places, u32 nodes, u32 n, u32 rows, float* out) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = places[i];
    out[i] = in[row < rows ? row : rows + i / nodes];
}
extern "C" __global__ void scatter_nodes_back(
        const float* gradient, const u32* queries, const u32* row_nodes, u32 nodes, u32 rows, float* part) {
    u32 row = THREAD;
    if (row < rows) part[row] = gradient[(u64)queries[row] * nodes + row_nodes[row]];
}
// A block for each query adds up what its nodes without a row have.
extern "C" __global__ void scatter_nodes_rest(
        const float* gradient, const u32* places, u32 nodes, u32 rows, float* part) {
    const float* from = gradient + (u64)blockIdx.x * nodes;
    const u32* at = places + (u64)blockIdx.x * nodes;
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < nodes; i += blockDim.x)
        if (at[i] >= rows) sum += from[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[rows + blockIdx.x] = sum;
}
