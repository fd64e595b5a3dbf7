//! A run: its members in order, each skipped if it is done.

use super::artifacts::Artifacts;
use super::directory::{CONFIG, RESULTS, RunDirectory, STAGES};
use super::inputs::Inputs;
use super::material::{Learnable, Material};
use super::member::{self, MemberRef};
use super::mirror::Mirror;
use super::record::{Stages, Standing};
use super::{Checksum, Manifest, MemberReport, RunError, Source, Warm};
use crate::config::Config;
use crate::cost::{TimeBudget, Timed};
use crate::graph::Dataset;
use crate::progress::Progress;
use crate::tensor::Device;
use serde::{Deserialize, Serialize};
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
    /// Stop before the member of this name. The same run can resume from there later.
    pub until: Option<&'static str>,
    /// Whether the run already answers by other settings, and goes on doing so while members that these settings add are
    /// trained: nothing that is there is changed.
    pub ahead: bool,
    /// Members that were finished a moment ago: nothing is said of finding them finished or outdated.
    pub fresh: Vec<String>,
}

impl RunSpec {
    /// Whether the member called `name` was finished a moment ago.
    fn is_fresh(&self, name: &str) -> bool {
        self.fresh.iter().any(|fresh| fresh == name)
    }
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
    /// Why it ended before it was done, keeping the best so far; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// Its figures.
    pub figures: MemberReport,
}

/// The outcome of the stages of a run.
pub struct Learnt {
    /// The run directory, still held.
    pub directory: RunDirectory,
    /// What the stages made.
    pub artifacts: Artifacts,
    /// How each stage went, by name.
    pub stages: BTreeMap<String, StageReport>,
    /// How many seconds a query took where the members were fitted; `None` if nothing was asked, or there was no budget.
    pub query_seconds: Option<f64>,
    /// How long it took, relative to what was planned; 1 if that was not measured.
    pub pace: f64,
}

/// Why a stage is cut.
const OUT_OF_TIME: &str = "out of time";

/// Does what `spec` asks for. `dataset` is the data of its source.
///
/// # Errors
/// If a stage fails, the directory cannot be worked in, or the user interrupts; finished stages are kept, and the same
/// spec resumes.
pub fn learn(spec: &RunSpec, dataset: &Dataset, progress: &dyn Progress) -> Result<Learnt, RunError> {
    let directory = RunDirectory::work_in(&spec.out)?;
    let sum = Checksum::of_known(&dataset.names, &dataset.known);
    let mut stages = begin(spec, dataset, &sum, &directory)?;
    let began = spec.budget.as_ref().map_or_else(Instant::now, |budget| budget.began);
    let clock = || began.elapsed().as_secs_f64();
    let timed = Timed::new(progress, spec.budget.as_ref(), &clock);
    let mirror = Mirror::new(&directory, spec.tensorboard, &timed)?;
    let learnable = Learnable::of(dataset, &spec.config, sum);
    let mut artifacts = Artifacts::new(&spec.out, learnable, spec.config.clone(), spec.device.clone());
    let mut reports = BTreeMap::new();
    let mut wanted = member::of(&spec.config);
    // Those that come after the end have their part of the time, too.
    let names: Vec<&'static str> = wanted.iter().map(|member| member.name()).collect();
    let stops = |member: &MemberRef| spec.until == Some(member.name());
    wanted.truncate(wanted.iter().position(stops).unwrap_or(wanted.len()));
    for (at, &member) in wanted.iter().enumerate() {
        let name = member.name();
        let before = member.inputs(&artifacts, &stages)?;
        let inputs = Inputs { member, spec, learnable: &artifacts.learnable, before };
        let (inputs, checkpoints) = (inputs.of_result(), inputs.of_checkpoints());
        let material = Material {
            seed: spec.seed,
            directory: &directory,
            inputs: &checkpoints,
            first: spec.first.as_ref(),
            warm: spec.warm.as_ref(),
            progress: &mirror,
        };
        if let Some(siblings) = &spec.siblings
            && let Some(from) = stages.adopt(name, &inputs, siblings)?
        {
            mirror.take_over(name, &from)?;
            progress.begin(name, "", None);
            progress.end(&format_args!("copied from {}", from.display()));
        }
        timed.begin_stage(&names[at..]);
        mirror.begin_member(name);
        let skipped =
            learn_unless_done(spec, &wanted[at..], &inputs, &mut stages, &mut artifacts, &material)?;
        mirror.check()?;
        let ended_early = stages.records().get(name).is_some_and(|record| record.figures.out_of_time);
        if (timed.end_stage() || ended_early) && !skipped {
            stages.cut(name, OUT_OF_TIME)?;
            progress.begin(name, "", None);
            progress.end(&format_args!("{OUT_OF_TIME}; keeping the best so far"));
        }
        let record = &stages.records()[name];
        // The clock has counted what was made a moment ago.
        if skipped && !spec.is_fresh(name) {
            timed.taken_before(record.seconds);
        }
        reports.insert(
            name.to_owned(),
            StageReport {
                seconds: record.seconds,
                peak_memory_mb: record.peak_memory_mb,
                skipped,
                cut: record.cut.clone(),
                figures: record.figures.clone(),
            },
        );
    }
    drop(stages);
    drop(mirror);
    let (query_seconds, pace) = (timed.query_seconds(), timed.pace());
    Ok(Learnt { directory, artifacts, stages: reports, query_seconds, pace })
}

