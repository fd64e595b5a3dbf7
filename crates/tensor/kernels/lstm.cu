// One step of an LSTM layer after its products: one thread per element computes all four gates, so each gate
// is read once. `parents` names the row that a row continues from: walks branch, and children share the
// product of their parent's state. The gradients of children are summed by parent in a kernel of their own.

extern "C" __global__ void lstm(float* gates, const float* bias, const float* recurrent, const float* memory,
        const u32* parents, const float* peepholes, float* hidden, float* cell, u32 n, u32 width) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = i / width, k = i % width, parent = parents ? parents[row] : row;
    float* gate = gates + (u64)row * 4 * width + k;
    float z[4];
    for (u32 g = 0; g < 4; g++) {
        z[g] = gate[g * width] + bias[g * width + k];
        if (recurrent) z[g] += recurrent[((u64)parent * 4 + g) * width + k];
    }
    float old = memory ? memory[(u64)parent * width + k] : 0.0f;
    if (peepholes && memory) {
        z[0] += peepholes[k] * old;
        z[1] += peepholes[width + k] * old;
    }
    z[0] = sigmoid_of(z[0]);
    z[1] = sigmoid_of(z[1]);
    z[2] = tanh_of(z[2]);
    float c = z[0] * z[2];
    if (memory) c += z[1] * old;
    if (peepholes) z[3] += peepholes[2 * width + k] * c;
    z[3] = sigmoid_of(z[3]);
    for (u32 g = 0; g < 4; g++) gate[g * width] = z[g];
    cell[i] = c;
    hidden[i] = z[3] * tanh_of(c);
}
extern "C" __global__ void lstm_back(const float* gates, const float* cell, const float* memory,
        const u32* parents, const float* peepholes, const float* from_hidden, const float* from_cell,
        float* derivatives, float* to_memory, u32 n, u32 width) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = i / width, k = i % width, parent = parents ? parents[row] : row;
    const float* gate = gates + (u64)row * 4 * width + k;
    float* derivative = derivatives + (u64)row * 4 * width + k;
    float enter = gate[0], forget = gate[width], candidate = gate[2 * width], leave = gate[3 * width];
    float h = from_hidden ? from_hidden[i] : 0.0f, c = from_cell ? from_cell[i] : 0.0f,
          bent = tanh_of(cell[i]);
    c += h * leave * (1.0f - bent * bent);
    derivative[3 * width] = h * bent * leave * (1.0f - leave);
    if (peepholes) c += peepholes[2 * width + k] * derivative[3 * width];
    derivative[0] = c * candidate * enter * (1.0f - enter);
    derivative[width] = memory ? c * memory[(u64)parent * width + k] * forget * (1.0f - forget) : 0.0f;
    derivative[2 * width] = c * enter * (1.0f - candidate * candidate);
    float old = c * forget;
    if (peepholes) old += peepholes[k] * derivative[0] + peepholes[width + k] * derivative[width];
    to_memory[i] = old;
}
// What each row adds to the gradient of the peepholes.
extern "C" __global__ void lstm_peepholes(const float* derivatives, const float* cell, const float* memory,
        const u32* parents, float* products, u32 n, u32 width) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = i / width, k = i % width, parent = parents ? parents[row] : row;
    const float* derivative = derivatives + (u64)row * 4 * width + k;
    float* to = products + (u64)row * 3 * width + k;
    float old = memory ? memory[(u64)parent * width + k] : 0.0f;
    to[0] = derivative[0] * old;
    to[width] = derivative[width] * old;
    to[2 * width] = derivative[3 * width] * cell[i];
}
// The first of the sorted keys that is not below `key`.
__device__ u32 lstm_first(const u32* keys, u32 n, u32 key) {
    u32 low = 0, high = n;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
// A block for each parent and some columns of both gradients: it adds up the rows of its children, `slots` of
// them at a time.
extern "C" __global__ void lstm_parents(const u32* keys, const u32* order, u32 n, const float* derivatives,
        const float* memory, float* to_derivatives, float* to_memory, u32 width, u32 slots) {
    __shared__ float sums[256];
    u32 lanes = 256 / slots, slot = threadIdx.x / lanes, c = blockIdx.y * lanes + threadIdx.x % lanes;
    u32 parent = blockIdx.x, first = lstm_first(keys, n, parent), end = lstm_first(keys, n, parent + 1);
    bool by_gate = c < 4 * width, live = c < 5 * width;
    u32 columns = by_gate ? 4 * width : width, column = by_gate ? c : c - 4 * width;
    float sum = 0.0f;
    if (live) {
        const float* source = (by_gate ? derivatives : memory) + column;
#pragma unroll 8
        for (u32 i = first + slot; i < end; i += slots) sum += source[(u64)order[i] * columns];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (slot > 0 || !live) return;
    for (u32 other = 1; other < slots; other++) sum += sums[other * lanes + threadIdx.x];
    (by_gate ? to_derivatives : to_memory)[(u64)parent * columns + column] = sum;
}
