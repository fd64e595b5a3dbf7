//! The graph: neighbour lists, and for every link its pairs grouped by source.

use super::array::Array;
use super::mapped::{SectionReader, SectionWriter};
use super::{Adjacency, Edge, EntityId, GraphError, Link, Triple};
use std::sync::OnceLock;

/// The pairs `(source, target)` of one link, grouped by source: a compressed row per distinct source.
#[derive(Clone, Copy, Debug)]
pub struct LinkPairs<'a> {
    /// The entities that have the link, ascending.
    pub sources: &'a [EntityId],
    /// Row `i` of `targets` is `starts[i]..starts[i + 1]`; one entry more than `sources`.
    starts: &'a [u32],
    targets: &'a [EntityId],
}

impl<'a> LinkPairs<'a> {
    /// How many pairs the link has.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether no pair has the link.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The targets of the `i`-th distinct source, ascending.
    pub fn row(&self, i: usize) -> &'a [EntityId] {
        &self.targets[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    /// Where the link leads from `source`, ascending; empty if nowhere.
    pub fn from(&self, source: EntityId) -> &'a [EntityId] {
        match self.sources.binary_search(&source) {
            Ok(i) => self.row(i),
            Err(_) => &[],
        }
    }

    /// The distinct sources with their targets.
    pub fn rows(self) -> impl Iterator<Item = (EntityId, &'a [EntityId])> {
        self.sources.iter().enumerate().map(move |(i, &source)| (source, self.row(i)))
    }

    /// Every pair, ordered by source and target.
    pub fn pairs(self) -> impl Iterator<Item = (EntityId, EntityId)> + use<'a> {
        self.rows().flat_map(|(source, targets)| targets.iter().map(move |&target| (source, target)))
    }
}

/// The pairs of all links, one link after another.
#[derive(Clone, Debug)]
struct LinkIndex {
    /// The sources of link `l` are `rows[l]..rows[l + 1]`.
    rows: Array<u64>,
    /// The targets of link `l` are `pairs[l]..pairs[l + 1]`.
    pairs: Array<u64>,
    sources: Array<EntityId>,
    /// For every link, the starts of its rows within its own targets; one entry more than it has sources.
    starts: Array<u32>,
    targets: Array<EntityId>,
}

/// The facts as a graph with inverse edges, indexed by entity and by link. Duplicate facts count once.
#[derive(Clone, Debug)]
pub struct Graph {
    relations: usize,
    adjacency: Adjacency,
    /// Made on first use in a graph from a file.
    links: OnceLock<LinkIndex>,
}

impl Graph {
    /// The graph of `facts` over entities `0..entities` and relations `0..relations`.
    pub fn new(entities: usize, relations: usize, facts: &[Triple]) -> Self {
        let adjacency = Adjacency::new(entities, &[facts]);
        let links = LinkIndex::new(&adjacency, Link::count(relations)).into();
        Self { relations, adjacency, links }
    }

    /// Adds its arrays to a file.
    pub(super) fn write<'a>(&'a self, out: &mut SectionWriter<'a>) {
        self.adjacency.write(out);
        let LinkIndex { rows, pairs, sources, starts, targets } = self.link_index();
        out.add("links.rows", rows);
        out.add("links.pairs", pairs);
        out.add("links.sources", sources);
        out.add("links.starts", starts);
        out.add("links.targets", targets);
    }

    /// The graph that was [written](Self::write) with this many entities and relations.
    ///
    /// # Errors
    /// If the file holds something else.
    pub(super) fn mapped(
        (entities, relations): (usize, usize),
        file: &SectionReader,
    ) -> Result<Self, GraphError> {
        let adjacency = Adjacency::mapped(entities, file)?;
        let (rows, pairs): (Array<u64>, Array<u64>) = (file.array("links.rows")?, file.array("links.pairs")?);
        let (sources, targets) = (file.array("links.sources")?, file.array("links.targets")?);
        let index = LinkIndex { rows, pairs, sources, starts: file.array("links.starts")?, targets };
        match index.fits(Link::count(relations)) {
            true => Ok(Self { relations, adjacency, links: index.into() }),
            false => Err(file.damaged("one whose links have other rows")),
        }
    }

    /// How many entities there are, linked or not.
    pub fn entities(&self) -> usize {
        self.adjacency.entities()
    }

    /// How many relations there are, used or not.
    pub fn relations(&self) -> usize {
        self.relations
    }

    /// How many links there are, the reserved ones included.
    pub fn links(&self) -> usize {
        Link::count(self.relations)
    }

    /// How many distinct facts there are.
    pub fn facts(&self) -> usize {
        self.adjacency.edge_count() / 2
    }

    /// The neighbour lists.
    pub fn adjacency(&self) -> &Adjacency {
        &self.adjacency
    }

    /// All outgoing edges of `entity`, sorted by (link, target).
    #[inline]
    pub fn edges(&self, entity: EntityId) -> &[Edge] {
        self.adjacency.edges(entity)
    }

    /// The pairs of `link`, grouped by source. Reserved links have none.
    pub fn pairs(&self, link: Link) -> LinkPairs<'_> {
        self.link_index().pairs(link)
    }

    fn link_index(&self) -> &LinkIndex {
        self.links.get_or_init(|| LinkIndex::new(&self.adjacency, self.links()))
    }

    /// Where `link` leads from `entity`, ascending.
    pub fn targets(&self, entity: EntityId, link: Link) -> &[EntityId] {
        self.pairs(link).from(entity)
    }

    /// Whether `link` leads from `source` to `target`.
    pub fn contains(&self, source: EntityId, link: Link, target: EntityId) -> bool {
        self.adjacency.contains(source, link, target)
    }
}

