//! Graphs that are invented: facts drawn at random, and facts that follow from them by rules with exceptions.
//!
//! Entities have kinds. A drawn relation leads from one kind to another and prefers few of its entities, some more
//! than others. A derived relation follows by one rule: it is the inverse of another, contains it, is a chain of two
//! or three, relates what has something in common, or links what two others link. Rules hold with a confidence, and
//! derived relations have some facts for no reason.

use super::variant::Facts;
use crate::graph::Triple;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

/// The fewest and the most entities.
const ENTITIES: (f64, f64) = (200.0, 4000.0);
/// How often the facts of a relation are drawn, at most, for each entity of its kinds.
const FACTS: f64 = 3.0;
/// The most facts of a relation.
const MOST: usize = 6000;
/// The least and the largest confidence of a rule.
const CONFIDENCE: (f64, f64) = (0.5, 0.97);

type Pair = (u32, u32);

/// A graph of its own for every state of `random`.
pub(super) fn invented(random: &mut ChaCha8Rng) -> Facts {
    let entities = random.random_range(ENTITIES.0.ln()..ENTITIES.1.ln()).exp() as u32;
    let kinds = kinds(entities, random);
    let drawn = random.random_range(2..=16);
    let derived = random.random_range(2..=24);
    let mut relations: Vec<Vec<Pair>> = (0..drawn).map(|_| drawn_relation(&kinds, random)).collect();
    for _ in 0..derived {
        let pairs = derived_relation(&relations, entities, random);
        // A rule that says too little or too much makes no relation.
        if (10..=MOST).contains(&pairs.len()) {
            relations.push(pairs);
        }
    }
    let facts = (0..).zip(&relations).flat_map(|(relation, pairs)| {
        pairs.iter().map(move |&(head, tail)| Triple::new(head, relation, tail))
    });
    Facts { entities: entities as usize, relations: relations.len(), facts: facts.collect() }
}

/// The entities in ranges, one for every kind.
fn kinds(entities: u32, random: &mut ChaCha8Rng) -> Vec<(u32, u32)> {
    let count = random.random_range(1..=8);
    let mut ends: Vec<u32> = (1..count).map(|_| random.random_range(1..entities)).collect();
    ends.extend([0, entities]);
    ends.sort_unstable();
    ends.dedup();
    ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// An entity of a range; the larger `skew`, the more the first ones are preferred.
fn pick((first, end): (u32, u32), skew: f64, random: &mut ChaCha8Rng) -> u32 {
    let place = random.random_range(0.0..1.0f64).powf(skew);
    first + (place * f64::from(end - first)) as u32
}

fn drawn_relation(kinds: &[(u32, u32)], random: &mut ChaCha8Rng) -> Vec<Pair> {
    let [heads, tails] = [(); 2].map(|()| kinds[random.random_range(0..kinds.len())]);
    // With 1 all are alike; many relations have a few tails that most heads share.
    let [head_skew, tail_skew] = [(); 2].map(|()| random.random_range(1.0..4.0));
    let size = f64::from((heads.1 - heads.0).min(tails.1 - tails.0).max(20));
    let wanted = ((random.random_range(0.3..FACTS) * size) as usize).min(MOST);
    // Where a head has one tail, as a person has one birthplace.
    let single = random.random_bool(0.3);
    let mut taken = HashSet::new();
    let draw = |_| (pick(heads, head_skew, random), pick(tails, tail_skew, random));
    let pairs: Vec<Pair> = (0..wanted).map(draw).collect();
    pairs.into_iter().filter(|&(head, tail)| taken.insert((head, if single { 0 } else { tail }))).collect()
}

fn derived_relation(relations: &[Vec<Pair>], entities: u32, random: &mut ChaCha8Rng) -> Vec<Pair> {
    let mut any = || &relations[random.random_range(0..relations.len())];
    let (first, second, third) = (any(), any(), any());
    let body: Vec<Pair> = match random.random_range(0..8) {
        0 => inverse(first),
        1 => first.iter().copied().chain(inverse(first)).collect(),
        2 => first.iter().chain(second).copied().collect(),
        3 | 4 => chain(first, second, entities),
        5 => chain(&chain(first, second, entities), third, entities),
        6 => chain(first, &inverse(first), entities),
        _ => {
            let other: HashSet<Pair> = second.iter().copied().collect();
            let both: Vec<Pair> = chain(first, third, entities);
            both.into_iter().filter(|pair| other.contains(pair)).collect()
        }
    };
    let confidence = random.random_range(CONFIDENCE.0..CONFIDENCE.1);
    let mut found = HashSet::new();
    let mut pairs: Vec<Pair> = body.into_iter().filter(|&(head, tail)| head != tail).collect();
    pairs.retain(|&pair| found.insert(pair) && random.random_bool(confidence));
    let exceptions = (pairs.len() as f64 * random.random_range(0.0..0.3)) as usize;
    for _ in 0..exceptions.min(MOST) {
        // Ends of true facts, so that the exceptions are of the right kinds.
        let (head, tail) =
            (pairs[random.random_range(0..pairs.len())].0, pairs[random.random_range(0..pairs.len())].1);
        if found.insert((head, tail)) {
            pairs.push((head, tail));
        }
    }
    pairs
}

fn inverse(pairs: &[Pair]) -> Vec<Pair> {
    pairs.iter().map(|&(head, tail)| (tail, head)).collect()
}

/// The pairs that a step by `first` and a step by `second` link, as many as a relation may have and a few more.
fn chain(first: &[Pair], second: &[Pair], entities: u32) -> Vec<Pair> {
    let mut tails = vec![Vec::new(); entities as usize];
    second.iter().for_each(|&(head, tail)| tails[head as usize].push(tail));
    let steps =
        first.iter().flat_map(|&(head, middle)| tails[middle as usize].iter().map(move |&tail| (head, tail)));
    steps.take(3 * MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_chain_of_two_is_what_two_steps_reach() {
        let pairs = chain(&[(0, 1), (2, 1), (3, 0)], &[(1, 4), (1, 5)], 6);
        assert_eq!(pairs, [(0, 4), (0, 5), (2, 4), (2, 5)]);
    }

    #[test]
    fn invented_graphs_differ_and_no_fact_is_there_twice() {
        let mut sizes = HashSet::new();
        for seed in 0..40 {
            let graph = invented(&mut ChaCha8Rng::seed_from_u64(seed));
            let facts: HashSet<Triple> = graph.facts.iter().copied().collect();
            assert_eq!(facts.len(), graph.facts.len());
            assert!(graph.relations >= 2 && !graph.facts.is_empty());
            let inside = |fact: &Triple| {
                fact.head.index() < graph.entities
                    && fact.tail.index() < graph.entities
                    && fact.relation.index() < graph.relations
            };
            assert!(graph.facts.iter().all(inside));
            sizes.insert((graph.entities, graph.relations));
        }
        assert!(sizes.len() > 30);
    }
}
