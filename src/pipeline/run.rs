//! A run: the stages in their order, each skipped if it is done, then the ranking and a few explained answers.

use super::ask::Example;
use super::budget::{Budget, Timed};
use super::config::{Config, System};
use super::directory::{CONFIG, RESULTS, RunDirectory, STAGES};
use super::material::{Learnable, Material};
use super::mirror::Mirror;
use super::opened::Opened;
use super::stage::{Finished, Stages, Standing};
use super::{Checksum, Manifest, PipelineError, Source, learn};
use crate::eval::{Protocol, Report};
use crate::graph::Dataset;
use crate::progress::Progress;
use crate::tensor::Device;
use crate::walk::{self, Start};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Raised when a stage of an older version of the program would have come out otherwise.
const STAGE_VERSION: u32 = 2;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Order {
    /// Where the data comes from.
    pub source: Source,
    /// The run directory.
    pub out: PathBuf,
    /// The settings.
    pub config: Config,
    /// The seed of every random choice.
    pub seed: u64,
    /// Where tensors live.
    pub device: Device,
    /// Whether event files for TensorBoard are written.
    pub tensorboard: bool,
    /// The name of the configuration, where it has one: `ruleguider-complex`.
    pub name: Option<String>,
    /// A folder of other runs, from which finished stages with the very same inputs are taken over.
    pub siblings: Option<PathBuf>,
    /// How long it may take; without one, as long as the settings say.
    pub budget: Option<Budget>,
}

/// A learning stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The embedding model is trained.
    Embeddings,
    /// Rules are mined.
    Rules,
    /// The relation agent is trained alone.
    Pretraining,
    /// Both agents are trained.
    Training,
    /// The weights of the blend are fitted.
    Blending,
}

impl Stage {
    /// All of them, in their order.
    pub const ALL: [Stage; 5] =
        [Stage::Embeddings, Stage::Rules, Stage::Pretraining, Stage::Training, Stage::Blending];

    /// The name in files and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Embeddings => "embeddings",
            Stage::Rules => "rules",
            Stage::Pretraining => "pretraining",
            Stage::Training => "training",
            Stage::Blending => "blending",
        }
    }

    /// The stages that `config` needs, in their order.
    pub fn of(config: &Config) -> Vec<Stage> {
        let (walk, blend) = (&config.walk, &config.blend);
        let blends = config.system == System::Blend;
        let walks = config.system == System::Walker || (blends && blend.with_walker);
        let pretrains = walks && walk.pretrains();
        let guided = pretrains || (walks && walk.lambda > 0.0);
        let wanted = |stage: &Stage| match stage {
            Stage::Embeddings => {
                let speaks = config.system == System::Embedding || (blends && blend.with_embedding);
                speaks || (walks && walk.needs_embedding())
            }
            Stage::Rules => guided || config.system == System::Rules || (blends && blend.with_rules),
            Stage::Pretraining => pretrains,
            Stage::Training => walks,
            Stage::Blending => blends,
        };
        Self::ALL.into_iter().filter(wanted).collect()
    }

    /// The settings that the stage depends on.
    fn settings(self, config: &Config) -> Value {
        fn value(settings: &impl Serialize) -> Value {
            serde_json::to_value(settings).expect("settings are plain data")
        }
        match self {
            Stage::Embeddings => value(&config.embed),
            Stage::Rules => value(&config.rules.mined()),
            Stage::Pretraining => {
                json!([value(&config.walk.lasting(walk::Stage::Pretrain)), config.rules.threshold])
            }
            Stage::Training => json!([value(&config.walk), config.rules.threshold]),
            Stage::Blending => json!([value(&config.blend), config.rules.aggregate, config.rules.top]),
        }
    }

    /// The settings by which checkpoints of the stage are told apart: a training may be made longer.
    fn checkpoint_settings(self, config: &Config) -> Value {
        match self {
            Stage::Training => json!([config.walk.lasting(walk::Stage::Joint), config.rules.threshold]),
            other => other.settings(config),
        }
    }

    fn learn(self, material: &Material<'_>) -> Result<Finished, PipelineError> {
        match self {
            Stage::Embeddings => learn::embeddings(material),
            Stage::Rules => learn::rules(material),
            Stage::Pretraining => learn::pretraining(material),
            Stage::Training => learn::training(material),
            Stage::Blending => learn::blending(material),
        }
    }
}

