//! The table of a search: as JSON, as text, and the best as a configuration.

use super::matters::{Mattered, mattered};
use super::search::{Point, Points, Rung, Search};
use super::space::Space;
use super::trial::{RungFigure, Trial, TrialRecord, as_json, best_first};
use super::{Sweep, SweepError};
use crate::eval::Figures;
use crate::run::write_whole;
use crate::shown::Shown;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// The state of a trial; the table is sorted in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrialState {
    /// It was trained to the end.
    Finished,
    /// It was stopped early: others were better.
    Stopped,
    /// It is not finished yet.
    Open,
    /// It failed.
    Failed,
}

impl TrialState {
    /// The name in files and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            TrialState::Finished => "finished",
            TrialState::Stopped => "stopped",
            TrialState::Failed => "failed",
            TrialState::Open => "open",
        }
    }
}

/// A trial in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRow {
    /// Its number, from 1.
    pub trial: usize,
    /// What became of it.
    pub state: TrialState,
    /// The MRR on the validation split: of the finished system, or for a stopped trial the best during training.
    pub mrr: Option<f64>,
    /// All figures on the validation split, if it was trained to the end.
    pub valid: Option<Figures>,
    /// Epochs trained.
    pub epochs: Option<u64>,
    /// Its epochs and MRR at the end of every rung.
    pub rungs: Vec<RungFigure>,
    /// Whether its time was up before its epochs were over.
    pub out_of_time: bool,
    /// Seconds.
    pub seconds: f64,
    /// Why it failed.
    pub error: Option<String>,
    /// The settings that were drawn for it.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Its run directory.
    pub run: PathBuf,
    #[serde(skip)]
    pub(crate) point: Point,
}

/// The best trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestTrial {
    /// Its number.
    pub trial: usize,
    /// Its MRR on the validation split.
    pub mrr: f64,
    /// The file with its configuration.
    pub config: PathBuf,
    /// The settings that were drawn for it.
    pub settings: BTreeMap<String, serde_json::Value>,
}

/// The outcome of a search. As JSON the names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepReport {
    /// The data set.
    pub dataset: String,
    /// The system.
    pub system: String,
    /// The space.
    pub space: String,
    /// How it was searched.
    pub search: Search,
    /// The seed.
    pub seed: u64,
    /// The version of the program.
    pub version: String,
    /// The folder.
    pub out: PathBuf,
    /// Whether every trial is finished or was stopped.
    pub complete: bool,
    /// How many points the grid has in all.
    pub grid: Option<u128>,
    /// Points that were left out because their settings are incompatible.
    pub unfit: usize,
    /// The fraction of the epochs after which the worse half is stopped, for each rung.
    pub rungs: Vec<f64>,
    /// The best of the trials that were trained to the end.
    pub best: Option<BestTrial>,
    /// Which settings mattered, the most important first, by the MRR of every trial at the end of the first rung.
    pub mattered: Vec<Mattered>,
    /// All trials, the best first.
    pub trials: Vec<TrialRow>,
    #[serde(skip)]
    pub(crate) searched: Space,
}

impl SweepReport {
    /// The table of a search.
    pub(super) fn new(
        sweep: &Sweep,
        drawn: &Points,
        trials: &[Trial],
        records: &BTreeMap<usize, TrialRecord>,
        rungs: &[Rung],
    ) -> Self {
        let none = TrialRecord::default();
        let record = |trial: &Trial| records.get(&trial.number).unwrap_or(&none);
        let last = rungs.len() - 1;
        let mut rows: Vec<TrialRow> = trials.iter().map(|trial| row(trial, record(trial))).collect();
        let stopped = stopped(trials, records, rungs);
        for row in rows.iter_mut().filter(|row| row.state == TrialState::Open) {
            if stopped.contains(&row.trial) {
                row.state = TrialState::Stopped;
            }
        }
        // Trials that got further come first, then by MRR; a trial may finish in any rung.
        rows.sort_by(|a, b| {
            let short_of = |row: &TrialRow| match row.state {
                TrialState::Finished => 0,
                _ => rungs.len().saturating_sub(row.rungs.len()),
            };
            let came = |row: &TrialRow| (row.state as usize, short_of(row));
            let mrr = |row: &TrialRow| row.mrr.unwrap_or(-1.0);
            came(a).cmp(&came(b)).then(mrr(b).total_cmp(&mrr(a))).then(a.trial.cmp(&b.trial))
        });
        let figures: Vec<(&Point, f64)> = trials
            .iter()
            .filter_map(|trial| {
                let record = record(trial);
                let end = record.finished.as_ref().map(|end| end.figures.mrr).filter(|_| last == 0);
                Some((&trial.point, end.or_else(|| record.figure(0))?))
            })
            .collect();
        let best = rows.iter().find(|row| row.state == TrialState::Finished).and_then(|row| {
            let (trial, settings) = (row.trial, row.settings.clone());
            Some(BestTrial { trial, mrr: row.mrr?, config: sweep.out.join(super::sweep::BEST), settings })
        });
        Self {
            dataset: sweep.data.name().to_owned(),
            system: sweep.system.clone(),
            space: sweep.space.name.clone(),
            search: sweep.search,
            seed: sweep.seed,
            version: crate::VERSION.to_owned(),
            out: sweep.out.clone(),
            complete: rows.iter().all(|row| row.state != TrialState::Open),
            grid: drawn.grid,
            unfit: drawn.unfit,
            rungs: rungs.iter().map(|rung| rung.part).collect(),
            best,
            mattered: mattered(&sweep.space, &figures),
            trials: rows,
            searched: sweep.space.clone(),
        }
    }

