//! The figures of a run as `evaluate` reports them: ranks, the reliability of probabilities, and what was evaluated.

use super::{AskError, Model, OtherGraph};
use crate::eval::calibration::Reliability;
use crate::eval::{Protocol, Report, Split};
use crate::graph::RelationId;
use crate::progress::Progress;
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

impl Model {
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
        Ok(Evaluated { report, calibration, about: self.about(split, relations)? })
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
        }
    }
}
