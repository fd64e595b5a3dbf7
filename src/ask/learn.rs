//! [`Learn`]: from a file of triples to a [`Model`].

use super::again::learn_again;
use super::{AskError, Model, UpdateReport};
use crate::config::{self, Config, Layer};
use crate::graph::{self, Dataset, Division, FileKind, ReadOptions, SplitShares};
use crate::plan::{GraphSize, Plan, Resources, choose};
use crate::progress::{Progress, Silent};
use crate::run::{self, DataChanges, EarlierRun, Manifest, RuleChanges, RunSpec, Source};
use crate::tensor::{Device, DeviceChoice};
use std::path::{Path, PathBuf};
use std::time::Instant;

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
    piped: bool,
    config: Option<String>,
    settings: Layer,
    set: Vec<String>,
    minutes: Option<f64>,
    out: Option<PathBuf>,
    seed: u64,
    device: Option<Device>,
    tensorboard: bool,
    siblings: Option<PathBuf>,
    everything: bool,
    update: Option<PathBuf>,
}

impl Learn {
    /// Learns from a folder with train, valid and test, or from one file of triples, which is divided.
    pub fn new(data: impl AsRef<Path>) -> Self {
        Self { data: Data::Path(data.as_ref().to_owned()), ..Self::demonstration() }
    }

    /// Learns from `dataset`, which was read from `source`, or is [kept](Source::Kept) by the run. It already has its
    /// splits: [`split`](Self::split) and [`header`](Self::header) do nothing.
    pub fn from_dataset(source: Source, dataset: Dataset) -> Self {
        Self { data: Data::Read(source, Box::new(dataset)), ..Self::demonstration() }
    }

    /// Learns from the built-in demonstration graph: a family, a few seconds.
    pub fn demonstration() -> Self {
        Self {
            data: Data::Demonstration,
            shares: SplitShares::default(),
            header: None,
            format: None,
            piped: false,
            config: None,
            settings: Layer::default(),
            set: Vec::new(),
            minutes: None,
            out: None,
            seed: 1,
            device: None,
            tensorboard: false,
            siblings: None,
            everything: false,
            update: None,
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

    /// Whether the data came through a pipe into a temporary file. The run then answers from its own copy.
    pub fn piped(self, piped: bool) -> Self {
        Self { piped, ..self }
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
        let (source, dataset, learnt_before) = self.read(earlier.as_ref().map(|earlier| &earlier.dataset))?;
        let source = if earlier.is_some() { source.kept() } else { source };
        let source = if self.piped { source.piped() } else { source };
        let device = match &self.device {
            Some(device) => device.clone(),
            None => Device::choose(DeviceChoice::Auto, rayon::current_num_threads())?,
        };
        let out = self.out.clone().unwrap_or_else(|| self.default_out(&source));
        let plan = match &named {
            Some(config) => self.within(config.with(&set)?, &dataset, &device),
            None => Some(self.plan(&dataset, &device, &out).with(&set)?),
        };
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
        };
        let update = earlier.map(|earlier| UpdateReport {
            from: earlier.warm.path.display().to_string(),
            data: DataChanges::between(&earlier.dataset, &dataset),
            learnt_before,
            rules: RuleChanges::default(),
            figures_before: earlier.results.and_then(|results| serde_json::from_value(results).ok()),
        });
        Ok(Learning { spec, dataset, plan, everything: self.everything, update })
    }

    /// The data that is learnt from, and its source. Also returns how many validation and test facts are left out
    /// because they were learnt `before`.
    fn read(&self, before: Option<&Dataset>) -> Result<(Source, Dataset, usize), AskError> {
        let source = match &self.data {
            Data::Read(source, dataset) => {
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
                let &Self { shares, seed, header, format, .. } = self;
                Source::of(path, &ReadOptions { shares, seed, header, format, incomplete: false })?
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
        Some(Plan::of(config, &GraphSize::of(dataset), &resources))
    }

    /// The plan for a graph without tuned settings.
    fn plan(&self, dataset: &Dataset, device: &Device, out: &Path) -> Plan {
        let size = GraphSize::of(dataset);
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
    everything: bool,
    update: Option<UpdateReport>,
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
        let Learning { spec, dataset, everything, update, .. } = self;
        let device = spec.device.clone();
        device.inside(|| {
            let learnt = run::learn(&spec, &dataset, progress)?;
            let stages = learnt.stages.clone();
            let model = Model::new(learnt.directory, dataset, learnt.artifacts, spec.seed)?;
            let mut report = model.report(&spec, learnt.stages, progress)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Impatient;
    use crate::run::RunError;
    use crate::run::directory::RESULTS;

    #[test]
    fn what_was_in_memory_is_kept_by_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let dataset = crate::generate::demonstration();
        let learn = |dataset: &Dataset| {
            let learn = Learn::from_dataset(Source::Kept { name: "mine".to_owned() }, dataset.clone());
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
}
