//! The training of a propagator, on the harness of [`train`](crate::train).
//!
//! An example is a fact in one direction: the loss is the cross-entropy of its answer under a softmax over all entities
//! except the query's other answers. The result depends on the task and the seed alone.

use super::examples::Examples;
use super::settings::PropagateSettings;
use super::{NetworkError, Propagator};
use crate::eval::{Figures, Protocol, Side, Unseen};
use crate::graph::{Graph, Known, Names};
use crate::progress::{Metric, Progress};
use crate::tensor::{AdamOptions, Device, EdgeIndex, Gradients, Parameters, Tape};
use crate::train::{
    self, CheckpointKey, Decay, EpochEnd, LearningRate, Look, Place, Sums, Trainable, TrainingPlan,
    Validation, Within,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The name of these trainings in records.
const STAGE: &str = "propagation";
/// The final learning rate, as a fraction of the peak.
const LAST_RATE: f64 = 0.02;
/// Steps after which the host waits for the device, so that the memory of its lists can be reused.
const WAIT_EVERY: u64 = 8;

/// What to train.
#[derive(Clone, Copy)]
pub struct PropagateTask<'a> {
    /// What may be learnt from and tuned on.
    pub known: &'a Known,
    /// How many entities and relations there are, seen or not.
    pub size: (usize, usize),
    /// The network and how to train it.
    pub settings: &'a PropagateSettings,
    /// Seed of every random choice.
    pub seed: u64,
    /// Where to compute.
    pub device: &'a Device,
    /// Where checkpoints are written; a training that was stopped continues from there.
    pub folder: Option<&'a Path>,
    /// The earlier propagator to start from, if any.
    pub warm: Option<WarmPropagator<'a>>,
    /// Other initial weights than random ones, by the names of parameters. An earlier propagator comes first.
    pub initial: Option<&'a BTreeMap<String, Vec<f32>>>,
}

/// A propagator of an earlier version of the graph, whose weights a training starts from. If the graph has a relation
/// that it was not trained for, training starts from scratch.
#[derive(Clone, Copy)]
pub struct WarmPropagator<'a> {
    /// Its file.
    pub path: &'a Path,
    /// The key that identifies the file in checkpoints.
    pub key: &'a str,
    /// The names of the graph as it is now.
    pub names: &'a Names,
}

/// A trained propagator and its summary.
pub struct TrainedPropagator {
    /// The propagator, over the graph it was trained on.
    pub propagator: Propagator,
    /// How the training went.
    pub summary: train::TrainingSummary,
    /// Whether every link between subject and answer was hidden from a training query.
    pub hides_all_links: bool,
    /// The figures on the validation split, both directions, of the weights that were kept.
    pub valid: Option<Figures>,
}

/// Trains a propagator, or resumes from a checkpoint.
///
/// # Errors
/// If there is nothing to learn from, the settings are wrong, or as [`train::train`].
pub fn train(task: PropagateTask<'_>, progress: &dyn Progress) -> Result<TrainedPropagator, NetworkError> {
    let graph = Graph::new(task.size.0, task.size.1, &task.known.facts);
    if graph.facts() == 0 || task.known.queries.is_empty() {
        return Err(NetworkError::NoFacts);
    }
    let mut lessons = Lessons::new(task, &graph)?;
    let plan = lessons.plan();
    let summary = train::train(&mut lessons, &plan, progress)?;
    let valid = summary.best.map(|best| best.figures);
    let hides_all_links = lessons.examples.hides_all_links();
    Ok(TrainedPropagator { propagator: lessons.propagator, summary, hides_all_links, valid })
}

/// A propagator and its training data.
struct Lessons<'a> {
    task: PropagateTask<'a>,
    propagator: Propagator,
    examples: Examples,
    /// The examples of the current epoch, in order.
    order: Vec<u32>,
    /// The graph without the facts of a (pass, round): a function of the two.
    held_out: Option<((u64, usize), EdgeIndex)>,
    validation: Validation<'a>,
}

impl<'a> Lessons<'a> {
    fn new(task: PropagateTask<'a>, graph: &'a Graph) -> Result<Self, NetworkError> {
        let unseen = if task.known.has_own_graph() { Unseen::LeaveOut } else { Unseen::Keep };
        let protocol = Protocol { side: Side::Both, unseen, ..Protocol::default() };
        let settings = task.settings;
        let mut propagator = Propagator::new(settings, graph, task.device, task.seed)?;
        let earlier = task.warm.map(|warm| Propagator::load(warm.path, warm.names, graph, task.device));
        match (earlier, task.initial) {
            (Some(Ok(earlier)), _) => propagator.networks.take_over(&earlier.networks)?,
            (_, Some(initial)) => propagator.networks.begin_with(initial)?,
            _ => {}
        }
        Ok(Lessons {
            task,
            propagator,
            examples: Examples::new(graph, task.known, settings, task.seed),
            order: Vec::new(),
            held_out: None,
            validation: Validation::new(graph, task.known, settings.validation_queries, protocol),
        })
    }

    /// Examples of an epoch.
    fn epoch_queries(&self) -> usize {
        match self.task.settings.epoch_queries {
            0 => self.examples.len(),
            queries => queries,
        }
    }