/// How long a stage took, and whether it took it now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageSaid {
    /// How long it took, all sittings together.
    pub seconds: f64,
    /// The most memory the process held during it.
    pub peak_memory_mb: Option<f64>,
    /// Whether it was finished before and not done again.
    pub skipped: bool,
    /// What it has to say about its result.
    pub figures: Value,
}

/// What a run comes to. As JSON its keys are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The figures on the test split.
    #[serde(flatten)]
    pub report: Report,
    /// Who answered.
    pub system: System,
    /// The name of the configuration, where it has one.
    pub name: Option<String>,
    /// The name of the data set.
    pub dataset: String,
    /// The version of the program.
    pub version: String,
    /// The seed.
    pub seed: u64,
    /// The stages, by name.
    pub stages: BTreeMap<String, StageSaid>,
    /// For what share of the queries the top answer's path is a rule; in a blend, where the top answer need not be the
    /// walker's, that of its walker on the validation split. Absent where nothing walks.
    pub rule_share: Option<f64>,
    /// A few answers with their reasons.
    pub examples: Vec<Example>,
}

/// Does what `order` asks for. `dataset` is what its source holds.
///
/// # Errors
/// If a stage fails, the directory cannot be worked in, or the user interrupts; what is finished stays, and the
/// same order goes on from there.
pub fn run(order: &Order, dataset: &Dataset, progress: &dyn Progress) -> Result<RunReport, PipelineError> {
    let directory = RunDirectory::work_in(&order.out)?;
    let mut stages = begin(order, dataset, &directory)?;
    let began = order.budget.as_ref().map_or_else(Instant::now, |budget| budget.began);
    let clock = || began.elapsed().as_secs_f64();
    let timed = Timed::new(progress, order.budget.as_ref(), &clock);
    let mirror = Mirror::new(&directory, order.tensorboard, &timed)?;
    let learnable = Learnable::of(dataset, &order.config);
    let mut said = BTreeMap::new();
    let mut before = Before::default();
    let wanted = Stage::of(&order.config);
    for (at, &stage) in wanted.iter().enumerate() {
        let inputs = before.inputs(stage, order, &learnable);
        let material = Material {
            learnable: &learnable,
            config: &order.config,
            seed: order.seed,
            device: &order.device,
            directory: &directory,
            inputs: &before.sum(stage, stage.checkpoint_settings(&order.config), order, &learnable),
            progress: &mirror,
        };
        if let Some(siblings) = &order.siblings
            && let Some(from) = stages.adopt(stage.name(), &inputs, siblings)?
        {
            mirror.take_over(stage.name(), &from)?;
            progress.begin(stage.name(), "", None);
            progress.end(&format_args!("taken over from {}", from.display()));
        }
        timed.begin_stage(&wanted[at..]);
        let learnt = learn_unless_done(&wanted[at..], &inputs, &mut stages, &material);
        mirror.catch_up()?;
        let skipped = learnt?;
        let record = &stages.records()[stage.name()];
        if timed.end_stage() {
            progress.begin(stage.name(), "", None);
            progress.end(&"its time was up; the best so far is kept");
        }
        if skipped {
            timed.taken_before(record.seconds);
        }
        match stage {
            Stage::Rules if wanted.contains(&Stage::Training) => {
                before.rules.push(learn::rewarding(&directory, &learnable, &order.config)?);
            }
            Stage::Embeddings => before.embedding.extend(record.files.values().cloned()),
            _ => {}
        }
        if stage != Stage::Pretraining {
            before.blended.extend(record.files.values().cloned());
        }
        said.insert(
            stage.name().to_owned(),
            StageSaid {
                seconds: record.seconds,
                peak_memory_mb: record.peak_memory_mb,
                skipped,
                figures: record.figures.clone(),
            },
        );
    }
    drop(stages);
    drop(mirror);
    finish(order, dataset, learnable, directory, said, progress)
}

