//! The filtered rank of a target among all entities, under each rule for ties.
//!
//! Filtered: every other true answer of the query is removed before counting, so that only wrong answers can rank
//! before the target. Below, the `open` entities are those that remain besides the target.

use super::Scored;
use crate::graph::{Edge, EntityId};
use serde::{Deserialize, Serialize};

/// How a target is ranked among entities of the same score.
///
/// Entities that a reasoner did not list are tied with one another, after all listed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ties {
    /// The mean rank over all orders of the tied entities. The fair figure.
    #[default]
    Realistic,
    /// Before all that are tied with it.
    Optimistic,
    /// After all that are tied with it.
    Pessimistic,
    /// As the published implementation of the walkers does it, for comparison only. It writes the scores of the reached
    /// entities into a vector of zeros over all entities, sets the filtered answers back to zero, sorts the vector, and
    /// takes the target's place. What is emulated here is that sort, descending and stable, over the entities in the
    /// order of their ids: tied entities rank by id, and a target that was not reached ranks among all that were not
    /// reached *and* the filtered answers, by id. The published ids and the order that an unstable sort on a GPU leaves
    /// are not emulated, nor is the cut of the sorted list at the beam's width.
    Published,
}

/// How the open entities compare with the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    /// Open entities with a higher score.
    above: u64,
    /// Open entities with the same score.
    beside: u64,
    /// How many of the entities tied with the target the published sort puts before it.
    beside_with_lower_id: u64,
}

impl Standing {
    fn rank(self, ties: Ties) -> f64 {
        let first = (self.above + 1) as f64;
        match ties {
            Ties::Realistic => first + self.beside as f64 / 2.0,
            Ties::Optimistic => first,
            Ties::Pessimistic => first + self.beside as f64,
            Ties::Published => first + self.beside_with_lower_id as f64,
        }
    }
}

/// The rank of `target` if every entity has a score, or `None` if a score is NaN. `truth` holds the true answers of
/// the query, sorted; the target may be among them.
pub(super) fn rank_dense(scores: &[f32], truth: &[Edge], target: EntityId, ties: Ties) -> Option<f64> {
    let own = scores[target.index()];
    let (mut above, mut beside, mut below) = (0u64, 0u64, 0u64);
    // Counted in 32-bit lanes, block by block, so that the compiler can vectorise.
    for block in scores.chunks(1 << 16) {
        let (mut over, mut same, mut under) = (0u32, 0u32, 0u32);
        for &score in block {
            over += u32::from(score > own);
            same += u32::from(score == own);
            under += u32::from(score < own);
        }
        above += u64::from(over);
        beside += u64::from(same);
        below += u64::from(under);
    }
    if above + beside + below != scores.len() as u64 {
        return None;
    }
    beside -= 1;
    let filtered = || truth.iter().map(|edge| edge.target).filter(|&entity| entity != target);
    for entity in filtered() {
        let score = scores[entity.index()];
        above -= u64::from(score > own);
        beside -= u64::from(score == own);
    }
    let mut beside_with_lower_id = 0;
    if ties == Ties::Published && beside > 0 {
        let lower = |entity: EntityId| entity < target && scores[entity.index()] == own;
        let with_filtered = (0..target.0).filter(|&id| lower(EntityId(id))).count();
        beside_with_lower_id = (with_filtered - filtered().filter(|&entity| lower(entity)).count()) as u64;
    }
    Some(Standing { above, beside, beside_with_lower_id }.rank(ties))
}

/// The rank of `target` among `entities` entities, of which only those in `listed` have a score, or `None` if a score
/// is NaN.
pub(super) fn rank_listed(
    listed: &[Scored],
    entities: usize,
    truth: &[Edge],
    target: EntityId,
    ties: Ties,
) -> Option<f64> {
    if listed.iter().any(|answer| answer.score.is_nan()) {
        return None;
    }
    let is_true = |entity| truth.binary_search_by_key(&entity, |edge| edge.target).is_ok();
    let open = || listed.iter().filter(|answer| answer.entity != target && !is_true(answer.entity));
    let standing = match listed.iter().find(|answer| answer.entity == target) {
        Some(own) => {
            let beside = || open().filter(|answer| answer.score == own.score);
            Standing {
                above: open().filter(|answer| answer.score > own.score).count() as u64,
                beside: beside().count() as u64,
                beside_with_lower_id: beside().filter(|answer| answer.entity < target).count() as u64,
            }
        }
        None => {
            let above = open().count() as u64;
            let filtered = truth.len() as u64 - u64::from(is_true(target));
            let open_with_lower_id = open().filter(|answer| answer.entity < target).count() as u64;
            Standing {
                above,
                beside: entities as u64 - 1 - filtered - above,
                beside_with_lower_id: u64::from(target.0) - open_with_lower_id,
            }
        }
    };
    Some(standing.rank(ties))
}

