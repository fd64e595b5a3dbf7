// The parameters of a model as one list, so that a step of the optimiser is one launch and not one per
// parameter.

struct Piece {
    float* gradient;
    u32* touched;
    float* values;
    float* first;
    float* second;
    u32* last;
    u32 rows, columns, start, unused;
};
// The piece that a row of all rows is in; the row becomes the piece's own.
__device__ __forceinline__ Piece piece_of(const Piece* pieces, u32 count, u32& row) {
    u32 low = 0, high = count;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (pieces[middle].start <= row)
            low = middle;
        else
            high = middle;
    }
    row -= pieces[low].start;
    return pieces[low];
}
