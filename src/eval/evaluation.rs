//! Runs the queries of a split through a reasoner and ranks the true answers.

use super::ranking::{Place, rank_all_crowded, rank_all_dense, rank_all_listed, rank_listed};
use super::{Answers, Crowd, EvalError, Reasoner, ReasonerError, Ties};
use crate::graph::{Adjacency, Direction, Edge, EntityId, Graph, Link, Query, Triple, evenly};
use crate::progress::Progress;
use crate::shard::Shard;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// Which end of the triples is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// `(head, relation, ?)`: what the published tables report.
    #[default]
    Tail,
    /// `(?, relation, tail)`, asked as `(tail, relation⁻¹, ?)`.
    Head,
    /// Both queries of every triple, each counted as one.
    Both,
}

impl Side {
    /// The directions in which each triple is asked.
    pub fn directions(self) -> &'static [Direction] {
        match self {
            Side::Tail => &[Direction::Forward],
            Side::Head => &[Direction::Inverse],
            Side::Both => &[Direction::Forward, Direction::Inverse],
        }
    }

    /// The queries of `triples`, and their answers.
    pub fn asked(self, triples: &[Triple]) -> impl Iterator<Item = (Query, EntityId)> + Clone + '_ {
        triples
            .iter()
            .flat_map(move |&triple| self.directions().iter().map(move |&way| Query::of(triple, way)))
    }
}

/// How to treat triples with an entity that has no edge in the training graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// They count like all others, as in the published figures of WN18RR and FB15k-237.
    #[default]
    Keep,
    /// They are not asked but counted as left out: the published protocol of NELL-995, whose graph at test time
    /// includes the validation facts.
    LeaveOut,
}

/// How to ask and how to rank. The default is what the comparable figures use: tail queries, realistic ties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// Which end is asked for.
    pub side: Side,
    /// How ties are ranked.
    pub ties: Ties,
    /// How to treat entities that are not in the graph.
    pub unseen: Unseen,
    /// Rank every triple of a split, however long that takes. Otherwise a split that would need more than
    /// [`Protocol::SCORES`] scores is represented by an even sample.
    #[serde(default)]
    pub all: bool,
    /// At most this many triples of a split, an even sample, unless `all` of it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
}

impl Protocol {
    /// The most scores that are computed to rank a split unless all of it is asked for: a few minutes' work.
    pub const SCORES: u64 = 100_000_000_000;

    /// The triples of `split` that are ranked among this many entities: all of them, or an even sample.
    pub fn sample<'a>(&self, split: Cow<'a, [Triple]>, entities: usize) -> Cow<'a, [Triple]> {
        let of_triple = (entities as u64).saturating_mul(self.side.directions().len() as u64).max(1);
        let most = usize::try_from(Self::SCORES / of_triple).unwrap_or(usize::MAX);
        let most = most.min(self.most.unwrap_or(usize::MAX)).max(1);
        match self.all || split.len() <= most {
            true => split,
            false => evenly(&split, most).into(),
        }
    }
}

/// What ranking needs to know besides the reasoner's answers.
#[derive(Clone, Copy)]
pub struct Truth<'a> {
    /// The graph that was learnt from. Says which entities were seen and which links lead to many.
    pub graph: &'a Graph,
    /// All true answers; those other than the target are filtered out of the ranking. For figures on a test split
    /// this is [`Dataset::answers`](crate::graph::Dataset::answers); for tuning, the known answers.
    pub answers: &'a Adjacency,
}

impl Truth<'_> {
    fn has_seen(&self, triple: Triple) -> bool {
        let seen = |entity: EntityId| !self.graph.edges(entity).is_empty();
        seen(triple.head) && seen(triple.tail)
    }
}

/// One query with its target and the target's rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The query.
    pub query: Query,
    /// The true answer that was ranked.
    pub target: EntityId,
    /// Its filtered rank, from 1; ties can put it between two places.
    pub rank: f64,
    /// How many other candidates have its score.
    pub tied: u64,
}

impl Ranked {
    /// A query that is still to be ranked.
    fn later((query, target): (Query, EntityId)) -> Self {
        Self { query, target, rank: f64::NAN, tied: 0 }
    }
}

