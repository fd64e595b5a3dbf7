//! How plausible is a triple? Embedding models, one file each, and the trainer they share.
//!
//! [`train`] makes an [`Embedding`] from what is [`Known`](crate::graph::Known); an `Embedding` answers queries
//! through [`Reasoner`](crate::eval::Reasoner), gives the walker its soft reward ([`Embedding::plausibility`]), and
//! is stored in safetensors files that carry the names of their entities and relations. [`Settings`] has all
//! settings; [`preset`] has tuned ones for the benchmark graphs, [`suited`] has defaults for others.
//!
//! A model turns a subject and a link into a query vector (`distmult`, `complex`, `conve`, `rotate`); everything
//! else, including the losses, is shared by all of them (`model`). Devices and gradients are left to the tensor room,
//! ranking to `eval`, and epochs, checkpoints and the rest of training to `train`.

mod complex;
mod conve;
mod distmult;
mod embedding;
mod examples;
mod file;
mod model;
mod preset;
mod rotate;
mod sample;
mod settings;
mod trainer;

#[cfg(test)]
mod contract;

pub use embedding::Embedding;
pub use file::note;
pub use model::Size;
pub use preset::{LARGE, chosen, preset, presets, sampled, suited};
pub use settings::{ImageDropout, LabelFloor, Loss, ModelKind, Schedule, Settings, TrainingExample};
pub use trainer::{Stop, Summary, Task, TrainedEmbedding, WarmEmbedding, learn, train};

use crate::settings::SettingsError;
use crate::tensor::TensorError;
use crate::train::TrainError;
use std::path::PathBuf;

/// What can go wrong with embeddings.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The settings are wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A computation or a file of weights failed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Training failed, or the user interrupted it.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A weight file does not fit the graph or the settings it is used with.
    #[error("{}: {why}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What does not fit, and the remedy.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is nothing to learn from.
    #[error("the graph has no facts to learn from")]
    NoFacts,
}
