//! The artifacts of a run, in memory: passed from stage to stage, or loaded from a file once.

use super::checksum::Summed;
use super::directory::{BLEND, CALIBRATION, EMBEDDING, PROPAGATOR, RULES, WALKER};
use super::material::Learnable;
use super::{Checksum, RunError};
use crate::config::{BlendConfig, Config, System};
use crate::embed::{Embedding, ModelKind};
use crate::eval::calibration::Calibration;
use crate::plan::Stage;
use crate::propagate::Propagator;
use crate::reason::{Blend, ByEmbedding, ByPropagator, ByRules, ByWalker, Explains, Members, Recipe};
use crate::rule::{RuleFile, ScoredRule};
use crate::tensor::{Archive, Device};
use crate::walk::Walker;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The artifacts of one run. Artifacts made by this process are stored here; those of an earlier process are loaded on
/// first use.
pub struct Artifacts {
    directory: PathBuf,
    /// The expected checksum of each file that has not been verified yet.
    sums: BTreeMap<String, Checksum>,
    /// What was learnt from.
    pub learnable: Learnable,
    /// The settings.
    pub config: Config,
    /// The device of its tensors.
    pub device: Device,
    rules: OnceLock<Rules>,
    applied: OnceLock<Arc<ByRules>>,
    embedding: OnceLock<Arc<Embedding>>,
    walker: OnceLock<Arc<Walker>>,
    propagator: OnceLock<Arc<Propagator>>,
    recipe: OnceLock<Recipe>,
    calibration: OnceLock<Option<Calibration>>,
}

/// The rules of a run, and how many rules of its file name an entity that the graph lacks.
struct Rules {
    rules: Arc<[ScoredRule]>,
    unknown: usize,
}

impl Artifacts {
    /// The artifacts of the run in `directory`, none of them loaded yet.
    pub fn new(directory: &Path, learnable: Learnable, config: Config, device: Device) -> Self {
        Self {
            directory: directory.to_owned(),
            sums: BTreeMap::new(),
            learnable,
            config,
            device,
            rules: OnceLock::new(),
            applied: OnceLock::new(),
            embedding: OnceLock::new(),
            walker: OnceLock::new(),
            propagator: OnceLock::new(),
            recipe: OnceLock::new(),
            calibration: OnceLock::new(),
        }
    }

    /// Verifies the checksum of every file while it is read.
    pub fn expecting(mut self, sums: impl IntoIterator<Item = (String, Checksum)>) -> Self {
        self.sums.extend(sums);
        self
    }

    /// Reads a file of the run with `read` and verifies its checksum in the same pass. A file that has changed since
    /// its stage wrote it is reported as changed, even if `read` fails on it.
    fn read<T>(
        &self,
        file: &str,
        read: impl FnOnce(&mut dyn Read, &Path) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let path = self.directory.join(file);
        let opened = File::open(&path).map_err(RunError::reading(&path))?;
        let Some(sum) = self.sums.get(file) else { return read(&mut &opened, &path) };
        let mut source = Summed::new(opened);
        let made = read(&mut source, &path);
        let found = source.finish().map_err(RunError::reading(&path))?;
        if found == *sum { made } else { Err(RunError::changed(path)) }
    }

    fn archive(&self, file: &str) -> Result<Archive, RunError> {
        self.read(file, |source, path| Ok(Archive::read_from(source, path)?))
    }

    /// Whether the run has this stage.
    pub fn has(&self, stage: Stage) -> bool {
        Stage::of(&self.config).contains(&stage)
    }

