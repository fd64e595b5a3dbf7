// Two values of the same rows: sums, products, dot products of rows (one warp per row), and copies of
// columns. Nothing is shared between threads except the sum of a row, which is always taken in the same
// order.

extern "C" __global__ void pairwise(const float* left, const float* right, float* out, u32 n, u32 multiply) {
    u32 i = THREAD;
    if (i < n) out[i] = multiply ? left[i] * right[i] : left[i] + right[i];
}
extern "C" __global__ void row_dot(const float* left, const float* right, float* out, u32 rows, u32 columns) {
    u32 row = WARP;
    if (row >= rows) return;
    float sum = 0.0f;
    for (u32 k = LANE; k < columns; k += 32)
        sum += left[(u64)row * columns + k] * right[(u64)row * columns + k];
    sum = warp_sum(sum);
    if (LANE == 0) out[row] = sum;
}
extern "C" __global__ void scale_rows(const float* in, const float* factors, float* out, u32 n, u32 columns) {
    u32 i = THREAD;
    if (i < n) out[i] = in[i] * factors[i / columns];
}
// Between a matrix of `width` columns and the columns from `start` on of a wider one.
extern "C" __global__ void copy_columns(
        const float* in, float* out, u32 n, u32 width, u32 wide, u32 start, u32 take) {
    u32 i = THREAD;
    if (i >= n) return;
    u64 at = (u64)(i / width) * wide + start + i % width;
    if (take)
        out[i] = in[at];
    else
        out[at] = in[i];
}
