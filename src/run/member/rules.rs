//! The rules: mined, or taken from a file.

use super::{Cost, Member};
use crate::config::{Config, System};
use crate::cost::{GraphSize, Resources};
use crate::graph::{GraphError, Renumbering};
use crate::progress::Progress;
use crate::reason::{ByRules, Explains, PathRuleIndex};
use crate::rule::{self, Confidence, Mined, RuleFile, RuleType, ScoredRule};
use crate::run::directory::{RULES as RULE_FILE, write_whole};
use crate::run::material::Material;
use crate::run::mining::Mining;
use crate::run::record::Finished;
use crate::run::{Artifacts, Checksum, MemberReport, RuleChanges, RunError};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Its name.
pub const RULES: &str = "rules";
/// Where the artifacts keep the rules as they are applied to the graph.
pub(in crate::run) const APPLIED: &str = "applied rules";
/// Where they keep the rules by the paths of their bodies.
pub(in crate::run) const BY_PATH: &str = "rules by path";
/// Queries that a thread ranks by rules in a second. By benches/README.md 1,800 by FB15k-237's 1,464,654 rules of all types
/// (20,466 in 5.7 s on two cores), 15,500 by 17,367 cyclic ones.
const RANKED: f64 = 3500.0;

/// The rules, in AnyBURL's language.
pub(super) struct Rules;

impl Member for Rules {
    fn name(&self) -> &'static str {
        RULES
    }

    fn system(&self) -> Option<System> {
        Some(System::Rules)
    }

    fn is_wanted(&self, config: &Config) -> bool {
        let walks = config.includes(System::Walker);
        let guided = walks && (config.walk.pretrains() || config.walk.lambda > 0.0);
        // The paths of networks are shown with the rules that they follow.
        let by_paths = [System::Propagator, System::Further(super::UNIVERSAL)].contains(&config.system);
        guided || by_paths || config.includes(System::Rules)
    }

    fn settings(&self, config: &Config) -> Value {
        with_file(super::value(&config.rules.mined()), &config.rules.file)
    }

    fn cost(&self, config: &Config, size: &GraphSize, resources: &Resources) -> Cost {
        Cost::new(config.rules.seconds, size.ranked as f64 / (RANKED * resources.threads as f64))
    }

    fn planned(&self, config: &Config) -> Option<String> {
        let longer = if config.rules.longer { ", longer if that helps" } else { "" };
        Some(format!("rules up to length {}{longer}, at most", config.rules.max_length))
    }

    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        match artifacts.config.rules.file.is_empty() {
            true => mined(artifacts, material),
            false => given_rules(artifacts, material),
        }
    }

    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        Ok(Some(artifacts.applied()?))
    }
}

/// The rules of a run, and how many rules of its file name an entity that the graph lacks.
struct ReadRules {
    rules: Arc<[ScoredRule]>,
    unknown: usize,
}

impl Artifacts {
    /// The rules of the run; none if it mines none.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn rules(&self) -> Result<Arc<[ScoredRule]>, RunError> {
        Ok(self.read_rules()?.rules.clone())
    }

    /// How many rules name an entity that the graph lacks, if it is not the graph that they were mined from.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn rules_left_out(&self) -> Result<usize, RunError> {
        Ok(self.read_rules()?.unknown)
    }

    fn read_rules(&self) -> Result<Arc<ReadRules>, RunError> {
        self.get(RULES, || {
            if !self.has(RULES) {
                return Ok(ReadRules { rules: Arc::from([]), unknown: 0 });
            }
            let names = &self.learnable.names;
            let file = self.read(RULE_FILE, |source, path| Ok(RuleFile::read_from(source, path, names)?))?;
            Ok(ReadRules { rules: file.rules.into(), unknown: file.unknown })
        })
    }

    /// The rules as they are applied to the graph.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn applied(&self) -> Result<Arc<ByRules>, RunError> {
        self.get(APPLIED, || {
            let options = self.config.rules.apply_options();
            Ok(ByRules::new(&self.learnable.graph, self.rules()?, options))
        })
    }

    /// The same with rules that are mined from its own graph, as the settings say, if the run mines any.
    ///
    /// # Errors
    /// If mining fails or the user interrupts.
    pub fn with_own_rules(mut self, seed: u64, progress: &dyn Progress) -> Result<Self, RunError> {
        let Self { learnable, config, .. } = &self;
        if !self.has(RULES) || !config.rules.file.is_empty() {
            return Ok(self);
        }
        let (options, apply) = (config.rules.mine_options(seed), config.rules.apply_options());
        let mining = Mining {
            graph: &learnable.graph,
            known: &learnable.known,
            options: &options,
            apply: &apply,
            judged_by: None,
            longer: false,
            confidence: config.rules.confidence,
        };
        let (Mined { rules, interrupted, .. }, _) = mining.mine(progress)?;
        if interrupted {
            return Err(RunError::Interrupted);
        }
        self.put_rules(rules.into());
        Ok(self)
    }

    /// The rules by the paths of their bodies.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn path_rules(&self) -> Result<Arc<PathRuleIndex>, RunError> {
        self.get(BY_PATH, || Ok(PathRuleIndex::new(&self.rules()?)))
    }

    fn put_rules(&mut self, rules: Arc<[ScoredRule]>) {
        self.put(RULES, ReadRules { rules, unknown: 0 });
        self.remove(APPLIED);
        self.remove(BY_PATH);
    }
}

