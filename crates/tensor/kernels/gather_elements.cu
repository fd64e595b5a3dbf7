// In the backward pass, positions are sorted, and the first of each run of equal positions adds up the run.

extern "C" __global__ void gather_elements(
        const float* in, const u32* rows, const u32* columns, u32 n, u32 width, float* out) {
    u32 i = THREAD;
    if (i < n) out[i] = in[(rows ? (u64)rows[i] * width : 0) + columns[i]];
}
extern "C" __global__ void gather_elements_keys(
        const u32* rows, const u32* columns, u32 n, u32 width, u32* keys) {
    u32 i = THREAD;
    if (i < n) keys[i] = rows[i] * width + columns[i];
}
extern "C" __global__ void gather_elements_back(
        const u32* keys, const u32* order, const float* gradient, u32 n, float* target) {
    u32 i = THREAD;
    if (i >= n || (i > 0 && keys[i - 1] == keys[i])) return;
    float sum = 0.0f;
    for (u32 j = i; j < n && keys[j] == keys[i]; j++) sum += gradient[order[j]];
    target[keys[i]] += sum;
}
