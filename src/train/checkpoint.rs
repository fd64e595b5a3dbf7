//! The state of a training, in memory and in its folder.
//!
//! One file, `checkpoint.safetensors`, holds everything (weights, optimiser, best weights, position in the epoch,
//! sums and records). It is written to a temporary file and renamed, so it is never partial and never inconsistent.

use super::{CheckpointKey, Sums, TrainError, TrainingPlan};
use crate::aside::{is_leftover, try_lock};
use crate::eval::Figures;
use crate::progress::Metric;
use crate::tensor::{Adam, Archive, Parameters, TensorError};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The format that this code writes and reads.
const FORMAT: &str = "1";
const FORMAT_KEY: &str = "train.format";
const DEPENDS_ON: &str = "train.depends_on";
const STATE: &str = "train.state";
const BEST: &str = "best.";

/// The best validation so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The number of epochs trained at that point.
    pub epoch: usize,
    /// Its figures.
    pub figures: Figures,
}

/// The progress of a training.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The number of steps planned by the process that wrote this.
    pub(super) planned: usize,
    /// The number of steps that there is time for, as measured at the beginning; `None` before that, or without a limit.
    #[serde(default)]
    pub(super) in_time: Option<usize>,
    /// The number of epochs completed, validated and recorded.
    pub(super) epoch: usize,
    /// The number of steps taken in the current epoch.
    pub(super) batch: usize,
    /// The sums over these steps.
    pub(super) sums: Sums,
    /// Seconds that these steps took.
    pub(super) epoch_seconds: f64,
    /// Seconds that the steps of the earlier epochs took.
    pub(super) step_seconds: f64,
    /// Seconds in total, including validation, over all invocations.
    pub(super) seconds: f64,
    pub(super) best: Option<Best>,
    /// The number of validations since the best one.
    pub(super) looks_since_best: usize,
    /// The records of all completed epochs.
    pub(super) history: Vec<Metric>,
}

/// A snapshot of the values of all parameters, shared with the checkpoints that contain them.
pub(super) struct Weights(Vec<Arc<Vec<f32>>>);

impl Weights {
    pub(super) fn of(parameters: &Parameters) -> Result<Self, TensorError> {
        let values: Result<_, _> =
            parameters.ids().map(|id| parameters.value(id).to_vec().map(Arc::new)).collect();
        Ok(Weights(values?))
    }

    pub(super) fn put_back(&self, parameters: &mut Parameters) -> Result<(), TensorError> {
        parameters.ids().zip(&self.0).try_for_each(|(id, values)| parameters.set(id, values))
    }

    fn store(&self, parameters: &Parameters, archive: &mut Archive) -> Result<(), TensorError> {
        parameters.ids().zip(&self.0).try_for_each(|(id, values)| {
            let name = format!("{BEST}{}", parameters.name(id));
            archive.insert(&name, parameters.value(id).shape(), Arc::clone(values))
        })
    }

    fn load(parameters: &Parameters, archive: &Archive) -> Result<Self, TensorError> {
        let values = parameters.ids().map(|id| {
            let name = format!("{BEST}{}", parameters.name(id));
            archive.values(&name, parameters.value(id).shape()).map(|values| Arc::new(values.to_vec()))
        });
        Ok(Weights(values.collect::<Result<_, _>>()?))
    }
}

/// What a folder holds of the requested training.
pub(super) enum Found {
    /// Nothing yet.
    Nothing,
    /// A checkpoint that this training cannot resume from, and why.
    Useless(String),
    /// The state and the best weights.
    Training(Box<State>, Option<Weights>),
}

/// The folder of a training, locked for as long as this lives.
pub(super) struct Folder {
    path: PathBuf,
    key: CheckpointKey,
    _lock: File,
}

fn checkpoint_in(folder: &Path) -> PathBuf {
    folder.join("checkpoint.safetensors")
}

/// Removes the checkpoint of a training whose result is stored and that will not be resumed.
pub fn forget(folder: &Path) {
    // Failing to remove it is harmless.
    let _ = std::fs::remove_file(checkpoint_in(folder));
}

impl Folder {
    /// Creates the folder if needed, takes its lock, and removes partial files of a killed process.
    pub(super) fn open(path: &Path, key: &CheckpointKey) -> Result<Self, TrainError> {
        let failed = |source| TrainError::File { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(failed)?;
        let Some(lock) = try_lock(&path.join("lock")).map_err(failed)? else {
            return Err(TrainError::Locked { path: path.to_owned() });
        };
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if is_leftover(&entry.file_name().to_string_lossy()) {
                std::fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(Folder { path: path.to_owned(), key: key.clone(), _lock: lock })
    }

    /// Writes everything.
    pub(super) fn save(
        &self,
        state: &State,
        best: Option<&Weights>,
        parameters: &Parameters,
        adam: &Adam,
    ) -> Result<(), TrainError> {
        let mut archive = Archive::new();
        parameters.store(&mut archive)?;
        adam.store(parameters, &mut archive)?;
        if let Some(best) = best {
            best.store(parameters, &mut archive)?;
        }
        archive.set_metadata(FORMAT_KEY, FORMAT);
        archive.set_metadata(DEPENDS_ON, &serde_json::to_string(&self.key).expect("keys are plain data"));
        archive.set_metadata(STATE, &serde_json::to_string(state).expect("the state is plain data"));
        Ok(archive.write(&checkpoint_in(&self.path))?)
    }

    /// Loads what [`save`](Self::save) wrote: restores `parameters` and `adam`.
    pub(super) fn load(
        &self,
        parameters: &mut Parameters,
        adam: &mut Adam,
        plan: &TrainingPlan<'_>,
    ) -> Result<Found, TrainError> {
        let path = checkpoint_in(&self.path);
        match File::open(&path) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(source) => return Err(TrainError::File { path, source }),
        }
        let useless = |why: &str| Ok(Found::Useless(format!("{} {why}", path.display())));
        let Ok(archive) = Archive::read(&path) else { return useless("is damaged") };
        if archive.metadata(FORMAT_KEY) != Some(FORMAT) {
            return useless("was written by another version of the program");
        }
        let text = |key| archive.metadata(key).unwrap_or_default();
        let Ok(key) = serde_json::from_str::<CheckpointKey>(text(DEPENDS_ON)) else {
            return useless("is damaged");
        };
        if let Some(name) = key.difference(&self.key) {
            let why = format!("belongs to a training with another {name}; remove it to start over");
            return Err(TrainError::Checkpoint { path, why });
        }
        let Ok(state) = serde_json::from_str::<State>(text(STATE)) else { return useless("is damaged") };
        if state.planned > plan.steps && state.epoch * plan.epoch_steps + state.batch >= plan.steps {
            return useless("belongs to a longer training that is further along");
        }
        parameters.load(&archive)?;
        adam.load(parameters, &archive)?;
        let best = state.best.map(|_| Weights::load(parameters, &archive)).transpose()?;
        Ok(Found::Training(Box::new(state), best))
    }
}
