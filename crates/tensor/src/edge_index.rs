//! The edges that messages travel along: a graph with its inverse edges, in the orders that the kernels need.
//!
//! A [`EdgeIndex`] has nodes and *kinds* of edges, and does not know what they mean. Kind `2 r + 1` is the inverse of kind
//! `2 r`, and every edge is stored in both directions, so one list of edges per node serves as the list of both
//! outgoing and incoming edges.
//!
//! Work is divided by size alone, so that sums have one order: a *piece* is a run of at most [`CHUNK`] edges of one
//! node and kind, an *item* a run of pieces of one node with at most [`CHUNK`] edges in total. Most nodes have one
//! item; a hub has many, and their results are combined in order. For sums that belong to a kind, all pieces are
//! sorted by kind and divided into chunks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::device::Device;
use super::error::{Result, TensorError};
use super::memory::Buffer;
use super::reach::NONE;

/// The maximum number of edges of an item, and of pieces of a chunk.
pub(crate) const CHUNK: usize = 256;

/// A list on both the host and the device.
pub(crate) struct List {
    pub(crate) host: Vec<u32>,
    pub(crate) buffer: Buffer<u32>,
}

impl List {
    fn new(device: &Device, host: Vec<u32>) -> Result<List> {
        Ok(List { buffer: device.upload(&host)?, host })
    }
}

/// A graph on a device, ready to send messages along its edges. Cheap to clone.
#[derive(Clone)]
pub struct EdgeIndex(pub(crate) Arc<Edges>, pub(crate) Option<Arc<Hidden>>);

/// Edges that carry no messages although they are in the lists.
pub(crate) struct Hidden {
    /// The nodes that have such edges, sorted.
    nodes: Vec<u32>,
    /// The edges in both directions as (node, kind, other node), sorted.
    edges: Vec<(u32, u32, u32)>,
}

impl Hidden {
    /// Whether an edge of `node` may be hidden.
    pub(crate) fn concerns(&self, node: u32) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }

    /// Whether the edge by `link` from `node` to `other` is hidden.
    pub(crate) fn misses(&self, node: u32, link: u32, other: u32) -> bool {
        self.edges.binary_search(&(node, link, other)).is_ok()
    }
}

/// The lists of an edge index.
pub(crate) struct Edges {
    pub(crate) device: Device,
    pub(crate) nodes: usize,
    pub(crate) kinds: usize,
    /// Where the edges of each node start; one entry more than nodes.
    pub(crate) starts: List,
    /// The kind of each edge, seen from its node.
    pub(crate) links: List,
    /// The node at the other end.
    pub(crate) others: List,
    /// The index of the reverse edge among the edges of the other node.
    pub(crate) backs: List,
    /// Where the pieces of each node start, and the first edge of each piece; one entry more each.
    pub(crate) piece_starts: List,
    pub(crate) piece_edges: List,
    /// The piece of each edge, counted from the first of its node.
    pub(crate) edge_pieces: List,
    /// Where the items of each node start, and the first piece of each item; one entry more each.
    pub(crate) item_starts: List,
    pub(crate) item_pieces: List,
    /// All pieces sorted by kind and node: the node, and the piece's index within the node.
    pub(crate) kind_nodes: List,
    pub(crate) kind_pieces: List,
    /// Chunks of that list: the kind, where each starts (one entry more), and where the chunks of a kind start (one
    /// entry more).
    pub(crate) chunk_kinds: List,
    pub(crate) chunk_starts: List,
    pub(crate) kind_chunks: List,
    /// The mean over all nodes of log(1 + degree).
    pub(crate) mean_log: f32,
    /// What [`Edges::shares`] gives, once it was asked for.
    shares: OnceLock<Buffer<f32>>,
    /// Tables of all nodes without an entry, for queries with a bounded frontier.
    places: Mutex<Vec<Vec<u32>>>,
}

