//! Reasoners that can say why: what the questions of a user need beyond ranking.

mod blend;
mod embedding;
mod evidence;
mod joint;
mod walker;

pub use blend::{Blend, Recipe, Voices};
pub use embedding::ByEmbedding;
pub use evidence::{Hop, Reasoned};
pub use joint::{Opinion, path_table};
pub use walker::ByWalker;

use crate::eval::{Reasoner, ReasonerError, Scored};
use crate::graph::{Graph, Link, Query};
use crate::rule::{ApplyOptions, Counts, Reason, RuleReasoner, ScoredRule, UNSEEN};
use crate::walk::Walker;
use rayon::prelude::*;
use std::sync::{Arc, OnceLock};

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

    /// For each of `answers` to `query` its best reasons, at most `most`; none for one that nothing speaks for.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn reasons(
        &self,
        query: Query,
        answers: &[Scored],
        most: usize,
    ) -> Result<Vec<Vec<Reasoned>>, ReasonerError>;

    /// All entities that are scored for `query` and that the graph does not have, best first, whether anything but
    /// the score speaks for them or not.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn ranked(&self, query: Query, graph: &Graph) -> Result<Vec<Scored>, ReasonerError> {
        let answers = self.reasoner().answer(&[query])?;
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
    ) -> Result<Vec<Vec<Reasoned>>, ReasonerError> {
        let mut all = Vec::with_capacity(queries.len());
        for batch in queries.chunks(self.reasoner().batch().max(1)) {
            let answers = self.reasoner().answer(batch)?;
            let of_row = |(row, &query): (usize, &Query)| {
                let known = graph.targets(query.subject, query.link);
                let mut wanted = top.saturating_add(known.len() + SPARE);
                loop {
                    let mut best = answers.best(row, wanted);
                    let all = best.len() < wanted;
                    best.retain(|scored| known.binary_search(&scored.entity).is_err());
                    let reasoned = self.first_with_reason(query, &best, top)?;
                    // Where few have a reason, the rest is looked at as well.
                    if all || reasoned.len() == top {
                        return Ok(reasoned);
                    }
                    wanted = usize::MAX;
                }
            };
            let rows: Result<Vec<_>, ReasonerError> = batch.par_iter().enumerate().map(of_row).collect();
            all.extend(rows?);
        }
        Ok(all)
    }

    /// The first `top` of `answers` that have a reason, each with its best one.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn first_with_reason(
        &self,
        query: Query,
        answers: &[Scored],
        top: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        let mut reasoned = Vec::new();
        let mut rest = answers;
        while reasoned.len() < top && !rest.is_empty() {
            let (next, later) = rest.split_at(rest.len().min(top - reasoned.len()));
            reasoned.extend(self.reasons(query, next, 1)?.into_iter().flatten());
            rest = later;
        }
        Ok(reasoned)
    }
}

/// From this confidence on, that an entity is linked to itself is a rule of its own.
const REFLEXIVE: f64 = 0.1;

/// Which links often lead from an entity to itself. For others, that the subject of a query is its own answer takes
/// more of a reason than a score: a single odd fact is none.
struct Reflexive<'g> {
    graph: &'g Graph,
    /// By link, once it was asked.
    found: Vec<OnceLock<bool>>,
}

impl<'g> Reflexive<'g> {
    fn new(graph: &'g Graph) -> Self {
        Self { graph, found: vec![OnceLock::new(); graph.links()] }
    }

    fn is(&self, link: Link) -> bool {
        let often = || {
            let (mut predicted, mut correct) = (0, 0);
            for (from, to) in self.graph.pairs(link).rows() {
                predicted += 1;
                correct += u64::from(to.binary_search(&from).is_ok());
            }
            Counts::exact(predicted, correct).confidence(UNSEEN) >= REFLEXIVE
        };
        *self.found[link.index()].get_or_init(often)
    }
}

/// Rules alone.
pub struct ByRules<'g> {
    rules: RuleReasoner<'g>,
}

impl<'g> ByRules<'g> {
    /// `rules` applied to `graph`.
    pub fn new(graph: &'g Graph, rules: Arc<[ScoredRule]>, options: ApplyOptions) -> Self {
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

    fn reasons(
        &self,
        query: Query,
        answers: &[Scored],
        most: usize,
    ) -> Result<Vec<Vec<Reasoned>>, ReasonerError> {
        let of_one = |&answer: &Scored| {
            let fired = self.rules.explain_briefly(query, answer.entity, most);
            fired.iter().map(|reason| by_rule(reason, answer)).collect()
        };
        Ok(answers.iter().map(of_one).collect())
    }
}

/// An answer that a rule gives, with the path that grounds the rule.
pub fn by_rule(reason: &Reason<'_>, answer: Scored) -> Reasoned {
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
