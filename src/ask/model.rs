//! [`Model`]: a finished run that answers queries.

use super::browse::RulesByHead;
use super::elsewhere::{OtherGraph, for_another_graph, other_data, with_first_relations};
use super::given::FittedVerdicts;
use super::held_out::HeldOutIndex;
use super::probability::Rough;
use super::{AskError, HeldOut, NameIndex, Naming, RunReport};
use crate::config::{Config, Layer, System};
use crate::embed::Embedding;
use crate::eval::calibration::{Calibration, Calibrator};
use crate::eval::{Protocol, Report, Split, evaluate_relations, evaluate_split};
use crate::graph::{Dataset, EntityId, FactCounts, Graph, Names, OtherRelations, Query, RelationId};
use crate::progress::{Metric, Progress, Silent};
use crate::reason::{Explains, path_table};
use crate::rule::ScoredRule;
use crate::run::directory::{CONFIG, RESULTS};
use crate::run::member::{self, EMBEDDINGS, TRAINING};
use crate::run::{
    Artifacts, Checksum, Learnable, Manifest, RunDirectory, RunError, Source, Stages, everything_of,
    recorded, unsealed,
};
use crate::tensor::{Device, DeviceChoice};
use crate::walk::{Noting, WithTrainingMasks};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A trained model, ready to answer.
///
/// A model owns everything it needs and reads each file once. It can be used from many threads at once.
pub struct Model {
    pub(super) directory: RunDirectory,
    /// The first run, on which figures were measured, if this model has learnt all facts after it.
    pub(super) first: Option<PathBuf>,
    pub(super) dataset: Dataset,
    pub(super) artifacts: Artifacts,
    pub(super) reasoner: Arc<dyn Explains>,
    pub(super) rules: Arc<[ScoredRule]>,
    pub(super) calibrator: Option<Calibrator>,
    pub(super) why_rough: Option<String>,
    /// The same for answers of relations that were not learnt.
    pub(super) not_learnt: Option<Rough>,
    pub(super) seed: u64,
    /// The graph it answers on, if that is not the graph it was learnt from.
    pub(super) on: Option<OtherGraph>,
    pub(super) source_change: Option<String>,
    pub(super) results: OnceLock<RunReport>,
    // Computed on first use.
    pub(super) held_out: HeldOutIndex,
    pub(super) counts: OnceLock<FactCounts>,
    pub(super) naming: OnceLock<Arc<Naming>>,
    pub(super) index: OnceLock<Arc<NameIndex>>,
    pub(super) rules_by_head: OnceLock<RulesByHead>,
    pub(super) fitted: FittedVerdicts,
}

/// Options for opening a run.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The device; by default CUDA if there is a GPU, else the CPU with all threads.
    pub device: Option<Device>,
    /// The walker's beam width, if it differs from the run's.
    pub beam: Option<usize>,
    /// Another graph to answer on, with the same relations: other entities, or the graph as it is now.
    /// Members that depend on the run's entities are left out ([`Model::on`] lists them). `Source::of(path, &options)`
    /// names it; read with [`SplitShares::WHOLE`](crate::graph::SplitShares::WHOLE), a single file is not divided.
    pub on: Option<Source>,
    /// Whether to open the first model, on which figures were measured, even if a second one has learnt all facts.
    pub first: bool,
}

impl OpenOptions {
    /// The defaults.
    pub const DEFAULT: OpenOptions = OpenOptions { device: None, beam: None, on: None, first: false };

