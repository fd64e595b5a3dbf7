//! The filtered rank of a target among all entities, under each rule for ties.
//!
//! Filtered: every other true answer of the query is removed before counting, so that only wrong answers can rank
//! before the target. Below, the `open` entities are those that remain besides the target.

use super::{Crowd, Scored};
use crate::graph::{Edge, EntityId};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

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

/// Where a target is ranked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// Its rank, from 1.
    pub(super) rank: f64,
    /// How many open entities have its score.
    pub(super) tied: u64,
}

impl Standing {
    fn place(self, ties: Ties) -> Place {
        Place { rank: self.rank(ties), tied: self.beside }
    }

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
pub(super) fn rank_dense(scores: &[f32], truth: &[Edge], target: EntityId, ties: Ties) -> Option<Place> {
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
    Some(Standing { above, beside, beside_with_lower_id }.place(ties))
}

/// The rank of `target` among `entities` entities, of which only those in `listed` have a score, or `None` if a score
/// is NaN.
pub(super) fn rank_listed(
    listed: &[Scored],
    entities: usize,
    truth: &[Edge],
    target: EntityId,
    ties: Ties,
) -> Option<Place> {
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
    Some(standing.place(ties))
}

/// So many targets of one query are ranked one by one; for more of them, sorting the scores takes less time.
const FEW: usize = 8;

/// The ranks of several `targets` of one query, each as by [`rank_dense`].
pub(super) fn rank_all_dense(
    scores: &[f32],
    truth: &[Edge],
    targets: &[EntityId],
    ties: Ties,
) -> Option<Vec<Place>> {
    if targets.len() <= FEW || ties == Ties::Published {
        return targets.iter().map(|&target| rank_dense(scores, truth, target, ties)).collect();
    }
    let all = scores.iter().zip(0..).map(|(&score, id)| (EntityId(id), f64::from(score)));
    let open = OpenScores::new(all, scores.len(), truth)?;
    let own = |target: EntityId| Some(f64::from(scores[target.index()]));
    Some(targets.iter().map(|&target| open.place(target, own(target), ties)).collect())
}

/// The ranks of several `targets` of one query, each as by [`rank_listed`].
pub(super) fn rank_all_listed(
    listed: &[Scored],
    entities: usize,
    truth: &[Edge],
    targets: &[EntityId],
    ties: Ties,
) -> Option<Vec<Place>> {
    if targets.len() <= FEW || ties == Ties::Published {
        return targets.iter().map(|&target| rank_listed(listed, entities, truth, target, ties)).collect();
    }
    let all = listed.iter().map(|answer| (answer.entity, answer.score));
    let open = OpenScores::new(all.clone(), entities, truth)?;
    let own: HashMap<EntityId, f64> = all.collect();
    Some(targets.iter().map(|&target| open.place(target, own.get(&target).copied(), ties)).collect())
}

/// The same with a crowd after all that are listed. Not for [`Ties::Published`], which goes by ids.
pub(super) fn rank_all_crowded(
    (listed, crowd): (&[Scored], &Crowd),
    entities: usize,
    truth: &[Edge],
    targets: &[EntityId],
    ties: Ties,
) -> Option<Vec<Place>> {
    let mut places = rank_all_listed(listed, entities, truth, targets, ties)?;
    let is_true = |entity| truth.binary_search_by_key(&entity, |edge| edge.target).is_ok();
    let open_crowd = crowd.size() - truth.iter().filter(|edge| crowd.has(edge.target)).count();
    let open_listed = listed.iter().filter(|answer| !is_true(answer.entity)).count();
    let ranked: HashSet<EntityId> = listed.iter().map(|answer| answer.entity).collect();
    for (place, &target) in places.iter_mut().zip(targets) {
        if ranked.contains(&target) {
            continue;
        }
        // A target that is no true answer is among the open ones itself.
        let own = usize::from(!is_true(target));
        let (above, beside) = match crowd.has(target) {
            true => (open_listed, open_crowd - own),
            false => {
                let above = open_listed + open_crowd;
                (above, entities - truth.len() - own - above)
            }
        };
        *place = Standing { above: above as u64, beside: beside as u64, ..Standing::default() }.place(ties);
    }
    Some(places)
}

/// The scores that are open to all targets of one query. A hub may have a hundred thousand targets, and the same entities
/// are open beside each of them, so these are sorted once.
struct OpenScores<'a> {
    /// The scores of listed entities that are no true answers, ascending.
    open: Vec<f64>,
    entities: usize,
    truth: &'a [Edge],
}

