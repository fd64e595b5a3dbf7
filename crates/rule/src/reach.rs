//! Where a link leads from an entity, answered in a few instructions.
//!
//! The graph's own index uses binary search, but counting and applying rules ask hundreds of millions of times. Here
//! every link has a bitmap over the entities with running ranks, so that a miss (the common case) costs one load and
//! a hit three. If the bitmaps would not fit into memory, binary search over the sources is used. Under object
//! identity an edge from an entity to itself grounds nothing, so such edges are left out.
//!
//! ```text
//! blocks of link l    present: 0…010010   row: 7         entities 64 b … 64 b + 63
//!                                │  └─ entity 64 b + 1: row 7
//!                                └──── entity 64 b + 4: row 7 + (bits below it) = 8
//! sources             …  [7] = 64 b + 1   [8] = 64 b + 4  …
//! starts              …  [7] = 20         [8] = 23       [9] = 24  …
//! targets             …  20, 21, 22: of row 7 │ 23: of row 8 │ …
//! ```

use super::ground::Grounding;
use bytemuck::{Pod, Zeroable};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use ruleguider_graph::{Array, EntityId, Graph, Link};
use std::sync::Arc;

/// Bitmaps larger than this are not built.
const BITMAP_BYTES: usize = 256 << 20;

/// Entities or links indexed between two looks at the clock.
const BETWEEN_LOOKS: u32 = 1024;

/// Sixty-four entities of one link: which of them have the link, and the row of the first one.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Block {
    present: u64,
    row: u32,
    /// Explicit padding, so that all bytes of a block are initialised.
    rest: u32,
}

/// An edge, ordered by target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Neighbour {
    pub target: EntityId,
    pub link: Link,
}

/// The edges of the graph, by link and source.
pub(super) struct Reach {
    graph: Arc<Graph>,
    distinct: bool,
    stride: usize,
    blocks: Array<Block>,
    /// The rows of link `l` are `link_rows[l]..link_rows[l + 1]`.
    link_rows: Array<u32>,
    sources: Array<EntityId>,
    /// The targets of row `i` are `starts[i]..starts[i + 1]`.
    starts: Array<u32>,
    targets: Array<EntityId>,
    /// The edges of entity `e`, ordered by target, are `neighbour_starts[e]..neighbour_starts[e + 1]`.
    neighbour_starts: Array<u32>,
    neighbours: Array<Neighbour>,
}

/// The rows of all links while they are indexed.
#[derive(Default)]
struct Rows {
    blocks: Vec<Block>,
    link_rows: Vec<u32>,
    sources: Vec<EntityId>,
    starts: Vec<u32>,
    targets: Vec<EntityId>,
}

impl Reach {
    /// Indexes `graph`; `distinct` means that variables bind distinct entities (object identity).
    pub(crate) fn new(graph: &Arc<Graph>, distinct: bool) -> Self {
        Self::unless(graph, distinct, &|| false).expect("nobody stops it")
    }

    /// The same; `None` once `over` returns true.
    pub(crate) fn unless(graph: &Arc<Graph>, distinct: bool, over: &dyn Fn() -> bool) -> Option<Self> {
        let stride = graph.entities().div_ceil(64);
        let (neighbour_starts, neighbours) = neighbours_of(graph, distinct, over)?;
        let Rows { blocks, link_rows, sources, starts, targets } = Rows::of(graph, distinct, stride, over)?;
        Some(Self {
            graph: Arc::clone(graph),
            distinct,
            stride,
            blocks: blocks.into(),
            link_rows: link_rows.into(),
            sources: sources.into(),
            starts: starts.into(),
            targets: targets.into(),
            neighbour_starts: neighbour_starts.into(),
            neighbours: neighbours.into(),
        })
    }

    /// The graph that is indexed.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether variables bind distinct entities.
    pub(crate) fn distinct(&self) -> bool {
        self.distinct
    }

