// What follows the products of a linear layer: bias, ReLU and dropout in one pass over the output. The
// gradient of the bias is a sum over rows, in blocks of fixed size that are added up in order.

extern "C" __global__ void linear_finish(
        float* out, u32 n, u32 columns, const float* bias, u32 relu, Dropout dropout) {
    u32 i = THREAD;
    if (i >= n) return;
    float x = out[i];
    if (bias) x += bias[i % columns];
    if (relu) x = fmaxf(x, 0.0f);
    out[i] = x * kept(dropout, i);
}
extern "C" __global__ void linear_before_finish(
        float* gradient, const float* out, u32 n, u32 relu, Dropout dropout) {
    u32 i = THREAD;
    if (i >= n) return;
    gradient[i] *= relu ? (out[i] > 0.0f ? dropout.scale : 0.0f) : kept(dropout, i);
}
// A block sums 32 columns of 2048 rows, 32 rows at a time.
extern "C" __global__ void column_sums(
        const float* values, u32 rows, u32 columns, float* parts, u32 accumulate) {
    __shared__ float sums[32][32];
    u32 lane = threadIdx.x & 31, slot = threadIdx.x >> 5, column = blockIdx.x * 32 + lane;
    u32 end = min((blockIdx.y + 1) * 2048, rows);
    float sum = 0.0f;
    if (column < columns) {
#pragma unroll 8
        for (u32 row = blockIdx.y * 2048 + slot; row < end; row += 32)
            sum += values[(u64)row * columns + column];
    }
    sums[slot][lane] = sum;
    __syncthreads();
    if (slot == 0 && column < columns) {
        for (u32 other = 1; other < 32; other++) sum += sums[other][lane];
        float* to = parts + (u64)blockIdx.y * columns + column;
        *to = sum + (accumulate ? *to : 0.0f);
    }
}
