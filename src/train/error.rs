//! What can go wrong with a network, whichever it is.

use super::TrainError;
use crate::settings::{SettingsError, WrongValue};
use crate::tensor::TensorError;
use std::path::PathBuf;

/// What can go wrong with a network: its settings, its training, its file of weights, its answers.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A setting is out of range.
    #[error(transparent)]
    Value(#[from] WrongValue),
    /// The settings are wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The settings do not fit what they are used with.
    #[error("settings: {why}")]
    Unsuitable {
        /// Which setting, and what is wrong with it.
        why: String,
    },
    /// A computation or a file of weights failed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Training failed, or the user interrupted it.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The embedding model could not say how plausible facts are, which a walker is rewarded by.
    #[error("the embedding's soft reward failed")]
    SoftReward(#[source] Box<dyn std::error::Error + Send + Sync>),
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
