//! How plausible is a triple? Embedding models, one file each, and the trainer they share.
//!
//! [`train`] makes an [`Embedding`] from what is [`Known`](crate::graph::Known); an `Embedding` answers queries
//! through [`Reasoner`](crate::eval::Reasoner), gives the walker its soft reward ([`Embedding::plausibility`]), and
//! is stored in safetensors files that carry the names of their entities and relations. [`Settings`] has all
//! settings; [`preset`] has tuned ones for the benchmark graphs, [`suited`] has defaults for others.
//!
//! A model turns a subject and a link into a query vector (`distmult`, `complex`, `conve`, `rotate`); everything
//! else, including the losses, is shared by all of them (`model`). Devices and gradients are left to the crate `tensor`,
//! ranking to `eval`, and epochs, checkpoints and the rest of training to `train`.

mod complex;
mod conve;
mod denied;
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
pub use preset::{LARGE, chosen, preset, presets, sampled, suited, unlike_complex};
pub use settings::{ImageDropout, LabelFloor, Loss, ModelKind, Schedule, Settings, TrainingExample};
pub use trainer::{Stop, Summary, Task, TrainedEmbedding, WarmEmbedding, learn, train};

use crate::train::NetworkError;
