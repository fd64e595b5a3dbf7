//! Which answers fit a graph that nothing was trained on? A propagator that knows no relation by name.
//!
//! The [propagator](crate::propagate) has weights for every relation, so it must be trained on the graph that it
//! answers over. A *universal* one computes the vectors of relations from the graph itself: from how relations share
//! entities and pairs ([`RelationGraph`]). One set of weights then answers over any graph with any relations, as ULTRA
//! does (Galkin et al., *Towards foundation models for knowledge graph reasoning*, 2024); the confidences of rules of
//! length one are kinds of edges between relations here.
//!
//! - [`Universal`] is a set of weights: [`Universal::shipped`] are those that come with the program,
//!   [`Universal::load`] takes others. [`UniversalReasoner`] is a set of weights over a graph; it answers as a
//!   [`Reasoner`](crate::eval::Reasoner).
//! - [`pretrain()`] makes weights from several graphs and says how well they answer over others.
//!
//! Gradients, devices and the edge index are left to `tensor`, ranking to `eval`.

mod network;
mod pretrain;
mod reasoner;
mod relations;
mod settings;
#[cfg(test)]
mod tests;
mod weights;

pub use pretrain::{
    GraphFigures, GraphOverlap, InventedGraphs, Overlap, PretrainReport, PretrainSettings, PretrainTask,
    RankedGraph, RankedSplit, TrainingGraph, Variety, overlap, pretrain,
};
pub use reasoner::UniversalReasoner;
pub use relations::{LinkMatrix, RelationGraph, neighbours};
pub use settings::UniversalSettings;
pub use weights::{StoredPrecision, Universal};

use crate::eval::EvalError;
use crate::graph::GraphError;
use crate::tensor::TensorError;
use std::path::PathBuf;

/// What can go wrong with a universal propagator.
#[derive(Debug, thiserror::Error)]
pub enum UniversalError {
    /// A setting is out of range.
    #[error(transparent)]
    Value(#[from] crate::settings::WrongValue),
    /// A computation or a file of weights failed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A weight file is not one of a universal propagator.
    #[error("{}: {why}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        why: String,
    },
    /// A graph could not be read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A graph could not be ranked.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// The settings of a pre-training are wrong.
    #[error("{}: {why}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Which setting, and what is wrong with it.
        why: String,
    },
    /// A file could not be read.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is nothing to train on.
    #[error("`train`: expected at least one graph, found none")]
    NothingToTrainOn,
    /// No fact of a graph can be asked for.
    #[error("{graph}: too few facts to train on; once some are left out, nothing is known of their entities")]
    NothingToAsk {
        /// Its name.
        graph: String,
    },
    /// A checkpoint has no place.
    #[error("a training cannot be resumed without the file that its weights are written to; set --out")]
    NoOut,
    /// The loss is not finite.
    #[error("training diverged at step {step}: the loss is not a number; lower learning_rate")]
    Diverged {
        /// Which step.
        step: u64,
    },
}
