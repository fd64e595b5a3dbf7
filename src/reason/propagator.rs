//! A propagator, trained or universal, as a reasoner that explains: the paths that contribute most to an answer's score.
//!
//! Scores come from one propagation per query. Paths cost a backward pass per answer, so they are computed only for
//! explanations. A path is shown with the mined rule whose body it is, if its entities are all different.
//!
//! A gradient says how one edge changes the score, and a network uses any correlation. A reason must also be convincing
//! by itself, and the answer must depend on it. So, where there are rules, paths are ordered by the confidence of the
//! rule that they follow and by how far the score falls without them.

use super::because::{PROPAGATOR, typical_score, with_rest};
use super::path_rules::PathRuleIndex;
use super::{
    Because, Candidate, Detail, Explains, Found, Hop, Reasoned, ScoreWithout, SharePart, ShareSource,
    found_among_all, unless_stopped,
};
use crate::eval::{Answers, Reasoner, ReasonerError};
use crate::graph::{EntityId, Graph, Link, Query};
use crate::progress::Progress;
use crate::propagate::{MessagePath, PathHop, PathNetwork};
use crate::rule::{ScoredRule, UNSEEN};
use std::sync::Arc;

/// The fewest and the most paths whose removal is tried; fewer on large graphs, where a pass takes long.
const TRIED: [usize; 2] = [2, 16];
/// The paths that have a share of their own in a decomposition.
const SHOWN: usize = 5;
/// The most facts that these passes may visit in total.
const FACTS: usize = 1_000_000;
/// The confidence assumed for a path that follows no mined rule.
const NO_RULE: f64 = 0.05;
/// The exponent of the score's loss beside the confidence, chosen when paths could still visit an entity twice. Of the
/// best paths of right answers on three families of 150 people, 90, 98 and 92 % then followed a true rule, and 94 to 97 %
/// lowered the score more when removed than a random walk did. With an exponent of 1, 84 and 89 % in two of the families
/// followed a true rule; by gradients alone 88 and 84 % did, and 85 and 80 % lowered the score more when removed.
const LOSS: f64 = 0.25;

/// The propagator and the rules that its paths may follow.
pub struct ByPropagator {
    propagator: Arc<dyn PathNetwork>,
    graph: Arc<Graph>,
    rules: PathRuleIndex,
}

impl ByPropagator {
    /// `propagator` on `graph`, whose paths may follow `rules`.
    pub fn new(propagator: Arc<dyn PathNetwork>, graph: &Arc<Graph>, rules: &[ScoredRule]) -> Self {
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
            match self.propagator.answer(batch)? {
                Answers::Dense { scores, .. } => all.extend(scores),
                Answers::Listed(_) => unreachable!("networks score all entities"),
            }
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
        if self.rules.is_empty() {
            let paths = self.propagator.paths(query, candidate.entity, most)?;
            return Ok(paths.iter().map(|path| self.reasoned(query, candidate, path)).collect());
        }
        let paths = self.propagator.paths(query, candidate.entity, TRIED[1].max(most))?;
        let by_slope = |path: &MessagePath| {
            let way = self.reasoned(query, candidate, path);
            (path.weight * confidence(&way), way)
        };
        let mut ways = best_first(paths.iter().map(by_slope).collect());
        ways.truncate((FACTS / self.graph.facts().max(1)).clamp(TRIED[0], TRIED[1]).max(most));
        let without = self.without(query, candidate.entity, &ways)?;
        let by_loss = |(way, without): (Reasoned, Option<ScoreWithout>)| {
            let loss = without.map_or(0.0, |scores| scores.score - scores.without);
            (loss.max(0.0).powf(LOSS) * confidence(&way), Reasoned { without, ..way })
        };
        let mut ways = best_first(ways.into_iter().zip(without).map(by_loss).collect());
        ways.truncate(most);
        Ok(ways)
    }

    /// A path as a reason for `candidate`.
    fn reasoned(&self, query: Query, candidate: &Candidate, path: &MessagePath) -> Reasoned {
        let hop = |hop: &PathHop| Hop { link: hop.link, target: hop.entity, scores: None };
        let path: Vec<Hop> = path.hops.iter().map(hop).collect();
        let rule = self.rules.of(query, &path).cloned();
        let Candidate { entity, score, .. } = *candidate;
        Reasoned { entity, score, start: query.subject, path, rule, without: None }
    }
}

/// The confidence of a path by itself.
fn confidence(way: &Reasoned) -> f64 {
    way.rule.as_ref().map_or(NO_RULE, |rule| rule.counts.confidence(UNSEEN))
}

/// Sorts paths by weight, best first; the sort is stable.
fn best_first(mut ways: Vec<(f64, Reasoned)>) -> Vec<Reasoned> {
    ways.sort_by(|a, b| b.0.total_cmp(&a.0));
    ways.into_iter().map(|(_, way)| way).collect()
}

impl ByPropagator {
    /// What each path has of the `share` that the propagator has in a candidate's score: the score that is lost without
    /// it, times `weight`. Paths may replace each other, so that these are more than the share; they are then scaled.
    pub(super) fn parts(
        &self,
        query: Query,
        candidate: &Candidate,
        share: f64,
        weight: f64,
    ) -> Result<Vec<SharePart>, ReasonerError> {
        let ways = self.ways(query, candidate, SHOWN)?;
        let lost = self.without(query, candidate.entity, &ways)?;
        let loss = |lost: &Option<ScoreWithout>| lost.map_or(0.0, |one| weight * (one.score - one.without));
        let losses: Vec<f64> = lost.iter().map(|lost| loss(lost).max(0.0)).collect();
        let total: f64 = losses.iter().sum();
        let scale = if total > share.max(0.0) { share.max(0.0) / total } else { 1.0 };
        let part = |((way, without), loss): ((Reasoned, Option<ScoreWithout>), f64)| SharePart {
            share: scale * loss,
            source: ShareSource::Path(Reasoned { without, ..way }),
        };
        let parts = ways.into_iter().zip(lost).zip(losses).map(part).collect();
        Ok(with_rest(share, parts, 0))
    }
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
        // Some of the best candidates may be out of reach and have no path.
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

    fn because(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        let typical = typical_score(found);
        let one = |candidate: &&Candidate| {
            let parts = match detail {
                Detail::Brief => Vec::new(),
                Detail::Full => self.parts(found.query, candidate, candidate.score - typical, 1.0)?,
            };
            Ok::<_, ReasonerError>(Because::alone(PROPAGATOR, candidate.score, typical, parts))
        };
        chosen.iter().map(one).collect()
    }

    fn shared_out(
        &self,
        query: Query,
        candidate: &Candidate,
        share: f64,
        weight: f64,
    ) -> Result<Vec<SharePart>, ReasonerError> {
        self.parts(query, candidate, share, weight)
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
        let mut whole = ways.iter().find_map(|way| way.without).map(|scores| scores.score);
        let mut all = Vec::with_capacity(ways.len());
        for way in ways {
            let facts = way.facts();
            // An answer by a rule without a body has no path to take out; some paths were already measured.
            if facts.is_empty() || way.without.is_some() {
                all.push(way.without);
                continue;
            }
            let score = match whole {
                Some(score) => score,
                None => *whole.insert(score_without(&[])?),
            };
            all.push(Some(ScoreWithout { score, without: score_without(&facts)? }));
        }
        Ok(all)
    }
}
