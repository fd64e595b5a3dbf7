//! Counts exactly what cyclic bodies predict, for all heads at once.
//!
//! A body is walked from each of its sources `x`; the distinct ends `y` are its predictions, and the links of the
//! graph between `x` and `y` tell for which heads each prediction is correct. One pass over the body therefore serves
//! every head relation and, through the inverse links, the reversed body as well. Bodies that differ only in their
//! last link share the walk up to it.
//!
//! ```text
//!            prefix                 last            the graph
//!   x ──a──▶ · ──b──▶ {nodes} ──c──▶ {y₁ y₂ …}      x ──h──▶ y₁      the body a,b,c predicts y₁ and y₂;
//!            the frontier of x      predicted                        for the head h, y₁ is correct
//! ```
//!
//! So for each source there are three steps: walk the prefix to its frontier, take every last link from there, and look
//! up each distinct end among the neighbours of the source. A pair `(x, y)` counts once, however many paths join it.
//!
//! If a body has too many groundings, only a random part of its sources is walked and the counts are scaled up:
//! unbiased, and marked as sampled.

use super::Map;
use super::clause::{Counts, Rule, ScoredRule, reversed_path};
use super::frontier::{Frontier, Marks, Places};
use super::reach::{Neighbour, Reach};
use ruleguider_graph::{Direction, EntityId, Link};
use std::ops::Range;

/// The number of steps after which one source has too many groundings. Only bodies of four or more links reach it;
/// they are then not counted at all. Chosen by hand.
pub(super) const STEPS_FROM_ONE_SOURCE: u64 = 10_000_000;

/// With more links than this, those correct for a body are few among them and are kept in a hash table.
const DENSE_LINKS: usize = 1 << 12;

/// Steps between two looks at the clock: some milliseconds of work.
const STEPS_BETWEEN_LOOKS: usize = 1 << 17;

/// How often each link was correct.
pub(super) enum Correct {
    /// One count per link.
    Dense(Vec<u32>),
    /// Only the links that were correct at least once.
    Sparse(Map<Link, u32>),
}

impl Correct {
    fn new(links: usize) -> Self {
        if links <= DENSE_LINKS { Self::Dense(vec![0; links]) } else { Self::Sparse(Map::default()) }
    }

    #[inline]
    fn add(&mut self, link: Link) {
        match self {
            Self::Dense(counts) => counts[link.index()] += 1,
            Self::Sparse(counts) => *counts.entry(link).or_default() += 1,
        }
    }

    /// How often `link` was correct.
    pub(crate) fn of(&self, link: Link) -> u32 {
        match self {
            Self::Dense(counts) => counts[link.index()],
            Self::Sparse(counts) => counts.get(&link).copied().unwrap_or(0),
        }
    }

    /// The links that were correct at least once, ascending, and how often.
    pub(crate) fn all(&self) -> Vec<(Link, u32)> {
        match self {
            Self::Dense(counts) => {
                let links = (0..).map(Link).zip(counts.iter().copied());
                links.filter(|&(_, count)| count > 0).collect()
            }
            Self::Sparse(counts) => {
                let mut all: Vec<(Link, u32)> = counts.iter().map(|(&link, &count)| (link, count)).collect();
                all.sort_unstable();
                all
            }
        }
    }
}

/// Looks at the clock from time to time, measured by the work done in between.
struct Patience<'a> {
    over: &'a dyn Fn() -> bool,
    steps: usize,
    ended: bool,
}

impl Patience<'_> {
    /// Whether it is time to stop; `steps` is the work since the last call.
    #[inline]
    fn ends(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_add(steps);
        if self.steps >= STEPS_BETWEEN_LOOKS {
            self.steps = 0;
            self.ended = self.ended || (self.over)();
        }
        self.ended
    }
}

/// What one body predicts.
pub(super) struct Tally {
    /// The last link of the body.
    pub last: Link,
    /// How many distinct pairs it predicts.
    pub predicted: u64,
    /// How many of those pairs each link also joins.
    pub correct: Correct,
}

/// Which last links to count after a prefix.
#[derive(Clone, Copy)]
pub(super) enum Lasts<'a> {
    /// Every link that makes a canonical body.
    All,
    /// These, ascending.
    These(&'a [Link]),
}

/// How many neighbouring sources stay together, if there are enough: walks from them share caches.
const TOGETHER: usize = 256;
/// Every piece has at least this many blocks, if there are enough sources: the costs of sources differ.
const BLOCKS: usize = 32;

