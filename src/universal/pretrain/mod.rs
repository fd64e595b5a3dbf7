//! Makes weights from several graphs.
//!
//! Graphs take turns by their shares of the time. A step asks for facts of one graph, each in one direction; the loss
//! is the cross-entropy of the answer under a softmax over all entities of the graph except the query's other
//! answers. What a query asks for is not in the graph, in some batches nor is any other link of its pair, and every turn
//! has its own [variant](variant) of the graph, so that the weights do not rely on what is always there.
//!
//! A training may be spread over several invocations. A checkpoint has weights, optimiser and counters, and how long
//! was trained already: the learning rate falls by that. Which graph is next depends on measured times, so two
//! trainings are alike but not the same.

mod checkpoint;
mod corpus;
mod invented;
mod lesson;
mod overlap;
mod settings;
mod variant;

pub use overlap::{GraphOverlap, Overlap, overlap};
pub use settings::{InventedGraphs, PretrainSettings, RankedGraph, RankedSplit, TrainingGraph, Variety};

use super::UniversalError;
use super::weights::{StoredPrecision, Universal};
use crate::eval::Figures;
use crate::progress::Progress;
use crate::propagate::FrontierBound;
use crate::tensor::{Adam, AdamOptions, Device, Gradients, Tape, Tensor};
use checkpoint::State;
use corpus::Exam;
use lesson::Lesson;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Seconds of training between two checkpoints, and between two lines of progress.
const CHECKPOINT_SECONDS: f64 = 60.0;
const LINE_SECONDS: f64 = 30.0;
/// Steps over which the losses in a line of progress are averaged, about.
const SMOOTH: f64 = 100.0;
/// Only one training's weights are updated, and nobody else holds them meanwhile.
const NOT_SHARED: &str = "reasoners over the weights are gone once their ranking is done";

/// What to pre-train.
#[derive(Clone, Copy)]
pub struct PretrainTask<'a> {
    /// How.
    pub settings: &'a PretrainSettings,
    /// The folder that the paths of the graphs are relative to.
    pub data: &'a Path,
    /// Minutes of training in this invocation; `None` for all that are left, 0 to rank only.
    pub minutes: Option<f64>,
    /// The weights to begin with, or to rank; `None` for random ones, or for ranking those that come with the program.
    pub weights: Option<&'a Path>,
    /// The file to write weights to; its checkpoint is beside it.
    pub out: Option<&'a Path>,
    /// Whether to go on from the checkpoint.
    pub resume: bool,
    /// Seed of every random choice.
    pub seed: u64,
    /// Where to compute.
    pub device: &'a Device,
}

/// How weights rank a graph that they were not trained on.
#[derive(Clone, Debug, Serialize)]
pub struct GraphFigures {
    /// The graph.
    pub graph: String,
    /// Its figures, in both directions.
    #[serde(flatten)]
    pub figures: Figures,
}

/// How a pre-training went.
#[derive(Clone, Debug, Serialize)]
pub struct PretrainReport {
    /// Steps taken, over all invocations.
    pub steps: u64,
    /// Minutes of training, over all invocations.
    pub minutes: f64,
    /// The latest mean loss of every graph trained on.
    pub losses: Vec<(String, f64)>,
    /// The final figures of the graphs to rank.
    pub ranked: Vec<GraphFigures>,
    /// Whether the user interrupted it.
    pub interrupted: bool,
}

/// Trains, or resumes, and ranks.
///
/// # Errors
/// If a graph or a file cannot be read, the settings are wrong, training diverges or the device fails.
pub fn pretrain(task: PretrainTask<'_>, progress: &dyn Progress) -> Result<PretrainReport, UniversalError> {
    task.settings.check()?;
    let mut training = Training::new(task)?;
    let mut interrupted = false;
    if task.minutes != Some(0.0) {
        interrupted = training.run(progress)?;
    }
    let ranked = if interrupted { Vec::new() } else { training.rank(progress)? };
    let losses = training.lessons.iter().zip(&training.state.graphs);
    Ok(PretrainReport {
        steps: training.state.steps,
        minutes: training.state.seconds / 60.0,
        losses: losses.map(|(lesson, state)| (lesson.name.clone(), state.loss)).collect(),
        ranked,
        interrupted,
    })
}

