//! Everything that can be chosen about a run: plain structs with documented defaults, TOML in and out.
//!
//! A module declares the settings of its own stage. Here they are joined into one [`Config`], layered ([`Layer`]) and
//! named ([`named`]).

mod error;
mod further;
mod named;
mod system;

pub use crate::settings::{Layer, SettingsError, WrongValue};
pub use error::ConfigError;
pub use further::{FurtherMember, declare, further};
pub use named::{Named, named, names};
pub use system::System;

use crate::embed::{ModelKind, Settings};
use crate::eval::{Side, Ties};
use crate::propagate;
use crate::rule::{Aggregate, ApplyOptions, Confidence, Keep, MineOptions, MiningBudget, RuleType};
use crate::settings::{expect, number, whole};
use crate::walk::WalkConfig;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The most further members that a blend has room for.
pub const MOST_FURTHER: usize = 3;
/// The most random walks to mine by: more would take days, and saturation counts everything.
pub const MOST_SAMPLES: u64 = 1_000_000_000_000;

/// All settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which reasoner answers.
    pub system: System,
    /// What is learnt from.
    pub data: DataConfig,
    /// The mining and use of rules.
    pub rules: RulesConfig,
    /// The embedding model and its training.
    pub embed: Settings,
    /// The walker and its training.
    pub walk: WalkConfig,
    /// The propagator and its training.
    pub propagate: propagate::PropagateSettings,
    /// The weights of the reasoners in the blend.
    pub blend: BlendConfig,
    /// What the types of entities are used for.
    pub types: TypesConfig,
    /// The ranking at the end.
    pub eval: EvalConfig,
    /// The settings of further members, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, toml::Table>,
}

impl Default for Config {
    fn default() -> Self {
        let members = further().into_iter().map(|member| (member.name.to_owned(), member.defaults)).collect();
        Self {
            system: System::default(),
            data: DataConfig::default(),
            rules: RulesConfig::default(),
            embed: Settings::default(),
            walk: WalkConfig::default(),
            propagate: propagate::PropagateSettings::default(),
            blend: BlendConfig::default(),
            types: TypesConfig::default(),
            eval: EvalConfig::default(),
            members,
        }
    }
}

/// Whether the validation split is learnt as well, once all choices that depend on it have been made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LearnValid {
    /// Where the data set has a graph larger than its set of training queries, as published for NELL-995.
    #[default]
    Auto,
    /// Always. Figures on the validation split are then meaningless.
    Always,
    /// Never: for tuning.
    Never,
    /// As training queries of the walker alone: not as facts to walk on, to mine from or to train embeddings on.
    Queries,
}

/// What the types of candidates count for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TypesMode {
    /// Nothing.
    #[default]
    Off,
    /// How well the types of a candidate, and the relations that it has, fit the side of the relation asked for are
    /// features of the blend, with fitted weights.
    Soft,
    /// The same, and entities without a fitting type are no candidates: a declared one (domain or range) or, where none
    /// is declared, one that occurs on this side of the relation.
    Strict,
}

/// What the types of entities are used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TypesConfig {
    /// What the types of candidates count for: `off`, `soft` or `strict`.
    pub mode: TypesMode,
}

/// What is learnt from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataConfig {
    /// Whether the validation split joins the graph and the training queries.
    pub learn_valid: LearnValid,
}

/// The mining and use of rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RulesConfig {
    /// A rule file to use instead of mining, for example one merged from several parts of mining; empty to mine.
    pub file: String,
    /// The most seconds to mine; mining ends earlier once every rule has been counted.
    pub seconds: f64,
    /// Random walks to mine by instead of seconds, which makes mining repeatable; 0 mines by seconds.
    pub samples: u64,
    /// The types of rules to mine. The walker uses the cyclic ones alone.
    pub types: Vec<RuleType>,
    /// The longest body of a cyclic rule.
    pub max_length: usize,
    /// Whether longer bodies are tried if all others are counted before the time is up. They are kept if they improve
    /// the ranking of the validation split.
    pub longer: bool,
    /// The longest body of a rule with constants.
    pub max_acyclic_length: usize,
    /// The fewest correct predictions of a rule that is kept.
    pub min_support: u64,
    /// The lowest confidence of a rule that is kept.
    pub min_confidence: f64,
    /// The most rules with constants that are kept for each relation, direction and constant (per kind, with `keep = "both"`).
    pub max_bodies: usize,
    /// Which of them: `adding`, those that add most to what the others explain; `confident`, the most confident; `both`,
    /// as many of each.
    pub keep: Keep,
    /// Bodies with more groundings than this are counted from a sample of them.
    pub max_groundings: u64,
    /// Which of a rule's predictions its confidence counts: all (`standard`), only those about entities that have a
    /// known fact of the relation (`pca`), or whichever of the two ranks the validation split better (`validation`).
    pub confidence: Confidence,
    /// Only rules with a confidence above this reward the walker.
    pub threshold: f64,
    /// How the confidences of the rules that predict an entity become its score.
    pub aggregate: Aggregate,
    /// How many answers of a query rules give.
    pub top: usize,
    /// Whether rules that answer alone also use features of a candidate (whether it is linked to the subject, whether
    /// and how often it answers the same relation elsewhere), with weights fitted per relation and direction on the
    /// validation split.
    pub features: bool,
}