/// Starts the run, or resumes the existing one. If the existing run had another seed or other settings, its stages are
/// stale until revalidated, so that an early interruption cannot leave old results under new settings.
fn begin<'a>(
    spec: &RunSpec,
    dataset: &Dataset,
    known: &Checksum,
    directory: &'a RunDirectory,
) -> Result<Stages<'a>, RunError> {
    let whole = Checksum::of_dataset(dataset, known);
    let settings = spec.config.to_toml();
    let mut manifest = Manifest::new(spec.source.clone(), whole, Checksum::of(&settings), spec.seed);
    manifest.everything_after = spec.first.as_ref().map(|first| first.stages.clone());
    manifest.resources = spec.budget.as_ref().map(|budget| budget.resources);
    let seconds = spec.budget.as_ref().map(|budget| budget.resources.seconds());
    let mut stages = Stages::of(directory)?.within(seconds);
    if spec.ahead {
        return Ok(stages);
    }
    let other_seed = match manifest.resumes(directory) {
        Ok(before) => before.is_some_and(|before| before.seed != spec.seed),
        // The manifest is lost, but stages know their own inputs. If there are no stages, it may be a file of another
        // program.
        Err(RunError::Broken { .. }) if directory.file(STAGES).exists() => true,
        Err(error) => return Err(error),
    };
    directory.sweep()?;
    if other_seed || directory.read(CONFIG)?.is_some_and(|before| before != settings) {
        stages.mark_stale(member::names())?;
        directory.remove(RESULTS)?;
    }
    // Written before all other files: a folder with files but without a manifest does not count as a run.
    manifest.write(directory)?;
    directory.write(CONFIG, settings.as_bytes())?;
    manifest.keep_data(directory, dataset, known)?;
    Ok(stages)
}

/// Trains the first member of `ahead` if needed; returns whether it was skipped.
fn learn_unless_done(
    spec: &RunSpec,
    ahead: &[MemberRef],
    inputs: &Checksum,
    stages: &mut Stages<'_>,
    artifacts: &mut Artifacts,
    material: &Material<'_>,
) -> Result<bool, RunError> {
    if material.progress.interrupted() {
        return Err(RunError::Interrupted);
    }
    let member = ahead[0];
    let name = member.name();
    let is_fresh = spec.is_fresh(name);
    let why = match stages.standing(name, inputs)? {
        Standing::Finished => {
            if !spec.ahead {
                stages.confirm(name)?;
            }
            if !is_fresh {
                material.progress.begin(name, "", None);
                material.progress.end(&"already done");
            }
            return Ok(true);
        }
        Standing::Damaged(file) => Some(format!("{file} has changed since it was written; making it again")),
        Standing::Outdated => Some(match member.starts_over(&artifacts.config) {
            Some(why) => {
                format!("its settings or inputs have changed; running it again from the beginning: {why}")
            }
            None => "its settings or inputs have changed; running it again".to_owned(),
        }),
        Standing::Unfinished => None,
    };
    // That the settings of what was made a moment ago have changed is no news.
    if let Some(why) = why.filter(|_| !is_fresh) {
        material.progress.begin(name, "", None);
        material.progress.end(&why);
    }
    if !spec.ahead {
        stages.mark_stale(ahead.iter().map(|member| member.name()))?;
        material.directory.remove(RESULTS)?;
    }
    stages.run(name, inputs, || member.train(artifacts, material))?;
    Ok(false)
}
