//! The one trainer of all models: steps against all entities, looks at the validation split, the best weights kept.
//!
//! A training is a function of its task and seed. The order of an epoch comes from the seed and the epoch's
//! number, the dropout of a step from the seed and the step's number, so a training that goes on from a
//! checkpoint takes the same steps as one that was never stopped.

use super::checkpoint::{Best, Folder, State};
use super::examples::Examples;
use super::model::{self, Size};
use super::settings::{Example, Schedule, Settings};
use super::{EmbedError, Embedding};
use crate::aside::write_aside;
use crate::eval::{EvalError, Figures, Protocol, Truth, Unseen, evaluate};
use crate::graph::{Adjacency, Graph, Known};
use crate::progress::{Progress, Quiet};
use crate::tensor::{Adam, AdamOptions, Archive, Device, Gradients, Tape, Tensor};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a checkpoint is written at least, if there is a folder for it.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(120);
/// How many queries the calibration of the soft reward looks at.
const CALIBRATION_QUERIES: usize = 64;

/// When a training ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// When the validation MRR has not risen for `patience` looks, or after all epochs; the best weights are kept.
    Validation,
    /// After so many epochs, without a look at the validation split; the last weights are kept.
    After(usize),
}

/// What is to be trained.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// What may be learnt from and tuned on.
    pub known: &'a Known,
    /// How many entities and relations there are, seen or not.
    pub size: Size,
    /// The model and how to train it.
    pub settings: &'a Settings,
    /// When to stop.
    pub stop: Stop,
    /// Seed of every random choice.
    pub seed: u64,
    /// Where to compute.
    pub device: &'a Device,
    /// Where checkpoint and learning curves (`metrics.jsonl`) are written; a training that was stopped goes on
    /// from there.
    pub folder: Option<&'a Path>,
}

/// How a training went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch whose weights were kept.
    pub best_epoch: usize,
    /// The figures on the validation split with these weights; tail queries, filtered by what is known.
    pub valid: Option<Figures>,
    /// Seconds of training, validation included.
    pub training_seconds: f64,
    /// Seconds of an epoch's steps in the mean.
    pub epoch_seconds: f64,
    /// The most memory that tensors held on the device, in MiB.
    pub device_memory_mb: f64,
}

/// A trained model and how it came about.
pub struct Trained {
    /// The model.
    pub embedding: Embedding,
    /// How it went.
    pub summary: Summary,
}

/// Trains, or goes on training where a checkpoint is.
///
/// # Errors
/// If there is nothing to learn from, the device or the disk fails, training diverges, or the user interrupts
/// (then a checkpoint is written first).
pub fn train(task: Task<'_>, progress: &dyn Progress) -> Result<Trained, EmbedError> {
    let graph = Graph::new(task.size.entities, task.size.relations, &task.known.facts);
    if graph.facts() == 0 {
        return Err(EmbedError::NoFacts);
    }
    let mut run = Run::new(task, &graph)?;
    progress.begin(
        &format!("training {}", task.settings.model.name()),
        "steps",
        Some((run.epochs() * run.steps_an_epoch) as u64),
    );
    let ended = run.run(progress);
    progress.end(&run.figures());
    ended?;
    run.finish(&graph)
}

struct Run<'a> {
    task: Task<'a>,
    graph: &'a Graph,
    examples: Examples,
    steps_an_epoch: usize,
    embedding: Embedding,
    gradients: Gradients,
    adam: Adam,
    state: State,
    best: Option<Archive>,
    /// Losses of this epoch's steps that are still on the device.
    losses: Vec<Tensor>,
    folder: Option<Folder>,
    /// True answers as far as they are known, for validation.
    answers: Adjacency,
    began: Instant,
    saved: Instant,
    seconds_before: f64,
    last_loss: f64,
}

