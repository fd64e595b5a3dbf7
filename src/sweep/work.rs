//! A search under way: trials side by side, rung by rung.

use super::pace::Board;
use super::search::Rung;
use super::trial::{Leash, Trial, TrialRecord, best_first, is_begun, records};
use super::{Sweep, SweepError, Workers};
use crate::config::Config;
use crate::progress::Progress;
use crate::run::RunError;
use crate::run::member::{self, MemberRef};
use crate::tensor::Device;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The largest share of the time that may go into stages shared by all trials.
const GROUNDWORK: f64 = 0.4;

/// A search under way.
pub(crate) struct Work<'a> {
    sweep: &'a Sweep,
    board: Board<'a>,
    began: Instant,
    /// Seconds that earlier invocations took.
    spent: f64,
    records: Mutex<BTreeMap<usize, TrialRecord>>,
    /// Held while the table is written, since trials end concurrently.
    keeping: Mutex<()>,
    /// All trials.
    pub trials: Vec<Trial>,
    /// The rungs of the search.
    pub rungs: Vec<Rung>,
}

/// Called whenever a trial completes a rung.
pub(crate) type AfterRung<'k> = &'k (dyn Fn(&Work<'_>) -> Result<(), SweepError> + Sync);

impl<'a> Work<'a> {
    /// The remaining work of `sweep`: finished work is read from the folders of its trials.
    ///
    /// # Errors
    /// If a record cannot be read.
    pub(crate) fn new(
        sweep: &'a Sweep,
        trials: Vec<Trial>,
        rungs: Vec<Rung>,
        progress: &'a dyn Progress,
    ) -> Result<Self, SweepError> {
        let records = records(&trials)?;
        let seconds: f64 = records.values().map(|record: &TrialRecord| record.seconds).sum();
        let spent = seconds / sweep.workers.at_once.max(1) as f64;
        let (board, began, records) = (Board::new(progress), Instant::now(), Mutex::new(records));
        Ok(Self { sweep, board, began, spent, records, keeping: Mutex::default(), trials, rungs })
    }

    /// The records of the trials so far.
    pub(crate) fn records(&self) -> BTreeMap<usize, TrialRecord> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, TrialRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs all rungs that are not done. `keep` is called whenever a trial completes a rung.
    ///
    /// # Errors
    /// If the folder cannot be used. A failed training is recorded, not returned as an error.
    pub(crate) fn all(&self, progress: &dyn Progress, keep: AfterRung<'_>) -> Result<(), SweepError> {
        self.groundwork()?;
        let mut at_work: Vec<&Trial> = self.trials.iter().collect();
        for (at, rung) in self.rungs.iter().enumerate() {
            at_work.truncate(rung.trials);
            self.climb(at, &at_work, keep)?;
            if progress.interrupted() {
                break;
            }
            best_first(&mut at_work, at, &self.lock());
        }
        Ok(())
    }

    /// Runs one rung: all unfinished trials, several at a time.
    fn climb(&self, rung: usize, trials: &[&Trial], keep: AfterRung<'_>) -> Result<(), SweepError> {
        let waiting: VecDeque<&Trial> = {
            let records = self.lock();
            let is_done =
                |trial: &Trial| records.get(&trial.number).is_some_and(|record| record.has_done(rung));
            trials.iter().copied().filter(|trial| !is_done(trial)).collect()
        };
        if waiting.is_empty() || self.board.is_over() {
            return Ok(());
        }
        let title = match self.rungs.len() {
            1 => "sweep".to_owned(),
            count => format!("sweep, rung {} of {count}", rung + 1),
        };
        self.board.begin(&title, waiting.len());
        let slots = self.sweep.workers.at_once.clamp(1, waiting.len());
        let queue = Mutex::new(waiting);
        let failures: Mutex<Vec<SweepError>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..slots {
                scope.spawn(|| {
                    if let Err(error) = self.slot(rung, slots, &queue, keep) {
                        self.board.halt();
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                    }
                });
            }
        });
        self.board.end(&self.summary());
        failures.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().next().map_or(Ok(()), Err)
    }

    /// Trains one trial after the other until none is left.
    fn slot(
        &self,
        rung: usize,
        slots: usize,
        queue: &Mutex<VecDeque<&Trial>>,
        keep: AfterRung<'_>,
    ) -> Result<(), SweepError> {
        let Workers { threads, device, .. } = self.sweep.workers;
        let threads = (threads / slots).max(1);
        let device = Device::choose(device, threads).map_err(RunError::from)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool =
            pool.map_err(|error| SweepError::Cannot(format!("starting {threads} threads: {error}")))?;
        loop {
            let (trial, waiting) = {
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                let waiting = queue.len();
                match queue.pop_front().filter(|_| !self.board.is_over()) {
                    Some(trial) => (trial, waiting),
                    None => return Ok(()),
                }
            };
            let leash = Leash { rung: self.rungs[rung], deadline: self.deadline(rung, waiting, slots) };
            let went = pool.install(|| trial.go_on(self.sweep, leash, &device, &self.board));
            let Some(record) = went? else { return Ok(()) };
            let line = described(trial, &record);
            let mrr = record.finished.as_ref().map(|end| end.figures.mrr).or(record.figure(rung));
            self.lock().insert(trial.number, record);
            self.board.finished(trial.number, mrr, &line);
            let _one_at_a_time = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
            keep(self)?;
        }
    }

    /// Runs the stages that all trials have in common once, with all threads, in the folder of the first; the others
    /// reuse them.
    fn groundwork(&self) -> Result<(), SweepError> {
        let Some(until) = self.first_difference()? else { return Ok(()) };
        let (Some(first), false) = (self.trials.first(), self.board.is_over()) else { return Ok(()) };
        let begun = self.trials.iter().filter(|trial| is_begun(&trial.folder)).count();
        if begun > 1 || self.lock().values().any(|record| record.finished.is_some()) {
            return Ok(());
        }
        let Workers { threads, device, .. } = self.sweep.workers;
        let device = Device::choose(device, threads).map_err(RunError::from)?;
        let deadline = self.left().map(|left| Instant::now() + Duration::from_secs_f64(GROUNDWORK * left));
        self.board.begin("stages that all trials share", 1);
        let ended = first.begin(self.sweep, until, &device, &self.board, deadline);
        self.board.end(&format_args!("all stages before {until}"));
        match ended {
            // Other errors occur again in the trials, which report them one by one.
            Err(SweepError::Run(RunError::Interrupted)) => Ok(()),
            Err(error @ SweepError::Run(RunError::Io { .. })) => Err(error),
            _ => Ok(()),
        }
    }

    /// The first stage in which trials differ, if it is not the first of all.
    fn first_difference(&self) -> Result<Option<&'static str>, SweepError> {
        if self.trials.len() < 2 {
            return Ok(None);
        }
        let configs: Result<Vec<Config>, _> =
            self.trials.iter().map(|trial| trial.config(&self.sweep.base)).collect();
        let configs = configs?;
        let members = member::of(&configs[0]);
        let common = |one: MemberRef, at: usize| {
            configs.iter().all(|config| {
                member::of(config).get(at).is_some_and(|other| other.name() == one.name())
                    && one.settings(config) == one.settings(&configs[0])
            })
        };
        let differs = members.iter().enumerate().position(|(at, member)| !common(*member, at));
        Ok(differs.filter(|at| *at > 0).map(|at| members[at].name()))
    }

    /// The remaining seconds, if there is a limit.
    fn left(&self) -> Option<f64> {
        let spent = self.spent + self.began.elapsed().as_secs_f64();
        self.sweep.minutes.map(|minutes| (60.0 * minutes - spent).max(0.0))
    }

    /// When a trial that begins now has to end: the remaining time is divided among the remaining rounds of trials, in
    /// proportion to the epochs that each trains.
    fn deadline(&self, rung: usize, waiting: usize, slots: usize) -> Option<Instant> {
        let left = self.left()?;
        let epochs = |at: usize| {
            let before = if at == 0 { 0.0 } else { self.rungs[at - 1].part };
            self.rungs[at].part - before
        };
        let rounds = |trials: usize| trials.div_ceil(slots) as f64;
        let later: f64 =
            (rung + 1..self.rungs.len()).map(|at| rounds(self.rungs[at].trials) * epochs(at)).sum();
        let share = epochs(rung) / (rounds(waiting) * epochs(rung) + later);
        Some(Instant::now() + Duration::from_secs_f64(left * share))
    }

    fn summary(&self) -> String {
        let records = self.lock();
        let best = records.iter().filter_map(|(number, record)| {
            let finished = record.finished.as_ref().map(|end| end.figures.mrr);
            Some((finished.or_else(|| record.figure(usize::MAX))?, *number))
        });
        match best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) {
            Some((mrr, number)) => format!("best MRR {mrr:.4} on the validation split (trial {number})"),
            None => "no trial has an MRR yet".to_owned(),
        }
    }
}

/// The progress line of a trial that completed a rung.
fn described(trial: &Trial, record: &TrialRecord) -> String {
    let settings: Vec<String> = trial.point.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let (standing, seconds) = (record.standing(), record.seconds);
    format!("trial {}: {standing}, {seconds:.1} s; {}", trial.number, settings.join(" "))
}
