//! Where a training stands, in memory and in its folder.
//!
//! The folder holds `checkpoint.safetensors` (weights, optimiser, position, figures so far), `best.safetensors`
//! (the weights of the best validation) and `metrics.jsonl`. Files are written aside and then renamed, so a
//! killed run leaves whole files. `metrics.jsonl` is written anew from the figures in the checkpoint, so it never
//! tells of epochs that were lost.

use super::episode::{Stage, Tally};
use super::train::EpochFigures;
use super::{WalkConfig, WalkError, Walker};
use crate::aside::write_aside;
use crate::tensor::{Adam, Archive, Parameters};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

const STATE_KEY: &str = "walk.training";

/// The epoch whose weights were kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Which joint epoch, from 1.
    pub epoch: usize,
    /// Its validation MRR.
    pub mrr: f64,
}

/// Sums over the batches of the current epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) walks: f64,
    pub(super) reward: f64,
    pub(super) hits: f64,
    pub(super) rules: f64,
    pub(super) entropy: f64,
    pub(super) gradient_norm: f64,
    pub(super) seconds: f64,
}

impl Sums {
    pub(super) fn add(&mut self, tally: &Tally) {
        self.walks += tally.walks;
        self.reward += tally.reward;
        self.hits += tally.hits;
        self.rules += tally.rules;
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let walks = self.walks.max(1.0);
        let (reward, hits, rules) = (self.reward / walks, self.hits / walks, self.rules / walks);
        write!(formatter, "reward {reward:.3}, hits {:.1} %, rules {:.1} %", 100.0 * hits, 100.0 * rules)
    }
}

/// Where a training stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Training {
    /// Epochs that are done.
    pub(super) epoch: usize,
    /// Batches of the current epoch that are done.
    pub(super) batch: usize,
    pub(super) sums: Sums,
    pub(super) best: Option<Best>,
    /// Validations since the best.
    pub(super) since_best: usize,
    pub(super) history: Vec<EpochFigures>,
    #[serde(skip)]
    pub(super) best_weights: Option<Weights>,
}

/// The values of all parameters at one time.
#[derive(Clone, Debug)]
pub(super) struct Weights(Vec<Vec<f32>>);

impl Weights {
    fn of(parameters: &Parameters) -> Result<Self, WalkError> {
        let values: Result<_, _> = parameters.ids().map(|id| parameters.value(id).to_vec()).collect();
        Ok(Weights(values?))
    }

    pub(super) fn put_back(&self, parameters: &mut Parameters) -> Result<(), WalkError> {
        for (id, values) in parameters.ids().zip(&self.0) {
            parameters.set(id, values)?;
        }
        Ok(())
    }
}

impl Training {
    pub(super) fn next_epoch(&mut self) {
        self.epoch += 1;
        (self.batch, self.sums) = (0, Sums::default());
    }

    pub(super) fn is_better(&self, mrr: f64) -> bool {
        self.best.as_ref().is_none_or(|best| mrr > best.mrr)
    }

    pub(super) fn keep(&mut self, walker: &Walker, best: Best) -> Result<(), WalkError> {
        self.best_weights = Some(Weights::of(&walker.parameters)?);
        (self.best, self.since_best) = (Some(best), 0);
        Ok(())
    }

    /// Whether so many validations in a row brought nothing better.
    pub(super) fn exhausted(&self, patience: usize) -> bool {
        patience > 0 && self.since_best >= patience
    }

    pub(super) fn summary(&self) -> String {
        let Some(figures) = self.history.last() else { return "no epochs".to_string() };
        let best = self.best.as_ref().map_or(String::new(), |best| {
            format!(", best validation MRR {:.4} in epoch {}", best.mrr, best.epoch)
        });
        format!("reward {:.3}, hits {:.1} %{best}", figures.reward, 100.0 * figures.hit_rate)
    }
}

