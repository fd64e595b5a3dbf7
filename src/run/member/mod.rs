//! Which members does a run have, and what does each need? Every member is declared once, in one file of this folder.
//!
//! A member is anything that a run learns from the data and keeps in a file: the embedding model, the rules, the two
//! phases of the walker, the propagator, the weights of the blend, the calibration. [`Member`] says everything about it:
//! its name (of its record, its checkpoints and its learning curves alike), the settings and files that it depends on,
//! its cost, how it is trained, how its length is carried over to other runs, and the reasoner that it gives.
//!
//! **To add a member**, implement the trait in a file of its own and put it into `OWN`, or [`register`] it from
//! another crate. Training, resuming, updating, the second run on all facts, time budgets, sweeps, learning curves in
//! the report, and a place in the blend then come by themselves.

mod blending;
mod calibration;
mod embeddings;
mod pretraining;
mod propagation;
mod rules;
mod training;
mod universal;

pub use blending::BLENDING;
pub use calibration::CALIBRATION;
pub use embeddings::EMBEDDINGS;
pub use pretraining::PRETRAINING;
pub use propagation::PROPAGATION;
pub use rules::RULES;
pub(in crate::run) use rules::{APPLIED, BY_PATH};
pub use training::TRAINING;
pub use universal::UNIVERSAL;
pub(in crate::run) use universal::UNIVERSAL_WEIGHTS;

use super::artifacts::Artifacts;
use super::material::Material;
use super::record::{Finished, Stages};
use super::{Checksum, MemberReport, RunError};
use crate::config::{self, Config, FurtherMember, System, TypesConfig};
use crate::cost::{GraphSize, Resources};
use crate::reason::Explains;
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, PoisonError, RwLock};

/// The learning rate of an update, relative to the earlier one: what was learnt should be adjusted, not overwritten.
const UPDATE_RATE: f64 = 0.5;
/// Seconds that it takes to open a blend with some hundred thousand rules. A rough figure.
const OPENING: f64 = 2.5;
/// The facts of a graph with so many rules; a smaller one is opened in proportion.
const OPENED: f64 = 200_000.0;

/// A member of a run.
pub trait Member: Send + Sync {
    /// Its name: of its record, its checkpoints, its learning curves, and on the screen.
    fn name(&self) -> &'static str;

    /// The system that answers by this member alone, if it can.
    fn system(&self) -> Option<System> {
        None
    }

    /// The settings of a further member, with their defaults, as `members.NAME`.
    fn defaults(&self) -> toml::Table {
        toml::Table::new()
    }

    /// Whether a run with these settings has it.
    fn is_wanted(&self, config: &Config) -> bool {
        self.system().is_some_and(|system| config.includes(system))
    }

    /// The settings that its result depends on: those of `members.NAME`, if it has no others.
    fn settings(&self, config: &Config) -> Value {
        value(&config.members.get(self.name()))
    }

    /// The settings that identify its checkpoints. The length of a training is left out where it can be extended.
    fn checkpoint_settings(&self, config: &Config) -> Value {
        self.settings(config)
    }

