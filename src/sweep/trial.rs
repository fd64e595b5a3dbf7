//! One trial: its run directory, its progress, and its result.

use super::pace::{Board, Paced, Reached};
use super::search::{Point, Rung, layer};
use super::{Sweep, SweepError};
use crate::config::{Config, LearnValid, System};
use crate::eval::{Figures, Protocol, Split, evaluate_split};
use crate::run::member::{self, Epochs, MemberRef};
use crate::run::{Checksum, RunDirectory, RunError, RunSpec, Source, learn, recorded, write_whole};
use crate::tensor::Device;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The file of a trial's record, in its run directory.
const RECORD: &str = "trial.json";

/// The standing of a trial when it was compared with the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RungFigure {
    /// Epochs trained.
    pub epochs: u64,
    /// The best MRR on the validation split so far; none if there was no validation in time.
    pub mrr: Option<f64>,
}

/// The result of a trial that was trained to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedTrial {
    /// The figures of the whole system on the validation split.
    #[serde(flatten)]
    pub figures: Figures,
    /// Whether its time was up before its epochs were over.
    pub out_of_time: bool,
}

/// The record of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// The settings that were drawn for it.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Its standing at the end of every rung that it reached.
    pub rungs: Vec<RungFigure>,
    /// Its result, if it finished.
    pub finished: Option<FinishedTrial>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
    /// How long it took, over all invocations.
    pub seconds: f64,
}

/// A record as it is stored: one that was changed, or that another program version wrote, is none.
#[derive(Serialize, Deserialize)]
struct Stored<R> {
    sum: Checksum,
    record: R,
}

impl TrialRecord {
    /// The record of the trial in `folder`; `None` if none is written yet.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        let path = folder.join(RECORD);
        match std::fs::read(&path) {
            // It is rebuilt then; the training resumes from its checkpoint.
            Ok(text) => Ok(serde_json::from_slice(&text).ok().and_then(Stored::<Self>::verified)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(RunError::reading(&path)(error)),
        }
    }

    fn write(&self, folder: &Path) -> Result<(), RunError> {
        let stored = Stored { sum: Checksum::of(self), record: self };
        let text = serde_json::to_vec_pretty(&stored).expect("a record is plain data");
        write_whole(&folder.join(RECORD), |out| out.write_all(&text))
    }

    /// Whether there is nothing to do for it in this rung.
    pub fn has_done(&self, rung: usize) -> bool {
        self.finished.is_some() || self.failed.is_some() || self.rungs.len() > rung
    }

    /// Where it stands, in words: its figure, or why there is none.
    pub fn standing(&self) -> String {
        match (&self.failed, &self.finished, self.rungs.last()) {
            (Some(error), ..) => format!("failed: {error}"),
            (None, Some(end), _) => {
                let late = if end.out_of_time { ", out of time" } else { "" };
                format!("MRR {:.4}{late}", end.figures.mrr)
            }
            (None, None, Some(RungFigure { epochs, mrr: Some(mrr) })) => {
                format!("MRR {mrr:.4} after {epochs} epochs")
            }
            (None, None, _) => "no validation within its time limit".to_owned(),
        }
    }

    /// The MRR that it is compared by at the end of this rung; `None` if it failed or was not validated.
    pub fn figure(&self, rung: usize) -> Option<f64> {
        let at_rung = self.rungs.get(rung).or(self.rungs.last());
        at_rung.filter(|_| self.failed.is_none()).and_then(|figure| figure.mrr)
    }
}

impl Stored<TrialRecord> {
    fn verified(self) -> Option<TrialRecord> {
        (Checksum::of(&self.record) == self.sum).then_some(self.record)
    }
}

/// The member by which trials of a system are compared while they train: the last one that is trained by epochs.
pub(crate) fn compared_stage(config: &Config) -> Option<MemberRef> {
    match config.system {
        System::Rules => None,
        _ => member::of(config).into_iter().rfind(|member| member.epochs(config).is_some()),
    }
}

/// How many epochs that training has, and how many lie between validations.
pub(crate) fn epochs(config: &Config) -> Option<(usize, usize)> {
    let Epochs { epochs, validate_every } = compared_stage(config)?.epochs(config)?;
    Some((epochs, validate_every))
}

/// A trial of a search.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// Its number, from 1.
    pub number: usize,
    /// The settings that were drawn for it.
    pub point: Point,
    /// Its run directory.
    pub folder: PathBuf,
}

/// Sorts the trials for the next rung: the best first, ties in the order in which they were drawn. Failed trials are
/// removed.
pub(crate) fn best_first(trials: &mut Vec<&Trial>, rung: usize, records: &BTreeMap<usize, TrialRecord>) {
    let record = |trial: &Trial| records.get(&trial.number);
    let figure = |trial: &Trial| record(trial).and_then(|record| record.figure(rung)).unwrap_or(-1.0);
    trials.retain(|trial| record(trial).is_none_or(|record| record.failed.is_none()));
    trials.sort_by(|a, b| figure(b).total_cmp(&figure(a)).then(a.number.cmp(&b.number)));
}

/// The records of the trials that have one, by number.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn records(trials: &[Trial]) -> Result<BTreeMap<usize, TrialRecord>, RunError> {
    let record = |trial: &Trial| Ok(TrialRecord::read(&trial.folder)?.map(|record| (trial.number, record)));
    trials.iter().filter_map(|trial| record(trial).transpose()).collect()
}

