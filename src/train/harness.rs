//! The training loop: epochs of steps, validation, and keeping the best weights.

use super::checkpoint::{Best, Folder, Found, State, Weights};
use super::{EpochEnd, LearningRate, Look, Sums, TrainError, Trainable, TrainingPlan, Within};
use crate::progress::{Metric, Progress};
use crate::tensor::{Adam, Gradients};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Instant;

/// The pace of a training is measured once it has taken this many steps.
const PACE_STEPS: usize = 8;
/// And this many seconds.
const PACE_SECONDS: f64 = 1.0;
/// The share of the time left that steps take; validations take the rest. A guess, until an epoch has been measured.
const FOR_STEPS: f64 = 0.85;

/// The validation MRR in a record.
const VALID_MRR: &str = "valid_mrr";
/// The seconds of the last minute.
const MINUTE: f64 = 60.0;

/// How a training went.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingSummary {
    /// Epochs trained; the last may have been cut short by the time limit.
    pub epochs: usize,
    /// The epoch (from 1) whose weights were kept and its validation figures; without validation the last weights are
    /// kept.
    pub best: Option<Best>,
    /// The record of each epoch.
    pub history: Vec<Metric>,
    /// Seconds over all invocations, including validation.
    pub seconds: f64,
    /// The part of these seconds that the steps took.
    pub step_seconds: f64,
    /// Whether it ended before all its epochs, because of the time.
    pub out_of_time: bool,
}

/// How much better the best weights became in the last minute of a training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastMinute {
    /// How many seconds it had: from one validation to the last.
    pub seconds: f64,
    /// The gain of the best validation MRR.
    pub mrr: f64,
}

impl TrainingSummary {
    /// The epoch whose weights were kept.
    pub fn kept_epoch(&self) -> usize {
        self.best.map_or(self.epochs, |best| best.epoch)
    }

    /// What the last minute brought; `None` without two validations, the first of them at least a second before the end.
    /// The minute begins with the last validation before it, or with the first.
    pub fn last_minute(&self) -> Option<LastMinute> {
        let seen = |metric: &Metric| Some((metric.seconds, metric.figures.get(VALID_MRR)?.as_f64()?));
        let seen: Vec<(f64, f64)> = self.history.iter().filter_map(seen).collect();
        let (end, _) = *seen.last()?;
        let before = seen.iter().rposition(|(seconds, _)| *seconds <= end - MINUTE).unwrap_or(0);
        let best = |seen: &[(f64, f64)]| seen.iter().map(|(_, mrr)| *mrr).fold(f64::NEG_INFINITY, f64::max);
        let seconds = end - seen[before].0;
        (seconds >= 1.0).then(|| LastMinute { seconds, mrr: best(&seen) - best(&seen[..=before]) })
    }

    /// The record of the epoch whose weights were kept.
    pub fn kept(&self) -> Option<&Metric> {
        self.history.iter().find(|metric| metric.step == self.kept_epoch() as u64)
    }
}

/// Trains `network` as `plan` says, from its current weights or from the checkpoint of the same training. Afterwards
/// the network has the weights of the best validation.
///
/// # Errors
/// If the network fails or diverges, a file cannot be read or written, another process trains in the folder, the
/// checkpoint belongs to another training, or the user interrupts (a checkpoint is written first).
pub fn train<N: Trainable>(
    network: &mut N,
    plan: &TrainingPlan<'_>,
    progress: &dyn Progress,
) -> Result<TrainingSummary, N::Error> {
    let mut run = Run::new(network, plan, progress)?;
    progress.begin(&plan.title, "steps", Some(plan.steps as u64));
    let ended = run.epochs();
    progress.end(&run.line());
    ended?;
    Ok(run.finish()?)
}

