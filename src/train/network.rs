//! What a network implements to be trained, and what the harness passes to it.

use super::TrainError;
use crate::eval::Figures;
use crate::progress::{Metric, Progress};
use crate::tensor::{Gradients, Parameters, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A network that [`train`](super::train()) can train.
///
/// Implement it on a struct that borrows the network and holds what else training needs: examples, rules, the
/// [`Validation`](super::Validation). It must be built from the same inputs whenever the training is resumed.
pub trait Trainable {
    /// What can go wrong with this network.
    type Error: From<TrainError>;

    /// The parameters to train. All of them go into checkpoints, together with the optimiser's state.
    fn parameters(&self) -> &Parameters;

    /// The same, mutable.
    fn parameters_mut(&mut self) -> &mut Parameters;

    /// Orders the examples of an epoch (from 0), as a function of the seed and of `epoch` alone. Called before the
    /// epoch's first step, and again if training resumes in the middle of it.
    fn begin_epoch(&mut self, epoch: usize);

    /// Adds the gradients of one batch to `gradients`, and the values for the epoch's record to `sums`. Draws random
    /// numbers from the seed and `place` alone. The harness clips the gradients and runs the optimiser.
    ///
    /// # Errors
    /// Whatever makes the network fail.
    fn step(&mut self, place: Place, gradients: &mut Gradients, sums: &mut Sums) -> Result<(), Self::Error>;

    /// How good the network is on the validation split; the weights with the highest MRR are kept. `None` if the user
    /// interrupted in the meantime. Not called without
    /// [`TrainingPlan::validate_every`](super::TrainingPlan::validate_every).
    ///
    /// # Errors
    /// Whatever makes the network fail.
    fn validate(&self, progress: &dyn Progress) -> Result<Option<Look>, Self::Error>;

    /// The figures of an epoch's record. The harness adds `learning_rate` and the validation figures.
    fn figures(&self, epoch: &EpochEnd<'_>) -> Map<String, Value>;

    /// A short progress line, from the sums of the current epoch or the record of the last.
    fn line(&self, sums: &Sums, last: Option<&Metric>) -> String;
}

/// The position of a step in the training; everything counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The epoch.
    pub epoch: usize,
    /// The batch within the epoch.
    pub batch: usize,
    /// The step, counted over all epochs.
    pub step: u64,
}

/// The outcome of a validation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// The figures; in the record their names have the prefix `valid_`.
    pub figures: Figures,
    /// Further figures of the network; they go into the record unchanged.
    pub more: Map<String, Value>,
}

/// A completed epoch.
#[derive(Clone, Copy)]
pub struct EpochEnd<'a> {
    /// The number of steps taken: fewer than usual if the time was up, or if the last epoch is a fraction.
    pub steps: usize,
    /// Seconds that its steps took.
    pub seconds: f64,
    /// The sums over its steps.
    pub sums: &'a Sums,
}

/// Named sums over the steps of an epoch, and values that persist from step to step over all epochs. They are part of
/// the checkpoint, so steps and records are the same wherever training was interrupted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    totals: BTreeMap<String, f64>,
    remembered: BTreeMap<String, f64>,
    #[serde(skip)]
    unread: Vec<(&'static str, Tensor)>,
}

/// How many values may wait on the device before they are read.
const UNREAD: usize = 128;

impl Sums {
    /// The name of a step's mean loss. If it is not finite, training has diverged.
    pub const LOSS: &'static str = "loss";
    /// The norm of the gradients before clipping, added by the harness. If it is not finite, training has diverged.
    pub const GRADIENT_NORM: &'static str = "gradient norm";

    /// Adds a number.
    pub fn add(&mut self, name: &'static str, value: f64) {
        match self.totals.get_mut(name) {
            Some(total) => *total += value,
            None => drop(self.totals.insert(name.to_owned(), value)),
        }
    }

    /// Adds a number that is still on the device. It is read some steps later, so that this call does not block.
    pub fn add_later(&mut self, name: &'static str, value: Tensor) {
        self.unread.push((name, value));
    }

    /// The sum under `name`; 0 if nothing was added.
    pub fn total(&self, name: &str) -> f64 {
        self.totals.get(name).copied().unwrap_or(0.0)
    }

    /// Remembers a number for later steps, such as a moving average.
    pub fn remember(&mut self, name: &'static str, value: f64) {
        self.remembered.insert(name.to_owned(), value);
    }

    /// The number last remembered under `name`.
    pub fn remembered(&self, name: &str) -> Option<f64> {
        self.remembered.get(name).copied()
    }

    /// Begins the next epoch: clears the sums and keeps the remembered values.
    pub(super) fn next_epoch(&mut self) {
        self.totals.clear();
    }

    /// Reads pending values from the device if there are many.
    pub(super) fn read_some(&mut self, epoch: usize) -> Result<(), TrainError> {
        if self.unread.len() >= UNREAD { self.read(epoch) } else { Ok(()) }
    }

    /// Reads pending values from the device.
    pub(super) fn read(&mut self, epoch: usize) -> Result<(), TrainError> {
        for (name, value) in std::mem::take(&mut self.unread) {
            let value = f64::from(value.number()?);
            if !value.is_finite() && [Self::LOSS, Self::GRADIENT_NORM].contains(&name) {
                return Err(TrainError::Diverged { epoch: epoch + 1, figure: name.to_owned() });
            }
            self.add(name, value);
        }
        Ok(())
    }
}