impl<'a> OpenScores<'a> {
    /// `None` if a score is NaN.
    fn new(
        listed: impl Iterator<Item = (EntityId, f64)> + Clone,
        entities: usize,
        truth: &'a [Edge],
    ) -> Option<Self> {
        if listed.clone().any(|(_, score)| score.is_nan()) {
            return None;
        }
        let none = Self { open: Vec::new(), entities, truth };
        let mut open: Vec<f64> =
            listed.filter(|&(entity, _)| !none.is_true(entity)).map(|(_, score)| score).collect();
        open.sort_unstable_by(f64::total_cmp);
        Some(Self { open, ..none })
    }

    fn is_true(&self, entity: EntityId) -> bool {
        self.truth.binary_search_by_key(&entity, |edge| edge.target).is_ok()
    }

    /// The rank of `target`, whose `own` score is listed or not. Not for [`Ties::Published`], which goes by ids.
    fn place(&self, target: EntityId, own: Option<f64>, ties: Ties) -> Place {
        let is_true = self.is_true(target);
        let standing = match own {
            Some(own) => {
                let (below, not_above) = (
                    self.open.partition_point(|&one| one < own),
                    self.open.partition_point(|&one| one <= own),
                );
                // A target that is no true answer is among the open ones itself.
                let beside = not_above - below - usize::from(!is_true);
                Standing {
                    above: (self.open.len() - not_above) as u64,
                    beside: beside as u64,
                    ..Standing::default()
                }
            }
            None => {
                let filtered = self.truth.len() - usize::from(is_true);
                let beside = self.entities - 1 - filtered - self.open.len();
                Standing { above: self.open.len() as u64, beside: beside as u64, ..Standing::default() }
            }
        };
        standing.place(ties)
    }
}

/// The filtered rank of `target` among `entities` entities, of which only those in `listed` have a score, as a
/// [`Reasoner`](super::Reasoner) lists them; ties share their mean rank. `None` if a score is NaN. `truth` holds the other
/// true answers of the query, sorted; the target may be among them.
pub fn filtered_rank(listed: &[Scored], entities: usize, truth: &[Edge], target: EntityId) -> Option<f64> {
    rank_listed(listed, entities, truth, target, Ties::Realistic).map(|place| place.rank)
}

