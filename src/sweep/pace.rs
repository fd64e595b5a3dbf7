//! The progress of several trials as one, and how far each of them may go.

use crate::progress::{Metric, Progress};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Receives the progress of all running trials.
pub(crate) struct Board<'a> {
    progress: &'a dyn Progress,
    /// Set after a failure that would affect every other trial too.
    halted: AtomicBool,
    state: Mutex<BoardState>,
}

#[derive(Default)]
struct BoardState {
    done: u64,
    best: Option<(usize, f64)>,
    running: BTreeMap<usize, String>,
}

impl<'a> Board<'a> {
    /// Reports to `progress`.
    pub(crate) fn new(progress: &'a dyn Progress) -> Self {
        Self { progress, halted: AtomicBool::new(false), state: Mutex::default() }
    }

    /// A rung with `total` trainings begins.
    pub(crate) fn begin(&self, title: &str, total: usize) {
        self.lock().done = 0;
        self.progress.begin(title, "trainings", Some(total as u64));
    }

    /// The rung is over.
    pub(crate) fn end(&self, summary: &dyn Display) {
        self.progress.end(summary);
    }

    /// The training of trial `number` is over, with this figure.
    pub(crate) fn finished(&self, number: usize, mrr: Option<f64>, line: &dyn Display) {
        let mut state = self.lock();
        state.running.remove(&number);
        state.done += 1;
        if let Some(mrr) = mrr.filter(|mrr| state.best.is_none_or(|(_, best)| *mrr > best)) {
            state.best = Some((number, mrr));
        }
        self.progress.note(line);
        self.show(&state);
    }

    /// Stops all trials.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::SeqCst);
    }

    /// Whether the user, or a failure, asked to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.halted.load(Ordering::SeqCst) || self.progress.interrupted()
    }

    fn say(&self, number: usize, line: String) {
        let mut state = self.lock();
        state.running.insert(number, line);
        self.show(&state);
    }

    fn show(&self, state: &BoardState) {
        let mut words: Vec<String> =
            state.best.iter().map(|(number, mrr)| format!("best MRR {mrr:.4} (trial {number})")).collect();
        words.extend(state.running.iter().map(|(number, line)| format!("{number}: {line}")));
        self.progress.advance(state.done, &words.join("; "));
    }

    fn lock(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The progress of one trial, which ends or pauses the training at its limit.
pub(crate) struct Paced<'a> {
    /// The board that shows it.
    pub board: &'a Board<'a>,
    /// The trial's number.
    pub number: usize,
    /// The stage whose validations are compared, by its name in the metrics.
    pub curve: &'a str,
    /// Pauses at the first validation after this many epochs.
    pub epochs: Option<usize>,
    /// When its time is up. Without `epochs` the training then ends with its best weights; with `epochs` it
    /// pauses.
    pub deadline: Option<Instant>,
    state: Mutex<PaceState>,
}

#[derive(Default)]
struct PaceState {
    stage: String,
    total: Option<u64>,
    reached: Reached,
    /// Whether it has reached its limit.
    closed: bool,
    /// Whether its time was up.
    late: bool,
}

/// How far a training got.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reached {
    /// Completed epochs.
    pub epochs: u64,
    /// The best MRR on the validation split.
    pub mrr: Option<f64>,
}

impl<'a> Paced<'a> {
    /// The progress of trial `number`, shown on `board`.
    pub(crate) fn new(
        board: &'a Board<'a>,
        number: usize,
        curve: &'a str,
        epochs: Option<usize>,
        deadline: Option<Instant>,
    ) -> Self {
        Self { board, number, curve, epochs, deadline, state: Mutex::default() }
    }

    /// How far it got.
    pub(crate) fn reached(&self) -> Reached {
        self.lock().reached
    }

    /// How far it got by the metrics that were recorded.
    pub(crate) fn reached_by(&self, metrics: &[Metric]) -> Reached {
        let own = || metrics.iter().filter(|metric| metric.stage == self.curve);
        let mrr = own().filter_map(|metric| metric.figures.get("valid_mrr")?.as_f64()).reduce(f64::max);
        Reached { epochs: own().map(|metric| metric.step).max().unwrap_or(0), mrr }
    }

    /// Whether its time was up before it finished.
    pub(crate) fn was_late(&self) -> bool {
        self.lock().late
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn lock(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Paced<'_> {
    fn begin(&self, stage: &str, _unit: &str, total: Option<u64>) {
        let mut state = self.lock();
        (state.stage, state.total) = (stage.to_owned(), total);
        self.board.say(self.number, stage.to_owned());
    }

    fn advance(&self, done: u64, figures: &dyn Display) {
        let state = self.lock();
        let share = state.total.filter(|total| *total > 0).map(|total| 100 * done / total);
        let share = share.map_or(String::new(), |share| format!(" {share} %"));
        self.board.say(self.number, format!("{}{share} {figures}", state.stage));
    }

    fn end(&self, _summary: &dyn Display) {}

    fn record(&self, metric: &Metric) {
        if metric.stage != self.curve {
            return;
        }
        let mut state = self.lock();
        // Training notices a pause only after another step. Metrics of that step come again after resuming,
        // so they are ignored here.
        if state.closed {
            return;
        }
        let mrr = metric.figures.get("valid_mrr").and_then(serde_json::Value::as_f64);
        state.reached.epochs = metric.step;
        if let Some(mrr) = mrr {
            state.reached.mrr = Some(state.reached.mrr.map_or(mrr, |best| best.max(mrr)));
            state.closed = self.epochs.is_some_and(|epochs| metric.step >= epochs as u64);
        }
    }

    fn interrupted(&self) -> bool {
        let mut state = self.lock();
        let late = self.epochs.is_some() && self.is_late();
        state.late |= late;
        state.closed || late || self.board.is_over()
    }

    fn time_is_up(&self) -> bool {
        let up = self.epochs.is_none() && self.is_late();
        self.lock().late |= up;
        up
    }
}
