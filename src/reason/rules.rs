//! Rules as a reasoner that explains: the rule that predicts an answer, with a path that grounds it.

use super::{Candidate, Evidence, Explains, Found, Hop, Reasoned, ranked};
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{EntityId, Graph, Query};
use crate::rule::{ApplyOptions, FiredRule, RuleAnswer, RuleReasoner, ScoredRule};
use rayon::prelude::*;
use std::sync::Arc;

/// Rules alone.
pub struct ByRules {
    rules: RuleReasoner,
}

impl ByRules {
    /// `rules` applied to `graph`.
    pub fn new(graph: &Arc<Graph>, rules: Arc<[ScoredRule]>, options: ApplyOptions) -> Self {
        Self { rules: RuleReasoner::new(graph, rules, options) }
    }

    /// The reasoner behind it.
    pub fn rules(&self) -> &RuleReasoner {
        &self.rules
    }

    /// What the rules predict for each of `queries`.
    pub(super) fn ranked(&self, queries: &[Query]) -> Vec<Vec<RuleAnswer>> {
        queries.par_iter().with_max_len(64).map(|&query| self.rules.ranked(query)).collect()
    }

    /// The `most` most confident rules that predict `candidate`, as reasons. The first is known where rules have
    /// ranked it; others are looked up.
    pub(super) fn reasons_for(&self, query: Query, candidate: &Candidate, most: usize) -> Vec<Reasoned> {
        if let (1, Some(rule)) = (most, candidate.evidence.rule)
            && let Some(reason) = self.rules.explain_by(query, candidate.entity, rule)
        {
            return vec![by_rule(&reason, candidate.entity, candidate.score)];
        }
        let fired = self.rules.explain_briefly(query, candidate.entity, most);
        fired.iter().map(|reason| by_rule(reason, candidate.entity, candidate.score)).collect()
    }
}

impl Explains for ByRules {
    fn reasoner(&self) -> &dyn Reasoner {
        &self.rules
    }

    fn search(&self, queries: &[Query], _at_least: usize) -> Result<Vec<Found>, ReasonerError> {
        let found = |(&query, answers): (&Query, Vec<RuleAnswer>)| {
            let evidence = |answer: RuleAnswer| (answer.scored, Evidence { rule: answer.rule, walk: None });
            let candidates = ranked(query, self.rules.graph(), answers.into_iter().map(evidence));
            Found { query, candidates }
        };
        Ok(queries.iter().zip(self.ranked(queries)).map(found).collect())
    }

    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        match candidate.evidence.rule {
            Some(_) => Ok(self.reasons_for(query, candidate, most)),
            // Listed because it is frequent; no rule predicts it.
            None => Ok(Vec::new()),
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
    }
}
