//! Machine-readable learning curves: `metrics.jsonl`, one JSON object per line, written during training.
//!
//! Every line is a [`Metric`]: `stage`, `step`, `seconds`, and the stage's own figures. [`Curves`] keeps the contract
//! of [`Progress::record`]: a repeated record is not written twice, and records of epochs that a killed process lost
//! are replaced when those epochs are trained again. A line is written in one call; a partial line, left by a kill or
//! a full disk, is removed when the file is opened again.

use super::TrainError;
use crate::aside::write_aside;
use crate::progress::{Metric, Progress};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open file of learning curves.
pub struct Curves {
    path: PathBuf,
    file: File,
    lines: Vec<Line>,
}

struct Line {
    stage: String,
    step: u64,
    /// The line with its line break.
    text: String,
}

impl Line {
    fn of(metric: &Metric) -> Self {
        let mut line = Map::new();
        line.insert("stage".to_owned(), metric.stage.clone().into());
        line.insert("step".to_owned(), metric.step.into());
        line.insert("seconds".to_owned(), ((metric.seconds * 1000.0).round() / 1000.0).into());
        line.extend(metric.figures.clone());
        Line { stage: metric.stage.clone(), step: metric.step, text: format!("{}\n", Value::Object(line)) }
    }
}

impl Curves {
    /// Opens the file at `path` for appending and removes a partial last line.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, TrainError> {
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed(path))?;
        let mut curves = Self { path: path.to_owned(), file, lines: Vec::new() };
        let bytes = std::fs::read(path).map_err(failed(path))?;
        curves.lines =
            parse(&bytes).map(|(metric, text)| Line { text: text.to_owned(), ..Line::of(&metric) }).collect();
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            curves.file.set_len(whole as u64).map_err(failed(path))?;
        }
        Ok(curves)
    }

    /// Writes a record; returns whether it was new. A different record of the same stage and step replaces the old one
    /// and everything after it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&mut self, metric: &Metric) -> Result<bool, TrainError> {
        let line = Line::of(metric);
        let is_void = |old: &Line| old.stage == line.stage && old.step >= line.step;
        match self.lines.iter().find(|old| is_void(old)) {
            Some(old) if old.text == line.text => return Ok(false),
            Some(_) => {
                self.lines.retain(|old| !is_void(old));
                self.rewrite()?;
            }
            None => {}
        }
        self.file.write_all(line.text.as_bytes()).map_err(failed(&self.path))?;
        self.lines.push(line);
        Ok(true)
    }

    /// Removes all records of `stage` after `step`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget_after(&mut self, stage: &str, step: u64) -> Result<(), TrainError> {
        let before = self.lines.len();
        self.lines.retain(|line| line.stage != stage || line.step <= step);
        if self.lines.len() < before { self.rewrite() } else { Ok(()) }
    }

    /// Rewrites the file atomically.
    fn rewrite(&mut self) -> Result<(), TrainError> {
        let written = write_aside(&self.path, |out| {
            self.lines.iter().try_for_each(|line| out.write_all(line.text.as_bytes()))
        });
        written.map_err(failed(&self.path))?;
        self.file = OpenOptions::new().append(true).open(&self.path).map_err(failed(&self.path))?;
        Ok(())
    }
}

/// The complete lines of a file of learning curves; none if there is no file. Lines that are not metrics are skipped:
/// the file is for inspection only.
///
/// # Errors
/// If the file exists and cannot be read.
pub fn read_curves(path: &Path) -> Result<Vec<Metric>, TrainError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(parse(&bytes).map(|(metric, _)| metric).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(path)(error)),
    }
}

/// The metrics among the whole lines, with their text.
fn parse(bytes: &[u8]) -> impl Iterator<Item = (Metric, &str)> {
    bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")).filter_map(|line| {
        let text = std::str::from_utf8(line).ok()?;
        Some((serde_json::from_str(text).ok()?, text))
    })
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> TrainError + '_ {
    |source| TrainError::File { path: path.to_owned(), source }
}

/// A progress that also writes records to a file of learning curves.
pub struct Recording<'a> {
    inner: &'a dyn Progress,
    path: PathBuf,
    state: Mutex<Opened>,
}