    /// Opens the run at `path`.
    ///
    /// # Errors
    /// If there is no run, it is unfinished, or its files are damaged.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Model, AskError> {
        let path = path.as_ref();
        if !self.first
            && let Some(everything) = everything_of(path).unwrap_or(None)
        {
            let model = self.open_finished(&everything)?;
            return Ok(model.after(path));
        }
        self.open_finished(path).map_err(|error| match error {
            AskError::Run(RunError::Missing { .. } | RunError::NotARun { .. } | RunError::Broken { .. })
                if RunDirectory::is_worked_in(path) =>
            {
                RunError::BeingMade { path: path.to_owned() }.into()
            }
            other => other,
        })
    }

    fn open_finished(&self, path: &Path) -> Result<Model, AskError> {
        let directory = RunDirectory::look_at(path)?;
        let manifest = Manifest::read(&directory)?;
        let text = manifest.settings(&directory)?;
        let mut config = Config::from_toml(&text, &directory.file(CONFIG).display().to_string())?;
        let mut members_left_out = Vec::new();
        if self.on.is_some() {
            (config, members_left_out) = for_another_graph(config)?;
        }
        if let Some(beam) = self.beam {
            if !member::has(&config, TRAINING) {
                let message = "this run has no walker, so there is no beam to set";
                return Err(AskError::Cannot(message.to_owned()));
            }
            config = config.with(&Layer::from_pairs([format!("walk.beam={beam}").as_str()])?)?;
        }
        let (dataset, sum, on) = match &self.on {
            None => {
                let (dataset, sum) = manifest.dataset(&directory)?;
                (dataset, sum, None)
            }
            Some(source) => {
                let (dataset, other) = other_data(source, &manifest.dataset(&directory)?.0, &config)?;
                let sum = Checksum::of_known(&dataset.names, &dataset.known);
                let answered = member::of_any_relation(&config).is_some();
                let (left_out, not_learnt) = match answered {
                    true => (OtherRelations::default(), other),
                    false => (other, OtherRelations::default()),
                };
                let data = source.name();
                let on = OtherGraph {
                    data,
                    members_left_out: members_left_out.into_iter().map(str::to_owned).collect(),
                    relations_left_out: left_out.names,
                    facts_left_out: left_out.facts,
                    relations_not_learnt: not_learnt.names,
                    facts_not_learnt: not_learnt.facts,
                    ..OtherGraph::default()
                };
                (dataset, sum, Some(on))
            }
        };
        let learnable = Learnable::of(&dataset, &config, sum);
        let not_learnt = on.as_ref().map_or(0, |on| on.relations_not_learnt.len());
        let learnt = (not_learnt > 0)
            .then(|| with_first_relations(&dataset.names, dataset.names.relations.len() - not_learnt));
        let learnable = Learnable { learnt, ..learnable };
        let device = match &self.device {
            Some(device) => device.clone(),
            None => Device::choose(DeviceChoice::Auto, rayon::current_num_threads())?,
        };
        let stages = Stages::of(&directory)?;
        let mut files = BTreeMap::new();
        for name in member::of(&config).into_iter().map(|member| member.name()) {
            files.extend(stages.expect_finished(name)?.files.clone());
        }
        drop(stages);
        let artifacts = Artifacts::new(path, learnable, config, device).expecting(files);
        let mut model = Model::new(directory, dataset, artifacts, manifest.seed)?;
        match on {
            Some(on) => model.answer_on(on)?,
            None => model.source_change = manifest.source_change(),
        }
        Ok(model)
    }
}

