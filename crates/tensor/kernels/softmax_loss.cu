// The softmax loss of one target column per row, one block per row. The gradient replaces the scores in the
// same pass, while they are in cache.

extern "C" __global__ void close_elements(const u32* closed, u32 n, float* values) {
    u32 i = THREAD;
    if (i < n) values[closed[i]] = NEGATIVE_INFINITY;
}
// A block for each row; scores become derivatives.
extern "C" __global__ void row_loss(
        float* scores, const u32* targets, u32 columns, float scale, float* losses) {
    float* row = scores + (u64)blockIdx.x * columns;
    u32 target = targets[blockIdx.x];
    float largest = NEGATIVE_INFINITY, sum = 0.0f, aim = row[target];
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) largest = fmaxf(largest, row[c]);
    largest = block_max(largest);
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - largest);
    float total = largest + logf(block_sum(sum));
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x)
        row[c] = scale * (expf(row[c] - total) - (c == target ? 1.0f : 0.0f));
    if (threadIdx.x == 0) losses[blockIdx.x] = total - aim;
}
