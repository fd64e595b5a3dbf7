//! Which settings rank best? A search over a space of settings, by the validation split alone.
//!
//! A [`Sweep`] draws points of a [`Space`] ([`Search`]: grid, random, successive halving) and trains each of them in
//! its own run directory, several at a time. The [`SweepReport`] is the table: every trial with its settings and
//! figures, what mattered, and the best as a configuration.
//!
//! What it promises:
//! - *The test split cannot be read.* A search takes [`Tuning`], which has none; the file of the test split is not even
//!   opened.
//! - *Interruptions and kills do not change the table.* Points depend only on the seed and their number, trainings
//!   resume bit for bit from their checkpoints, and which half is stopped follows from figures on disk. Only time
//!   limits (`minutes`, rules mined by seconds) make a difference.
//! - *A failed trial is reported, and the others continue.*
//!
//! A stage that all trials have in common (rules, the embedding model behind a walker) runs once, with all threads, and
//! every trial reuses it. This module draws no page: that is `report`.

mod error;
mod manifest;
mod matters;
mod pace;
mod report;
mod search;
mod space;
// The file of the type `Sweep`.
#[allow(clippy::module_inception)]
mod sweep;
#[cfg(test)]
mod tests;
mod trial;
mod tuning;
mod work;

pub use error::SweepError;
pub use matters::{Mattered, ValueGroup};
pub use report::{BestTrial, SweepReport, TrialRow, TrialState};
pub use search::{Point, Points, Rung, Search};
pub use space::{Dimension, Domain, Space};
pub use sweep::{Sweep, Workers};
pub use trial::{FinishedTrial, RungFigure, TrialRecord};
pub use tuning::{Tuning, system};