/// One of several pieces into which the sources are divided, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub index: u64,
    pub count: u64,
}

impl Piece {
    /// All sources.
    pub(crate) const WHOLE: Piece = Piece { index: 0, count: 1 };

    /// Its ranges within `all`: blocks, dealt round-robin.
    fn places(self, all: usize) -> impl Iterator<Item = Range<usize>> {
        let (index, count) = (self.index as usize, self.count as usize);
        let block = if count == 1 { all.max(1) } else { (all / (count * BLOCKS)).clamp(1, TOGETHER) };
        let starts = (index * block..all).step_by(count * block);
        starts.map(move |start| start..(start + block).min(all))
    }
}

/// SplitMix64's finaliser: bits that are independent of neighbouring sources.
fn mixed(seed: u64, source: EntityId) -> u64 {
    let mut bits = seed ^ (u64::from(source.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Which sources are walked: all, a random part, or a piece of either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// The share of sources walked, from 0 to 1.
    pub share: f64,
    pub seed: u64,
    pub piece: Piece,
}

impl Part {
    /// All sources.
    pub(crate) const WHOLE: Part = Part { share: 1.0, seed: 0, piece: Piece::WHOLE };

    /// The members of `sources` that are walked.
    fn of(self, sources: &[EntityId]) -> impl Iterator<Item = EntityId> {
        let all = self.share >= 1.0;
        let drawn =
            move |&source: &EntityId| all || (mixed(self.seed, source) as f64) < self.share * u64::MAX as f64;
        self.piece.places(sources.len()).flat_map(|places| &sources[places]).copied().filter(drawn)
    }

    fn scaled(self, count: u64) -> u64 {
        if self.share >= 1.0 { count } else { (count as f64 / self.share).round() as u64 }
    }
}

/// Scratch memory of one thread.
pub(super) struct Scratch {
    marks: Marks,
    places: Places<'static>,
    neighbours: Neighbours,
    frontier: Frontier,
    /// For the last links of the current prefix: the index of their tally, plus one.
    slots: Vec<u32>,
    /// Indices into the frontier by last link, while all last links are counted.
    buckets: Vec<Vec<u32>>,
    given_up: bool,
}

impl Scratch {
    /// Scratch memory for the graph of `reach`.
    pub(crate) fn new(reach: &Reach) -> Self {
        Self::with_limit(reach, STEPS_FROM_ONE_SOURCE)
    }

    /// The same, without a limit on steps.
    pub(crate) fn unbounded(reach: &Reach) -> Self {
        Self::with_limit(reach, u64::MAX)
    }

    fn with_limit(reach: &Reach, limit: u64) -> Self {
        let (entities, links) = (reach.graph().entities(), reach.graph().links());
        Self {
            marks: Marks::new(entities),
            places: Places::with_limit(entities, limit),
            neighbours: Neighbours::new(entities),
            frontier: Frontier::default(),
            slots: vec![0; links],
            buckets: vec![Vec::new(); links],
            given_up: false,
        }
    }

    /// Whether the last count was given up because one source had too many groundings. Nothing was counted then.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// Counts the bodies `prefix` + last for all `lasts`. A last link that never completes a path may be missing.
    ///
    /// Stops early, with meaningless counts, once `over` returns true.
    pub(crate) fn count(
        &mut self,
        reach: &Reach,
        prefix: &[Link],
        lasts: Lasts<'_>,
        part: Part,
        over: &dyn Fn() -> bool,
    ) -> Vec<Tally> {
        let mut tallies: Vec<Tally> = Vec::new();
        // Only what has an edge by the first link can begin a path. Without a prefix, that is the last link if there is
        // just one; with several, each has sources of its own.
        let sources = match (prefix.first(), lasts) {
            (Some(&first), _) => reach.sources(first),
            (None, Lasts::These(&[only])) => reach.sources(only),
            (None, _) => &(0..reach.graph().entities() as u32).map(EntityId).collect::<Vec<_>>(),
        };
        let mut patience = Patience { over, steps: 0, ended: false };
        self.given_up = false;
        for source in part.of(sources) {
            // A frontier remembers how each node was reached, so that a path does not come back to itself.
            self.frontier.walk(reach, source, prefix, &mut self.places);
            self.given_up = self.places.has_given_up();
            // Each source costs something even if it leads nowhere, hence the 64.
            if self.given_up || patience.ends(self.places.take_work().saturating_add(64)) {
                break;
            }
            if self.frontier.is_empty() {
                continue;
            }
            match lasts {
                Lasts::These(lasts) => {
                    for &last in lasts {
                        self.close(reach, source, last, &mut tallies);
                    }
                }
                Lasts::All => self.close_all(reach, source, prefix, &mut tallies, &mut patience),
            }
        }
        // Emptied entry by entry: a prefix touches few of the links, and there are many prefixes.
        for tally in &tallies {
            self.slots[tally.last.index()] = 0;
        }
        // A body counted for some of its sources would look more reliable, or less, than it is.
        if self.given_up {
            tallies.clear();
        }
        tallies
    }

    /// The index of the tally of `last` in `tallies`.
    fn tally(slots: &mut [u32], tallies: &mut Vec<Tally>, last: Link) -> usize {
        if slots[last.index()] == 0 {
            tallies.push(Tally { last, predicted: 0, correct: Correct::new(slots.len()) });
            slots[last.index()] = tallies.len() as u32;
        }
        slots[last.index()] as usize - 1
    }

    fn close(&mut self, reach: &Reach, source: EntityId, last: Link, tallies: &mut Vec<Tally>) {
        let Self { marks, neighbours, frontier, slots, .. } = self;
        let edges = reach.neighbours(source);
        // Most sources lead nowhere by most last links: a tally and the neighbours are made at the first end found.
        let mut slot = None;
        frontier.step(reach, last, marks, |target| {
            let slot = *slot.get_or_insert_with(|| {
                neighbours.turn_to(source, reach);
                Self::tally(slots, tallies, last)
            });
            tallies[slot].predicted += 1;
            neighbours.note(edges, target, &mut tallies[slot].correct);
        });
    }

    /// As [`close`](Self::close) for every last link, scanning the rows of the frontier only once.
    fn close_all(
        &mut self,
        reach: &Reach,
        source: EntityId,
        prefix: &[Link],
        tallies: &mut Vec<Tally>,
        patience: &mut Patience<'_>,
    ) {
        // First sort the frontier's nodes by the last links that leave them: a bucket has the places of the nodes with
        // an edge by its link. The rows of the graph are then read once, not once per link.
        let mut touched: Vec<Link> = Vec::new();
        let mut previous = Link::PAD;
        for (place, &node) in self.frontier.nodes().iter().enumerate() {
            let edges = reach.graph().edges(node);
            if patience.ends(edges.len()) {
                break;
            }
            for edge in edges {
                // A row is sorted by link, so the edges by one link stand together.
                if edge.link == previous {
                    continue;
                }
                previous = edge.link;
                if !is_canonical(prefix, edge.link) {
                    continue;
                }
                let bucket = &mut self.buckets[edge.link.index()];
                if bucket.is_empty() {
                    touched.push(edge.link);
                }
                bucket.push(place as u32);
            }
            previous = Link::PAD;
        }
        if touched.is_empty() {
            return;
        }
        // Then take the links one by one, so that one set of marks tells which ends were already predicted.
        self.neighbours.turn_to(source, reach);
        let edges = reach.neighbours(source);
        for last in touched {
            let mut bucket = std::mem::take(&mut self.buckets[last.index()]);
            if patience.ends(bucket.len()) {
                // Remaining entries must not be counted for the next source.
                bucket.clear();
            }
            let slot = Self::tally(&mut self.slots, tallies, last);
            let tally = &mut tallies[slot];
            self.marks.clear();
            for &place in &bucket {
                let node = self.frontier.nodes()[place as usize];
                for &target in reach.targets(last, node) {
                    if self.frontier.allows(place as usize, target, reach.distinct())
                        && self.marks.mark(target)
                    {
                        tally.predicted += 1;
                        self.neighbours.note(edges, target, &mut tally.correct);
                    }
                }
            }
            bucket.clear();
            self.buckets[last.index()] = bucket;
        }
    }
}

/// Whether `prefix` + `last` is the one of the two ways to write its body that is counted. Read from its other end, a path
/// `a, b, c` is `c⁻¹, b⁻¹, a⁻¹`; the smaller of the two lists of links stands for both.
#[inline]
pub(super) fn is_canonical(prefix: &[Link], last: Link) -> bool {
    // The first links of the two ways nearly always decide.
    match prefix.first() {
        Some(&first) if first != last.reversed() => first < last.reversed(),
        _ => is_first_way(prefix, last),
    }
}

/// The same, by comparing the two ways link by link.
fn is_first_way(prefix: &[Link], last: Link) -> bool {
    let body = prefix.iter().copied().chain([last]);
    let turned = [last.reversed()].into_iter().chain(prefix.iter().rev().map(|link| link.reversed()));
    body.le(turned)
}

/// The links between one entity and each of its neighbours. One bit for each entity answers the frequent question, whether
/// an end is a neighbour at all; the list of edges, sorted by target, is searched only for those that are.
struct Neighbours {
    of: Option<EntityId>,
    is: Vec<u64>,
}

impl Neighbours {
    fn new(entities: usize) -> Self {
        Self { of: None, is: vec![0; entities.div_ceil(64)] }
    }

    /// Loads the neighbours of `source`.
    fn turn_to(&mut self, source: EntityId, reach: &Reach) {
        if self.of == Some(source) {
            return;
        }
        // Words are cleared whole: all of their bits belong to the entity that is left.
        if let Some(last) = self.of {
            for &Neighbour { target, .. } in reach.neighbours(last) {
                self.is[target.index() / 64] = 0;
            }
        }
        self.of = Some(source);
        for &Neighbour { target, .. } in reach.neighbours(source) {
            self.is[target.index() / 64] |= 1 << (target.0 % 64);
        }
    }

    /// Adds one to every link that leads to `target`.
    #[inline]
    fn note(&self, edges: &[Neighbour], target: EntityId, correct: &mut Correct) {
        if self.is[target.index() / 64] >> (target.0 % 64) & 1 == 1 {
            let from = edges.partition_point(|edge| edge.target < target);
            for edge in edges[from..].iter().take_while(|edge| edge.target == target) {
                correct.add(edge.link);
            }
        }
    }
}

/// The thresholds for keeping a rule.
#[derive(Clone, Debug)]
pub(super) struct Worth {
    pub support: u64,
    pub confidence: f64,
    pub unseen: f64,
    /// For every link, whether it may be a head.
    pub heads: Vec<bool>,
}

impl Worth {
    /// Whether a rule with these counts is kept.
    pub(crate) fn holds(&self, counts: Counts) -> bool {
        counts.correct >= self.support && counts.confidence(self.unseen) >= self.confidence
    }

    /// Appends the rules of a counted body.
    pub(crate) fn rules(&self, prefix: &[Link], tally: &Tally, part: Part, out: &mut Vec<ScoredRule>) {
        let body: Vec<Link> = prefix.iter().copied().chain([tally.last]).collect();
        let turned = reversed_path(&body);
        let predicted = part.scaled(tally.predicted);
        for (head, correct) in tally.correct.all() {
            // "h ⇐ h", and a body that reads the same from both ends, whose rules for h and h⁻¹ are one.
            let says_nothing = body == [head];
            let said_forward = turned == body && head.direction() == Direction::Inverse;
            let enough = u64::from(correct) >= self.support;
            let counts =
                Counts { predicted, correct: part.scaled(u64::from(correct)), sampled: part.share < 1.0 };
            if self.heads[head.index()] && !says_nothing && enough && !said_forward && self.holds(counts) {
                out.push(ScoredRule { rule: Rule::cyclic(head, &body), counts });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_links_decide_as_all_links_do(
            prefix in prop::collection::vec(3u32..9, 0..4),
            last in 3u32..9,
        ) {
            let prefix: Vec<Link> = prefix.into_iter().map(Link).collect();
            prop_assert_eq!(is_canonical(&prefix, Link(last)), is_first_way(&prefix, Link(last)));
        }

        #[test]
        fn every_source_is_in_one_piece_and_drawn_or_not_whatever_the_piece(
            all in 0u32..3000,
            count in 1u64..20,
            share in 0.1f64..1.5,
        ) {
            let sources: Vec<EntityId> = (0..all).map(|source| EntityId(3 * source)).collect();
            let part = Part { share, seed: 7, piece: Piece::WHOLE };
            let whole: Vec<EntityId> = part.of(&sources).collect();
            prop_assert!(share < 1.0 || whole == sources);
            let mut together = Vec::new();
            for index in 0..count {
                let piece = Piece { index, count };
                let held: usize = piece.places(sources.len()).map(|places| places.len()).sum();
                prop_assert!(held.abs_diff(sources.len() / count as usize) <= TOGETHER);
                together.extend(Part { piece, ..part }.of(&sources));
            }
            together.sort_unstable();
            prop_assert_eq!(together, whole);
        }
    }
}