    /// Writes the table into `folder`: as JSON, and as text without times.
    pub(super) fn write(&self, folder: &Path, [json, text]: [&str; 2]) -> Result<(), SweepError> {
        let document = serde_json::to_vec_pretty(self).expect("a table is plain data");
        write_whole(&folder.join(json), |out| out.write_all(&document))?;
        let table = self.tabs();
        Ok(write_whole(&folder.join(text), |out| out.write_all(table.as_bytes()))?)
    }

    /// Checks that not every trial failed.
    pub(super) fn expect_some(&self) -> Result<(), SweepError> {
        let failed = |row: &TrialRow| row.error.clone();
        match self.trials.iter().map(failed).collect::<Option<Vec<String>>>() {
            Some(errors) => Err(SweepError::Cannot(format!(
                "every trial failed, the first with: {}",
                errors.first().map_or("nothing to try", String::as_str)
            ))),
            None => Ok(()),
        }
    }

    /// The columns of the table: the searched settings.
    pub fn settings(&self) -> impl Iterator<Item = &str> {
        self.searched.dimensions.iter().map(|dimension| dimension.key.as_str())
    }

    /// The table as tab-separated text, without times: the same search gives the same bytes.
    pub fn tabs(&self) -> String {
        let mut text = String::from("trial\tstate\tmrr\thits@1\thits@3\thits@10\tepochs");
        // Writing to a string cannot fail, here and below.
        for key in self.settings() {
            let _ = write!(text, "\t{key}");
        }
        for row in &self.trials {
            let figure = |of: fn(&Figures) -> f64| {
                row.valid.as_ref().map_or(String::new(), |valid| of(valid).to_string())
            };
            let mrr = row.mrr.map_or(String::new(), |mrr| mrr.to_string());
            let epochs = row.epochs.map_or(String::new(), |epochs| epochs.to_string());
            let (one, three, ten) =
                (figure(|f| f.hits_at_1), figure(|f| f.hits_at_3), figure(|f| f.hits_at_10));
            let _ =
                write!(text, "\n{}\t{}\t{mrr}\t{one}\t{three}\t{ten}\t{epochs}", row.trial, row.state.name());
            for key in self.settings() {
                let _ = write!(text, "\t{}", row.point.get(key).map_or(String::new(), ToString::to_string));
            }
        }
        text + "\n"
    }

    /// The best trial as a configuration file, with comments on how it was found; `None` if none was trained to the
    /// end.
    pub(super) fn best_config(&self, sweep: &Sweep) -> Result<Option<String>, SweepError> {
        let Some(best) = &self.best else { return Ok(None) };
        let row = self.trials.iter().find(|row| row.trial == best.trial);
        let point = &row.expect("the best is one of the trials").point;
        // With `learn_valid` as in the base configuration: it is switched off only while settings are chosen.
        let config = sweep.base.with(&super::search::layer(point))?;
        let mut text = format!(
            "# {} on {}: the best of {} trials by {} search of the space {}, seed {}, version {}.\n\
             # MRR {:.4} on the validation split (trial {}); the test split was not read.\n",
            self.system,
            self.dataset,
            self.trials.len(),
            self.search.name(),
            self.space,
            self.seed,
            self.version,
            best.mrr,
            best.trial,
        );
        for (key, value) in point {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "#   {key} = {value}");
        }
        Ok(Some(text + "\n" + &config.to_toml()))
    }
}

fn row(trial: &Trial, record: &TrialRecord) -> TrialRow {
    let state = match (&record.failed, &record.finished) {
        (Some(_), _) => TrialState::Failed,
        (None, Some(_)) => TrialState::Finished,
        (None, None) => TrialState::Open,
    };
    TrialRow {
        trial: trial.number,
        state,
        mrr: record.finished.as_ref().map(|end| end.figures.mrr).or_else(|| record.figure(usize::MAX)),
        valid: record.finished.as_ref().map(|end| end.figures),
        epochs: record.rungs.last().map(|figure| figure.epochs),
        rungs: record.rungs.clone(),
        out_of_time: record.finished.as_ref().is_some_and(|end| end.out_of_time),
        seconds: record.seconds,
        error: record.failed.clone(),
        settings: trial.point.iter().map(|(key, value)| (key.clone(), as_json(value))).collect(),
        run: trial.folder.clone(),
        point: trial.point.clone(),
    }
}