/// Takes the checkpoint out of the folder of a training that nobody will go on with; its curves stay.
pub fn forget(folder: &Path) {
    let folder = Folder { path: folder.to_path_buf() };
    // One that cannot be removed is in nobody's way.
    let _ = std::fs::remove_file(folder.checkpoint());
}

/// The folder of a training.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self, WalkError> {
        std::fs::create_dir_all(path)
            .map_err(|source| WalkError::Unwritable { path: path.to_path_buf(), source })?;
        Ok(Self { path: path.to_path_buf() })
    }

    fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }

    fn best(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    pub(super) fn save(
        &mut self,
        walker: &Walker,
        adam: &Adam,
        state: &Training,
        seed: u64,
    ) -> Result<(), WalkError> {
        let mut archive = Archive::new();
        walker.store(&mut archive)?;
        adam.store(&walker.parameters, &mut archive)?;
        archive.set_metadata("walk.seed", &seed.to_string());
        archive.set_metadata(STATE_KEY, &serde_json::to_string(state).expect("the state is plain data"));
        archive.write(&self.checkpoint())?;
        self.write_metrics(&state.history)
    }

    pub(super) fn save_best(&self, walker: &Walker, weights: &Weights) -> Result<(), WalkError> {
        debug_assert_eq!(weights.0.len(), walker.parameters.ids().count());
        walker.save(&self.best())
    }

    fn write_metrics(&self, history: &[EpochFigures]) -> Result<(), WalkError> {
        let path = self.path.join("metrics.jsonl");
        let written = write_aside(&path, |out| {
            history.iter().try_for_each(|figures| writeln!(out, "{}", serde_json::to_string(figures)?))
        });
        written.map_err(|source| WalkError::Unwritable { path, source })
    }

    /// Where the checkpoint's training stands, with `walker` and `adam` as they were; none without a checkpoint, or if
    /// it has gone further than is now asked for.
    pub(super) fn load(
        &mut self,
        walker: &mut Walker,
        adam: &mut Adam,
        stage: Stage,
        seed: u64,
    ) -> Result<Option<Training>, WalkError> {
        let path = self.checkpoint();
        if !path.exists() {
            return Ok(None);
        }
        let archive = Archive::read(&path)?;
        let broken = |why: String| WalkError::Checkpoint { path: path.clone(), why };
        let text = |key| archive.metadata(key).ok_or_else(|| broken(format!("{key} is missing")));
        let config: WalkConfig =
            serde_json::from_str(text("walk.config")?).map_err(|error| broken(error.to_string()))?;
        if let Some(key) = differing(&config, &walker.config, stage) {
            return Err(broken(format!("it was trained with another walk.{key}; use a new folder")));
        }
        if text("walk.seed")? != seed.to_string() {
            return Err(broken(format!("it was trained with seed {}, not {seed}", text("walk.seed")?)));
        }
        let mut state: Training =
            serde_json::from_str(text(STATE_KEY)?).map_err(|error| broken(error.to_string()))?;
        if stage == Stage::Joint && state.epoch > walker.config.epochs {
            return Ok(None);
        }
        walker.parameters.load(&archive)?;
        adam.load(&walker.parameters, &archive)?;
        if state.best.is_some() {
            let best = Archive::read(&self.best())?;
            let now = Weights::of(&walker.parameters)?;
            walker.parameters.load(&best)?;
            state.best_weights = Some(Weights::of(&walker.parameters)?);
            now.put_back(&mut walker.parameters)?;
        }
        Ok(Some(state))
    }
}

/// The first setting that differs and that a training of `stage` cannot change on its way.
fn differing(a: &WalkConfig, b: &WalkConfig, stage: Stage) -> Option<String> {
    let value =
        |config: &WalkConfig| serde_json::to_value(config.lasting(stage)).expect("settings are plain data");
    let (a, b) = (value(a), value(b));
    let keys = a.as_object().expect("settings have keys").keys();
    keys.into_iter().find(|key| a[*key] != b[*key]).cloned()
}
