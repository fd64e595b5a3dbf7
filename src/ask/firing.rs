//! The rules that predict an answer, each with a path that grounds it and the answer's score without the rule.

use super::answer::is_false;
use super::answer::{PathStep, Probability, RuleSummary};
use super::sentence::path_of_reason;
use super::{AskError, Model, Page};
use crate::eval::calibration::RankedScores;
use crate::graph::{EntityId, Query};
use crate::progress::Progress;
use crate::reason::{Candidate, Found, PathLimits, Reasoned, Rescored, ScoreWithout, by_rule};
use crate::rule::{FiredRule, Firings, RuleReasoner};
use crate::run::RunError;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// A rule with a path that grounds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroundedRule {
    /// The rule.
    #[serde(flatten)]
    pub rule: RuleSummary,
    /// The label of the entity where the path begins.
    pub from: String,
    /// The id of that entity.
    #[serde(default)]
    pub from_id: String,
    /// The path.
    pub path: Vec<PathStep>,
    /// The path in a sentence.
    #[serde(default)]
    pub path_sentence: String,
    /// The answer without this rule, if its score depends on rules at all.
    #[serde(default)]
    pub without: Option<WithoutRule>,
    /// The propagator's score of the answer, with and without this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagator: Option<ScoreWithout>,
}

/// Score, rank and probability of an answer without one of its rules.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WithoutRule {
    /// Its score; absent if nothing else supports it.
    pub score: Option<f64>,
    /// Its rank among the predicted answers, from 1; absent if it is not predicted.
    pub rank: Option<usize>,
    /// Its probability, where there are any.
    pub probability: Probability,
    /// Whether the probability is rough.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probability_rough: bool,
}

/// The most groundings of a rule that are looked at for one that limits admit.
const GROUNDINGS: usize = 100;

/// The first grounding of a rule that the limits admit.
fn admitted_grounding<'r>(
    query: Query,
    object: EntityId,
    rules: &'r RuleReasoner,
    rule: u32,
    limits: &PathLimits,
) -> Option<FiredRule<'r>> {
    let groundings = rules.explain_all(query, object, rule, GROUNDINGS);
    groundings.into_iter().find(|one| limits.admit(query, &by_rule(one, object, one.confidence)))
}

impl Model {
    /// The rules that predict `object` for `query`, the most confident first: the page after the first `after`, with at
    /// most `limit`.
    ///
    /// # Errors
    /// If the reasoner fails, or `progress` says to stop.
    pub fn rules_for(
        &self,
        query: Query,
        object: EntityId,
        after: usize,
        limit: usize,
        progress: &dyn Progress,
    ) -> Result<Page<GroundedRule>, AskError> {
        let found = self.reasoner.search(&[query], usize::MAX, progress)?.remove(0);
        self.rules_among(&found, object, (after, limit), &PathLimits::default(), progress)
    }

    /// The same, given the result of a search.
    pub(super) fn rules_among(
        &self,
        found: &Found,
        object: EntityId,
        (after, limit): (usize, usize),
        limits: &PathLimits,
        progress: &dyn Progress,
    ) -> Result<Page<GroundedRule>, AskError> {
        if self.rules().is_empty() {
            return Ok(Page { items: Vec::new(), total: 0, next: None });
        }
        let applied = self.artifacts.applied()?;
        let rules = applied.rules();
        let firings = rules.firings(found.query, object, &|| progress.interrupted());
        let firings = firings.ok_or(RunError::Interrupted)?;
        let left = Left::new(self, found, object, rules, &firings);
        let admitted = |&place: &usize| {
            limits.is_none()
                || admitted_grounding(found.query, object, rules, firings[place].1, limits).is_some()
        };
        let places: Vec<usize> = (0..firings.len()).filter(admitted).collect();
        let page = Page::of(&places, after, limit, |&place| {
            let reason = match limits.is_none() {
                true => rules.explain_by(found.query, object, firings[place].1),
                false => admitted_grounding(found.query, object, rules, firings[place].1, limits),
            };
            Some(self.grounded(found.query, object, &reason?, left.without(place)))
        });
        // Every rule that fires has a grounding.
        let Page { items, total, next } = page.flatten();
        let (mut items, ways): (Vec<GroundedRule>, Vec<Reasoned>) = items.into_iter().unzip();
        let without = self.reasoner.without(found.query, object, &ways)?;
        for (item, propagator) in items.iter_mut().zip(without) {
            item.propagator = propagator;
        }
        Ok(Page { items, total, next })
    }

