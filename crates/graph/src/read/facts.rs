//! The facts of a file while it is read. If duplicates take up too much memory, they are removed on the way.

use crate::{Triple, split};
use std::collections::HashSet;

/// How many facts are read before the first check for duplicates.
const FIRST_LOOK: usize = 4 << 20;
/// One in this many facts is sampled, chosen by its hash: either all copies of a fact or none.
const SAMPLED: u64 = 64;

/// Facts in order of appearance, with few duplicates if there are many facts.
pub(super) struct Facts {
    list: Vec<Triple>,
    /// The number of facts at which duplicates are checked for next.
    next_look: usize,
    taken_out: usize,
}

impl Default for Facts {
    fn default() -> Self {
        Self { list: Vec::new(), next_look: FIRST_LOOK, taken_out: 0 }
    }
}

impl Facts {
    /// Adds a fact; entities are numbered below `entities`.
    pub(super) fn push(&mut self, fact: Triple, entities: usize) {
        self.list.push(fact);
        self.look(entities);
    }

    /// Adds several facts.
    pub(super) fn extend(&mut self, facts: impl Iterator<Item = Triple>, entities: usize) {
        self.list.extend(facts);
        self.look(entities);
    }

    /// Leaves out the facts that are not to be kept.
    #[cfg_attr(not(feature = "rdf"), allow(dead_code))]
    pub(super) fn retain(&mut self, is_kept: impl FnMut(&Triple) -> bool) {
        self.list.retain(is_kept);
    }

    /// How many facts were read, including duplicates. Parquet files have no lines, so this numbers their rows.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    pub(super) fn read(&self) -> usize {
        self.list.len() + self.taken_out
    }

    /// The facts, and how many duplicates were removed. Others may remain.
    pub(super) fn into_parts(self) -> (Vec<Triple>, usize) {
        (self.list, self.taken_out)
    }

    /// Removes duplicates if a check is due and there are many.
    fn look(&mut self, entities: usize) {
        if self.list.len() < self.next_look {
            return;
        }
        if is_crowded(&self.list) {
            let (list, repeated) = split::distinct(entities, std::mem::take(&mut self.list));
            (self.list, self.taken_out) = (list, self.taken_out + repeated);
        }
        self.next_look = FIRST_LOOK.max(2 * self.list.len());
    }
}

/// Whether more than a quarter of a sample are duplicates, or the sample is so small that a few facts must have many
/// copies.
fn is_crowded(facts: &[Triple]) -> bool {
    let sample = || facts.iter().filter(|fact| is_sampled(fact));
    let size = sample().count();
    if size < facts.len() / (2 * SAMPLED as usize) {
        return true;
    }
    let distinct: HashSet<&Triple, foldhash::fast::FixedState> = sample().collect();
    4 * distinct.len() < 3 * size
}

/// A hash of three multiplications is enough here and fast on millions of facts.
fn is_sampled(fact: &Triple) -> bool {
    let ends = (u64::from(fact.head.0) << 32 | u64::from(fact.tail.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (ends ^ (ends >> 29)) ^ u64::from(fact.relation.0).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 32 < (1 << 32) / SAMPLED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(facts: impl Iterator<Item = Triple>) -> (Facts, usize) {
        let mut read = Facts::default();
        let mut most = 0;
        for fact in facts {
            read.push(fact, 1 << 16);
            most = most.max(read.list.len());
        }
        (read, most)
    }

    #[test]
    fn copies_are_taken_out_while_reading() {
        let of = |i: u32| Triple::new(i % 1000, i % 7, i % 13);
        let (facts, most) = read((0..20_000_000).map(of));
        assert_eq!(facts.read(), 20_000_000);
        assert!(most <= FIRST_LOOK, "{most}");
        let (list, taken_out) = facts.into_parts();
        let (list, rest) = split::distinct(1000, list);
        assert_eq!(list.len() + taken_out + rest, 20_000_000);
        assert_eq!(list, (0..91_000).map(of).collect::<Vec<_>>());
    }

    #[test]
    fn one_fact_again_and_again() {
        for fact in [Triple::new(0, 0, 1), Triple::new(3, 1, 2), Triple::new(70, 3, 9)] {
            let (facts, most) = read(std::iter::repeat_n(fact, 9_000_000));
            assert!(most <= FIRST_LOOK && facts.list.len() < FIRST_LOOK);
            assert_eq!(facts.read(), 9_000_000);
        }
    }

    #[test]
    fn what_has_few_copies_is_left_alone() {
        let (facts, _) = read((0..9_000_000).map(|i: u32| Triple::new(i >> 8, i % 3, i % 50_000)));
        assert_eq!((facts.list.len(), facts.taken_out), (9_000_000, 0));
    }
}
