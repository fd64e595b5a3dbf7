// The queries of the bilinear and rotating models: complex numbers, all real parts of a row first, then all
// imaginary parts. The derivative for the relation is the product with the conjugated head, and the other way
// round.

__device__ float2 relation_factor(const float* relations, u32 row, u32 k, u32 half, u32 rotation) {
    float2 factor;
    if (rotation) {
        sincosf(relations[(u64)row * half + k], &factor.y, &factor.x);
    } else {
        factor.x = relations[(u64)row * 2 * half + k];
        factor.y = relations[(u64)row * 2 * half + half + k];
    }
    return factor;
}
extern "C" __global__ void complex_query(
        const float* heads, const float* relations, float* out, u32 n, u32 half, u32 rotation) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = i / half, k = i % half;
    u64 real = (u64)row * 2 * half + k, imaginary = real + half;
    float2 f = relation_factor(relations, row, k, half, rotation);
    out[real] = heads[real] * f.x - heads[imaginary] * f.y;
    out[imaginary] = heads[real] * f.y + heads[imaginary] * f.x;
}
extern "C" __global__ void complex_query_head(
        const float* gradient, const float* relations, float* part, u32 n, u32 half, u32 rotation) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = i / half, k = i % half;
    u64 real = (u64)row * 2 * half + k, imaginary = real + half;
    float2 f = relation_factor(relations, row, k, half, rotation);
    part[real] = gradient[real] * f.x + gradient[imaginary] * f.y;
    part[imaginary] = gradient[imaginary] * f.x - gradient[real] * f.y;
}
extern "C" __global__ void complex_query_relation(const float* gradient, const float* heads,
        const float* relations, float* part, u32 n, u32 half, u32 rotation) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = i / half, k = i % half;
    u64 real = (u64)row * 2 * half + k, imaginary = real + half;
    float to_real = gradient[real] * heads[real] + gradient[imaginary] * heads[imaginary];
    float to_imaginary = gradient[imaginary] * heads[real] - gradient[real] * heads[imaginary];
    if (rotation) {
        float2 f = relation_factor(relations, row, k, half, rotation);
        part[(u64)row * half + k] = to_imaginary * f.x - to_real * f.y;
    } else {
        part[real] = to_real;
        part[imaginary] = to_imaginary;
    }
}
