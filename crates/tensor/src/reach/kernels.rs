//! The addresses of the lists of an edge index and of a batch, as the kernels see them.

use super::Reach;
use crate::device::Device;
use crate::error::Result;
use crate::memory::Buffer;

impl Reach {
    /// The struct `Net` of the kernels, on the device.
    pub(super) fn describe(&self, device: &Device) -> Result<Buffer<u32>> {
        let edges = &*self.edge_index.0;
        let edge_index = [
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
        let pointers = edge_index
            .iter()
            .map(|list| list.buffer.pointer())
            .chain(own.iter().map(|list| list.buffer().pointer()));
        let mut words: Vec<u32> =
            pointers.flat_map(|pointer| [pointer as u32, (pointer >> 32) as u32]).collect();
        words.extend([edges.nodes, edges.kinds, self.queries(), edges.chunks()].map(|size| size as u32));
        device.upload(&words)
    }
}
