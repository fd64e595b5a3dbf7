//! Runs the queries of a split and records whether the best answers are true.

use super::features::{COMPARED, RankedScores};
use super::fit::{JudgedAnswer, Outcome};
use crate::eval::evaluation::answers_with_crowds;
use crate::eval::{Answers, Crowd, EvalError, Reasoner, Scored, Side, Ties};
use crate::graph::{Adjacency, Graph, Link, Notes, Query, Triple};
use crate::progress::Progress;
use crate::shard::Shard;
use rayon::prelude::*;

/// The maximum number of scores kept per query; later answers are far behind.
const LISTED: usize = 1000;

/// Which answers of a query are considered, and which of them are true.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    /// The graph that queries are answered on. Its facts are not among the answers.
    pub graph: &'a Graph,
    /// Other facts that are not judged: those of earlier splits, if any.
    pub taken_out: Option<&'a Adjacency>,
    /// The facts that count as true.
    pub truth: &'a Adjacency,
    /// Whether other facts that count as false were held out, about as many and with the same probability.
    pub hides: bool,
    /// How certain the facts that count as true are; `None` if all are.
    pub notes: Option<&'a Notes>,
    /// Facts that are known to be false, sorted.
    pub denied: [&'a [Triple]; 2],
}

impl Judged<'_> {
    /// What is known of an answer with this score.
    fn answer(&self, query: Query, Scored { entity, score }: Scored) -> JudgedAnswer {
        let fact = query.fact(entity);
        let is_true = self.truth.contains(query.subject, query.link, entity);
        let confidence = || Some(f64::from(self.notes?.confidence(fact?)));
        let is_denied = || {
            let denied = |all: &&[Triple]| fact.is_some_and(|fact| all.binary_search(&fact).is_ok());
            self.denied.iter().any(denied)
        };
        let truth = if is_true { confidence().unwrap_or(1.0) } else { 0.0 };
        JudgedAnswer { score, truth, is_denied: !is_true && is_denied() }
    }
}

/// The mean number of answers in `graph` of queries over `link` that have any; 1 if there are none.
pub fn usual_answers(graph: &Graph, link: Link) -> f64 {
    let pairs = graph.pairs(link);
    pairs.len().max(1) as f64 / pairs.sources.len().max(1) as f64
}

impl RankedScores {
    /// The `scores` of the best answers to `query` on `graph`, from which facts of the graph are already removed.
    pub fn new(query: Query, graph: &Graph, scores: impl Iterator<Item = f64>) -> Self {
        let mut scores: Vec<f64> = scores.collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        scores.truncate(LISTED);
        scores.shrink_to_fit();
        let (known, usual) =
            (graph.targets(query.subject, query.link).len(), usual_answers(graph, query.link));
        Self { link: query.link, known, usual, scores }
    }
}

/// Both queries of every triple of `split`, each once, in the order of links and subjects.
pub(super) fn asked_once(split: &[Triple]) -> Vec<Query> {
    let mut queries: Vec<Query> = Side::Both.asked(split).map(|(query, _)| query).collect();
    queries.sort_unstable_by_key(|query| (query.link, query.subject));
    queries.dedup();
    queries
}

/// The outcomes of the `top` best answers to `queries`, each with its weight, for the batches of `shard`; only of the
/// first ones if the time is up before the last. A batch is answered in the order of links and subjects.
///
/// # Errors
/// If the reasoner fails, returns a NaN score, or the user interrupts.
pub fn observe(
    reasoner: &dyn Reasoner,
    queries: &[(Query, f64)],
    judged: Judged<'_>,
    top: usize,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>, EvalError> {
    let mut outcomes = Vec::with_capacity(queries.len() / shard.count() as usize + 1);
    let batches = (0..).zip(queries.chunks(reasoner.batch().max(1)));
    for (_, batch) in batches.filter(|(number, _)| shard.has(*number)) {
        if progress.interrupted() {
            return Err(EvalError::Interrupted);
        }
        // Outcomes of some of the queries are better than none.
        if !outcomes.is_empty() && progress.time_is_up() {
            break;
        }
        let mut batch = batch.to_vec();
        batch.sort_unstable_by_key(|(query, _)| (query.link, query.subject));
        let asked: Vec<Query> = batch.iter().map(|(query, _)| *query).collect();
        let (answers, crowds) =
            answers_with_crowds(reasoner, &asked, Ties::Realistic).map_err(EvalError::Reasoner)?;
        let seen: Result<Vec<Outcome>, EvalError> = (0..batch.len())
            .into_par_iter()
            .map(|row| {
                let crowd = crowds.get(row).and_then(Option::as_ref);
                outcome((&answers, row, crowd), batch[row], judged, top)
            })
            .collect();
        outcomes.extend(seen?);
        progress.advance(outcomes.len() as u64, &"");
    }
    Ok(outcomes)
}

fn outcome(
    (answers, row, crowd): (&Answers, usize, Option<&Crowd>),
    (query, weight): (Query, f64),
    judged: Judged<'_>,
    top: usize,
) -> Result<Outcome, EvalError> {
    let Judged { graph, taken_out, hides, .. } = judged;
    let Query { subject, link } = query;
    let taken = taken_out.map(|facts| facts.edges_by(subject, link)).unwrap_or_default();
    let is_taken = |entity| taken.binary_search_by_key(&entity, |edge| edge.target).is_ok();
    // Lists are taken completely, because ties share their rank. Of dense scores, take as many as may be needed.
    let most = match answers {
        Answers::Dense { .. } => top.max(COMPARED) + graph.targets(subject, link).len() + taken.len(),
        Answers::Listed(_) => usize::MAX,
    };
    let mut best = answers.best(row, most);
    // Scores after so many are not kept.
    best.extend(crowd.into_iter().flat_map(|crowd| crowd.scored().take(LISTED.max(top) + taken.len())));
    if best.iter().any(|answer| answer.score.is_nan()) {
        return Err(EvalError::NotANumber { subject: subject.0, link: link.0 });
    }
    best.retain(|answer| !graph.contains(subject, link, answer.entity));
    // Removed facts are not judged, but they stay in the list: nothing is removed from it when a user asks.
    let judged: Vec<JudgedAnswer> = best
        .iter()
        .filter(|answer| !is_taken(answer.entity))
        .take(top)
        .map(|&answer| judged.answer(query, answer))
        .collect();
    let mut list = RankedScores::new(query, graph, best.iter().map(|answer| answer.score));
    // Scores after the last judged answer do not affect its features.
    let last = judged.last().map_or(f64::INFINITY, |last| last.score);
    let needed = list.scores.partition_point(|score| score.total_cmp(&last).is_ge()).max(COMPARED);
    list.scores.truncate(needed);
    Ok(Outcome { list, judged, stands_in: hides, weight })
}