impl EdgeIndex {
    /// The edge index of `starts.len() - 1` nodes: node `n` has the edges `starts[n]..starts[n + 1]`, sorted by (kind,
    /// other node) and without duplicates; edge `e` leads by kind `links[e]` to node `others[e]`.
    ///
    /// # Errors
    /// If a list does not fit the others, or an edge lacks its reverse.
    pub fn new(
        device: &Device,
        kinds: usize,
        starts: Vec<u32>,
        links: Vec<u32>,
        others: Vec<u32>,
    ) -> Result<EdgeIndex> {
        let edges = links.len();
        let rising = starts.first() == Some(&0) && starts.windows(2).all(|pair| pair[0] <= pair[1]);
        if !rising
            || starts.last() != Some(&(edges as u32))
            || others.len() != edges
            || !kinds.is_multiple_of(2)
        {
            return Err(wrong("starts must rise from 0 to the number of edges, and kinds come in pairs"));
        }
        let nodes = starts.len() - 1;
        let backs = backs(kinds, &starts, &links, &others)?;
        let (piece_starts, piece_edges) = pieces(&starts, &links);
        let (item_starts, item_pieces) = items(&piece_starts, &piece_edges);
        let mut edge_pieces = vec![0; edges];
        for pair in piece_starts.windows(2) {
            for piece in pair[0]..pair[1] {
                let range = piece_edges[piece as usize] as usize..piece_edges[piece as usize + 1] as usize;
                edge_pieces[range].fill(piece - pair[0]);
            }
        }
        let by_kind = ByKind::new(kinds, &links, &piece_starts, &piece_edges);
        let logs = starts.windows(2).map(|pair| f64::from(pair[1] - pair[0] + 1).ln());
        let mean_log = (logs.sum::<f64>() / nodes.max(1) as f64).max(1e-6) as f32;
        let list = |host| List::new(device, host);
        let edges = Edges {
            device: device.clone(),
            nodes,
            kinds,
            starts: list(starts)?,
            links: list(links)?,
            others: list(others)?,
            backs: list(backs)?,
            piece_starts: list(piece_starts)?,
            piece_edges: list(piece_edges)?,
            edge_pieces: list(edge_pieces)?,
            item_starts: list(item_starts)?,
            item_pieces: list(item_pieces)?,
            kind_nodes: list(by_kind.nodes)?,
            kind_pieces: list(by_kind.pieces)?,
            chunk_kinds: list(by_kind.chunk_kinds)?,
            chunk_starts: list(by_kind.chunk_starts)?,
            kind_chunks: list(by_kind.kind_chunks)?,
            mean_log,
            shares: OnceLock::new(),
            places: Mutex::default(),
        };
        Ok(EdgeIndex(Arc::new(edges), None))
    }

    /// As [`without`](Self::without) for a few edges, without a copy of the lists where the device allows it: the edges
    /// stay in them, and whoever visits one of their nodes skips them. A sum over a node with many edges may be rounded
    /// differently.
    ///
    /// # Errors
    /// If the device fails.
    pub fn hiding(&self, gone: &[(u32, u32, u32)]) -> Result<EdgeIndex> {
        if self.0.device.is_cuda() {
            return self.without(gone);
        }
        if gone.is_empty() {
            return Ok(self.clone());
        }
        let earlier = self.1.iter().flat_map(|hidden| hidden.edges.iter().copied());
        let mut edges: Vec<_> = gone.iter().flat_map(|&edge| both_ways(edge)).chain(earlier).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut nodes: Vec<u32> = edges.iter().map(|edge| edge.0).collect();
        nodes.dedup();
        Ok(EdgeIndex(self.0.clone(), Some(Arc::new(Hidden { nodes, edges }))))
    }

    /// The same edge index without some edges, each given as (node, kind, other node) and removed in both directions.
    /// Degrees are still compared with the old mean.
    ///
    /// # Errors
    /// If the device fails.
    pub fn without(&self, gone: &[(u32, u32, u32)]) -> Result<EdgeIndex> {
        let edges = &*self.0;
        let hidden = self.1.iter().flat_map(|hidden| hidden.edges.iter().copied());
        let mut gone: Vec<_> = gone.iter().flat_map(|&edge| both_ways(edge)).chain(hidden).collect();
        gone.sort_unstable();
        let (mut starts, mut links, mut others) = (vec![0], Vec::new(), Vec::new());
        for node in 0..edges.nodes {
            for edge in edges.edges_of(node) {
                let (link, other) = (edges.links.host[edge], edges.others.host[edge]);
                if gone.binary_search(&(node as u32, link, other)).is_err() {
                    links.push(link);
                    others.push(other);
                }
            }
            starts.push(links.len() as u32);
        }
        let mut edge_index = EdgeIndex::new(&edges.device, edges.kinds, starts, links, others)?;
        if let Some(new) = Arc::get_mut(&mut edge_index.0) {
            new.mean_log = edges.mean_log;
        }
        Ok(edge_index)
    }

    /// The same edge index, whose degrees are compared with the mean over the nodes that have edges: nodes without any do
    /// not change how the others are seen.
    ///
    /// # Errors
    /// If the edge index is shared.
    pub fn compared_among_linked(mut self) -> Result<EdgeIndex> {
        let edges =
            Arc::get_mut(&mut self.0).ok_or_else(|| wrong("a shared edge_index cannot be changed"))?;
        let degrees = edges.starts.host.windows(2).map(|pair| pair[1] - pair[0]).filter(|&degree| degree > 0);
        let (sum, count) =
            degrees.fold((0.0, 0usize), |(sum, count), degree| (sum + f64::from(degree + 1).ln(), count + 1));
        edges.mean_log = (sum / count.max(1) as f64).max(1e-6) as f32;
        Ok(self)
    }

