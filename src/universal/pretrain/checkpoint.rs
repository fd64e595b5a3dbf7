//! The state of a pre-training, in memory and in its checkpoint: weights, optimiser, and what was done so far.

use super::lesson::INVENTED;
use super::settings::PretrainSettings;
use crate::tensor::{Adam, Archive, Device};
use crate::universal::{Universal, UniversalError};
use serde::{Deserialize, Serialize};
use std::path::Path;

const STATE: &str = "pretrain.state";

/// What was done on one graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GraphState {
    /// Its path in the settings, by which it is found again.
    path: String,
    pub(super) seconds: f64,
    pub(super) steps: u64,
    pub(super) queries: u64,
    /// The variants of it that were trained on.
    #[serde(default)]
    pub(super) turns: u64,
    /// A moving average of its loss, and over how many steps.
    pub(super) loss: f64,
    averaged: u64,
}

impl GraphState {
    /// Takes in the loss of a step; the first ones weigh more, so that the average does not begin at 0.
    pub(super) fn add_loss(&mut self, loss: f64, over: f64) {
        self.averaged += 1;
        let weight = (1.0 / over).max(1.0 / self.averaged as f64);
        self.loss += weight * (loss - self.loss);
    }
}

/// What was done so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) steps: u64,
    /// Seconds of training, without rankings.
    pub(super) seconds: f64,
    /// In the order of the settings.
    pub(super) graphs: Vec<GraphState>,
}

impl State {
    pub(super) fn new(settings: &PretrainSettings) -> State {
        State::default().with_graphs(settings)
    }

    /// The same for the graphs of `settings`: those that were trained on before go on, new ones begin. A new graph
    /// begins as far as the others are, or it would have all the time until it has caught up.
    fn with_graphs(mut self, settings: &PretrainSettings) -> State {
        let old = std::mem::take(&mut self.graphs);
        let graphs = settings.train.iter().map(|spec| (spec.path.display().to_string(), spec.share));
        let invented = settings.invented.iter().map(|spec| (INVENTED.to_owned(), spec.share));
        let wanted: Vec<(String, f64)> = graphs.chain(invented).collect();
        let begun = wanted.iter().filter_map(|(path, share)| Some(find(&old, path)?.seconds / share));
        let level = begun.fold(f64::INFINITY, f64::min);
        let level = if level.is_finite() { level } else { 0.0 };
        let of = |(path, share): (String, f64)| {
            let begun = find(&old, &path).cloned();
            begun.unwrap_or_else(|| GraphState { path, seconds: level * share, ..GraphState::default() })
        };
        self.graphs = wanted.into_iter().map(of).collect();
        self
    }

    /// Writes a checkpoint, atomically.
    pub(super) fn save(&self, path: &Path, universal: &Universal, adam: &Adam) -> Result<(), UniversalError> {
        let mut archive = universal.to_archive()?;
        adam.store(&universal.parameters, &mut archive)?;
        archive.set_metadata(STATE, &serde_json::to_string(self).expect("numbers and names"));
        Ok(archive.write(path)?)
    }

    /// Reads a checkpoint into `adam`; returns the weights and the state.
    pub(super) fn load(
        path: &Path,
        settings: &PretrainSettings,
        device: &Device,
        adam: &mut Adam,
    ) -> Result<(Universal, State), UniversalError> {
        let archive = Archive::read(path)?;
        let wrong = |why: String| UniversalError::Weights { path: path.to_owned(), why };
        let universal = Universal::from_archive(&archive, path, device)?;
        let state =
            archive.metadata(STATE).ok_or_else(|| wrong("is not a checkpoint of `pretrain`".into()))?;
        let state: State = serde_json::from_str(state).map_err(|error| wrong(error.to_string()))?;
        adam.load(&universal.parameters, &archive)?;
        Ok((universal, state.with_graphs(settings)))
    }
}

fn find<'a>(graphs: &'a [GraphState], path: &str) -> Option<&'a GraphState> {
    graphs.iter().find(|graph| graph.path == path)
}