impl<'a> Run<'a> {
    fn new(task: Task<'a>, graph: &'a Graph) -> Result<Self, EmbedError> {
        let settings = task.settings;
        let mut embedding = Embedding::new(settings, task.size, task.device, task.seed)?;
        let mut adam = Adam::new(AdamOptions {
            learning_rate: settings.learning_rate as f32,
            epsilon: settings.epsilon as f32,
            ..AdamOptions::default()
        });
        let folder = task.folder.map(|path| Folder::new(path, fingerprint(&task))).transpose()?;
        let resumed = match &folder {
            Some(folder) => folder.load(&mut embedding.parameters, &mut adam)?,
            None => None,
        };
        let (state, best) = resumed.unwrap_or_default();
        let examples = Examples::new(graph, settings.example);
        let steps_an_epoch = examples.steps(settings.batch);
        if let Some(folder) = &folder {
            forget_after(&folder.metrics(), state.closed)?;
        }
        Ok(Run {
            task,
            graph,
            steps_an_epoch,
            gradients: Gradients::new(&embedding.parameters),
            examples,
            embedding,
            adam,
            seconds_before: state.seconds,
            state,
            best,
            losses: Vec::new(),
            folder,
            answers: task.known.answers(task.size.entities),
            began: Instant::now(),
            saved: Instant::now(),
            last_loss: f64::NAN,
        })
    }

    fn epochs(&self) -> usize {
        match self.task.stop {
            Stop::Validation => self.task.settings.epochs,
            Stop::After(epochs) => epochs,
        }
    }

    /// Epochs that are over.
    fn epoch(&self) -> usize {
        self.state.steps as usize / self.steps_an_epoch
    }

    fn run(&mut self, progress: &dyn Progress) -> Result<(), EmbedError> {
        loop {
            if self.epoch() > self.state.closed {
                self.close_epoch(progress)?;
            } else if self.state.closed >= self.epochs() || self.is_out_of_patience() {
                return Ok(());
            } else if progress.time_is_up() {
                return self.look_once_more(progress);
            } else {
                self.train_epoch(progress)?;
            }
        }
    }

    /// Takes the steps of the current epoch that are still to be taken.
    fn train_epoch(&mut self, progress: &dyn Progress) -> Result<(), EmbedError> {
        let steps = self.examples.shuffled(self.task.settings.batch, self.task.seed, self.epoch() as u64);
        let first = self.state.steps as usize % self.steps_an_epoch;
        let began = Instant::now();
        for numbers in &steps[first..] {
            if progress.interrupted() {
                return self.stop();
            }
            if progress.time_is_up() {
                break;
            }
            self.step(numbers)?;
            progress.advance(self.state.steps, &self.figures());
            if self.saved.elapsed() >= CHECKPOINT_EVERY {
                self.save()?;
            }
        }
        self.read_losses()?;
        self.state.step_seconds += began.elapsed().as_secs_f64();
        Ok(())
    }

    /// The time set aside is spent: what has been learnt since the last look counts if it is better.
    fn look_once_more(&mut self, progress: &dyn Progress) -> Result<(), EmbedError> {
        if self.task.stop != Stop::Validation || self.task.known.valid.is_empty() {
            return Ok(());
        }
        if !self.state.loss.is_finite() {
            return Err(EmbedError::Diverged { epoch: self.epoch() + 1 });
        }
        match self.figures_on_valid(progress) {
            Ok(figures) => self.keep_if_best(figures),
            Err(EvalError::Interrupted) => self.stop(),
            Err(error) => Err(EmbedError::Eval(error)),
        }
    }

    /// Keeps what was done and says that the user wants to stop.
    fn stop(&mut self) -> Result<(), EmbedError> {
        self.save()?;
        Err(EmbedError::Interrupted { epoch: self.epoch() + 1 })
    }

