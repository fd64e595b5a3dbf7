//! Which triples of a data set are evaluated, and which answers count as true.

use super::{Baselines, EvalError, Evaluation, Protocol, RankRow, Reasoner, Report, Truth, evaluate_shard};
use crate::graph::{Adjacency, Dataset, Graph, RelationId, Triple};
use crate::progress::Progress;
use crate::shard::Shard;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Instant;

/// A split that can be ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The test split, from which nothing was learnt.
    #[default]
    Test,
    /// The validation split, for tuning; filtered by the answers known without the test split.
    Valid,
    /// The validation split, also filtered by test answers, as in published figures. It must not be used to choose
    /// anything.
    ValidAsPublished,
}

impl Split {
    /// Its triples.
    pub fn triples(self, dataset: &Dataset) -> &[Triple] {
        match self {
            Split::Test => &dataset.test,
            Split::Valid | Split::ValidAsPublished => &dataset.known.valid,
        }
    }

    /// All answers that are filtered out of its rankings.
    pub fn answers(self, dataset: &Dataset) -> Adjacency {
        match self {
            Split::Test | Split::ValidAsPublished => dataset.answers(),
            // Tuning must not profit from test answers, not even through filtering.
            Split::Valid => dataset.known.answers(dataset.names.entities.len()),
        }
    }

    /// Its triples that were left out when the data was read.
    fn left_out_before(self, dataset: &Dataset) -> &[Triple] {
        match self {
            Split::Test => &dataset.test_left_out,
            Split::Valid | Split::ValidAsPublished => &[],
        }
    }
}

/// The figures of `reasoner` on a split of `dataset`; `graph` is the graph it answers on. Queries that were left out
/// when the data was read count as left out.
///
/// # Errors
/// Those of [`evaluate`](super::evaluate).
pub fn evaluate_split(
    reasoner: &dyn Reasoner,
    dataset: &Dataset,
    split: Split,
    graph: &Graph,
    protocol: Protocol,
    progress: &dyn Progress,
) -> Result<Report, EvalError> {
    evaluate_relations(reasoner, dataset, split, &[], graph, protocol, progress)
}

/// The same for facts of these relations only; for all facts if `relations` is empty.
///
/// # Errors
/// Those of [`evaluate`](super::evaluate).
pub fn evaluate_relations(
    reasoner: &dyn Reasoner,
    dataset: &Dataset,
    split: Split,
    relations: &[RelationId],
    graph: &Graph,
    protocol: Protocol,
    progress: &dyn Progress,
) -> Result<Report, EvalError> {
    let (rows, evaluation) =
        rank_relations(reasoner, dataset, split, relations, graph, protocol, Shard::WHOLE, progress)?;
    let name = |relation| dataset.names.relation(relation).to_owned();
    Ok(Report::of(&rows, protocol, evaluation.totals, name))
}