impl LinkIndex {
    fn new(adjacency: &Adjacency, links: usize) -> Self {
        let (mut rows, mut pairs) = (vec![0u64; links + 1], vec![0u64; links + 1]);
        let entities = (0..adjacency.entities() as u32).map(EntityId);
        for entity in entities.clone() {
            for run in adjacency.edges(entity).chunk_by(|a, b| a.link == b.link) {
                let after = run[0].link.index() + 1;
                rows[after] += 1;
                pairs[after] += run.len() as u64;
            }
        }
        for link in 0..links {
            let here = u32::try_from(pairs[link + 1]).expect("fewer than 2^32 pairs a link");
            rows[link + 1] += rows[link];
            pairs[link + 1] = pairs[link] + u64::from(here);
        }
        let (all_rows, all_pairs) = (rows[links] as usize, pairs[links] as usize);
        let mut sources = vec![EntityId(0); all_rows];
        let mut starts = vec![0u32; all_rows + links];
        let mut targets = vec![EntityId(0); all_pairs];
        let (mut row, mut pair) = (rows.clone(), pairs.clone());
        for entity in entities {
            for run in adjacency.edges(entity).chunk_by(|a, b| a.link == b.link) {
                let link = run[0].link.index();
                let (at, first) = (row[link] as usize, pair[link] as usize);
                sources[at] = entity;
                for (target, edge) in targets[first..].iter_mut().zip(run) {
                    *target = edge.target;
                }
                row[link] += 1;
                pair[link] += run.len() as u64;
                // The end of this row, which is the start of the next.
                starts[at + link + 1] = (pair[link] - pairs[link]) as u32;
            }
        }
        Self {
            rows: rows.into(),
            pairs: pairs.into(),
            sources: sources.into(),
            starts: starts.into(),
            targets: targets.into(),
        }
    }

    /// Whether its arrays have the lengths that a graph with so many links has.
    fn fits(&self, links: usize) -> bool {
        let last = |ends: &[u64]| ends.last().map(|&end| end as usize);
        self.rows.len() == links + 1
            && self.pairs.len() == links + 1
            && last(&self.rows) == Some(self.sources.len())
            && last(&self.pairs) == Some(self.targets.len())
            && self.starts.len() == self.sources.len() + links
    }

    fn pairs(&self, link: Link) -> LinkPairs<'_> {
        let link = link.index();
        let rows = self.rows[link] as usize..self.rows[link + 1] as usize;
        let pairs = self.pairs[link] as usize..self.pairs[link + 1] as usize;
        LinkPairs {
            sources: &self.sources[rows.clone()],
            starts: &self.starts[rows.start + link..rows.end + link + 1],
            targets: &self.targets[pairs],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, RelationId};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn naive_edges(facts: &[Triple]) -> BTreeSet<(EntityId, Link, EntityId)> {
        facts
            .iter()
            .flat_map(|t| {
                [(t.head, Link::forward(t.relation), t.tail), (t.tail, Link::inverse_of(t.relation), t.head)]
            })
            .collect()
    }

    proptest! {
        #[test]
        fn every_index_says_what_the_set_of_edges_says(
            facts in prop::collection::vec((0u32..7, 0u32..3, 0u32..7), 0..50)
        ) {
            let facts: Vec<Triple> = facts.into_iter().map(|(h, r, t)| Triple::new(h, r, t)).collect();
            let graph = Graph::new(8, 4, &facts);
            let naive = naive_edges(&facts);
            prop_assert_eq!(graph.adjacency().edge_count(), naive.len());
            prop_assert_eq!(graph.facts(), facts.iter().collect::<BTreeSet<_>>().len());
            for source in (0..8).map(EntityId) {
                let row: Vec<(Link, EntityId)> =
                    naive.iter().filter(|e| e.0 == source).map(|e| (e.1, e.2)).collect();
                let ours: Vec<_> = graph.edges(source).iter().map(|e| (e.link, e.target)).collect();
                prop_assert_eq!(ours, row);
                for link in (0..Link::count(4) as u32).map(Link) {
                    let targets: Vec<EntityId> =
                        naive.iter().filter(|e| e.0 == source && e.1 == link).map(|e| e.2).collect();
                    prop_assert_eq!(graph.targets(source, link), targets.as_slice());
                    prop_assert_eq!(graph.adjacency().targets(source, link).collect::<Vec<_>>(), targets);
                    for target in (0..8).map(EntityId) {
                        prop_assert_eq!(
                            graph.contains(source, link, target),
                            naive.contains(&(source, link, target))
                        );
                    }
                }
            }
        }

        #[test]
        fn the_pairs_of_a_link_are_those_of_its_reverse_turned_round(
            facts in prop::collection::vec((0u32..5, 0u32..2, 0u32..5), 0..30)
        ) {
            let facts: Vec<Triple> = facts.into_iter().map(|(h, r, t)| Triple::new(h, r, t)).collect();
            let graph = Graph::new(5, 2, &facts);
            for relation in (0..2).map(RelationId) {
                let link = Link::new(relation, Direction::Forward);
                let forward: BTreeSet<_> = graph.pairs(link).pairs().collect();
                let turned: BTreeSet<_> = graph.pairs(link.reversed()).pairs().map(|(a, b)| (b, a)).collect();
                prop_assert_eq!(forward, turned);
            }
        }
    }
}