/// The rank of every query of a split, in the order of the triples (tail before head where both are asked). Queries that
/// another shard ranks have NaN.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// One entry per query.
    pub ranks: Vec<Ranked>,
    /// How queries were asked and ranked.
    pub protocol: Protocol,
    /// What was not ranked, and how long the rest took.
    pub totals: Totals,
}

/// What an evaluation did not rank, and how long the rest took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// How many queries were left out because an entity is nowhere in the graph.
    pub left_out: usize,
    /// How many queries the split has, if only an even sample of it was ranked.
    #[serde(default)]
    pub sampled_from: Option<usize>,
    /// How long asking and ranking took.
    pub seconds: f64,
    /// How long both baselines took.
    #[serde(default)]
    pub baseline_seconds: f64,
}

/// Ranks the true answers of `split`. A query that several triples share is asked once.
///
/// # Errors
/// If the reasoner fails, returns NaN, answers other queries than asked, or if the user interrupts.
pub fn evaluate(
    reasoner: &dyn Reasoner,
    split: &[Triple],
    truth: Truth<'_>,
    protocol: Protocol,
    progress: &dyn Progress,
) -> Result<Evaluation, EvalError> {
    evaluate_shard(reasoner, split, truth, protocol, Shard::WHOLE, progress)
}

/// The same, asking only the batches of `shard`; the ranks of all other queries are NaN.
///
/// # Errors
/// Those of [`evaluate`].
pub fn evaluate_shard(
    reasoner: &dyn Reasoner,
    split: &[Triple],
    truth: Truth<'_>,
    protocol: Protocol,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<Evaluation, EvalError> {
    evaluate_among(reasoner, split, truth, protocol, shard, &|_| None, progress)
}

/// Entities that are no candidates where a link is asked for, ascending; `None` if all are.
pub type LeftOut<'a> = dyn Fn(Link) -> Option<Arc<[EntityId]>> + Sync + 'a;

/// The same without the entities that are `left_out`, unless they are the target.
///
/// # Errors
/// Those of [`evaluate`].
pub fn evaluate_among(
    reasoner: &dyn Reasoner,
    split: &[Triple],
    truth: Truth<'_>,
    protocol: Protocol,
    shard: Shard,
    left_out: &LeftOut<'_>,
    progress: &dyn Progress,
) -> Result<Evaluation, EvalError> {
    let began = Instant::now();
    let directions = protocol.side.directions();
    let kept: Vec<Triple> = match protocol.unseen {
        Unseen::Keep => split.to_vec(),
        Unseen::LeaveOut => split.iter().copied().filter(|&triple| truth.has_seen(triple)).collect(),
    };
    let mut ranks: Vec<Ranked> = protocol.side.asked(&kept).map(Ranked::later).collect();
    let mut order: Vec<u32> = (0..ranks.len() as u32).collect();
    order.sort_unstable_by_key(|&at| {
        let Ranked { query, target, .. } = ranks[at as usize];
        (query.link, query.subject, target, at)
    });
    let groups: Vec<&[u32]> =
        order.chunk_by(|&a, &b| ranks[a as usize].query == ranks[b as usize].query).collect();

    let batches = (0..).zip(groups.chunks(reasoner.batch().max(1))).filter(|(number, _)| shard.has(*number));
    let asked: usize = batches.clone().flat_map(|(_, batch)| batch.iter().map(|group| group.len())).sum();
    progress.begin("ranking", "queries", Some(asked as u64));
    let mut done = 0;
    for (_, batch) in batches {
        if progress.interrupted() {
            progress.end(&"interrupted");
            return Err(EvalError::Interrupted);
        }
        for (at, Place { rank, tied }) in
            rank_batch(reasoner, batch, &ranks, truth, (protocol.ties, left_out))?
        {
            let ranked = &mut ranks[at as usize];
            (ranked.rank, ranked.tied) = (rank, tied);
            done += 1;
        }
        progress.advance(done, &"");
    }
    let totals = Totals {
        left_out: (split.len() - kept.len()) * directions.len(),
        sampled_from: None,
        seconds: began.elapsed().as_secs_f64(),
        baseline_seconds: 0.0,
    };
    let evaluation = Evaluation { ranks, protocol, totals };
    let figures = evaluation.figures();
    progress.end(&format_args!("MRR {:.4} over {} queries", figures.mrr, figures.queries));
    Ok(evaluation)
}

/// The places of one batch of distinct queries, each with the index in `ranks`.
fn rank_batch(
    reasoner: &dyn Reasoner,
    batch: &[&[u32]],
    ranks: &[Ranked],
    Truth { graph, answers: truth }: Truth<'_>,
    (ties, left_out): (Ties, &LeftOut<'_>),
) -> Result<Vec<(u32, Place)>, EvalError> {
    let queries: Vec<Query> = batch.iter().map(|group| ranks[group[0] as usize].query).collect();
    let (answers, crowds) = answers_with_crowds(reasoner, &queries, ties).map_err(EvalError::Reasoner)?;
    check_shape(&answers, queries.len(), truth.entities())?;
    let ranked: Result<Vec<Vec<(u32, Place)>>, EvalError> = (0..batch.len())
        .into_par_iter()
        .map(|row| {
            let query = queries[row];
            let truth_of_row = truth.edges_by(query.subject, query.link);
            // What is left out is filtered as other true answers are.
            let filtered = left_out(query.link).map(|others| with_others(truth_of_row, query.link, &others));
            let truth_of_row = filtered.as_deref().unwrap_or(truth_of_row);
            let not_a_number = || EvalError::NotANumber { subject: query.subject.0, link: query.link.0 };
            let targets: Vec<EntityId> = batch[row].iter().map(|&at| ranks[at as usize].target).collect();
            let mut ranked = match &answers {
                Answers::Dense { scores, entities } => {
                    let scores = &scores[row * entities..(row + 1) * entities];
                    rank_all_dense(scores, truth_of_row, &targets, ties)
                }
                Answers::Listed(lists) => {
                    let (list, entities) = (&lists[row], truth.entities());
                    match crowds.get(row).and_then(Option::as_ref) {
                        Some(crowd) => {
                            rank_all_crowded((list, crowd), entities, truth_of_row, &targets, ties)
                        }
                        None => rank_all_listed(list, entities, truth_of_row, &targets, ties),
                    }
                }
            }
            .ok_or_else(not_a_number)?;
            if let Answers::Listed(_) = &answers {
                // A list has no facts of the graph: these are asked for one by one.
                for (place, &target) in ranked.iter_mut().zip(&targets) {
                    if graph.contains(query.subject, query.link, target)
                        && let Some(listed) =
                            reasoner.answer_for_fact(query, target).map_err(EvalError::Reasoner)?
                    {
                        let anew = rank_listed(&listed, truth.entities(), truth_of_row, target, ties);
                        *place = anew.ok_or_else(not_a_number)?;
                    }
                }
            }
            Ok(batch[row].iter().copied().zip(ranked).collect())
        })
        .collect();
    Ok(ranked?.into_iter().flatten().collect())
}

/// The answers, with crowds where there are any. The published sort goes by the ids of all that are tied.
pub(super) fn answers_with_crowds(
    reasoner: &dyn Reasoner,
    queries: &[Query],
    ties: Ties,
) -> Result<(Answers, Vec<Option<Crowd>>), ReasonerError> {
    if ties != Ties::Published
        && let Some(crowded) = reasoner.answer_with_crowds(queries)?
    {
        let (lists, crowds) = crowded.into_iter().unzip();
        return Ok((Answers::Listed(lists), crowds));
    }
    Ok((reasoner.answer(queries)?, Vec::new()))
}

/// `truth`, the answers of `link`, together with `others`; both are ascending.
fn with_others(truth: &[Edge], link: Link, others: &[EntityId]) -> Vec<Edge> {
    let mut all: Vec<Edge> = others.iter().map(|&target| Edge { link, target }).collect();
    all.extend_from_slice(truth);
    all.sort_unstable();
    all.dedup();
    all
}

fn check_shape(answers: &Answers, queries: usize, entities: usize) -> Result<(), EvalError> {
    let counts = match answers {
        Answers::Dense { scores, entities: width } => {
            [("entities", entities, *width), ("scores", queries * entities, scores.len())]
        }
        Answers::Listed(lists) => [("lists of answers", queries, lists.len()); 2],
    };
    match counts.into_iter().find(|(_, expected, found)| expected != found) {
        Some((what, expected, found)) => Err(EvalError::Shape { what, expected, found }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scored;
    use super::*;
    use crate::progress::{Impatient, Silent};
    use proptest::prelude::*;
    use std::sync::Mutex;

    const ENTITIES: u32 = 7;

    /// Scores by arithmetic on the ids, with many ties; dense, or listing only entities of one parity.
    struct Arithmetic {
        dense: bool,
        batch: usize,
        asked: Mutex<Vec<Query>>,
    }

    fn score(query: Query, entity: u32) -> u32 {
        (query.subject.0 * 5 + query.link.0 * 3 + entity * entity) % 4
    }

    impl Reasoner for Arithmetic {
        fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
            self.asked.lock().unwrap().extend(queries);
            let row = |&query: &Query| (0..ENTITIES).map(move |entity| (entity, score(query, entity)));
            if self.dense {
                let scores = queries.iter().flat_map(|query| row(query).map(|(_, s)| s as f32)).collect();
                return Ok(Answers::Dense { scores, entities: ENTITIES as usize });
            }
            let listed = |(entity, s)| Scored { entity: EntityId(entity), score: f64::from(s) };
            Ok(Answers::Listed(queries.iter().map(|q| row(q).step_by(2).map(listed).collect()).collect()))
        }

        fn batch(&self) -> usize {
            self.batch
        }
    }

    fn triples(ids: &[(u32, u32, u32)]) -> Vec<Triple> {
        ids.iter().map(|&(h, r, t)| Triple::new(h, r, t)).collect()
    }

    fn naive_rank(query: Query, target: EntityId, dense: bool, answers: &Adjacency) -> f64 {
        let value = |e: u32| if dense || e.is_multiple_of(2) { score(query, e) as i32 } else { -1 };
        let rivals = (0..ENTITIES)
            .filter(|&e| e != target.0 && !answers.contains(query.subject, query.link, EntityId(e)));
        rivals.fold(1.0, |rank, e| {
            rank + match value(e).cmp(&value(target.0)) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_left_out_ranks_before_nobody(
            facts in prop::collection::vec((0u32..7, 0u32..2, 0u32..7), 1..8),
            others in prop::collection::btree_set(0u32..7, 0..6),
            dense in any::<bool>(),
        ) {
            let split = triples(&facts);
            let answers = Adjacency::new(ENTITIES as usize, &[&split]);
            let graph = Graph::new(ENTITIES as usize, 2, &[]);
            let truth = Truth { graph: &graph, answers: &answers };
            let reasoner = Arithmetic { dense, batch: 3, asked: Mutex::default() };
            let left_out: Arc<[EntityId]> = others.iter().copied().map(EntityId).collect();
            let evaluated = evaluate_among(
                &reasoner, &split, truth, Protocol::default(), Shard::WHOLE, &|_| Some(left_out.clone()), &Silent,
            );
            for Ranked { query, target, rank, .. } in evaluated.unwrap().ranks {
                let facts: Vec<Triple> = split.iter().copied().chain(others.iter().map(|&other| Triple {
                    head: query.subject, relation: query.link.relation().unwrap(), tail: EntityId(other),
                })).collect();
                let filtered = Adjacency::new(ENTITIES as usize, &[&facts]);
                prop_assert_eq!(rank, naive_rank(query, target, dense, &filtered));
            }
        }
    }

    proptest! {
        #[test]
        fn every_query_gets_its_naive_rank_whatever_the_batch(
            facts in prop::collection::vec((0..ENTITIES, 0u32..2, 0..ENTITIES), 0..20),
            split in prop::collection::vec((0..ENTITIES, 0u32..2, 0..ENTITIES), 1..20),
            dense in any::<bool>(),
            batch in 1usize..9,
            leave_out in any::<bool>(),
        ) {
            let (facts, split) = (triples(&facts), triples(&split));
            let graph = Graph::new(ENTITIES as usize, 2, &facts);
            let answers = Adjacency::new(ENTITIES as usize, &[&facts, &split]);
            let unseen = if leave_out { Unseen::LeaveOut } else { Unseen::Keep };
            for side in [Side::Tail, Side::Head, Side::Both] {
                let reasoner = Arithmetic { dense, batch, asked: Mutex::default() };
                let truth = Truth { graph: &graph, answers: &answers };
                let protocol = Protocol { side, unseen, ..Protocol::default() };
                let found = evaluate(&reasoner, &split, truth, protocol, &Silent).unwrap();
                let seen = |e: EntityId| facts.iter().any(|f| f.head == e || f.tail == e);
                let expected: Vec<Ranked> = split
                    .iter()
                    .filter(|t| !leave_out || (seen(t.head) && seen(t.tail)))
                    .flat_map(|&t| side.directions().iter().map(move |&d| Query::of(t, d)))
                    .map(|(query, target)| {
                        Ranked { rank: naive_rank(query, target, dense, &answers), ..Ranked::later((query, target)) }
                    })
                    .collect();
                let found_ranks: Vec<Ranked> = found.ranks.iter().map(|one| Ranked { tied: 0, ..*one }).collect();
                prop_assert_eq!(&found_ranks, &expected);
                prop_assert_eq!(found.totals.left_out + found.ranks.len(), split.len() * side.directions().len());
                let mut asked = reasoner.asked.into_inner().unwrap();
                let times = asked.len();
                asked.sort_unstable();
                asked.dedup();
                prop_assert_eq!(times, asked.len(), "a query was asked twice");
            }
        }
    }

    #[test]
    fn a_target_that_the_graph_states_does_not_come_last() {
        /// Lists only entities that are not facts; asked for a fact, lists it first.
        struct Unknown;
        impl Reasoner for Unknown {
            fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
                Ok(Answers::Listed(vec![vec![Scored { entity: EntityId(3), score: 0.5 }]; queries.len()]))
            }

            fn answer_for_fact(
                &self,
                _query: Query,
                fact: EntityId,
            ) -> Result<Option<Vec<Scored>>, ReasonerError> {
                let listed = [(fact, 0.75), (EntityId(3), 0.5)];
                Ok(Some(listed.map(|(entity, score)| Scored { entity, score }).to_vec()))
            }
        }
        let (facts, split) = (triples(&[(0, 0, 1), (0, 0, 2)]), triples(&[(0, 0, 1), (0, 0, 4)]));
        let graph = Graph::new(ENTITIES as usize, 1, &facts);
        let answers = Adjacency::new(ENTITIES as usize, &[&facts, &split]);
        let truth = Truth { graph: &graph, answers: &answers };
        let found = evaluate(&Unknown, &split, truth, Protocol::default(), &Silent).unwrap();
        // 4 is neither a fact nor listed: it ranks after 3 and ties with 0, 5 and 6.
        assert_eq!(found.ranks.iter().map(|ranked| ranked.rank).collect::<Vec<_>>(), [1.0, 3.5]);
    }

    fn one_query(answers: Result<Answers, ReasonerError>, progress: &dyn Progress) -> EvalError {
        struct Fixed(Mutex<Option<Result<Answers, ReasonerError>>>);
        impl Reasoner for Fixed {
            fn answer(&self, _queries: &[Query]) -> Result<Answers, ReasonerError> {
                self.0.lock().unwrap().take().unwrap()
            }
        }
        let split = triples(&[(0, 0, 1)]);
        let graph = Graph::new(2, 1, &[]);
        let truth = Truth { graph: &graph, answers: &Adjacency::new(2, &[&split]) };
        let reasoner = Fixed(Mutex::new(Some(answers)));
        evaluate(&reasoner, &split, truth, Protocol::default(), progress).unwrap_err()
    }

    #[test]
    fn wrong_answers_are_errors() {
        let nan = one_query(Ok(Answers::Dense { scores: vec![0.0, f32::NAN], entities: 2 }), &Silent);
        assert!(matches!(nan, EvalError::NotANumber { subject: 0, link } if Link(link).relation().is_some()));
        let narrow = one_query(Ok(Answers::Dense { scores: vec![0.0], entities: 1 }), &Silent);
        assert!(matches!(narrow, EvalError::Shape { what: "entities", expected: 2, found: 1 }));
        let none = one_query(Ok(Answers::Listed(Vec::new())), &Silent);
        assert!(matches!(none, EvalError::Shape { what: "lists of answers", expected: 1, found: 0 }));
        let failed = one_query(Err("no device".into()), &Silent);
        assert!(matches!(failed, EvalError::Reasoner(cause) if cause.to_string() == "no device"));
    }

    #[test]
    fn an_interrupted_evaluation_gives_no_figures() {
        let error = one_query(Ok(Answers::Listed(vec![Vec::new()])), &Impatient);
        assert!(matches!(error, EvalError::Interrupted));
    }
}
