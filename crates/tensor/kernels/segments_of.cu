// Which segment each element belongs to: one warp per segment writes its number over its elements.

extern "C" __global__ void owners(const u32* starts, u32 count, u32* out) {
    u32 segment = WARP;
    if (segment >= count) return;
    for (u32 i = starts[segment] + LANE; i < starts[segment + 1]; i += 32) out[i] = segment;
}
