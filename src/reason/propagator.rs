//! The propagator as a reasoner that explains: the paths along which most of an answer's score came.
//!
//! Scores come from one propagation a query; paths cost a pass back for every answer, so they are looked for only where
//! somebody asks why. A path is shown with the mined rule whose body it is, if its entities are all different.

use super::path_rules::PathRuleIndex;
use super::{Candidate, Explains, Found, Hop, Reasoned, found_among_all};
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{Graph, Query};
use crate::propagate::{MessagePath, Propagator};
use crate::rule::ScoredRule;
use std::sync::Arc;

/// The propagator and the rules that its paths may follow.
pub struct ByPropagator {
    propagator: Arc<Propagator>,
    graph: Arc<Graph>,
    rules: PathRuleIndex,
}

impl ByPropagator {
    /// `propagator` on `graph`, whose paths may follow `rules`.
    pub fn new(propagator: Arc<Propagator>, graph: &Arc<Graph>, rules: &[ScoredRule]) -> Self {
        Self { propagator, graph: Arc::clone(graph), rules: PathRuleIndex::new(rules) }
    }

    /// The scores of all entities for each of `queries`, row after row.
    pub(super) fn scores(&self, queries: &[Query]) -> Result<Vec<f32>, ReasonerError> {
        let mut all = Vec::with_capacity(queries.len() * self.graph.entities());
        for batch in queries.chunks(self.propagator.batch()) {
            all.extend(self.propagator.scores(batch)?.to_vec()?);
        }
        Ok(all)
    }

    /// The best paths to a candidate, at most `most`.
    pub(super) fn ways(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        let paths = self.propagator.paths(query, candidate.entity, most, None)?;
        let reasoned = |path: &MessagePath| {
            let hop =
                |hop: &crate::propagate::PathHop| Hop { link: hop.link, target: hop.entity, scores: None };
            let path: Vec<Hop> = path.hops.iter().map(hop).collect();
            let rule = self.rules.of(query, &path).cloned();
            Reasoned { entity: candidate.entity, score: candidate.score, start: query.subject, path, rule }
        };
        Ok(paths.iter().map(reasoned).collect())
    }
}

impl Explains for ByPropagator {
    fn reasoner(&self) -> &dyn Reasoner {
        &*self.propagator
    }

    fn search(&self, queries: &[Query], at_least: usize) -> Result<Vec<Found>, ReasonerError> {
        let answers = self.propagator.answer(queries)?;
        // Some of the best may be out of reach and have no path.
        Ok(found_among_all(queries, &answers, &self.graph, at_least.saturating_mul(2)))
    }

    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        self.ways(query, candidate, most)
    }
}
