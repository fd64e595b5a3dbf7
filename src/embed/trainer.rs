//! The training of all models: steps against all entities or a sample of them, on the harness of [`train`](crate::train).
//!
//! A training is a function of its task and seed. The order of an epoch comes from the seed and the epoch's
//! number, the dropout of a step from the seed and the step's number.

use super::denied::Denied;
use super::embedding::SCORES_AT_ONCE;
use super::examples::Examples;
use super::model::{self, Size};
use super::sample::Sampler;
use super::settings::{ModelKind, Schedule, Settings, TrainingExample};
use super::{Embedding, NetworkError};
use crate::aside::write_aside;
use crate::eval::{Figures, Protocol, Unseen};
use crate::graph::{Graph, Known, Names};
use crate::progress::{Metric, Progress};
use crate::tensor::{AdamOptions, Device, Gradients, Parameters, Tape};
use crate::train::{
    self, CheckpointKey, Decay, EpochEnd, LearningRate, Look, Place, Sums, Trainable, TrainingPlan,
    Validation, Within,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// The maximum and minimum number of queries that calibrate the soft reward. With all entities of a benchmark graph
/// that makes a million scores or more, for two parameters; on the largest graphs, as many queries as fit into memory
/// are enough.
const CALIBRATION_QUERIES: [usize; 2] = [64, 4];

/// When a training ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// When the validation MRR has not risen for `patience` validations, or after all epochs; the best weights are
    /// kept.
    Validation,
    /// After this many epochs, without validation; the last weights are kept.
    After(usize),
}

/// What to train.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The data to learn from and to tune on.
    pub known: &'a Known,
    /// How many entities and relations there are, seen or not.
    pub size: Size,
    /// The model and how to train it.
    pub settings: &'a Settings,
    /// When to stop.
    pub stop: Stop,
    /// The seed of every random choice.
    pub seed: u64,
    /// Where to compute.
    pub device: &'a Device,
    /// Where checkpoints are written; an interrupted training continues from there. [`train::forget`] removes the
    /// last checkpoint once the result is stored.
    pub folder: Option<&'a Path>,
    /// The model to continue from, if any.
    pub warm: Option<WarmEmbedding<'a>>,
}

/// A model of an earlier version of the graph, from which training continues.
#[derive(Clone, Copy)]
pub struct WarmEmbedding<'a> {
    /// Its file.
    pub path: &'a Path,
    /// A key that identifies the file.
    pub key: &'a str,
    /// The names of the graph as it is now.
    pub names: &'a Names,
}

/// How a training went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch whose weights were kept.
    pub best_epoch: usize,
    /// The validation figures of these weights; tail queries, filtered by the known answers.
    pub valid: Option<Figures>,
    /// How much better it became in the last minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_minute: Option<train::LastMinute>,
    /// Whether it ended before all its epochs, because of the time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_time: bool,
    /// Seconds of training, including validation.
    pub training_seconds: f64,
    /// The mean seconds of an epoch's steps.
    pub epoch_seconds: f64,
    /// The peak memory of tensors on the device, in MiB.
    pub device_memory_mb: f64,
}

/// A trained model and its summary.
pub struct TrainedEmbedding {
    /// The model.
    pub embedding: Embedding,
    /// How it went.
    pub summary: Summary,
}

/// The name of this stage in records.
const STAGE: &str = "embeddings";

/// Trains, or continues from a checkpoint if there is one.
///
/// # Errors
/// If there is nothing to learn from, or as [`train::train`].
pub fn train(task: Task<'_>, progress: &dyn Progress) -> Result<TrainedEmbedding, NetworkError> {
    task.device.inside(|| train_here(task, progress))
}

fn train_here(task: Task<'_>, progress: &dyn Progress) -> Result<TrainedEmbedding, NetworkError> {
    let graph = Graph::new(task.size.entities, task.size.relations, &task.known.facts);
    if graph.facts() == 0 {
        return Err(NetworkError::NoFacts);
    }
    let mut lessons = Lessons::new(task, &graph)?;
    let plan = lessons.plan();
    let trained = train::train(&mut lessons, &plan, progress)?;
    let embedding = lessons.calibrated(&graph)?;
    let summary = Summary {
        epochs: trained.epochs,
        best_epoch: trained.kept_epoch(),
        valid: trained.best.map(|best| best.figures),
        last_minute: trained.last_minute(),
        out_of_time: trained.out_of_time,
        training_seconds: trained.seconds,
        epoch_seconds: trained.step_seconds / trained.epochs.max(1) as f64,
        device_memory_mb: task.device.peak_bytes() as f64 / f64::from(1 << 20),
    };
    Ok(TrainedEmbedding { embedding, summary })
}