struct Run<'a, N> {
    network: &'a mut N,
    plan: &'a TrainingPlan<'a>,
    progress: &'a dyn Progress,
    folder: Option<Folder>,
    adam: Adam,
    gradients: Gradients,
    state: State,
    best_weights: Option<Weights>,
    /// Whether the time is up, so that the current epoch is the last.
    time_is_up: bool,
    /// Whether there is progress since the last checkpoint.
    unsaved: bool,
    seconds_before: f64,
    began: Instant,
    saved: Instant,
    /// When timing of the current steps began.
    stepping: Option<Instant>,
    /// When the pace began to be measured, and after which step.
    paced_since: Option<(Instant, usize)>,
    /// How many seconds the last validation took; before the first, a guess of the time that is left for it.
    look_seconds: f64,
    /// Whether there is too little time for another epoch.
    is_too_late: bool,
}

impl<'a, N: Trainable> Run<'a, N> {
    fn new(
        network: &'a mut N,
        plan: &'a TrainingPlan<'a>,
        progress: &'a dyn Progress,
    ) -> Result<Self, TrainError> {
        let folder = plan.folder.map(|path| Folder::open(path, &plan.checkpoint_key)).transpose()?;
        let mut adam = Adam::new(plan.adam);
        let (mut state, mut best_weights) = (State::default(), None);
        if let Some(folder) = &folder {
            match folder.load(network.parameters_mut(), &mut adam, plan)? {
                Found::Nothing => {}
                Found::Useless(why) => {
                    progress.begin(&plan.title, "", None);
                    progress.end(&format_args!("{why}; starting over"));
                }
                Found::Training(found, best) => (state, best_weights) = (*found, best),
            }
        }
        state.planned = plan.steps;
        state.history.iter().for_each(|metric| progress.record(metric));
        let (gradients, now) = (Gradients::new(network.parameters()), Instant::now());
        Ok(Run {
            network,
            plan,
            progress,
            folder,
            adam,
            gradients,
            seconds_before: state.seconds,
            state,
            best_weights,
            time_is_up: false,
            unsaved: false,
            began: now,
            saved: now,
            stepping: None,
            paced_since: None,
            look_seconds: 0.0,
            is_too_late: false,
        })
    }

    fn epochs(&mut self) -> Result<(), N::Error> {
        let is_over = |run: &Self| run.is_out_of_patience() || run.time_is_up || run.is_too_late;
        while self.state.epoch < self.plan.epochs() && !is_over(self) {
            self.take_steps()?;
            self.close_epoch()?;
        }
        // An epoch cut short by the time limit stays unfinished in the checkpoint.
        if self.unsaved && !self.time_is_up { Ok(self.save()?) } else { Ok(()) }
    }

    fn is_out_of_patience(&self) -> bool {
        self.plan.patience > 0 && self.state.looks_since_best >= self.plan.patience
    }

    /// Takes the remaining steps of the current epoch.
    fn take_steps(&mut self) -> Result<(), N::Error> {
        let epoch = self.state.epoch;
        self.network.begin_epoch(epoch);
        self.stepping = Some(Instant::now());
        while self.state.batch < self.plan.steps_of(epoch) {
            self.step()?;
            self.measure_pace();
            self.progress.advance(self.plan.place(epoch, self.state.batch).step, &self.line());
            if self.progress.interrupted() {
                return self.interrupt();
            }
            self.time_is_up = self.progress.time_is_up() || self.has_time_for_looks(1.0);
            if self.time_is_up {
                self.save()?;
                break;
            }
            if self.saved.elapsed() >= self.plan.checkpoint_every {
                self.save()?;
            }
        }
        self.read_sums()?;
        self.stepping = None;
        Ok(())
    }

    fn step(&mut self) -> Result<(), N::Error> {
        let place = self.plan.place(self.state.epoch, self.state.batch);
        self.network.step(place, &mut self.gradients, &mut self.state.sums)?;
        Ok(self.update(self.learning_rate().learning_rate_at(place, self.plan.epoch_steps))?)
    }

    /// Whether there is time for so many more validations at most.
    fn has_time_for_looks(&self, looks: f64) -> bool {
        let most = looks * self.look_seconds;
        self.look_seconds > 0.0 && self.progress.seconds_left().is_some_and(|left| left <= most)
    }

