//! Continuing from an earlier run after its data has changed.
//!
//! The new run has a directory of its own, so nothing of the old one is lost and it resumes like any other. Embeddings
//! and networks start from the old weights (new entities and relations from fresh ones) and train for half as many
//! epochs as were best before. Old rules are recounted and join the newly mined ones.

use super::directory::{RESULTS, RULES};
use super::everything::fingerprint;
use super::member;
use super::{Checksum, Manifest, RunDirectory, RunError, Stages};
use crate::config::Config;
use crate::graph::{Dataset, Names, Renumbering, Triple};
use crate::rule::{CarriedRules, MovedRule, RuleFile, ScoredRule, UNSEEN, rule_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A finished run that an update starts from.
#[derive(Clone)]
pub struct Warm {
    /// Its directory.
    pub path: PathBuf,
    /// The checksum of its stages, which is what the new run depends on.
    pub stages: Checksum,
    /// The names of its data.
    pub names: Arc<Names>,
}

/// An earlier run, with everything that an update needs from it.
pub struct EarlierRun {
    /// What the update starts from.
    pub warm: Warm,
    /// Its settings, for shorter trainings.
    pub config: Config,
    /// What it was made from.
    pub dataset: Dataset,
    /// Its final figures, if it finished.
    pub results: Option<Value>,
}

impl EarlierRun {
    /// The run at `path`, which must be finished.
    ///
    /// # Errors
    /// If there is no finished run, or its data cannot be recovered.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let directory = RunDirectory::look_at(path)?;
        let manifest = Manifest::read(&directory)?;
        let config = Config::from_toml(&manifest.settings(&directory)?, &path.display().to_string())?;
        let stages = Stages::of(&directory)?;
        for member in member::of(&config) {
            stages.expect_whole(member.name())?;
        }
        let shorter = shorter(&config, &stages);
        let dataset = manifest.dataset(&directory)?.0;
        let results = directory.read(RESULTS)?.and_then(|text| serde_json::from_str(&text).ok());
        let warm =
            Warm { path: path.to_owned(), stages: fingerprint(&directory)?, names: dataset.names.clone() };
        Ok(Self { warm, config: shorter, dataset, results })
    }
}

/// The settings of an update: about half of the best number of epochs, at half the learning rate.
fn shorter(config: &Config, stages: &Stages<'_>) -> Config {
    let mut config = config.clone();
    for member in member::all() {
        if let Some(record) = stages.record(member.name()) {
            member.shorten(&mut config, &record.figures);
        }
    }
    config
}

impl std::fmt::Debug for Warm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warm").field("path", &self.path).field("stages", &self.stages).finish()
    }
}

impl Warm {
    /// A file of the run, if it has it.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.path.join(name)).filter(|path| path.is_file())
    }

    /// Its rules, with the ids of its own names.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn rules(&self) -> Result<Vec<ScoredRule>, RunError> {
        match self.file(RULES) {
            Some(path) => Ok(RuleFile::read(&path, &self.names)?.rules),
            None => Ok(Vec::new()),
        }
    }
}

/// A rule whose confidence has changed, as scripts see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleChange {
    /// The rule, in AnyBURL's notation.
    pub rule: String,
    /// Its confidence before.
    pub before: f64,
    /// Its confidence now.
    pub after: f64,
}

/// What became of the rules, as scripts see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleChanges {
    /// How many were there before and still are.
    pub kept: usize,
    /// How many are new.
    pub new: usize,
    /// How many are no longer good enough, or name something that was removed.
    pub gone: usize,
    /// Those whose confidence has changed most.
    pub moved: Vec<RuleChange>,
}

impl RuleChanges {
    /// `carried`, with names.
    pub fn of(carried: &CarriedRules, names: &Names) -> Self {
        let change = |moved: &MovedRule| RuleChange {
            rule: rule_text(&moved.rule, names),
            before: moved.before.confidence(UNSEEN),
            after: moved.after.confidence(UNSEEN),
        };
        let CarriedRules { kept, new, gone, moved, .. } = carried;
        Self { kept: *kept, new: *new, gone: *gone, moved: moved.iter().map(change).collect() }
    }
}

/// How the facts of two versions of the data differ, over all splits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataChanges {
    /// Facts that are new.
    pub facts_added: usize,
    /// Facts that are gone.
    pub facts_removed: usize,
    /// Entities that are new.
    pub entities_added: usize,
    /// Entities that are gone.
    pub entities_removed: usize,
    /// Relations that are new.
    pub relations_added: usize,
    /// Relations that are gone.
    pub relations_removed: usize,
}

impl DataChanges {
    /// From `before` to `now`.
    pub fn between(before: &Dataset, now: &Dataset) -> Self {
        let (then, here) = (before.everything().known.facts, now.everything().known.facts);
        let ids = Renumbering::new(&now.names, &before.names);
        let old: HashSet<Triple> = then.iter().copied().collect();
        let both =
            here.iter().filter(|&&fact| ids.fact(fact).is_some_and(|fact| old.contains(&fact))).count();
        let [entities_added, relations_added] = ids.without();
        let [entities_removed, relations_removed] = Renumbering::new(&before.names, &now.names).without();
        Self {
            facts_added: here.len() - both,
            facts_removed: then.len() - both,
            entities_added,
            entities_removed,
            relations_added,
            relations_removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Array, Known};

    #[test]
    fn changes_are_told_by_names_not_by_ids() {
        let data = |entities: &[&str], facts: &[(u32, u32, u32)], test: &[(u32, u32, u32)]| {
            let split = |facts: &[(u32, u32, u32)]| -> Array<Triple> {
                facts.iter().map(|&(head, relation, tail)| Triple::new(head, relation, tail)).collect()
            };
            let facts = split(facts);
            Dataset {
                names: Arc::new(Names {
                    entities: entities.iter().copied().collect(),
                    relations: ["r"].into_iter().collect(),
                    ..Names::default()
                }),
                known: Known { queries: facts.clone(), facts, ..Known::default() },
                test: split(test),
                ..Dataset::default()
            }
        };
        let before = data(&["a", "b", "c"], &[(0, 0, 1), (1, 0, 2)], &[(2, 0, 0)]);
        // c→a is learnt now, b→c is removed, d is new.
        let now = data(&["d", "c", "a", "b"], &[(2, 0, 3), (1, 0, 2), (0, 0, 1)], &[]);
        let expected =
            DataChanges { facts_added: 1, facts_removed: 1, entities_added: 1, ..Default::default() };
        assert_eq!(DataChanges::between(&before, &now), expected);
        assert_eq!(DataChanges::between(&before, &before), DataChanges::default());
    }
}
