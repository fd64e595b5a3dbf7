//! What to pre-train on, and how: plain values with documented defaults, read from TOML; unknown keys are refused.

use crate::settings::{WrongValue, expect, number, whole};
use crate::universal::{UniversalError, UniversalSettings};
use serde::{Deserialize, Serialize};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// Which part of a data set is ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RankedSplit {
    /// The validation split.
    Valid,
    /// The test split.
    #[default]
    Test,
}

/// A graph to train on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingGraph {
    /// Its folder or file, relative to the folder of all data.
    pub path: PathBuf,
    /// Its share of the time, relative to those of the others.
    #[serde(default = "one")]
    pub share: f64,
    /// Queries of a step.
    #[serde(default = "sixteen")]
    pub batch: usize,
}

/// A graph to answer over without training on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankedGraph {
    /// Its folder or file, relative to the folder of all data.
    pub path: PathBuf,
    /// Which split is ranked.
    #[serde(default)]
    pub split: RankedSplit,
}

/// Graphs with rules, drawn at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InventedGraphs {
    /// Their share of the time, relative to those of the graphs that are read.
    pub share: f64,
    /// Queries of a step.
    #[serde(default = "sixteen")]
    pub batch: usize,
}

/// Every turn trains on a variant of a graph. How often variants differ from the graph, and by how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variety {
    /// The largest share of the facts that is left out, drawn anew for every variant; it is asked for facts of these.
    pub thin: f64,
    /// The share of variants that are the surroundings of a few entities.
    pub part: f64,
    /// The share of variants that have some of the relations only.
    pub relations: f64,
    /// The share of variants in which some relations are two in one, and some are the halves of one.
    pub recut: f64,
}

impl Default for Variety {
    fn default() -> Self {
        Variety { thin: 0.3, part: 0.5, relations: 0.4, recut: 0.3 }
    }
}

impl Variety {
    /// The least share of the facts that is left out.
    pub const THINNEST: f64 = 0.05;

    fn check(&self) -> Result<(), WrongValue> {
        number("thin", self.thin, Variety::THINNEST..=0.9)?;
        let shares = [("part", self.part), ("relations", self.relations), ("recut", self.recut)];
        shares.into_iter().try_for_each(|(name, share)| number(name, share, 0.0..=1.0))
    }
}

fn one() -> f64 {
    1.0
}

fn sixteen() -> usize {
    16
}

/// Everything that can be chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PretrainSettings {
    /// Minutes of training in total, over all invocations: the learning rate falls along half a cosine over them.
    pub minutes: f64,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// The final learning rate, as a fraction of the highest.
    pub final_rate: f64,
    /// Steps in which the learning rate rises from 0.
    pub warm_up: u64,
    /// By what a step shrinks all weights, times the learning rate (AdamW).
    pub weight_decay: f64,
    /// The largest norm of the gradients of a step.
    pub clip: f64,
    /// The share of batches in which all links between subject and answer are hidden, not only the fact asked for.
    /// Without such batches the network learns to copy links, with nothing else it learns that linked pairs are wrong.
    pub hide_pairs: f64,
    /// How the variants of a graph differ from it and from each other.
    pub variety: Variety,
    /// Consecutive steps on one variant of a graph. Longer turns prepare fewer variants.
    pub turn: usize,
    /// Minutes of training between two rankings of the graphs in `ranked`; 0 ranks them at the end only.
    pub rank_every: f64,
    /// The most queries that are ranked over each graph, half of them in either direction; 0 for all.
    pub ranked_queries: usize,
    /// The size of the networks, for training from random weights.
    pub network: UniversalSettings,
    /// The graphs to train on.
    pub train: Vec<TrainingGraph>,
    /// Graphs that are invented, a new one for every turn; they have a share of the time like the others.
    pub invented: Option<InventedGraphs>,
    /// The graphs to rank.
    pub ranked: Vec<RankedGraph>,
}

impl Default for PretrainSettings {
    fn default() -> Self {
        PretrainSettings {
            minutes: 25.0,
            learning_rate: 2e-3,
            final_rate: 0.02,
            warm_up: 300,
            weight_decay: 1e-4,
            clip: 1.0,
            hide_pairs: 0.4,
            variety: Variety::default(),
            turn: 16,
            rank_every: 0.0,
            ranked_queries: 240,
            network: UniversalSettings::default(),
            train: Vec::new(),
            invented: None,
            ranked: Vec::new(),
        }
    }
}

impl PretrainSettings {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// If it cannot be read, has an unknown key, or a value is out of range.
    pub fn read(path: &Path) -> Result<Self, UniversalError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| UniversalError::File { path: path.to_owned(), source })?;
        let settings: PretrainSettings = toml::from_str(&text)
            .map_err(|error| UniversalError::Settings { path: path.to_owned(), why: error.to_string() })?;
        settings.check()?;
        Ok(settings)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// If one is out of range.
    pub fn check(&self) -> Result<(), WrongValue> {
        self.network.check().map_err(|wrong| wrong.in_group("network"))?;
        let positive = (Bound::Excluded(0.0), Bound::Unbounded);
        number("minutes", self.minutes, positive)?;
        number("learning_rate", self.learning_rate, positive)?;
        number("final_rate", self.final_rate, 0.0..=1.0)?;
        number("weight_decay", self.weight_decay, 0.0..=1.0)?;
        number("clip", self.clip, positive)?;
        number("hide_pairs", self.hide_pairs, 0.0..=1.0)?;
        self.variety.check().map_err(|wrong| wrong.in_group("variety"))?;
        number("rank_every", self.rank_every, 0.0..)?;
        whole("turn", self.turn, 1..)?;
        for graph in &self.train {
            number("share", graph.share, positive).map_err(|wrong| wrong.in_group("train"))?;
            whole("batch", graph.batch, 1..=4096).map_err(|wrong| wrong.in_group("train"))?;
        }
        if let Some(invented) = &self.invented {
            number("share", invented.share, positive).map_err(|wrong| wrong.in_group("invented"))?;
            whole("batch", invented.batch, 1..=4096).map_err(|wrong| wrong.in_group("invented"))?;
        }
        let alike =
            |index: usize| self.train[..index].iter().any(|other| other.path == self.train[index].path);
        expect(!(0..self.train.len()).any(alike), "train", "every graph once", "a graph twice")
    }
}
