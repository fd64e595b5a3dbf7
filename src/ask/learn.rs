//! [`Learn`]: from a file of triples to a [`Model`].

use super::relearn::learn_again;
use super::{AskError, Edits, LearntEdits, Model, UpdateReport};
use crate::config::{self, Config, EvalConfig, Layer};
use crate::embed::{self, ModelKind};
use crate::eval::Side;
use crate::graph::{
    self, ColumnChoice, Conflicts, Dataset, Division, FileKind, Literals, ReadOptions, SplitShares,
};
use crate::plan::{Early, GraphSize, Plan, Resources, choose};
use crate::progress::{Progress, Silent};
use crate::run::member::BLENDING;
use crate::run::{
    self, DataChanges, EarlierRun, Learnt, Manifest, RuleChanges, RunError, RunSpec, Source, StageReport,
};
use crate::tensor::{Device, DeviceChoice};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How much slower than planned queries may be by what was measured on a few of them.
const SLOWEST_EARLY: f64 = 2.0;
/// The default time budget.
const MINUTES: f64 = 10.0;

/// Where the triples are.
#[derive(Clone, Debug)]
enum Data {
    /// The built-in demonstration graph.
    Demonstration,
    /// A folder of splits or a file of triples, still to be read.
    Path(PathBuf),
    /// Already read.
    Read(Source, Box<Dataset>),
}

/// What to learn from, and how. [`run`](Self::run) does it.
#[derive(Clone, Debug)]
pub struct Learn {
    data: Data,
    shares: SplitShares,
    header: Option<bool>,
    format: Option<FileKind>,
    columns: Option<ColumnChoice>,
    literals: Literals,
    named_graph: Option<String>,
    conflicts: Conflicts,
    config: Option<String>,
    settings: Layer,
    set: Vec<String>,
    minutes: Option<f64>,
    out: Option<PathBuf>,
    seed: u64,
    device: Option<Device>,
    fill_splits: bool,
    tensorboard: bool,
    siblings: Option<PathBuf>,
    everything: bool,
    update: Option<PathBuf>,
    edits: Option<Edits>,
    embedding: Option<ModelKind>,
}

impl Learn {
    /// Learns from a folder with train, valid and test, or from one file of triples, which is divided.
    pub fn new(data: impl AsRef<Path>) -> Self {
        Self { data: Data::Path(data.as_ref().to_owned()), ..Self::demonstration() }
    }

    /// Learns from `dataset`, which was read from `source`, or was in [memory](Source::Memory). It already has its
    /// splits: [`split`](Self::split) and [`header`](Self::header) do nothing.
    pub fn from_dataset(source: Source, dataset: Dataset) -> Self {
        Self { data: Data::Read(source, Box::new(dataset)), ..Self::demonstration() }
    }

    /// Learns from the built-in demonstration graph, a family: about 12 s on two cores.
    pub fn demonstration() -> Self {
        Self {
            data: Data::Demonstration,
            shares: SplitShares::default(),
            header: None,
            format: None,
            columns: None,
            literals: Literals::default(),
            named_graph: None,
            conflicts: Conflicts::default(),
            config: None,
            settings: Layer::default(),
            set: Vec::new(),
            minutes: None,
            out: None,
            seed: 1,
            device: None,
            fill_splits: false,
            tensorboard: false,
            siblings: None,
            everything: false,
            update: None,
            edits: None,
            embedding: None,
        }
    }

    /// How long learning and ranking may take. The default is 10 minutes without a configuration, and no limit with
    /// one.
    pub fn minutes(self, minutes: f64) -> Self {
        Self { minutes: Some(minutes), ..self }
    }

    /// The run directory; `runs/` and the name of the data by default. An existing run is resumed.
    pub fn out(self, out: impl AsRef<Path>) -> Self {
        Self { out: Some(out.as_ref().to_owned()), ..self }
    }

    /// The seed of every random choice: same seed, same result, unless a time limit stops a stage.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// A settings file, or the name of a built-in configuration, instead of a plan by time.
    pub fn config(self, name: impl Into<String>) -> Self {
        Self { config: Some(name.into()), ..self }
    }