    /// The members whose files it reads. They are trained before it.
    fn after(&self, _config: &Config) -> Vec<&'static str> {
        Vec::new()
    }

    /// The checksums of what it reads of the members before it: their files, unless it reads only part of one.
    ///
    /// # Errors
    /// If an artifact cannot be read.
    fn inputs(&self, artifacts: &Artifacts, records: &Stages<'_>) -> Result<Vec<Checksum>, RunError> {
        Ok(self.after(&artifacts.config).into_iter().flat_map(|name| records.files_of(name)).collect())
    }

    /// Whether it is fitted to held-out facts. The second run, which has none, takes its file from the first; an
    /// update, which has its own, starts it afresh.
    fn is_fitted(&self) -> bool {
        false
    }

    /// Whether answers depend on its files. If not, only other members read them.
    fn answers(&self) -> bool {
        true
    }

    /// About how long it takes. A member that does not say it gets no time of a plan, and takes that of the others.
    fn cost(&self, _config: &Config, _size: &GraphSize, _resources: &Resources) -> Cost {
        Cost::default()
    }

    /// What the plan says about it, before its time.
    fn planned(&self, _config: &Config) -> Option<String> {
        None
    }

    /// Trains it and writes its files. Resumes from a checkpoint in its [folder](Material::checkpoints).
    ///
    /// # Errors
    /// If training fails, a file cannot be written, or the user interrupts.
    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError>;

    /// How many epochs it trains, and how many lie between validations; `None` if it is not trained by epochs.
    fn epochs(&self, _config: &Config) -> Option<Epochs> {
        None
    }

    /// Changes `config` so that training takes as long as was best, for a run without held-out facts.
    fn settle(&self, _config: &mut Config, _outcome: &MemberReport) {}

    /// Changes `config` for a shorter and more careful training that starts from earlier weights.
    fn shorten(&self, _config: &mut Config, _outcome: &MemberReport) {}

    /// Why a training whose length has changed starts over, where it cannot be extended.
    fn starts_over(&self, _config: &Config) -> Option<&'static str> {
        None
    }

    /// Its reasoner; `None` if it gives none.
    ///
    /// # Errors
    /// If it cannot be loaded.
    fn reasoner(&self, _artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        Ok(None)
    }

    /// What it is called where it must be left out, because it knows entities by name and the graph is another one;
    /// `None` if it answers on any graph with the same relations.
    fn knows_entities(&self, _config: &Config) -> Option<&'static str> {
        None
    }

    /// Whether it knows the relations that it was trained on. If not, it answers on graphs with any others.
    fn knows_relations(&self) -> bool {
        true
    }

    /// Its built-in search space, as TOML, and the name of that space.
    fn space(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// About how many seconds a member takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// To train it.
    pub training: f64,
    /// To rank by it alone.
    pub ranking: f64,
    /// What ranking by a blend takes longer with it.
    pub blending: f64,
}

impl Cost {
    /// For a member that takes `training` seconds, and `ranking` seconds to rank, alone or in a blend.
    pub fn new(training: f64, ranking: f64) -> Self {
        Self { training, ranking, blending: ranking }
    }
}

/// The length of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epochs {
    /// How many there are.
    pub epochs: usize,
    /// How many lie between validations.
    pub validate_every: usize,
}

/// A member, as it is passed around.
pub type MemberRef = &'static dyn Member;

/// The members of the project, in the order of training where inputs leave a choice.
const OWN: [MemberRef; 8] = [
    &embeddings::Embeddings,
    &rules::Rules,
    &pretraining::Pretraining,
    &training::Training,
    &propagation::Propagation,
    &universal::ByUniversal,
    &blending::Blending,
    &calibration::Calibrating,
];

static FURTHER: RwLock<Vec<MemberRef>> = RwLock::new(Vec::new());

/// Adds a member to those of the project. Registering the same name again changes nothing.
pub fn register(member: MemberRef) {
    let mut further = FURTHER.write().unwrap_or_else(PoisonError::into_inner);
    if further.iter().all(|known| known.name() != member.name()) {
        further.push(member);
        config::declare(FurtherMember { name: member.name(), defaults: member.defaults() });
    }
}

/// All members: those that are trained, then those that are fitted to them.
pub fn all() -> Vec<MemberRef> {
    let further = FURTHER.read().unwrap_or_else(PoisonError::into_inner);
    let (fitted, trained): (Vec<MemberRef>, Vec<MemberRef>) =
        OWN.into_iter().partition(|member| member.is_fitted());
    trained.into_iter().chain(further.iter().copied()).chain(fitted).collect()
}

/// The names of all members, in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().into_iter().map(|member| member.name())
}

/// The member called `name`.
pub fn named(name: &str) -> Option<MemberRef> {
    all().into_iter().find(|member| member.name() == name)
}

