//! A sample of all sensible queries of a graph: what a user meets who asks everything.
//!
//! Most sensible queries have no answer left to find, and a few have several. Probabilities fitted to queries that
//! have an answer would be far too high for the others. Here every query counts as often as it occurs. Queries with a
//! held-out answer are few and known, so all of them are observed; of the others a sample is, and each outcome is weighted by
//! how many queries it stands for.
//!
//! Invariant: the first queries of a sample, however many, are spread evenly over relations and directions, and over
//! queries with and without an answer. A sample cut short by time is a smaller sample.

use super::TOP;
use super::fit::Outcome;
use super::left::{AnswersLeft, LeftCounts};
use super::observe::{Judged, asked_once, observe};
use crate::eval::{EvalError, Reasoner};
use crate::fnv::fnv;
use crate::graph::{Adjacency, Dataset, Graph, Known, Link, Query, RelationId, Triple, evenly, subjects};
use crate::progress::Progress;
use crate::shard::Shard;

/// The size of a sample of queries without a known answer: so many for every query with one, and at least so many.
#[derive(Clone, Copy)]
struct Others {
    each: usize,
    fewest: usize,
}

impl Others {
    /// The same where only a sample of the facts is asked: time is short, so there is no fewest number.
    fn for_sample(self, is_sample: bool) -> Others {
        Others { fewest: if is_sample { 0 } else { self.fewest }, ..self }
    }
}

/// For fitting.
const TO_FIT: Others = Others { each: 2, fewest: 4000 };
/// For checking what was fitted.
const TO_CHECK: Others = Others { each: 1, fewest: 2000 };

/// About how many queries [`outcomes_to_fit`] asks for facts with so many ends, which are all of a split or a sample.
pub fn queries_to_fit(ends: usize, is_sample: bool) -> usize {
    let Others { each, fewest } = TO_FIT.for_sample(is_sample);
    ends + (each * ends).max(fewest)
}

/// What a calibration is fitted to.
#[derive(Clone, Debug, Default)]
pub struct FitOutcomes {
    /// The outcomes of a weighted sample of all sensible queries.
    pub outcomes: Vec<Outcome>,
    /// How many there would have been with enough time.
    pub planned: usize,
    /// How often such queries have an answer left.
    pub left: AnswersLeft,
}

impl From<Vec<Outcome>> for FitOutcomes {
    fn from(outcomes: Vec<Outcome>) -> Self {
        Self { planned: outcomes.len(), outcomes, left: AnswersLeft::default() }
    }
}

/// Observes the queries of `asked`, facts of the validation split of `known`, and a sample of the sensible queries that
/// the split has no answer to. All facts of that split count as true. Training facts are not among the answers, and test
/// facts are not known.
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
    let (taken_out, truth) = (queries_apart(known, graph), Adjacency::new(graph.entities(), &[&known.valid]));
    let judged = judged_on_valid(known, graph, taken_out.as_ref(), &truth);
    let denied = evenly(&known.valid_negatives, asked.len());
    let queries = [asked_once(asked), asked_once(&denied)];
    let others = TO_FIT.for_sample(asked.len() < known.valid.len());
    let Sample { queries, left } = Sample::draw(judged, &queries, &[], others, progress)?;
    let outcomes = observe(reasoner, &queries, judged, TOP, Shard::WHOLE, progress)?;
    Ok(FitOutcomes { outcomes, planned: queries.len(), left })
}

/// The facts of the validation split count as true; what is known to be false is.
fn judged_on_valid<'a>(
    known: &'a Known,
    graph: &'a Graph,
    taken_out: Option<&'a Adjacency>,
    truth: &'a Adjacency,
) -> Judged<'a> {
    let notes = known.notes.has_confidence().then_some(&known.notes);
    let denied = [&known.negatives[..], &known.valid_negatives[..]];
    Judged { graph, taken_out, truth, hides: true, notes, denied }
}

/// The training queries, where the graph is one of its own.
fn queries_apart(known: &Known, graph: &Graph) -> Option<Adjacency> {
    known.has_own_graph().then(|| Adjacency::new(graph.entities(), &[&known.queries]))
}

