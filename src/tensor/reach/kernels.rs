//! The addresses of the lists of a mesh and of a batch, as the kernels see them.

use super::Reach;
use crate::tensor::device::Device;
use crate::tensor::error::Result;
use crate::tensor::memory::Buffer;

// The addresses of the lists of a mesh and of a batch, for all kernels that follow edges.
pub(crate) const KERNELS: &str = r#"
#define NONE 0xffffffffu
struct Net {
    const u32 *starts, *links, *others, *backs, *piece_starts, *piece_edges, *edge_pieces, *item_starts, *item_pieces;
    const u32 *kind_nodes, *kind_pieces, *chunk_kinds, *chunk_starts, *kind_chunks;
    const u32 *places, *row_nodes, *row_queries, *row_edges, *row_pieces, *row_degrees;
    const u32 *item_rows, *item_ids, *item_slots, *big_rows, *big_slots, *slot_items, *gone_nodes, *gone_links;
    u32 nodes, kinds, queries, chunks;
};
// The query of a row and what is taken out of its edges; `to` is NONE for a row that keeps them all.
struct Gap { u32 node, from, to, link; };
__device__ __forceinline__ Gap gap_of(const Net& net, u32 query, u32 node) {
    Gap gap = { node, net.row_nodes[query], net.gone_nodes[query], net.gone_links[query] };
    if (node != gap.from && node != gap.to) gap.to = NONE;
    return gap;
}
__device__ __forceinline__ bool is_gone(const Gap& gap, u32 link, u32 other) {
    return (gap.node == gap.from && other == gap.to && (gap.link == NONE || gap.link == link))
        || (gap.node == gap.to && other == gap.from && (gap.link == NONE || (gap.link ^ 1u) == link));
}
"#;

impl Reach {
    /// The struct `Net` of the kernels, on the device.
    pub(super) fn describe(&self, device: &Device) -> Result<Buffer<u32>> {
        let edges = &*self.mesh.0;
        let mesh = [
            &edges.starts,
            &edges.links,
            &edges.others,
            &edges.backs,
            &edges.piece_starts,
            &edges.piece_edges,
            &edges.edge_pieces,
            &edges.item_starts,
            &edges.item_pieces,
            &edges.kind_nodes,
            &edges.kind_pieces,
            &edges.chunk_kinds,
            &edges.chunk_starts,
            &edges.kind_chunks,
        ];
        let own = [
            &self.places,
            &self.row_nodes,
            &self.row_queries,
            &self.row_edges,
            &self.row_pieces,
            &self.row_degrees,
            &self.item_rows,
            &self.item_ids,
            &self.item_slots,
            &self.big_rows,
            &self.big_slots,
            &self.slot_items,
            &self.gone_nodes,
            &self.gone_links,
        ];
        let pointers = mesh
            .iter()
            .map(|list| list.buffer.pointer())
            .chain(own.iter().map(|list| list.buffer().pointer()));
        let mut words: Vec<u32> =
            pointers.flat_map(|pointer| [pointer as u32, (pointer >> 32) as u32]).collect();
        words.extend([edges.nodes, edges.kinds, self.queries(), edges.chunks()].map(|size| size as u32));
        device.upload(&words)
    }
}