/// The rung that `trial` can be trained for next; `None` if it is finished, failed, was stopped, or has to wait for
/// another that has not completed the rung before.
pub(crate) fn next_rung(
    trial: &Trial,
    trials: &[Trial],
    rungs: &[Rung],
    records: &BTreeMap<usize, TrialRecord>,
) -> Option<usize> {
    let has_done =
        |trial: &Trial, rung| records.get(&trial.number).is_some_and(|record| record.has_done(rung));
    let mut at_work: Vec<&Trial> = trials.iter().collect();
    for (at, rung) in rungs.iter().enumerate() {
        at_work.truncate(rung.trials);
        if !at_work.iter().any(|one| one.number == trial.number) {
            return None;
        }
        if !has_done(trial, at) {
            return Some(at);
        }
        if !at_work.iter().all(|one| has_done(one, at)) {
            return None;
        }
        best_first(&mut at_work, at, records);
    }
    None
}

/// The limits of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leash {
    /// Train to the first validation after its fraction of the epochs; the last rung trains to the end.
    pub rung: Rung,
    /// Train until this time.
    pub deadline: Option<Instant>,
}

impl Trial {
    /// Its settings. While settings are chosen, the validation split is not learnt.
    pub(crate) fn config(&self, base: &Config) -> Result<Config, SweepError> {
        let mut config = base.with(&layer(&self.point))?;
        config.data.learn_valid = LearnValid::Never;
        Ok(config)
    }

    fn spec(
        &self,
        sweep: &Sweep,
        device: &Device,
        until: Option<&'static str>,
    ) -> Result<RunSpec, SweepError> {
        Ok(RunSpec {
            source: Source::Memory { name: sweep.data.name().to_owned() },
            out: self.folder.clone(),
            config: self.config(&sweep.base)?,
            seed: sweep.seed,
            device: device.clone(),
            tensorboard: false,
            name: None,
            siblings: self.folder.parent().map(Path::to_owned),
            budget: None,
            first: None,
            warm: None,
            until,
            ahead: false,
            fresh: Vec::new(),
        })
    }

    /// Runs the stages that it has in common with other trials: all before `until`.
    ///
    /// # Errors
    /// If a stage fails or the user interrupts.
    pub(crate) fn begin(
        &self,
        sweep: &Sweep,
        until: &'static str,
        device: &Device,
        board: &Board<'_>,
        deadline: Option<Instant>,
    ) -> Result<(), SweepError> {
        let spec = self.spec(sweep, device, Some(until))?;
        let paced = Paced::new(board, self.number, "", None, deadline);
        device.inside(|| learn(&spec, sweep.data.dataset(), &paced))?;
        Ok(())
    }

    /// Trains as far as `leash` allows, and writes and returns the record. `None` if the user interrupted.
    ///
    /// # Errors
    /// If the directory cannot be used. A failed training is recorded, not returned as an error.
    pub(crate) fn go_on(
        &self,
        sweep: &Sweep,
        leash: Leash,
        device: &Device,
        board: &Board<'_>,
    ) -> Result<Option<TrialRecord>, SweepError> {
        let began = Instant::now();
        let mut record = TrialRecord::read(&self.folder)?.unwrap_or_default();
        record.settings = self.point.iter().map(|(key, value)| (key.clone(), as_json(value))).collect();
        let spec = self.spec(sweep, device, None)?;
        let limit = epochs(&spec.config).and_then(|(epochs, _)| leash.rung.epochs(epochs));
        let paced = Paced::new(
            board,
            self.number,
            compared_stage(&spec.config).map_or("", |member| member.name()),
            limit,
            leash.deadline,
        );
        let ended = device.inside(|| finish(&spec, sweep, &paced));
        record.seconds += began.elapsed().as_secs_f64();
        let mut reached = paced.reached();
        if ended.is_ok() && reached.epochs == 0 {
            // The training ended in an earlier process, which was killed before it wrote the record.
            reached = paced.reached_by(&recorded(&RunDirectory::look_at(&self.folder)?)?);
        }
        let Reached { epochs, mrr } = reached;
        match ended {
            Ok(figures) => {
                record.finished = Some(FinishedTrial { figures, out_of_time: paced.was_late() });
                record.rungs.push(RungFigure { epochs, mrr: mrr.or(Some(figures.mrr)) });
            }
            Err(RunError::Interrupted) if board.is_over() => return Ok(None),
            Err(RunError::Interrupted) => record.rungs.push(RungFigure { epochs, mrr }),
            Err(error) if concerns_all(&error) => return Err(error.into()),
            Err(error) => record.failed = Some(in_one_line(&error)),
        }
        record.write(&self.folder)?;
        Ok(Some(record))
    }
}

/// Learns, and ranks the validation split with what was learnt.
fn finish(spec: &RunSpec, sweep: &Sweep, paced: &Paced<'_>) -> Result<Figures, RunError> {
    let dataset = sweep.data.dataset();
    let learnt = learn(spec, dataset, paced)?;
    let eval = &spec.config.eval;
    let protocol = Protocol { side: eval.direction, ties: eval.ties, ..Protocol::default() };
    let (reasoner, graph) = (learnt.artifacts.reasoner()?, &learnt.artifacts.learnable.graph);
    let report = evaluate_split(reasoner.reasoner(), dataset, Split::Valid, graph, protocol, paced)?;
    Ok(report.figures)
}

/// Whether other trials would fail for the same reason.
fn concerns_all(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Io { .. }
            | RunError::Locked { .. }
            | RunError::Occupied { .. }
            | RunError::Mismatch { .. }
            | RunError::Graph(_)
    )
}

/// An error with its causes.
fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut words: Vec<String> = causes.map(|error| error.to_string().replace('\n', " ")).collect();
    words.dedup();
    words.join(": ")
}

/// A setting's value as JSON.
pub(crate) fn as_json(value: &toml::Value) -> serde_json::Value {
    serde_json::to_value(value).expect("a setting is plain data")
}

/// Whether `folder` is already a run directory.
pub(crate) fn is_begun(folder: &Path) -> bool {
    RunDirectory::look_at(folder).is_ok()
}
