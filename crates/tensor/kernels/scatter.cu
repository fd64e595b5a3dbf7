// Positions are sorted by row and divided into tiles. A run of equal rows inside a tile is added to its row
// at once. A run that crosses into another tile goes to `parts` (slot 0 if it begins the tile, else slot 1),
// and the tile where the run begins adds these up. Everything that eight positions need is loaded before any
// of them is stored: no row is the target of two runs of a tile.

#define SCATTER_TILE 64
extern "C" __global__ void scatter_tiles(const u32* keys, const u32* order, u32 n, u32 tile,
        const u32* owners, const float* scale, const float* source, u32 columns, Dropout dropout,
        float* target, u32* touched, float* parts) {
    __shared__ u32 row[SCATTER_TILE + 1], from[SCATTER_TILE], at[SCATTER_TILE];
    __shared__ float factor[SCATTER_TILE];
    u32 start = blockIdx.x * tile, count = min(tile, n - start);
    for (u32 j = threadIdx.x; j < count; j += blockDim.x) {
        u32 position = order[start + j];
        row[j] = keys[start + j];
        at[j] = position;
        from[j] = owners ? owners[position] : position;
        factor[j] = scale ? scale[position] : 1.0f;
    }
    if (threadIdx.x == 0) row[count] = 0xffffffffu;
    bool before = start > 0 && keys[start - 1] == keys[start];
    bool after = start + count < n && keys[start + count] == keys[start + count - 1];
    __syncthreads();
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) {
        float sum = 0.0f;
        u32 begin = 0;
        for (u32 j0 = 0; j0 < count; j0 += 8) {
            float x[8], old[8];
#pragma unroll
            for (u32 k = 0; k < 8; k++) {
                u32 j = j0 + k;
                if (j >= count) continue;
                x[k] = source[(u64)from[j] * columns + c];
                if (row[j + 1] != row[j]) old[k] = target[(u64)row[j] * columns + c];
            }
#pragma unroll
            for (u32 k = 0; k < 8; k++) {
                u32 j = j0 + k;
                if (j >= count) continue;
                float part = x[k] * factor[j];
                if (dropout.threshold) part *= kept(dropout, at[j] * columns + c);
                sum += part;
                if (row[j + 1] == row[j]) continue;
                if ((begin == 0 && before) || (j + 1 == count && after)) {
                    parts[((u64)blockIdx.x * 2 + (begin ? 1 : 0)) * columns + c] = sum;
                } else {
                    target[(u64)row[j] * columns + c] = old[k] + sum;
                    if (touched && c == 0) touched[row[j]] = 1;
                }
                sum = 0.0f;
                begin = j + 1;
            }
        }
    }
}
extern "C" __global__ void scatter_joins(
        const u32* keys, u32 n, u32 tile, u32 columns, const float* parts, float* target, u32* touched) {
    u32 start = blockIdx.x * tile, end = min(start + tile, n);
    if (end == n) return;
    u32 key = keys[end - 1];
    if (keys[end] != key) return;
    bool whole = keys[start] == key;
    if (whole && start > 0 && keys[start - 1] == key) return;
    u32 low = end, high = n;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (keys[middle] <= key)
            low = middle + 1;
        else
            high = middle;
    }
    u32 last = (low - 1) / tile;
    for (u32 c = threadIdx.x; c < columns; c += blockDim.x) {
        float sum = parts[((u64)blockIdx.x * 2 + (whole ? 0 : 1)) * columns + c];
#pragma unroll 8
        for (u32 t = blockIdx.x + 1; t <= last; t++) sum += parts[(u64)t * 2 * columns + c];
        target[(u64)key * columns + c] += sum;
        if (touched && c == 0) touched[key] = 1;
    }
}
