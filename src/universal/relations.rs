//! The graph of relations: which links share entities and pairs, and how often.
//!
//! A *link* is a relation in one of its directions; link `a ^ 1` is the inverse of link `a`. From the facts alone:
//! - `shared[a, b]` is the number of entities that have both an edge by `a` and one by `b`. Divided by the number of
//!   entities that have `a`, it is the share of a's heads that are heads of `b`. Since the heads of `a ^ 1` are the
//!   tails of `a`, the one matrix answers for heads and tails in all four combinations.
//! - `together[a, b]` is the number of pairs that both `a` and `b` link. Divided by the number of pairs of `a`, it is
//!   the confidence of the rule "what `a` links, `b` links too".
//!
//! The network reads ten kinds of edges from this (Galkin et al., *Towards foundation models for knowledge graph
//! reasoning*, 2024, have four, without weights): the four shares, the confidence and its transpose, and the four
//! again as yes or no, averaged over the neighbours. Those derived by inverses are not stored.
//!
//! Costs are bounded. A link keeps its strongest neighbours, as many as [`neighbours`] says: all of them in a graph
//! of up to 512 links. At an entity with very many links, each is counted with those next to it in a fixed shuffled
//! order instead of with all, so that an entity with 400,000 links costs no more than many small ones.

use crate::graph::{EntityId, Graph, Link, LinkPairs};
use rayon::prelude::*;

/// The most neighbours of a link, in a graph with few links.
const MOST_NEIGHBOURS: usize = 512;
/// The fewest that a link may keep, in a graph with very many links.
const FEWEST_NEIGHBOURS: usize = 8;
/// About how many neighbours all links keep together.
const ENTRIES: usize = 1 << 20;
/// Up to this many links of one entity, or of one pair, all are counted with all.
const FEW: usize = 1024;
/// With how many others each link of an entity with very many is counted at least.
const WINDOW: usize = 64;

/// The most neighbours that each of `links` links keeps.
pub fn neighbours(links: usize) -> usize {
    (ENTRIES / links.max(1)).clamp(FEWEST_NEIGHBOURS, MOST_NEIGHBOURS)
}

/// A sparse matrix over links, on the host: row `r` has the entries `starts[r]..starts[r + 1]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkMatrix {
    /// Where the entries of each row start; one entry more than rows.
    pub starts: Vec<u32>,
    /// The link of each entry.
    pub links: Vec<u32>,
    /// Its weight.
    pub weights: Vec<f32>,
}

/// The graph of relations of a graph. Links are numbered as in an edge index: `2 r` is relation `r`, `2 r + 1` its inverse.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationGraph {
    links: usize,
    /// Two rows for every link `b`: row `2 b` weighs every neighbour `a` by the share of a's heads that are heads of
    /// `b`, row `2 b + 1` all of them alike, with sum 1.
    pub heads: LinkMatrix,
    /// Two rows for every link `b`: row `2 b` weighs every other link `a` by the share of a's pairs that `b` has too,
    /// row `2 b + 1` by the share of b's pairs that `a` has too.
    pub pairs: LinkMatrix,
}

impl RelationGraph {
    /// The relations of `graph`.
    pub fn new(graph: &Graph) -> RelationGraph {
        let links = 2 * graph.relations();
        RelationGraph::bounded(graph, neighbours(links), FEW)
    }

