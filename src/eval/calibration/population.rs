//! A sample of all sensible queries of a graph: what a user meets who asks everything.
//!
//! Most sensible queries have no answer left to find, and a few have several. Probabilities fitted to queries that
//! have an answer would be far too high for them, and would order answers of different queries by how certain each
//! query is of its first answer. Here every query counts as often as it occurs. Queries with an answer in the
//! validation split are few and known, so all of them are observed; of the others a sample is, weighted by how many
//! queries it stands for.

use super::TOP;
use super::fit::Outcome;
use super::observe::{Judged, asked_once, observe_queries};
use crate::eval::{EvalError, Reasoner};
use crate::graph::{Adjacency, Graph, Known, Link, Query, Triple, subjects};
use crate::progress::Progress;

/// Sampled queries without a known answer for every one with an answer.
const OTHERS: usize = 2;
/// The minimum size of the sample, if there are that many queries.
const FEWEST: usize = 4000;

/// The outcomes that probabilities are fitted to.
#[derive(Clone, Debug, Default)]
pub struct FitOutcomes {
    /// Of queries that have an answer in the validation split.
    pub asked: Vec<Outcome>,
    /// A weighted sample of all sensible queries.
    pub open: Vec<Outcome>,
}

/// Observes the queries of `asked`, facts of the validation split of `known`, and a sample of the sensible queries that
/// the split has no answer to.
///
/// # Errors
/// If the reasoner fails, returns a NaN score, or the user interrupts.
pub fn outcomes_to_fit(
    reasoner: &dyn Reasoner,
    asked: &[Triple],
    known: &Known,
    graph: &Graph,
    progress: &dyn Progress,
) -> Result<FitOutcomes, EvalError> {
    let entities = graph.entities();
    let taken_out = known.has_own_graph().then(|| Adjacency::new(entities, &[&known.queries]));
    let truth = Adjacency::new(entities, &[&known.valid]);
    let judged = Judged { graph, taken_out: taken_out.as_ref(), truth: &truth, hides: true };
    let queries = asked_once(asked);
    let seen = observe_queries(reasoner, &queries, judged, TOP, progress)?;
    let most = (OTHERS * queries.len()).max(FEWEST);
    let Some(sample) = Sample::draw(graph, &truth, &queries, most, progress)? else {
        return Ok(FitOutcomes { asked: seen, open: Vec::new() });
    };
    let others = observe_queries(reasoner, &sample.others, judged, TOP, progress)?;
    let open = sample.weighted(&seen, others);
    Ok(FitOutcomes { asked: seen, open })
}

/// The sensible queries of a graph; those without an answer in the validation split are sampled.
struct Sample {
    /// Which of the asked queries are sensible.
    sensible: Vec<bool>,
    /// How many sensible queries have an answer in the validation split.
    with_answer: usize,
    /// How many have none.
    without: usize,
    /// An evenly spaced sample of the latter.
    others: Vec<Query>,
}

impl Sample {
    /// `asked` are in the order of links and subjects. `None` if the time is up before all queries are counted.
    fn draw(
        graph: &Graph,
        truth: &Adjacency,
        asked: &[Query],
        most: usize,
        progress: &dyn Progress,
    ) -> Result<Option<Self>, EvalError> {
        let links = || (0..graph.links() as u32).map(Link).filter(|link| link.relation().is_some());
        let mut sensible = vec![false; asked.len()];
        let (mut with_answer, mut without) = (0, 0);
        let has_answer = |query: Query| !truth.edges_by(query.subject, query.link).is_empty();
        let query_of = |link: Link| move |subject| Query { subject, link };
        for link in links() {
            if progress.interrupted() {
                return Err(EvalError::Interrupted);
            }
            if progress.time_is_up() {
                return Ok(None);
            }
            for query in subjects(graph, link).into_iter().map(query_of(link)) {
                let key = |query: &Query| (query.link, query.subject);
                if let Ok(at) = asked.binary_search_by_key(&key(&query), key) {
                    sensible[at] = true;
                }
                *(if has_answer(query) { &mut with_answer } else { &mut without }) += 1;
            }
        }
        let stride = (without as f64 / most as f64).max(1.0);
        let (mut others, mut at, mut next) = (Vec::new(), 0usize, 0.0);
        for query in links().flat_map(|link| subjects(graph, link).into_iter().map(query_of(link))) {
            if !has_answer(query) {
                if at as f64 >= next {
                    others.push(query);
                    next += stride;
                }
                at += 1;
            }
        }
        Ok(Some(Self { sensible, with_answer, without, others }))
    }

