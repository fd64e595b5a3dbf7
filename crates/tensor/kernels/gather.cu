// Copies the rows of a table that a list names, one thread per element, dropout included.

extern "C" __global__ void gather(
        const float* table, const u32* indices, float* out, u32 n, u32 columns, Dropout dropout) {
    u32 i = THREAD;
    if (i >= n) return;
    out[i] = table[(u64)indices[i / columns] * columns + i % columns] * kept(dropout, i);
}
