//! A run directory: the stages as resumable steps, and the files they leave.
//!
//! A run directory ([`RunDirectory`]) belongs to one data set and is worked in by one process at a time. Every stage
//! reads the learnable data ([`Known`](crate::graph::Known), which has no test split) and writes complete files;
//! [`Stages`] knows which of them are still valid. This module answers nothing: that is `ask`.

mod artifacts;
mod checksum;
pub mod directory;
mod embedding;
mod error;
mod everything;
mod inputs;
mod manifest;
mod material;
pub mod member;
mod member_report;
mod mining;
mod mirror;
mod record;
// The file of the function `run`.
#[allow(clippy::module_inception)]
mod run;
mod seal;
pub mod tensorboard;
mod update;

pub use artifacts::Artifacts;
pub use checksum::Checksum;
pub use directory::{RunDirectory, settings_of, write_whole};
pub use embedding::{EmbedReport, EmbedSource, EmbedSpec, embed};
pub use error::RunError;
pub use everything::{everything_of, learn_everything};
pub use manifest::{Manifest, Source};
pub use material::{Learnable, Material};
pub(crate) use member_report::halved;
pub use member_report::{Added, BestEpoch, MemberReport};
pub use mining::Mining;
pub use mirror::{Mirror, recorded};
pub use record::{Finished, StageRecord, Stages, Standing};
pub use run::{FirstRun, Learnt, RunSpec, StageReport, learn};
pub use seal::{sealed, unsealed};
pub use update::{DataChanges, EarlierRun, RuleChange, RuleChanges, Warm};
