//! Which triples of a data set are evaluated, and which answers count as true.

use super::{EvalError, Protocol, Reasoner, Report, Truth, evaluate};
use crate::graph::{Adjacency, Dataset, Graph, Triple};
use crate::progress::Progress;
use serde::{Deserialize, Serialize};

/// A split that can be ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Nothing was learnt from it.
    #[default]
    Test,
    /// What was tuned on; filtered by what is known without the test split.
    Valid,
    /// The same, filtered by test answers as well, as published figures are. It must not be used to choose anything.
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

    /// All answers that are taken out of its rankings.
    pub fn answers(self, dataset: &Dataset) -> Adjacency {
        match self {
            Split::Test | Split::ValidAsPublished => dataset.answers(),
            // Tuning must not profit from test answers, not even by having them filtered.
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

/// The figures of `reasoner` on a split of `dataset`; `graph` is what it answers on. Queries that were left out when
/// the data was read count as left out.
///
/// # Errors
/// Those of [`evaluate`].
pub fn evaluate_split(
    reasoner: &dyn Reasoner,
    dataset: &Dataset,
    split: Split,
    graph: &Graph,
    protocol: Protocol,
    progress: &dyn Progress,
) -> Result<Report, EvalError> {
    let answers = split.answers(dataset);
    let truth = Truth { graph, answers: &answers };
    let mut evaluation = evaluate(reasoner, split.triples(dataset), truth, protocol, progress)?;
    evaluation.left_out += split.left_out_before(dataset).len() * protocol.side.directions().len();
    Ok(evaluation.report(truth, &dataset.names))
}

#[cfg(test)]
mod tests {
    use super::super::{Answers, ReasonerError, Side};
    use super::*;
    use crate::graph::{Known, Names, Query};
    use crate::progress::Silent;
    use std::sync::Arc;

    /// Scores every entity by its id, the lowest best.
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

    fn split(triples: &[(u32, u32, u32)]) -> Arc<[Triple]> {
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
            known: Known { queries: facts.clone(), facts, valid: split(&[(0, 0, 3)]) },
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
