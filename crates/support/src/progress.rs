//! Progress reports and interruption of long work.
//!
//! The library prints nothing. A long job takes a `&dyn Progress`, reports what it is doing, and polls whether the user
//! wants to stop. Every module may use this one; it knows none of them.

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
    /// Seconds since the training began, over all invocations.
    pub seconds: f64,
    /// The figures, by name.
    #[serde(flatten)]
    pub figures: Map<String, Value>,
}

/// Work was abandoned because the user asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Receives the progress of a long job.
pub trait Progress: Sync {
    /// A stage begins. `total` is in `unit`s; `None` if it is unknown.
    fn begin(&self, stage: &str, unit: &str, total: Option<u64>);

    /// `done` units of the current stage are finished; `figures` is a short line of current figures.
    fn advance(&self, done: u64, figures: &dyn Display);

    /// The current stage is over; `summary` is a line that should stay on the screen.
    fn end(&self, summary: &dyn Display);

    /// A line that stays on the screen while a stage goes on.
    fn note(&self, _text: &dyn Display) {}

    /// A training has finished an epoch. A resumed training repeats its earlier records from the first epoch. A
    /// record replaces an earlier one of the same stage and step and invalidates all later ones.
    fn record(&self, _metric: &Metric) {}

    /// Whether the user asked to stop. A job that sees `true` keeps what it has and returns early.
    fn interrupted(&self) -> bool {
        false
    }

    /// How many seconds the current stage has left; `None` without a time budget.
    fn seconds_left(&self) -> Option<f64> {
        None
    }

    /// Whether the time budget of the current stage is spent. A training that sees `true` ends as if its epochs were
    /// over: it validates once more and keeps the best.
    fn time_is_up(&self) -> bool {
        false
    }
}

/// Shows nothing, but passes interruptions on: for work inside a stage that already has a progress display.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

/// Interrupts at once: for tests of what is kept then.
pub struct Impatient;

impl Progress for Impatient {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
    fn interrupted(&self) -> bool {
        true
    }
}

/// Interrupts after it has been polled a given number of times: for tests of what is kept then.
pub struct Countdown(std::sync::atomic::AtomicUsize);

impl Countdown {
    /// Interrupts when it is polled once more than `asks` times.
    pub fn from(asks: usize) -> Self {
        Self(asks.into())
    }
}

impl Progress for Countdown {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
    fn interrupted(&self) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

/// Shows nothing and never interrupts.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
}
