//! Learning curves for machines: `metrics.jsonl`, one JSON object a line, written as training goes.
//!
//! Every line has `stage`, `step` (an epoch or a batch, whatever the stage counts), `seconds` (since the stage
//! began, all sittings together) and the stage's own figures. A line is written in one go; half a line, left by
//! a kill or a full disk, is taken away when the file is opened again.

use super::RunError;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// One line of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Which stage.
    pub stage: String,
    /// Which epoch or batch of it.
    pub step: u64,
    /// Seconds since the stage began, all sittings together.
    pub seconds: f64,
    /// The stage's figures, by name.
    pub figures: Map<String, Value>,
}

/// The open file.
pub struct Metrics {
    path: PathBuf,
    file: File,
}

impl Metrics {
    /// Opens the file at `path` to add to it, without the half line it may end in.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let io = |error| RunError::writing(path)(error);
        let mut file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path).map_err(io)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, metric: &Metric) -> Result<(), RunError> {
        let mut line = Map::new();
        line.insert("stage".to_owned(), metric.stage.clone().into());
        line.insert("step".to_owned(), metric.step.into());
        line.insert("seconds".to_owned(), ((metric.seconds * 1000.0).round() / 1000.0).into());
        line.extend(metric.figures.clone());
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(RunError::writing(&self.path))
    }

    /// Takes back what a stage said after `step`: it goes on from a checkpoint made there. Returns the seconds it
    /// had taken by then.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn rewind(&mut self, stage: &str, step: Option<u64>) -> Result<f64, RunError> {
        let lines = read(&self.path)?;
        let stays = |metric: &Metric| metric.stage != stage || step.is_some_and(|step| metric.step <= step);
        let kept: Vec<&Metric> = lines.iter().filter(|metric| stays(metric)).collect();
        let seconds = kept.iter().filter(|metric| metric.stage == stage).map(|metric| metric.seconds);
        let seconds = seconds.fold(0.0, f64::max);
        if kept.len() < lines.len() {
            let io = |error| RunError::writing(&self.path)(error);
            self.file.set_len(0).map_err(io)?;
            self.file.seek(SeekFrom::Start(0)).map_err(io)?;
            for metric in kept {
                self.add(metric)?;
            }
        }
        Ok(seconds)
    }
}

/// The whole lines of a metrics file; none where there is no file. Lines that are no metrics are passed over: the
/// file is for looking at, nothing is learnt from it.
///
/// # Errors
/// If the file is there and cannot be read.
pub fn read(path: &Path) -> Result<Vec<Metric>, RunError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RunError::reading(path)(error)),
    };
    Ok(String::from_utf8_lossy(&bytes).split_inclusive('\n').filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Metric> {
    let mut figures: Map<String, Value> = serde_json::from_str(line.strip_suffix('\n')?).ok()?;
    let stage = figures.remove("stage")?.as_str()?.to_owned();
    let step = figures.remove("step")?.as_u64()?;
    let seconds = figures.remove("seconds")?.as_f64()?;
    Some(Metric { stage, step, seconds, figures })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(stage: &str, step: u64) -> Metric {
        let figures = Map::from_iter([("loss".to_owned(), Value::from(0.5))]);
        Metric { stage: stage.to_owned(), step, seconds: step as f64 * 2.0, figures }
    }

    #[test]
    fn half_a_line_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut metrics = Metrics::open(&path).unwrap();
        metrics.add(&metric("walk", 1)).unwrap();
        metrics.file.write_all(b"{\"stage\":\"walk\",\"st").unwrap();
        assert_eq!(read(&path).unwrap(), [metric("walk", 1)]);
        let mut metrics = Metrics::open(&path).unwrap();
        metrics.add(&metric("walk", 2)).unwrap();
        assert_eq!(read(&path).unwrap(), [metric("walk", 1), metric("walk", 2)]);
    }

    #[test]
    fn a_stage_that_goes_on_from_a_checkpoint_says_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut metrics = Metrics::open(&path).unwrap();
        for (stage, step) in [("embed", 1), ("embed", 2), ("walk", 1), ("walk", 2), ("walk", 3)] {
            metrics.add(&metric(stage, step)).unwrap();
        }
        assert_eq!(metrics.rewind("walk", Some(2)).unwrap(), 4.0);
        metrics.add(&metric("walk", 3)).unwrap();
        let steps: Vec<(String, u64)> = read(&path).unwrap().into_iter().map(|m| (m.stage, m.step)).collect();
        let expected = [("embed", 1), ("embed", 2), ("walk", 1), ("walk", 2), ("walk", 3)];
        assert_eq!(steps, expected.map(|(stage, step)| (stage.to_owned(), step)));
        assert_eq!(metrics.rewind("embed", None).unwrap(), 0.0);
        assert_eq!(read(&path).unwrap().len(), 3);
    }
}