    /// Once the first steps have been taken, finds out how many there is time for: a learning rate that falls must have
    /// fallen when the time is up, however wrong the estimate was or whoever else uses the machine.
    fn measure_pace(&mut self) {
        if self.state.in_time.is_some() {
            return;
        }
        let steps = self.steps_taken();
        // The first step is slower than the others: kernels are compiled, caches filled.
        let (began, first) = *self.paced_since.get_or_insert_with(|| (Instant::now(), steps));
        if steps - first >= PACE_STEPS && began.elapsed().as_secs_f64() >= PACE_SECONDS {
            self.steps_in_time(FOR_STEPS);
            if self.plan.validate_every.is_some() && self.look_seconds == 0.0 {
                self.look_seconds = (1.0 - FOR_STEPS) * self.progress.seconds_left().unwrap_or(0.0);
            }
        }
    }

    /// Counts the steps that there is time for again, by the pace of the epoch that has just ended: the load of a machine
    /// changes. Its validation took `look_seconds`; there must be time for another one at the end.
    fn measure_epoch(&mut self, look_seconds: f64) {
        self.look_seconds = look_seconds;
        if self.state.in_time.is_some() {
            self.steps_in_time(1.0);
            self.paced_since = Some((Instant::now(), self.steps_taken()));
        }
        // A few steps more are not worth another validation.
        self.is_too_late = self.has_time_for_looks(2.0);
    }

    /// The steps that there is time for, at the pace measured last, if `share` of the time is for them.
    fn steps_in_time(&mut self, share: f64) {
        let (Some(left), Some((began, first))) = (self.progress.seconds_left(), self.paced_since) else {
            return;
        };
        let (steps, seconds) = (self.steps_taken(), began.elapsed().as_secs_f64());
        if steps > first && seconds > 0.0 {
            let more = share * (left - self.look_seconds).max(0.0) * (steps - first) as f64 / seconds;
            self.state.in_time = Some(steps + more as usize);
        }
    }

    /// How many steps have been taken since the training began.
    fn steps_taken(&self) -> usize {
        self.plan.place(self.state.epoch, self.state.batch).step as usize
    }

    /// The learning rate, over the steps that there is time for.
    fn learning_rate(&self) -> LearningRate {
        let planned = self.plan.learning_rate;
        let steps = match planned.within {
            Within::Epochs(epochs) => epochs * self.plan.epoch_steps,
            Within::Steps(steps) => steps,
        };
        let in_time = self.state.in_time.filter(|&in_time| in_time < steps);
        in_time.map_or(planned, |in_time| LearningRate { within: Within::Steps(in_time), ..planned })
    }

    /// Moves the parameters along the gradients.
    fn update(&mut self, learning_rate: f32) -> Result<(), TrainError> {
        if let Some(limit) = self.plan.clip {
            let norm = self.gradients.clip_norm(limit)?;
            self.state.sums.add_later(Sums::GRADIENT_NORM, norm);
        }
        self.adam.set_learning_rate(learning_rate);
        self.adam.step(self.network.parameters_mut(), &mut self.gradients)?;
        self.state.batch += 1;
        self.unsaved = true;
        self.state.sums.read_some(self.state.epoch)
    }

    /// Writes a checkpoint and returns the interruption.
    fn interrupt(&mut self) -> Result<(), N::Error> {
        self.save()?;
        Err(TrainError::Interrupted { epoch: self.state.epoch + 1 }.into())
    }