    /// Settings that override those of the plan or the configuration; their key `base` names the configuration.
    ///
    /// # Errors
    /// If `base` is no text.
    pub fn settings(self, settings: Layer) -> Result<Self, AskError> {
        let (settings, base) = settings.split_base()?;
        let config = base.map(|(name, _)| name).or(self.config);
        Ok(Self { config, settings: self.settings.followed_by(settings), ..self })
    }

    /// One setting that overrides all others, such as `rules.threshold=0.05`.
    pub fn set(mut self, setting: impl Into<String>) -> Self {
        self.set.push(setting.into());
        self
    }

    /// The embedding model, with settings that suit it where others are not set; by default that of the configuration, or
    /// ComplEx.
    pub fn embedding(self, model: ModelKind) -> Self {
        Self { embedding: Some(model), ..self }
    }

    /// The device; by default CUDA if there is a GPU, else the CPU with all threads.
    pub fn device(self, device: Device) -> Self {
        Self { device: Some(device), ..self }
    }

    /// How a single file is divided into train, valid and test.
    pub fn split(self, shares: SplitShares) -> Self {
        Self { shares, ..self }
    }

    /// Whether a TSV or CSV file begins with a header; detected by default.
    pub fn header(self, header: bool) -> Self {
        Self { header: Some(header), ..self }
    }

    /// The format of the files; by default given by their extensions.
    pub fn format(self, format: FileKind) -> Self {
        Self { format: Some(format), ..self }
    }

    /// Which columns of a table are what, such as `subject=drug,relation=effect,object=disease`; by default their names
    /// say it.
    pub fn columns(self, columns: ColumnChoice) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// What literals of RDF are: attributes apart from entities, or entities.
    pub fn literals(self, literals: Literals) -> Self {
        Self { literals, ..self }
    }

    /// Reads only this named graph of RDF data.
    pub fn named_graph(self, iri: impl Into<String>) -> Self {
        Self { named_graph: Some(iri.into()), ..self }
    }

    /// What becomes of facts that are also known to be false; by default they are an error.
    pub fn conflicts(self, conflicts: Conflicts) -> Self {
        Self { conflicts, ..self }
    }

    /// Whether a validation or test split that a folder lacks is drawn from its training facts; otherwise that is an
    /// error, since a file may be missing by mistake.
    pub fn fill_splits(self, fill_splits: bool) -> Self {
        Self { fill_splits, ..self }
    }

    /// Whether event files for TensorBoard are written into the run directory.
    pub fn tensorboard(self, tensorboard: bool) -> Self {
        Self { tensorboard, ..self }
    }

    /// A folder of other runs, from which finished stages with the same inputs are reused.
    pub fn siblings(self, folder: impl AsRef<Path>) -> Self {
        Self { siblings: Some(folder.as_ref().to_owned()), ..self }
    }

    /// Starts from the finished run at `run`, whose data has changed: embeddings and networks start from its weights,
    /// its rules are recounted, and its settings are kept, with about half of the epochs. Facts of a single file stay
    /// in their splits. The run at `run` is not changed; by default the new one is beside it, with `-updated` added to
    /// the name.
    pub fn update(self, run: impl AsRef<Path>) -> Self {
        Self { update: Some(run.as_ref().to_owned()), ..self }
    }

    /// Changes the data by `edits`: added facts are training facts, rejected ones negative examples. Without data of its
    /// own, an [`update`](Self::update) learns from those of the earlier run, each fact in the split that it was in.
    pub fn edits(self, edits: Edits) -> Self {
        Self { edits: Some(edits), ..self }
    }

    /// Whether to learn once more after the figures are measured, from all facts including those held out: for the best
    /// answers in use. The figures, the weights of a blend and the calibration stay those of the first run. It takes
    /// about as long again.
    pub fn learn_all(self, everything: bool) -> Self {
        Self { everything, ..self }
    }

    /// Learns, ranks the test split, and returns the model.
    ///
    /// # Errors
    /// If a setting or the data is wrong, or a stage fails. Finished stages are kept, and the same call resumes.
    pub fn run(self) -> Result<Model, AskError> {
        self.prepare()?.run(&Silent)
    }

