//! Rules as a reasoner that explains: the rule that predicts an answer, with a path that grounds it.

use super::because::{RULES, typical_score, with_rest};
use super::{
    Because, Candidate, Detail, Evidence, Explains, Found, Hop, PathLimits, Reasoned, Rescored, SharePart,
    ShareSource, ranked,
};
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{EntityId, Graph, Query};
use crate::progress::{Interrupted, Progress};
use crate::rule::{ApplyOptions, FiredRule, RuleAnswer, RuleReasoner, ScoredRule};
use rayon::prelude::*;
use std::sync::Arc;

/// The most rules that a brief decomposition names.
const BRIEFLY: usize = 3;
/// The most groundings of a rule that a full decomposition counts.
const GROUNDINGS: usize = 100;

/// Rules alone.
pub struct ByRules {
    rules: RuleReasoner,
}

impl ByRules {
    /// `rules` applied to `graph`.
    pub fn new(graph: &Arc<Graph>, rules: Arc<[ScoredRule]>, options: ApplyOptions) -> Self {
        Self { rules: RuleReasoner::new(graph, rules, options) }
    }

    /// The same rules applied to another graph with the same entities and relations.
    pub fn over(&self, graph: &Arc<Graph>) -> Self {
        Self { rules: self.rules.over(graph) }
    }

    /// The reasoner behind it.
    pub fn rules(&self) -> &RuleReasoner {
        &self.rules
    }

    /// What the rules predict for each of `queries`, and the `rest` by frequency.
    pub(super) fn ranked(
        &self,
        queries: &[Query],
        rest: bool,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<RuleAnswer>>, Interrupted> {
        let ranked = |&query: &Query| self.rules.ranked_unless(query, rest, &|| progress.interrupted());
        queries.par_iter().with_max_len(64).map(|query| ranked(query).ok_or(Interrupted)).collect()
    }

    /// The `most` most confident rules that predict `candidate`, as reasons. The first is already known if rules
    /// ranked the candidate; the others are looked up.
    pub(super) fn reasons_for(&self, query: Query, candidate: &Candidate, most: usize) -> Vec<Reasoned> {
        if let (1, Some(rule)) = (most, candidate.evidence.rule())
            && let Some(reason) = self.rules.explain_by(query, candidate.entity, rule)
        {
            return vec![by_rule(&reason, candidate.entity, candidate.score)];
        }
        let fired = self.rules.explain_briefly(query, candidate.entity, most);
        fired.iter().map(|reason| by_rule(reason, candidate.entity, candidate.score)).collect()
    }
}

impl ByRules {
    /// What each rule has of the `share` that the rules have in a candidate's score.
    pub(super) fn parts(
        &self,
        query: Query,
        candidate: &Candidate,
        share: f64,
        detail: Detail,
    ) -> Vec<SharePart> {
        let fired = &candidate.evidence.rules;
        let shown = match detail {
            Detail::Brief | Detail::Shown => BRIEFLY,
            Detail::Full => fired.len(),
        };
        let part = |(&rule, fraction): (&u32, f64)| {
            let groundings = match detail {
                Detail::Brief | Detail::Shown => Vec::new(),
                Detail::Full => self.rules.explain_all(query, candidate.entity, rule, GROUNDINGS),
            };
            let grounded = |one: &FiredRule<'_>| by_rule(one, candidate.entity, candidate.score);
            SharePart {
                share: fraction * share,
                source: ShareSource::Rule {
                    alone: self.rules.confidence(rule),
                    rule: self.rules.rule(rule).clone(),
                    groundings: groundings.iter().map(grounded).collect(),
                },
            }
        };
        let fractions = self.rules.fractions(fired);
        let parts = fired.iter().zip(fractions).take(shown).map(part).collect();
        with_rest(share, parts, fired.len().saturating_sub(shown))
    }

    /// The first grounding of `rule` that the limits admit, among the first hundred.
    fn grounded(
        &self,
        query: Query,
        candidate: &Candidate,
        rule: u32,
        limits: &PathLimits,
    ) -> Option<Reasoned> {
        if !limits.admit_links(self.rules.rule(rule).rule.body.iter()) {
            return None;
        }
        let groundings = self.rules.explain_all(query, candidate.entity, rule, GROUNDINGS);
        let ways = groundings.iter().map(|one| by_rule(one, candidate.entity, candidate.score));
        ways.into_iter().find(|way| limits.admit(query, way))
    }

    /// What the rules that predict a candidate say together.
    pub(super) fn together(&self, candidate: &Candidate) -> Option<f64> {
        self.rules.aggregated(candidate.evidence.rules.iter().map(|&rule| self.rules.confidence(rule)))
    }
}

impl Explains for ByRules {
    fn reasoner(&self) -> &dyn Reasoner {
        &self.rules
    }

    fn search(
        &self,
        queries: &[Query],
        _at_least: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Found>, ReasonerError> {
        let found = |(&query, answers): (&Query, Vec<RuleAnswer>)| {
            let evidence =
                |answer: RuleAnswer| (answer.scored, Evidence { rules: answer.rules, ..Evidence::default() });
            let candidates = ranked(query, self.rules.graph(), answers.into_iter().map(evidence));
            Found { query, candidates }
        };
        Ok(queries.iter().zip(self.ranked(queries, true, progress)?).map(found).collect())
    }

    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        match candidate.evidence.rule() {
            Some(_) => Ok(self.reasons_for(query, candidate, most)),
            // Listed because it is frequent; no rule predicts it.
            None => Ok(Vec::new()),
        }
    }

