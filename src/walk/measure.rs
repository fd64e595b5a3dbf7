//! Profiles a batch by part, for benchmarks.
//!
//! A [`Watch`] that is off costs nothing. One that is on synchronises with the device at every lap, so that time is
//! attributed to the right part; the laps then add up to a little more than an unprofiled batch takes.

use super::episode::{Lesson, Moment, Phase};
use super::layer::Layer;
use super::reward::Teacher;
use super::world::Ask;
use super::{NetworkError, Walker};
use crate::graph::{Direction, Known, Query};
use crate::tensor::{Adam, AdamOptions, Device, Gradients, Tape};
use serde::Serialize;
use std::time::Instant;

/// A part of a batch's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchPart {
    /// The LSTMs of both agents.
    Memory,
    /// The lists of open actions.
    Candidates,
    /// The heads of both agents and the distributions over links and candidates.
    LogProbs,
    /// Sampling actions and copying them to the host.
    Draws,
    /// Finding the distinct states of the next hop.
    Sharing,
    /// Rules and soft rewards.
    Rewards,
    /// The backward pass.
    Backward,
    /// Clipping and the optimiser's step.
    Update,
}

impl BatchPart {
    /// All parts in the order of a batch.
    pub const ALL: [BatchPart; 8] = [
        BatchPart::Memory,
        BatchPart::Candidates,
        BatchPart::LogProbs,
        BatchPart::Draws,
        BatchPart::Sharing,
        BatchPart::Rewards,
        BatchPart::Backward,
        BatchPart::Update,
    ];
}

/// The distinct states of one hop, and their candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HopSize {
    /// Entity states.
    pub states: usize,
    /// Relation histories.
    pub histories: usize,
    /// Histories with their query.
    pub heads: usize,
    /// Candidates of all entity states.
    pub candidates: usize,
}

/// The profile of a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Seconds of each part, in the order of [`BatchPart::ALL`].
    pub seconds: [f64; 8],
    /// The sizes of the hops.
    pub hops: Vec<HopSize>,
}

/// Accumulates time by part, if it is on.
pub(super) struct Watch {
    device: Option<Device>,
    since: Instant,
    measured: Measured,
}

impl Watch {
    pub(super) fn off() -> Self {
        Self { device: None, since: Instant::now(), measured: Measured::default() }
    }

    fn on(device: &Device) -> Self {
        Self { device: Some(device.clone()), ..Self::off() }
    }

    /// Adds the time since the last lap to a part.
    pub(super) fn lap(&mut self, part: BatchPart) -> Result<(), NetworkError> {
        if let Some(device) = &self.device {
            device.synchronise()?;
            self.measured.seconds[part as usize] += self.since.elapsed().as_secs_f64();
            self.since = Instant::now();
        }
        Ok(())
    }

    pub(super) fn size(&mut self, layer: &Layer, candidates: usize) {
        if self.device.is_some() {
            self.measured.hops.push(HopSize {
                states: layer.states(),
                histories: layer.history_links.len(),
                heads: layer.head_histories.len(),
                candidates,
            });
        }
    }
}

/// Times training batches: as a whole, as they run in training, or part by part.
pub struct Timing<'a> {
    walker: &'a mut Walker,
    teacher: Teacher<'a>,
    asks: Vec<Ask>,
    adam: Adam,
    gradients: Gradients,
    next: usize,
}

impl<'a> Timing<'a> {
    /// Times batches drawn evenly from the training queries of `known`.
    pub fn new(walker: &'a mut Walker, known: &Known, teacher: Teacher<'a>) -> Self {
        let count = known.queries.len().max(1);
        // A step that is coprime to the count visits every query, each far from the previous one.
        let step = (count / 2..count).rev().find(|&step| common_factor(step, count) == 1).unwrap_or(1);
        let asks = (0..known.queries.len()).map(|index| {
            let (query, target) = Query::of(known.queries[index * step % count], Direction::Forward);
            Ask { query, target: Some(target) }
        });
        let asks = asks.collect();
        let options = AdamOptions { learning_rate: walker.config.learning_rate, ..AdamOptions::default() };
        let gradients = Gradients::new(&walker.parameters);
        Self { walker, teacher, asks, adam: Adam::new(options), gradients, next: 0 }
    }

    /// Trains `batches` batches and returns the mean seconds per batch.
    ///
    /// # Errors
    /// If the device or the soft reward fails.
    pub fn run(&mut self, phase: Phase, batches: usize) -> Result<f64, NetworkError> {
        let device = self.walker.parameters.device().clone();
        device.synchronise()?;
        let begun = Instant::now();
        for _ in 0..batches {
            self.batch(phase, &mut Watch::off())?;
        }
        device.synchronise()?;
        Ok(begun.elapsed().as_secs_f64() / batches.max(1) as f64)
    }

    /// One more batch, part by part.
    ///
    /// # Errors
    /// If the device or the soft reward fails.
    pub fn watched(&mut self, phase: Phase) -> Result<Measured, NetworkError> {
        let device = self.walker.parameters.device().clone();
        device.synchronise()?;
        let mut watch = Watch::on(&device);
        self.batch(phase, &mut watch)?;
        Ok(watch.measured)
    }

    fn batch(&mut self, phase: Phase, watch: &mut Watch) -> Result<(), NetworkError> {
        let Walker { config, world, network, parameters } = &mut *self.walker;
        let size = config.batch.min(self.asks.len());
        if self.next + size > self.asks.len() {
            self.next = 0;
        }
        let asks = &self.asks[self.next..self.next + size];
        self.next += size;
        let moment = Moment::of(config, 0, 0.0);
        let lesson = Lesson { config, world, network, teacher: self.teacher, phase, moment };
        let mut tape = Tape::training(parameters, self.adam.steps().into());
        let episode = lesson.episode(&mut tape, asks, None, watch)?;
        tape.backward(episode.loss, &mut self.gradients)?;
        watch.lap(BatchPart::Backward)?;
        self.gradients.clip_norm(if config.clip > 0.0 { config.clip } else { f32::INFINITY })?;
        self.adam.step(parameters, &mut self.gradients)?;
        watch.lap(BatchPart::Update)
    }
}

fn common_factor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_factor(b, a % b) }
}