impl Default for RulesConfig {
    fn default() -> Self {
        Self {
            file: String::new(),
            seconds: 10.0,
            samples: 0,
            types: vec![RuleType::Cyclic],
            max_length: 3,
            longer: false,
            max_acyclic_length: 1,
            min_support: 2,
            min_confidence: 0.01,
            max_bodies: MineOptions::default().max_bodies,
            keep: Keep::default(),
            max_groundings: MineOptions::default().max_groundings,
            confidence: Confidence::default(),
            threshold: 0.15,
            aggregate: Aggregate::default(),
            top: 100,
            features: false,
        }
    }
}

impl RulesConfig {
    /// What is wrong with the values, by key.
    ///
    /// # Errors
    /// The key, what was expected and what was found.
    pub fn check(&self) -> Result<(), WrongValue> {
        number("seconds", self.seconds, (Bound::Excluded(0.0), Bound::Unbounded))?;
        number("min_confidence", self.min_confidence, 0.0..=1.0)?;
        number("threshold", self.threshold, 0.0..=1.0)?;
        let most = format!("at most {MOST_SAMPLES}");
        expect(self.samples <= MOST_SAMPLES, "samples", &most, self.samples)?;
        whole("max_length", self.max_length, 1..=5)?;
        whole("max_acyclic_length", self.max_acyclic_length, 1..=5)?;
        whole("max_bodies", self.max_bodies, 1..)?;
        whole("max_groundings", self.max_groundings, 1..)?;
        expect(!self.types.is_empty(), "types", "at least one of cyclic, acyclic, zero", "none")?;
        whole("top", self.top, 1..)
    }

    /// These settings as options of the miner.
    pub fn mine_options(&self, seed: u64) -> MineOptions {
        MineOptions {
            types: self.types.clone(),
            max_length: self.max_length,
            max_acyclic_length: self.max_acyclic_length,
            budget: if self.samples > 0 {
                MiningBudget::Samples(self.samples)
            } else {
                MiningBudget::Seconds(self.seconds)
            },
            seed,
            min_support: self.min_support,
            min_confidence: self.min_confidence,
            max_bodies: self.max_bodies,
            keep: self.keep,
            max_groundings: self.max_groundings,
            ..MineOptions::default()
        }
    }

    /// These settings with those that mining ignores set to fixed values.
    pub fn mined(&self) -> Self {
        if !self.file.is_empty() {
            return Self { file: self.file.clone(), ..Self::default() };
        }
        let Self { threshold, aggregate, top, features, seconds, .. } = Self::default();
        let seconds = if self.samples > 0 { seconds } else { self.seconds };
        Self { threshold, aggregate, top, features, seconds, ..self.clone() }
    }

    /// These settings as options for applying rules.
    pub fn apply_options(&self) -> ApplyOptions {
        ApplyOptions { aggregate: self.aggregate, top: self.top, ..ApplyOptions::default() }
    }
}

/// The weights of the reasoners in the blend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlendConfig {
    /// Whether the weights are fitted on the validation split. Where that split is learnt from, the weights below are
    /// used; for rules and universal propagator alone, weights that were fitted over many graphs.
    pub fit: bool,
    /// The most validation triples used for that, evenly spread; 0 for all.
    pub validation_queries: usize,
    /// Whether answers are ranked only by members whose reasons are exact: rules, paths and features of the graph. The
    /// embedding model then has no weight; fitting says what that costs.
    pub explained: bool,
    /// Whether rules answer too. Without them the blend is the walker's answers in the order that walker and
    /// embedding model together give them.
    pub with_rules: bool,
    /// Whether the walker answers too. Without it only candidates that a rule supports are answers.
    pub with_walker: bool,
    /// Whether the embedding model takes part in the ordering.
    pub with_embedding: bool,
    /// Whether the propagator answers too.
    pub with_propagator: bool,
    /// The weight of the rules.
    pub rules: f64,
    /// The weight of the walker.
    pub walker: f64,
    /// The weight of the embedding model.
    pub embedding: f64,
    /// The weight of the propagator.
    pub propagator: f64,
    /// The names of further members that answer too.
    pub also: Vec<String>,
}

