//! The propagator as a reasoner that explains: the paths along which most of an answer's score came.
//!
//! Scores come from one propagation a query; paths cost a pass back for every answer, so they are looked for only where
//! somebody asks why. A path is shown with the mined rule whose body it is, if its entities are all different.

use super::path_rules::PathRuleIndex;
use super::{Candidate, Explains, Found, Hop, Reasoned, ScoreWithout, found_among_all, unless_stopped};
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{EntityId, Graph, Link, Query};
use crate::progress::Progress;
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
    pub(super) fn scores(
        &self,
        queries: &[Query],
        progress: &dyn Progress,
    ) -> Result<Vec<f32>, ReasonerError> {
        let mut all = Vec::with_capacity(queries.len() * self.graph.entities());
        for batch in queries.chunks(self.propagator.batch()) {
            unless_stopped(progress)?;
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

/// The facts of a path, each (entity, link, entity).
fn facts(way: &Reasoned) -> Vec<(EntityId, Link, EntityId)> {
    let starts = std::iter::once(way.start).chain(way.path.iter().map(|hop| hop.target));
    let walked = starts.zip(&way.path).filter(|(_, hop)| hop.link != Link::NO_OP);
    walked.map(|(from, hop)| (from, hop.link, hop.target)).collect()
}

impl Explains for ByPropagator {
    fn reasoner(&self) -> &dyn Reasoner {
        &*self.propagator
    }

    fn search(
        &self,
        queries: &[Query],
        at_least: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Found>, ReasonerError> {
        // Some of the best may be out of reach and have no path.
        found_among_all(self.reasoner(), &self.graph, queries, at_least.saturating_mul(2), progress)
    }

    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        self.ways(query, candidate, most)
    }

    fn without(
        &self,
        query: Query,
        answer: EntityId,
        ways: &[Reasoned],
    ) -> Result<Vec<Option<ScoreWithout>>, ReasonerError> {
        let score_without = |facts: &[(EntityId, Link, EntityId)]| {
            Ok::<f64, ReasonerError>(self.propagator.score_without(query, answer, facts)?.into())
        };
        let mut score = None;
        let mut all = Vec::with_capacity(ways.len());
        for facts in ways.iter().map(facts) {
            // An answer by a rule without a body has no path to take out.
            all.push(match (facts.is_empty(), score) {
                (true, _) => None,
                (false, Some(score)) => Some(ScoreWithout { score, without: score_without(&facts)? }),
                (false, None) => {
                    let whole = *score.insert(score_without(&[])?);
                    Some(ScoreWithout { score: whole, without: score_without(&facts)? })
                }
            });
        }
        Ok(all)
    }
}
