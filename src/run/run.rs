//! A run: the stages in order, each skipped if it is done.

use super::artifacts::Artifacts;
use super::calibrate::calibrate;
use super::directory::{CONFIG, RESULTS, RunDirectory, STAGES};
use super::inputs::{Before, checkpoint_settings};
use super::material::{Learnable, Material};
use super::mirror::Mirror;
use super::record::{Finished, Stages, Standing};
use super::{Checksum, Manifest, RunError, Source, Warm, snapshot, stages as work};
use crate::config::Config;
use crate::graph::Dataset;
use crate::plan::{Stage, TimeBudget, Timed};
use crate::progress::Progress;
use crate::tensor::Device;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// What to do.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Where the data comes from.
    pub source: Source,
    /// The run directory.
    pub out: PathBuf,
    /// The settings.
    pub config: Config,
    /// The seed of every random choice.
    pub seed: u64,
    /// The device of its tensors.
    pub device: Device,
    /// Whether event files for TensorBoard are written.
    pub tensorboard: bool,
    /// The name of the configuration, where it has one: `ruleguider-complex`.
    pub name: Option<String>,
    /// A folder of other runs, from which finished stages with the same inputs are reused.
    pub siblings: Option<PathBuf>,
    /// The time budget; without one, the settings decide how long it takes.
    pub budget: Option<TimeBudget>,
    /// The first run, if this one learns all facts and has no held-out data to choose by.
    pub first: Option<FirstRun>,
    /// The run on an earlier version of the data whose weights this one starts from.
    pub warm: Option<Warm>,
    /// Stop before this stage. The same run can resume from there later.
    pub until: Option<Stage>,
}

/// A finished run whose choices another run uses.
#[derive(Clone, Debug)]
pub struct FirstRun {
    /// Its directory: the weights of the blend and the calibration are taken from there.
    pub path: PathBuf,
    /// The checksum of its stages.
    pub stages: Checksum,
}

/// How a stage went: its time, memory and figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// How long it took, over all invocations.
    pub seconds: f64,
    /// The peak memory of the process during it.
    pub peak_memory_mb: Option<f64>,
    /// Whether it was already finished and not run again.
    pub skipped: bool,
    /// Its figures.
    pub figures: Value,
}

/// The outcome of the stages of a run.
pub struct Learnt {
    /// The run directory, still held.
    pub directory: RunDirectory,
    /// What the stages made.
    pub artifacts: Artifacts,
    /// How each stage went, by name.
    pub stages: BTreeMap<String, StageReport>,
}

/// Does what `spec` asks for. `dataset` is the data of its source.
///
/// # Errors
/// If a stage fails, the directory cannot be worked in, or the user interrupts; finished stages are kept, and the same
/// spec resumes.
pub fn learn(spec: &RunSpec, dataset: &Dataset, progress: &dyn Progress) -> Result<Learnt, RunError> {
    let directory = RunDirectory::work_in(&spec.out)?;
    let sum = Checksum::of_known(&dataset.names, &dataset.known);
    let mut stages = begin(spec, dataset, Checksum::of_dataset(dataset, &sum), &directory)?;
    let began = spec.budget.as_ref().map_or_else(Instant::now, |budget| budget.began);
    let clock = || began.elapsed().as_secs_f64();
    let timed = Timed::new(progress, spec.budget.as_ref(), &clock);
    let mirror = Mirror::new(&directory, spec.tensorboard, &timed)?;
    let learnable = Learnable::of(dataset, &spec.config, sum);
    let mut artifacts = Artifacts::new(&spec.out, learnable, spec.config.clone(), spec.device.clone());
    let mut said = BTreeMap::new();
    let mut before = Before::default();
    let mut wanted = Stage::of(&spec.config);
    wanted.truncate(wanted.iter().position(|stage| spec.until == Some(*stage)).unwrap_or(wanted.len()));
    for (at, &stage) in wanted.iter().enumerate() {
        let inputs = before.inputs(stage, spec, &artifacts.learnable);
        let material = Material {
            seed: spec.seed,
            directory: &directory,
            inputs: &before.sum(stage, checkpoint_settings(stage, &spec.config), spec, &artifacts.learnable),
            first: spec.first.as_ref(),
            warm: spec.warm.as_ref(),
            progress: &mirror,
        };
        if let Some(siblings) = &spec.siblings
            && let Some(from) = stages.adopt(stage.name(), &inputs, siblings)?
        {
            mirror.take_over(stage.name(), &from)?;
            progress.begin(stage.name(), "", None);
            progress.end(&format_args!("copied from {}", from.display()));
        }
        timed.begin_stage(&wanted[at..]);
        let learnt = learn_unless_done(&wanted[at..], &inputs, &mut stages, &mut artifacts, &material);
        let skipped = learnt?;
        mirror.check()?;
        let record = &stages.records()[stage.name()];
        if timed.end_stage() {
            progress.begin(stage.name(), "", None);
            progress.end(&"out of time; keeping the best so far");
        }
        if skipped {
            timed.taken_before(record.seconds);
        }
        match stage {
            Stage::Rules if wanted.contains(&Stage::Training) => {
                before.rules.push(work::rewarding(&artifacts)?);
            }
            Stage::Embeddings => before.embedding.extend(record.files.values().cloned()),
            Stage::Propagation if spec.config.walk.needs_propagator() => {
                before.propagator.extend(record.files.values().cloned());
            }
            _ => {}
        }
        if stage != Stage::Pretraining {
            before.blended.extend(record.files.values().cloned());
        }
        said.insert(
            stage.name().to_owned(),
            StageReport {
                seconds: record.seconds,
                peak_memory_mb: record.peak_memory_mb,
                skipped,
                figures: record.figures.clone(),
            },
        );
    }
    drop(stages);
    drop(mirror);
    Ok(Learnt { directory, artifacts, stages: said })
}

