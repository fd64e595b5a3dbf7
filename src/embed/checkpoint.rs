//! The state of a training in one file, so that a killed training goes on as if nothing had happened.
//!
//! One file holds everything (weights, optimiser, the best weights so far, the place in the epoch) and is written
//! aside and renamed, so there is never a half one, nor two that disagree.

use super::EmbedError;
use crate::aside::try_lock;
use crate::eval::Figures;
use crate::tensor::{Adam, Archive, Parameters};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};

const STATE: &str = "training.state";
const FINGERPRINT: &str = "training.fingerprint";
const BEST: &str = "best.";

/// The best look at the validation split so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Best {
    /// After how many epochs.
    pub(super) epoch: usize,
    /// What it was.
    pub(super) figures: Figures,
}

/// How far a training has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Steps taken in all.
    pub(super) steps: u64,
    /// Epochs that are over, with their look at the validation split and their line in the curves.
    pub(super) closed: usize,
    /// The sum of the losses of the steps since the last closed epoch.
    pub(super) loss: f64,
    /// Looks at the validation split since the best one.
    pub(super) looks_since_best: usize,
    /// The best look, if there was one.
    pub(super) best: Option<Best>,
    /// Seconds spent so far, those of earlier processes included.
    pub(super) seconds: f64,
    /// Seconds of these that were spent in steps, not in validation.
    pub(super) step_seconds: f64,
}

/// Where a training keeps its state and its curves.
pub(super) struct Folder {
    path: PathBuf,
    fingerprint: String,
    /// Locked by the operating system: two trainings that write the same checkpoint would make one of neither.
    _lock: File,
}

impl Folder {
    /// The folder of the training with this fingerprint; made if it is not there.
    pub(super) fn new(path: &Path, fingerprint: String) -> Result<Self, EmbedError> {
        let failed = |source| EmbedError::File { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(failed)?;
        match try_lock(&path.join("lock")).map_err(failed)? {
            Some(held) => Ok(Folder { path: path.to_owned(), fingerprint, _lock: held }),
            None => Err(EmbedError::Locked { path: path.to_owned() }),
        }
    }

    fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }

    /// Where the learning curves are written.
    pub(super) fn metrics(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Writes everything.
    pub(super) fn save(
        &self,
        state: &State,
        best: Option<&Archive>,
        parameters: &Parameters,
        adam: &Adam,
    ) -> Result<(), EmbedError> {
        let mut archive = Archive::new();
        parameters.store(&mut archive)?;
        adam.store(parameters, &mut archive)?;
        if let Some(best) = best {
            for id in parameters.ids() {
                let (name, shape) = (parameters.name(id), parameters.value(id).shape());
                archive.insert(&format!("{BEST}{name}"), shape, best.values(name, shape)?.to_vec())?;
            }
        }
        archive.set_metadata(FINGERPRINT, &self.fingerprint);
        archive.set_metadata(STATE, &serde_json::to_string(state).expect("plain values"));
        Ok(archive.write(&self.checkpoint())?)
    }

    /// Takes up what [`save`](Self::save) wrote, if anything is there: the state and the best weights.
    pub(super) fn load(
        &self,
        parameters: &mut Parameters,
        adam: &mut Adam,
    ) -> Result<Option<(State, Option<Archive>)>, EmbedError> {
        let path = self.checkpoint();
        if !path.exists() {
            return Ok(None);
        }
        let archive = Archive::read(&path)?;
        let wrong = |why: &str| EmbedError::Weights { path: path.clone(), why: why.to_owned() };
        if archive.metadata(FINGERPRINT) != Some(&self.fingerprint) {
            return Err(wrong(
                "is of a training with other data, settings or seed; remove its folder to start anew",
            ));
        }
        let text = archive.metadata(STATE).ok_or_else(|| wrong("has no state; remove it to start anew"))?;
        let state: State =
            serde_json::from_str(text).map_err(|_| wrong("has a damaged state; remove it to start anew"))?;
        parameters.load(&archive)?;
        adam.load(parameters, &archive)?;
        let mut best = None;
        if state.best.is_some() {
            let kept = best.insert(Archive::new());
            for id in parameters.ids() {
                let (name, shape) = (parameters.name(id), parameters.value(id).shape());
                kept.insert(name, shape, archive.values(&format!("{BEST}{name}"), shape)?.to_vec())?;
            }
        }
        Ok(Some((state, best)))
    }

    /// Removes the checkpoint of a training that is over; the curves stay.
    pub(super) fn finish(&self) {
        // If it cannot be removed, the next training sees its fingerprint and says so.
        let _ = std::fs::remove_file(self.checkpoint());
    }
}
