//! Progress that also follows the learning curves of a stage: every line that the stage writes about itself comes
//! into the run's `metrics.jsonl`, and as an event into TensorBoard's file where one is wanted.
//!
//! Stages keep their curves beside their checkpoints, in forms of their own; here they get one form. What a stage
//! takes back, because it goes on from a checkpoint, is taken back here too.

use super::metrics::{Metric, Metrics};
use super::tensorboard::EventFile;
use super::{RunDirectory, RunError, directory, metrics, tensorboard};
use crate::progress::Progress;
use serde_json::{Map, Value};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the curves are looked at while a stage works.
const EVERY: Duration = Duration::from_secs(2);

/// A progress that follows learning curves.
pub struct Mirror<'a> {
    inner: &'a dyn Progress,
    state: Mutex<State>,
}

struct State {
    metrics: Metrics,
    events: Option<EventFile>,
    /// The stage, as the run calls it.
    stage: String,
    source: Option<PathBuf>,
    copied: usize,
    looked: Instant,
    /// Whether the current stage has nothing to do and is not worth a word.
    idle: bool,
}

impl<'a> Mirror<'a> {
    /// Follows into the files of `directory`, for TensorBoard too if `events`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn new(directory: &RunDirectory, events: bool, inner: &'a dyn Progress) -> Result<Self, RunError> {
        let metrics = Metrics::open(&directory.file(directory::METRICS))?;
        let events = events.then(|| EventFile::create(&tensorboard::folder(directory))).transpose()?;
        let (stage, source, copied, looked, idle) = (String::new(), None, 0, Instant::now(), false);
        let state = Mutex::new(State { metrics, events, stage, source, copied, looked, idle });
        Ok(Self { inner, state })
    }

    /// From now on follows the curves in the file `source`, as those of `stage`.
    ///
    /// # Errors
    /// If what the run says about the stage cannot be taken back.
    pub fn follow(&self, stage: &str, source: PathBuf) -> Result<(), RunError> {
        let mut state = self.lock();
        state.metrics.rewind(stage, None)?;
        (state.stage, state.source, state.copied) = (stage.to_owned(), Some(source), 0);
        Ok(())
    }

    /// Takes over what the run at `from` has said about `stage`.
    ///
    /// # Errors
    /// If it cannot be read, or not be written here.
    pub fn take_over(&self, stage: &str, from: &Path) -> Result<(), RunError> {
        let mut state = self.lock();
        state.metrics.rewind(stage, None)?;
        let said = metrics::read(&from.join(directory::METRICS))?;
        said.iter().filter(|metric| metric.stage == stage).try_for_each(|metric| state.add(metric))
    }

    /// Copies what is still to be copied.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn catch_up(&self) -> Result<(), RunError> {
        self.lock().catch_up()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn catch_up(&mut self) -> Result<(), RunError> {
        self.looked = Instant::now();
        // A stage that has written nothing yet has no file.
        let Some(Ok(text)) = self.source.as_ref().map(std::fs::read_to_string) else { return Ok(()) };
        let curves = normalised(&text, &self.stage);
        curves.iter().skip(self.copied).try_for_each(|metric| self.add(metric))?;
        self.copied = self.copied.max(curves.len());
        Ok(())
    }

    fn add(&mut self, metric: &Metric) -> Result<(), RunError> {
        self.metrics.add(metric)?;
        self.events.as_mut().map_or(Ok(()), |events| events.add(metric))
    }
}

/// The lines of a stage in one form: `stage`, `step`, `seconds` since the stage began, plain numbers.
fn normalised(text: &str, stage: &str) -> Vec<Metric> {
    let mut so_far = 0.0;
    let mut metrics = Vec::new();
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let Ok(mut line) = serde_json::from_str::<Map<String, Value>>(line) else { continue };
        line.remove("stage");
        let seconds = line.remove("seconds").and_then(|seconds| seconds.as_f64()).unwrap_or(0.0);
        let (step, seconds) = match (line.remove("step"), line.remove("epoch")) {
            (Some(step), _) => (step, seconds),
            (None, epoch) => {
                // The walker tells the seconds of each epoch.
                so_far += seconds;
                (epoch.unwrap_or_default(), so_far)
            }
        };
        let valid = line.remove("valid");
        for (name, value) in valid.iter().filter_map(Value::as_object).flatten() {
            line.insert(format!("valid_{name}"), value.clone());
        }
        let step = step.as_u64().unwrap_or(metrics.len() as u64 + 1);
        metrics.push(Metric { stage: stage.to_owned(), step, seconds, figures: line });
    }
    metrics
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
        let mut state = self.lock();
        if state.looked.elapsed() >= EVERY {
            // A failure shows itself when the stage ends and catches up for good.
            let _ = state.catch_up();
        }
    }

    fn end(&self, summary: &dyn Display) {
        if !self.lock().idle {
            self.inner.end(summary);
        }
    }

    fn interrupted(&self) -> bool {
        self.inner.interrupted()
    }

    fn time_is_up(&self) -> bool {
        self.inner.time_is_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    const WALKED: &str = "{\"stage\":\"joint\",\"epoch\":1,\"reward\":0.1,\"seconds\":3.0,\"valid\":{\"mrr\":0.4}}\n\
        {\"stage\":\"joint\",\"epoch\":2,\"reward\":0.2,\"seconds\":4.0}\n{\"stage\":\"jo";

    #[test]
    fn the_curves_of_every_stage_get_one_form() {
        let joint = normalised(WALKED, "training");
        assert_eq!(joint.len(), 2);
        assert_eq!((joint[1].step, joint[1].seconds), (2, 7.0));
        assert_eq!(joint[0].figures["valid_mrr"], 0.4);
        let line = "{\"stage\":\"embed\",\"step\":9,\"seconds\":1.5,\"loss\":0.25,\"valid_mrr\":0.3}\n";
        let embedded = normalised(line, "embeddings");
        assert_eq!((embedded[0].step, embedded[0].seconds), (9, 1.5));
        assert_eq!(embedded[0].figures["loss"], 0.25);
    }

    #[test]
    fn lines_come_once_even_when_a_stage_begins_again() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::work_in(folder.path()).unwrap();
        let source = folder.path().join("curves.jsonl");
        std::fs::write(&source, WALKED).unwrap();
        let mirror = Mirror::new(&directory, true, &Silent).unwrap();
        for _ in 0..2 {
            mirror.follow("training", source.clone()).unwrap();
            mirror.catch_up().unwrap();
            mirror.catch_up().unwrap();
        }
        assert_eq!(metrics::read(&directory.file(directory::METRICS)).unwrap().len(), 2);
        assert_eq!(std::fs::read_dir(tensorboard::folder(&directory)).unwrap().count(), 1);
        // Another run that takes the stage over has them too, once.
        let other = tempfile::tempdir().unwrap();
        let heir = RunDirectory::work_in(other.path()).unwrap();
        let mirror = Mirror::new(&heir, false, &Silent).unwrap();
        for _ in 0..2 {
            mirror.take_over("training", folder.path()).unwrap();
            mirror.take_over("rules", folder.path()).unwrap();
        }
        let [ours, theirs] =
            [&directory, &heir].map(|run| metrics::read(&run.file(directory::METRICS)).unwrap());
        assert_eq!(ours, theirs);
    }
}