/// The file is opened by the first record, because until then the training may find its folder locked.
enum Opened {
    NotYet,
    Open(Curves),
    Failed(TrainError),
}

impl<'a> Recording<'a> {
    /// Records into the file at `path`, and passes everything else on.
    pub fn new(path: &Path, inner: &'a dyn Progress) -> Self {
        Self { inner, path: path.to_owned(), state: Mutex::new(Opened::NotYet) }
    }

    /// The error that prevented a record from being written, if any.
    ///
    /// # Errors
    /// Returns that error.
    pub fn finish(self) -> Result<(), TrainError> {
        match self.state.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Opened::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Recording<'_> {
    fn begin(&self, stage: &str, unit: &str, total: Option<u64>) {
        self.inner.begin(stage, unit, total);
    }

    fn advance(&self, done: u64, figures: &dyn Display) {
        self.inner.advance(done, figures);
    }

    fn end(&self, summary: &dyn Display) {
        self.inner.end(summary);
    }

    fn record(&self, metric: &Metric) {
        self.inner.record(metric);
        let mut state = self.lock();
        let written = match &mut *state {
            Opened::Failed(_) => return,
            Opened::Open(curves) => curves.record(metric).map(drop),
            Opened::NotYet => Curves::open(&self.path).and_then(|mut curves| {
                curves.record(metric)?;
                *state = Opened::Open(curves);
                Ok(())
            }),
        };
        if let Err(error) = written {
            *state = Opened::Failed(error);
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

    fn metric(stage: &str, step: u64, loss: f64) -> Metric {
        let figures = Map::from_iter([("loss".to_owned(), Value::from(loss))]);
        Metric { stage: stage.to_owned(), step, seconds: step as f64 / 3.0, figures }
    }

    fn told(path: &Path) -> Vec<(String, u64, f64)> {
        let metrics = read_curves(path).unwrap().into_iter();
        metrics.map(|metric| (metric.stage, metric.step, metric.figures["loss"].as_f64().unwrap())).collect()
    }

    #[test]
    fn half_a_line_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        assert!(read_curves(&path).unwrap().is_empty());
        let mut curves = Curves::open(&path).unwrap();
        curves.record(&metric("walk", 1, 0.5)).unwrap();
        curves.file.write_all(b"{\"stage\":\"walk\",\"st").unwrap();
        assert_eq!(told(&path).len(), 1);
        let mut curves = Curves::open(&path).unwrap();
        assert!(!curves.record(&metric("walk", 1, 0.5)).unwrap());
        assert!(curves.record(&metric("walk", 2, 0.25)).unwrap());
        assert_eq!(told(&path), [("walk".to_owned(), 1, 0.5), ("walk".to_owned(), 2, 0.25)]);
    }

    #[test]
    fn what_is_told_again_is_not_repeated_and_what_was_lost_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut curves = Curves::open(&path).unwrap();
        for (stage, step) in [("embed", 1), ("embed", 2), ("walk", 1), ("walk", 2), ("walk", 3)] {
            curves.record(&metric(stage, step, 0.5)).unwrap();
        }
        let before = std::fs::read(&path).unwrap();
        // After a kill, the checkpoint has two epochs. They are recorded again; then the third is trained again and
        // takes longer.
        let mut curves = Curves::open(&path).unwrap();
        for step in [1, 2] {
            assert!(!curves.record(&metric("walk", step, 0.5)).unwrap());
        }
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert!(curves.record(&metric("walk", 3, 0.25)).unwrap());
        assert_eq!(told(&path)[3..], [("walk".to_owned(), 2, 0.5), ("walk".to_owned(), 3, 0.25)]);
        assert!(curves.record(&metric("embed", 1, 0.125)).unwrap(), "another training begins");
        assert!(curves.record(&metric("walk", 4, 0.125)).unwrap());
        let steps: Vec<(String, u64)> =
            told(&path).into_iter().map(|(stage, step, _)| (stage, step)).collect();
        let expected = [("walk", 1), ("walk", 2), ("walk", 3), ("embed", 1), ("walk", 4)];
        assert_eq!(steps, expected.map(|(stage, step)| (stage.to_owned(), step)));
        curves.forget_after("walk", 1).unwrap();
        assert_eq!(told(&path).len(), 2);
    }
}
