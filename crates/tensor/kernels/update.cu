// The end of a layer: the three scaled parts of the aggregates and the old state are added, normalised,
// passed through ReLU and dropout, and added to the old state. One warp per row; nothing is concatenated or
// kept between.

__device__ __forceinline__ float factor_of(u32 degree, float mean_log) {
    return fmaxf(logf((float)degree) / mean_log, 1e-2f);
}
// A warp for each row. `sum` has the product of the old state and becomes the sum before normalisation.
extern "C" __global__ void update(const float* state, const float* mixed, const u32* degrees, float mean_log,
        u32 before, u32 rows, u32 width, u32 parts, const float* bias, const float* scale, const float* shift,
        Dropout dropout, float* sum, float* out) {
    u32 row = WARP;
    if (row >= rows) return;
    float s = factor_of(degrees[row], mean_log), z[8], mean = 0.0f, square = 0.0f;
    const float* a = mixed + (u64)row * parts * width;
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        z[u] = 0.0f;
        if (c >= width) continue;
        z[u] = (row < before ? sum[(u64)row * width + c] : 0.0f) + bias[c] + a[c];
        if (parts == 3) z[u] += s * a[width + c] + a[2 * width + c] / s;
        sum[(u64)row * width + c] = z[u];
        mean += z[u];
    }
    mean = warp_sum(mean) / width;
#pragma unroll
    for (u32 u = 0; u < 8; u++)
        if (u * 32 + LANE < width) square += (z[u] - mean) * (z[u] - mean);
    float root = rsqrtf(warp_sum(square) / width + 1e-5f);
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        if (c >= width) continue;
        u32 at = row * width + c;
        float y = fmaxf((z[u] - mean) * root * scale[c] + shift[c], 0.0f) * kept(dropout, at);
        out[at] = y + (row < before ? state[at] : 0.0f);
    }
}
// Warps visit rows in turn; each block leaves the sums of its rows for scale, shift and bias.
extern "C" __global__ void update_back(const float* sum, const float* gradient, const u32* degrees,
        float mean_log, u32 rows, u32 width, u32 parts, const float* scale, const float* shift,
        Dropout dropout, float* derivative, float* mixed_derivative, float* scales, float* shifts,
        float* biases) {
    __shared__ float all[8][3][256];
    u32 warp = threadIdx.x >> 5;
    float of_scale[8], of_shift[8], of_bias[8];
#pragma unroll
    for (u32 u = 0; u < 8; u++) of_scale[u] = of_shift[u] = of_bias[u] = 0.0f;
    for (u32 row = WARP; row < rows; row += gridDim.x * 8) {
        float x[8], g[8], mean = 0.0f, square = 0.0f;
#pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            x[u] = c < width ? sum[(u64)row * width + c] : 0.0f;
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
            u32 at = row * width + c;
            float d = x[u] * scale[c] + shift[c] > 0.0f ? gradient[at] * kept(dropout, at) : 0.0f;
            of_scale[u] += d * x[u];
            of_shift[u] += d;
            g[u] = d * scale[c];
            first += g[u];
            second += g[u] * x[u];
        }
        first = warp_sum(first) / width;
        second = warp_sum(second) / width;
        float s = factor_of(degrees[row], mean_log);
        float* to = mixed_derivative + (u64)row * parts * width;
#pragma unroll
        for (u32 u = 0; u < 8; u++) {
            u32 c = u * 32 + LANE;
            if (c >= width) continue;
            float z = root * (g[u] - first - x[u] * second);
            of_bias[u] += z;
            derivative[(u64)row * width + c] = z;
            to[c] = z;
            if (parts == 3) {
                to[width + c] = s * z;
                to[2 * width + c] = z / s;
            }
        }
    }
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        u32 c = u * 32 + LANE;
        all[warp][0][c] = of_scale[u];
        all[warp][1][c] = of_shift[u];
        all[warp][2][c] = of_bias[u];
    }
    __syncthreads();
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float total[3] = {0.0f, 0.0f, 0.0f};
        for (u32 w = 0; w < 8; w++)
            for (u32 k = 0; k < 3; k++) total[k] += all[w][k][c];
        scales[blockIdx.x * width + c] = total[0];
        shifts[blockIdx.x * width + c] = total[1];
        biases[blockIdx.x * width + c] = total[2];
    }
}
