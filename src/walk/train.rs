//! Stages 3 and 4: passes over the training queries, validation, the best kept, and checkpoints.
//!
//! A training is of one stage. Joint training goes on from the weights that the walker has, so pre-training is shared by
//! all trainings that differ in what comes after it.
//!
//! Every random number of a batch comes from the seed, the stage, the epoch and the batch's number, so training
//! that goes on from a checkpoint gives the same numbers as training that was never stopped.

use super::checkpoint::{Best, Folder, Sums, Training};
use super::config::WalkConfig;
use super::episode::{Lesson, Stage};
use super::measure::Watch;
use super::reward::Teacher;
use super::world::Ask;
use super::{Noting, WalkError, Walker};
use crate::eval::{Figures, Protocol, Side, Truth, evaluate};
use crate::graph::{Adjacency, Graph, Known, Query, Triple, evenly};
use crate::progress::{Progress, Quiet};
use crate::tensor::{Adam, AdamOptions, Gradients, Tape, Tensor};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// Figures of batches that may wait on the device before they are read.
const UNREAD: usize = 32;

/// How a training is run, beside the walker's own settings.
#[derive(Clone, Copy, Debug)]
pub struct TrainOptions<'a> {
    /// Which of the two stages.
    pub stage: Stage,
    /// Where all random numbers come from.
    pub seed: u64,
    /// A folder for checkpoints, the best weights and `metrics.jsonl`; none are written without. If it holds a
    /// checkpoint, training goes on from there.
    pub folder: Option<&'a Path>,
    /// The longest that training goes without a checkpoint.
    pub checkpoint_every: Duration,
}

impl Default for TrainOptions<'_> {
    fn default() -> Self {
        Self { stage: Stage::Joint, seed: 1, folder: None, checkpoint_every: Duration::from_secs(120) }
    }
}

/// How a training ended. The walker holds the weights of the best validation (of the last epoch without one).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trained {
    /// Epochs that were finished.
    pub epochs: usize,
    /// The epoch (from 1) whose weights were kept, and its validation MRR.
    pub best: Option<Best>,
    /// The user stopped it; the same call goes on from the checkpoint, if there is a folder.
    pub interrupted: bool,
    /// The figures of each epoch.
    pub history: Vec<EpochFigures>,
}

/// One line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
pub struct EpochFigures {
    /// Which stage.
    pub stage: Stage,
    /// Which epoch of it, from 1.
    pub epoch: usize,
    /// Batches in it.
    pub batches: usize,
    /// Mean reward of a walk.
    pub reward: f64,
    /// Share of walks that ended in their target (0 in pre-training, which does not look).
    pub hit_rate: f64,
    /// Share of walks whose relation path is a rule.
    pub rule_rate: f64,
    /// Mean entropy, a hop, of the agent that chooses entities.
    pub entropy: f64,
    /// Mean norm of the gradient, before clipping.
    pub gradient_norm: f64,
    /// Mean wall time of a batch.
    pub ms_per_batch: f64,
    /// Wall time of the epoch without validation.
    pub seconds: f64,
    /// Figures on the validation split, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid: Option<Figures>,
    /// Share of validation queries whose top answer's path is a rule, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_share: Option<f64>,
}

/// Trains `walker` on the training queries of `known`: one stage of it, from the weights it has or from the checkpoint of
/// the same training.
///
/// # Errors
/// If the device or the soft reward fails, or a file cannot be written or does not belong to this training.
pub fn train(
    walker: &mut Walker,
    graph: &Graph,
    known: &Known,
    teacher: Teacher,
    options: TrainOptions,
    progress: &dyn Progress,
) -> Result<Trained, WalkError> {
    let mut run = Run::new(walker, graph, known, teacher, options)?;
    run.epochs(progress)?;
    run.finish()
}

struct Run<'a> {
    walker: &'a mut Walker,
    asks: Vec<Ask>,
    validation: Validation<'a>,
    teacher: Teacher<'a>,
    options: TrainOptions<'a>,
    folder: Option<Folder>,
    state: Training,
    adam: Adam,
    gradients: Gradients,
    interrupted: bool,
    /// The time set aside is spent: the epoch under way is the last.
    spent: bool,
    unread: Vec<(Tensor, Option<Tensor>)>,
    saved: Instant,
}

struct Validation<'a> {
    graph: &'a Graph,
    answers: Adjacency,
    split: Vec<Triple>,
    queries: Vec<Query>,
    side: Side,
}

