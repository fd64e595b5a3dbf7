//! Which system's paths do people find better? The paper's human evaluation, blind and with its statistics.
//!
//! A [`Study`] is drawn from the validation split: facts for which several [`Contender`]s have a path, as pairs of
//! paths. Every judge sees the pairs in an order of their own, left and right by a random secret ([`screens`]), and leaves
//! [`Vote`]s; [`Judgement`] is the result of the votes, and [`measure()`] has the measures that need no judges.
//!
//! This module decides what is shown and what is counted. Storing votes and serving pages to judges is left to `cli`:
//! only that needs a database and a server, and users of the library should not have to build them.

mod blind;
mod contender;
mod judgement;
mod measure;
mod statistics;
mod study;

pub use blind::{Screen, Secret, screens};
pub use contender::Contender;
pub use judgement::{
    Agreement, Choice, Favoured, JudgeSummary, Judgement, PairJudgement, Ratio, Seconds, Vote,
};
pub use measure::{PathMeasures, measure};
pub use statistics::{bootstrap, fleiss_kappa, krippendorff_alpha, wilson};
pub use study::{DrawOptions, LabelledEntity, Study, StudyItem, StudyPair, draw};

use crate::ask::AskError;
use std::path::PathBuf;

/// What can go wrong with a study.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// A run, or a question to it.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Systems that cannot be compared.
    #[error("{0}")]
    Systems(String),
    /// A run over other data than the first.
    #[error("{}: was not learnt from the same data as {}; a study compares systems on the same facts", path.display(), first.display())]
    OtherData {
        /// The run.
        path: PathBuf,
        /// The first run.
        first: PathBuf,
    },
    /// A file of foreign predictions cannot be read.
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line of such a file is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong there.
        message: String,
    },
}

impl JudgeError {
    /// Whether the user stopped it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, JudgeError::Ask(error) if error.is_interrupted())
    }
}
