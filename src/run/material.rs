//! What a learning stage may see. There is no test split in it, so no stage can use one.

use super::mirror::Mirror;
use super::{Checksum, FirstRun, RunDirectory, RunError, Warm};
use crate::config::{Config, LearnValid};
use crate::graph::{Dataset, Graph, Known, Names};
use crate::reason::of_first_relations;
use std::path::PathBuf;
use std::sync::Arc;

/// The data that is learnt from: the facts as a graph, training queries, validation split and names.
#[derive(Clone)]
pub struct Learnable {
    /// The names behind the ids.
    pub names: Arc<Names>,
    /// Facts, training queries, validation split.
    pub known: Known,
    /// The same with the validation split held out, for choosing settings.
    pub tuning: Known,
    /// The facts as a graph.
    pub graph: Arc<Graph>,
    /// Whether the validation split is among the facts and so cannot be used to choose anything.
    pub valid_learnt: bool,
    /// The checksum of all of it.
    pub checksum: Checksum,
    /// The names without the relations that were not learnt, where there are such: on another graph than the one that was
    /// learnt from. Those that were come first in [`names`](Self::names).
    pub learnt: Option<Arc<Names>>,
}

impl Learnable {
    /// The part of `dataset` that may be learnt from, according to `config`; `sum` is the checksum of its [`Known`].
    pub fn of(dataset: &Dataset, config: &Config, sum: Checksum) -> Self {
        let tuning = dataset.known.clone();
        let (known, valid_learnt) = match config.data.learn_valid {
            LearnValid::Auto => (tuning.for_test(), tuning.has_own_graph()),
            LearnValid::Always => (tuning.with_valid_learnt(), true),
            LearnValid::Never => (tuning.clone(), false),
            LearnValid::Queries => (tuning.with_valid_as_queries(), true),
        };
        let is_same = known.facts.is_same(&tuning.facts) && known.queries.is_same(&tuning.queries);
        let checksum = if is_same { sum } else { Checksum::of_known(&dataset.names, &known) };
        let graph = dataset.graph_of(&known);
        let names = dataset.names.clone();
        Self { graph, names, known, tuning, valid_learnt, checksum, learnt: None }
    }

    /// How many relations were learnt, if there are others.
    pub fn learnt_beside_others(&self) -> Option<usize> {
        self.learnt.as_ref().map(|names| names.relations.len())
    }

    /// The same without relations that were not learnt.
    pub(super) fn of_learnt(&self) -> Self {
        let Some(names) = self.learnt.clone() else { return self.clone() };
        let graph = Arc::new(of_first_relations(&self.graph, names.relations.len()));
        Self { graph, names, learnt: None, ..self.clone() }
    }
}

/// The inputs of a stage beside the artifacts of earlier stages.
#[derive(Clone, Copy)]
pub struct Material<'a> {
    /// The seed of every random choice.
    pub seed: u64,
    /// Where the stage leaves its files.
    pub directory: &'a RunDirectory,
    /// The inputs that a checkpoint must have been made from, or the stage does not resume from it.
    pub inputs: &'a Checksum,
    /// The first run, if this is the second run and no held-out data is left to choose by.
    pub first: Option<&'a FirstRun>,
    /// The run on an earlier version of the data whose weights the stage starts from.
    pub warm: Option<&'a Warm>,
    /// Receives progress and training records.
    pub progress: &'a Mirror<'a>,
}

impl Material<'_> {
    /// The content of `file` in the first run, if there is a first run.
    ///
    /// # Errors
    /// If the file cannot be read or is missing.
    pub fn taken_over(&self, file: &str) -> Result<Option<String>, RunError> {
        let Some(first) = self.first else { return Ok(None) };
        let directory = RunDirectory::look_at(&first.path)?;
        let text = directory.read(file)?;
        let gone = || RunError::Broken { path: directory.file(file), what: "is missing".to_owned() };
        text.ok_or_else(gone).map(Some)
    }

    /// The folder for checkpoints of the stage called `name`, created if needed. Checkpoints made from other inputs
    /// are stale and are removed.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn checkpoints(&self, name: &str) -> Result<PathBuf, RunError> {
        let all = self.directory.file("checkpoints");
        let own = all.join(format!("{name}-{}", self.inputs.short()));
        std::fs::create_dir_all(&own).map_err(RunError::writing(&own))?;
        let prefix = format!("{name}-");
        for entry in std::fs::read_dir(&all).map_err(RunError::reading(&all))? {
            let path = entry.map_err(RunError::reading(&all))?.path();
            let stem = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let sum = stem.strip_prefix(&prefix);
            if path != own
                && sum.is_some_and(|sum| sum.len() == self.inputs.short().len() && !sum.contains('-'))
            {
                std::fs::remove_dir_all(&path).map_err(|source| RunError::Io {
                    path,
                    action: "removed",
                    source,
                })?;
            }
        }
        Ok(own)
    }
}
