// The dot product of each candidate's embedding with the state of its segment: one warp per candidate, so
// that both rows are read in whole lines of memory.

extern "C" __global__ void gather_dot(const float* states, const float* table, const u32* indices,
        const u32* owners, float* out, u32 n, u32 columns, Dropout dropout) {
    u32 position = WARP;
    if (position >= n) return;
    const float* state = states + (u64)owners[position] * columns;
    const float* row = table + (u64)indices[position] * columns;
    float sum = 0.0f;
    if (dropout.threshold) {
        for (u32 k = LANE; k < columns; k += 32)
            sum += state[k] * row[k] * kept(dropout, position * columns + k);
    } else {
        for (u32 k = LANE; k < columns; k += 32) sum += state[k] * row[k];
    }
    sum = warp_sum(sum);
    if (LANE == 0) out[position] = sum;
}
// A block for each segment, a thread for each column.
extern "C" __global__ void gather_dot_states(const float* table, const u32* indices, const u32* starts,
        const float* gradient, float* target, u32 columns, Dropout dropout, u32 fresh) {
    u32 segment = blockIdx.x, end = starts[segment + 1];
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) {
        float sum = 0.0f;
        if (dropout.threshold) {
#pragma unroll 4
            for (u32 p = starts[segment]; p < end; p++)
                sum += gradient[p] * table[(u64)indices[p] * columns + c] * kept(dropout, p * columns + c);
        } else {
#pragma unroll 8
            for (u32 p = starts[segment]; p < end; p++)
                sum += gradient[p] * table[(u64)indices[p] * columns + c];
        }
        float* to = target + (u64)segment * columns + c;
        *to = sum + (fresh ? 0.0f : *to);
    }
}
