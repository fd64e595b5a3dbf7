//! How long work reports itself and learns that it should stop.
//!
//! The library prints nothing. A long job takes a `&dyn Progress`, tells it what it is doing, and asks it
//! now and then whether the user has had enough. Every room may use this module; it knows none of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Display;

/// One point of a learning curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Which training.
    pub stage: String,
    /// Which epoch of it, from 1.
    pub step: u64,
    /// Seconds since the training began, all sittings together.
    pub seconds: f64,
    /// The figures, by name.
    #[serde(flatten)]
    pub figures: Map<String, Value>,
}

/// What a long job tells the one who waits for it.
pub trait Progress: Sync {
    /// A stage begins. `total` counts in `unit`s and is `None` where the end cannot be known.
    fn begin(&self, stage: &str, unit: &str, total: Option<u64>);

    /// `done` units of the current stage are behind us; `figures` is a short line of current figures.
    fn advance(&self, done: u64, figures: &dyn Display);

    /// The current stage is over; `summary` is worth keeping on the screen.
    fn end(&self, summary: &dyn Display);

    /// A training has finished an epoch. One that goes on from a checkpoint tells what it has recorded before again, from
    /// the first epoch; a record takes the place of an earlier one of the same stage and step, and all after that one are
    /// void.
    fn record(&self, _metric: &Metric) {}

    /// Whether the user asked to stop. A job that sees `true` keeps what it has and returns early.
    fn interrupted(&self) -> bool {
        false
    }

    /// Whether the time that was set aside for the current stage is spent. A training that sees `true` ends as if
    /// its epochs were over: it looks at the validation split once more and keeps the best.
    fn time_is_up(&self) -> bool {
        false
    }
}

/// Shows nothing, but passes on the wish to stop: for work within a stage that is shown.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

/// Someone who stops everything at once.
#[cfg(test)]
pub(crate) struct Impatient;

#[cfg(test)]
impl Progress for Impatient {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
    fn interrupted(&self) -> bool {
        true
    }
}

/// Nobody is watching and nobody will interrupt.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
}
