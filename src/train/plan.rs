//! The description of a training.

use super::{LearningRate, Place};
use crate::fnv::Fnv;
use crate::graph::Triple;
use crate::tensor::AdamOptions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How to train a network.
#[derive(Clone, Debug)]
pub struct TrainingPlan<'a> {
    /// The name in records: the value of [`Metric::stage`](crate::progress::Metric::stage).
    pub stage: &'a str,
    /// The name on the screen.
    pub title: String,
    /// Steps of an epoch.
    pub epoch_steps: usize,
    /// The total number of steps; the last epoch may be a fraction.
    pub steps: usize,
    /// The optimiser; its learning rate is set by `learning_rate` before every step.
    pub adam: AdamOptions,
    /// The learning rate of every step.
    pub learning_rate: LearningRate,
    /// The norm to clip the gradients to; infinite to record the norms without clipping. `None` computes no norms.
    pub clip: Option<f32>,
    /// Epochs between two validations; the last epoch is always validated. `None` keeps the last weights.
    pub validate_every: Option<usize>,
    /// How many validations without a better MRR end the training; 0 for never.
    pub patience: usize,
    /// The folder for checkpoints, from which a stopped training resumes. `None` writes nothing.
    pub folder: Option<&'a Path>,
    /// The longest time between two checkpoints.
    pub checkpoint_every: Duration,
    /// What a checkpoint depends on.
    pub checkpoint_key: CheckpointKey,
}

impl TrainingPlan<'_> {
    /// The default time between checkpoints: the most work that a kill can cost.
    pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(120);

    /// The total number of epochs, counting a fraction as one.
    pub(super) fn epochs(&self) -> usize {
        if self.epoch_steps == 0 { 0 } else { self.steps.div_ceil(self.epoch_steps) }
    }

    /// The number of steps in this epoch.
    pub(super) fn steps_of(&self, epoch: usize) -> usize {
        self.epoch_steps.min(self.steps.saturating_sub(epoch * self.epoch_steps))
    }

    pub(super) fn place(&self, epoch: usize, batch: usize) -> Place {
        Place { epoch, batch, step: (epoch * self.epoch_steps + batch) as u64 }
    }
}

/// What a training's next step depends on besides its checkpoint: settings, data, seed, each by name. A training
/// resumes only from a checkpoint with the same key. Leave out values that may change, such as the number of epochs
/// if the learning rate does not depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointKey(BTreeMap<String, String>);

impl CheckpointKey {
    /// Adds a value called `name`.
    #[must_use]
    pub fn value(mut self, name: &str, value: &impl Serialize) -> Self {
        let text = serde_json::to_string(value).expect("keys are made from plain data");
        self.0.insert(name.to_owned(), text);
        self
    }

    /// Adds every field of `settings`, each under its own name after `prefix`.
    #[must_use]
    pub fn settings(mut self, prefix: &str, settings: &impl Serialize) -> Self {
        let Ok(Value::Object(fields)) = serde_json::to_value(settings) else {
            return self.value(prefix, settings);
        };
        self.0.extend(fields.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value.to_string())));
        self
    }

    /// Adds a checksum of `triples`, called `name`.
    #[must_use]
    pub fn triples(self, name: &str, triples: &[Triple]) -> Self {
        // Detects mistakes, not attacks.
        let mut sum = Fnv::new();
        for id in triples.iter().flat_map(|triple| [triple.head.0, triple.relation.0, triple.tail.0]) {
            sum.add(&id.to_le_bytes());
        }
        self.value(name, &format!("{} triples, {:016x}", triples.len(), sum.value()))
    }

    /// The first name whose value differs in `other`.
    pub(super) fn difference<'a>(&'a self, other: &'a CheckpointKey) -> Option<&'a str> {
        let names = self.0.keys().chain(other.0.keys());
        names.filter(|name| self.0.get(*name) != other.0.get(*name)).min().map(String::as_str)
    }
}