    /// Reads the data and makes the plan, without learning anything yet.
    ///
    /// # Errors
    /// If a setting or the data is wrong.
    pub fn prepare(self) -> Result<Learning, AskError> {
        let began = Instant::now();
        // Settings are checked before a large graph is read.
        let over = Layer::from_pairs(self.set.iter().map(String::as_str))?;
        let set = self.settings.clone().followed_by(over);
        let earlier = self.update.as_deref().map(EarlierRun::open).transpose()?;
        let named = match (&self.config, &self.data) {
            _ if earlier.is_some() => earlier.as_ref().map(|earlier| earlier.config.clone()),
            (Some(name), _) => Some(config::named(name, &Config::default())?),
            (None, Data::Demonstration | Data::Read(Source::Demonstration, _)) => {
                Some(config::named("demonstration", &Config::default())?)
            }
            (None, _) => None,
        };
        named.as_ref().unwrap_or(&Config::default()).with(&set)?;
        let (source, dataset, learnt_before) = match (&earlier, &self.data, &self.edits) {
            // The data of the earlier run.
            (Some(earlier), Data::Demonstration, Some(_)) => {
                let folder = earlier.warm.path.file_name().unwrap_or_default();
                let source = Source::Memory { name: folder.to_string_lossy().into_owned() };
                (source, earlier.dataset.clone(), 0)
            }
            _ => self.read(earlier.as_ref().map(|earlier| &earlier.dataset))?,
        };
        // Data that are given anew have learnt nothing.
        let learnt_edits = match (&earlier, &self.data) {
            (Some(earlier), Data::Demonstration) => LearntEdits::read(&earlier.warm.path)?,
            _ => LearntEdits::default(),
        };
        let (source, dataset, learnt_edits) = match self.edits.as_ref().filter(|edits| !edits.is_empty()) {
            Some(edits) => {
                let learnt_edits = learnt_edits.and(edits, &dataset);
                (Source::Memory { name: source.name() }, edits.applied_to(&dataset), learnt_edits)
            }
            None => (source, dataset, learnt_edits),
        };
        let set = match self.embedding {
            Some(model) => {
                let pairs: Vec<String> = embed::unlike_complex(model, dataset.names.entities.len())
                    .iter()
                    .map(|pair| format!("embed.{pair}"))
                    .collect();
                let kind = [format!("embed.model={}", model.name())];
                Layer::from_pairs(pairs.iter().chain(&kind).map(String::as_str))?.followed_by(set)
            }
            None => set,
        };
        let device = match &self.device {
            Some(device) => device.clone(),
            None => Device::choose(DeviceChoice::Auto, rayon::current_num_threads())?,
        };
        let out = self.out.clone().unwrap_or_else(|| self.default_out(&source));
        let plan = match &named {
            Some(config) => self.within(config.with(&set)?, &dataset, &device),
            None => Some(self.plan(&dataset, &device, &out).with(&set)?),
        };
        // Settings that somebody chose are learnt as they are.
        let early = plan.as_ref().filter(|_| named.is_none()).and_then(Plan::early);
        let spec = RunSpec {
            source,
            out,
            config: match (named, &plan) {
                (Some(config), _) => config.with(&set)?,
                (None, plan) => plan.as_ref().map_or_else(Config::default, |plan| plan.config.clone()),
            },
            seed: self.seed,
            device,
            tensorboard: self.tensorboard,
            name: self.config_name(),
            siblings: self.siblings,
            budget: plan.as_ref().map(|plan| plan.budget(began)),
            first: None,
            warm: earlier.as_ref().map(|earlier| earlier.warm.clone()),
            until: None,
            ahead: false,
            fresh: Vec::new(),
        };
        let update = earlier.map(|earlier| UpdateReport {
            from: earlier.warm.path.display().to_string(),
            data: DataChanges::between(&earlier.dataset, &dataset),
            learnt_before,
            rules: RuleChanges::default(),
            figures_before: earlier.results.and_then(|results| serde_json::from_value(results).ok()),
        });
        Ok(Learning { spec, dataset, plan, early, everything: self.everything, update, learnt_edits })
    }