    fn step(&mut self, numbers: &[u32]) -> Result<(), EmbedError> {
        let settings = self.task.settings;
        let batch = self.examples.batch(self.task.device, numbers)?;
        let seed = self.task.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.state.steps);
        let mut tape = Tape::training(&self.embedding.parameters, seed);
        let queries = (&batch.subjects, &batch.links);
        let loss = model::loss(self.embedding.model.as_ref(), &mut tape, queries, &batch.labels, settings)?;
        self.losses.push(tape.value(loss));
        tape.backward(loss, &mut self.gradients)?;
        if settings.clip > 0.0 {
            self.gradients.clip_norm(settings.clip as f32)?;
        }
        let horizon = (settings.epochs * self.steps_an_epoch) as f64;
        let rate = learning_rate(settings, self.state.steps as f64 / horizon, self.epoch());
        self.adam.set_learning_rate(rate as f32);
        self.adam.step(&mut self.embedding.parameters, &mut self.gradients)?;
        self.state.steps += 1;
        Ok(())
    }

    /// Looks at the validation split if it is time, and writes the epoch's line.
    fn close_epoch(&mut self, progress: &dyn Progress) -> Result<(), EmbedError> {
        let (settings, epoch) = (self.task.settings, self.epoch());
        self.last_loss = self.state.loss / self.steps_an_epoch as f64;
        if !self.last_loss.is_finite() {
            return Err(EmbedError::Diverged { epoch });
        }
        let look = self.task.stop == Stop::Validation
            && !self.task.known.valid.is_empty()
            && (epoch.is_multiple_of(settings.evaluate_every) || epoch == self.epochs());
        let valid = match look.then(|| self.figures_on_valid(progress)) {
            None => None,
            Some(Ok(figures)) => Some(figures),
            Some(Err(EvalError::Interrupted)) => return self.stop(),
            Some(Err(error)) => return Err(EmbedError::Eval(error)),
        };
        if let Some(figures) = valid {
            self.keep_if_best(figures)?;
        }
        self.state.loss = 0.0;
        self.state.closed = epoch;
        self.write(&Line {
            stage: "embed".to_owned(),
            step: epoch,
            seconds: self.seconds(),
            loss: self.last_loss,
            learning_rate: f64::from(self.adam.learning_rate()),
            valid: valid.map(|figures| Look {
                valid_mrr: figures.mrr,
                valid_hits_at_1: figures.hits_at_1,
                valid_hits_at_10: figures.hits_at_10,
            }),
        })
    }

    fn figures_on_valid(&self, progress: &dyn Progress) -> Result<Figures, EvalError> {
        let truth = Truth { graph: self.graph, answers: &self.answers };
        let unseen = if self.task.known.has_own_graph() { Unseen::LeaveOut } else { Unseen::Keep };
        let protocol = Protocol { unseen, ..Protocol::default() };
        let valid = &self.task.known.valid;
        Ok(evaluate(&self.embedding, valid, truth, protocol, &Quiet(progress))?.figures())
    }

    /// Remembers the weights if no look before was better.
    fn keep_if_best(&mut self, figures: Figures) -> Result<(), EmbedError> {
        if self.state.best.as_ref().is_some_and(|best| best.figures.mrr >= figures.mrr) {
            self.state.looks_since_best += 1;
            return Ok(());
        }
        let mut weights = Archive::new();
        self.embedding.parameters.store(&mut weights)?;
        self.best = Some(weights);
        self.state.best = Some(Best { epoch: self.epoch(), figures });
        self.state.looks_since_best = 0;
        Ok(())
    }

    fn is_out_of_patience(&self) -> bool {
        self.task.stop == Stop::Validation && self.state.looks_since_best >= self.task.settings.patience
    }

    fn read_losses(&mut self) -> Result<(), EmbedError> {
        for loss in self.losses.drain(..) {
            self.state.loss += f64::from(loss.number()?);
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), EmbedError> {
        self.read_losses()?;
        self.state.seconds = self.seconds();
        self.saved = Instant::now();
        match &self.folder {
            Some(folder) => {
                folder.save(&self.state, self.best.as_ref(), &self.embedding.parameters, &self.adam)
            }
            None => Ok(()),
        }
    }

    fn write(&self, line: &Line) -> Result<(), EmbedError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.metrics();
        let text = serde_json::to_string(line).expect("plain values");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| writeln!(file, "{text}")).map_err(|source| EmbedError::File { path, source })
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.began.elapsed().as_secs_f64()
    }

    fn figures(&self) -> String {
        let mut text = format!("epoch {}", (self.epoch() + 1).min(self.epochs()));
        if self.last_loss.is_finite() {
            text += &format!(", loss {:.3e}", self.last_loss);
        }
        if let Some(best) = &self.state.best {
            text += &format!(", best MRR {:.4} at epoch {}", best.figures.mrr, best.epoch);
        }
        text
    }

    /// Takes the best weights and calibrates them.
    fn finish(mut self, graph: &Graph) -> Result<Trained, EmbedError> {
        if let Some(best) = &self.best {
            self.embedding.parameters.load(best)?;
        }
        let queries = Examples::new(graph, Example::Query);
        let sample = &queries.shuffled(CALIBRATION_QUERIES, self.task.seed, u64::MAX)[0];
        self.embedding.calibrate(&queries.batch(self.task.device, sample)?)?;
        if let Some(folder) = &self.folder {
            folder.finish();
        }
        let epochs = self.epoch();
        let summary = Summary {
            epochs,
            best_epoch: self.state.best.as_ref().map_or(epochs, |best| best.epoch),
            valid: self.state.best.as_ref().map(|best| best.figures),
            training_seconds: self.seconds(),
            epoch_seconds: self.state.step_seconds / epochs.max(1) as f64,
            device_memory_mb: self.task.device.peak_bytes() as f64 / f64::from(1 << 20),
        };
        Ok(Trained { embedding: self.embedding, summary })
    }
}

