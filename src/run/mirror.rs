//! A [`Progress`] that also records training metrics: in the run's `metrics.jsonl`, and in a TensorBoard event file if
//! requested.

use super::directory::METRICS;
use super::tensorboard::{self, EventFile};
use super::{RunDirectory, RunError};
use crate::progress::{Metric, Progress};
use crate::train::{Curves, read_curves};
use std::fmt::Display;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A [`Progress`] that records training metrics.
pub struct Mirror<'a> {
    inner: &'a dyn Progress,
    state: Mutex<State>,
}

struct State {
    curves: Curves,
    events: Option<EventFile>,
    /// The first error in writing a record.
    failure: Option<RunError>,
    /// The member that is trained: its curves are recorded under its name, whatever the trainer calls itself.
    member: Option<&'static str>,
    /// Whether the current stage has nothing to do and is not shown.
    idle: bool,
}

impl<'a> Mirror<'a> {
    /// Writes into the files of `directory`, for TensorBoard too if `events`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn new(directory: &RunDirectory, events: bool, inner: &'a dyn Progress) -> Result<Self, RunError> {
        let curves = Curves::open(&directory.file(METRICS))?;
        let events = events.then(|| EventFile::create(&tensorboard::folder(directory))).transpose()?;
        Ok(Self {
            inner,
            state: Mutex::new(State { curves, events, failure: None, member: None, idle: false }),
        })
    }

    /// What is recorded from now on belongs to the member called `name`.
    pub fn begin_member(&self, name: &'static str) {
        self.lock().member = Some(name);
    }

    /// Copies the records of `stage` from the run at `from`.
    ///
    /// # Errors
    /// If it cannot be read, or not be written here.
    pub fn take_over(&self, stage: &str, from: &Path) -> Result<(), RunError> {
        let mut state = self.lock();
        let mut last = 0;
        for metric in read_curves(&from.join(METRICS))?.iter().filter(|metric| metric.stage == stage) {
            state.record(metric)?;
            last = metric.step;
        }
        Ok(state.curves.forget_after(stage, last)?)
    }

    /// Checks that all records were written.
    ///
    /// # Errors
    /// The first error in writing a record.
    pub fn check(&self) -> Result<(), RunError> {
        self.lock().failure.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The training metrics of a run.
///
/// # Errors
/// If it cannot be read.
pub fn recorded(directory: &RunDirectory) -> Result<Vec<Metric>, RunError> {
    Ok(read_curves(&directory.file(METRICS))?)
}

impl State {
    fn record(&mut self, metric: &Metric) -> Result<(), RunError> {
        // Repeated records are already in the event file of an earlier invocation.
        if !self.curves.record(metric)? {
            return Ok(());
        }
        self.events.as_mut().map_or(Ok(()), |events| events.add(metric))
    }
}

impl Progress for Mirror<'_> {
    fn begin(&self, stage: &str, unit: &str, total: Option<u64>) {
        let idle = total == Some(0);
        self.lock().idle = idle;
        if !idle {
            self.inner.begin(stage, unit, total);
        }
    }

    fn advance(&self, done: u64, figures: &dyn Display) {
        self.inner.advance(done, figures);
    }

    fn end(&self, summary: &dyn Display) {
        if !self.lock().idle {
            self.inner.end(summary);
        }
    }

    fn record(&self, metric: &Metric) {
        let mut state = self.lock();
        let stage = state.member.map_or_else(|| metric.stage.clone(), str::to_owned);
        let metric = &Metric { stage, ..metric.clone() };
        self.inner.record(metric);
        if let Err(error) = state.record(metric) {
            state.failure.get_or_insert(error);
        }
    }

    fn interrupted(&self) -> bool {
        self.inner.interrupted()
    }

    fn seconds_left(&self) -> Option<f64> {
        self.inner.seconds_left()
    }

    fn time_is_up(&self) -> bool {
        self.inner.time_is_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use serde_json::{Map, Value};

    fn metric(step: u64, loss: f64) -> Metric {
        let figures = Map::from_iter([("loss".to_owned(), Value::from(loss))]);
        Metric { stage: "training".to_owned(), step, seconds: 1.5, figures }
    }

    #[test]
    fn records_come_once_to_the_run_and_to_tensorboard() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::work_in(folder.path()).unwrap();
        let mirror = Mirror::new(&directory, true, &Silent).unwrap();
        let events = || -> u64 {
            let files = std::fs::read_dir(tensorboard::folder(&directory)).unwrap();
            files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
        };
        for step in [1, 2, 3] {
            mirror.record(&metric(step, 0.5));
        }
        let before = events();
        for step in [1, 2] {
            mirror.record(&metric(step, 0.5));
        }
        assert_eq!(events(), before, "what is told again is no event");
        mirror.record(&metric(3, 0.25));
        assert!(events() > before);
        mirror.check().unwrap();
        let told = read_curves(&directory.file(METRICS)).unwrap();
        assert_eq!(told, [metric(1, 0.5), metric(2, 0.5), metric(3, 0.25)]);
        // A run that takes the stage over has its records too, once, and no others.
        let other = tempfile::tempdir().unwrap();
        let heir = RunDirectory::work_in(other.path()).unwrap();
        let mirror = Mirror::new(&heir, false, &Silent).unwrap();
        mirror.record(&metric(9, 0.125));
        for _ in 0..2 {
            mirror.take_over("training", folder.path()).unwrap();
            mirror.take_over("rules", folder.path()).unwrap();
        }
        assert_eq!(read_curves(&heir.file(METRICS)).unwrap(), told);
    }

    #[test]
    fn a_record_that_cannot_be_written_is_not_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::work_in(folder.path()).unwrap();
        let mirror = Mirror::new(&directory, false, &Silent).unwrap();
        mirror.record(&metric(1, 0.5));
        // A folder in place of the file, so that it cannot be written.
        std::fs::remove_file(directory.file(METRICS)).unwrap();
        std::fs::create_dir(directory.file(METRICS)).unwrap();
        mirror.record(&metric(1, 0.25));
        assert!(mirror.check().unwrap_err().to_string().contains("metrics.jsonl"));
        mirror.check().unwrap();
    }
}
