// A sparse matrix times blocks of rows: one warp for each row of each block sums its entries in their order.

// A warp for each row of each block.
extern "C" __global__ void sparse_product(const u32* starts, const u32* places, const float* values,
        const float* in, u32 rows, u32 columns, u32 total, u32 width, float* out) {
    u32 at = WARP;
    if (at >= total) return;
    u32 row = at % rows, end = starts[row + 1];
    const float* from = in + (u64)(at / rows) * columns * width;
    for (u32 c = LANE; c < width; c += 32) {
        float sum = 0.0f;
#pragma unroll 4
        for (u32 e = starts[row]; e < end; e++) sum += values[e] * from[(u64)places[e] * width + c];
        out[(u64)at * width + c] = sum;
    }
}