/// η at `part` (0 to 1) of all steps, in epoch `epoch`.
fn learning_rate(settings: &Settings, part: f64, epoch: usize) -> f64 {
    let factor = match settings.schedule {
        Schedule::Constant => 1.0,
        Schedule::Cosine => 0.01 + 0.99 * (0.5 + 0.5 * (std::f64::consts::PI * part.min(1.0)).cos()),
        Schedule::Exponential => settings.decay.powi(i32::try_from(epoch).unwrap_or(i32::MAX)),
    };
    settings.learning_rate * factor
}

/// One line of `metrics.jsonl`.
#[derive(Serialize, Deserialize)]
struct Line {
    stage: String,
    /// The epoch.
    step: usize,
    seconds: f64,
    loss: f64,
    learning_rate: f64,
    #[serde(flatten)]
    valid: Option<Look>,
}

/// What a line says about the validation split.
#[derive(Serialize, Deserialize)]
struct Look {
    valid_mrr: f64,
    #[serde(rename = "valid_hits@1")]
    valid_hits_at_1: f64,
    #[serde(rename = "valid_hits@10")]
    valid_hits_at_10: f64,
}

/// Takes lines about epochs after `epoch` out of the curves: they will be trained again.
fn forget_after(path: &Path, epoch: usize) -> Result<(), EmbedError> {
    let failed = |source| EmbedError::File { path: path.to_owned(), source };
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(()) };
    let kept: String = text
        .lines()
        .filter(|line| serde_json::from_str::<Line>(line).is_ok_and(|line| line.step <= epoch))
        .flat_map(|line| [line, "\n"])
        .collect();
    write_aside(path, |out| out.write_all(kept.as_bytes())).map_err(failed)
}

/// How many epochs a training wants, found by `task`, which keeps its validation facts apart. The number is kept in
/// the folder: it is not looked for again when what comes after is interrupted.
///
/// # Errors
/// As [`train`].
pub fn epochs_wanted(task: Task<'_>, progress: &dyn Progress) -> Result<usize, EmbedError> {
    let fingerprint = fingerprint(&task);
    let path = task.folder.map(|folder| folder.join("wanted.json"));
    let kept = path.as_ref().and_then(|path| std::fs::read(path).ok());
    let kept = kept.and_then(|text| serde_json::from_slice::<(String, usize)>(&text).ok());
    if let Some((of, epochs)) = kept
        && of == fingerprint
    {
        return Ok(epochs);
    }
    let epochs = train(task, progress)?.summary.best_epoch;
    if let Some(path) = path {
        let text = serde_json::to_vec(&(fingerprint, epochs)).expect("plain values");
        write_aside(&path, |out| out.write_all(&text)).map_err(|source| EmbedError::File { path, source })?;
    }
    Ok(epochs)
}

/// What makes this training this one: a checkpoint of another is refused.
fn fingerprint(task: &Task<'_>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    add(task.settings.to_toml().as_bytes());
    add(format!("{:?} {:?} {}", task.stop, task.size, task.seed).as_bytes());
    for triple in task.known.facts.iter().chain(task.known.valid.iter()) {
        for id in [triple.head.0, triple.relation.0, triple.tail.0] {
            add(&id.to_le_bytes());
        }
    }
    format!("{hash:016x}")
}