/// A model and its training data.
struct Lessons<'a> {
    task: Task<'a>,
    embedding: Embedding,
    examples: Examples,
    /// What is known to be false, if anything is.
    denied: Option<Denied<'a>>,
    /// Draws the entities that queries are compared with, if not all.
    sampler: Option<Sampler>,
    /// The steps of the current epoch.
    steps: Vec<Vec<u32>>,
    validation: Validation<'a>,
}

impl<'a> Lessons<'a> {
    fn new(task: Task<'a>, graph: &'a Graph) -> Result<Self, NetworkError> {
        let unseen = if task.known.has_own_graph() { Unseen::LeaveOut } else { Unseen::Keep };
        let protocol = Protocol { unseen, ..Protocol::default() };
        let Settings { example, negatives, validation_queries, .. } = *task.settings;
        let examples = Examples::new(graph, example).by_confidence(&task.known.notes);
        let entities = task.size.entities;
        let draws = task.settings.compared(entities) < entities;
        // The few rows of a step would change the statistics that ConvE normalises batches by.
        let denies = !task.known.negatives.is_empty() && task.settings.model != ModelKind::ConvE;
        let mut embedding = Embedding::new(task.settings, task.size, task.device, task.seed)?;
        if let Some(warm) = task.warm {
            embedding.take_over(warm.path, warm.names)?;
        }
        Ok(Lessons {
            task,
            embedding,
            sampler: draws.then(|| Sampler::new(&examples, entities, negatives, task.seed)),
            denied: denies.then(|| Denied::new(graph, &task.known.negatives)),
            examples,
            steps: Vec::new(),
            validation: Validation::new(graph, task.known, validation_queries, protocol),
        })
    }

    fn plan(&self) -> TrainingPlan<'a> {
        let Task { settings, stop, folder, .. } = self.task;
        let epoch_steps = self.examples.steps(settings.batch);
        let (epochs, validates) = match stop {
            Stop::Validation => (settings.epochs, !self.validation.is_empty()),
            Stop::After(epochs) => (epochs, false),
        };
        let decay = match settings.schedule {
            Schedule::Constant => Decay::Constant,
            Schedule::Cosine => Decay::Cosine(0.01),
            Schedule::Exponential => Decay::Exponential(settings.decay),
        };
        let learning_rate = LearningRate {
            initial: settings.learning_rate,
            decay,
            within: Within::Epochs(settings.epochs),
            warm_up: 0,
        };
        // In a sampled softmax a row meets one or two examples of a batch, whose loss is a mean: its gradient shrinks as
        // the batch grows. Under a fixed ε, a large batch on a large graph would never begin to learn.
        let mean_over = if self.sampler.is_some() { settings.batch as f64 } else { 1.0 };
        TrainingPlan {
            stage: STAGE,
            title: format!("training {}", settings.model.name()),
            epoch_steps,
            steps: epochs * epoch_steps,
            adam: AdamOptions { epsilon: (settings.epsilon / mean_over) as f32, ..AdamOptions::default() },
            learning_rate,
            clip: (settings.clip > 0.0).then_some(settings.clip as f32),
            validate_every: validates.then_some(settings.evaluate_every),
            patience: settings.patience,
            folder,
            checkpoint_every: TrainingPlan::CHECKPOINT_EVERY,
            checkpoint_key: checkpoint_key(&self.task),
        }
    }

    /// The current model, with its soft reward calibrated on the facts.
    fn calibrated(mut self, graph: &Graph) -> Result<Embedding, NetworkError> {
        let queries = Examples::new(graph, TrainingExample::Query);
        let [most, fewest] = CALIBRATION_QUERIES;
        let count = (SCORES_AT_ONCE / self.task.size.entities.max(1)).clamp(fewest, most);
        let sample = &queries.shuffled(count, self.task.seed, u64::MAX)[0];
        self.embedding.calibrate(&queries.batch(self.task.device, sample)?)?;
        Ok(self.embedding)
    }
}

