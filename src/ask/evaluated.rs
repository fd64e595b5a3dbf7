//! The figures of a run as `evaluate` reports them: ranks, the reliability of probabilities, and what was evaluated.

use super::{AskError, Faithfulness, Model, OtherGraph};
use crate::eval::calibration::Reliability;
use crate::eval::{Protocol, Report, Split, rank_relations};
use crate::graph::{Direction, RelationId};
use crate::progress::Progress;
use crate::shard::Shard;
use crate::shown::Shown;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The figures of a run on a split. As JSON its keys are a contract with scripts; as text it is for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluated {
    /// The ranking figures.
    #[serde(flatten)]
    pub report: Report,
    /// The reliability of the probabilities, if there are any.
    pub calibration: Option<Reliability>,
    /// Whether the reasons shown are the cause of the answers, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faithfulness: Option<Faithfulness>,
    /// What was evaluated.
    #[serde(flatten)]
    pub about: AboutEvaluation,
}

/// What an evaluation is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AboutEvaluation {
    /// The split.
    pub split: Split,
    /// The relations that were asked for; empty for all.
    pub only: Vec<String>,
    /// The seed of the run.
    pub seed: u64,
    /// The version of the program.
    pub version: String,
    /// The graph that was evaluated on, if it is not the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<OtherGraph>,
    /// The labels of the relations that were asked for.
    #[serde(skip)]
    pub labels: Vec<String>,
    /// Why there are no probabilities.
    #[serde(skip)]
    pub no_probability: Option<String>,
}

/// The rank of every query of an evaluation, as the columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankColumns {
    /// The subjects, by id.
    pub subject: Vec<String>,
    /// The relations.
    pub relation: Vec<String>,
    /// Whether the head was asked for.
    pub inverse: Vec<bool>,
    /// The true answers that were ranked, by id.
    pub answer: Vec<String>,
    /// Their filtered ranks, from 1; ties can put them between two places.
    pub rank: Vec<f64>,
    /// Among how many entities they were ranked: all but the query's other true answers.
    pub candidates: Vec<usize>,
    /// Whether the link leads to many.
    pub to_many: Vec<bool>,
}

impl Model {
    /// Ranks the true answers of a split; also returns the rank of every query, in the order of the split.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    pub fn evaluate_each(
        &self,
        split: Split,
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<(Report, RankColumns), AskError> {
        self.expect_rankable(split)?;
        let (reasoner, dataset, graph) = (self.reasoner().reasoner(), self.dataset(), self.graph());
        let (rows, evaluation) =
            rank_relations(reasoner, dataset, split, &[], graph, protocol, Shard::WHOLE, progress)?;
        let (names, answers) = (self.names(), split.answers(dataset));
        let mut columns = RankColumns::default();
        for row in &rows {
            let ranked = evaluation.ranks[row.at];
            let query = ranked.query;
            columns.subject.push(names.entity(query.subject).to_owned());
            columns.relation.push(names.relation(row.relation).to_owned());
            columns.inverse.push(query.link.direction() == Direction::Inverse);
            columns.answer.push(names.entity(ranked.target).to_owned());
            columns.rank.push(row.rank);
            let others = answers.edges_by(query.subject, query.link).len().saturating_sub(1);
            columns.candidates.push(answers.entities() - others);
            columns.to_many.push(row.to_many);
        }
        let name = |relation| names.relation(relation).to_owned();
        Ok((Report::of(&rows, protocol, evaluation.totals, name), columns))
    }

    /// Ranks the true answers of a split, only those of `relations` unless that is empty, and checks probabilities.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    pub fn evaluated(
        &self,
        split: Split,
        relations: &[RelationId],
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<Evaluated, AskError> {
        let report = self.evaluate_relations(split, relations, protocol, progress)?;
        let calibration = self.reliability_of(split, relations, progress)?;
        Ok(Evaluated { report, calibration, faithfulness: None, about: self.about(split, relations)? })
    }

    pub(super) fn about(&self, split: Split, relations: &[RelationId]) -> Result<AboutEvaluation, AskError> {
        let names = self.names();
        Ok(AboutEvaluation {
            split,
            only: relations.iter().map(|&relation| names.relation(relation).to_owned()).collect(),
            seed: self.seed(),
            version: crate::VERSION.to_owned(),
            on: self.on().cloned(),
            labels: relations.iter().map(|&relation| names.relation_label(relation).to_owned()).collect(),
            no_probability: self.why_no_probability()?,
        })
    }
}

impl fmt::Display for Evaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AboutEvaluation { split, seed, version, on, labels, no_probability, .. } = &self.about;
        f.write_str(match split {
            Split::Test => "Test split, filtered",
            Split::Valid => "Validation split, filtered without test answers",
            Split::ValidAsPublished => "Validation split, filtered",
        })?;
        if let Some(on) = on {
            write!(f, ", on {}", on.data)?;
        }
        if !labels.is_empty() {
            write!(f, ", only {}", Shown(labels.join(", ")))?;
        }
        write!(f, ", seed {seed}, version {version}:\n{}", self.report.to_string().trim_end())?;
        match (&self.calibration, no_probability) {
            (Some(calibration), _) => {
                let fitted = if *split == Split::Test { "" } else { " (they were fitted to this split)" };
                write!(f, "\n\n{}{fitted}", calibration.to_string().trim_end())
            }
            (None, Some(why)) => write!(f, "\n\n{why}"),
            (None, None) => Ok(()),
        }?;
        self.faithfulness.iter().try_for_each(|faithfulness| write!(f, "\n\n{faithfulness}"))
    }
}