    /// How many nodes there are, with edges or without.
    pub fn nodes(&self) -> usize {
        self.0.nodes
    }

    /// How many kinds of edges there are, both directions counted.
    pub fn kinds(&self) -> usize {
        self.0.kinds
    }

    /// How many edges there are, both directions and hidden ones counted.
    pub fn edges(&self) -> usize {
        self.0.links.host.len()
    }
}

impl Edges {
    /// The edges of a node, as indices into the lists of edges.
    pub(crate) fn edges_of(&self, node: usize) -> std::ops::Range<usize> {
        self.starts.host[node] as usize..self.starts.host[node + 1] as usize
    }

    /// For every node, one over the number of nodes that edges link it with, directly or through others, itself
    /// included.
    pub(crate) fn shares(&self) -> Result<&Buffer<f32>> {
        if self.shares.get().is_none() {
            let shares = self.device.upload(&component_shares(&self.starts.host, &self.others.host))?;
            // If another thread was faster, its shares are the same.
            let _ = self.shares.set(shares);
        }
        Ok(self.shares.get().expect("the shares are set"))
    }

    /// A table with `NONE` for every node. It is to be given back as it was taken.
    pub(crate) fn spare_places(&self) -> Vec<u32> {
        let spare = self.places.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| vec![NONE; self.nodes])
    }

    /// Takes a table back whose entries are all `NONE` again.
    pub(crate) fn give_places(&self, places: Vec<u32>) {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).push(places);
    }

    /// How many chunks the pieces of all kinds are cut into.
    pub(crate) fn chunks(&self) -> usize {
        self.chunk_kinds.host.len()
    }
}

/// An edge as seen from each of its ends.
fn both_ways((from, kind, to): (u32, u32, u32)) -> [(u32, u32, u32); 2] {
    [(from, kind, to), (to, kind ^ 1, from)]
}

fn wrong(why: &str) -> TensorError {
    TensorError::Parameter { name: "edge_index".to_string(), why: why.to_string() }
}

/// For every edge, the index of its reverse among the edges of the other node.
fn backs(kinds: usize, starts: &[u32], links: &[u32], others: &[u32]) -> Result<Vec<u32>> {
    let nodes = starts.len() - 1;
    let key = |edge: usize| (links[edge], others[edge]);
    let mut backs = vec![0; links.len()];
    for node in 0..nodes {
        let range = starts[node] as usize..starts[node + 1] as usize;
        for edge in range.clone() {
            let (link, other) = key(edge);
            if link as usize >= kinds
                || other as usize >= nodes
                || (edge > range.start && key(edge - 1) >= key(edge))
            {
                return Err(wrong("the edges of a node must be sorted, none twice, within nodes and kinds"));
            }
            let (mut low, end) = (starts[other as usize] as usize, starts[other as usize + 1] as usize);
            let wanted = (link ^ 1, node as u32);
            let mut high = end;
            while low < high {
                let middle = (low + high) / 2;
                if key(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            if low == end || key(low) != wanted {
                return Err(wrong("an edge lacks its other direction"));
            }
            backs[edge] = low as u32 - starts[other as usize];
        }
    }
    Ok(backs)
}

/// One over the size of every node's component.
fn component_shares(starts: &[u32], others: &[u32]) -> Vec<f32> {
    let mut shares = vec![0.0; starts.len() - 1];
    for first in 0..shares.len() {
        if shares[first] > 0.0 {
            continue;
        }
        shares[first] = 1.0;
        let (mut component, mut next) = (vec![first], 0);
        while let Some(&node) = component.get(next) {
            next += 1;
            for &other in &others[starts[node] as usize..starts[node + 1] as usize] {
                if shares[other as usize] == 0.0 {
                    shares[other as usize] = 1.0;
                    component.push(other as usize);
                }
            }
        }
        let share = (component.len() as f32).recip();
        component.into_iter().for_each(|node| shares[node] = share);
    }
    shares
}

/// Cuts the edges of every node into runs of one kind, none longer than a chunk.
fn pieces(starts: &[u32], links: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut piece_starts, mut piece_edges) = (vec![0], Vec::new());
    for pair in starts.windows(2) {
        let mut edge = pair[0] as usize;
        while edge < pair[1] as usize {
            piece_edges.push(edge as u32);
            let most = (edge + CHUNK).min(pair[1] as usize);
            edge = (edge..most).find(|&at| links[at] != links[edge]).unwrap_or(most);
        }
        piece_starts.push(piece_edges.len() as u32);
    }
    piece_edges.push(links.len() as u32);
    (piece_starts, piece_edges)
}

/// Joins the pieces of every node into runs with at most a chunk of edges; a node without edges has one empty item.
fn items(piece_starts: &[u32], piece_edges: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut item_starts, mut item_pieces) = (vec![0], Vec::new());
    for pair in piece_starts.windows(2) {
        let (mut piece, end) = (pair[0] as usize, pair[1] as usize);
        loop {
            item_pieces.push(piece as u32);
            let first = piece_edges[piece] as usize;
            while piece < end && piece_edges[piece + 1] as usize - first <= CHUNK {
                piece += 1;
            }
            if piece == end {
                break;
            }
        }
        item_starts.push(item_pieces.len() as u32);
    }
    item_pieces.push(piece_edges.len() as u32 - 1);
    (item_starts, item_pieces)
}