/// The trials that were stopped. An unfinished rung has not stopped any trial.
fn stopped(trials: &[Trial], records: &BTreeMap<usize, TrialRecord>, rungs: &[Rung]) -> Vec<usize> {
    let mut at_work: Vec<&Trial> = trials.iter().collect();
    let mut stopped = Vec::new();
    for (at, next) in rungs.iter().skip(1).enumerate() {
        let is_done = |trial: &&Trial| records.get(&trial.number).is_some_and(|record| record.has_done(at));
        if !at_work.iter().all(is_done) {
            break;
        }
        best_first(&mut at_work, at, records);
        stopped.extend(at_work.drain(next.trials.min(at_work.len())..).map(|trial| trial.number));
    }
    stopped
}

impl fmt::Display for SweepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head: Vec<String> = ["trial", "MRR", "hits@1", "hits@10", "epochs", "state"]
            .into_iter()
            .map(str::to_owned)
            .chain(self.settings().map(|key| key.split_once('.').map_or(key, |(_, name)| name).to_owned()))
            .collect();
        let cells = self.trials.iter().map(|row| {
            let number =
                |figure: Option<f64>| figure.map_or("–".to_owned(), |figure| format!("{figure:.4}"));
            let mut cells = vec![
                row.trial.to_string(),
                number(row.mrr),
                number(row.valid.map(|valid| valid.hits_at_1)),
                number(row.valid.map(|valid| valid.hits_at_10)),
                row.epochs.map_or("–".to_owned(), |epochs| epochs.to_string()),
                row.state.name().to_owned(),
            ];
            cells.extend(
                self.settings().map(|key| row.point.get(key).map_or(String::new(), ToString::to_string)),
            );
            cells
        });
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
        let widths: Vec<usize> = (0..rows[0].len())
            .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        for row in &rows {
            let line: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
            writeln!(f, "{}", line.join("  ").trim_end())?;
        }
        for row in self.trials.iter().filter(|row| row.error.is_some()) {
            writeln!(f, "trial {} failed: {}", row.trial, Shown(row.error.as_deref().unwrap_or_default()))?;
        }
        if !self.mattered.is_empty() {
            writeln!(
                f,
                "\nWhat mattered: the share of the variance of the MRR that each setting explains (η²), and what chance explains."
            )?;
            for Mattered { setting, explained, by_chance, groups } in &self.mattered {
                let best = groups.iter().max_by(|a, b| a.mrr.total_cmp(&b.mrr));
                let best = best.map_or(String::new(), |group| {
                    format!("best at {} (mean {:.4})", group.values, group.mrr)
                });
                writeln!(f, "  {setting}: {explained:.2} (chance {by_chance:.2}), {best}")?;
            }
        }
        match &self.best {
            Some(best) => write!(
                f,
                "\nBest: trial {}, MRR {:.4} on the validation split. Use it: ruleguider run DATA --config {}",
                best.trial,
                best.mrr,
                best.config.display()
            ),
            None => write!(f, "\nNo trial is finished yet."),
        }
    }
}

#[cfg(test)]
impl SweepReport {
    /// A made-up table of a search of this space on the demonstration graph: trial n has an MRR of 1 / (n + 1).
    pub(crate) fn example(space: Space, search: Search, trials: usize) -> Self {
        use super::{FinishedTrial, Tuning, Workers};
        let data = Tuning::of("demonstration", &crate::generate::demonstration()).unwrap();
        let workers = Workers { at_once: 1, threads: 1, device: crate::tensor::DeviceChoice::Cpu };
        let (base, system, out) =
            (crate::config::Config::default(), "walker".to_owned(), PathBuf::from("out"));
        let sweep = Sweep { data, system, base, space, search, trials, minutes: None, seed: 1, workers, out };
        let drawn = Points::of(&sweep.space, search, trials, 1, &sweep.base);
        let numbered = drawn.points.iter().enumerate();
        let trials: Vec<Trial> = numbered
            .map(|(at, point)| Trial { number: at + 1, point: point.clone(), folder: PathBuf::new() })
            .collect();
        let rungs = Rung::of(search, trials.len(), 8);
        let record = |number: usize| {
            let mrr = 1.0 / (number as f64 + 1.0);
            let came = rungs.iter().filter(|rung| number <= rung.trials).count();
            let finished = (came == rungs.len()).then(|| FinishedTrial {
                figures: Figures { mrr, queries: 1, ..Figures::default() },
                out_of_time: false,
            });
            let rungs = vec![RungFigure { epochs: 2, mrr: Some(mrr) }; came];
            TrialRecord { rungs, finished, seconds: 1.5, ..TrialRecord::default() }
        };
        let records = trials.iter().map(|trial| (trial.number, record(trial.number))).collect();
        Self::new(&sweep, &drawn, &trials, &records, &rungs)
    }
}
