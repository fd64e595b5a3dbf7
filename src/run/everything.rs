//! The second run: on all facts, none held out, with the choices made in the first.
//!
//! A run is trained with facts held out, so that settings can be chosen, scores calibrated and figures measured. After
//! that, holding the facts out only costs accuracy: they are true, and answers are better with them. The second run
//! uses all facts. It trains for as many epochs as were best in the first, and reuses the weights of the blend and the
//! calibration, since no data is left to fit them on. It is a run directory of its own within that of the first, so it
//! resumes like any other. The first stays as it is: figures are measured on it.

use super::directory::EVERYTHING;
use super::member::{self, CALIBRATION};
use super::run::{FirstRun, Learnt, RunSpec, StageReport, learn};
use super::{Checksum, Manifest, RunDirectory, RunError, Stages};
use crate::config::{Config, LearnValid};
use crate::graph::Dataset;
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Learns all facts of `dataset` after the run of `spec`; `stages` are the reports of its stages.
///
/// # Errors
/// As [`learn`]; the same call resumes.
pub fn learn_everything(
    spec: &RunSpec,
    dataset: &Dataset,
    stages: &BTreeMap<String, StageReport>,
    progress: &dyn Progress,
) -> Result<Learnt, RunError> {
    let first = FirstRun { path: spec.out.clone(), stages: fingerprint(&RunDirectory::look_at(&spec.out)?)? };
    let spec = RunSpec {
        out: spec.out.join(EVERYTHING),
        config: settled(&spec.config, stages),
        siblings: None,
        // The epochs already fit the time; mining has its own limit.
        budget: None,
        first: Some(first),
        ..spec.clone()
    };
    learn(&spec, &dataset.everything(), progress)
}

/// The directory of the second run within the run at `path`, if it is finished and was made from the first run in its
/// present state.
///
/// # Errors
/// If a list of stages cannot be read.
pub fn everything_of(path: &Path) -> Result<Option<PathBuf>, RunError> {
    let within = path.join(EVERYTHING);
    let Ok(directory) = RunDirectory::look_at(&within) else { return Ok(None) };
    let Ok(manifest) = Manifest::read(&directory) else { return Ok(None) };
    let fresh = manifest.everything_after == Some(fingerprint(&RunDirectory::look_at(path)?)?);
    let last = Stages::of(&directory)?.expect_finished(CALIBRATION).is_ok();
    Ok((fresh && last).then_some(within))
}

/// The checksum of the inputs and outputs of a run's stages.
pub(super) fn fingerprint(directory: &RunDirectory) -> Result<Checksum, RunError> {
    let stages = Stages::of(directory)?;
    let made: Vec<_> = stages.records().values().map(|record| (&record.inputs, &record.files)).collect();
    Ok(Checksum::of(&made))
}

/// The settings with everything that was chosen by validation fixed.
fn settled(config: &Config, stages: &BTreeMap<String, StageReport>) -> Config {
    let mut config = config.clone();
    config.data.learn_valid = LearnValid::Always;
    for member in member::all() {
        if let Some(report) = stages.get(member.name()) {
            member.settle(&mut config, &report.figures);
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_second_learning_trains_as_long_as_was_best() {
        let report = |figures: serde_json::Value| {
            let figures = serde_json::from_value(figures).unwrap();
            StageReport { seconds: 1.0, peak_memory_mb: None, skipped: false, cut: None, figures }
        };
        let stages = BTreeMap::from([
            ("embeddings".to_owned(), report(json!({ "best": { "epoch": 7 }, "epochs": 20 }))),
            ("training".to_owned(), report(json!({ "best": { "epoch": 3 }, "epochs": 9 }))),
            ("propagation".to_owned(), report(json!({ "best": null, "epochs": 4 }))),
        ]);
        let found = settled(&Config::default(), &stages);
        assert_eq!((found.embed.final_epochs, found.walk.epochs, found.propagate.epochs), (7, 3, 4));
        assert_eq!(found.embed.epochs, Config::default().embed.epochs, "the learning rate falls as before");
        assert_eq!(found.data.learn_valid, LearnValid::Always);
    }
}
