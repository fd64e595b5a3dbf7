//! Reasoners that explain their answers.
//!
//! A reasoner [searches](Explains::search) once per query. The search returns candidates with their
//! [evidence](Evidence), and [reasons](Explains::reasons) are made from that without another search.

mod because;
mod beside_learnt;
mod blend;
mod by_score;
mod cases;
mod embedding;
mod evidence;
mod fit;
mod joint;
mod kinds;
mod limits;
mod of_kind;
mod path_rules;
mod propagator;
mod recipe;
mod reflexive;
mod rules;
mod walker;

pub use because::{Because, Detail, GraphFeature, MemberShare, SharePart, ShareSource};
pub use beside_learnt::{BesideLearnt, of_first_relations};
pub use blend::{Blend, Further, JudgedQueries, Members};
pub use by_score::ByScore;
pub use cases::{Case, CaseSide};
pub use embedding::ByEmbedding;
pub use evidence::{Candidate, Evidence, Found, Hop, Reasoned, ScoreWithout};
pub use joint::{EmbeddingReward, PropagatorReward, path_table};
pub use kinds::Kinds;
pub use limits::PathLimits;
pub use of_kind::OfKind;
pub use path_rules::PathRuleIndex;
pub use propagator::ByPropagator;
pub use recipe::{FeatureWeights, Recipe};
pub use rules::{ByRules, by_rule};
pub use walker::ByWalker;

use crate::eval::{Reasoner, ReasonerError, Scored};
use crate::graph::{EntityId, Graph, Query};
use crate::progress::{Interrupted, Progress};
use crate::walk::Walker;

/// How many reasons are looked at to find one that limits admit.
const LOOKED_AT: usize = 16;

/// A reasoner that can explain its answers.
pub trait Explains: Send + Sync {
    /// The same as a plain [`Reasoner`], for ranking.
    fn reasoner(&self) -> &dyn Reasoner;

    /// The walker, if it alone answers.
    fn walker(&self) -> Option<&Walker> {
        None
    }

    /// Whether an embedding model has a say in the answers to `query`, if the run has one.
    fn heeds_embedding(&self, _query: Query) -> bool {
        true
    }

    /// The candidates of each of `queries`, at most [`batch`](Reasoner::batch) of them. Where every entity is a
    /// candidate, the best `at_least` are enough. `progress` is asked many times a second whether to stop.
    ///
    /// # Errors
    /// Whatever makes the reasoner fail; [`Interrupted`] if it is stopped.
    fn search(
        &self,
        queries: &[Query],
        at_least: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Found>, ReasonerError>;

    /// Those of `queries`, at most [`batch`](Reasoner::batch), that have candidates and for which `is_needed` does not
    /// say no, given bounds on the scores of the candidates. All of them, unless bounds are much cheaper than scores.
    ///
    /// # Errors
    /// As for [`search`](Self::search).
    fn needed(
        &self,
        queries: &[Query],
        _is_needed: &IsNeeded<'_>,
        _progress: &dyn Progress,
    ) -> Result<Vec<Query>, ReasonerError> {
        Ok(queries.to_vec())
    }

    /// The best reasons for a candidate that [`search`](Self::search) found for `query`, at most `most`; none for one
    /// that is unsupported.
    ///
    /// # Errors
    /// If the reasoner cannot explain its answer.
    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError>;

    /// The same whose paths the `limits` admit.
    ///
    /// # Errors
    /// If the reasoner cannot explain its answer.
    fn reasons_within(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
        limits: &PathLimits,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        let mut reasons = self.reasons(query, candidate, LOOKED_AT)?;
        reasons.retain(|way| limits.admit(query, way));
        reasons.truncate(most);
        Ok(reasons)
    }

    /// Whether each of the first `count` candidates of `found` has [a reason](Self::reasons), without looking for the best.
    ///
    /// # Errors
    /// If the reasoner cannot explain an answer.
    fn are_supported(&self, found: &Found, count: usize) -> Result<Vec<bool>, ReasonerError> {
        let supported = |candidate: &Candidate| Ok(!self.reasons(found.query, candidate, 1)?.is_empty());
        found.candidates.iter().take(count).map(supported).collect()
    }

    /// What the scores of the `chosen` candidates of `found` came from.
    ///
    /// # Errors
    /// Whatever makes a member fail.
    fn because(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        _detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        let typical = because::typical_score(found);
        let one =
            |candidate: &&Candidate| Because::alone(because::REASONER, candidate.score, typical, Vec::new());
        Ok(chosen.iter().map(one).collect())
    }

    /// What a `share` that this reasoner has in the score of a candidate of a blend consists of, where its own score counts
    /// `weight` times; empty if it cannot say.
    ///
    /// # Errors
    /// Whatever makes the reasoner fail.
    fn shared_out(
        &self,
        _query: Query,
        _candidate: &Candidate,
        _share: f64,
        _weight: f64,
    ) -> Result<Vec<SharePart>, ReasonerError> {
        Ok(Vec::new())
    }

    /// The propagator's score of an answer without each of some paths; empty if there is no propagator. Costs one
    /// propagation per path.
    ///
    /// # Errors
    /// Whatever makes the propagator fail.
    fn without(
        &self,
        _query: Query,
        _answer: EntityId,
        ways: &[Reasoned],
    ) -> Result<Vec<Option<ScoreWithout>>, ReasonerError> {
        Ok(vec![None; ways.len()])
    }

    /// The score of a candidate of `query` if the rules that predict it scored `after` together instead of `before`;
    /// `after` is `None` if no rule predicted it.
    fn rescored(&self, _query: Query, _candidate: &Candidate, _before: f64, _after: Option<f64>) -> Rescored {
        Rescored::Same
    }
}

/// Bounds on the best scores of a query's candidates that are not facts of the graph, place by place.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreBounds {
    /// The query.
    pub query: Query,
    /// At least these, best first; all, or the best [`TOP`](crate::eval::calibration::TOP).
    pub lowest: Vec<f64>,
    /// At most these; as many.
    pub highest: Vec<f64>,
}