impl Model {
    /// Opens the run at `path` with default [`OpenOptions`].
    ///
    /// # Errors
    /// If there is no run, it is unfinished, or its files are damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, AskError> {
        OpenOptions::DEFAULT.open(path)
    }

    /// The run in `directory`, whose stages are finished, with the artifacts that are already in memory.
    pub(super) fn new(
        directory: RunDirectory,
        dataset: Dataset,
        artifacts: Artifacts,
        seed: u64,
    ) -> Result<Self, AskError> {
        let reasoner = artifacts.reasoner()?;
        // Rules are shown beside paths, whichever reasoner answers.
        let rules = artifacts.rules()?;
        let calibration = artifacts.calibration()?;
        let calibration = calibration.as_ref().as_ref();
        let why_rough = calibration.and_then(Calibration::why_rough);
        let calibrator = calibration.map(|of| Calibrator::new(of, &dataset.names));
        Ok(Self {
            directory,
            first: None,
            dataset,
            artifacts,
            rules,
            reasoner,
            calibrator,
            why_rough,
            not_learnt: None,
            seed,
            on: None,
            source_change: None,
            results: OnceLock::new(),
            held_out: HeldOutIndex::default(),
            counts: OnceLock::new(),
            naming: OnceLock::new(),
            index: OnceLock::new(),
            rules_by_head: OnceLock::new(),
            fitted: FittedVerdicts::default(),
        })
    }

    /// Records the graph it was opened on.
    fn answer_on(&mut self, mut on: OtherGraph) -> Result<(), AskError> {
        on.rules_left_out = self.artifacts.rules_left_out()?;
        // Without some of its members, a blend's scores no longer match the calibration.
        if !on.members_left_out.is_empty() {
            self.calibrator = None;
        }
        self.on = Some(on);
        // Probabilities that were fitted to other relations say little about these.
        if !member::knows_relations(self.config()) {
            self.calibrate_roughly(&Silent)?;
        }
        self.calibrate_not_learnt(&Silent)?;
        Ok(())
    }

    /// The graph it answers on and what is left out there; `None` on the graph it was learnt from.
    pub fn on(&self) -> Option<&OtherGraph> {
        self.on.as_ref()
    }

    /// What to tell the user if the source of its data has changed since; it answers from its own copy all the same.
    pub fn source_change(&self) -> Option<&str> {
        self.source_change.as_deref()
    }

    /// The same without the lock on its directory.
    pub(super) fn released(self) -> Result<Self, AskError> {
        let directory = RunDirectory::look_at(self.directory.path())?;
        Ok(Self { directory, ..self })
    }

    /// The run directory.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// The run that a user names: where the figures are.
    pub fn run_path(&self) -> &Path {
        self.first.as_deref().unwrap_or_else(|| self.directory.path())
    }

    /// Whether it has learnt all facts, none held out. Figures cannot be measured on it; [`OpenOptions::first`] opens the
    /// model on which they were.
    pub fn has_learnt_everything(&self) -> bool {
        self.first.is_some()
    }

    /// This model as the second one of the run at `first`.
    pub(super) fn after(self, first: &Path) -> Self {
        Self { first: Some(first.to_owned()), ..self }
    }

    /// The data it was learnt from, or is asked about, with its splits.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// How many facts the user gave, and how many of them it has learnt from.
    pub fn counts(&self) -> FactCounts {
        *self.counts.get_or_init(|| self.dataset.counts(self.graph()))
    }

    /// The names of entities and relations.
    pub fn names(&self) -> &Arc<Names> {
        &self.dataset.names
    }

    /// The graph on which it answers.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.artifacts.learnable.graph
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.artifacts.config
    }

    /// Where its tensors live.
    pub fn device(&self) -> &Device {
        &self.artifacts.device
    }

    /// The seed of every random choice in it.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Its rules; none if it has mined none.
    pub fn rules(&self) -> &[ScoredRule] {
        &self.rules
    }

    /// The embedding model, if it has one and answers on the graph it was learnt from, without new entities.
    ///
    /// # Errors
    /// If it cannot be loaded.
    pub fn embedding(&self) -> Result<Option<Arc<Embedding>>, AskError> {
        if !self.artifacts.has(EMBEDDINGS) || self.on.is_some() {
            return Ok(None);
        }
        let embedding = self.artifacts.embedding()?;
        Ok((embedding.size().entities == self.names().entities.len()).then_some(embedding))
    }

    /// The reasoner, for custom rankings and searches.
    pub fn reasoner(&self) -> &Arc<dyn Explains> {
        &self.reasoner
    }

    /// Whether it has learnt the validation split, which makes figures on it meaningless.
    pub fn valid_is_learnt(&self) -> bool {
        self.artifacts.learnable.valid_learnt
    }

    /// Checks that the validation split can be asked for.
    ///
    /// # Errors
    /// If it has been learnt.
    pub fn expect_valid_unlearnt(&self) -> Result<(), AskError> {
        match self.valid_is_learnt() {
            true => Err(AskError::ValidLearnt { path: self.directory.path().to_owned() }),
            false => Ok(()),
        }
    }

    /// The checksum of what it was learnt from.
    pub fn checksum(&self) -> &Checksum {
        &self.artifacts.learnable.checksum
    }

    /// The results of the run.
    ///
    /// # Errors
    /// If the run is unfinished, or the file is damaged.
    pub fn results(&self) -> Result<&RunReport, AskError> {
        if let Some(results) = self.results.get() {
            return Ok(results);
        }
        let directory = RunDirectory::look_at(self.run_path())?;
        let text = directory.read(RESULTS)?.ok_or_else(|| RunError::Missing {
            path: directory.path().to_owned(),
            what: "results".to_owned(),
            remedy: "run the same `ruleguider run` again to finish it".to_owned(),
        })?;
        let broken = |what| RunError::Broken { path: directory.file(RESULTS), what };
        let text = unsealed(&text).ok_or_else(|| broken("does not match its checksum".to_owned()))?;
        let results = serde_json::from_str(&text).map_err(|error| broken(format!("is damaged ({error})")))?;
        Ok(self.results.get_or_init(|| results))
    }

    /// Its learning curves.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn metrics(&self) -> Result<Vec<Metric>, AskError> {
        Ok(recorded(&self.directory)?)
    }

    /// The name index: lookup and completion as people type.
    pub fn index(&self) -> &NameIndex {
        self.index.get_or_init(|| Arc::new(NameIndex::new(self.names())))
    }

    /// Display names of entities, unambiguous for people.
    pub fn naming(&self) -> &Naming {
        self.naming.get_or_init(|| Arc::new(Naming::new(self.names())))
    }

    /// The query for an entity and a relation by name or label; `~relation` asks for heads.
    ///
    /// # Errors
    /// If one of them is unknown, with similar names.
    pub fn query(&self, subject: &str, relation: &str) -> Result<Query, AskError> {
        let index = self.index();
        Ok(Query { subject: index.entity(subject)?, link: index.link(relation)? })
    }

    /// Ranks the validation facts that the walker was trained on, each under the masks of training: filtered without
    /// test answers, and with them. `None` if the system is not a walker alone, or was not trained on them.
    ///
    /// # Errors
    /// If the walker fails or the user interrupts.
    pub fn evaluate_trained_valid(
        &self,
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<Option<[Report; 2]>, AskError> {
        let walker = self.reasoner.walker().filter(|_| self.config().system == System::Walker);
        let Some(walker) = walker.filter(|_| self.valid_is_learnt()) else { return Ok(None) };
        let tuning = &self.artifacts.learnable.tuning;
        let masked = WithTrainingMasks::new(walker, protocol.side.asked(&tuning.valid))?;
        // The evaluation asks for each fact of the graph individually; a fact that was only a training query counts as
        // one here.
        let graph = self.dataset.graph_of(&tuning.with_valid_learnt());
        let figures = |split| evaluate_split(&masked, &self.dataset, split, &graph, protocol, progress);
        Ok(Some([figures(Split::Valid)?, figures(Split::ValidAsPublished)?]))
    }

    /// Ranks the true answers of a split.
    ///
    /// # Errors
    /// If the reasoner fails, the split has been learnt, or the user interrupts.
    pub fn evaluate(
        &self,
        split: Split,
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<Report, AskError> {
        self.evaluate_relations(split, &[], protocol, progress)
    }

    /// The same for the facts of these relations only; for all if the list is empty.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    pub fn evaluate_relations(
        &self,
        split: Split,
        relations: &[RelationId],
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<Report, AskError> {
        self.expect_rankable(split)?;
        let reasoner = self.reasoner.reasoner();
        let graph = self.graph();
        Ok(evaluate_relations(reasoner, &self.dataset, split, relations, graph, protocol, progress)?)
    }

    /// Checks that nothing was learnt from `split`.
    ///
    /// # Errors
    /// If it has been learnt.
    pub(super) fn expect_rankable(&self, split: Split) -> Result<(), AskError> {
        if self.has_learnt_everything() {
            let message = "this model has learnt the facts of all splits, so ranking them is meaningless; evaluate the first model instead";
            return Err(AskError::Cannot(message.to_owned()));
        }
        match split {
            Split::Test => Ok(()),
            _ => self.expect_valid_unlearnt(),
        }
    }

    /// Ranks the test split. Also returns the share of its queries for which the path of the top answer is a rule;
    /// `None` without a walker.
    pub(super) fn test(
        &self,
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<(Report, Option<f64>), AskError> {
        let Some(walker) = self.reasoner.walker() else {
            return Ok((self.evaluate(Split::Test, protocol, progress)?, None));
        };
        let Config { walk, rules, .. } = self.config();
        let rules = path_table(self.rules(), walk.hops, rules.threshold);
        let noting = Noting::new(walker, &rules);
        let report = evaluate_split(&noting, &self.dataset, Split::Test, self.graph(), protocol, progress)?;
        let asked: Vec<Query> = protocol.side.asked(&self.dataset.test).map(|(query, _)| query).collect();
        Ok((report, Some(noting.share(&asked))))
    }

    /// Stores the results of the run.
    pub(super) fn set_results(&self, results: RunReport) {
        let _ = self.results.set(results);
    }

    /// Whether the graph has any fact about `entity`; without one nothing can be predicted.
    pub fn has_facts(&self, entity: EntityId) -> bool {
        !self.graph().edges(entity).is_empty()
    }

    pub(super) fn relation_name(&self, query: Query) -> String {
        query.link.relation().map_or("", |relation| self.dataset.names.relation(relation)).to_owned()
    }

    /// The split that has the fact that `object` answers `query`, if the data has it and the graph does not.
    pub(super) fn held_out(&self, query: Query, object: EntityId) -> Option<HeldOut> {
        if self.graph().contains(query.subject, query.link, object) {
            return None;
        }
        let answers = self.held_out.answers(query, &self.dataset);
        let place = answers.binary_search_by_key(&object, |&(object, _)| object).ok()?;
        Some(answers[place].1)
    }

    /// How many answers to `query` are in the data but not in the graph.
    pub fn held_out_count(&self, query: Query) -> usize {
        self.held_out_answers(query).len()
    }

    /// The answers to `query` that are in the data but not in the graph, each with its split.
    pub(super) fn held_out_answers(&self, query: Query) -> Vec<(EntityId, HeldOut)> {
        let mut answers = self.held_out.answers(query, &self.dataset);
        answers.retain(|&(object, _)| !self.graph().contains(query.subject, query.link, object));
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Model>();
    }
}
