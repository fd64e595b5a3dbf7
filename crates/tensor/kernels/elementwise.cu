// One thread per element. `mode` chooses the function, so that a tape of many small operations needs one
// kernel. On the way back the derivative is computed from the output, which is kept anyway; the input is not.

extern "C" __global__ void elementwise(
        const float* in, float* out, u32 n, u32 mode, float factor, Dropout dropout) {
    u32 i = THREAD;
    if (i >= n) return;
    float x = in[i];
    out[i] = mode == 0   ? fmaxf(x, 0.0f)
             : mode == 1 ? sigmoid_of(x)
             : mode == 2 ? factor * x
                         : x * kept(dropout, i);
}
extern "C" __global__ void elementwise_back(
        const float* out, float* gradient, u32 n, u32 mode, float factor, Dropout dropout) {
    u32 i = THREAD;
    if (i >= n) return;
    float y = out[i];
    gradient[i] *= mode == 0   ? (y > 0.0f ? 1.0f : 0.0f)
                   : mode == 1 ? y * (1.0f - y)
                   : mode == 2 ? factor
                               : kept(dropout, i);
}
extern "C" __global__ void add_to(float* target, const float* part, u32 n) {
    u32 i = THREAD;
    if (i < n) target[i] += part[i];
}