    /// The outcomes of the sensible asked queries and of the sampled others, each weighted by how many queries it
    /// stands for.
    fn weighted(&self, seen: &[Outcome], others: Vec<Outcome>) -> Vec<Outcome> {
        let mut open: Vec<Outcome> = (self.sensible.iter().zip(seen))
            .filter(|(sensible, _)| **sensible)
            .map(|(_, outcome)| outcome.clone())
            .collect();
        let known = open.len();
        open.extend(others);
        let each = |count: usize, of: usize| count as f64 / of.max(1) as f64;
        let weights = [each(self.with_answer, known), each(self.without, open.len() - known)];
        // Scaled so that the weights sum to the effective sample size: the number of outcomes if all weights are
        // equal.
        let weight_of = |at: usize| weights[usize::from(at >= known)];
        let (sum, squares) = (0..open.len())
            .map(weight_of)
            .fold((0.0, 0.0), |(sum, squares), weight| (sum + weight, squares + weight * weight));
        let scale = if squares > 0.0 { sum / squares } else { 1.0 };
        for (at, outcome) in open.iter_mut().enumerate() {
            // Any true answer could have been held out for test instead, and its query would still be in the sample.
            (outcome.weight, outcome.stands_in) = (scale * weight_of(at), true);
        }
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Answers, ReasonerError, Scored};
    use crate::graph::EntityId;
    use crate::progress::Silent;
    use std::sync::Arc;

    /// Answers every query with 22.
    struct Always;

    impl Reasoner for Always {
        fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
            let list = vec![Scored { entity: EntityId(22), score: 1.0 }];
            Ok(Answers::Listed(vec![list; queries.len()]))
        }
    }

    /// Entities 0 to 19 each have 20 and 21 as answers; 0 and 1 also have 22, but a head query for 22 is not
    /// sensible.
    fn world() -> (Known, Graph) {
        let facts: Vec<Triple> =
            (0..20).flat_map(|head| [20, 21].map(|tail| Triple::new(head, 0, tail))).collect();
        let facts: Arc<[Triple]> = facts.into();
        let graph = Graph::new(23, 1, &facts);
        let valid = [Triple::new(0, 0, 22), Triple::new(1, 0, 22)];
        (Known { queries: facts.clone(), facts, valid: valid.into() }, graph)
    }

    #[test]
    fn every_sensible_query_counts_once() {
        let (known, graph) = world();
        let seen = outcomes_to_fit(&Always, &known.valid, &known, &graph, &Silent).unwrap();
        assert_eq!(seen.asked.len(), 3, "two tail queries and one head query");
        // 20 tail queries and the head queries of 20 and 21; that of 22 is not sensible.
        assert_eq!(seen.open.len(), 22);
        assert!(seen.open.iter().all(|outcome| outcome.weight == 1.0 && outcome.stands_in));
        let trues = seen.open.iter().flat_map(|outcome| &outcome.judged).filter(|one| one.1).count();
        assert_eq!(trues, 2);
    }

    #[test]
    fn what_stands_for_many_weighs_as_much() {
        let (known, graph) = world();
        let truth = Adjacency::new(23, &[&known.valid]);
        let asked = asked_once(&known.valid);
        let sample = Sample::draw(&graph, &truth, &asked, 5, &Silent).unwrap().unwrap();
        assert_eq!((sample.with_answer, sample.without, sample.others.len()), (2, 20, 5));
        let judged = Judged { graph: &graph, taken_out: None, truth: &truth, hides: true };
        let observe = |queries: &[Query]| observe_queries(&Always, queries, judged, TOP, &Silent).unwrap();
        let open = sample.weighted(&observe(&asked), observe(&sample.others));
        assert_eq!(open.len(), 7);
        assert!((open[2].weight / open[0].weight - 4.0).abs() < 1e-12);
        // The effective sample size is less than that of seven equal weights.
        let sum: f64 = open.iter().map(|outcome| outcome.weight).sum();
        assert!(sum > 2.0 && sum < 7.0, "{sum}");
    }
}