impl<'a> Run<'a> {
    fn new(
        walker: &'a mut Walker,
        graph: &'a Graph,
        known: &Known,
        teacher: Teacher<'a>,
        options: TrainOptions<'a>,
    ) -> Result<Self, WalkError> {
        let asks: Vec<Ask> = walker
            .config
            .side
            .asked(&known.queries)
            .map(|(query, target)| Ask { query, target: Some(target) })
            .collect();
        let validation = Validation::new(graph, known, &walker.config);
        let mut state = Training::default();
        let mut adam = fresh_adam(&walker.config);
        let mut folder = options.folder.map(Folder::open).transpose()?;
        if let Some(folder) = &mut folder
            && let Some(found) = folder.load(walker, &mut adam, options.stage, options.seed)?
        {
            state = found;
        }
        let frozen = options.stage == Stage::Joint && walker.config.freeze_relation_agent;
        walker.network.freeze_relation_agent(&mut walker.parameters, frozen);
        let gradients = Gradients::new(&walker.parameters);
        let (interrupted, spent, unread, saved) = (false, false, Vec::new(), Instant::now());
        Ok(Run {
            walker,
            asks,
            validation,
            teacher,
            options,
            folder,
            state,
            adam,
            gradients,
            interrupted,
            spent,
            unread,
            saved,
        })
    }

    fn epochs(&mut self, progress: &dyn Progress) -> Result<(), WalkError> {
        let batches = self.asks.len().div_ceil(self.walker.config.batch);
        let (name, total) = match self.options.stage {
            Stage::Pretrain => {
                let epochs = f64::from(self.walker.config.pretrain_epochs);
                ("pre-training", (batches as f64 * epochs).ceil() as usize)
            }
            Stage::Joint => ("training", batches * self.walker.config.epochs),
        };
        progress.begin(name, "batches", Some(total as u64));
        while self.state.epoch * batches < total
            && !self.state.exhausted(self.walker.config.patience)
            && !self.spent
        {
            let end = batches.min(total - self.state.epoch * batches);
            self.epoch(end, progress, (self.state.epoch * batches) as u64)?;
            if self.interrupted {
                progress.end(&"interrupted");
                return self.save();
            }
            self.close_epoch(self.state.batch, progress)?;
            if self.interrupted {
                progress.end(&"interrupted");
                return Ok(());
            }
        }
        progress.end(&self.state.summary());
        Ok(())
    }

    /// The batches of one epoch from where it stands to `end`.
    fn epoch(&mut self, end: usize, progress: &dyn Progress, before: u64) -> Result<(), WalkError> {
        let (stage, epoch) = (self.options.stage, self.state.epoch);
        let mut order = self.asks.clone();
        let mut random = ChaCha8Rng::seed_from_u64(number_of(self.options.seed, stage, epoch, u64::MAX));
        order.shuffle(&mut random);
        let size = self.walker.config.batch;
        while self.state.batch < end {
            let begun = Instant::now();
            let batch = self.state.batch;
            let asks = &order[batch * size..((batch + 1) * size).min(order.len())];
            self.batch(asks, number_of(self.options.seed, stage, epoch, batch as u64))?;
            self.state.batch += 1;
            self.state.sums.seconds += begun.elapsed().as_secs_f64();
            progress.advance(before + self.state.batch as u64, &self.state.sums);
            if progress.interrupted() {
                self.interrupted = true;
                return self.read();
            }
            if progress.time_is_up() {
                self.spent = true;
                return self.read();
            }
            if self.folder.is_some() && self.saved.elapsed() >= self.options.checkpoint_every {
                self.save()?;
            }
        }
        self.read()
    }

    fn batch(&mut self, asks: &[Ask], seed: u64) -> Result<(), WalkError> {
        let stage = self.options.stage;
        if stage == Stage::Joint {
            let batches = self.asks.len().div_ceil(self.walker.config.batch).max(1);
            let done = self.state.epoch as f32 + self.state.batch as f32 / batches as f32;
            let part = done / self.walker.config.epochs.max(1) as f32;
            self.adam.set_learning_rate(self.walker.config.rate_at(part));
        }
        let Walker { config, world, network, parameters } = &mut *self.walker;
        let lesson = Lesson { config, world, network, teacher: self.teacher, stage };
        let mut tape = Tape::training(parameters, seed);
        let episode = lesson.episode(&mut tape, asks, None, &mut Watch::off())?;
        tape.backward(episode.loss, &mut self.gradients)?;
        let limit = if config.clip > 0.0 { config.clip } else { f32::INFINITY };
        let norm = self.gradients.clip_norm(limit)?;
        self.adam.step(parameters, &mut self.gradients)?;
        self.state.sums.add(&episode.tally);
        self.unread.push((norm, episode.entropy));
        if self.unread.len() >= UNREAD { self.read() } else { Ok(()) }
    }

