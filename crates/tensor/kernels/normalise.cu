// Batch normalisation. Mean and variance of a channel are sums over rows and positions: each block sums 64
// rows, then the blocks' sums are added in order, so that the same batch gives the same bits.

// A block for each channel and 64 rows.
extern "C" __global__ void channel_sums(const float* values, const float* gradient, const float* mean,
        const float* inverse, float* parts, u32 rows, u32 columns, u32 places) {
    u32 channel = blockIdx.x, first = blockIdx.y * 64, end = min(first + 64, rows);
    float one = 0.0f, two = 0.0f;
    for (u32 i = threadIdx.x; i < (end - first) * places; i += blockDim.x) {
        u64 at = (u64)(first + i / places) * columns + channel * places + i % places;
        float x = values[at];
        if (gradient) {
            one += gradient[at];
            two += gradient[at] * (x - mean[channel]) * inverse[channel];
        } else {
            one += x;
            two += x * x;
        }
    }
    one = block_sum(one);
    two = block_sum(two);
    if (threadIdx.x == 0) {
        u32 at = (blockIdx.y * gridDim.x + channel) * 2;
        parts[at] = one;
        parts[at + 1] = two;
    }
}
extern "C" __global__ void batch_statistics(const float* parts, u32 chunks, u32 channels, u32 count,
        const float* old_mean, const float* old_variance, float* mean, float* inverse, float* new_mean,
        float* new_variance) {
    u32 channel = THREAD;
    if (channel >= channels) return;
    double sum = 0.0, squares = 0.0, n = count ? count : 1;
    for (u32 chunk = 0; chunk < chunks; chunk++) {
        sum += parts[(chunk * channels + channel) * 2];
        squares += parts[(chunk * channels + channel) * 2 + 1];
    }
    double average = sum / n, variance = fmax(squares / n - average * average, 0.0);
    mean[channel] = average;
    inverse[channel] = 1.0 / sqrt(variance + 1e-5);
    double unbiased = variance * n / fmax(n - 1.0, 1.0);
    new_mean[channel] = old_mean[channel] + 0.1f * ((float)average - old_mean[channel]);
    new_variance[channel] = old_variance[channel] + 0.1f * ((float)unbiased - old_variance[channel]);
}
extern "C" __global__ void running_statistics(
        const float* old_mean, const float* old_variance, float* mean, float* inverse, u32 channels) {
    u32 channel = THREAD;
    if (channel >= channels) return;
    mean[channel] = old_mean[channel];
    inverse[channel] = 1.0f / sqrtf(old_variance[channel] + 1e-5f);
}
extern "C" __global__ void batch_norm(const float* values, const float* mean, const float* inverse,
        const float* scale, const float* shift, float* out, u32 n, u32 columns, u32 places) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 channel = i % columns / places;
    out[i] = scale[channel] * inverse[channel] * (values[i] - mean[channel]) + shift[channel];
}
extern "C" __global__ void batch_norm_sums(
        const float* parts, u32 chunks, u32 channels, float* to_shift, float* to_scale) {
    u32 channel = THREAD;
    if (channel >= channels) return;
    float one = 0.0f, two = 0.0f;
    for (u32 chunk = 0; chunk < chunks; chunk++) {
        one += parts[(chunk * channels + channel) * 2];
        two += parts[(chunk * channels + channel) * 2 + 1];
    }
    to_shift[channel] = one;
    to_scale[channel] = two;
}
extern "C" __global__ void batch_norm_back(const float* values, const float* gradient, const float* mean,
        const float* inverse, const float* scale, const float* to_shift, const float* to_scale, float* out,
        u32 n, u32 columns, u32 places, u32 count) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 channel = i % columns / places;
    float normal = (values[i] - mean[channel]) * inverse[channel];
    out[i] = scale[channel] * inverse[channel] *
             (gradient[i] - (to_shift[channel] + normal * to_scale[channel]) / count);
}
