//! What a run comes to: the ranking of the test split and a few explained answers.

use super::{AskError, Example, Model};
use crate::config::System;
use crate::eval::{Protocol, Report};
use crate::graph::Dataset;
use crate::plan::Stage;
use crate::progress::Progress;
use crate::run::directory::RESULTS;
use crate::run::{self, Learnt, RunSpec, StageReport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a run comes to. As JSON its keys are a contract with scripts.
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
    /// A few answers with their reasons.
    pub examples: Vec<Example>,
}

/// Does what `spec` asks for: learns, ranks the test split, explains a few answers. `dataset` is what its source holds.
///
/// # Errors
/// If a stage fails, the directory cannot be worked in, or the user interrupts; what is finished stays, and the
/// same spec goes on from there.
pub fn run(spec: &RunSpec, dataset: &Dataset, progress: &dyn Progress) -> Result<RunReport, AskError> {
    finish(spec, dataset, run::learn(spec, dataset, progress)?, progress)
}

/// Ranks the test split, explains a few answers, writes the results.
fn finish(
    spec: &RunSpec,
    dataset: &Dataset,
    learnt: Learnt,
    progress: &dyn Progress,
) -> Result<RunReport, AskError> {
    let Learnt { directory, learnable, stages } = learnt;
    let opened = Model::from_parts(directory, spec, dataset.clone(), learnable)?;
    let reasoner = opened.reasoner()?;
    let protocol =
        Protocol { side: spec.config.eval.direction, ties: spec.config.eval.ties, ..Protocol::default() };
    let (report, rule_share) = opened.test(&*reasoner, protocol, progress)?;
    let of_walker = || stages.get(Stage::Training.name())?.figures["rule_share"].as_f64();
    let rule_share = rule_share.or_else(of_walker);
    let examples = opened.examples(&*reasoner, spec.config.eval.examples)?;
    let report = RunReport {
        report,
        system: spec.config.system,
        name: spec.name.clone(),
        dataset: spec.source.name(),
        version: crate::VERSION.to_owned(),
        seed: spec.seed,
        stages,
        rule_share,
        examples,
    };
    let text = serde_json::to_vec_pretty(&report).expect("a report is plain data");
    opened.directory().write(RESULTS, &text)?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::progress::{Impatient, Silent};
    use crate::run::{RunError, Source};
    use crate::tensor::Device;

    #[test]
    fn what_was_learnt_with_other_settings_does_not_pass_for_what_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (dataset, out) = (Source::Demonstration.read().unwrap(), folder.path().join("run"));
        let mut spec = RunSpec {
            source: Source::Demonstration,
            out: out.clone(),
            config: Config { system: System::Rules, ..Config::default() },
            seed: 1,
            device: Device::cpu(1).unwrap(),
            tensorboard: false,
            name: None,
            siblings: None,
            budget: None,
        };
        spec.config.rules.samples = 1000;
        let first = run(&spec, &dataset, &Silent).unwrap();
        let opened = || Model::open(&out, None, &Device::cpu(1).unwrap());
        assert_eq!(opened().unwrap().results().unwrap(), first);
        let before = spec.clone();
        for change in
            [|spec: &mut RunSpec| spec.seed = 2, |spec: &mut RunSpec| spec.config.rules.max_length = 1]
        {
            change(&mut spec);
            assert!(matches!(run(&spec, &dataset, &Impatient), Err(AskError::Run(RunError::Interrupted))));
            assert!(matches!(opened(), Err(AskError::Run(RunError::Missing { .. }))));
            assert!(!out.join(RESULTS).exists());
            // Nor is anything lost: asked for as before, it is all there.
            spec = before.clone();
            assert!(run(&spec, &dataset, &Silent).unwrap().stages["rules"].skipped);
            assert!(opened().is_ok());
        }
    }
}
