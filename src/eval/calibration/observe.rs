//! Asking a reasoner the queries of a split for the outcomes of its best answers.

use super::features::{COMPARED, RankedScores};
use super::fit::Outcome;
use crate::eval::{Answers, EvalError, Reasoner, Scored, Side};
use crate::graph::{Adjacency, Graph, Link, Query, Triple};
use crate::progress::Progress;
use rayon::prelude::*;

/// Which answers of a query are looked at, and which of them are true.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    /// The graph that is answered on. Its facts are not among the answers.
    pub graph: &'a Graph,
    /// Other facts that are not among the answers: those of earlier splits, if any.
    pub taken_out: Option<&'a Adjacency>,
    /// The facts that count as true.
    pub truth: &'a Adjacency,
}

/// How many answers a query over `link` that has any answers in `graph` has in the mean; 1 if there are none.
pub fn usual_answers(graph: &Graph, link: Link) -> f64 {
    let pairs = graph.pairs(link);
    pairs.len().max(1) as f64 / pairs.sources.len().max(1) as f64
}

impl RankedScores {
    /// The scores of `answers` to `query` on `graph`, facts of which are left out already, best first: the first
    /// `wanted`, and as many more as they are compared with.
    pub fn of(query: Query, graph: &Graph, answers: &[Scored], candidates: usize, wanted: usize) -> Self {
        let kept = answers.len().min(wanted.max(COMPARED));
        Self {
            link: query.link,
            known: graph.targets(query.subject, query.link).len(),
            usual: usual_answers(graph, query.link),
            candidates,
            scores: answers[..kept].iter().map(|answer| answer.score).collect(),
        }
    }
}

/// The outcomes of the `top` best answers to both queries of every triple of `split`; a query that several triples
/// share is asked once, in the order of links and subjects.
///
/// # Errors
/// If the reasoner fails, scores something as not a number, or the user interrupts.
pub fn observe(
    reasoner: &dyn Reasoner,
    split: &[Triple],
    judged: Judged<'_>,
    top: usize,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>, EvalError> {
    let mut queries: Vec<Query> = Side::Both.asked(split).map(|(query, _)| query).collect();
    queries.sort_unstable_by_key(|query| (query.link, query.subject));
    queries.dedup();
    let mut outcomes = Vec::with_capacity(queries.len());
    for batch in queries.chunks(reasoner.batch().max(1)) {
        if progress.interrupted() {
            return Err(EvalError::Interrupted);
        }
        // Outcomes of some of the queries are better than none.
        if !outcomes.is_empty() && progress.time_is_up() {
            break;
        }
        let answers = reasoner.answer(batch).map_err(EvalError::Reasoner)?;
        let seen: Result<Vec<Outcome>, EvalError> =
            (0..batch.len()).into_par_iter().map(|row| outcome(&answers, row, batch[row], judged, top)).collect();
        outcomes.extend(seen?);
        progress.advance(outcomes.len() as u64, &"");
    }
    Ok(outcomes)
}

fn outcome(
    answers: &Answers,
    row: usize,
    query: Query,
    Judged { graph, taken_out, truth }: Judged<'_>,
    top: usize,
) -> Result<Outcome, EvalError> {
    let Query { subject, link } = query;
    let is_known = |answer: &Scored| {
        graph.contains(subject, link, answer.entity)
            || taken_out.is_some_and(|known| known.contains(subject, link, answer.entity))
    };
    let known = graph.targets(subject, link).len() + taken_out.map_or(0, |facts| facts.targets(subject, link).len());
    let listed = match answers {
        Answers::Dense { entities, .. } => *entities,
        Answers::Listed(lists) => lists[row].len(),
    };
    let mut best = answers.best(row, top.max(COMPARED).saturating_add(known));
    if best.iter().any(|answer| answer.score.is_nan()) {
        return Err(EvalError::NotANumber { subject: subject.0, link: link.0 });
    }
    let asked = best.len();
    best.retain(|answer| !is_known(answer));
    // Known ones further down have not been looked for; they are a few of very many.
    let candidates = listed - (asked - best.len());
    let list = RankedScores::of(query, graph, &best, candidates, top);
    let is_true = best.iter().take(top).map(|answer| truth.contains(subject, link, answer.entity)).collect();
    Ok(Outcome { list, is_true })
}
