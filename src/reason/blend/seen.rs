//! The members' scores of each candidate, as features.

use super::super::fit::WIDTH;
use super::super::recipe::{FURTHER, PROPAGATOR, RULES, RULES_ABSENT, RULES_SURE, WALKER, WALKER_ABSENT};
use crate::eval::Answers;
use crate::graph::EntityId;
use crate::rule::RuleAnswer;
use crate::tensor::logsumexp;
use crate::walk;
use std::collections::{BTreeMap, HashMap};

/// The floor on probabilities of members that list candidates.
const LEAST: f64 = 1e-4;
/// The floor on log-probabilities of members that score all: that of 1e-16.
pub(super) const LEAST_LOG_PROB: f64 = -36.841_361_487_904_734;
/// The ceiling on the rules' certainty, `−ln(1 − score)`: reached at a score of 1 - 1e-6.
const SUREST: f64 = 13.8;
/// The most candidates that the propagator adds: the rest have hardly any probability mass and cost the other members
/// time.
const PROPAGATED: usize = 100;

/// An answer with the scores of the members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) entity: EntityId,
    /// As in [`FeatureWeights`].
    pub(super) features: [f32; WIDTH],
}

/// The scores of all entities for one query, from a member that scores every entity.
#[derive(Clone, Copy)]
pub(super) struct Dense<'a> {
    scores: &'a [f32],
    /// The logarithm of the sum of their exponentials.
    logsumexp: f64,
}

impl<'a> Dense<'a> {
    /// For a blend without such a member.
    pub(super) const NONE: Dense<'static> = Dense { scores: &[], logsumexp: 0.0 };

    pub(super) fn of(scores: &'a [f32]) -> Self {
        Self { scores, logsumexp: logsumexp(scores) }
    }

    /// The logarithm of the softmax at `entity`; 0 if there are no scores.
    pub(super) fn log_prob(&self, entity: EntityId) -> f64 {
        let score = self.scores.get(entity.index());
        score.map_or(0.0, |&score| (f64::from(score) - self.logsumexp).max(LEAST_LOG_PROB))
    }

    /// The entities with the highest scores.
    fn best(&self) -> Vec<EntityId> {
        let mut all: Vec<u32> = (0..self.scores.len() as u32).collect();
        let better =
            |a: &u32, b: &u32| self.scores[*b as usize].total_cmp(&self.scores[*a as usize]).then(a.cmp(b));
        if all.len() > PROPAGATED {
            all.select_nth_unstable_by(PROPAGATED, better);
            all.truncate(PROPAGATED);
        }
        all.into_iter().map(EntityId).collect()
    }
}

/// The scores of a further member for one query.
pub(super) enum Scores<'a> {
    /// Of all entities.
    All(Dense<'a>),
    /// Of some entities, as log-probabilities among them.
    Some(HashMap<EntityId, f64>),
}

impl<'a> Scores<'a> {
    /// Row `row` of `answers`.
    pub(super) fn of(answers: &'a Answers, row: usize) -> Self {
        match answers {
            Answers::Dense { scores, entities } => {
                Self::All(Dense::of(&scores[row * entities..(row + 1) * entities]))
            }
            Answers::Listed(lists) => {
                let list = &lists[row];
                let scores: Vec<f32> = list.iter().map(|one| one.score as f32).collect();
                let total = logsumexp(&scores);
                Self::Some(list.iter().map(|one| (one.entity, one.score - total)).collect())
            }
        }
    }

    /// The logarithm of the softmax at `entity`.
    fn log_prob(&self, entity: EntityId) -> f64 {
        match self {
            Self::All(dense) => dense.log_prob(entity),
            Self::Some(listed) => listed.get(&entity).map_or(LEAST_LOG_PROB, |&one| one.max(LEAST_LOG_PROB)),
        }
    }

    /// The entities with the highest scores.
    fn best(&self) -> Vec<EntityId> {
        match self {
            Self::All(dense) => dense.best(),
            Self::Some(listed) => listed.keys().copied().collect(),
        }
    }
}

/// The features of every candidate of rules, walker and propagator, except that of the embedding model.
pub(super) fn seen(
    by_rules: &[RuleAnswer],
    walked: &[walk::WalkedAnswer],
    propagated: &Dense<'_>,
    further: &[Scores<'_>],
) -> Vec<Seen> {
    let total: f64 = walked.iter().map(|answer| f64::from(answer.score).exp()).sum();
    let mut found: BTreeMap<EntityId, Seen> = BTreeMap::new();
    // No member has listed it yet.
    let absent = |entity: EntityId| {
        let mut features = [0.0; WIDTH];
        (features[RULES_ABSENT], features[WALKER_ABSENT]) = (1.0, 1.0);
        features[PROPAGATOR] = propagated.log_prob(entity) as f32;
        for (at, member) in further.iter().enumerate() {
            features[FURTHER + at] = member.log_prob(entity) as f32;
        }
        Seen { entity, features }
    };
    for RuleAnswer { scored, .. } in by_rules.iter().filter(|answer| answer.is_predicted()) {
        let seen = found.entry(scored.entity).or_insert_with(|| absent(scored.entity));
        [seen.features[RULES], seen.features[RULES_SURE]] = of_rules(scored.score);
        seen.features[RULES_ABSENT] = 0.0;
    }
    for answer in walked {
        let share = f64::from(answer.score).exp() / total.max(f64::MIN_POSITIVE);
        let seen = found.entry(answer.entity).or_insert_with(|| absent(answer.entity));
        (seen.features[WALKER], seen.features[WALKER_ABSENT]) = (share.max(LEAST).ln() as f32, 0.0);
    }
    for entity in propagated.best().into_iter().chain(further.iter().flat_map(Scores::best)) {
        found.entry(entity).or_insert_with(|| absent(entity));
    }
    found.into_values().collect()
}

/// The rules' score as features: its logarithm and its certainty.
pub(super) fn of_rules(score: f64) -> [f32; 2] {
    [score.max(LEAST).ln() as f32, (-(-score).ln_1p()).clamp(0.0, SUREST) as f32]
}

#[cfg(test)]
mod tests {
    use super::super::super::recipe::EMBEDDING;
    use super::*;
    use crate::eval::Scored;
    use crate::rule::UNPREDICTED;

    #[test]
    fn scores_of_all_entities_are_compared_by_their_softmax() {
        let scores = [0.0, 3.0f32.ln(), -1e4];
        let dense = Dense::of(&scores);
        let log_probs = [0, 1, 2].map(|id| dense.log_prob(EntityId(id)));
        let expected = [0.25f64.ln(), 0.75f64.ln(), 1e-16f64.ln()];
        assert!(log_probs.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-7), "{log_probs:?}");
        assert_eq!(Dense::NONE.log_prob(EntityId(0)), 0.0);
    }

    #[test]
    fn what_a_member_does_not_give_is_marked() {
        let scored =
            |id, score| RuleAnswer { scored: Scored { entity: EntityId(id), score }, rules: [7].into() };
        // 2 is an entity that no rule predicts.
        let rules = [scored(0, 0.5), scored(2, 0.9 * UNPREDICTED)];
        let seen = seen(&rules, &[], &Dense::NONE, &[]);
        assert_eq!(seen.len(), 1);
        let Seen { entity, features } = seen[0];
        assert_eq!(entity, EntityId(0));
        assert_eq!(features[..EMBEDDING], [0.5f32.ln(), 0.0, 2.0f32.ln(), 0.0, 1.0]);
        assert!(features[EMBEDDING..].iter().all(|&feature| feature == 0.0));
    }
}
