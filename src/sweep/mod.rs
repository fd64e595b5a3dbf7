//! Which settings rank best? A search over a space of settings, by the validation split alone.
//!
//! A [`Sweep`] draws points of a [`Space`] ([`Search`]: grid, random, successive halving) and learns each of them as a run
//! directory of its own, several at a time. The [`SweepReport`] is the table: every trial with its settings and figures, what
//! mattered, and the best as a configuration.
//!
//! What it promises:
//! - *The test split cannot be read.* A search takes [`Tuning`], in which there is none; its file is not even opened.
//! - *Interrupted, killed or not, the same table.* Points depend on the seed and their number alone, trainings resume from
//!   their checkpoints with the same bits, and which half is stopped follows from figures that are on the disk.
//!   Only time limits (`minutes`, rules mined by seconds) make a difference.
//! - *A trial that fails is told, and the others go on.*
//!
//! A stage that all trials have in common (rules, the embedding model behind a walker) is done once, with all threads, and
//! taken over by every trial. This room draws no page: that is `report`.

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
