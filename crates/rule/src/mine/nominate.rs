//! What is worth counting: random walks that close on a fact nominate the body they followed.
//!
//! A walk takes all but the last link of a body; then all ways to close it are found together, as the common neighbours
//! of its two ends. A closing is weighted by how specific its last link is: one of three targets counts a third. Sums
//! are kept in whole numbers, so that they do not depend on the order in which threads add them.

use crate::Map;
use crate::clause::reversed_path;
use crate::count::is_canonical;
use crate::reach::{Neighbour, Reach};
use bytemuck::{Pod, Zeroable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use ruleguider_graph::{EntityId, Link};

/// The weight of a closing whose last link has one target.
const WHOLE: u64 = 1 << 16;
/// Walks that share one random stream.
const CHUNK: u64 = 1024;
/// The weight of the typical yield, in edges, when it is averaged with that of one prefix. Chosen by hand: about what
/// a few walks see. It only affects the order in which bodies are counted, not their counts.
const PRIOR: f64 = 2000.0;

/// What the walks say about one prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Promise {
    /// Walks that followed it.
    pub walks: u64,
    /// Closings found after it.
    pub hits: u64,
    /// Their total weight, in units of [`WHOLE`].
    worth: u64,
    /// Edges at the ends of those walks: an estimate of the counting cost.
    edges: u64,
}

impl Promise {
    fn add(&mut self, other: Promise) {
        self.walks += other.walks;
        self.hits += other.hits;
        self.worth += other.worth;
        self.edges += other.edges;
    }

    /// The expected yield per work. Prefixes with few observations are shrunk towards `typical`.
    pub(crate) fn density(&self, typical: f64) -> f64 {
        (self.worth as f64 + PRIOR * typical) / (self.edges as f64 + PRIOR)
    }
}

/// The yield per work over all of `promises`.
pub(super) fn typical(promises: impl Iterator<Item = Promise>) -> f64 {
    let mut all = Promise::default();
    promises.for_each(|promise| all.add(promise));
    all.worth as f64 / all.edges.max(1) as f64
}

/// All prefixes that walks have followed.
pub(super) struct Nominations {
    length: usize,
    seed: u64,
    chunks: u64,
    promises: Map<Vec<Link>, Promise>,
}

impl Nominations {
    /// No nominations yet, for bodies of `length` links.
    pub(crate) fn new(length: usize, seed: u64) -> Self {
        Self { length, seed, chunks: 0, promises: Map::default() }
    }

    /// The statistics of `prefix`.
    pub(crate) fn promise(&self, prefix: &[Link]) -> Option<Promise> {
        self.promises.get(prefix).copied()
    }

    /// All nominated prefixes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Vec<Link>, Promise)> {
        self.promises
            .iter()
            .filter(|(_, promise)| promise.hits > 0)
            .map(|(prefix, &promise)| (prefix, promise))
    }

    /// The yield per work over all walks.
    pub(crate) fn typical(&self) -> f64 {
        typical(self.promises.values().copied())
    }

    /// How many links the bodies have.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Makes `walks` more walks.
    pub(crate) fn walk(&mut self, reach: &Reach, walks: u64, over: &(dyn Fn() -> bool + Sync)) {
        let chunks = walks.div_ceil(CHUNK);
        let first = self.chunks;
        let found: Vec<Map<Vec<Link>, Promise>> = (first..first + chunks)
            .into_par_iter()
            .fold(Map::default, |mut promises, chunk| {
                if !over() {
                    let count = CHUNK.min(walks - (chunk - first) * CHUNK);
                    self.walk_chunk(reach, chunk, count, &mut promises, over);
                }
                promises
            })
            .collect();
        self.chunks += chunks;
        for (at, (prefix, promise)) in found.into_iter().flatten().enumerate() {
            // Once the time is up, nominations would not be counted anyway.
            if at % CHUNK as usize == 0 && over() {
                break;
            }
            self.promises.entry(prefix).or_default().add(promise);
        }
    }

    fn walk_chunk(
        &self,
        reach: &Reach,
        chunk: u64,
        walks: u64,
        promises: &mut Map<Vec<Link>, Promise>,
        over: &(dyn Fn() -> bool + Sync),
    ) {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ ((self.length as u64) << 56));
        random.set_stream(chunk);
        let mut body = Vec::with_capacity(self.length);
        for walk in 0..walks {
            // Between hubs a walk may take milliseconds to close.
            if walk % 32 == 31 && over() {
                return;
            }
            body.clear();
            let Some((source, end)) = self.one_walk(reach, &mut random, &mut body) else { continue };
            close(reach, source, end, &body, promises);
        }
    }

    /// Walks one step fewer than a body has links. Returns the ends of the walk.
    fn one_walk(
        &self,
        reach: &Reach,
        random: &mut ChaCha8Rng,
        body: &mut Vec<Link>,
    ) -> Option<(EntityId, EntityId)> {
        let source = reach.random_source(random)?;
        let mut trail = [source; 32];
        for step in 1..self.length {
            let edges = reach.neighbours(trail[step - 1]);
            let Neighbour { target, link } = edges[random.random_range(0..edges.len())];
            if reach.distinct() && trail[..step].contains(&target) {
                return None;
            }
            trail[step] = target;
            body.push(link);
        }
        Some((source, trail[self.length - 1]))
    }
}

/// Records every way to close the walk `prefix` from `source` to `end`.
fn close(
    reach: &Reach,
    source: EntityId,
    end: EntityId,
    prefix: &[Link],
    promises: &mut Map<Vec<Link>, Promise>,
) {
    let (from, onward) = (reach.neighbours(source), reach.neighbours(end));
    let walked = Promise { walks: 1, edges: onward.len() as u64, ..Promise::default() };
    promises.entry_ref(prefix).or_default().add(walked);
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < onward.len() {
        let (a, b) = (from[i].target, onward[j].target);
        if a < b {
            i += 1 + from[i + 1..].partition_point(|edge| edge.target < b).min(from.len() - i - 1);
            continue;
        }
        if b < a {
            j += 1 + onward[j + 1..].partition_point(|edge| edge.target < a).min(onward.len() - j - 1);
            continue;
        }
        let heads = from[i..].iter().take_while(|edge| edge.target == a).count();
        while j < onward.len() && onward[j].target == a {
            let last = onward[j].link;
            let worth = heads as u64 * WHOLE / reach.targets(last, end).len() as u64;
            let hit = Promise { hits: heads as u64, worth, ..Promise::default() };
            if is_canonical(prefix, last) {
                promises.entry_ref(prefix).or_default().add(hit);
            } else {
                let turned = reversed_path(prefix);
                let other: Vec<Link> =
                    [last.reversed()].into_iter().chain(turned).take(prefix.len()).collect();
                promises.entry_ref(&*other).or_default().add(hit);
            }
            j += 1;
        }
        i += heads;
    }
}
