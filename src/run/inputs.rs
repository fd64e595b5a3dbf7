//! The inputs of a stage: data, settings, seed, and the files of earlier stages, as one checksum.

use super::Checksum;
use super::material::Learnable;
use super::run::RunSpec;
use crate::config::Config;
use crate::plan::Stage;
use crate::walk::{Phase, Start};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;

/// Increased when a stage would give another result than in an older version.
const STAGE_VERSION: u32 = 2;
/// The same for calibration alone, which costs little: 2 has probabilities for completing.
const CALIBRATION_VERSION: u32 = 2;

/// The settings that `stage` depends on.
pub fn settings(stage: Stage, config: &Config) -> Value {
    fn value(settings: &impl Serialize) -> Value {
        serde_json::to_value(settings).expect("settings are plain data")
    }
    match stage {
        Stage::Embeddings => value(&config.embed),
        Stage::Rules => with_file(value(&config.rules.mined()), &config.rules.file),
        Stage::Pretraining => {
            json!([value(&config.walk.checkpoint_settings(Phase::Pretrain)), config.rules.threshold])
        }
        Stage::Training => json!([value(&config.walk), config.rules.threshold]),
        Stage::Propagation => value(&config.propagate),
        Stage::Blending => json!([value(&config.blend), config.rules.aggregate, config.rules.top]),
        // Everything that affects an answer's score.
        Stage::Calibration => {
            let Config { system, rules, walk, blend, eval, .. } = config;
            let rules = with_file(value(rules), &rules.file);
            let settings = [value(system), rules, value(walk), value(blend)];
            json!([CALIBRATION_VERSION, settings, eval.calibration_queries])
        }
    }
}

/// `rules` with the checksum of their file instead of its name; without a file, as before the setting existed.
fn with_file(mut rules: Value, file: &str) -> Value {
    if let Some(settings) = rules.as_object_mut() {
        settings.remove("file");
        if let Some(sum) =
            Some(file).filter(|file| !file.is_empty()).map(|file| Checksum::of_file(Path::new(file)))
        {
            // An unreadable file is reported when it is read.
            settings.insert(
                "file".to_owned(),
                json!(sum.map_or_else(|_| file.to_owned(), |sum| sum.to_string())),
            );
        }
    }
    rules
}

/// The settings that identify checkpoints of the stage. The length of a training is left out where it can be
/// extended.
pub fn checkpoint_settings(stage: Stage, config: &Config) -> Value {
    match stage {
        Stage::Training => json!([config.walk.checkpoint_settings(Phase::Joint), config.rules.threshold]),
        other => settings(other, config),
    }
}

/// The inputs of later stages beside the data. The walker sees only the rules that reward a path, so runs that mine
/// more rules for other uses can share it.
#[derive(Default)]
pub struct Before {
    /// The embedding model.
    pub embedding: Vec<Checksum>,
    /// The propagator, where it rewards the walker.
    pub propagator: Vec<Checksum>,
    /// The rules that reward a path.
    pub rules: Vec<Checksum>,
    /// Everything that a blend is made of.
    pub blended: Vec<Checksum>,
}

impl Before {
    /// The checksum of everything that `stage` depends on. A stage that a time budget may have cut short differs from
    /// one with a longer budget.
    pub fn inputs(&self, stage: Stage, spec: &RunSpec, learnable: &Learnable) -> Checksum {
        let seconds = spec.budget.as_ref().map(|budget| budget.resources.seconds());
        self.sum(stage, json!([stage.name(), settings(stage, &spec.config), seconds]), spec, learnable)
    }

    /// The checksum of these settings of `stage` and everything else that it depends on.
    pub fn sum(&self, stage: Stage, settings: Value, spec: &RunSpec, learnable: &Learnable) -> Checksum {
        let before = match stage {
            Stage::Embeddings | Stage::Rules | Stage::Propagation => Vec::new(),
            // Pre-training is rewarded by rules alone.
            Stage::Pretraining if spec.config.walk.start == Start::Random => self.rules.clone(),
            Stage::Pretraining => [&self.embedding[..], &self.rules].concat(),
            Stage::Training => [&self.embedding[..], &self.propagator, &self.rules].concat(),
            Stage::Blending | Stage::Calibration => self.blended.clone(),
        };
        let data = (&learnable.checksum, learnable.valid_learnt);
        let fits = matches!(stage, Stage::Blending | Stage::Calibration);
        let first = spec.first.as_ref().filter(|_| fits).map(|first| &first.stages);
        let warm = spec.warm.as_ref().filter(|_| !fits).map(|warm| &warm.stages);
        match first.or(warm) {
            Some(after) => Checksum::of(&(STAGE_VERSION, settings, data, spec.seed, before, after)),
            None => Checksum::of(&(STAGE_VERSION, settings, data, spec.seed, before)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_mined_again_only_for_what_mining_looks_at() {
        let mined = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            settings(Stage::Rules, &config)
        };
        let before = mined(|_| {});
        assert_eq!(mined(|config| (config.rules.threshold, config.rules.top) = (0.5, 7)), before);
        assert_ne!(mined(|config| config.rules.seconds = 7.0), before);
        assert_ne!(mined(|config| config.rules.min_support = 7), before);
        let by_samples = mined(|config| config.rules.samples = 5);
        assert_eq!(mined(|config| (config.rules.samples, config.rules.seconds) = (5, 7.0)), by_samples);
        // Runs of versions without rule files keep their rules; the content of a file counts, not the mining
        // settings.
        assert!(before.get("file").is_none());
        let given = mined(|config| config.rules.file = "Cargo.toml".to_owned());
        assert_ne!(given, before);
        assert_eq!(
            mined(|config| (config.rules.file, config.rules.samples) = ("Cargo.toml".to_owned(), 9)),
            given
        );
    }

    #[test]
    fn pretraining_does_not_look_at_what_only_joint_training_uses() {
        let mut config = Config::default();
        let before = settings(Stage::Pretraining, &config);
        (config.walk.epochs, config.walk.lambda) = (7, 0.5);
        assert_eq!(settings(Stage::Pretraining, &config), before);
    }
}