/// The same for checking, only over `relations` unless that is empty, and only the batches of `shard`.
///
/// # Errors
/// Those of [`outcomes_to_fit`].
pub fn outcomes_on_valid(
    reasoner: &dyn Reasoner,
    (asked, relations): (&[Triple], &[RelationId]),
    known: &Known,
    graph: &Graph,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>, EvalError> {
    let (taken_out, truth) = (queries_apart(known, graph), Adjacency::new(graph.entities(), &[&known.valid]));
    let judged = judged_on_valid(known, graph, taken_out.as_ref(), &truth);
    let queries = [asked_once(asked), asked_once(&evenly(&known.valid_negatives, asked.len()))];
    let others = TO_CHECK.for_sample(relations.is_empty() && asked.len() < known.valid.len());
    let sample = Sample::draw(judged, &queries, relations, others, progress)?;
    observe(reasoner, &sample.queries, judged, TOP, shard, progress)
}

/// The same on the test split of `dataset`, whose facts count as true. Facts of the other splits are not judged.
///
/// # Errors
/// Those of [`outcomes_to_fit`].
pub fn outcomes_on_test(
    reasoner: &dyn Reasoner,
    (asked, relations): (&[Triple], &[RelationId]),
    dataset: &Dataset,
    graph: &Graph,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>, EvalError> {
    let Known { queries, valid, .. } = &dataset.known;
    let entities = graph.entities();
    let taken_out = Adjacency::new(entities, &[queries, valid]);
    let truth = Adjacency::new(entities, &[&dataset.test]);
    let notes = dataset.test_notes.has_confidence().then_some(&dataset.test_notes);
    let denied = [&dataset.known.negatives[..], &dataset.test_negatives[..]];
    let judged = Judged { graph, taken_out: Some(&taken_out), truth: &truth, hides: false, notes, denied };
    let queries = [asked_once(asked), asked_once(&evenly(&dataset.test_negatives, asked.len()))];
    let others = TO_CHECK.for_sample(relations.is_empty() && asked.len() < dataset.test.len());
    let sample = Sample::draw(judged, &queries, relations, others, progress)?;
    observe(reasoner, &sample.queries, judged, TOP, shard, progress)
}

/// A sample of the sensible queries of a graph.
struct Sample {
    /// The queries, each with how many it stands for up to a common factor.
    queries: Vec<(Query, f64)>,
    /// How often they have an answer left.
    left: AnswersLeft,
}

impl Sample {
    /// `asked` have an answer among the facts that count as true; `denied` are queries with an answer that is known to be
    /// false, all of which are asked, so that it is seen. Both are in the order of links and subjects. Links of `relations`
    /// only, unless that is empty.
    fn draw(
        Judged { graph, truth, .. }: Judged<'_>,
        [asked, denied]: &[Vec<Query>; 2],
        relations: &[RelationId],
        others: Others,
        progress: &dyn Progress,
    ) -> Result<Self, EvalError> {
        let wanted =
            |link: &Link| link.relation().is_some_and(|one| relations.is_empty() || relations.contains(&one));
        let links = || (0..graph.links() as u32).map(Link).filter(wanted);
        let mut sensible = vec![false; asked.len()];
        let (mut with_answer, mut without, mut counts) = (0, 0, LeftCounts::default());
        let mut told_false = Vec::new();
        let has_answer = |query: Query| !truth.edges_by(query.subject, query.link).is_empty();
        let is_among = |all: &[Query], query: Query| {
            all.binary_search_by_key(&(query.link, query.subject), |one| (one.link, one.subject))
        };
        let query_of = |link: Link| move |subject| Query { subject, link };
        for link in links() {
            if progress.interrupted() {
                return Err(EvalError::Interrupted);
            }
            for query in subjects(graph, link).into_iter().map(query_of(link)) {
                if let Ok(at) = is_among(asked, query) {
                    sensible[at] = true;
                }
                let has_answer = has_answer(query);
                match has_answer {
                    true => with_answer += 1,
                    false if is_among(denied, query).is_ok() => told_false.push(query),
                    false => without += 1,
                }
                counts.add(link, graph.targets(query.subject, link).len(), has_answer);
            }
        }
        // In a graph so small that none of the queries with an answer is sensible, all of them count.
        if !sensible.contains(&true) {
            (with_answer, sensible) = (asked.len(), vec![true; asked.len()]);
        }
        let asked: Vec<Query> =
            asked.iter().zip(sensible).filter(|(_, sensible)| *sensible).map(|(query, _)| *query).collect();
        let most = (others.each * asked.len()).max(others.fewest);
        let stride = (without as f64 / most as f64).max(1.0);
        let (mut sampled, mut at, mut next) = (Vec::new(), 0usize, 0.0);
        for query in links().flat_map(|link| subjects(graph, link).into_iter().map(query_of(link))) {
            if !has_answer(query) && is_among(denied, query).is_err() {
                if at as f64 >= next {
                    sampled.push(query);
                    next += stride;
                }
                at += 1;
            }
        }
        let told_count = told_false.len();
        let queries = spread([
            weighted(asked, with_answer),
            weighted(sampled, without),
            weighted(told_false, told_count),
        ]);
        Ok(Self { queries: scaled(queries), left: counts.shares() })
    }
}

/// `queries`, which together stand for `count`.
fn weighted(queries: Vec<Query>, count: usize) -> Vec<(Query, f64)> {
    let each = count as f64 / queries.len().max(1) as f64;
    queries.into_iter().map(|query| (query, each)).collect()
}

/// Scales weights so that they sum to the effective sample size: the number of queries if all weights are equal.
fn scaled(mut queries: Vec<(Query, f64)>) -> Vec<(Query, f64)> {
    let (sum, squares) = queries
        .iter()
        .fold((0.0, 0.0), |(sum, squares), (_, weight)| (sum + weight, squares + weight * weight));
    let scale = if squares > 0.0 { sum / squares } else { 1.0 };
    queries.iter_mut().for_each(|(_, weight)| *weight *= scale);
    queries
}

/// All queries in an order of which every beginning has about the same share of each link of each group. Within a link the
/// order is a shuffled one that depends on nothing but the queries.
fn spread(groups: [Vec<(Query, f64)>; 3]) -> Vec<(Query, f64)> {
    let mut placed: Vec<(f64, (Query, f64))> = Vec::new();
    for (number, mut group) in (0u32..).zip(groups) {
        group.sort_by_cached_key(|(query, _)| {
            (query.link, shuffled([query.link.0, query.subject.0]), query.subject)
        });
        for of_link in group.chunk_by(|a, b| a.0.link == b.0.link) {
            // A link with a single query is not always in the middle.
            let offset = shuffled([of_link[0].0.link.0, number]) as f64 / 2f64.powi(64);
            let place = |at: usize| (at as f64 + offset) / of_link.len() as f64;
            placed.extend(of_link.iter().enumerate().map(|(at, &query)| (place(at), query)));
        }
    }
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    placed.into_iter().map(|(_, query)| query).collect()
}

/// A number as if drawn at random for these.
fn shuffled([a, b]: [u32; 2]) -> u64 {
    let hash = fnv(&[a.to_le_bytes(), b.to_le_bytes()].concat());
    // The last bytes reach the high bits of the hash only by another multiplication.
    (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Answers, ReasonerError, Scored};
    use crate::graph::{Array, EntityId, Note, NotesBuilder};
    use crate::progress::Silent;

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
        let facts: Array<Triple> = facts.into();
        let graph = Graph::new(23, 1, &facts);
        let valid = [Triple::new(0, 0, 22), Triple::new(1, 0, 22)];
        (Known { queries: facts.clone(), facts, valid: valid.into(), ..Known::default() }, graph)
    }

    #[test]
    fn every_sensible_query_counts_once() {
        let (known, graph) = world();
        let seen = outcomes_to_fit(&Always, &known.valid, &known, &graph, &Silent).unwrap();
        // 20 tail queries and the head queries of 20 and 21; that of 22 is not sensible.
        assert_eq!((seen.outcomes.len(), seen.planned), (22, 22));
        assert!(seen.outcomes.iter().all(|outcome| outcome.weight == 1.0 && outcome.stands_in));
        let trues =
            seen.outcomes.iter().flat_map(|outcome| &outcome.judged).filter(|one| one.is_true()).count();
        assert_eq!(trues, 2);
        // Two of twenty tail queries have an answer left, which draws the share away from that of all links.
        let left = |known| seen.left.share(Link::forward(RelationId(0)), known);
        assert!(left(2) > 0.1 && left(2) < left(0) - 0.04, "{:?}", seen.left);
    }

    #[test]
    fn what_stands_for_many_weighs_as_much() {
        let (known, graph) = world();
        let truth = Adjacency::new(23, &[&known.valid]);
        let judged = judged_on_valid(&known, &graph, None, &truth);
        let others = Others { each: 0, fewest: 5 };
        let asked = [asked_once(&known.valid), Vec::new()];
        let sample = Sample::draw(judged, &asked, &[], others, &Silent).unwrap();
        let mut weights: Vec<f64> = sample.queries.iter().map(|query| query.1).collect();
        weights.sort_by(f64::total_cmp);
        assert_eq!(weights.len(), 7, "two with an answer, and five of the twenty others");
        assert!((weights[6] / weights[0] - 4.0).abs() < 1e-12);
        // The effective sample size is less than that of seven equal weights.
        let sum: f64 = weights.iter().sum();
        assert!(sum > 2.0 && sum < 7.0, "{sum}");
        let nothing = [Vec::new(), Vec::new()];
        let of_another = Sample::draw(judged, &nothing, &[RelationId(9)], others, &Silent).unwrap();
        assert!(of_another.queries.is_empty());
    }

    #[test]
    fn what_is_known_to_be_false_is_asked_and_is_no_hidden_fact() {
        let (mut known, graph) = world();
        // 17 is told not to have the answer 22. Of the queries without an answer, only a few are asked otherwise.
        let denied = Triple::new(17, 0, 22);
        known.valid_negatives = [denied].into();
        let truth = Adjacency::new(23, &[&known.valid]);
        let judged = judged_on_valid(&known, &graph, None, &truth);
        let others = Others { each: 0, fewest: 1 };
        let asked = [asked_once(&known.valid), asked_once(&[denied])];
        let sample = Sample::draw(judged, &asked, &[], others, &Silent).unwrap();
        let told = Query { subject: EntityId(17), link: Link::forward(RelationId(0)) };
        let weight_of = |query: Query| sample.queries.iter().find(|one| one.0 == query).map(|one| one.1);
        let of_others = Query { subject: EntityId(0), ..told };
        // It stands for itself alone, as the queries with an answer do; the only other one stands for nineteen.
        assert_eq!((sample.queries.len(), weight_of(told)), (4, weight_of(of_others)));
        let heaviest = sample.queries.iter().map(|one| one.1).fold(0.0, f64::max);
        assert!((heaviest / weight_of(told).unwrap() - 19.0).abs() < 1e-9);
        let seen = observe(&Always, &sample.queries, judged, TOP, Shard::WHOLE, &Silent).unwrap();
        let is_told = |outcome: &&Outcome| outcome.judged.iter().any(|answer| answer.is_denied);
        assert_eq!(seen.iter().filter(is_told).count(), 1);
    }

    #[test]
    fn a_fact_is_as_true_as_it_is_certain() {
        let (mut known, graph) = world();
        let mut notes = NotesBuilder::default();
        notes.add(known.valid[0], Note { confidence: Some(0.25), ..Note::default() });
        let certain = outcomes_to_fit(&Always, &known.valid, &known, &graph, &Silent).unwrap();
        known.notes = notes.finish();
        let seen = outcomes_to_fit(&Always, &known.valid, &known, &graph, &Silent).unwrap();
        let truths = |outcomes: &[Outcome]| {
            let mut truths: Vec<f64> =
                outcomes.iter().flat_map(|one| &one.judged).map(|answer| answer.truth).collect();
            truths.retain(|&truth| truth > 0.0);
            truths.sort_by(f64::total_cmp);
            truths
        };
        assert_eq!((truths(&certain.outcomes), truths(&seen.outcomes)), (vec![1.0; 2], vec![0.25, 1.0]));
    }

    #[test]
    fn every_beginning_of_a_sample_has_its_share_of_every_link() {
        let of_link = |link: u32, count: u32| {
            (0..count)
                .map(move |id| (Query { subject: EntityId(id), link: Link(link) }, 1.0))
                .collect::<Vec<_>>()
        };
        let group = || [of_link(3, 4000), of_link(4, 400), of_link(5, 40)].concat();
        let order = spread([group(), group(), Vec::new()]);
        assert_eq!(order.len(), 2 * 4440);
        for beginning in [888, 4440] {
            let share = beginning as f64 / order.len() as f64;
            for (link, count) in [(3, 8000.0), (4, 800.0), (5, 80.0)] {
                let seen = order[..beginning].iter().filter(|one| one.0.link == Link(link)).count() as f64;
                assert!((seen - share * count).abs() <= 3.0, "{beginning}: {seen} of {count} of link {link}");
            }
            // Nor are the first subjects asked first.
            let ids = order[..beginning]
                .iter()
                .filter(|one| one.0.link == Link(3))
                .map(|one| f64::from(one.0.subject.0));
            let (sum, count) = ids.fold((0.0, 0.0), |(sum, count), id| (sum + id, count + 1.0));
            assert!((sum / count - 2000.0).abs() < 150.0, "{}", sum / count);
        }
    }
}