    /// The same with at most `most` neighbours for each link; an entity with more than `few` links has each of them
    /// counted with some of the others only.
    fn bounded(graph: &Graph, most: usize, few: usize) -> RelationGraph {
        let links = 2 * graph.relations();
        let at_entities = LinkSets::of_entities(graph, few);
        // How many heads a link has: it is counted once at each of them.
        let sizes = sizes(graph, |pairs| pairs.sources.len());
        let count = |link: u32, counter: &mut Counter| {
            for &entity in graph.pairs(link_of(link)).sources {
                at_entities.count(entity.index(), link, counter);
            }
        };
        let heads = two_rows(links, count, |_, counts| {
            let shares = counts.iter().map(|&(other, count)| (other, count as f32 / sizes[other as usize]));
            let shares = strongest(shares.collect(), most);
            let alike = (shares.len() as f32).recip();
            let any = shares.iter().map(|&(other, _)| (other, alike)).collect();
            [shares, any]
        });
        let of_pairs = LinkSets::of_pairs(graph, few);
        let sizes = self::sizes(graph, |pairs| pairs.len());
        let count = |link: u32, counter: &mut Counter| {
            for (from, to) in graph.pairs(link_of(link)).pairs() {
                of_pairs.count(of_pairs.pair(from, to), link, counter);
            }
        };
        let pairs = two_rows(links, count, |link, counts| {
            let others = counts.iter().filter(|&&(other, _)| other != link);
            let theirs = others.clone().map(|&(other, count)| (other, count as f32 / sizes[other as usize]));
            let ours = others.map(|&(other, count)| (other, count as f32 / sizes[link as usize]));
            [strongest(theirs.collect(), most), strongest(ours.collect(), most)]
        });
        RelationGraph { links, heads, pairs }
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.links
    }
}