/// A training in progress.
struct Training<'a> {
    task: PretrainTask<'a>,
    universal: Arc<Universal>,
    adam: Adam,
    state: State,
    lessons: Vec<Lesson>,
    exams: Vec<Exam>,
}

impl<'a> Training<'a> {
    fn new(task: PretrainTask<'a>) -> Result<Self, UniversalError> {
        let PretrainTask { settings, data, device, seed, .. } = task;
        let only_ranks = task.minutes == Some(0.0);
        let mut universal = match task.weights {
            Some(path) => Universal::load(path, device)?,
            None if only_ranks && !task.resume => Universal::shipped(device)?,
            None => Universal::new(&settings.network, device, seed)?,
        };
        let options = AdamOptions { weight_decay: settings.weight_decay as f32, ..AdamOptions::default() };
        let (mut adam, mut state) = (Adam::new(options), State::new(settings));
        if task.resume {
            (universal, state) = State::load(&task.checkpoint()?, settings, device, &mut adam)?;
        }
        let lessons: Result<Vec<_>, _> = match only_ranks {
            true => Ok(Vec::new()),
            false => settings
                .train
                .iter()
                .map(|spec| Lesson::new(spec, data, settings, seed))
                .chain(Lesson::invented(settings, seed).map(Ok))
                .collect(),
        };
        let lessons = lessons?;
        if lessons.is_empty() && !only_ranks {
            return Err(UniversalError::NothingToTrainOn);
        }
        let exams = settings.ranked.iter().map(|spec| Exam::new(spec, data, settings.ranked_queries, device));
        let exams = exams.collect::<Result<_, _>>()?;
        Ok(Training { task, universal: Arc::new(universal), adam, state, lessons, exams })
    }

    /// Trains until the time is up. Returns whether the user interrupted.
    fn run(&mut self, progress: &dyn Progress) -> Result<bool, UniversalError> {
        let total = 60.0 * self.task.settings.minutes;
        let here = self.task.minutes.map_or(total, |minutes| 60.0 * minutes);
        let end = total.min(self.state.seconds + here);
        let rank_every = 60.0 * self.task.settings.rank_every;
        self.lessons.iter().for_each(|lesson| progress.note(&lesson.size()));
        progress.begin("pre-training", "seconds", Some(end as u64));
        let mut gradients = Gradients::new(&self.universal.parameters);
        let begun = self.state.seconds;
        let (mut written, mut told, mut ranked) = (begun, begun, begun);
        let mut interrupted = false;
        while self.state.seconds < end && !interrupted {
            let graph = self.next_graph();
            let clock = Instant::now();
            self.turn(graph, &mut gradients)?;
            let seconds = clock.elapsed().as_secs_f64();
            self.state.graphs[graph].seconds += seconds;
            self.state.seconds += seconds;
            progress.advance(self.state.seconds as u64, &self.line());
            let now = self.state.seconds;
            if now - told >= LINE_SECONDS {
                progress.note(&format_args!("{:.0} s, step {}: {}", now, self.state.steps, self.line()));
                told = now;
            }
            if now - written >= CHECKPOINT_SECONDS {
                self.save()?;
                written = now;
            }
            if rank_every > 0.0 && now - ranked >= rank_every && now < end {
                self.rank(progress)?;
                ranked = now;
            }
            interrupted = progress.interrupted();
        }
        self.save()?;
        progress.end(&format_args!("{:.1} minutes, step {}", self.state.seconds / 60.0, self.state.steps));
        Ok(interrupted)
    }

    /// The graph that has had the least time for its share.
    fn next_graph(&self) -> usize {
        let had = |graph: &usize| self.state.graphs[*graph].seconds / self.lessons[*graph].share;
        let least = (0..self.lessons.len()).min_by(|a, b| had(a).total_cmp(&had(b)));
        least.expect("there is a graph to train on")
    }

