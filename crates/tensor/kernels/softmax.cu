// Log-softmax of rows, one warp per row. The first `closed` columns count as minus infinity.

extern "C" __global__ void row_log_softmax(const float* in, u32 rows, u32 columns, u32 closed, float* out) {
    u32 row = WARP;
    if (row >= rows) return;
    const float* from = in + (u64)row * columns;
    float* to = out + (u64)row * columns;
    float largest = NEGATIVE_INFINITY, sum = 0.0f;
    for (u32 c = closed + LANE; c < columns; c += 32) largest = fmaxf(largest, from[c]);
    largest = warp_max(largest);
    for (u32 c = closed + LANE; c < columns; c += 32) sum += expf(from[c] - largest);
    float total = largest + logf(warp_sum(sum));
    for (u32 c = LANE; c < columns; c += 32) to[c] = c < closed ? NEGATIVE_INFINITY : from[c] - total;
}
extern "C" __global__ void row_softmax_back(const float* out, u32 rows, u32 columns, float* gradient) {
    u32 row = WARP;
    if (row >= rows) return;
    const float* y = out + (u64)row * columns;
    float* derivative = gradient + (u64)row * columns;
    float sum = 0.0f;
    for (u32 c = LANE; c < columns; c += 32)
        if (y[c] > NEGATIVE_INFINITY) sum += derivative[c];
    sum = warp_sum(sum);
    for (u32 c = LANE; c < columns; c += 32)
        derivative[c] = y[c] > NEGATIVE_INFINITY ? derivative[c] - expf(y[c]) * sum : 0.0f;
}
