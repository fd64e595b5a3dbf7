//! False facts of the right types: a true fact with one end replaced by an entity that the graph shows at that end of
//! the relation, so that the fact is not known.

use super::{Adjacency, Direction, EntityId, Graph, Query, Triple};
use std::collections::HashSet;

/// How often an end is drawn before the other one is tried.
const TRIES: u64 = 100;

/// A false fact for every one of `facts`, in their order, where one can be drawn; `known` are all facts that it must not
/// be. No false fact is drawn twice. `stream` tells draws for different uses apart.
pub fn corrupted(
    graph: &Graph,
    facts: &[Triple],
    known: &Adjacency,
    seed: u64,
    stream: u64,
) -> Vec<Option<Triple>> {
    let mut drawn = HashSet::new();
    let one = |(place, &fact): (usize, &Triple)| {
        let sides = [Direction::Forward, Direction::Inverse];
        let key = mixed(mixed(seed ^ (stream << 56)) ^ place as u64);
        let first = usize::from(key & 1 == 1);
        let replaced = (0..2).flat_map(|turn| {
            let side = sides[(first + turn) % 2];
            let (query, _) = Query::of(fact, side);
            let pool = graph.pairs(query.link.reversed()).sources;
            (0..TRIES).filter_map(move |attempt| {
                let draw = mixed(key ^ ((attempt + 1) << 1) ^ turn as u64);
                let entity = pool.get((draw % (pool.len() as u64).max(1)) as usize);
                entity.map(|&entity| with_answer(fact, side, entity))
            })
        });
        let is_new = |one: &Triple| {
            let (query, object) = Query::of(*one, Direction::Forward);
            !known.contains(query.subject, query.link, object)
        };
        let found = replaced.into_iter().find(|one| is_new(one) && !drawn.contains(one))?;
        drawn.insert(found);
        Some(found)
    };
    facts.iter().enumerate().map(one).collect()
}

/// `fact` with another answer to the query that asks for this end.
fn with_answer(fact: Triple, side: Direction, entity: EntityId) -> Triple {
    match side {
        Direction::Forward => Triple { tail: entity, ..fact },
        Direction::Inverse => Triple { head: entity, ..fact },
    }
}

/// Well-mixed bits of `key` (SplitMix64).
pub fn mixed(key: u64) -> u64 {
    let mut bits = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_fact_is_new_and_of_the_right_type() {
        // People like dishes; every person likes two of the dishes that are liked by anybody.
        let likes = |person: u32| [Triple::new(person, 0, 100 + person % 7), Triple::new(person, 0, 107)];
        let mut facts: Vec<Triple> = (0..50).flat_map(likes).collect();
        // What nobody likes is at the end of another relation.
        facts.push(Triple::new(110, 1, 111));
        let graph = Graph::new(112, 2, &facts);
        let known = Adjacency::new(112, &[&facts]);
        let draw = |seed, stream| corrupted(&graph, &facts, &known, seed, stream);
        let drawn = draw(1, 0);
        let new: Vec<Triple> = drawn.iter().copied().flatten().collect();
        assert_eq!(new.len(), 100, "one for every fact but the last, which has no other end");
        assert_eq!(drawn[100], None);
        assert_eq!(new.iter().collect::<HashSet<_>>().len(), new.len());
        for (fact, one) in facts.iter().zip(&new) {
            assert!(!facts.contains(one) && one.relation == fact.relation);
            assert!(one.head == fact.head || one.tail == fact.tail);
            assert!(one.head.0 < 50 && (100..108).contains(&one.tail.0), "{one:?}");
        }
        assert_eq!(drawn, draw(1, 0));
        assert_ne!(drawn, draw(2, 0));
        assert_ne!(drawn, draw(1, 1));
    }
}
