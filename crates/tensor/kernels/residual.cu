// Layer normalisation, scale, ReLU and residual in one pass: one warp per row, which holds the row in
// registers between its mean, its variance and its result.

// A warp for each row.
extern "C" __global__ void residual_norm(const float* in, const float* state, const float* scale,
        const float* shift, u32 rows, u32 width, float* out) {
    u32 row = WARP;
    if (row >= rows) return;
    float x[8], mean = 0.0f, square = 0.0f;
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        x[u] = c < width ? in[(u64)row * width + c] : 0.0f;
        mean += x[u];
    }
    mean = warp_sum(mean) / width;
#pragma unroll
    for (u32 u = 0; u < 8; u++)
        if (u * 32 + LANE < width) square += (x[u] - mean) * (x[u] - mean);
    float root = rsqrtf(warp_sum(square) / width + 1e-5f);
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        if (c >= width) continue;
        u64 at = (u64)row * width + c;
        out[at] = state[at] + fmaxf((x[u] - mean) * root * scale[c] + shift[c], 0.0f);
    }
}
// Warps visit rows in turn; each block leaves the sums of its rows for scale and shift.
extern "C" __global__ void residual_norm_back(const float* in, const float* gradient, const float* scale,
        const float* shift, u32 rows, u32 width, float* derivative, float* scales, float* shifts) {
    __shared__ float all[8][2][256];
    u32 warp = threadIdx.x >> 5;
    float of_scale[8], of_shift[8];
#pragma unroll
    for (u32 u = 0; u < 8; u++) of_scale[u] = of_shift[u] = 0.0f;
    for (u32 row = WARP; row < rows; row += gridDim.x * 8) {
        float x[8], g[8], mean = 0.0f, square = 0.0f;
#pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            x[u] = c < width ? in[(u64)row * width + c] : 0.0f;
            mean += x[u];
        }
        mean = warp_sum(mean) / width;
#pragma unroll
        for (u32 u = 0; u < 8; u++)
            if (u * 32 + LANE < width) square += (x[u] - mean) * (x[u] - mean);
        float root = rsqrtf(warp_sum(square) / width + 1e-5f), first = 0.0f, second = 0.0f;
#pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            g[u] = 0.0f;
            if (c >= width) continue;
            x[u] = (x[u] - mean) * root;
            float d = x[u] * scale[c] + shift[c] > 0.0f ? gradient[(u64)row * width + c] : 0.0f;
            of_scale[u] += d * x[u];
            of_shift[u] += d;
            g[u] = d * scale[c];
            first += g[u];
            second += g[u] * x[u];
        }
        first = warp_sum(first) / width;
        second = warp_sum(second) / width;
#pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            if (c < width) derivative[(u64)row * width + c] = root * (g[u] - first - x[u] * second);
        }
    }
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        all[warp][0][c] = of_scale[u];
        all[warp][1][c] = of_shift[u];
    }
    __syncthreads();
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float total[2] = {0.0f, 0.0f};
        for (u32 w = 0; w < 8; w++)
            for (u32 k = 0; k < 2; k++) total[k] += all[w][k][c];
        scales[blockIdx.x * width + c] = total[0];
        shifts[blockIdx.x * width + c] = total[1];
    }
}
