//! The rooms joined: the four stages as resumable steps in a run directory, and what can be asked of a run.
//!
//! A run directory ([`RunDirectory`]) belongs to one data set and is worked in by one process at a time. Every
//! stage reads what may be learnt from ([`Known`](crate::graph::Known), which has no test split) and leaves
//! whole files behind; [`Stages`] knows which of them still stand. This room prints nothing and learns nothing
//! itself.

pub mod answer;
mod ask;
mod budget;
mod checksum;
pub mod config;
mod directory;
mod embedding_table;
mod error;
mod joint;
mod learn;
mod lookup;
mod manifest;
mod many;
mod material;
pub mod memory;
pub mod metrics;
mod mirror;
mod opened;
pub mod page;
pub mod published;
mod reason;
pub mod reproduce;
mod run;
mod stage;
pub mod tables;
pub mod tensorboard;

pub use ask::{EmbeddingSaid, Example, Explanation, GroundedRule, Prediction};
pub use budget::Budget;
pub use checksum::Checksum;
pub use config::{Config, Layer, System};
pub use directory::{RunDirectory, write_whole};
pub use error::PipelineError;
pub use lookup::{Lookup, Naming};
pub use manifest::{Manifest, Source};
pub use material::{Learnable, Material};
pub use mirror::Mirror;
pub use opened::{Opened, Split};
pub use reason::{Blend, ByEmbedding, ByRules, ByWalker, Explains, Recipe, Voices, Weights};
pub use run::{Order, RunReport, Stage, StageSaid, run};
pub use stage::{Finished, StageRecord, Stages, Standing};
