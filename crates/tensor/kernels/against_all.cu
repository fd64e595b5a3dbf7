// Losses of queries against every row of a table. The matrix product has left the scores in place; these
// kernels turn each score into its loss and, in the same buffer, into its derivative, from which both
// products back are made. Labels are ragged lists: first every score is treated as unlabelled, then those of
// the labels are corrected.

#define BINARY_COLUMNS 2048
extern "C" __global__ void binary_labels(const float* scores, const u32* labels, const u32* owners, u32 total,
        u32 rows, const float* bias, float weight, float* parts) {
    u32 i = THREAD;
    if (i < total)
        parts[i] = -weight * (scores[(u64)owners[i] * rows + labels[i]] + (bias ? bias[labels[i]] : 0.0f));
}
extern "C" __global__ void binary_derivatives(
        float* scores, const float* bias, u32 rows, u32 offset, float label, float scale, float* parts) {
    float* from = scores + (u64)blockIdx.y * rows;
    u32 end = min((blockIdx.x + 1) * BINARY_COLUMNS, rows);
    float sum = 0.0f;
    for (u32 c = blockIdx.x * BINARY_COLUMNS + threadIdx.x; c < end; c += 256) {
        float x = from[c] + (bias ? bias[c] : 0.0f);
        float decay = __expf(-fabsf(x)), share = 1.0f / (1.0f + decay);
        sum += fmaxf(x, 0.0f) + log1pf(decay) - x * label;
        from[c] = scale * ((x > 0.0f ? share : decay * share) - label);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[offset + blockIdx.y * gridDim.x + blockIdx.x] = sum;
}
extern "C" __global__ void binary_label_derivatives(
        float* scores, const u32* labels, const u32* owners, u32 total, u32 rows, float derivative) {
    u32 i = THREAD;
    if (i < total) scores[(u64)owners[i] * rows + labels[i]] -= derivative;
}
// A block for each query.
extern "C" __global__ void softmax_derivatives(float* scores, const float* bias, const u32* labels,
        const u32* starts, u32 rows, float scale, float* parts) {
    float* row = scores + (u64)blockIdx.x * rows;
    u32 start = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    float largest = NEGATIVE_INFINITY, sum = 0.0f, aim = 0.0f;
    for (u32 c = threadIdx.x; c < rows; c += blockDim.x) {
        float x = row[c] + (bias ? bias[c] : 0.0f);
        row[c] = x;
        largest = fmaxf(largest, x);
    }
    largest = block_max(largest);
    for (u32 c = threadIdx.x; c < rows; c += blockDim.x) sum += expf(row[c] - largest);
    float total = largest + logf(block_sum(sum));
    for (u32 i = start + threadIdx.x; i < end; i += blockDim.x) aim += row[labels[i]];
    float share = end > start ? 1.0f / (end - start) : 0.0f;
    aim = block_sum(aim) * share;
    float weight = end > start ? scale : 0.0f;
    for (u32 c = threadIdx.x; c < rows; c += blockDim.x) row[c] = weight * expf(row[c] - total);
    __syncthreads();
    for (u32 i = start + threadIdx.x; i < end; i += blockDim.x) row[labels[i]] -= weight * share;
    if (threadIdx.x == 0) parts[blockIdx.x] = end > start ? total - aim : 0.0f;
}
extern "C" __global__ void scale_unless_one(float* values, const float* factor, u32 n) {
    float f = factor[0];
    if (f == 1.0f) return;
    for (u32 i = THREAD; i < n; i += gridDim.x * blockDim.x) values[i] *= f;
}
