// The addresses of the lists of an edge index and of a batch, for all kernels that follow edges, and the test
// whether an edge is removed for a query. `Net` has the layout of the list that `Reach::describe` writes.

#define NONE 0xffffffffu
struct Net {
    const u32 *starts, *links, *others, *backs, *piece_starts, *piece_edges, *edge_pieces, *item_starts,
            *item_pieces;
    const u32 *kind_nodes, *kind_pieces, *chunk_kinds, *chunk_starts, *kind_chunks;
    const u32 *places, *row_nodes, *row_queries, *row_edges, *row_pieces, *row_degrees;
    const u32 *item_rows, *item_ids, *item_slots, *big_rows, *big_slots, *slot_items, *gone_nodes,
            *gone_links;
    u32 nodes, kinds, queries, chunks;
};
// The query of a row and what is taken out of its edges; `to` is NONE for a row that keeps them all.
struct Gap {
    u32 node, from, to, link;
};
__device__ __forceinline__ Gap gap_of(const Net& net, u32 query, u32 node) {
    Gap gap = {node, net.row_nodes[query], net.gone_nodes[query], net.gone_links[query]};
    if (node != gap.from && node != gap.to) gap.to = NONE;
    return gap;
}
__device__ __forceinline__ bool is_gone(const Gap& gap, u32 link, u32 other) {
    return (gap.node == gap.from && other == gap.to && (gap.link == NONE || gap.link == link)) ||
           (gap.node == gap.to && other == gap.from && (gap.link == NONE || (gap.link ^ 1u) == link));
}