/// Starts the run, or resumes the existing one. If the existing run had another seed or other settings, its stages are
/// stale until revalidated, so that an early interruption cannot leave old results under new settings.
fn begin<'a>(
    spec: &RunSpec,
    dataset: &Dataset,
    data: Checksum,
    directory: &'a RunDirectory,
) -> Result<Stages<'a>, RunError> {
    let mut manifest = Manifest::new(spec.source.clone(), data, spec.seed);
    manifest.everything_after = spec.first.as_ref().map(|first| first.stages.clone());
    manifest.resources = spec.budget.as_ref().map(|budget| budget.resources);
    manifest.relations = Some(dataset.names.relations.iter().map(str::to_owned).collect());
    let settings = spec.config.to_toml();
    manifest.config = Some(Checksum::of(&settings));
    let mut stages = Stages::of(directory)?;
    let other_seed = match manifest.resumes(directory) {
        Ok(before) => before.is_some_and(|before| before.seed != spec.seed),
        // The manifest is lost, but stages know their own inputs. If there are no stages, it may be a file of another
        // program.
        Err(RunError::Broken { .. }) if directory.file(STAGES).exists() => true,
        Err(error) => return Err(error),
    };
    directory.sweep()?;
    if other_seed || directory.read(CONFIG)?.is_some_and(|before| before != settings) {
        stages.mark_stale(Stage::ALL.map(Stage::name))?;
        directory.remove(RESULTS)?;
    }
    // Written before all other files: a folder with files but without a manifest does not count as a run.
    manifest.write(directory)?;
    directory.write(CONFIG, settings.as_bytes())?;
    // An update needs the data that was learnt, even if its source has changed. The second run relies on the copy of
    // the first, unless it is the only one to have the data.
    if spec.source.is_kept() || (spec.first.is_none() && spec.source != Source::Demonstration) {
        snapshot::keep(directory, dataset, &manifest.checksum)?;
    }
    Ok(stages)
}

/// Runs the first stage of `ahead` if needed; returns whether it was skipped.
fn learn_unless_done(
    ahead: &[Stage],
    inputs: &Checksum,
    stages: &mut Stages<'_>,
    artifacts: &mut Artifacts,
    material: &Material<'_>,
) -> Result<bool, RunError> {
    if material.progress.interrupted() {
        return Err(RunError::Interrupted);
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
        Standing::Damaged(file) => Some(format!("{file} has changed since it was written; making it again")),
        Standing::Outdated if stage == Stage::Training && artifacts.config.walk.final_rate < 1.0 => {
            let why = "a learning rate that decays until the last epoch (walk.final_rate below 1) cannot be extended";
            Some(format!("its settings or inputs have changed; running it again from the beginning: {why}"))
        }
        Standing::Outdated => Some("its settings or inputs have changed; running it again".to_owned()),
        Standing::Unfinished => None,
    };
    if let Some(why) = why {
        material.progress.begin(name, "", None);
        material.progress.end(&why);
    }
    stages.mark_stale(ahead.iter().map(|stage| stage.name()))?;
    material.directory.remove(RESULTS)?;
    stages.run(name, inputs, || learn_stage(stage, artifacts, material))?;
    Ok(false)
}

fn learn_stage(
    stage: Stage,
    artifacts: &mut Artifacts,
    material: &Material<'_>,
) -> Result<Finished, RunError> {
    match stage {
        Stage::Embeddings => work::embeddings(artifacts, material),
        Stage::Rules => work::rules(artifacts, material),
        Stage::Pretraining => work::pretraining(artifacts, material),
        Stage::Training => work::training(artifacts, material),
        Stage::Propagation => work::propagation(artifacts, material),
        Stage::Blending => work::blending(artifacts, material),
        Stage::Calibration => calibrate(artifacts, material),
    }
}
