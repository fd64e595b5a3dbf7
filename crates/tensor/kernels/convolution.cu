// Two-dimensional convolution without padding, one thread per output element, and one per input element on
// the way back. A filter's gradient is a sum over all images: a block sums one tap over 16 of them, and a
// second kernel adds up the blocks in their order, so the result does not depend on which block ran first.

extern "C" __global__ void convolve(const float* images, const float* filters, const float* bias, float* out,
        u32 n, u32 count, u32 channels, u32 height, u32 width, u32 down, u32 right, u32 out_height,
        u32 out_width) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 x = i % out_width, y = i / out_width % out_height, places = out_width * out_height;
    u32 filter = i / places % count, row = i / places / count;
    float sum = bias ? bias[filter] : 0.0f;
    const float* kernel = filters + (u64)filter * channels * down * right;
    for (u32 c = 0; c < channels; c++)
        for (u32 dy = 0; dy < down; dy++)
            for (u32 dx = 0; dx < right; dx++)
                sum += *kernel++ * images[(((u64)row * channels + c) * height + y + dy) * width + x + dx];
    out[i] = sum;
}
extern "C" __global__ void convolve_input(const float* gradient, const float* filters, float* out, u32 n,
        u32 count, u32 channels, u32 height, u32 width, u32 down, u32 right, u32 out_height, u32 out_width) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 x = i % width, y = i / width % height, channel = i / width / height % channels,
        row = i / width / height / channels;
    float sum = 0.0f;
    for (u32 filter = 0; filter < count; filter++)
        for (u32 dy = 0; dy < down && dy <= y; dy++) {
            if (y - dy >= out_height) continue;
            for (u32 dx = 0; dx < right && dx <= x; dx++) {
                if (x - dx >= out_width) continue;
                sum += filters[((filter * channels + channel) * down + dy) * right + dx] *
                       gradient[(((u64)row * count + filter) * out_height + y - dy) * out_width + x - dx];
            }
        }
    out[i] = sum;
}
extern "C" __global__ void convolve_filters(const float* gradient, const float* images, float* parts,
        u32 rows, u32 count, u32 channels, u32 height, u32 width, u32 down, u32 right, u32 out_height,
        u32 out_width) {
    u32 taps = channels * down * right, filter = blockIdx.x / (taps + 1), tap = blockIdx.x % (taps + 1);
    u32 channel = tap / (down * right), dy = tap / right % down, dx = tap % right,
        places = out_height * out_width;
    u32 first = blockIdx.y * 16, end = min(first + 16, rows);
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < (end - first) * places; i += blockDim.x) {
        u32 row = first + i / places, place = i % places, y = place / out_width, x = place % out_width;
        float derivative = gradient[((u64)row * count + filter) * places + place];
        sum += tap == taps
                       ? derivative
                       : derivative *
                                 images[(((u64)row * channels + channel) * height + y + dy) * width + x + dx];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}
extern "C" __global__ void convolve_sums(
        const float* parts, u32 chunks, u32 count, u32 taps, float* filters, float* bias) {
    u32 i = THREAD, n = count * (taps + 1);
    if (i >= n) return;
    float sum = 0.0f;
    for (u32 chunk = 0; chunk < chunks; chunk++) sum += parts[chunk * n + i];
    u32 filter = i / (taps + 1), tap = i % (taps + 1);
    if (tap == taps)
        bias[filter] = sum;
    else
        filters[filter * taps + tap] = sum;
}