/// Begins the run, or goes on with the one that is there. If that had another seed or other settings, nothing of it
/// counts until this one has come by it, so that what is interrupted before is not taken for what was asked for.
fn begin<'a>(
    order: &Order,
    dataset: &Dataset,
    directory: &'a RunDirectory,
) -> Result<Stages<'a>, PipelineError> {
    let mut manifest = Manifest::new(order.source.clone(), dataset, order.seed);
    manifest.means = order.budget.as_ref().map(|budget| budget.means);
    let settings = order.config.to_toml();
    let mut stages = Stages::of(directory)?;
    let other_seed = match manifest.resumes(directory) {
        Ok(before) => before.is_some_and(|before| before.seed != order.seed),
        // What it was about nobody knows; stages know by themselves what they were made from. Without any, it may be a
        // file of another program.
        Err(PipelineError::Broken { .. }) if directory.file(STAGES).exists() => true,
        Err(error) => return Err(error),
    };
    directory.sweep()?;
    if other_seed || directory.read(CONFIG)?.is_some_and(|before| before != settings) {
        stages.doubt(Stage::ALL.map(Stage::name))?;
        directory.remove(RESULTS)?;
    }
    manifest.write(directory)?;
    directory.write(CONFIG, settings.as_bytes())?;
    Ok(stages)
}

/// What later stages are made from, beside the data. The walker sees of the rules only those that reward a path, so
/// runs that mine more for other uses can share it.
#[derive(Default)]
struct Before {
    embedding: Vec<Checksum>,
    rules: Vec<Checksum>,
    blended: Vec<Checksum>,
}

impl Before {
    /// The checksum of everything that `stage` depends on. A stage that may have been cut short by a budget is not
    /// the one of a longer budget.
    fn inputs(&self, stage: Stage, order: &Order, learnable: &Learnable) -> Checksum {
        let seconds = order.budget.as_ref().map(|budget| budget.means.seconds());
        self.sum(stage, json!([stage.name(), stage.settings(&order.config), seconds]), order, learnable)
    }

    fn sum(&self, stage: Stage, settings: Value, order: &Order, learnable: &Learnable) -> Checksum {
        let before = match stage {
            Stage::Embeddings | Stage::Rules => Vec::new(),
            // Rewarded by rules alone, whatever will reward the ends of walks later.
            Stage::Pretraining if order.config.walk.start == Start::Random => self.rules.clone(),
            Stage::Pretraining | Stage::Training => [&self.embedding[..], &self.rules].concat(),
            Stage::Blending => self.blended.clone(),
        };
        let data = (&learnable.checksum, learnable.valid_learnt);
        Checksum::of(&(STAGE_VERSION, settings, data, order.seed, before))
    }
}

/// Runs the first stage of `ahead` if it has to; whether it was skipped.
fn learn_unless_done(
    ahead: &[Stage],
    inputs: &Checksum,
    stages: &mut Stages<'_>,
    material: &Material<'_>,
) -> Result<bool, PipelineError> {
    if material.progress.interrupted() {
        return Err(PipelineError::Interrupted);
    }
    let stage = ahead[0];
    let name = stage.name();
    let why = match stages.standing(name, inputs)? {
        Standing::Finished => {
            stages.confirm(name)?;
            material.progress.begin(name, "", None);
            material.progress.end(&"already done");
            return Ok(true);
        }
        Standing::Damaged(file) => Some(format!("{file} is not what was written; making it anew")),
        Standing::Outdated => Some("its settings or its inputs have changed; doing it again".to_owned()),
        Standing::Unfinished => None,
    };
    if let Some(why) = why {
        material.progress.begin(name, "", None);
        material.progress.end(&why);
    }
    stages.doubt(ahead.iter().map(|stage| stage.name()))?;
    material.directory.remove(RESULTS)?;
    stages.run(name, inputs, || stage.learn(material))?;
    Ok(false)
}