    /// The data that is learnt from, and its source. Also returns how many validation and test facts are left out
    /// because they were learnt `before`.
    fn read(&self, before: Option<&Dataset>) -> Result<(Source, Dataset, usize), AskError> {
        let source = match &self.data {
            Data::Read(source, dataset) => {
                expect_recordable(source)?;
                let dataset = (**dataset).clone();
                let (dataset, learnt_before) = match before {
                    Some(before) => {
                        graph::after(dataset, Division { shares: self.shares, seed: self.seed }, before)?
                    }
                    None => (dataset, 0),
                };
                if dataset.known.valid.is_empty() || dataset.test.is_empty() {
                    let message = "learning needs a validation and a test split, and this graph has none; give \
                                   them, or shares to divide the graph by";
                    return Err(AskError::Cannot(message.to_owned()));
                }
                return Ok((source.clone(), dataset, learnt_before));
            }
            Data::Path(path) => {
                let &Self { shares, seed, header, format, literals, conflicts, .. } = self;
                let (columns, named_graph) = (self.columns.clone(), self.named_graph.clone());
                let options = ReadOptions {
                    shares,
                    seed,
                    header,
                    format,
                    columns,
                    literals,
                    named_graph,
                    conflicts,
                    incomplete: self.fill_splits,
                };
                let source = Source::of(path, &options)?;
                expect_recordable(&source)?;
                source
            }
            Data::Demonstration => Source::Demonstration,
        };
        let (dataset, learnt_before) = match before {
            Some(before) => source.read_after(before)?,
            None => (source.read()?, 0),
        };
        Ok((source, dataset, learnt_before))
    }

    /// The plan for the stages of a configuration, if there is a time limit.
    fn within(&self, config: Config, dataset: &Dataset, device: &Device) -> Option<Plan> {
        let (threads, cuda) = (rayon::current_num_threads(), device.is_cuda());
        let resources = self.minutes.map(|minutes| Resources { minutes, threads, cuda })?;
        let size = GraphSize::of(dataset, config.eval.direction);
        Some(Plan::of(config, &size, &resources))
    }

    /// The plan for a graph without tuned settings.
    fn plan(&self, dataset: &Dataset, device: &Device, out: &Path) -> Plan {
        let size = GraphSize::of(dataset, Side::Both);
        let (minutes, cuda) = (self.minutes.unwrap_or(MINUTES), device.is_cuda());
        // A resumed run keeps its networks, on any number of threads.
        let begun =
            Manifest::resources_of(out).filter(|begun| (begun.minutes, begun.cuda) == (minutes, cuda));
        let resources = Resources { minutes, threads: rayon::current_num_threads(), cuda };
        choose(&size, &begun.unwrap_or(resources))
    }

    /// The last part of the configuration's name: `ruleguider-complex`.
    fn config_name(&self) -> Option<String> {
        let stem = self.config.as_deref().map(Path::new).and_then(Path::file_stem)?;
        Some(stem.to_string_lossy().into_owned())
    }

    fn default_out(&self, source: &Source) -> PathBuf {
        if let Some(run) = &self.update {
            let mut name = run.components().as_path().as_os_str().to_owned();
            name.push("-updated");
            return name.into();
        }
        let data = source.name();
        match self.config_name() {
            Some(config) => Path::new("runs").join(format!("{data}-{config}")),
            None => Path::new("runs").join(data),
        }
    }
}

/// Everything that [`Learn`] asked for, read and planned.
pub struct Learning {
    spec: RunSpec,
    dataset: Dataset,
    plan: Option<Plan>,
    early: Option<Early>,
    everything: bool,
    update: Option<UpdateReport>,
    learnt_edits: LearntEdits,
}

impl Learning {
    /// What will be done, and where.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// The data that is learnt from.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// What has changed since the earlier run that an update starts from; rule changes are counted when it runs.
    pub fn update(&self) -> Option<&UpdateReport> {
        self.update.as_ref()
    }

