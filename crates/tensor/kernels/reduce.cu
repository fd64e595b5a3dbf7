// Sums to one number, in blocks of `SUM_ELEMENTS` whose results are added up in order. A factor may itself be
// a number on the device (`total`), so that nothing is read back in between.

#define SUM_ELEMENTS 16384
extern "C" __global__ void weighted_sum(
        const float* in, const float* weights, u32 n, const float* total, float factor, float* parts) {
    u32 first = blockIdx.x * SUM_ELEMENTS, end = min(first + SUM_ELEMENTS, n);
    float sum = 0.0f;
#pragma unroll 4
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) sum += weights ? in[i] * weights[i] : in[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = (total ? total[0] : 0.0f) + sum * factor;
}
extern "C" __global__ void weighted_sum_back(
        const float* weights, const float* gradient, u32 n, float factor, float* part) {
    u32 i = THREAD;
    if (i < n) part[i] = gradient[0] * factor * (weights ? weights[i] : 1.0f);
}
// The modulus of the complex number that element `i` is a part of, or of the number itself.
__device__ float modulus_at(const float* in, u32 i, u32 columns, u32 complex) {
    if (!complex) return fabsf(in[i]);
    u32 half = columns / 2, k = i % columns, other = k < half ? i + half : i - half;
    return sqrtf(in[i] * in[i] + in[other] * in[other]);
}
extern "C" __global__ void cubed_norm(const float* in, u32 n, u32 columns, u32 complex, float* parts) {
    u32 first = blockIdx.x * SUM_ELEMENTS, end = min(first + SUM_ELEMENTS, n);
    float sum = 0.0f;
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) {
        // Both halves of a complex number add their part: |z|^3 = |z| (x^2 + y^2).
        sum += modulus_at(in, i, columns, complex) * in[i] * in[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
extern "C" __global__ void cubed_norm_back(
        const float* in, u32 n, u32 columns, u32 complex, float factor, const float* gradient, float* part) {
    u32 i = THREAD;
    if (i < n) part[i] = factor * gradient[0] * modulus_at(in, i, columns, complex) * in[i];
}
