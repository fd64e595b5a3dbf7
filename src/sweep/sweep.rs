//! The search itself: its specification and its run.

use super::pace::Board;
use super::report::SweepReport;
use super::search::{Point, Points, Rung, Search};
use super::space::Space;
use super::trial::{Leash, Trial, TrialRecord, compared_stage, epochs, next_rung, records};
use super::work::Work;
use super::{SweepError, Tuning};
use crate::config::Config;
use crate::progress::Progress;
use crate::run::member::EMBEDDINGS;
use crate::run::{RunError, write_whole};
use crate::tensor::{Device, DeviceChoice};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The folder of the trials.
pub(crate) const TRIALS: &str = "trials";
/// The best trial as a configuration.
pub(crate) const BEST: &str = "best.toml";
/// The table, as JSON and as text; the text has no times and is the same for the same search.
const TABLE: [&str; 2] = ["trials.json", "trials.tsv"];
/// The resources that trials are trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// How many trials are trained at a time.
    pub at_once: usize,
    /// The threads that they share.
    pub threads: usize,
    /// The device. Each training has a stream of its own on a GPU.
    pub device: DeviceChoice,
}

/// A search for settings.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The data to learn from and to choose by.
    pub data: Tuning,
    /// The name of the configuration.
    pub system: String,
    /// The base configuration, which the searched settings override.
    pub base: Config,
    /// Where to search.
    pub space: Space,
    /// How to search.
    pub search: Search,
    /// The most points to try.
    pub trials: usize,
    /// How long all trials together may take; without it, there is no limit.
    pub minutes: Option<f64>,
    /// The seed of the points and of every trial.
    pub seed: u64,
    /// The resources that trials are trained with.
    pub workers: Workers,
    /// The folder of the search. An earlier search there resumes.
    pub out: PathBuf,
}

impl Sweep {
    /// Searches, or resumes an earlier search, and returns the table of all trials. If the user interrupts, the table
    /// says so and everything is kept.
    ///
    /// # Errors
    /// If the search is invalid, the folder belongs to another one or cannot be used, or every trial failed.
    pub fn run(&self, progress: &dyn Progress) -> Result<SweepReport, SweepError> {
        let (drawn, trials) = self.drawn()?;
        let rungs = self.rungs(trials.len())?;
        let _lock = self.begin()?;
        let work = Work::new(self, trials, rungs, progress)?;
        let report =
            |work: &Work<'_>| SweepReport::new(self, &drawn, &work.trials, &work.records(), &work.rungs);
        work.all(progress, &|work: &Work<'_>| report(work).write(&self.out, TABLE))?;
        let report = report(&work);
        report.write(&self.out, TABLE)?;
        report.expect_some()?;
        if let Some(text) = report.best_config(self)? {
            write_whole(&self.out.join(BEST), |out| out.write_all(text.as_bytes()))?;
        }
        Ok(report)
    }

    /// Trains a single trial, counted from 1, in its folder: for distributing trials over machines with a shared disk.
    /// [`run`](Self::run) then finds it finished. With halving, each call trains one rung. A trial that is finished, was
    /// stopped, or has to wait until others complete the rung, is returned as it is.
    ///
    /// # Errors
    /// If there is no such trial, the folder belongs to another search or cannot be used, or the user interrupts.
    pub fn train(&self, number: usize, progress: &dyn Progress) -> Result<TrialRecord, SweepError> {
        let (_, trials) = self.drawn()?;
        let Some(trial) = number.checked_sub(1).and_then(|at| trials.get(at)) else {
            let message = format!("there is no trial {number}; this search has 1 to {}", trials.len());
            return Err(SweepError::Cannot(message));
        };
        let rungs = self.rungs(trials.len())?;
        self.claim()?;
        let mut records = records(&trials)?;
        let Some(rung) = next_rung(trial, &trials, &rungs, &records) else {
            return Ok(records.remove(&number).unwrap_or_default());
        };
        let device = Device::choose(self.workers.device, self.workers.threads).map_err(RunError::from)?;
        let seconds = self.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes));
        let deadline = seconds.map(|seconds| Instant::now() + seconds);
        let leash = Leash { rung: rungs[rung], deadline };
        let board = Board::new(progress);
        board.begin(&format!("trial {number}"), 1);
        let record = trial.go_on(self, leash, &device, &board)?.ok_or(RunError::Interrupted)?;
        board.end(&record.standing());
        Ok(record)
    }

    /// The points of the search, and the trials at them.
    fn drawn(&self) -> Result<(Points, Vec<Trial>), SweepError> {
        let drawn = Points::of(&self.space, self.search, self.trials, self.seed, &self.base);
        if drawn.points.is_empty() {
            let message = format!(
                "{}: no point of this space is a valid configuration of {}; change the values in the space",
                self.space.name, self.system
            );
            return Err(SweepError::Cannot(message));
        }
        let trial = |(at, point): (usize, &Point)| Trial {
            number: at + 1,
            point: point.clone(),
            folder: self.out.join(TRIALS).join(format!("{:04}", at + 1)),
        };
        let trials = drawn.points.iter().enumerate().map(trial).collect();
        Ok((drawn, trials))
    }

    fn rungs(&self, trials: usize) -> Result<Vec<Rung>, SweepError> {
        let validations = match epochs(&self.base) {
            Some((epochs, every)) => epochs / every.max(1),
            None => 0,
        };
        let rungs = Rung::of(self.search, trials, validations);
        if self.search == Search::Halving && rungs.len() < 2 {
            let why = match compared_stage(&self.base) {
                None => "rules are not trained in epochs".to_owned(),
                Some(_) if trials < 2 => "a single trial has no worse half".to_owned(),
                Some(stage) => format!(
                    "the {} is validated {validations} times; more epochs, or more validations, are needed",
                    if stage.name() == EMBEDDINGS { "embedding model" } else { stage.name() }
                ),
            };
            return Err(SweepError::Cannot(format!("halving stops the worse half early, but {why}")));
        }
        Ok(rungs)
    }
}