    /// The time plan; `None` if a configuration is used without a time limit.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Learns, ranks the test split, and returns the model. `progress` receives reports and may stop it.
    ///
    /// # Errors
    /// If a stage fails, the directory cannot be worked in, or the user interrupts; finished stages are kept, and the
    /// same call resumes.
    pub fn run(self, progress: &dyn Progress) -> Result<Model, AskError> {
        let Learning { spec, dataset, early, everything, update, learnt_edits, .. } = self;
        let device = spec.device.clone();
        device.inside(|| {
            let mut learnt = match early.filter(|_| !has_begun(&spec)) {
                Some(early) => learn_in_steps(&spec, &early, &dataset, progress)?,
                None => run::learn(&spec, &dataset, progress)?,
            };
            let stages = std::mem::take(&mut learnt.stages);
            if learnt_edits != LearntEdits::default() {
                learnt_edits.write(&learnt.directory)?;
            }
            let model = Model::new(learnt.directory, dataset, learnt.artifacts, spec.seed)?;
            let most = ranked_in_time(&spec, learnt.query_seconds);
            let mut report = model.report(&spec, stages.clone(), most, progress)?;
            report.update = update.map(|update| update.with_rules(&stages));
            // The figures are saved before anything else can fail.
            model.keep_results(report.clone())?;
            let model = match everything {
                true => learn_again(&spec, &model, report, progress)?,
                false => model,
            };
            // Another learning may take the directory's lock while this model is in use.
            model.released()
        })
    }
}

/// Whether the run's directory already answers by these settings, or was on its way to.
fn has_begun(spec: &RunSpec) -> bool {
    run::settings_of(&spec.out).is_some_and(|settings| settings == spec.config.to_toml())
}

/// Learns in steps, so that the directory answers as soon as its cheap members do: by `early` settings first. The
/// members that `spec` has beyond those are trained ahead of the change, and the change itself is to fit the blend again.
/// Who interrupts, or kills the program, is left with a run that answers.
fn learn_in_steps(
    spec: &RunSpec,
    early: &Early,
    dataset: &Dataset,
    progress: &dyn Progress,
) -> Result<Learnt, RunError> {
    let began = spec.budget.as_ref().map_or_else(Instant::now, |budget| budget.began);
    let first = RunSpec { config: early.config().clone(), budget: Some(early.budget(began)), ..spec.clone() };
    let Learnt { mut stages, pace, .. } = run::learn(&first, dataset, progress)?;
    // What was asked shows how long asking takes here. As few queries as these make much of what it takes to begin.
    let pace = pace.min(SLOWEST_EARLY);
    let budget = spec.budget.clone().map(|budget| budget.at_pace(pace));
    let then = |stages: &BTreeMap<String, StageReport>| RunSpec {
        budget: budget.clone(),
        fresh: stages.keys().cloned().collect(),
        ..spec.clone()
    };
    let ahead = RunSpec { ahead: true, until: Some(BLENDING), ..then(&stages) };
    let mut trained = run::learn(&ahead, dataset, progress)?.stages;
    trained.retain(|name, _| !stages.contains_key(name));
    stages.extend(trained);
    let mut learnt = run::learn(&then(&stages), dataset, progress)?;
    // What was made a moment ago was not there before.
    for (name, report) in &mut learnt.stages {
        if let Some(made) = stages.remove(name).filter(|_| report.skipped) {
            *report = made;
        }
    }
    Ok(learnt)
}

/// The smallest number of facts that are ranked when time is short: their MRR has a standard error of about 0.02.
const LEAST_RANKED: usize = 200;

/// How many facts of the test split there is time left to rank, and to check probabilities on, if a query takes
/// `query_seconds`; `None` for all.
fn ranked_in_time(spec: &RunSpec, query_seconds: Option<f64>) -> Option<usize> {
    let (budget, query_seconds) = (spec.budget.as_ref()?, query_seconds?);
    let left = budget.resources.seconds() - budget.began.elapsed().as_secs_f64();
    let queries = left / query_seconds.max(1e-9);
    let EvalConfig { direction, calibration_queries, .. } = spec.config.eval;
    // Both ends are asked for where probabilities are checked, on some of the facts.
    let (ranked, checked) = (direction.directions().len() as f64, Side::Both.directions().len() as f64);
    let in_time = match calibration_queries {
        0 => queries / (ranked + checked),
        most => (queries / (ranked + checked)).max((queries - checked * most as f64) / ranked),
    };
    Some((in_time as usize).max(LEAST_RANKED))
}