/// The filtered rank of `target` among `entities` entities, of which only those in `listed` have a score, as a
/// [`Reasoner`](super::Reasoner) lists them; ties share their mean rank. `None` if a score is NaN. `truth` holds the other
/// true answers of the query, sorted; the target may be among them.
pub fn filtered_rank(listed: &[Scored], entities: usize, truth: &[Edge], target: EntityId) -> Option<f64> {
    rank_listed(listed, entities, truth, target, Ties::Realistic)
}

/// The rank of `target` among `entities` entities, whose scores are counts: `counts` are those above 0 of all entities,
/// largest first, and `count` is that of one. Not for [`Ties::Published`], which goes by ids.
pub(super) fn rank_among_counts(
    counts: &[u32],
    entities: usize,
    count: impl Fn(EntityId) -> u32,
    truth: &[Edge],
    target: EntityId,
    ties: Ties,
) -> f64 {
    let own = count(target);
    let above = counts.partition_point(|&other| other > own);
    let as_many = match own {
        0 => entities - counts.len(),
        _ => counts.partition_point(|&other| other >= own) - above,
    };
    let (mut above, mut beside) = (above as u64, as_many as u64 - 1);
    for other in truth.iter().map(|edge| edge.target).filter(|&entity| entity != target).map(count) {
        above -= u64::from(other > own);
        beside -= u64::from(other == own);
    }
    Standing { above, beside, beside_with_lower_id: 0 }.rank(ties)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Link;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const ENTITIES: u32 = 9;
    const ALL: [Ties; 4] = [Ties::Realistic, Ties::Optimistic, Ties::Pessimistic, Ties::Published];

    fn edges(truth: &BTreeSet<u32>) -> Vec<Edge> {
        truth.iter().map(|&id| Edge { link: Link(3), target: EntityId(id) }).collect()
    }

    /// Sorts all entities left after filtering and finds the target. An entity that is not in `scores` was not listed.
    fn brute_force(scores: &BTreeMap<u32, i8>, truth: &BTreeSet<u32>, target: u32, ties: Ties) -> f64 {
        let score = |id: u32| scores.get(&id).map_or(f64::NEG_INFINITY, |&s| f64::from(s));
        if ties == Ties::Published {
            let published =
                |id: u32| if id != target && truth.contains(&id) { f64::NEG_INFINITY } else { score(id) };
            let mut sorted: Vec<u32> = (0..ENTITIES).collect();
            sorted.sort_by(|&a, &b| published(b).total_cmp(&published(a)));
            return 1.0 + sorted.iter().position(|&id| id == target).unwrap() as f64;
        }
        let left: Vec<u32> = (0..ENTITIES).filter(|&id| id == target || !truth.contains(&id)).collect();
        let places: Vec<f64> = {
            let mut sorted: Vec<f64> = left.iter().map(|&id| score(id)).collect();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let same = sorted.iter().enumerate().filter(|(_, s)| **s == score(target));
            same.map(|(place, _)| place as f64 + 1.0).collect()
        };
        match ties {
            Ties::Optimistic => places[0],
            Ties::Pessimistic => places[places.len() - 1],
            _ => places.iter().sum::<f64>() / places.len() as f64,
        }
    }

    proptest! {
        #[test]
        fn dense_ranks_are_those_of_sorting(
            scores in prop::collection::vec(-2i8..3, ENTITIES as usize),
            truth in prop::collection::btree_set(0..ENTITIES, 0..6),
            target in 0..ENTITIES,
        ) {
            let by_id: BTreeMap<u32, i8> = scores.iter().enumerate().map(|(id, &s)| (id as u32, s)).collect();
            let floats: Vec<f32> = scores.iter().map(|&s| f32::from(s)).collect();
            for ties in ALL {
                let ours = rank_dense(&floats, &edges(&truth), EntityId(target), ties);
                prop_assert_eq!(ours, Some(brute_force(&by_id, &truth, target, ties)), "{:?}", ties);
            }
        }

        #[test]
        fn listed_ranks_are_those_of_sorting(
            scores in prop::collection::btree_map(0..ENTITIES, 0i8..3, 0..9),
            truth in prop::collection::btree_set(0..ENTITIES, 0..6),
            target in 0..ENTITIES,
        ) {
            let listed: Vec<Scored> =
                scores.iter().rev().map(|(&id, &s)| Scored { entity: EntityId(id), score: f64::from(s) }).collect();
            for ties in ALL {
                let ours = rank_listed(&listed, ENTITIES as usize, &edges(&truth), EntityId(target), ties);
                prop_assert_eq!(ours, Some(brute_force(&scores, &truth, target, ties)), "{:?}", ties);
            }
        }
    }

    #[test]
    fn a_score_that_is_no_number_has_no_rank() {
        let ties = Ties::Realistic;
        assert_eq!(rank_dense(&[1.0, f32::NAN, 0.0], &[], EntityId(0), ties), None);
        assert_eq!(rank_dense(&[1.0, f32::NAN, 0.0], &[], EntityId(1), ties), None);
        let listed = [Scored { entity: EntityId(2), score: f64::NAN }];
        assert_eq!(rank_listed(&listed, 3, &[], EntityId(0), ties), None);
    }
}
