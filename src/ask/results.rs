//! The report of a run: the ranking of the test split and a few explained answers.

use super::{AskError, ExampleAnswer, Faithfulness, LearntEverything, Model, UpdateReport};
use crate::config::{EvalConfig, System};
use crate::eval::calibration::Reliability;
use crate::eval::{Protocol, Report, Split};
use crate::graph::FactCounts;
use crate::progress::Progress;
use crate::run::directory::RESULTS;
use crate::run::member::TRAINING;
use crate::run::{MemberReport, RunDirectory, RunSpec, StageReport, sealed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The report of a run. As JSON its keys are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The figures on the test split.
    #[serde(flatten)]
    pub report: Report,
    /// The system that answered.
    pub system: System,
    /// The name of the configuration, where it has one.
    pub name: Option<String>,
    /// The name of the data set.
    pub dataset: String,
    /// How many facts it has, and how many were learnt from.
    pub counts: FactCounts,
    /// The version of the program.
    pub version: String,
    /// The seed.
    pub seed: u64,
    /// The stages, by name.
    pub stages: BTreeMap<String, StageReport>,
    /// The members whose last validation was their best: with more minutes they would be better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_improving: Vec<String>,
    /// The share of queries for which the top answer's path is a rule. In a blend, where the top answer need not be
    /// the walker's, the share of its walker on the validation split. Absent without a walker.
    pub rule_share: Option<f64>,
    /// The reliability of the probabilities of test answers; absent if there are none.
    #[serde(default)]
    pub calibration: Option<Reliability>,
    /// Whether the reasons shown are the cause of the answers; absent if that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faithfulness: Option<Faithfulness>,
    /// A few answers with their reasons.
    pub examples: Vec<ExampleAnswer>,
    /// The second run, on all facts, which does not change the figures; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnt_everything: Option<LearntEverything>,
    /// What has changed since the earlier run that this one started from; absent if it was learnt from scratch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateReport>,
}

/// The stages whose last validation was the best of several.
fn still_improving(stages: &BTreeMap<String, StageReport>) -> Vec<String> {
    let improving = |stage: &StageReport| {
        let MemberReport { epochs, best, .. } = &stage.figures;
        best.is_some_and(|best| best.epoch > 1 && Some(best.epoch) == *epochs)
    };
    stages.iter().filter(|(_, stage)| improving(stage)).map(|(name, _)| name.clone()).collect()
}

impl Model {
    /// Ranks the test split, or `most` of its facts, and explains a few answers.
    pub(super) fn report(
        &self,
        spec: &RunSpec,
        stages: BTreeMap<String, StageReport>,
        most: Option<usize>,
        progress: &dyn Progress,
    ) -> Result<RunReport, AskError> {
        let EvalConfig { direction, ties, all, examples, faithfulness, .. } = spec.config.eval;
        let protocol = Protocol { side: direction, ties, all, most, ..Protocol::default() };
        let (report, rule_share) = self.test(protocol, progress)?;
        let of_walker = || stages.get(TRAINING)?.figures.rule_share;
        let rule_share = rule_share.or_else(of_walker);
        Ok(RunReport {
            report,
            system: spec.config.system,
            name: spec.name.clone(),
            dataset: spec.source.name(),
            counts: self.counts(),
            version: crate::VERSION.to_owned(),
            seed: spec.seed,
            still_improving: still_improving(&stages),
            stages,
            rule_share,
            calibration: self.reliability_on(Split::Test, &[], most, progress)?,
            faithfulness: match faithfulness {
                0 => None,
                queries => self.faithfulness(queries, progress)?,
            },
            examples: self.examples(examples)?,
            learnt_everything: None,
            update: None,
        })
    }

    /// Saves the report in the run.
    pub(super) fn keep_results(&self, report: RunReport) -> Result<(), AskError> {
        let text = serde_json::to_string_pretty(&report).expect("a report is plain data");
        RunDirectory::look_at(self.run_path())?.write(RESULTS, sealed(&text).as_bytes())?;
        self.set_results(report);
        Ok(())
    }
}
