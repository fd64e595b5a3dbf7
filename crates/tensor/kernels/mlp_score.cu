// A score for every row from its hidden layer and its query's: one warp per row. `runs` are stretches of rows
// of one query; the last of them are the queries' own rows, after all others. Sums over the rows of a query
// go run by run, and a run never crosses from one query into the next.

extern "C" __global__ void mlp_score(const float* hidden, const float* asked, const float* weights,
        const u32* queries, u32 rows, u32 count, u32 width, float* out) {
    u32 row = WARP;
    if (row >= rows + count) return;
    const float* q = asked + (u64)(row < rows ? queries[row] : row - rows) * width;
    float sum = 0.0f;
    for (u32 c = LANE; c < width; c += 32)
        sum += weights[c] * fmaxf((row < rows ? hidden[(u64)row * width + c] : 0.0f) + q[c], 0.0f);
    sum = warp_sum(sum);
    if (LANE == 0) out[row] = sum;
}
extern "C" __global__ void mlp_score_back(const float* hidden, const float* asked, const float* weights,
        const u32* queries, const u32* runs, u32 rows, u32 width, const float* gradient, float* derivative,
        float* of_asked, float* of_weights) {
    __shared__ float all[8][2][256];
    u32 warp = threadIdx.x >> 5, first = runs[blockIdx.x], end = runs[blockIdx.x + 1];
    const float* q = asked + (u64)(first < rows ? queries[first] : first - rows) * width;
    float to_asked[8], to_weights[8];
#pragma unroll
    for (u32 u = 0; u < 8; u++) to_asked[u] = to_weights[u] = 0.0f;
    for (u32 row = first + warp; row < end; row += 8) {
        float g = gradient[row];
#pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            if (c >= width) continue;
            float x = (row < rows ? hidden[(u64)row * width + c] : 0.0f) + q[c];
            float d = x > 0.0f ? g * weights[c] : 0.0f;
            to_asked[u] += d;
            to_weights[u] += g * fmaxf(x, 0.0f);
            if (row < rows) derivative[(u64)row * width + c] = d;
        }
    }
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        all[warp][0][u * 32 + LANE] = to_asked[u];
        all[warp][1][u * 32 + LANE] = to_weights[u];
    }
    __syncthreads();
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float a = 0.0f, b = 0.0f;
        for (u32 w = 0; w < 8; w++) {
            a += all[w][0][c];
            b += all[w][1][c];
        }
        of_asked[(u64)blockIdx.x * width + c] = a;
        of_weights[(u64)blockIdx.x * width + c] = b;
    }
}
extern "C" __global__ void mlp_score_asked(const float* parts, const u32* queries, const u32* runs,
        u32 run_count, u32 rows, u32 count, u32 width, float* out) {
    u32 i = THREAD;
    if (i >= count * width) return;
    u32 query = i / width, c = i % width;
    float sum = 0.0f;
    for (u32 run = 0; run < run_count; run++) {
        u32 first = runs[run], owner = first < rows ? queries[first] : first - rows;
        if (owner == query) sum += parts[(u64)run * width + c];
    }
    out[i] = sum;
}
