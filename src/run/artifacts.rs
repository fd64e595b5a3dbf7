//! The artifacts of a run, in memory: passed from stage to stage, or loaded from a file once.

use super::checksum::Summed;
use super::material::Learnable;
use super::member::{self, APPLIED, BLENDING, BY_PATH, EMBEDDINGS, RULES, UNIVERSAL_WEIGHTS};
use super::{Checksum, RunError};
use crate::config::Config;
use crate::graph::Graph;
use crate::reason::{BesideLearnt, ByRules, Explains, OfKind};
use crate::tensor::{Archive, Device};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// What members have made or loaded, by name.
    made: Mutex<BTreeMap<&'static str, Made>>,
}

/// An artifact in memory; its member knows the type.
type Made = Arc<dyn Any + Send + Sync>;

impl Artifacts {
    /// The same members on another graph with the same entities and relations: some facts are gone, but nothing is trained
    /// again.
    ///
    /// # Errors
    /// If an artifact cannot be loaded.
    pub fn over(&self, graph: &Arc<Graph>) -> Result<Self, RunError> {
        Ok(self.on(Learnable { graph: Arc::clone(graph), ..self.learnable.clone() }))
    }

    /// The same members on the graph of `learnable`. New entities and relations come after those of the run.
    pub fn on(&self, learnable: Learnable) -> Self {
        let same_relations = learnable.graph.relations() == self.learnable.graph.relations();
        let mut other = Self::new(&self.directory, learnable, self.config.clone(), self.device.clone());
        let applied = self.lock().get(APPLIED).cloned().filter(|_| same_relations);
        if let Some(applied) = applied.and_then(|made| made.downcast::<ByRules>().ok()) {
            let applied = applied.over(&other.learnable.graph);
            other.put(APPLIED, applied);
        }
        // These do not depend on the graph.
        for name in [EMBEDDINGS, RULES, BY_PATH, BLENDING, UNIVERSAL_WEIGHTS] {
            let made = self.lock().get(name).cloned();
            other.lock().extend(made.map(|made| (name, made)));
        }
        other
    }

    /// The artifacts of the run in `directory`, none of them loaded yet.
    pub fn new(directory: &Path, learnable: Learnable, config: Config, device: Device) -> Self {
        Self {
            directory: directory.to_owned(),
            sums: BTreeMap::new(),
            learnable,
            config,
            device,
            made: Mutex::default(),
        }
    }

    /// Verifies the checksum of every file while it is read.
    pub fn expecting(mut self, sums: impl IntoIterator<Item = (String, Checksum)>) -> Self {
        self.sums.extend(sums);
        self
    }

    /// Reads a file of the run with `read` and verifies its checksum in the same pass. A file that has changed since
    /// its stage wrote it is reported as changed, even if `read` fails on it.
    ///
    /// # Errors
    /// If it cannot be read, `read` fails, or it has changed.
    pub fn read<T>(
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

    /// The tensors in a file of the run.
    ///
    /// # Errors
    /// If it cannot be read, or has changed.
    pub fn archive(&self, file: &str) -> Result<Archive, RunError> {
        self.read(file, |source, path| Ok(Archive::read_from(source, path)?))
    }

    /// The path of a file of the run.
    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// Whether the run has the member called `name`.
    pub fn has(&self, name: &str) -> bool {
        member::has(&self.config, name)
    }

    /// The artifact called `name`, made by `load` if it is not there yet. Two threads may both load it; one result is
    /// kept.
    ///
    /// # Errors
    /// Whatever `load` returns.
    pub fn get<T: Send + Sync + 'static>(
        &self,
        name: &'static str,
        load: impl FnOnce() -> Result<T, RunError>,
    ) -> Result<Arc<T>, RunError> {
        let found = self.lock().get(name).cloned();
        if let Some(found) = found.and_then(|made| made.downcast::<T>().ok()) {
            return Ok(found);
        }
        let loaded = Arc::new(load()?);
        let kept: Made = self.lock().entry(name).or_insert_with(|| loaded.clone()).clone();
        Ok(kept.downcast::<T>().unwrap_or(loaded))
    }

    /// Stores the artifact called `name`, which its member has just made.
    pub fn put<T: Send + Sync + 'static>(&mut self, name: &'static str, made: T) {
        self.lock().insert(name, Arc::new(made));
    }

    /// Forgets the artifact called `name`.
    pub(super) fn remove(&mut self, name: &'static str) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content of a JSON file; `None` if there is no such file or it holds `null`.
    ///
    /// # Errors
    /// If it cannot be read, is no such JSON, or has changed.
    pub fn json<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, RunError> {
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
        let others = self.learnable.learnt_beside_others().zip(member::of_any_relation(&self.config));
        let Some((learnt, member)) = others else { return self.reasoner_of_learnt() };
        let Some(others) = member.reasoner(self)? else { return self.reasoner_of_learnt() };
        let within = self.on(self.learnable.of_learnt());
        Ok(Arc::new(BesideLearnt::new(within.reasoner_of_learnt()?, others, learnt)))
    }

    /// The reasoner of this run on a graph whose relations were learnt.
    fn reasoner_of_learnt(&self) -> Result<Arc<dyn Explains>, RunError> {
        let alone = member::of_system(self.config.system).filter(|_| !self.has(BLENDING));
        let reasoner = alone.map(|member| member.reasoner(self)).transpose()?.flatten();
        match reasoner {
            Some(reasoner) => {
                let kinds = self.kinds();
                Ok(if kinds.are_strict() { Arc::new(OfKind::new(reasoner, kinds)) } else { reasoner })
            }
            None => Ok(Arc::new(self.blend(self.recipe()?.as_ref())?)),
        }
    }
}