/// Mines rules and saves them.
fn mined(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let Material { seed, directory, progress, .. } = *material;
    let Artifacts { learnable, config, .. } = &*artifacts;
    let (options, apply) = (config.rules.mine_options(seed), config.rules.apply_options());
    let mining = Mining {
        graph: &learnable.graph,
        known: &learnable.known,
        options: &options,
        apply: &apply,
        judged_by: (!learnable.valid_learnt).then_some(&learnable.known),
        longer: config.rules.longer,
        confidence: config.rules.confidence,
    };
    let (Mined { rules: mined, saturation, interrupted }, pca) = mining.mine(progress)?;
    if interrupted {
        return Err(RunError::Interrupted);
    }
    let (rules, changes) = match material.warm {
        Some(warm) => {
            let ids = Renumbering::new(&warm.names, &learnable.names);
            let earlier = warm.rules()?;
            let carried = rule::carry_over(
                (&learnable.graph, &learnable.known),
                mined,
                &earlier,
                &ids,
                (&options, pca),
            );
            let changes = RuleChanges::of(&carried, &learnable.names);
            (carried.rules, Some(changes))
        }
        None => (mined, None),
    };
    write_whole(&directory.file(RULE_FILE), |out| rule::write_lines(out, &rules, &learnable.names))?;
    let outcome = MemberReport {
        changes,
        ..MemberReport::of(&json!({
            "rules": rules.len(),
            "rules_by_type": by_type(&rules),
            "saturation": saturation,
            "confidence": if pca { Confidence::Pca } else { Confidence::Standard },
        }))
    };
    artifacts.put_rules(rules.into());
    Ok(Finished { files: vec![RULE_FILE.to_owned()], figures: outcome, seconds: None })
}

/// Takes the rules from the file that the settings name.
fn given_rules(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let Artifacts { learnable, config, .. } = &*artifacts;
    let path = Path::new(&config.rules.file);
    let given = RuleFile::read(path, &learnable.names)?;
    if given.rules.is_empty() {
        let expected = "at least one rule about entities and relations of the data";
        return Err(GraphError::file(path, expected, format!("none among {}", given.unknown)).into());
    }
    write_whole(&material.directory.file(RULE_FILE), |out| {
        rule::write_lines(out, &given.rules, &learnable.names)
    })?;
    let outcome = MemberReport::of(&json!({
        "rules": given.rules.len(),
        "rules_by_type": by_type(&given.rules),
        "unknown": given.unknown,
    }));
    artifacts.put_rules(given.rules.into());
    Ok(Finished { files: vec![RULE_FILE.to_owned()], figures: outcome, seconds: None })
}

/// How many rules there are of each type.
fn by_type(rules: &[ScoredRule]) -> Value {
    let count = |of: RuleType| rules.iter().filter(|scored| scored.rule.rule_type() == of).count();
    let [cyclic, acyclic, zero] = [RuleType::Cyclic, RuleType::Acyclic, RuleType::Zero].map(count);
    json!({ "cyclic": cyclic, "acyclic": acyclic, "zero": zero })
}

/// `rules` with the checksum of their file instead of its name; without a file, as before the setting existed.
pub(super) fn with_file(mut rules: Value, file: &str) -> Value {
    if let Some(settings) = rules.as_object_mut() {
        settings.remove("file");
        if let Some(sum) =
            Some(file).filter(|file| !file.is_empty()).map(|file| Checksum::of_file(Path::new(file)))
        {
            // An unreadable file is reported when it is read.
            settings.insert(
                "file".to_owned(),
                json!(sum.map_or_else(|_| file.to_owned(), |sum| sum.to_string())),
            );
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_mined_again_only_for_what_mining_looks_at() {
        let mined = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            Rules.settings(&config)
        };
        let before = mined(|_| {});
        assert_eq!(mined(|config| (config.rules.threshold, config.rules.top) = (0.5, 7)), before);
        assert_ne!(mined(|config| config.rules.seconds = 7.0), before);
        assert_ne!(mined(|config| config.rules.min_support = 7), before);
        let by_samples = mined(|config| config.rules.samples = 5);
        assert_eq!(mined(|config| (config.rules.samples, config.rules.seconds) = (5, 7.0)), by_samples);
        // Runs of versions without rule files keep their rules; the content of a file counts, not the mining
        // settings.
        assert!(before.get("file").is_none());
        let given = mined(|config| config.rules.file = "Cargo.toml".to_owned());
        assert_ne!(given, before);
        assert_eq!(
            mined(|config| (config.rules.file, config.rules.samples) = ("Cargo.toml".to_owned(), 9)),
            given
        );
    }
}
