// One warp per row over all gradients; then one block adds up the results of the blocks.

extern "C" __global__ void squares(const Piece* pieces, u32 count, u32 rows, float* parts) {
    u32 row = WARP;
    float sum = 0.0f;
    if (row < rows) {
        Piece piece = piece_of(pieces, count, row);
        if (!piece.touched || piece.touched[row]) {
            const float* gradient = piece.gradient + (u64)row * piece.columns;
#pragma unroll 4
            for (u32 c = LANE; c < piece.columns; c += 32) sum += gradient[c] * gradient[c];
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
extern "C" __global__ void clip(const float* parts, u32 count, float limit, float* norm, float* factor) {
    float total = 0.0f;
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) total += parts[i];
    total = sqrtf(block_sum(total));
    if (threadIdx.x > 0) return;
    norm[0] = total;
    factor[0] = total > limit ? limit / total : 1.0f;
}
