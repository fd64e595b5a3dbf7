// A stable radix sort of keys, byte by byte from the lowest:
//
//      sort_count   how often does each of 256 values occur in each tile?
//      sort_scan    prefix sums over (value, tile): where does the run of a value of a tile begin?
//      sort_place   every key goes to its place, in its order within the tile
//
// Within a tile each warp has its own keys, so its threads run in step and wait for other warps only between
// counting and placing. Only integers are counted concurrently, so the result is deterministic.

#define SORT_TILE 8192
#define SORT_WARPS 32
extern "C" __global__ void sort_count(const u32* keys, u32 n, u32 shift, u32* counts, u32 tiles) {
    __shared__ u32 histogram[256];
    if (threadIdx.x < 256) histogram[threadIdx.x] = 0;
    __syncthreads();
    u32 first = blockIdx.x * SORT_TILE, end = min(first + SORT_TILE, n);
#pragma unroll 4
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x)
        atomicAdd(&histogram[(keys[i] >> shift) & 255], 1u);
    __syncthreads();
    if (threadIdx.x < 256) counts[threadIdx.x * tiles + blockIdx.x] = histogram[threadIdx.x];
}
// One block of 1024 threads turns counts into the sums of all counts before them.
extern "C" __global__ void sort_scan(u32* counts, u32 n) {
    __shared__ u32 sums[1024];
    u32 each = (n + 1023) / 1024, first = threadIdx.x * each, end = min(first + each, n);
    u32 total = 0;
    for (u32 i = first; i < end; i++) total += counts[i];
    sums[threadIdx.x] = total;
    __syncthreads();
    for (u32 step = 1; step < 1024; step <<= 1) {
        u32 other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
        __syncthreads();
    }
    u32 before = sums[threadIdx.x] - total;
    for (u32 i = first; i < end; i++) {
        u32 count = counts[i];
        counts[i] = before;
        before += count;
    }
}
// Adds to `counts`, by digit, how often the warp's keys have it. All lanes stay together.
__device__ __forceinline__ u32 sort_rank(u32 digit, u32* counts, u32& before) {
    u32 same = __match_any_sync(0xffffffffu, digit), rank = __popc(same & ((1u << LANE) - 1));
    if (digit < 256) before = counts[digit];
    __syncwarp();
    if (digit < 256 && rank == 0) counts[digit] = before + __popc(same);
    __syncwarp();
    return rank;
}
// A block of 1024 threads (a lane has four keys under way at once) puts the keys from `first` to `end` in the
// order of one digit. `starts` says where the tile's keys of each digit go; without them the tile is
// everything.
__device__ void sort_digit(const u32* keys, const u32* order, u32* keys_out, u32* order_out, u32 first,
        u32 end, u32 shift, const u32* starts, u32 tiles) {
    __shared__ u32 counts[SORT_WARPS][256];
    __shared__ u32 next[256];
    u32 t = threadIdx.x, warp = t >> 5;
    for (u32 i = t; i < SORT_WARPS * 256; i += blockDim.x) counts[i >> 8][i & 255] = 0;
    __syncthreads();
    u32 each = ((end - first + SORT_WARPS * 32 - 1) / (SORT_WARPS * 32)) * 32;
    u32 from = min(first + warp * each, end), to = min(from + each, end), before = 0;
    for (u32 round = from + LANE; round - LANE < to; round += 128) {
        u32 key[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++) key[k] = round + 32 * k < to ? keys[round + 32 * k] : 0;
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            sort_rank(round + 32 * k < to ? (key[k] >> shift) & 255 : 256, counts[warp], before);
    }
    __syncthreads();
    u32 total = 0;
    if (t < 256) {
        for (u32 w = 0; w < SORT_WARPS; w++) {
            u32 count = counts[w][t];
            counts[w][t] = total;
            total += count;
        }
        next[t] = starts ? starts[t * tiles + blockIdx.x] : total;
    }
    __syncthreads();
    for (u32 step = 1; !starts && step < 256; step <<= 1) {
        u32 other = t < 256 && t >= step ? next[t - step] : 0;
        __syncthreads();
        if (t < 256) next[t] += other;
        __syncthreads();
    }
    if (!starts && t < 256) next[t] -= total;
    __syncthreads();
    for (u32 round = from + LANE; round - LANE < to; round += 128) {
        u32 key[4], at[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            u32 i = round + 32 * k;
            key[k] = i < to ? keys[i] : 0;
            at[k] = order && i < to ? order[i] : i;
        }
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            bool live = round + 32 * k < to;
            u32 digit = live ? (key[k] >> shift) & 255 : 256, rank = sort_rank(digit, counts[warp], before);
            if (!live) continue;
            u32 place = next[digit] + before + rank;
            keys_out[place] = key[k];
            order_out[place] = at[k];
        }
    }
    __syncthreads();
}
extern "C" __global__ void sort_place(const u32* keys, const u32* order, u32* keys_out, u32* order_out, u32 n,
        u32 shift, const u32* counts, u32 tiles) {
    u32 first = blockIdx.x * SORT_TILE;
    sort_digit(keys, order, keys_out, order_out, first, min(first + SORT_TILE, n), shift, counts, tiles);
}
// All digits of a short list by one block; the last round writes to the first pair.
extern "C" __global__ void sort_few(const u32* keys, u32* keys_out, u32* order_out, u32* keys_between,
        u32* order_between, u32 n, u32 rounds) {
    const u32 *source = keys, *order = nullptr;
    for (u32 round = 0; round < rounds; round++) {
        bool out = (rounds - round) & 1;
        u32 *to = out ? keys_out : keys_between, *order_to = out ? order_out : order_between;
        sort_digit(source, order, to, order_to, 0, n, 8 * round, nullptr, 1);
        source = to;
        order = order_to;
    }
}
// The second half of a sum: parts of each of `columns` sums, added in order.
extern "C" __global__ void sum_parts(
        const float* parts, u32 count, u32 columns, float* out, float factor, u32 accumulate) {
    u32 column = THREAD;
    if (column >= columns) return;
    float total = 0.0f;
    for (u32 i = 0; i < count; i++) total += parts[(u64)i * columns + column];
    out[column] = total * factor + (accumulate ? out[column] : 0.0f);
}
// The same for a single number, by one block, added to another number if there is one.
extern "C" __global__ void sum_all(
        const float* parts, u32 count, const float* before, float* out, float factor) {
    float total = 0.0f;
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) total += parts[i];
    total = block_sum(total);
    if (threadIdx.x == 0) out[0] = (before ? before[0] : 0.0f) + total * factor;
}