    /// Of every rule that predicts it, the first grounding that the limits admit.
    fn reasons_within(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
        limits: &PathLimits,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        let Some(fired) = self.rules.firings(query, candidate.entity, &|| false) else {
            return Ok(Vec::new());
        };
        let admitted = fired.iter().filter_map(|&(_, rule)| self.grounded(query, candidate, rule, limits));
        Ok(admitted.take(most).collect())
    }

    fn because(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        let typical = typical_score(found);
        let one = |candidate: &&Candidate| {
            let parts = self.parts(found.query, candidate, candidate.score - typical, detail);
            let mut because = Because::alone(RULES, candidate.score, typical, parts);
            because.members[0].together = self.together(candidate);
            because
        };
        Ok(chosen.iter().map(one).collect())
    }

    fn rescored(&self, _query: Query, candidate: &Candidate, _before: f64, after: Option<f64>) -> Rescored {
        match (candidate.evidence.rule(), after) {
            (None, _) => Rescored::Same,
            (Some(_), Some(score)) => Rescored::Score(score),
            (Some(_), None) => Rescored::Unsupported,
        }
    }
}

/// An answer that a rule predicts, with the path that grounds the rule.
pub fn by_rule(reason: &FiredRule<'_>, entity: EntityId, score: f64) -> Reasoned {
    let targets = reason.grounding.iter().skip(1);
    let hop = |(&link, &target)| Hop { link, target, scores: None };
    Reasoned {
        entity,
        score,
        start: reason.grounding[0],
        path: reason.path.iter().zip(targets).map(hop).collect(),
        rule: Some(reason.rule.clone()),
        without: None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::graph::{Link, RelationId, Triple};
    use crate::progress::{Countdown, Silent};
    use crate::reason::supported;
    use crate::rule::{Counts, Rule};

    /// All entities are linked to each other by two relations, and rules predict a third.
    pub(crate) fn crowd(rules: &[(u64, u64)]) -> (Arc<Graph>, ByRules) {
        let all = (0..40 * 40 * 2).map(|i| Triple::new(i / 80, i % 2, i / 2 % 40));
        let facts: Vec<Triple> = all.collect();
        let graph = Arc::new(Graph::new(40, 3, &facts));
        let links = [0, 1].map(|relation| Link::forward(RelationId(relation)));
        let scored = |(place, &(predicted, correct)): (usize, &(u64, u64))| ScoredRule {
            rule: Rule::cyclic(Link::forward(RelationId(2)), &[links[place % 2], links[place / 2 % 2]]),
            counts: Counts::exact(predicted, correct),
        };
        let rules: Vec<ScoredRule> = rules.iter().enumerate().map(scored).collect();
        let reasoner = ByRules::new(&graph, rules.into(), ApplyOptions::default());
        (graph, reasoner)
    }

    pub(crate) fn asked() -> Query {
        Query { subject: EntityId(1), link: Link::forward(RelationId(2)) }
    }

    #[test]
    fn a_search_that_has_begun_is_stopped() {
        let (_, reasoner) = crowd(&[(90, 60); 300]);
        let asks = |allowed| reasoner.search(&[asked()], 10, &Countdown::from(allowed));
        // `progress` is asked at the beginning and after every 64 rules.
        for allowed in 0..4 {
            let error = asks(allowed).unwrap_err();
            assert!(error.is::<Interrupted>(), "after {allowed}: {error}");
        }
        assert_eq!(asks(usize::MAX).unwrap(), reasoner.search(&[asked()], 10, &Silent).unwrap());
    }

    #[test]
    fn what_is_left_without_a_rule_is_what_the_others_say() {
        let counts = [(90, 60), (80, 40), (70, 7)];
        let (_, all) = crowd(&counts);
        let found = all.search(&[asked()], 10, &Silent).unwrap().remove(0);
        let best = supported(&all, &found, 1).unwrap().remove(0).entity;
        let candidate = found.candidates.iter().find(|candidate| candidate.entity == best).unwrap();
        let firings = all.rules().firings(asked(), best, &|| false).unwrap();
        assert_eq!(firings.len(), 3);
        let confidences = || firings.iter().map(|one| one.0);
        let before = all.rules().aggregated(confidences()).unwrap();
        assert!((before - candidate.score).abs() < 1e-12);
        for (place, &(_, gone)) in firings.iter().enumerate() {
            let others = confidences().enumerate().filter(|(at, _)| *at != place).map(|(_, one)| one);
            let after = all.rules().aggregated(others);
            // A rule that never holds takes its place.
            let mut fewer = counts;
            fewer[gone as usize] = (1_000_000_000, 0);
            let (_, without) = crowd(&fewer);
            let found = without.search(&[asked()], 10, &Silent).unwrap().remove(0);
            let expected = found.candidates.iter().find(|candidate| candidate.entity == best).unwrap().score;
            let Rescored::Score(score) = all.rescored(asked(), candidate, before, after) else {
                panic!("the others still predict it");
            };
            assert!((score - expected).abs() < 1e-9, "{score} {expected}");
        }
        assert_eq!(all.rescored(asked(), candidate, before, None), Rescored::Unsupported);
    }
}
