//! How the training of a member went: the figures that other code reads, and those that are only shown.

use super::RuleChanges;
use crate::train::{LastMinute, TrainingSummary};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The epochs of an update, as a fraction of those that were best before.
const UPDATE_EPOCHS: f64 = 0.5;

/// How the training of a member went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Epochs trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,
    /// The epoch whose weights were kept, where a validation split chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestEpoch>,
    /// How much better it became in the last minute of its training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_minute: Option<LastMinute>,
    /// Whether its training ended before all its epochs, because of the time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_time: bool,
    /// How many parameters it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<usize>,
    /// The share of the walker's paths that follow a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_share: Option<f64>,
    /// What became of earlier rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<RuleChanges>,
    /// What each member of a blend adds to the others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adds: BTreeMap<String, Added>,
    /// Figures that are shown and that no code depends on.
    #[serde(flatten)]
    pub shown: Map<String, Value>,
}

/// What a member of a blend adds to the others on the validation split.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Added {
    /// The MRR that it adds.
    pub mrr: f64,
    /// The standard error of that.
    pub error: Option<f64>,
    /// Whether it has a weight in the blend.
    pub kept: bool,
}

/// The epoch whose weights were kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestEpoch {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Its MRR on the validation split.
    pub mrr: Option<f64>,
}

impl MemberReport {
    /// The fields of `figures`, of which those that code depends on have a type of their own.
    pub fn of(figures: &impl Serialize) -> Self {
        let figures = serde_json::to_value(figures).and_then(serde_json::from_value);
        figures.expect("figures are plain data, and typed ones have their own names")
    }

    /// The same with the length of a training and what it brought.
    pub fn trained(self, summary: &TrainingSummary) -> Self {
        let best = summary.best.map(|best| BestEpoch { epoch: best.epoch, mrr: Some(best.figures.mrr) });
        let (last_minute, out_of_time) = (summary.last_minute(), summary.out_of_time);
        Self { epochs: Some(summary.epochs), best, last_minute, out_of_time, ..self }
    }

    /// The figures as another type with the same fields.
    ///
    /// # Errors
    /// If a field is missing.
    pub fn read_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(serde_json::to_value(self)?)
    }

    /// The number of epochs that was best, at least 1: the epoch that was kept, or all of them without validation.
    pub fn best_epoch(&self) -> Option<usize> {
        self.best.map(|best| best.epoch).or(self.epochs).map(|epochs| epochs.max(1))
    }
}

/// The number of epochs of an update, if `epochs` were best before.
pub(crate) fn halved(epochs: usize) -> usize {
    ((epochs as f64 * UPDATE_EPOCHS).ceil() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_can_be_read_whoever_names_the_figures() {
        let (history, seconds, step_seconds) = (Vec::new(), 2.0, 1.0);
        let out_of_time = true;
        let summary = TrainingSummary { epochs: 5, best: None, history, seconds, step_seconds, out_of_time };
        let figures = json!({ "epochs": 4, "loss": 0.5 });
        let outcome = MemberReport { parameters: Some(7), ..MemberReport::of(&figures) }.trained(&summary);
        let text = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<MemberReport>(&text).unwrap(), outcome);
        assert_eq!((outcome.epochs, outcome.shown["loss"].as_f64()), (Some(5), Some(0.5)));
    }
}
