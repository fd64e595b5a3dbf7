// One warp per draw: its lanes first agree on a group, then on an element of it. Ties go to the first, as on
// the CPU.

struct Draw {
    float score;
    u32 at;
};
__device__ void draw_better(Draw& best, float score, u32 at) {
    if (best.at == 0xffffffffu || score > best.score || (score == best.score && at < best.at)) {
        best.score = score;
        best.at = at;
    }
}
__device__ u32 draw_of_warp(Draw best) {
    for (u32 offset = 16; offset; offset >>= 1) {
        float score = __shfl_xor_sync(0xffffffffu, best.score, offset);
        u32 at = __shfl_xor_sync(0xffffffffu, best.at, offset);
        if (at != 0xffffffffu) draw_better(best, score, at);
    }
    return best.at;
}
__device__ Key choose_key(Key key, u32 draw, u32 part) {
    u32 position = draw * 8 + 2 * part;
    return {bits_of(key.low, key.high, position), bits_of(key.low, key.high, position + 1)};
}
__device__ float gumbel_of(Key key, u32 position) { return -logf(-logf(uniform_of(key, position))); }
extern "C" __global__ void choose(const float* groups, const float* scores, const u32* group_of,
        const u32* starts, const u32* from, const u32* rows, u32 n, u32 columns, u32 drop_groups, u32 drop,
        Key key, u32* out) {
    u32 draw = WARP;
    if (draw >= n) return;
    u32 start = starts[from[draw]], end = starts[from[draw] + 1];
    Key by_group = choose_key(key, draw, 0), by_element = choose_key(key, draw, 1);
    Key hide_group = choose_key(key, draw, 2), hide = choose_key(key, draw, 3);
    const Draw nothing = {NEGATIVE_INFINITY, 0xffffffffu};
    u32 group = 0xffffffffu;
    if (groups) {
        const float* log_probs = groups + (u64)rows[draw] * columns;
        Draw seen = nothing, any = nothing;
        for (u32 i = start + LANE; i < end; i += 32) {
            u32 own = group_of[i];
            float score = log_probs[own] + gumbel_of(by_group, own);
            bool visible = (drop == 0 || bits_of(hide.low, hide.high, i - start) >= drop) &&
                           (drop_groups == 0 || bits_of(hide_group.low, hide_group.high, own) >= drop_groups);
            if (visible) draw_better(seen, score, own);
            draw_better(any, score, own);
        }
        u32 best = draw_of_warp(seen), fallback = draw_of_warp(any);
        group = best != 0xffffffffu ? best : fallback;
    }
    Draw seen = nothing, any = nothing;
    for (u32 i = start + LANE; i < end; i += 32) {
        if (groups && group_of[i] != group) continue;
        float score = (scores ? scores[i] : 0.0f) + gumbel_of(by_element, i - start);
        if (drop == 0 || bits_of(hide.low, hide.high, i - start) >= drop) draw_better(seen, score, i);
        draw_better(any, score, i);
    }
    u32 best = draw_of_warp(seen), fallback = draw_of_warp(any);
    if (LANE == 0) out[draw] = best != 0xffffffffu ? best : fallback;
}