    /// Some steps on one graph.
    fn turn(&mut self, graph: usize, gradients: &mut Gradients) -> Result<(), UniversalError> {
        let PretrainTask { settings, seed, device, .. } = self.task;
        let turn = self.lessons[graph].turn(self.state.graphs[graph].turns, device)?;
        let mut losses: Vec<Tensor> = Vec::new();
        for number in 0..turn.batches() {
            let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x5bd1_e995);
            random.set_stream(self.state.steps);
            let hide_pairs = (random.next_u64() as f64 / u64::MAX as f64) < settings.hide_pairs;
            let batch = turn.batch(number, hide_pairs, device)?;
            let universal = Arc::get_mut(&mut self.universal).expect(NOT_SHARED);
            let area = universal.network.area(&turn.edge_index, &batch.asks, FrontierBound::All)?;
            let mut tape = Tape::training(&universal.parameters, self.state.steps);
            let scores =
                universal.network.scores(&mut tape, &turn.relations, &batch.links, &mut area.rows()?)?;
            let loss = tape.softmax_loss(scores, &batch.targets, &batch.closed)?;
            losses.push(tape.value(loss));
            tape.backward(loss, gradients)?;
            gradients.clip_norm(settings.clip as f32)?;
            self.adam.set_learning_rate(learning_rate(settings, &self.state));
            self.adam.step(&mut universal.parameters, gradients)?;
            let state = &mut self.state.graphs[graph];
            (state.steps, state.queries) = (state.steps + 1, state.queries + batch.links.len() as u64);
            self.state.steps += 1;
        }
        self.state.graphs[graph].turns += 1;
        device.synchronise()?;
        for loss in losses {
            let loss = f64::from(loss.number()?);
            if !loss.is_finite() {
                return Err(UniversalError::Diverged { step: self.state.steps });
            }
            self.state.graphs[graph].add_loss(loss, SMOOTH);
        }
        Ok(())
    }

    /// The queries and the loss of every graph.
    fn line(&self) -> String {
        let graphs = self.lessons.iter().zip(&self.state.graphs);
        let parts: Vec<String> = graphs
            .map(|(lesson, state)| {
                format!("{} {} queries, loss {:.3}", lesson.name, state.queries, state.loss)
            })
            .collect();
        parts.join("; ")
    }

    /// Ranks the graphs that are not trained on, and reports their figures.
    fn rank(&self, progress: &dyn Progress) -> Result<Vec<GraphFigures>, UniversalError> {
        let mut all = Vec::new();
        for exam in &self.exams {
            let clock = Instant::now();
            let figures = exam.figures(&self.universal, progress)?;
            let each = 1e3 * clock.elapsed().as_secs_f64() / figures.queries.max(1) as f64;
            let (mrr, ten) = (100.0 * figures.mrr, 100.0 * figures.hits_at_10);
            progress.note(&format_args!(
                "{}: MRR {mrr:.1}, hits@10 {ten:.1}, {} queries, {each:.1} ms each",
                exam.name, figures.queries
            ));
            all.push(GraphFigures { graph: exam.name.clone(), figures });
        }
        if !all.is_empty() {
            let mean = all.iter().map(|one| one.figures.mrr).sum::<f64>() / all.len() as f64;
            progress.note(&format_args!("mean MRR {:.1} over {} graphs", 100.0 * mean, all.len()));
        }
        Ok(all)
    }

    /// Writes the checkpoint and, in half precision, the weights.
    fn save(&self) -> Result<(), UniversalError> {
        let Some(out) = self.task.out else { return Ok(()) };
        self.state.save(&self.task.checkpoint()?, &self.universal, &self.adam)?;
        self.universal.save(out, StoredPrecision::Half)
    }
}

impl PretrainTask<'_> {
    /// Where the checkpoint is: beside the weights.
    fn checkpoint(&self) -> Result<PathBuf, UniversalError> {
        let out = self.out.ok_or(UniversalError::NoOut)?;
        let mut name = out.file_stem().unwrap_or_default().to_owned();
        name.push(".checkpoint.safetensors");
        Ok(out.with_file_name(name))
    }
}

/// The learning rate of the next step: it rises for some steps, then falls with the time spent on training.
fn learning_rate(settings: &PretrainSettings, state: &State) -> f32 {
    let part = (state.seconds / (60.0 * settings.minutes)).min(1.0);
    let wave = 0.5 + 0.5 * (std::f64::consts::PI * part).cos();
    let warm = ((state.steps + 1) as f64 / settings.warm_up.max(1) as f64).min(1.0);
    (settings.learning_rate * warm * wave.max(settings.final_rate)) as f32
}