/// The member that answers as `system`; `None` for the blend.
pub fn of_system(system: System) -> Option<MemberRef> {
    all().into_iter().find(|member| member.system() == Some(system))
}

/// The members that a run with these settings has, each after those that it reads.
pub fn of(config: &Config) -> Vec<MemberRef> {
    let mut waiting: Vec<MemberRef> = all().into_iter().filter(|member| member.is_wanted(config)).collect();
    let mut ready: Vec<MemberRef> = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_waiting = |name: &&'static str| waiting.iter().any(|member| member.name() == *name);
        let free = |member: &MemberRef| !member.after(config).iter().any(is_waiting);
        // Members that wait for each other would be a mistake in their declarations; they then keep their order.
        let next = waiting.iter().position(free).unwrap_or(0);
        ready.push(waiting.remove(next));
    }
    ready
}

/// Whether a run with these settings has the member called `name`.
pub fn has(config: &Config, name: &str) -> bool {
    named(name).is_some_and(|member| member.is_wanted(config))
}

/// Whether the system that answers by these settings knows the relations that it was trained on.
pub fn knows_relations(config: &Config) -> bool {
    of_system(config.system).is_none_or(|member| member.knows_relations())
}

/// The member of these settings that answers queries of any relation, if one does.
pub fn of_any_relation(config: &Config) -> Option<MemberRef> {
    let answers = |member: &MemberRef| member.system().is_some_and(|system| config.includes(system));
    all().into_iter().filter(answers).find(|member| !member.knows_relations())
}

/// The members of a run whose files its answers depend on.
fn answering(config: &Config) -> impl Iterator<Item = MemberRef> {
    all().into_iter().filter(|member| member.is_wanted(config) && member.answers())
}

/// The size of a graph of which as many queries are ranked as both ends of `facts` validation facts have, 0 standing for
/// all; the validation split is taken to be about as large as what is ranked.
fn asked(size: &GraphSize, facts: usize) -> GraphSize {
    let most = if facts == 0 { usize::MAX } else { 2 * facts };
    GraphSize { ranked: size.ranked.min(most), ..*size }
}

/// About how many seconds a query takes of the run's reasoner.
pub fn query(config: &Config, size: &GraphSize, resources: &Resources) -> f64 {
    let seconds = |ranked| ranking(config, &GraphSize { ranked, ..*size }, resources);
    // Of many, so that what it takes to open the reasoner does not count.
    (seconds(1000) - seconds(0)) / 1000.0
}

/// About how many seconds the run's reasoner takes to rank the test split.
pub fn ranking(config: &Config, size: &GraphSize, resources: &Resources) -> f64 {
    let answers = |member: &MemberRef| member.system().is_some_and(|system| config.includes(system));
    match of_system(config.system) {
        Some(alone) => alone.cost(config, size, resources).ranking,
        None => {
            let cost = |member: MemberRef| member.cost(config, size, resources).blending;
            OPENING * (size.facts as f64 / OPENED).min(1.0)
                + all().into_iter().filter(answers).map(cost).sum::<f64>()
        }
    }
}

/// `settings` of a member that depends on the mode of types. The default is left out, as in runs from before there were
/// modes.
fn with_types(settings: Value, config: &Config) -> Value {
    match config.types == TypesConfig::default() {
        true => settings,
        false => Value::Array(vec![settings, value(&config.types)]),
    }
}

/// Settings as a value that a checksum is made of.
fn value(settings: &impl Serialize) -> Value {
    serde_json::to_value(settings).expect("settings are plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_knows_the_further_members_and_their_settings() {
        let known = config::further();
        for member in OWN {
            let Some(System::Further(name)) = member.system() else { continue };
            assert_eq!(name, member.name());
            let declared = known.iter().find(|declared| declared.name == name);
            let declared = declared.unwrap_or_else(|| panic!("{name} is missing in src/config/further.rs"));
            assert_eq!(declared.defaults, member.defaults(), "{name}");
        }
    }
}
