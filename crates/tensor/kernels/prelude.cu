// What all kernels share: random bits as in `random.rs` (the same numbers as on the CPU), and sums over a
// warp and over a block. `THREAD`, `WARP` and `LANE` number threads, warps and the threads of a warp.

typedef unsigned int u32;
typedef unsigned long long u64;
struct Key {
    u32 low, high;
};
struct Dropout {
    u32 low, high, threshold;
    float scale;
};
#define NEGATIVE_INFINITY __int_as_float(0xff800000)
__device__ __forceinline__ u32 bits_of(u32 low, u32 high, u32 position) {
    u32 x = position * 0x9e3779b9u ^ low;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = ((x ^ (x >> 15)) + high) * 0x846ca68bu;
    return x ^ (x >> 16);
}
__device__ __forceinline__ float uniform_of(Key key, u32 position) {
    return fminf(((float)(bits_of(key.low, key.high, position) >> 8) + 0.5f) * (1.0f / 16777216.0f),
            0x1.fffffep-1f);
}
__device__ __forceinline__ float kept(Dropout d, u32 position) {
    return d.threshold == 0 ? 1.0f : (bits_of(d.low, d.high, position) >= d.threshold ? d.scale : 0.0f);
}
__device__ __forceinline__ float sigmoid_of(float x) { return 1.0f / (1.0f + __expf(-x)); }
__device__ __forceinline__ float tanh_of(float x) {
    float y = fabsf(x), e = __expf(-2.0f * y), far = (1.0f - e) / (1.0f + e), s = x * x;
    float near =
            y + y * s *
                        (-3.333328e-1f +
                                s * (1.3331442e-1f +
                                            s * (-5.3739716e-2f + s * (2.063909e-2f - 5.7049887e-3f * s))));
    return copysignf(y < 0.625f ? near : far, x);
}
__device__ __forceinline__ float warp_sum(float x) {
    for (int offset = 16; offset; offset >>= 1) x += __shfl_xor_sync(0xffffffffu, x, offset);
    return x;
}
__device__ __forceinline__ float warp_max(float x) {
    for (int offset = 16; offset; offset >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
    return x;
}
// For blocks of whole warps, up to 1024 threads; every thread gets the result.
__device__ float block_sum(float x) {
    __shared__ float parts[33];
    x = warp_sum(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        float y = threadIdx.x < (blockDim.x >> 5) ? parts[threadIdx.x] : 0.0f;
        y = warp_sum(y);
        if (threadIdx.x == 0) parts[32] = y;
    }
    __syncthreads();
    return parts[32];
}
__device__ float block_max(float x) {
    __shared__ float parts[33];
    x = warp_max(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        float y = threadIdx.x < (blockDim.x >> 5) ? parts[threadIdx.x] : NEGATIVE_INFINITY;
        y = warp_max(y);
        if (threadIdx.x == 0) parts[32] = y;
    }
    __syncthreads();
    return parts[32];
}
#define THREAD ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define WARP (THREAD >> 5)
#define LANE (threadIdx.x & 31)