    /// The rules of the run; none if it mines none.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn rules(&self) -> Result<&Arc<[ScoredRule]>, RunError> {
        Ok(&self.read_rules()?.rules)
    }

    /// How many rules name an entity that the graph lacks, if it is not the graph that they were mined from.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn rules_left_out(&self) -> Result<usize, RunError> {
        Ok(self.read_rules()?.unknown)
    }

    fn read_rules(&self) -> Result<&Rules, RunError> {
        once(&self.rules, || {
            if !self.has(Stage::Rules) {
                return Ok(Rules { rules: Arc::from([]), unknown: 0 });
            }
            let names = &self.learnable.names;
            let file = self.read(RULES, |source, path| Ok(RuleFile::read_from(source, path, names)?))?;
            Ok(Rules { rules: file.rules.into(), unknown: file.unknown })
        })
    }

    /// The rules as they are applied to the graph.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn applied(&self) -> Result<&Arc<ByRules>, RunError> {
        once(&self.applied, || {
            let options = self.config.rules.apply_options();
            Ok(Arc::new(ByRules::new(&self.learnable.graph, self.rules()?.clone(), options)))
        })
    }

    /// The embedding model.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn embedding(&self) -> Result<&Arc<Embedding>, RunError> {
        once(&self.embedding, || {
            let (path, names) = (self.directory.join(EMBEDDING), &self.learnable.names);
            let (archive, kind) = (self.archive(EMBEDDING)?, ModelKind::default());
            Ok(Arc::new(Embedding::from_archive(&archive, &path, names, kind, &self.device)?))
        })
    }

    /// The walker, searching as the settings say.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn walker(&self) -> Result<&Arc<Walker>, RunError> {
        once(&self.walker, || {
            let Learnable { graph, known, .. } = &self.learnable;
            let (path, archive) = (self.directory.join(WALKER), self.archive(WALKER)?);
            let mut walker = Walker::from_archive(&archive, &path, graph, known, &self.device)?;
            walker.set_search(self.config.walk.beam, self.config.walk.pool)?;
            Ok(Arc::new(walker))
        })
    }

    /// The propagator on the graph.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn propagator(&self) -> Result<&Arc<Propagator>, RunError> {
        once(&self.propagator, || {
            let Learnable { graph, names, .. } = &self.learnable;
            let (path, archive) = (self.directory.join(PROPAGATOR), self.archive(PROPAGATOR)?);
            Ok(Arc::new(Propagator::from_archive(&archive, &path, names, graph, &self.device)?))
        })
    }

    /// The weights of the blend.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn recipe(&self) -> Result<&Recipe, RunError> {
        once(&self.recipe, || self.json(BLEND)?.ok_or_else(|| RunError::changed(self.directory.join(BLEND))))
    }

    /// The calibration; `None` if there was nothing to calibrate on, or no stage has run.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn calibration(&self) -> Result<Option<&Calibration>, RunError> {
        Ok(once(&self.calibration, || self.json(CALIBRATION))?.as_ref())
    }

    /// The content of a JSON file; `None` if there is no such file or it holds `null`.
    fn json<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, RunError> {
        if !self.directory.join(file).exists() {
            return Ok(None);
        }
        self.read(file, |source, path| {
            let broken =
                |error| RunError::Broken { path: path.to_owned(), what: format!("is damaged ({error})") };
            serde_json::from_reader(BufReader::new(source)).map_err(broken)
        })
    }

    /// The reasoner of this run.
    ///
    /// # Errors
    /// If an artifact cannot be loaded.
    pub fn reasoner(&self) -> Result<Arc<dyn Explains>, RunError> {
        let graph = &self.learnable.graph;
        Ok(match self.config.system {
            System::Rules if self.has(Stage::Blending) => Arc::new(self.blend(self.recipe()?)?),
            System::Rules => self.applied()?.clone(),
            System::Embedding => Arc::new(ByEmbedding::new(self.embedding()?.clone(), graph)),
            System::Walker => Arc::new(self.by_walker()?),
            System::Propagator => Arc::new(self.by_propagator()?),
            System::Blend => Arc::new(self.blend(self.recipe()?)?),
        })
    }

    /// The blend of the run by `recipe`.
    ///
    /// # Errors
    /// If one of its members cannot be loaded.
    pub fn blend(&self, recipe: &Recipe) -> Result<Blend, RunError> {
        let BlendConfig { with_rules, with_walker, with_embedding, with_propagator, .. } =
            self.config.blended();
        let members = Members {
            rules: with_rules.then(|| self.applied().cloned()).transpose()?,
            walker: with_walker.then(|| self.by_walker()).transpose()?,
            embedding: with_embedding.then(|| self.embedding().cloned()).transpose()?,
            propagator: with_propagator.then(|| self.by_propagator()).transpose()?,
        };
        let Learnable { graph, names, .. } = &self.learnable;
        Ok(Blend::new(members, recipe, graph, names))
    }

    fn by_walker(&self) -> Result<ByWalker, RunError> {
        Ok(ByWalker::new(self.walker()?.clone(), &self.learnable.graph, self.rules()?))
    }

    fn by_propagator(&self) -> Result<ByPropagator, RunError> {
        Ok(ByPropagator::new(self.propagator()?.clone(), &self.learnable.graph, self.rules()?))
    }

    /// Stores the propagator that was just trained.
    pub(super) fn put_propagator(&mut self, propagator: Propagator) {
        self.propagator = OnceLock::from(Arc::new(propagator));
    }

    /// Stores the rules that were just mined.
    pub(super) fn put_rules(&mut self, rules: Arc<[ScoredRule]>) {
        (self.rules, self.applied) = (OnceLock::from(Rules { rules, unknown: 0 }), OnceLock::new());
    }

    /// Stores the embedding model that was just trained.
    pub(super) fn put_embedding(&mut self, embedding: Embedding) {
        self.embedding = OnceLock::from(Arc::new(embedding));
    }

    /// Stores the walker that was just trained.
    pub(super) fn put_walker(&mut self, walker: Walker) {
        self.walker = OnceLock::from(Arc::new(walker));
    }

    /// Stores the weights that were just fitted.
    pub(super) fn put_recipe(&mut self, recipe: Recipe) {
        self.recipe = OnceLock::from(recipe);
    }

    /// Stores the calibration that was just fitted.
    pub(crate) fn put_calibration(&mut self, calibration: Option<Calibration>) {
        self.calibration = OnceLock::from(calibration);
    }
}

/// The value of `cell`, initialised by `load` if it is empty. Two threads may both load it; one result is kept.
fn once<T>(cell: &OnceLock<T>, load: impl FnOnce() -> Result<T, RunError>) -> Result<&T, RunError> {
    match cell.get() {
        Some(value) => Ok(value),
        None => {
            let loaded = load()?;
            Ok(cell.get_or_init(|| loaded))
        }
    }
}