/// Whether the candidates of a query are needed, given bounds on their scores.
pub type IsNeeded<'a> = dyn Fn(&ScoreBounds) -> bool + Sync + 'a;

/// The score of a candidate under other rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rescored {
    /// Unchanged: it does not depend on the rules.
    Same,
    /// Another score.
    Score(f64),
    /// None: nothing else supports the candidate.
    Unsupported,
}

/// An error if `progress` says to stop.
fn unless_stopped(progress: &dyn Progress) -> Result<(), Interrupted> {
    if progress.interrupted() { Err(Interrupted) } else { Ok(()) }
}

/// The first `top` candidates that have a reason, each with its best one.
///
/// # Errors
/// If `reasoner` cannot explain an answer.
pub fn supported(reasoner: &dyn Explains, found: &Found, top: usize) -> Result<Vec<Reasoned>, ReasonerError> {
    let mut supported = Vec::new();
    for candidate in &found.candidates {
        if supported.len() == top {
            break;
        }
        supported.extend(reasoner.reasons(found.query, candidate, 1)?.into_iter().next());
    }
    Ok(supported)
}

/// The first `top` of the first `looked_at` candidates that have a reason whose path the `limits` admit, each with its best.
///
/// # Errors
/// If `reasoner` cannot explain an answer.
pub fn supported_within(
    reasoner: &dyn Explains,
    found: &Found,
    (top, looked_at): (usize, usize),
    limits: &PathLimits,
) -> Result<Vec<Reasoned>, ReasonerError> {
    let mut supported = Vec::new();
    for candidate in found.candidates.iter().take(looked_at) {
        if supported.len() == top {
            break;
        }
        supported.extend(reasoner.reasons_within(found.query, candidate, 1, limits)?.into_iter().next());
    }
    Ok(supported)
}

/// The candidates of each query from a member that scores every entity: the best, `spare` more than there are facts
/// among them.
fn found_among_all(
    reasoner: &dyn Reasoner,
    graph: &Graph,
    queries: &[Query],
    spare: usize,
    progress: &dyn Progress,
) -> Result<Vec<Found>, ReasonerError> {
    unless_stopped(progress)?;
    let answers = reasoner.answer(queries)?;
    let found = |(row, &query): (usize, &Query)| {
        let facts = graph.targets(query.subject, query.link).len();
        let best = answers.best(row, spare.saturating_add(facts));
        let bare = best.into_iter().map(|scored| (scored, Evidence::default()));
        Found { query, candidates: ranked(query, graph, bare) }
    };
    Ok(queries.iter().enumerate().map(found).collect())
}

/// Sorts candidates of `query` as rankings do, best first and ties by id, and leaves out facts of `graph`.
fn ranked(
    query: Query,
    graph: &Graph,
    candidates: impl Iterator<Item = (Scored, Evidence)>,
) -> Vec<Candidate> {
    let facts = graph.targets(query.subject, query.link);
    let new = |(scored, _): &(Scored, Evidence)| facts.binary_search(&scored.entity).is_err();
    let candidate =
        |(Scored { entity, score }, evidence): (Scored, Evidence)| Candidate { entity, score, evidence };
    let mut ranked: Vec<Candidate> = candidates.filter(new).map(candidate).collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity)));
    ranked
}
