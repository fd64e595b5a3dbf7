// Softmax, log-sum-exp and entropy of segments of different lengths: one warp per segment. A lane takes every
// 32nd element, so long segments are read in whole lines. Closed elements count as minus infinity.

__device__ float open_log_sum_exp(const float* in, const u32* closed, u32 start, u32 end) {
    float largest = NEGATIVE_INFINITY, sum = 0.0f;
    for (u32 i = start + LANE; i < end; i += 32)
        if (!(closed && closed[i])) largest = fmaxf(largest, in[i]);
    largest = warp_max(largest);
    if (largest == NEGATIVE_INFINITY) return largest;
    for (u32 i = start + LANE; i < end; i += 32)
        if (!(closed && closed[i])) sum += expf(in[i] - largest);
    return largest + logf(warp_sum(sum));
}
extern "C" __global__ void segment_log_softmax(
        const float* in, const u32* starts, const u32* closed, u32 count, float* out) {
    u32 segment = WARP;
    if (segment >= count) return;
    u32 start = starts[segment], end = starts[segment + 1];
    float total = open_log_sum_exp(in, closed, start, end);
    for (u32 i = start + LANE; i < end; i += 32)
        out[i] = total == NEGATIVE_INFINITY || (closed && closed[i]) ? NEGATIVE_INFINITY : in[i] - total;
}
extern "C" __global__ void segment_log_sum_exp(
        const float* in, const u32* starts, const u32* closed, u32 count, float* out) {
    u32 segment = WARP;
    if (segment >= count) return;
    float total = open_log_sum_exp(in, closed, starts[segment], starts[segment + 1]);
    if (LANE == 0) out[segment] = total;
}
extern "C" __global__ void segment_entropy(const float* in, const u32* starts, u32 count, float* out) {
    u32 segment = WARP;
    if (segment >= count) return;
    float sum = 0.0f;
    for (u32 i = starts[segment] + LANE; i < starts[segment + 1]; i += 32)
        if (in[i] > NEGATIVE_INFINITY) sum -= expf(in[i]) * in[i];
    sum = warp_sum(sum);
    if (LANE == 0) out[segment] = sum;
}
extern "C" __global__ void segment_softmax_back(
        const float* out, const u32* starts, u32 count, float* gradient) {
    u32 segment = WARP;
    if (segment >= count) return;
    u32 start = starts[segment], end = starts[segment + 1];
    float sum = 0.0f;
    for (u32 i = start + LANE; i < end; i += 32)
        if (out[i] > NEGATIVE_INFINITY) sum += gradient[i];
    sum = warp_sum(sum);
    for (u32 i = start + LANE; i < end; i += 32)
        gradient[i] = out[i] > NEGATIVE_INFINITY ? gradient[i] - expf(out[i]) * sum : 0.0f;
}
extern "C" __global__ void segment_log_sum_exp_back(const float* in, const float* out, const u32* starts,
        const u32* closed, u32 count, const float* gradient, float* part) {
    u32 segment = WARP;
    if (segment >= count) return;
    float total = out[segment], derivative = gradient[segment];
    for (u32 i = starts[segment] + LANE; i < starts[segment + 1]; i += 32)
        part[i] =
                total == NEGATIVE_INFINITY || (closed && closed[i]) ? 0.0f : derivative * expf(in[i] - total);
}
extern "C" __global__ void segment_entropy_back(
        const float* in, const u32* starts, u32 count, const float* gradient, float* part) {
    u32 segment = WARP;
    if (segment >= count) return;
    float derivative = gradient[segment];
    for (u32 i = starts[segment] + LANE; i < starts[segment + 1]; i += 32)
        part[i] = in[i] > NEGATIVE_INFINITY ? -derivative * expf(in[i]) * (in[i] + 1.0f) : 0.0f;
}