/// The ranks of `targets` among `entities` entities, whose scores are counts: `counts` are those above 0 of all entities,
/// largest first, and `count` is that of one. Not for [`Ties::Published`], which goes by ids.
pub(super) fn rank_among_counts(
    counts: &[u32],
    entities: usize,
    count: impl Fn(EntityId) -> u32,
    truth: &[Edge],
    targets: &[EntityId],
    ties: Ties,
) -> Vec<f64> {
    let mut filtered: Vec<u32> = truth.iter().map(|edge| count(edge.target)).collect();
    filtered.sort_unstable();
    let rank = |&target: &EntityId| {
        let own = count(target);
        let above = counts.partition_point(|&other| other > own);
        let as_many = match own {
            0 => entities - counts.len(),
            _ => counts.partition_point(|&other| other >= own) - above,
        };
        let filtered_below = filtered.partition_point(|&other| other < own);
        let filtered_above = filtered.len() - filtered.partition_point(|&other| other <= own);
        let filtered_beside = filtered.len() - filtered_above - filtered_below;
        // The target itself is filtered if it is a true answer, and else it is beside itself.
        let is_true = truth.binary_search_by_key(&target, |edge| edge.target).is_ok();
        Standing {
            above: (above - filtered_above) as u64,
            beside: (as_many - filtered_beside - usize::from(!is_true)) as u64,
            beside_with_lower_id: 0,
        }
        .rank(ties)
    };
    targets.iter().map(rank).collect()
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

    /// By sorting: the rank, and how many others that are left have the score of the target.
    fn expected_place(scores: &BTreeMap<u32, i8>, truth: &BTreeSet<u32>, target: u32, ties: Ties) -> Place {
        let others = (0..ENTITIES).filter(|id| *id != target && !truth.contains(id));
        let tied = others.filter(|id| scores.get(id) == scores.get(&target)).count() as u64;
        Place { rank: brute_force(scores, truth, target, ties), tied }
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
                prop_assert_eq!(ours, Some(expected_place(&by_id, &truth, target, ties)), "{:?}", ties);
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
                prop_assert_eq!(ours, Some(expected_place(&scores, &truth, target, ties)), "{:?}", ties);
            }
        }
    }

    proptest! {
        #[test]
        fn many_targets_are_ranked_as_one_by_one(
            dense in prop::collection::vec(-2i8..3, ENTITIES as usize),
            listed in prop::collection::btree_map(0..ENTITIES, 0i8..3, 0..9),
            truth in prop::collection::btree_set(0..ENTITIES, 0..6),
        ) {
            let scores: Vec<f32> = dense.iter().map(|&s| f32::from(s)).collect();
            let listed: Vec<Scored> =
                listed.iter().map(|(&id, &s)| Scored { entity: EntityId(id), score: f64::from(s) }).collect();
            let (truth, entities) = (edges(&truth), ENTITIES as usize);
            let targets: Vec<EntityId> = (0..ENTITIES).map(EntityId).collect();
            prop_assert!(targets.len() > FEW);
            for ties in ALL {
                let one = |&target: &EntityId| rank_dense(&scores, &truth, target, ties);
                let expected: Option<Vec<Place>> = targets.iter().map(one).collect();
                prop_assert_eq!(rank_all_dense(&scores, &truth, &targets, ties), expected, "{:?}", ties);
                let one = |&target: &EntityId| rank_listed(&listed, entities, &truth, target, ties);
                let expected: Option<Vec<Place>> = targets.iter().map(one).collect();
                prop_assert_eq!(rank_all_listed(&listed, entities, &truth, &targets, ties), expected, "{:?}", ties);
            }
        }
    }

    proptest! {
        #[test]
        fn a_crowd_ranks_as_if_it_were_listed(
            scores in prop::collection::btree_map(0..ENTITIES, 0i8..3, 0..9),
            crowd in prop::collection::btree_set(0..ENTITIES, 1..9),
            truth in prop::collection::btree_set(0..ENTITIES, 0..6),
        ) {
            let scored = |(&id, &score): (&u32, &i8)| Scored { entity: EntityId(id), score: f64::from(score) };
            let listed: Vec<Scored> = scores.iter().map(scored).collect();
            let ids: Vec<EntityId> = crowd.iter().copied().map(EntityId).collect();
            let without = listed.iter().map(|one| one.entity).collect();
            let behind = Crowd::new(ids.clone().into(), 0..ids.len(), without);
            let mut all = listed.clone();
            let is_new = |entity: &&EntityId| !scores.contains_key(&entity.0);
            all.extend(ids.iter().filter(is_new).map(|&entity| Scored { entity, score: -1.0 }));
            prop_assert_eq!(all.len(), listed.len() + behind.size());
            let (truth, entities) = (edges(&truth), ENTITIES as usize);
            let targets: Vec<EntityId> = (0..ENTITIES).map(EntityId).collect();
            for ties in [Ties::Realistic, Ties::Optimistic, Ties::Pessimistic] {
                let ours = rank_all_crowded((&listed, &behind), entities, &truth, &targets, ties);
                prop_assert_eq!(ours, rank_all_listed(&all, entities, &truth, &targets, ties), "{:?}", ties);
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
        let many = [EntityId(0); FEW + 1];
        assert_eq!(rank_all_listed(&listed, 3, &[], &many, ties), None);
        assert_eq!(rank_all_dense(&[1.0, f32::NAN, 0.0], &[], &many, ties), None);
    }
}