impl Default for BlendConfig {
    fn default() -> Self {
        Self {
            fit: true,
            validation_queries: 0,
            explained: false,
            with_rules: true,
            with_walker: true,
            with_embedding: true,
            with_propagator: false,
            rules: 0.4,
            walker: 0.3,
            embedding: 0.3,
            propagator: 0.8,
            also: Vec::new(),
        }
    }
}

impl BlendConfig {
    /// Checks the weights.
    ///
    /// # Errors
    /// The key, what was expected and what was found.
    pub fn check(&self) -> Result<(), WrongValue> {
        number("rules", self.rules, 0.0..)?;
        number("walker", self.walker, 0.0..)?;
        number("embedding", self.embedding, 0.0..)?;
        number("propagator", self.propagator, 0.0..)
    }

    /// Whether rules and the universal propagator answer, and nobody else.
    pub fn is_rules_and_universal(&self) -> bool {
        let others = self.with_walker || self.with_embedding || self.with_propagator;
        self.with_rules && !others && self.also == ["universal"]
    }

    /// The weights if none are fitted: 0 for members that are left out.
    pub fn weights(&self) -> BlendWeights {
        let given = |speaks: bool, weight: f64| if speaks { weight } else { 0.0 };
        BlendWeights {
            rules: given(self.with_rules, self.rules),
            walker: given(self.with_walker, self.walker),
            embedding: given(self.with_embedding && !self.explained, self.embedding),
            propagator: given(self.with_propagator, self.propagator),
        }
    }
}

/// The weight of each reasoner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlendWeights {
    /// The rules.
    pub rules: f64,
    /// The walker.
    pub walker: f64,
    /// The embedding model.
    pub embedding: f64,
    /// The propagator.
    pub propagator: f64,
}

/// The ranking at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// Which end of the test triples is asked for.
    pub direction: Side,
    /// How ties are ranked.
    pub ties: Ties,
    /// Rank every test triple, however many. Otherwise an even sample of them if more than 10¹¹ scores were needed.
    pub all: bool,
    /// How many answers are shown with their reasons at the end.
    pub examples: usize,
    /// The most validation facts that probabilities are calibrated on, and the most test facts they are checked on; 0
    /// for all.
    pub calibration_queries: usize,
    /// On how many queries it is measured at the end whether the reasons shown are the cause of the best answers; 0 for
    /// none.
    pub faithfulness: usize,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            direction: Side::Tail,
            ties: Ties::Realistic,
            all: false,
            examples: 3,
            calibration_queries: 4000,
            faithfulness: 0,
        }
    }
}

impl Config {
    /// The members that answer together: those of the blend, or rules with features of each candidate.
    pub fn blended(&self) -> BlendConfig {
        match self.system {
            System::Rules => BlendConfig {
                with_rules: true,
                with_walker: false,
                with_embedding: false,
                with_propagator: false,
                rules: 1.0,
                also: Vec::new(),
                ..self.blend
            },
            _ => self.blend.clone(),
        }
    }

    /// Leaves the member that answers as `system` out of the blend.
    pub fn exclude(&mut self, system: System) {
        let blend = &mut self.blend;
        match system {
            System::Rules => blend.with_rules = false,
            System::Walker => blend.with_walker = false,
            System::Embedding => blend.with_embedding = false,
            System::Propagator => blend.with_propagator = false,
            System::Further(name) => blend.also.retain(|also| also != name),
            System::Blend => {}
        }
    }

    /// Whether somebody gives candidates: the embedding model only orders those of others.
    pub fn gives_answers(&self) -> bool {
        let BlendConfig { with_rules, with_walker, with_propagator, also, .. } = &self.blend;
        let blended = *with_rules || *with_walker || *with_propagator || !also.is_empty();
        self.system != System::Blend || blended
    }

    /// Whether the member that answers as `system` answers here: alone or in the blend.
    pub fn includes(&self, system: System) -> bool {
        let blend = self.blended();
        match system {
            _ if self.system == system => true,
            _ if self.system != System::Blend => false,
            System::Rules => blend.with_rules,
            System::Walker => blend.with_walker,
            System::Embedding => blend.with_embedding,
            System::Propagator => blend.with_propagator,
            System::Further(name) => blend.also.iter().any(|also| also == name),
            System::Blend => false,
        }
    }