/// Ranks the test split, explains a few answers, writes the results.
fn finish(
    order: &Order,
    dataset: &Dataset,
    learnable: Learnable,
    directory: RunDirectory,
    stages: BTreeMap<String, StageSaid>,
    progress: &dyn Progress,
) -> Result<RunReport, PipelineError> {
    let opened = Opened::from_parts(directory, order, dataset.clone(), learnable)?;
    let reasoner = opened.reasoner()?;
    let protocol =
        Protocol { side: order.config.eval.direction, ties: order.config.eval.ties, ..Protocol::default() };
    let (report, rule_share) = opened.test(&*reasoner, protocol, progress)?;
    let of_walker = || stages.get(Stage::Training.name())?.figures["rule_share"].as_f64();
    let rule_share = rule_share.or_else(of_walker);
    let examples = opened.examples(&*reasoner, order.config.eval.examples)?;
    let report = RunReport {
        report,
        system: order.config.system,
        name: order.name.clone(),
        dataset: order.source.name(),
        version: crate::VERSION.to_owned(),
        seed: order.seed,
        stages,
        rule_share,
        examples,
    };
    let text = serde_json::to_vec_pretty(&report).expect("a report is plain data");
    opened.directory().write(RESULTS, &text)?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::{Impatient, Silent};

    #[test]
    fn what_was_learnt_with_other_settings_does_not_pass_for_what_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (dataset, out) = (Dataset::demonstration(), folder.path().join("run"));
        let mut order = Order {
            source: Source::Demonstration,
            out: out.clone(),
            config: Config { system: System::Rules, ..Config::default() },
            seed: 1,
            device: Device::cpu(1).unwrap(),
            tensorboard: false,
            name: None,
            siblings: None,
            budget: None,
        };
        order.config.rules.samples = 1000;
        let first = run(&order, &dataset, &Silent).unwrap();
        let opened = || Opened::open(&out, None, &Device::cpu(1).unwrap());
        assert_eq!(opened().unwrap().results().unwrap(), first);
        let before = order.clone();
        for change in
            [|order: &mut Order| order.seed = 2, |order: &mut Order| order.config.rules.max_length = 1]
        {
            change(&mut order);
            assert!(matches!(run(&order, &dataset, &Impatient), Err(PipelineError::Interrupted)));
            assert!(matches!(opened(), Err(PipelineError::Missing { .. })));
            assert!(!out.join(RESULTS).exists());
            // Nor is anything lost: asked for as before, it is all there.
            order = before.clone();
            assert!(run(&order, &dataset, &Silent).unwrap().stages["rules"].skipped);
            assert!(opened().is_ok());
        }
    }

    #[test]
    fn rules_are_mined_again_only_for_what_mining_looks_at() {
        let mined = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            Stage::Rules.settings(&config)
        };
        let before = mined(|_| {});
        assert_eq!(mined(|config| (config.rules.threshold, config.rules.top) = (0.5, 7)), before);
        assert_ne!(mined(|config| config.rules.seconds = 7.0), before);
        assert_ne!(mined(|config| config.rules.min_support = 7), before);
        let by_samples = mined(|config| config.rules.samples = 5);
        assert_eq!(mined(|config| (config.rules.samples, config.rules.seconds) = (5, 7.0)), by_samples);
    }

    #[test]
    fn a_run_has_the_stages_that_its_walker_learns_from() {
        let mut config = Config::default();
        (config.system, config.walk.soft_reward) = (System::Walker, false);
        assert_eq!(Stage::of(&config), [Stage::Rules, Stage::Pretraining, Stage::Training]);
        config.walk.start = Start::Embedding;
        assert_eq!(Stage::of(&config)[0], Stage::Embeddings);
        let pretraining = Stage::Pretraining.settings(&config);
        (config.walk.epochs, config.walk.lambda) = (7, 0.5);
        assert_eq!(Stage::Pretraining.settings(&config), pretraining, "it does not look at these");
        (config.walk.lambda, config.walk.pretrain_epochs) = (0.0, 0.0);
        assert_eq!(Stage::of(&config), [Stage::Embeddings, Stage::Training]);
    }
}
