// One warp per row over all parameters: a row of a table that the step did not touch is left at once. Each
// lane has four elements in flight, because waiting for each in turn would dominate. A row that was left
// alone for k steps first gets its moments decayed by beta^k, so that skipping it changed nothing but its
// momentum.

extern "C" __global__ void adam(const Piece* pieces, u32 count, u32 rows, const float* factor, u32 step,
        float rate, float beta1, float beta2, float epsilon, float correction, float shrink) {
    u32 row = WARP;
    if (row >= rows) return;
    Piece piece = piece_of(pieces, count, row);
    if (piece.touched && !piece.touched[row]) return;
    u32 rest = piece.last ? step - 1 - piece.last[row] : 0;
    float keep1 = rest ? powf(beta1, rest + 1.0f) : beta1, keep2 = rest ? powf(beta2, rest + 1.0f) : beta2;
    float scale = factor ? factor[0] : 1.0f;
    u64 start = (u64)row * piece.columns;
    for (u32 from = LANE; from < piece.columns; from += 128) {
        float derivative[4], m[4], v[4], value[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            u32 c = from + 32 * k;
            if (c >= piece.columns) continue;
            derivative[k] = piece.gradient[start + c] * scale;
            m[k] = piece.first[start + c];
            v[k] = piece.second[start + c];
            value[k] = piece.values[start + c];
        }
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            u32 c = from + 32 * k;
            if (c >= piece.columns) continue;
            m[k] = keep1 * m[k] + (1.0f - beta1) * derivative[k];
            v[k] = keep2 * v[k] + (1.0f - beta2) * derivative[k] * derivative[k];
            piece.first[start + c] = m[k];
            piece.second[start + c] = v[k];
            piece.values[start + c] = value[k] * shrink - rate * m[k] / (sqrtf(v[k] * correction) + epsilon);
            if (piece.touched) piece.gradient[start + c] = 0.0f;
        }
    }
    __syncwarp();
    if (LANE == 0) {
        if (piece.last) piece.last[row] = step;
        if (piece.touched) piece.touched[row] = 0;
    }
}