    /// The row of `source` among those of `link`.
    #[inline]
    fn row(&self, link: Link, source: EntityId) -> Option<usize> {
        if self.blocks.is_empty() {
            let rows = self.link_rows[link.index()] as usize..self.link_rows[link.index() + 1] as usize;
            return self.sources[rows.clone()].binary_search(&source).ok().map(|row| rows.start + row);
        }
        let block = self.blocks[link.index() * self.stride + source.index() / 64];
        let bit = source.0 % 64;
        // The rank of the bit within its block is the number of sources before it there.
        let before = block.present & ((1 << bit) - 1);
        (block.present >> bit & 1 == 1).then(|| (block.row + before.count_ones()) as usize)
    }

    /// The targets of `link` from `source`, ascending.
    #[inline]
    pub(crate) fn targets(&self, link: Link, source: EntityId) -> &[EntityId] {
        match self.row(link, source) {
            Some(row) => self.row_targets(row),
            None => &[],
        }
    }

    /// Whether `link` leads anywhere from `source`.
    #[inline]
    pub(crate) fn has(&self, link: Link, source: EntityId) -> bool {
        self.row(link, source).is_some()
    }

    #[inline]
    fn row_targets(&self, row: usize) -> &[EntityId] {
        &self.targets[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// The neighbours of `entity`, ordered, each with the link that leads there.
    #[inline]
    pub(crate) fn neighbours(&self, entity: EntityId) -> &[Neighbour] {
        let place = entity.index();
        &self.neighbours[self.neighbour_starts[place] as usize..self.neighbour_starts[place + 1] as usize]
    }

    /// A random entity, with probability proportional to its number of edges; `None` if there are no edges.
    pub(crate) fn random_source(&self, random: &mut ChaCha8Rng) -> Option<EntityId> {
        if self.neighbours.is_empty() {
            return None;
        }
        let edge = random.random_range(0..self.neighbours.len() as u32);
        // Drawing an edge and taking its entity draws entities by degree, without a table of weights.
        let after = self.neighbour_starts.partition_point(|&start| start <= edge);
        Some(EntityId(after as u32 - 1))
    }

    /// Whether the body of a rule about `constant` holds for `source`: whether a path leads to `end`, or anywhere, on
    /// which no variable binds the constant. `body` is known to hold if variables may bind it.
    pub(crate) fn holds_around(
        &self,
        source: EntityId,
        body: &[Link],
        end: Option<EntityId>,
        constant: EntityId,
    ) -> bool {
        if !self.distinct {
            return true;
        }
        match (body, end) {
            ([] | [_], Some(_)) | ([], None) => true,
            (&[only], None) => self.targets(only, source).iter().any(|&target| target != constant),
            // The usual case: the constant is not adjacent.
            (&[first, _], Some(_)) if self.targets(first, source).binary_search(&constant).is_err() => true,
            _ => {
                let targets = |entity, link| self.targets(link, entity);
                let avoid = Some(constant);
                Grounding { targets, distinct: true, avoid, tries: usize::MAX }
                    .find(source, body, end)
                    .is_some()
            }
        }
    }

    /// The entities that `link` leads from, ascending.
    pub(crate) fn sources(&self, link: Link) -> &[EntityId] {
        let rows = self.link_rows[link.index()] as usize..self.link_rows[link.index() + 1] as usize;
        &self.sources[rows]
    }

    /// The sources of `link`, each with its targets.
    pub(crate) fn rows(&self, link: Link) -> impl Iterator<Item = (EntityId, &[EntityId])> {
        let rows = self.link_rows[link.index()] as usize..self.link_rows[link.index() + 1] as usize;
        rows.map(|row| (self.sources[row], self.row_targets(row)))
    }

    /// How many pairs `link` joins.
    pub(crate) fn pairs(&self, link: Link) -> usize {
        let first = self.link_rows[link.index()] as usize;
        let end = self.link_rows[link.index() + 1] as usize;
        (self.starts[end] - self.starts[first]) as usize
    }

    /// All links that join anything, ascending.
    pub(crate) fn links(&self) -> impl Iterator<Item = Link> {
        (0..self.graph.links() as u32).map(Link).filter(|&link| !self.sources(link).is_empty())
    }
}

/// Where each entity's edges begin, and all edges, ordered by target; `None` once `over` returns true.
fn neighbours_of(
    graph: &Graph,
    distinct: bool,
    over: &dyn Fn() -> bool,
) -> Option<(Vec<u32>, Vec<Neighbour>)> {
    let mut starts = Vec::with_capacity(graph.entities() + 1);
    let mut neighbours = Vec::with_capacity(graph.adjacency().edge_count());
    for entity in (0..graph.entities() as u32).map(EntityId) {
        if entity.0 % BETWEEN_LOOKS == 0 && over() {
            return None;
        }
        let first = neighbours.len();
        starts.push(first as u32);
        let edges = graph.edges(entity).iter().filter(|edge| !distinct || edge.target != entity);
        neighbours.extend(edges.map(|edge| Neighbour { target: edge.target, link: edge.link }));
        neighbours[first..].sort_unstable();
    }
    starts.push(neighbours.len() as u32);
    Some((starts, neighbours))
}

impl Rows {
    fn of(graph: &Graph, distinct: bool, stride: usize, over: &dyn Fn() -> bool) -> Option<Self> {
        let links = graph.links();
        let bitmaps = links * stride * size_of::<Block>() <= BITMAP_BYTES;
        let mut rows = Self {
            blocks: vec![Block::default(); if bitmaps { links * stride } else { 0 }],
            targets: Vec::with_capacity(graph.adjacency().edge_count()),
            ..Self::default()
        };
        for link in (0..links as u32).map(Link) {
            if link.0 % BETWEEN_LOOKS == 0 && over() {
                return None;
            }
            rows.link_rows.push(rows.sources.len() as u32);
            rows.add_link(graph, link, distinct, stride);
        }
        rows.link_rows.push(rows.sources.len() as u32);
        rows.starts.push(u32::try_from(rows.targets.len()).expect("fewer than 2^32 edges"));
        Some(rows)
    }

    fn add_link(&mut self, graph: &Graph, link: Link, distinct: bool, stride: usize) {
        let first = link.index() * stride;
        let mut filled = 0;
        for (source, targets) in graph.pairs(link).rows() {
            let start = self.targets.len();
            self.targets.extend(targets.iter().filter(|&&target| !distinct || target != source));
            // A source with nothing but an edge to itself has no row: `has` must be false for it.
            if self.targets.len() == start {
                continue;
            }
            let row = self.sources.len() as u32;
            self.starts.push(start as u32);
            self.sources.push(source);
            if !self.blocks.is_empty() {
                let block = source.index() / 64;
                // Sources ascend, so this is the first row of its block and of the empty ones before it. Those behind
                // the last source keep row 0, which is never read: none of their bits is set.
                for block in &mut self.blocks[first + filled..=first + block] {
                    block.row = row;
                }
                filled = block + 1;
                self.blocks[first + block].present |= 1 << (source.0 % 64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ruleguider_graph::Triple;

    proptest! {
        #[test]
        fn says_what_the_graph_says(
            facts in prop::collection::vec((0u32..150, 0u32..3, 0u32..150), 0..80),
            distinct in any::<bool>(),
        ) {
            let facts: Vec<Triple> = facts.into_iter().map(|(h, r, t)| Triple::new(h, r, t)).collect();
            let graph = Arc::new(Graph::new(150, 3, &facts));
            let with_bitmaps = Reach::new(&graph, distinct);
            let mut without = Reach::new(&graph, distinct);
            without.blocks = Array::default();
            for link in (0..graph.links() as u32).map(Link) {
                let expected = |source: EntityId| -> Vec<EntityId> {
                    let all = graph.targets(source, link).iter();
                    all.filter(|&&target| !distinct || target != source).copied().collect()
                };
                for source in (0..150).map(EntityId) {
                    for reach in [&with_bitmaps, &without] {
                        prop_assert_eq!(reach.targets(link, source), expected(source));
                        prop_assert_eq!(reach.has(link, source), !expected(source).is_empty());
                    }
                }
                let pairs: usize = (0..150).map(|source| expected(EntityId(source)).len()).sum();
                prop_assert_eq!(with_bitmaps.pairs(link), pairs);
                prop_assert_eq!(with_bitmaps.rows(link).map(|(_, row)| row.len()).sum::<usize>(), pairs);
            }
        }
    }
}