    /// The graph for the example at `place` of the training: without the facts of its round.
    fn edge_index_of(&mut self, place: usize) -> Result<EdgeIndex, NetworkError> {
        let (pass, place) = ((place / self.examples.len()) as u64, place % self.examples.len());
        let Some(round) = self.examples.round_of(place) else {
            return Ok(self.propagator.edge_index.clone());
        };
        if let Some((_, edge_index)) = self.held_out.as_ref().filter(|(made, _)| *made == (pass, round)) {
            return Ok(edge_index.clone());
        }
        let edge_index = self.propagator.edge_index.without(&self.examples.held_out(pass, round))?;
        self.held_out = Some(((pass, round), edge_index.clone()));
        Ok(edge_index)
    }

    fn plan(&self) -> TrainingPlan<'a> {
        let PropagateTask { settings, folder, seed, known, size, .. } = self.task;
        let epoch_steps = self.epoch_queries().div_ceil(settings.batch);
        // The harness takes one norm of all gradients; the limit is meant for one network.
        let all_norms = (settings.networks as f64).sqrt();
        TrainingPlan {
            stage: STAGE,
            title: "training the propagator".to_owned(),
            epoch_steps,
            steps: settings.epochs * epoch_steps,
            adam: AdamOptions::default(),
            learning_rate: LearningRate {
                initial: settings.learning_rate,
                decay: Decay::Cosine(LAST_RATE),
                within: Within::Epochs(settings.epochs),
                warm_up: settings.warm_up,
            },
            clip: (settings.clip > 0.0).then_some((settings.clip * all_norms) as f32),
            validate_every: (!self.validation.is_empty()).then_some(settings.validate_every),
            patience: settings.patience,
            folder,
            checkpoint_every: TrainingPlan::CHECKPOINT_EVERY,
            checkpoint_key: CheckpointKey::default()
                .settings("propagate.", settings)
                .value("model to go on from", &self.task.warm.map(|warm| warm.key))
                .value("seed", &seed)
                .value("number of entities or relations", &size)
                .triples("set of facts", &known.facts)
                .triples("set of training queries", &known.queries)
                .triples("validation split", &known.valid),
        }
    }
}

impl Trainable for Lessons<'_> {
    type Error = NetworkError;

    fn parameters(&self) -> &Parameters {
        &self.propagator.networks.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.propagator.networks.parameters
    }

    /// An epoch continues where the previous one ended: in passes over all examples, each shuffled anew.
    fn begin_epoch(&mut self, epoch: usize) {
        let (all, wanted) = (self.examples.len(), self.epoch_queries());
        let first = epoch * wanted;
        self.order.clear();
        for pass in first / all..=(first + wanted - 1) / all {
            let order = self.examples.shuffled(pass as u64);
            let (from, to) = (first.max(pass * all), (first + wanted).min((pass + 1) * all));
            self.order.extend_from_slice(&order[from - pass * all..to - pass * all]);
        }
    }

    fn step(&mut self, place: Place, gradients: &mut Gradients, sums: &mut Sums) -> Result<(), NetworkError> {
        let (device, size) = (self.task.device, self.task.settings.batch);
        let first = place.batch * size;
        let edge_index = self.edge_index_of(place.epoch * self.epoch_queries() + first)?;
        let numbers = &self.order[first..(first + size).min(self.order.len())];
        let networks = &self.propagator.networks;
        let batch = self.examples.batch(device, numbers)?;
        let area = networks.area(&edge_index, &batch.asks)?;
        let seed = self.task.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(place.step);
        // One after the other, so that only one network's states are in memory.
        for (number, network) in networks.iter().enumerate() {
            let seed = seed.wrapping_add((number as u64) << 40);
            let mut tape = Tape::training(&networks.parameters, seed);
            let scores = network.scores(&mut tape, &batch.links, &mut area.rows()?)?;
            let loss = tape.softmax_loss(scores, &batch.targets, &batch.closed)?;
            sums.add_later(Sums::LOSS, tape.value(loss));
            tape.backward(loss, gradients)?;
        }
        if place.step % WAIT_EVERY == WAIT_EVERY - 1 {
            device.synchronise()?;
        }
        Ok(())
    }

    fn validate(&self, progress: &dyn Progress) -> Result<Option<Look>, NetworkError> {
        let figures = self.validation.figures(&self.propagator, progress)?;
        Ok(figures.map(|figures| Look { figures, more: Map::new() }))
    }

    fn figures(&self, epoch: &EpochEnd<'_>) -> Map<String, Value> {
        let loss = epoch.sums.total(Sums::LOSS) / (epoch.steps * self.task.settings.networks) as f64;
        let step = 1e3 * epoch.seconds / epoch.steps as f64;
        Map::from_iter([(Sums::LOSS.to_owned(), loss.into()), ("step_ms".to_owned(), step.into())])
    }

    fn line(&self, _sums: &Sums, last: Option<&Metric>) -> String {
        let loss = last.and_then(|metric| metric.figures[Sums::LOSS].as_f64());
        loss.map_or_else(String::new, |loss| format!("loss {loss:.3}"))
    }
}
