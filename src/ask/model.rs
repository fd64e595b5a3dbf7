//! A run opened for questions: its data, its settings, what it learnt, and who answers.

use super::answer::HeldOut;
use super::{AskError, Naming, RunReport};
use crate::config::{Config, Layer, System};
use crate::embed::Embedding;
pub use crate::eval::Split;
use crate::eval::{Protocol, Reasoner, Report, evaluate_split};
use crate::graph::{Dataset, EntityId, Link, Query, Triple};
use crate::plan::Stage;
use crate::progress::Progress;
use crate::reason::{ByEmbedding, ByRules, Explains, path_table};
use crate::rule::ScoredRule;
use crate::run::directory::{BLEND, CONFIG, METRICS, RESULTS};
use crate::run::metrics::{self, Metric};
use crate::run::{Checksum, Learnable, Manifest, RunDirectory, RunError, RunSpec, Stages, stages as load};
use crate::tensor::Device;
use crate::walk::Noting;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A run that can be asked.
pub struct Model {
    directory: RunDirectory,
    pub(super) config: Config,
    pub(super) dataset: Dataset,
    pub(super) learnable: Learnable,
    pub(super) rules: Arc<[ScoredRule]>,
    device: Device,
    seed: u64,
    /// What was put aside and what entities are called, made when the first answer is given.
    pub(super) put_aside: OnceLock<HashMap<Triple, HeldOut>>,
    pub(super) naming: OnceLock<Naming>,
}

impl Model {
    /// Opens the run at `path`; `data` says where its data is now, if it has moved.
    ///
    /// # Errors
    /// If there is no run, it is unfinished, its files are damaged, or its data has changed.
    pub fn open(path: &Path, data: Option<&Path>, device: &Device) -> Result<Self, AskError> {
        let directory = RunDirectory::look_at(path)?;
        let manifest = Manifest::read(&directory)?;
        let text = directory
            .read(CONFIG)?
            .ok_or_else(|| RunError::Broken { path: directory.file(CONFIG), what: "is gone".to_owned() })?;
        let config = Config::from_toml(&text, &directory.file(CONFIG).display().to_string())?;
        let dataset = manifest.dataset(path, data)?;
        let learnable = Learnable::of(&dataset, &config);
        Self::with(directory, config, dataset, learnable, device.clone(), manifest.seed)
    }

    /// The run that `order` has just made.
    pub(super) fn from_parts(
        directory: RunDirectory,
        order: &RunSpec,
        dataset: Dataset,
        learnable: Learnable,
    ) -> Result<Self, AskError> {
        Self::with(directory, order.config.clone(), dataset, learnable, order.device.clone(), order.seed)
    }

    fn with(
        directory: RunDirectory,
        config: Config,
        dataset: Dataset,
        learnable: Learnable,
        device: Device,
        seed: u64,
    ) -> Result<Self, AskError> {
        let stages = Stages::of(&directory)?;
        for stage in Stage::of(&config) {
            stages.expect_whole(stage.name())?;
        }
        let rules = match Stage::of(&config).contains(&Stage::Rules) {
            true => load::mined(&directory, &learnable)?,
            false => Arc::from([]),
        };
        let (put_aside, naming) = (OnceLock::new(), OnceLock::new());
        Ok(Self { directory, config, dataset, learnable, rules, device, seed, put_aside, naming })
    }

    /// Where it is.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Its data.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// From now on the walker keeps so many paths while it searches: fewer are faster, and find less.
    ///
    /// # Errors
    /// If no walker answers here, or no beam can be that wide.
    pub fn set_beam(&mut self, beam: usize) -> Result<(), AskError> {
        if !Stage::of(&self.config).contains(&Stage::Training) {
            return Err(AskError::Name("no walker answers here, so there is no beam to set".to_owned()));
        }
        self.config = self.config.with(&Layer::from_pairs([format!("walk.beam={beam}").as_str()])?)?;
        Ok(())
    }

    /// Whether the graph has any fact about `entity`; nothing leads from one that it has not.
    pub fn has_facts(&self, entity: EntityId) -> bool {
        let graph = &self.learnable.graph;
        (0..graph.links() as u32).any(|link| !graph.targets(entity, Link(link)).is_empty())
    }