/// A size of every link, at least 1.
fn sizes(graph: &Graph, size: impl Fn(LinkPairs<'_>) -> usize) -> Vec<f32> {
    let links = 2 * graph.relations() as u32;
    (0..links).map(|link| size(graph.pairs(link_of(link))).max(1) as f32).collect()
}

/// The link behind a number.
pub(super) fn link_of(kind: u32) -> Link {
    Link(kind + Link::RESERVED as u32)
}

/// The number of a link.
pub(super) fn kind_of(link: Link) -> u32 {
    link.0 - Link::RESERVED as u32
}

/// The distinct links at each of many places: the entities, or the pairs that have an edge.
struct LinkSets {
    starts: Vec<u32>,
    /// The links of each place; where they are many, in shuffled order.
    links: Vec<u32>,
    few: usize,
    /// For pairs: the first pair of each entity, and the target of each pair.
    firsts: Vec<u32>,
    targets: Vec<u32>,
}

impl LinkSets {
    fn of_entities(graph: &Graph, few: usize) -> LinkSets {
        let (mut starts, mut links) = (vec![0], Vec::new());
        for entity in (0..graph.entities() as u32).map(EntityId) {
            let first = links.len();
            for edge in graph.edges(entity) {
                let kind = kind_of(edge.link);
                if links.len() == first || links.last() != Some(&kind) {
                    links.push(kind);
                }
            }
            starts.push(links.len() as u32);
        }
        LinkSets { starts, links, few, firsts: Vec::new(), targets: Vec::new() }.shuffled()
    }

    fn of_pairs(graph: &Graph, few: usize) -> LinkSets {
        let mut sets =
            LinkSets { starts: vec![0], links: Vec::new(), few, firsts: vec![0], targets: Vec::new() };
        let mut by_target: Vec<(u32, u32)> = Vec::new();
        for entity in (0..graph.entities() as u32).map(EntityId) {
            by_target.clear();
            by_target.extend(graph.edges(entity).iter().map(|edge| (edge.target.0, kind_of(edge.link))));
            by_target.sort_unstable();
            for pair in by_target.chunk_by(|left, right| left.0 == right.0) {
                sets.targets.push(pair[0].0);
                sets.links.extend(pair.iter().map(|&(_, kind)| kind));
                sets.starts.push(sets.links.len() as u32);
            }
            sets.firsts.push(sets.targets.len() as u32);
        }
        sets.shuffled()
    }

    /// Puts the links of places with many into a fixed order in which neighbours have nothing to do with each other.
    fn shuffled(mut self) -> LinkSets {
        for pair in self.starts.windows(2) {
            let place = &mut self.links[pair[0] as usize..pair[1] as usize];
            if place.len() > self.few {
                place.sort_unstable_by_key(|&link| mixed(link));
            }
        }
        self
    }

    /// The place of a pair that has an edge.
    fn pair(&self, from: EntityId, to: EntityId) -> usize {
        let (first, end) = (self.firsts[from.index()] as usize, self.firsts[from.index() + 1] as usize);
        first + self.targets[first..end].partition_point(|&target| target < to.0)
    }

    /// Counts the links that `link` meets at `place`, itself included.
    fn count(&self, place: usize, link: u32, counter: &mut Counter) {
        let all = &self.links[self.starts[place] as usize..self.starts[place + 1] as usize];
        if all.len() <= self.few {
            return all.iter().for_each(|&other| counter.add(other));
        }
        // As many on either side in the circle of all links: if `a` is counted with `b`, `b` is counted with `a`.
        let at = all.partition_point(|&other| mixed(other) < mixed(link));
        let side = (WINDOW.max(self.few * self.few / all.len()) / 2).min((all.len() - 1) / 2);
        for step in 0..=2 * side {
            counter.add(all[(at + all.len() - side + step) % all.len()]);
        }
    }
}

/// A number that looks random, different for every link.
fn mixed(link: u32) -> u64 {
    // An odd factor and a shift by more than half the bits: both can be undone, so no two links share a number.
    let spread = (u64::from(link) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread ^ (spread >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Counts links; only those that were counted are visited and cleared.
struct Counter {
    counts: Vec<u32>,
    met: Vec<u32>,
}

impl Counter {
    #[inline]
    fn add(&mut self, link: u32) {
        let count = &mut self.counts[link as usize];
        if *count == 0 {
            self.met.push(link);
        }
        *count += 1;
    }

    /// The links that were counted, ascending, each with its count. Begins anew.
    fn take(&mut self) -> Vec<(u32, u32)> {
        self.met.sort_unstable();
        let counts = &mut self.counts;
        self.met.drain(..).map(|link| (link, std::mem::take(&mut counts[link as usize]))).collect()
    }
}

/// The `most` heaviest of `entries`, by link; of equally heavy ones, those with the lowest numbers.
fn strongest(mut entries: Vec<(u32, f32)>, most: usize) -> Vec<(u32, f32)> {
    if entries.len() > most {
        let heavier = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        entries.select_nth_unstable_by(most, heavier);
        entries.truncate(most);
        entries.sort_unstable_by_key(|&(link, _)| link);
    }
    entries
}

/// The matrix with the two rows that `rows_of` makes of what `count` counts for every link.
fn two_rows(
    links: usize,
    count: impl Fn(u32, &mut Counter) + Sync,
    rows_of: impl Fn(u32, &[(u32, u32)]) -> [Vec<(u32, f32)>; 2] + Sync,
) -> LinkMatrix {
    let counter = || Counter { counts: vec![0; links], met: Vec::new() };
    let of_link = |counter: &mut Counter, link: u32| {
        count(link, counter);
        rows_of(link, &counter.take())
    };
    let all = (0..links as u32).into_par_iter().with_min_len(links / 64 + 1);
    let all: Vec<[Vec<(u32, f32)>; 2]> = all.map_init(counter, of_link).collect();
    let mut matrix = LinkMatrix { starts: vec![0], ..LinkMatrix::default() };
    for row in all.iter().flatten() {
        matrix.links.extend(row.iter().map(|&(other, _)| other));
        matrix.weights.extend(row.iter().map(|&(_, weight)| weight));
        matrix.starts.push(matrix.links.len() as u32);
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Triple;
    use std::collections::HashSet;

    /// A dense version by sets: share of a's heads among those of b, and of a's pairs among those of b.
    fn dense(graph: &Graph) -> [Vec<Vec<f32>>; 2] {
        let links = 2 * graph.relations() as u32;
        let pairs: Vec<HashSet<(EntityId, EntityId)>> =
            (0..links).map(|link| graph.pairs(link_of(link)).pairs().collect()).collect();
        let heads: Vec<HashSet<EntityId>> =
            pairs.iter().map(|pairs| pairs.iter().map(|pair| pair.0).collect()).collect();
        fn share<T: std::hash::Hash + Eq>(sets: &[HashSet<T>]) -> Vec<Vec<f32>> {
            let of =
                |a: &HashSet<T>, b: &HashSet<T>| a.intersection(b).count() as f32 / a.len().max(1) as f32;
            sets.iter().map(|a| sets.iter().map(|b| of(a, b)).collect()).collect()
        }
        [share(&heads), share(&pairs)]
    }

    fn row(matrix: &LinkMatrix, row: usize, links: usize) -> Vec<f32> {
        let mut values = vec![0.0; links];
        for entry in matrix.starts[row] as usize..matrix.starts[row + 1] as usize {
            values[matrix.links[entry] as usize] = matrix.weights[entry];
        }
        values
    }

    fn facts(entities: u32, relations: u32, count: u32) -> Vec<Triple> {
        let draw = |at: u32, of: u32| (mixed(at) >> 20) as u32 % of;
        (0..count)
            .map(|at| Triple::new(draw(at, entities), draw(at + 7_000, relations), draw(3 * at, 9)))
            .collect()
    }

    #[test]
    fn shares_are_those_of_sets() {
        let graph = Graph::new(40, 6, &facts(40, 6, 150));
        let relations = RelationGraph::new(&graph);
        let ([heads, pairs], links) = (dense(&graph), 12);
        for b in 0..links {
            let column = |matrix: &[Vec<f32>]| matrix.iter().map(|row| row[b]).collect::<Vec<f32>>();
            let shares = column(&heads);
            assert_eq!(row(&relations.heads, 2 * b, links), shares);
            let met = shares.iter().filter(|&&share| share > 0.0).count().max(1) as f32;
            let any: Vec<f32> =
                shares.iter().map(|&share| if share > 0.0 { 1.0 / met } else { 0.0 }).collect();
            assert_eq!(row(&relations.heads, 2 * b + 1, links), any);
            let without_self = |mut row: Vec<f32>| {
                row[b] = 0.0;
                row
            };
            assert_eq!(row(&relations.pairs, 2 * b, links), without_self(column(&pairs)));
            assert_eq!(row(&relations.pairs, 2 * b + 1, links), without_self(pairs[b].clone()));
        }
    }

    #[test]
    fn a_link_keeps_its_strongest_neighbours() {
        let graph = Graph::new(40, 6, &facts(40, 6, 150));
        let (all, few) = (RelationGraph::bounded(&graph, 99, FEW), RelationGraph::bounded(&graph, 3, FEW));
        for at in 0..12 {
            let (all, few) = (row(&all.heads, 2 * at, 12), row(&few.heads, 2 * at, 12));
            let kept: Vec<f32> = few.iter().copied().filter(|&share| share > 0.0).collect();
            assert!(kept.len() <= 3);
            let weakest = kept.iter().copied().fold(f32::MAX, f32::min);
            for (all, few) in all.iter().zip(&few) {
                assert!(if *few > 0.0 { all == few } else { *all <= weakest });
            }
        }
        assert_eq!((neighbours(474), neighbours(400_000)), (512, 8));
    }

    #[test]
    fn an_entity_with_very_many_relations_is_counted_in_part() {
        // Entity 0 has an edge of every relation.
        let many = 30_000;
        let facts: Vec<Triple> = (0..many).map(|at| Triple::new(0, at, 1 + at % 500)).collect();
        let graph = Graph::new(501, many as usize, &facts);
        let relations = RelationGraph::new(&graph);
        assert_eq!(relations, RelationGraph::new(&graph), "the same every time");
        let most = 2 * 2 * many as usize * neighbours(2 * many as usize);
        assert!(relations.heads.links.len() <= most);
        for row in (0..2 * 2 * many as usize).step_by(2_001) {
            let entries = relations.heads.starts[row] as usize..relations.heads.starts[row + 1] as usize;
            assert!(entries.len() > 10, "every link has neighbours");
            assert!(relations.heads.weights[entries].iter().all(|&weight| weight > 0.0 && weight <= 1.0));
        }
    }
}
