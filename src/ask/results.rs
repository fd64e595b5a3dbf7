//! The report of a run: the ranking of the test split and a few explained answers.

use super::{AskError, ExampleAnswer, Model};
use crate::config::{EvalConfig, System};
use crate::eval::calibration::Reliability;
use crate::eval::{Protocol, Report, Split};
use crate::plan::Stage;
use crate::progress::Progress;
use crate::run::directory::RESULTS;
use crate::run::{RunSpec, StageReport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The report of a run. As JSON its keys are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The figures on the test split.
    #[serde(flatten)]
    pub report: Report,
    /// Who answered.
    pub system: System,
    /// The name of the configuration, where it has one.
    pub name: Option<String>,
    /// The name of the data set.
    pub dataset: String,
    /// The version of the program.
    pub version: String,
    /// The seed.
    pub seed: u64,
    /// The stages, by name.
    pub stages: BTreeMap<String, StageReport>,
    /// For what share of the queries the top answer's path is a rule; in a blend, where the top answer need not be the
    /// walker's, that of its walker on the validation split. Absent where nothing walks.
    pub rule_share: Option<f64>,
    /// How far the probabilities of test answers can be trusted; absent where there are none.
    #[serde(default)]
    pub calibration: Option<Reliability>,
    /// A few answers with their reasons.
    pub examples: Vec<ExampleAnswer>,
}

impl Model {
    /// Ranks the test split, explains a few answers, and saves the report.
    pub(super) fn finish(
        &self,
        spec: &RunSpec,
        stages: BTreeMap<String, StageReport>,
        progress: &dyn Progress,
    ) -> Result<(), AskError> {
        let EvalConfig { direction, ties, examples, .. } = spec.config.eval;
        let protocol = Protocol { side: direction, ties, ..Protocol::default() };
        let (report, rule_share) = self.test(protocol, progress)?;
        let of_walker = || stages.get(Stage::Training.name())?.figures["rule_share"].as_f64();
        let rule_share = rule_share.or_else(of_walker);
        let report = RunReport {
            report,
            system: spec.config.system,
            name: spec.name.clone(),
            dataset: spec.source.name(),
            version: crate::VERSION.to_owned(),
            seed: spec.seed,
            stages,
            rule_share,
            calibration: self.reliability(Split::Test, progress)?,
            examples: self.examples(examples)?,
        };
        let text = serde_json::to_vec_pretty(&report).expect("a report is plain data");
        self.directory().write(RESULTS, &text)?;
        self.set_results(report);
        Ok(())
    }
}