    /// Where its tensors live.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The seed of every random choice in it.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Its rules.
    pub fn rules(&self) -> &[ScoredRule] {
        &self.rules
    }

    /// Whether it has learnt the validation split, so that figures on it say nothing.
    pub fn valid_is_learnt(&self) -> bool {
        self.learnable.valid_learnt
    }

    /// The checksum of what it was learnt from.
    pub fn checksum(&self) -> &Checksum {
        &self.learnable.checksum
    }

    /// What the run came to.
    ///
    /// # Errors
    /// If it has not come to its end, or the file is damaged.
    pub fn results(&self) -> Result<RunReport, AskError> {
        let Some(text) = self.directory.read(RESULTS)? else {
            let missing = RunError::Missing {
                path: self.directory.path().to_owned(),
                what: "results".to_owned(),
                remedy: "run the same `ruleguider run` again to finish it".to_owned(),
            };
            return Err(missing.into());
        };
        let broken = |error| RunError::Broken {
            path: self.directory.file(RESULTS),
            what: format!("is damaged ({error})"),
        };
        Ok(serde_json::from_str(&text).map_err(broken)?)
    }

    /// Its learning curves.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn metrics(&self) -> Result<Vec<Metric>, AskError> {
        Ok(metrics::read(&self.directory.file(METRICS))?)
    }

    /// The embedding model of the run, if it has trained one.
    ///
    /// # Errors
    /// If it is there and cannot be loaded.
    pub(super) fn embedding(&self) -> Result<Option<Embedding>, AskError> {
        let Self { directory, learnable, config, device, .. } = self;
        match Stage::of(config).contains(&Stage::Embeddings) {
            true => Ok(Some(load::load_embedding(directory, learnable, device)?)),
            false => Ok(None),
        }
    }

    /// Who answers in this run.
    ///
    /// # Errors
    /// If what was learnt cannot be loaded.
    pub fn reasoner(&self) -> Result<Box<dyn Explains + '_>, AskError> {
        let Self { directory, learnable, config, device, .. } = self;
        Ok(match config.system {
            System::Rules => {
                Box::new(ByRules::new(&learnable.graph, self.rules.clone(), config.rules.apply_options()))
            }
            System::Embedding => {
                let embedding = load::load_embedding(directory, learnable, device)?;
                Box::new(ByEmbedding::new(embedding, &learnable.graph))
            }
            System::Walker => {
                Box::new(load::load_walker(directory, learnable, &config.walk, &self.rules, device)?)
            }
            System::Blend => {
                let broken = |what: String| RunError::Broken { path: directory.file(BLEND), what };
                let text = directory.read(BLEND)?.ok_or_else(|| broken("is gone".to_owned()))?;
                let recipe =
                    serde_json::from_str(&text).map_err(|error| broken(format!("is damaged ({error})")))?;
                Box::new(load::load_blend(directory, learnable, config, &recipe, &self.rules, device)?)
            }
        })
    }

    /// Ranks the test split, and says for what share of its queries the path of the top answer is a rule; none where
    /// nothing walks.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn test(
        &self,
        reasoner: &dyn Explains,
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<(Report, Option<f64>), AskError> {
        let Some(walker) = reasoner.walker() else {
            return Ok((self.evaluate(reasoner.reasoner(), Split::Test, protocol, progress)?, None));
        };
        let rules = path_table(&self.rules, self.config.walk.hops, self.config.rules.threshold);
        let noting = Noting::new(walker, &rules);
        let report = self.evaluate(&noting, Split::Test, protocol, progress)?;
        let asked: Vec<Query> = protocol.side.asked(&self.dataset.test).map(|(query, _)| query).collect();
        Ok((report, Some(noting.share(&asked))))
    }

    /// Ranks the true answers of a split.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn evaluate(
        &self,
        reasoner: &dyn Reasoner,
        split: Split,
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<Report, AskError> {
        Ok(evaluate_split(reasoner, &self.dataset, split, &self.learnable.graph, protocol, progress)?)
    }
}