    /// Reads the figures that wait on the device.
    fn read(&mut self) -> Result<(), WalkError> {
        for (norm, entropy) in self.unread.drain(..) {
            let norm = f64::from(norm.number()?);
            if !norm.is_finite() {
                return Err(WalkError::Diverged { epoch: self.state.epoch + 1 });
            }
            self.state.sums.gradient_norm += norm;
            self.state.sums.entropy += entropy.map_or(Ok(0.0), |entropy| entropy.number().map(f64::from))?;
        }
        Ok(())
    }

    /// Validates if it is time, writes the epoch's figures and moves on to the next.
    fn close_epoch(&mut self, batches: usize, progress: &dyn Progress) -> Result<(), WalkError> {
        let (stage, config) = (self.options.stage, &self.walker.config);
        let done = self.state.epoch + 1;
        let last = self.spent || done == config.epochs;
        let due = stage == Stage::Joint && (last || done.is_multiple_of(config.validate_every));
        let mut figures = self.state.sums.figures(stage, done, batches);
        if due && !self.validation.split.is_empty() {
            let asked = Noting::new(self.walker, self.teacher.rules);
            let Some(valid) = self.validation.figures(&asked, progress)? else {
                // Asked to stop while validating: the epoch stands at its end and is validated on return.
                self.interrupted = true;
                return self.save();
            };
            figures.rule_share = Some(asked.share(&self.validation.queries));
            if self.state.is_better(valid.mrr) {
                self.state.keep(self.walker, Best { epoch: done, mrr: valid.mrr })?;
                if let (Some(folder), Some(best)) = (&self.folder, &self.state.best_weights) {
                    folder.save_best(self.walker, best)?;
                }
            } else {
                self.state.since_best += 1;
            }
            figures.valid = Some(valid);
        }
        self.state.history.push(figures);
        self.state.next_epoch();
        self.save()
    }

    fn save(&mut self) -> Result<(), WalkError> {
        self.read()?;
        if let Some(folder) = &mut self.folder {
            folder.save(self.walker, &self.adam, &self.state, self.options.seed)?;
        }
        self.saved = Instant::now();
        Ok(())
    }

    fn finish(self) -> Result<Trained, WalkError> {
        if let (Some(best), false) = (&self.state.best_weights, self.interrupted) {
            best.put_back(&mut self.walker.parameters)?;
        }
        Ok(Trained {
            epochs: self.state.history.len(),
            best: self.state.best.clone(),
            interrupted: self.interrupted,
            history: self.state.history,
        })
    }
}

fn fresh_adam(config: &WalkConfig) -> Adam {
    Adam::new(AdamOptions { learning_rate: config.learning_rate, ..AdamOptions::default() })
}

/// The seed of one batch (or of an epoch's order, with the last number).
fn number_of(seed: u64, stage: Stage, epoch: usize, batch: u64) -> u64 {
    let mut mixed = seed;
    for part in [stage as u64, epoch as u64, batch] {
        mixed = (mixed ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
    }
    mixed
}

impl<'a> Validation<'a> {
    /// The validation split, or as many triples of it as the settings say, evenly spread.
    fn new(graph: &'a Graph, known: &Known, config: &WalkConfig) -> Self {
        let (most, side) = (config.validation_queries, config.side);
        let answers = known.answers(graph.entities());
        let split = evenly(&known.valid, most);
        let queries = side.asked(&split).map(|(query, _)| query).collect();
        Self { graph, answers, split, queries, side }
    }

    /// The figures of `walker`, or none if the user asked to stop.
    fn figures(&self, walker: &Noting, progress: &dyn Progress) -> Result<Option<Figures>, WalkError> {
        let truth = Truth { graph: self.graph, answers: &self.answers };
        let protocol = Protocol { side: self.side, ..Protocol::default() };
        match evaluate(walker, &self.split, truth, protocol, &Quiet(progress)) {
            Ok(evaluation) => Ok(Some(evaluation.figures())),
            Err(crate::eval::EvalError::Interrupted) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Sums {
    fn figures(&self, stage: Stage, epoch: usize, batches: usize) -> EpochFigures {
        let (walks, count) = (self.walks.max(1.0), batches.max(1) as f64);
        EpochFigures {
            stage,
            epoch,
            batches,
            reward: self.reward / walks,
            hit_rate: self.hits / walks,
            rule_rate: self.rules / walks,
            entropy: self.entropy / count,
            gradient_norm: self.gradient_norm / count,
            ms_per_batch: 1e3 * self.seconds / count,
            seconds: self.seconds,
            valid: None,
            rule_share: None,
        }
    }
}