impl Trainable for Lessons<'_> {
    type Error = NetworkError;

    fn parameters(&self) -> &Parameters {
        &self.embedding.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.embedding.parameters
    }

    fn begin_epoch(&mut self, epoch: usize) {
        self.steps = self.examples.shuffled(self.task.settings.batch, self.task.seed, epoch as u64);
    }

    fn step(&mut self, place: Place, gradients: &mut Gradients, sums: &mut Sums) -> Result<(), NetworkError> {
        let Embedding { model, parameters, .. } = &self.embedding;
        let numbers = &self.steps[place.batch];
        let sampler = self.sampler.as_ref();
        let batch = self.examples.sampled_batch(self.task.device, numbers, sampler, place.step)?;
        let seed = self.task.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(place.step);
        let mut tape = Tape::training(parameters, seed);
        let mut loss = model::loss(model.as_ref(), &mut tape, &batch, self.task.settings)?;
        if let Some(denied) = &self.denied
            && let Some(wrong) =
                denied.loss(model.as_ref(), &mut tape, self.task.device, &batch, place.step)?
        {
            loss = tape.add(loss, wrong)?;
        }
        sums.add_later(Sums::LOSS, tape.value(loss));
        Ok(tape.backward(loss, gradients)?)
    }

    fn validate(&self, progress: &dyn Progress) -> Result<Option<Look>, NetworkError> {
        let figures = self.validation.figures(&self.embedding, progress)?;
        Ok(figures.map(|figures| Look { figures, more: Map::new() }))
    }

    fn figures(&self, epoch: &EpochEnd<'_>) -> Map<String, Value> {
        let loss = epoch.sums.total(Sums::LOSS) / epoch.steps as f64;
        Map::from_iter([(Sums::LOSS.to_owned(), loss.into())])
    }

    fn line(&self, _sums: &Sums, last: Option<&Metric>) -> String {
        let loss = last.and_then(|metric| metric.figures[Sums::LOSS].as_f64());
        loss.map_or_else(String::new, |loss| format!("loss {loss:.3}"))
    }
}

/// Learns from everything that may be learnt. With `whole`, that is more than `task` has: its facts include the
/// validation split, which then cannot be used for early stopping. Unless the settings give the number of epochs, a
/// first training that holds the split out, as `task` does, finds it; its folder is `tuning` in the folder of the
/// task.
///
/// # Errors
/// As [`train`](train()).
pub fn learn(
    task: Task<'_>,
    whole: Option<&Known>,
    progress: &dyn Progress,
) -> Result<TrainedEmbedding, NetworkError> {
    let Some(known) = whole else { return train(task, progress) };
    let epochs = match task.settings.final_epochs {
        0 => {
            let folder = task.folder.map(|folder| folder.join("tuning"));
            epochs_wanted(Task { folder: folder.as_deref(), ..task }, progress)?
        }
        epochs => epochs,
    };
    train(Task { known, stop: Stop::After(epochs), ..task }, progress)
}

/// The key of this training's checkpoints. The learning rate depends only on the settings, so a training without
/// validation can be extended.
fn checkpoint_key(task: &Task<'_>) -> CheckpointKey {
    let key = CheckpointKey::default();
    let key = task.warm.map_or(key.clone(), |warm| key.value("model to go on from", &warm.key));
    key.settings("embed.", task.settings)
        .value("seed", &task.seed)
        .value("validation", &(task.stop == Stop::Validation))
        .value("number of entities or relations", &(task.size.entities, task.size.relations))
        .triples("set of facts", &task.known.facts)
        .triples("validation split", &task.known.valid)
}

/// How many epochs to train, found by running `task`, which holds out its validation facts. The number is stored in
/// the folder, so that it is not searched for again if the final training is interrupted.
///
/// # Errors
/// As [`train`].
pub(super) fn epochs_wanted(task: Task<'_>, progress: &dyn Progress) -> Result<usize, NetworkError> {
    let key = checkpoint_key(&task);
    let path = task.folder.map(|folder| folder.join("wanted.json"));
    let kept = path.as_ref().and_then(|path| std::fs::read(path).ok());
    let kept = kept.and_then(|text| serde_json::from_slice::<(CheckpointKey, usize)>(&text).ok());
    if let Some((of, epochs)) = kept
        && of == key
    {
        return Ok(epochs);
    }
    let epochs = train(task, progress)?.summary.best_epoch;
    if let Some(path) = path {
        let text = serde_json::to_vec(&(key, epochs)).expect("plain values");
        write_aside(&path, |out| out.write_all(&text))
            .map_err(|source| NetworkError::File { path, source })?;
    }
    task.folder.inspect(|folder| train::forget(folder));
    Ok(epochs)
}
