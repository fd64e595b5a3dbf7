//! Adjacency: compressed rows, one per entity, sorted by (link, target), inverse edges included.
//!
//! The same structure serves as the graph's neighbour lists and, built over several splits, as the answer sets that
//! filtered ranking removes: `targets(subject, link)` is a sorted slice either way.

use super::array::Array;
use super::mapped::{SectionReader, SectionWriter};
use super::{EntityId, GraphError, Link, Triple};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

/// One edge of a row. Ordered by link, then target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Edge {
    /// The link.
    pub link: Link,
    /// Where it leads.
    pub target: EntityId,
}

/// The outgoing edges of every entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjacency {
    starts: Array<u64>,
    edges: Array<Edge>,
}

impl Adjacency {
    /// Both edges of every fact of `splits`, each edge once, over entities `0..entities`.
    pub fn new(entities: usize, splits: &[&[Triple]]) -> Self {
        let in_parallel = |rows: Vec<&mut [Edge]>| {
            rows.into_par_iter().with_min_len(256).for_each(|row| row.sort_unstable());
        };
        Self::sorted_by(entities, splits, in_parallel)
    }

    /// The same without help of the thread pool: for what is made when it is first asked for. All threads of the pool may
    /// wait for that, and then none is left to help.
    pub fn on_this_thread(entities: usize, splits: &[&[Triple]]) -> Self {
        Self::sorted_by(entities, splits, |rows| rows.into_iter().for_each(|row| row.sort_unstable()))
    }

    fn sorted_by(entities: usize, splits: &[&[Triple]], sort: impl FnOnce(Vec<&mut [Edge]>)) -> Self {
        let mut starts = vec![0u64; entities + 1];
        for triple in splits.iter().copied().flatten() {
            starts[triple.head.index() + 1] += 1;
            starts[triple.tail.index() + 1] += 1;
        }
        for row in 0..entities {
            starts[row + 1] += starts[row];
        }
        let nowhere = Edge { link: Link::PAD, target: EntityId(0) };
        let mut edges = vec![nowhere; starts[entities] as usize];
        let mut next = starts.clone();
        let mut place = |source: EntityId, edge: Edge| {
            edges[next[source.index()] as usize] = edge;
            next[source.index()] += 1;
        };
        for &Triple { head, relation, tail } in splits.iter().copied().flatten() {
            place(head, Edge { link: Link::forward(relation), target: tail });
            place(tail, Edge { link: Link::inverse_of(relation), target: head });
        }
        drop(next);
        sort(rows(&starts, &mut edges));
        drop_repeated_edges(&mut starts, &mut edges);
        Self { starts: starts.into(), edges: edges.into() }
    }

    /// Adds its arrays to a file.
    pub(super) fn write<'a>(&'a self, out: &mut SectionWriter<'a>) {
        out.add("graph.starts", &self.starts);
        out.add("graph.edges", &self.edges);
    }

    /// Reads the arrays from a file.
    pub(super) fn mapped(entities: usize, file: &SectionReader) -> Result<Self, GraphError> {
        let adjacency = Self { starts: file.array("graph.starts")?, edges: file.array("graph.edges")? };
        match adjacency.starts.last() {
            Some(&end) if end == adjacency.edges.len() as u64 && adjacency.entities() == entities => {
                Ok(adjacency)
            }
            _ => Err(file.damaged("one whose graph has other rows")),
        }
    }

    /// How many entities have a row, with edges or without.
    pub fn entities(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many edges there are in all rows.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// All outgoing edges of `entity`, sorted by (link, target).
    #[inline]
    pub fn edges(&self, entity: EntityId) -> &[Edge] {
        &self.edges[self.starts[entity.index()] as usize..self.starts[entity.index() + 1] as usize]
    }

    /// The part of `entity`'s row that `link` labels, sorted by target.
    pub fn edges_by(&self, entity: EntityId, link: Link) -> &[Edge] {
        let row = self.edges(entity);
        let from = row.partition_point(|edge| edge.link < link);
        let length = row[from..].partition_point(|edge| edge.link == link);
        &row[from..from + length]
    }

    /// The targets of `link` from `entity`, ascending.
    pub fn targets(&self, entity: EntityId, link: Link) -> impl ExactSizeIterator<Item = EntityId> + '_ {
        self.edges_by(entity, link).iter().map(|edge| edge.target)
    }

    /// Whether `link` leads from `source` to `target`.
    pub fn contains(&self, source: EntityId, link: Link, target: EntityId) -> bool {
        self.edges(source).binary_search(&Edge { link, target }).is_ok()
    }
}

fn rows<'e>(starts: &[u64], edges: &'e mut [Edge]) -> Vec<&'e mut [Edge]> {
    let mut rows: Vec<&mut [Edge]> = Vec::with_capacity(starts.len() - 1);
    let mut rest = edges;
    for bounds in starts.windows(2) {
        let (row, tail) = rest.split_at_mut((bounds[1] - bounds[0]) as usize);
        rows.push(row);
        rest = tail;
    }
    rows
}

fn drop_repeated_edges(starts: &mut [u64], edges: &mut Vec<Edge>) {
    let mut kept = 0;
    let mut row_start = 0;
    for row in 0..starts.len() - 1 {
        let row_end = starts[row + 1] as usize;
        let new_start = kept;
        for at in row_start..row_end {
            if kept == new_start || edges[kept - 1] != edges[at] {
                edges[kept] = edges[at];
                kept += 1;
            }
        }
        row_start = row_end;
        starts[row + 1] = kept as u64;
    }
    edges.truncate(kept);
    edges.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::RwLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// If it used the pool it would wait for ever, and so would those in the pool who wait for it.
    #[test]
    fn one_is_made_while_all_threads_of_the_pool_wait() {
        let facts: Vec<Triple> = (0..2000).map(|i| Triple::new(i % 700, 0, (i * 7) % 700)).collect();
        let (gate, waiting) = (RwLock::new(()), AtomicUsize::new(0));
        let closed = gate.write().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rayon::broadcast(|_| {
                    waiting.fetch_add(1, Ordering::SeqCst);
                    drop(gate.read());
                });
            });
            while waiting.load(Ordering::SeqCst) < rayon::current_num_threads() {
                std::thread::yield_now();
            }
            let (sender, made) = channel();
            let facts = &facts;
            scope.spawn(move || sender.send(Adjacency::on_this_thread(700, &[facts])));
            let made = made.recv_timeout(Duration::from_secs(60));
            drop(closed);
            let whole = Adjacency::new(700, &[facts]);
            let made = made.expect("it needs nobody of the pool");
            assert!((0..700).all(|entity| made.edges(EntityId(entity)) == whole.edges(EntityId(entity))));
        });
    }
}