    /// What is wrong with the values, by key.
    ///
    /// # Errors
    /// The key, what was expected and what was found.
    pub fn check(&self) -> Result<(), WrongValue> {
        let in_group = |group: &'static str| move |error: WrongValue| error.in_group(group);
        self.rules.check().map_err(in_group("rules"))?;
        self.blend.check().map_err(in_group("blend"))?;
        let also = &self.blend.also;
        expect(self.gives_answers(), "blend.with_walker", "true where `blend.with_rules` is false", false)?;
        let is_known = |name: &&String| further().iter().any(|member| member.name == name.as_str());
        let stranger = also.iter().find(|name| !is_known(name));
        expect(
            stranger.is_none(),
            "blend.also",
            "names of further members",
            stranger.map_or("", String::as_str),
        )?;
        expect(also.len() <= MOST_FURTHER, "blend.also", "at most 3 names", also.len())?;
        self.embed.check().map_err(in_group("embed"))?;
        self.propagate.check().map_err(in_group("propagate"))?;
        self.walk.check().map_err(in_group("walk"))
    }

    /// This configuration with `layer` over it.
    ///
    /// # Errors
    /// If the layer has a key that is not known or a value that does not fit.
    pub fn with(&self, layer: &Layer) -> Result<Self, ConfigError> {
        // Another model has other defaults.
        let model = layer.text("embed.model").and_then(|name| name.parse::<ModelKind>().ok());
        Ok(match model.filter(|model| *model != self.embed.model) {
            Some(model) => {
                layer.over(&Config { embed: Settings::of(model), ..self.clone() }, Config::check)?
            }
            None => layer.over(self, Config::check)?,
        })
    }

    /// The settings that differ from `other`: the key, the value here, the value there.
    pub fn differences(&self, other: &Config) -> Vec<(String, String, String)> {
        fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<(String, String, String)>) {
            match (ours, theirs) {
                (Value::Object(mine), Value::Object(yours)) => {
                    for (key, value) in mine {
                        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                        compare(&path, value, yours.get(key).unwrap_or(&Value::Null), found);
                    }
                }
                _ if ours == theirs => {}
                _ => found.push((path.to_owned(), ours.to_string(), theirs.to_string())),
            }
        }
        let value = |config| serde_json::to_value(config).expect("a configuration is plain data");
        let mut found = Vec::new();
        compare("", &value(self), &value(other), &mut found);
        found
    }

    /// This configuration as TOML text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a configuration is plain fields, which TOML can hold")
    }

    /// Reads what [`to_toml`](Self::to_toml) wrote; `name` is the file's name in messages.
    ///
    /// # Errors
    /// If it has a key that is not known or a value that does not fit.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, ConfigError> {
        Config::default().with(&Layer::parse(text, name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_survives_being_written() {
        let config = Config::default();
        assert_eq!(Config::from_toml(&config.to_toml(), "a").unwrap(), config);
        config.check().unwrap();
    }

    #[test]
    fn differences_name_the_key_and_both_values() {
        let layer = Layer::from_pairs(["walk.epochs=7", "system=rules"]).unwrap();
        let changed = Config::default().with(&layer).unwrap();
        let epochs = Config::default().walk.epochs.to_string();
        let message =
            |key: &str, ours: &str, theirs: &str| (key.to_owned(), ours.to_owned(), theirs.to_owned());
        let expected =
            [message("system", "\"rules\"", "\"walker\""), message("walk.epochs", "7", epochs.as_str())];
        assert_eq!(changed.differences(&Config::default()), expected);
        assert!(changed.differences(&changed).is_empty());
    }

    #[test]
    fn settings_that_fit_only_together_are_taken_together() {
        let mut base = Config::default();
        base.walk.start = crate::walk::Start::Embedding;
        let with = |pairs: &[&str]| base.with(&Layer::from_pairs(pairs.iter().copied()).unwrap());
        assert!(with(&["walk.entity_embeddings=false"]).is_err());
        for order in [
            ["walk.entity_embeddings=false", "walk.start=random"],
            ["walk.start=random", "walk.entity_embeddings=false"],
        ] {
            assert!(!with(&order).unwrap().walk.entity_embeddings);
        }
        let message = with(&["walk.epochs=3", "rules.threshold=2", "rules.top=5"]).unwrap_err().to_string();
        assert!(message.starts_with("rules.threshold=2"), "{message}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        for (set, message) in [
            ("rules.threshold=2", "`rules.threshold`: expected a number from 0 to 1, found 2"),
            ("rules.types=[]", "`rules.types`: expected at least one of cyclic, acyclic, zero, found none"),
            ("rules.max_length=0", "`rules.max_length`: expected a whole number from 1 to 5, found 0"),
            ("data.learn_valid=true", "`data.learn_valid`: expected a word such as \"auto\", found true"),
            ("blend.walker=-1", "`blend.walker`: expected a number, 0 or more, found -1"),
            ("eval.tie=realistic", "unknown setting `eval.tie`; did you mean `eval.ties`?"),
        ] {
            let error = Config::default().with(&Layer::from_pairs([set]).unwrap()).unwrap_err();
            assert_eq!(error.to_string(), format!("{set}: {message}"));
        }
    }
}
