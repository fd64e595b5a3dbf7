//! Reasoners that can say why: what the questions of a user need beyond ranking.

mod blend;
mod embedding;
mod walker;

pub use blend::{Blend, Recipe, Weights};
pub use embedding::ByEmbedding;
pub use walker::ByWalker;

use super::PipelineError;
use super::answer::{Hop, Reasoned};
use crate::eval::{Reasoner, Scored};
use crate::graph::{Graph, Query};
use crate::rule::{ApplyOptions, Reason, RuleReasoner, ScoredRule};
use crate::walk::Walker;
use rayon::prelude::*;

/// How many more answers than wanted are asked for, since some are known facts and some have no reason.
const SPARE: usize = 64;

/// A reasoner that can say why. Every answer it gives a user has a reason.
pub trait Explains: Sync {
    /// The same as ranking sees it.
    fn reasoner(&self) -> &dyn Reasoner;

    /// The walker, if it is one that answers.
    fn walker(&self) -> Option<&Walker> {
        None
    }

    /// The best reasons for an answer to `query`, at most `most`; none if there is none.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn reasons(&self, query: Query, answer: Scored, most: usize) -> Result<Vec<Reasoned>, PipelineError>;

    /// All answers to `query` that the graph does not have, best first.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn ranked(&self, query: Query, graph: &Graph) -> Result<Vec<Scored>, PipelineError> {
        let answers = self.reasoner().answer(&[query]).map_err(PipelineError::Reasoner)?;
        let mut best = answers.best(0, graph.entities());
        best.retain(|scored| !graph.contains(query.subject, query.link, scored.entity));
        Ok(best)
    }

    /// For each of `queries` the `top` best answers that the graph does not have and that have a reason, each
    /// with its best one.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn reasoned(
        &self,
        queries: &[Query],
        top: usize,
        graph: &Graph,
    ) -> Result<Vec<Vec<Reasoned>>, PipelineError> {
        let mut all = Vec::with_capacity(queries.len());
        for batch in queries.chunks(self.reasoner().batch().max(1)) {
            let answers = self.reasoner().answer(batch).map_err(PipelineError::Reasoner)?;
            let of_row = |(row, &query): (usize, &Query)| {
                let known = graph.targets(query.subject, query.link);
                let mut reasoned = Vec::with_capacity(top);
                for scored in answers.best(row, top + known.len() + SPARE) {
                    if reasoned.len() == top {
                        break;
                    }
                    if known.binary_search(&scored.entity).is_err() {
                        reasoned.extend(self.reasons(query, scored, 1)?);
                    }
                }
                Ok(reasoned)
            };
            let rows: Result<Vec<_>, PipelineError> = batch.par_iter().enumerate().map(of_row).collect();
            all.extend(rows?);
        }
        Ok(all)
    }
}

/// Rules alone.
pub struct ByRules<'g> {
    rules: RuleReasoner<'g>,
}

impl<'g> ByRules<'g> {
    /// `rules` applied to `graph`.
    pub fn new(graph: &'g Graph, rules: Vec<ScoredRule>, options: ApplyOptions) -> Self {
        Self { rules: RuleReasoner::new(graph, rules, options) }
    }

    /// The reasoner behind it.
    pub fn rules(&self) -> &RuleReasoner<'g> {
        &self.rules
    }
}

impl Explains for ByRules<'_> {
    fn reasoner(&self) -> &dyn Reasoner {
        &self.rules
    }

    fn reasons(&self, query: Query, answer: Scored, most: usize) -> Result<Vec<Reasoned>, PipelineError> {
        let fired = self.rules.explain_briefly(query, answer.entity, most);
        Ok(fired.iter().map(|reason| by_rule(reason, answer)).collect())
    }
}

/// An answer that a rule gives, with the path that grounds the rule.
pub(super) fn by_rule(reason: &Reason<'_>, answer: Scored) -> Reasoned {
    let targets = reason.grounding.iter().skip(1);
    Reasoned {
        entity: answer.entity,
        score: answer.score,
        start: reason.grounding[0],
        path: reason
            .path
            .iter()
            .zip(targets)
            .map(|(&link, &target)| Hop { link, target, scores: None })
            .collect(),
        rule: Some(reason.rule.clone()),
    }
}