/// The ranks of the queries that belong to `shard`, with what was left out of the whole split.
///
/// # Errors
/// Those of [`evaluate_shard`].
#[allow(clippy::too_many_arguments)]
pub fn rank_relations(
    reasoner: &dyn Reasoner,
    dataset: &Dataset,
    split: Split,
    relations: &[RelationId],
    graph: &Graph,
    protocol: Protocol,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<(Vec<RankRow>, Evaluation), EvalError> {
    let answers = split.answers(dataset);
    let truth = Truth { graph, answers: &answers };
    let whole = of_relations(split.triples(dataset), relations);
    let (facts, directions) = (whole.len(), protocol.side.directions().len());
    let asked = protocol.sample(whole, dataset.names.entities.len());
    let mut evaluation = evaluate_shard(reasoner, &asked, truth, protocol, shard, progress)?;
    evaluation.totals.sampled_from = (asked.len() < facts).then_some(facts * directions);
    let left_out = of_relations(split.left_out_before(dataset), relations).len();
    evaluation.totals.left_out += left_out * directions;
    let began = Instant::now();
    let baselines = Baselines::new(graph, &dataset.known.queries);
    let rows = evaluation.rows(truth, &baselines);
    evaluation.totals.baseline_seconds = began.elapsed().as_secs_f64();
    Ok((rows, evaluation))
}

/// The facts of these relations; all facts if `relations` is empty.
pub fn of_relations<'a>(facts: &'a [Triple], relations: &[RelationId]) -> Cow<'a, [Triple]> {
    match relations.is_empty() {
        true => facts.into(),
        false => facts.iter().filter(|fact| relations.contains(&fact.relation)).copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Answers, ReasonerError, Side};
    use super::*;
    use crate::graph::{Array, Known, Names, Query};
    use crate::progress::Silent;
    use std::sync::Arc;

    /// Scores every entity by its id, lowest id best.
    struct ById(usize);

    impl Reasoner for ById {
        fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
            let row = (0..self.0).map(|id| -(id as f32));
            Ok(Answers::Dense {
                scores: queries.iter().flat_map(|_| row.clone()).collect(),
                entities: self.0,
            })
        }
    }

    fn split(triples: &[(u32, u32, u32)]) -> Array<Triple> {
        triples.iter().map(|&(head, relation, tail)| Triple::new(head, relation, tail)).collect()
    }

    /// One query, `(0, 0, ?)`, whose answers are 1 in training, 2 in the test split and 3 in validation.
    fn dataset() -> Dataset {
        let facts = split(&[(0, 0, 1)]);
        Dataset {
            names: Arc::new(Names {
                entities: ["a", "b", "c", "d", "e"].into_iter().collect(),
                relations: ["r"].into_iter().collect(),
                ..Names::default()
            }),
            known: Known { queries: facts.clone(), facts, valid: split(&[(0, 0, 3)]), ..Known::default() },
            test: split(&[(0, 0, 2)]),
            test_left_out: split(&[(0, 0, 4)]),
            ..Dataset::default()
        }
    }

    #[test]
    fn test_answers_are_filtered_only_where_nothing_is_chosen_by_the_figure() {
        let dataset = dataset();
        let rank = |split| {
            let graph = dataset.graph();
            let report =
                evaluate_split(&ById(5), &dataset, split, &graph, Protocol::default(), &Silent).unwrap();
            report.figures.mean_rank
        };
        assert_eq!(rank(Split::Test), 2.0, "behind 0; 1 is known");
        assert_eq!(rank(Split::Valid), 3.0, "behind 0 and the test answer, which tuning does not know of");
        assert_eq!(rank(Split::ValidAsPublished), 2.0);
    }

    #[test]
    fn figures_of_a_relation_are_those_of_its_facts_alone() {
        let mut dataset = dataset();
        dataset.test = split(&[(0, 0, 2), (1, 1, 0), (0, 0, 4)]);
        let names = Arc::make_mut(&mut dataset.names);
        names.relations = ["r", "s"].into_iter().collect();
        let figures = |relations: &[u32]| {
            let relations: Vec<RelationId> = relations.iter().map(|&id| RelationId(id)).collect();
            let (graph, protocol) = (dataset.graph(), Protocol::default());
            let report =
                evaluate_relations(&ById(5), &dataset, Split::Test, &relations, &graph, protocol, &Silent);
            let report = report.unwrap();
            (report.figures.queries, report.left_out, report.figures.mean_rank)
        };
        assert_eq!(figures(&[]).0, 3);
        assert_eq!(figures(&[0]), (2, 1, 2.0), "2 and 4 behind 0; the others are true");
        assert_eq!(figures(&[1]), (1, 0, 1.0), "what was left out is of another relation");
        assert_eq!(figures(&[0, 1]).0, 3);
    }

    #[test]
    fn a_split_that_needs_too_many_scores_is_sampled_unless_all_of_it_is_asked_for() {
        let facts: Vec<Triple> = (0..1000).map(|at| Triple::new(at, 0, at)).collect();
        let sampled = |entities: usize, side, all| {
            let protocol = Protocol { side, all, ..Protocol::default() };
            protocol.sample(Cow::Borrowed(&facts), entities).into_owned()
        };
        let most = Protocol::SCORES as usize;
        assert_eq!(sampled(most / 1000, Side::Tail, false), facts);
        let half = sampled(most / 500, Side::Tail, false);
        assert_eq!(half.len(), 500);
        assert!(half.iter().any(|fact| fact.head.0 > 900), "it is spread over the split");
        assert_eq!(sampled(most / 500, Side::Both, false).len(), 250);
        assert_eq!(sampled(most / 500, Side::Both, true), facts);
        assert_eq!(sampled(usize::MAX / 4, Side::Tail, false).len(), 1);
    }

    #[test]
    fn what_was_put_aside_counts_as_left_out_of_the_test_split() {
        let dataset = dataset();
        let left_out = |split, side| {
            let protocol = Protocol { side, ..Protocol::default() };
            evaluate_split(&ById(5), &dataset, split, &dataset.graph(), protocol, &Silent).unwrap().left_out
        };
        assert_eq!(left_out(Split::Test, Side::Tail), 1);
        assert_eq!(left_out(Split::Test, Side::Both), 2);
        assert_eq!(left_out(Split::Valid, Side::Both), 0);
    }
}