    fn grounded(
        &self,
        query: Query,
        object: EntityId,
        reason: &FiredRule<'_>,
        without: Option<WithoutRule>,
    ) -> (GroundedRule, Reasoned) {
        let way = by_rule(reason, object, reason.confidence);
        let answer = self.named(query, &way, Probability::default());
        let super::Reason { from, from_id, path, .. } = answer.reason;
        let path_sentence = path_of_reason(&way, self.names(), self.naming());
        let rule = RuleSummary::new(reason.rule, self.names(), self.naming());
        (GroundedRule { rule, from, from_id, path, path_sentence, without, propagator: None }, way)
    }
}

/// Computes what an answer would be without one of its rules.
struct Left<'a> {
    model: &'a Model,
    found: &'a Found,
    rules: &'a RuleReasoner,
    firings: &'a Firings,
    /// The answer among the candidates; `None` if it is not predicted.
    candidate: Option<&'a Candidate>,
    /// Scores and ids of the other supported candidates, computed on first use.
    others: OnceLock<Vec<(f64, EntityId)>>,
}

impl<'a> Left<'a> {
    fn new(
        model: &'a Model,
        found: &'a Found,
        object: EntityId,
        rules: &'a RuleReasoner,
        firings: &'a Firings,
    ) -> Self {
        let candidate = found.candidates.iter().find(|candidate| candidate.entity == object);
        Self { model, found, rules, firings, candidate, others: OnceLock::new() }
    }

    /// The answer without the rule at `place` among those that fire.
    fn without(&self, place: usize) -> Option<WithoutRule> {
        let candidate = self.candidate?;
        let confidences = || self.firings.iter().map(|one| one.0);
        let before = self.rules.aggregated(confidences())?;
        let others = confidences().enumerate().filter(|(at, _)| *at != place);
        let after = self.rules.aggregated(others.map(|(_, confidence)| confidence));
        match self.model.reasoner.rescored(self.found.query, candidate, before, after) {
            Rescored::Same => None,
            Rescored::Unsupported => {
                let probability = Probability::default();
                Some(WithoutRule { score: None, rank: None, probability, probability_rough: false })
            }
            Rescored::Score(score) => {
                let probability = self.probability(score, candidate.entity);
                Some(WithoutRule {
                    score: Some(score),
                    rank: Some(self.rank(score, candidate.entity)),
                    probability,
                    probability_rough: self.model.is_rough(self.found.query.link, probability),
                })
            }
        }
    }

    /// The rank of an answer with this score.
    fn rank(&self, score: f64, entity: EntityId) -> usize {
        let others = self.others.get_or_init(|| {
            let supported = |candidate: &&Candidate| {
                let reasons = self.model.reasoner.reasons(self.found.query, candidate, 1);
                Some(candidate.entity) != self.candidate.map(|own| own.entity)
                    && reasons.is_ok_and(|reasons| !reasons.is_empty())
            };
            let scored = |candidate: &Candidate| (candidate.score, candidate.entity);
            self.found.candidates.iter().filter(supported).map(scored).collect()
        });
        let above = others.iter().filter(|other| other.0 > score || (other.0 == score && other.1 < entity));
        1 + above.count()
    }

    /// The probability of an answer with this score, the other candidates unchanged.
    fn probability(&self, score: f64, entity: EntityId) -> Probability {
        let Some(calibrator) = self.model.calibrator_of(self.found.query.link) else {
            return Probability::default();
        };
        let others = self.found.candidates.iter().filter(|candidate| candidate.entity != entity);
        let mut scores: Vec<f64> = others.map(|candidate| candidate.score).chain([score]).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let list = RankedScores::new(self.found.query, self.model.graph(), scores.into_iter());
        Probability(Some(calibrator.within(&list)(score)))
    }
}
