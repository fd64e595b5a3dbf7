//! How plausible is a triple? Embedding models, one file each, and the trainer they share.
//!
//! [`train`] makes an [`Embedding`] from what is [`Known`](crate::graph::Known); an `Embedding` answers queries
//! through [`Reasoner`](crate::eval::Reasoner), gives the walker its soft reward
//! ([`Embedding::plausibility`]), and goes to and comes from safetensors files that carry the names of their
//! entities and relations. [`Settings`] are everything that can be chosen; [`preset`] knows good ones for the
//! benchmark graphs, [`suited`] for others.
//!
//! A model is what turns a subject and a link into a query vector (`distmult`, `complex`, `conve`, `rotate`);
//! everything else, losses included, is common to all of them (`model`). Devices and gradients are left to the
//! tensor room, ranking to `eval`.

mod checkpoint;
mod complex;
mod conve;
mod distmult;
mod embedding;
mod examples;
mod file;
mod model;
mod preset;
mod rotate;
mod settings;
mod trainer;

#[cfg(test)]
mod contract;

pub use embedding::Embedding;
pub use file::note;
pub use model::Size;
pub use preset::{preset, presets, suited};
pub use settings::{Example, Loss, ModelKind, Schedule, Settings};
pub use trainer::{Stop, Summary, Task, Trained, epochs_wanted, train};

use crate::eval::EvalError;
use crate::tensor::TensorError;
use std::path::PathBuf;

/// What can go wrong with embeddings.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The settings are wrong.
    #[error("settings: {why}")]
    Settings {
        /// Which one and what about it.
        why: String,
    },
    /// A computation or a file of weights failed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The validation split could not be ranked.
    #[error("validation")]
    Eval(#[source] EvalError),
    /// A file of weights does not fit what it is to be used for.
    #[error("{}: {why}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What does not fit, and the remedy.
        why: String,
    },
    /// Another process trains in the same folder.
    #[error("{}: another training is at work here; wait for it, or choose another folder", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// There is nothing to learn from.
    #[error("the graph has no facts to learn from")]
    NoFacts,
    /// The loss is no number any more.
    #[error("the loss is not a number after epoch {epoch}: training has diverged; lower learning_rate")]
    Diverged {
        /// The epoch after which it was seen.
        epoch: usize,
    },
    /// The user stopped the training; a checkpoint has what was done, if there is a place for one.
    #[error("interrupted in epoch {epoch}")]
    Interrupted {
        /// The epoch that was not finished.
        epoch: usize,
    },
}
