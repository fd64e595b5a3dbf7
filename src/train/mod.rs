//! How is a network trained? One harness for all of them: epochs and steps, validation, patience, the best weights kept,
//! checkpoints, the learning rate, records, time limits and interruption.
//!
//! **To train a network with it**, implement [`Trainable`]: where its [`Parameters`](crate::tensor::Parameters) are,
//! how an epoch's examples are ordered, how one batch adds to the gradients, how good it is on the validation split
//! ([`Validation`] asks and ranks), and what an epoch reports. Then describe the training in a [`TrainingPlan`] (how
//! many steps, which [`LearningRate`], how often to validate, where checkpoints go and what they depend on) and call
//! [`train`]. The network keeps no position, no optimiser and no best weights of its own. Afterwards its parameters
//! are those of the best validation, and the [`TrainingSummary`] says how training went.
//!
//! In return, the harness promises:
//! - *The same seed gives the same bits, however often the training was stopped.* A checkpoint holds everything that the
//!   next step depends on. So a step may draw random numbers only from the seed and its [`Place`], and an epoch's order only
//!   from the seed and the epoch's number; nothing may be remembered from step to step outside of parameters and [`Sums`].
//! - *A kill at any moment* leaves the previous or the next checkpoint, never a partial one.
//!   Checkpoints are written every [`TrainingPlan::checkpoint_every`], when the user interrupts, and at the end;
//!   [`forget`] removes the one of a training whose result is safe.
//! - *A checkpoint of another training* (other settings, data or seed: [`CheckpointKey`]) is an error that names what
//!   differs. A damaged checkpoint, or one of another format, is discarded: training starts over and says so.
//! - *One training per folder*: the operating system locks it as long as the process lives.
//! - *Records come once*: a [`Metric`](crate::progress::Metric) goes to [`Progress::record`] after every epoch. A
//!   resumed training repeats its records from the first; a listener that has them ([`Curves`]) ignores them, and
//!   removes those of epochs that were lost.
//! - *When the time is up* the current epoch is cut short, validated and recorded as the last. In the checkpoint it
//!   stays unfinished, so with more time the training continues as if it had not been cut.
//!
//! This module knows tensors, the ranking of a validation split and the triples that a checkpoint depends on. It knows no
//! model, no reward and no file but those in the training's folder.
//!
//! [`Progress::record`]: crate::progress::Progress::record

mod checkpoint;
mod curves;
mod error;
mod harness;
mod learning_rate;
mod network;
mod plan;
#[cfg(test)]
mod tests;
mod validation;

pub use checkpoint::{Best, forget};
pub use curves::{Curves, Recording, read_curves};
pub use error::NetworkError;
pub use harness::{LastMinute, TrainingSummary, train};
pub use learning_rate::{Decay, LearningRate, Within};
pub use network::{EpochEnd, Look, Place, Sums, Trainable};
pub use plan::{CheckpointKey, TrainingPlan};
pub use validation::Validation;

use crate::eval::EvalError;
use crate::tensor::TensorError;
use std::path::PathBuf;

/// What can go wrong with a training, whatever the network.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A computation or a file of weights failed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The validation split could not be ranked.
    #[error("validation")]
    Validation(#[source] EvalError),
    /// A checkpoint belongs to another training.
    #[error("{}: {why}", path.display())]
    Checkpoint {
        /// The checkpoint.
        path: PathBuf,
        /// What differs, and the remedy.
        why: String,
    },
    /// Another process trains in the same folder.
    #[error("{}: another training is using this folder; wait for it, or train in another folder", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The loss or the gradient is not finite.
    #[error(
        "training diverged in epoch {epoch}: the {figure} is not a number; lower learning_rate or set clip"
    )]
    Diverged {
        /// Which epoch, from 1.
        epoch: usize,
        /// Which figure.
        figure: String,
    },
    /// The user interrupted the training; a checkpoint has the progress if there is a folder for one.
    #[error("interrupted in epoch {epoch}")]
    Interrupted {
        /// The epoch that was not finished, from 1.
        epoch: usize,
    },
}