/// The pieces sorted by kind, in chunks.
struct ByKind {
    nodes: Vec<u32>,
    pieces: Vec<u32>,
    chunk_kinds: Vec<u32>,
    chunk_starts: Vec<u32>,
    kind_chunks: Vec<u32>,
}

impl ByKind {
    fn new(kinds: usize, links: &[u32], piece_starts: &[u32], piece_edges: &[u32]) -> ByKind {
        let count = piece_edges.len() - 1;
        let mut starts = vec![0u32; kinds + 1];
        for piece in 0..count {
            starts[links[piece_edges[piece] as usize] as usize + 1] += 1;
        }
        (0..kinds).for_each(|kind| starts[kind + 1] += starts[kind]);
        let (mut nodes, mut pieces, mut next) = (vec![0; count], vec![0; count], starts.clone());
        for (node, pair) in piece_starts.windows(2).enumerate() {
            for piece in pair[0]..pair[1] {
                let place = &mut next[links[piece_edges[piece as usize] as usize] as usize];
                nodes[*place as usize] = node as u32;
                pieces[*place as usize] = piece - pair[0];
                *place += 1;
            }
        }
        let (mut chunk_kinds, mut chunk_starts, mut kind_chunks) = (Vec::new(), Vec::new(), vec![0]);
        for kind in 0..kinds {
            for first in (starts[kind]..starts[kind + 1]).step_by(CHUNK) {
                chunk_kinds.push(kind as u32);
                chunk_starts.push(first);
            }
            kind_chunks.push(chunk_kinds.len() as u32);
        }
        chunk_starts.push(count as u32);
        ByKind { nodes, pieces, chunk_kinds, chunk_starts, kind_chunks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_cut_into_items_and_its_edges_find_their_way_back() {
        let device = Device::cpu(1).unwrap();
        // Node 0 has 1000 edges of kind 0 and one of kind 2; the other nodes have the reverse edges.
        let others: Vec<u32> =
            (1..=1000).chain([1000]).chain((1..=1000).flat_map(|node| vec![0; 1 + node / 1000])).collect();
        let links: Vec<u32> = vec![0; 1000]
            .into_iter()
            .chain([2])
            .chain((1..=1000).flat_map(|node| if node < 1000 { vec![1] } else { vec![1, 3] }))
            .collect();
        let starts: Vec<u32> =
            [0, 1001].into_iter().chain((1..=1000).map(|node| 1001 + node + node / 1000)).collect();
        let edge_index = EdgeIndex::new(&device, 4, starts.clone(), links.clone(), others.clone()).unwrap();
        let edges = &edge_index.0;
        assert_eq!(edges.piece_starts.host[1], 5, "four of kind 0 and one of kind 2");
        assert_eq!(edges.item_starts.host[1], 4, "the last piece of kind 0 shares its item");
        for edge in 0..edge_index.edges() {
            let back = edges.starts.host[others[edge] as usize] + edges.backs.host[edge];
            assert_eq!(links[back as usize], links[edge] ^ 1);
        }
        assert!(edges.chunk_starts.host.windows(2).all(|pair| pair[1] - pair[0] <= CHUNK as u32));
        let broken = EdgeIndex::new(&device, 4, starts, vec![0; links.len()], others).err().unwrap();
        assert!(
            broken.to_string().contains("sorted") || broken.to_string().contains("direction"),
            "{broken}"
        );
        let empty = EdgeIndex::new(&device, 2, vec![0; 4], Vec::new(), Vec::new()).unwrap();
        assert_eq!(
            (empty.nodes(), empty.edges(), empty.0.item_starts.host.clone()),
            (3, 0, vec![0, 1, 2, 3])
        );
    }
}