    /// Validates if due, records the epoch, and moves on to the next.
    fn close_epoch(&mut self) -> Result<(), N::Error> {
        let done = self.state.epoch + 1;
        let last = self.time_is_up || done == self.plan.epochs();
        let due = self.plan.validate_every.is_some_and(|every| last || done.is_multiple_of(every));
        let (mut look, mut looked) = (None, None);
        if due {
            // If interrupted here, the epoch is complete and is validated when the training resumes.
            let began = Instant::now();
            let Some(seen) = self.network.validate(self.progress)? else { return self.interrupt() };
            looked = Some(began.elapsed().as_secs_f64());
            self.keep_if_best(Best { epoch: done, figures: seen.figures })?;
            look = Some(seen);
        }
        let State { batch, sums, epoch_seconds, .. } = &self.state;
        let mut figures = self.network.figures(&EpochEnd { steps: *batch, seconds: *epoch_seconds, sums });
        // Not the optimiser's value: a training resumed at the end of an epoch has not taken a step yet.
        let last_step = self.plan.place(self.state.epoch, self.state.batch.saturating_sub(1));
        let learning_rate = self.learning_rate().learning_rate_at(last_step, self.plan.epoch_steps);
        figures.insert("learning_rate".to_owned(), f64::from(learning_rate).into());
        figures.extend(look.into_iter().flat_map(in_record));
        let metric =
            Metric { stage: self.plan.stage.to_owned(), step: done as u64, seconds: self.seconds(), figures };
        self.progress.record(&metric);
        self.state.history.push(metric);
        self.state.step_seconds += self.state.epoch_seconds;
        (self.state.epoch, self.state.batch, self.state.epoch_seconds) = (done, 0, 0.0);
        self.state.sums.next_epoch();
        self.unsaved = true;
        if let Some(seconds) = looked {
            self.measure_epoch(seconds);
        }
        Ok(())
    }

    /// Keeps the weights if no earlier validation was as good.
    fn keep_if_best(&mut self, look: Best) -> Result<(), TrainError> {
        if self.state.best.is_some_and(|best| best.figures.mrr >= look.figures.mrr) {
            self.state.looks_since_best += 1;
            return Ok(());
        }
        self.best_weights = Some(Weights::of(self.network.parameters())?);
        (self.state.best, self.state.looks_since_best) = (Some(look), 0);
        Ok(())
    }

    /// Reads pending values from the device; only then are the steps really done.
    fn read_sums(&mut self) -> Result<(), TrainError> {
        self.state.sums.read(self.state.epoch)?;
        if let Some(since) = &mut self.stepping {
            self.state.epoch_seconds += since.elapsed().as_secs_f64();
            *since = Instant::now();
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), TrainError> {
        if self.folder.is_some() {
            self.read_sums()?;
        }
        self.state.seconds = self.seconds();
        if let Some(folder) = &self.folder {
            folder.save(&self.state, self.best_weights.as_ref(), self.network.parameters(), &self.adam)?;
        }
        (self.saved, self.unsaved) = (Instant::now(), false);
        // Writing does not count as step time. If nothing is written, the steps so far have not been counted either.
        if self.folder.is_some() {
            self.stepping = self.stepping.map(|_| self.saved);
        }
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.began.elapsed().as_secs_f64()
    }

    fn line(&self) -> Line<'_, N> {
        Line(self)
    }

    fn finish(mut self) -> Result<TrainingSummary, TrainError> {
        if let Some(best) = &self.best_weights {
            best.put_back(self.network.parameters_mut())?;
        }
        self.state.seconds = self.seconds();
        let out_of_time = self.time_is_up || self.is_too_late && self.state.epoch < self.plan.epochs();
        let State { epoch, best, history, seconds, step_seconds, .. } = self.state;
        Ok(TrainingSummary { epochs: epoch, best, history, seconds, step_seconds, out_of_time })
    }
}

/// The figures of a validation, as they go into a record.
fn in_record(look: Look) -> Map<String, Value> {
    let mut figures = look.more;
    if let Ok(Value::Object(seen)) = serde_json::to_value(look.figures) {
        figures.extend(seen.into_iter().map(|(name, value)| (format!("valid_{name}"), value)));
    }
    figures
}

/// The progress line, formatted only when it is displayed.
struct Line<'a, N>(&'a Run<'a, N>);

impl<N: Trainable> fmt::Display for Line<'_, N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { network, plan, state, .. } = self.0;
        write!(formatter, "epoch {}", (state.epoch + 1).min(plan.epochs()))?;
        let own = network.line(&state.sums, state.history.last());
        if !own.is_empty() {
            write!(formatter, ", {own}")?;
        }
        match &state.best {
            Some(best) => {
                write!(formatter, ", best MRR {:.4} at epoch {}", best.figures.mrr, best.epoch)
            }
            None => Ok(()),
        }
    }
}