/// Checks that a run can record where its data is: its files are JSON, which is UTF-8.
fn expect_recordable(source: &Source) -> Result<(), AskError> {
    match source {
        Source::Path { path, .. } if path.to_str().is_none() => Err(AskError::Cannot(format!(
            "{}: a run records where its data is, and this path is not UTF-8; rename it, or pipe the data to `-`",
            path.display()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Impatient;
    use crate::run::directory::RESULTS;

    #[test]
    fn what_was_in_memory_is_kept_by_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let dataset = crate::generate::demonstration();
        let learn = |dataset: &Dataset| {
            let learn = Learn::from_dataset(Source::Memory { name: "mine".to_owned() }, dataset.clone());
            learn.out(&out).minutes(1.0).set("system=rules").set("rules.samples=1000")
        };
        let model = learn(&dataset).run().unwrap();
        let opened = Model::open(&out).unwrap();
        assert_eq!(opened.results().unwrap(), model.results().unwrap());
        assert_eq!(opened.dataset().test, dataset.test);
        // A model in use does not hold the lock of its directory.
        assert!(learn(&dataset).run().unwrap().results().unwrap().stages["rules"].skipped);
        let mut other = dataset.clone();
        other.test = other.test[1..].into();
        let refused = learn(&other).run().err().unwrap();
        assert!(
            refused.is_mistake() && refused.to_string().contains("was made from mine in memory"),
            "{refused}"
        );
        other.test = [].into();
        assert!(matches!(learn(&other).run(), Err(AskError::Cannot(_))));
    }

    #[test]
    fn what_was_learnt_with_other_settings_does_not_pass_for_what_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let learn = Learn::demonstration().out(&out).set("system=rules").set("rules.samples=1000");
        let learn = learn.device(Device::cpu(1).unwrap());
        let first = learn.clone().run().unwrap().results().unwrap().clone();
        let opened = || Model::open(&out);
        assert_eq!(opened().unwrap().results().unwrap(), &first);
        for other in [learn.clone().seed(2), learn.clone().set("rules.max_length=1")] {
            let stopped = other.prepare().unwrap().run(&Impatient);
            assert!(stopped.is_err_and(|error| error.is_interrupted()));
            assert!(matches!(opened(), Err(AskError::Run(RunError::Missing { .. }))));
            assert!(!out.join(RESULTS).exists());
            // Nothing is lost either: with the earlier settings, all stages are still valid.
            assert!(learn.clone().run().unwrap().results().unwrap().stages["rules"].skipped);
            assert!(opened().is_ok());
        }
    }

    /// Interrupts as soon as the propagator is trained.
    #[derive(Default)]
    struct UntilPropagator(std::sync::atomic::AtomicBool);

    impl Progress for UntilPropagator {
        fn begin(&self, stage: &str, _unit: &str, _total: Option<u64>) {
            if stage == "training the propagator" {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        fn advance(&self, _done: u64, _figures: &dyn std::fmt::Display) {}
        fn end(&self, _summary: &dyn std::fmt::Display) {}
        fn interrupted(&self) -> bool {
            self.0.load(std::sync::atomic::Ordering::Relaxed)
        }
    }

    #[test]
    fn a_run_that_is_interrupted_before_its_propagator_is_there_answers_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let small =
            ["rules.samples=1000", "embed.epochs=1", "propagate.epochs=1", "propagate.epoch_queries=16"];
        let source = Source::Memory { name: "family".to_owned() };
        let learn = Learn::from_dataset(source, crate::generate::demonstration()).out(&out).minutes(2.0);
        let learn = small.into_iter().fold(learn.device(Device::cpu(1).unwrap()), Learn::set);
        let stopped = learn.clone().prepare().unwrap().run(&UntilPropagator::default());
        assert!(stopped.is_err_and(|error| error.is_interrupted()));
        let early = Model::open(&out).unwrap();
        assert!(!early.config().blend.with_propagator && early.config().blend.with_embedding);
        let subject = early.names().entities.name(0).to_owned();
        let relation = early.names().relations.name(0).to_owned();
        early.predict(&subject, &relation, 3).unwrap();
        drop(early);
        // The same again goes on from there, and nothing that was there is made again.
        let whole = learn.run().unwrap();
        assert!(whole.config().blend.with_propagator);
        let stages = &whole.results().unwrap().stages;
        assert!(stages["rules"].skipped && stages["embeddings"].skipped && !stages["propagation"].skipped);
    }
}
