//! Settings for a graph without tuned ones, within a time budget, and their estimated cost.

use super::networks::{GraphSize, Networks, Resources, comparing, embed_epoch, searching, walking};
use super::propagation::{propagated, propagating};
use super::{Stage, TimeBudget};
use crate::config::{Config, ConfigError, Layer, System};
use crate::embed::LARGE;
use crate::rule::{Confidence, RuleType};
use crate::walk::Start;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// The cost of ranking by a blend, relative to the walker alone. This and [`OPENING`] are rough: twice the estimate is
/// reserved for ranking.
const BLENDING: f64 = 3.0;
/// Queries that a thread ranks by rules in a second. By benches/README.md 1,800 by FB15k-237's 1,464,654 rules of all types
/// (20,466 in 5.7 s on two cores), 15,500 by 17,367 cyclic ones.
const RANKED: f64 = 3500.0;
/// Seconds that it takes to open a blend with some hundred thousand rules.
const OPENING: f64 = 2.5;
/// From this many facts on, there are millions of rules about single entities with a support of only two. Chosen by
/// hand, above the 310,116 facts of FB15k-237 and below the 674,228 of the smaller large family in results/NOTES.md.
const MANY_FACTS: usize = 500_000;
/// A plan that needs less than this share of the time says that the rest would not help.
const ENOUGH: f64 = 0.8;
/// This many validation triples are enough and cost little: the standard error of their MRR is about 0.01.
const VALIDATION_QUERIES: usize = 2000;

/// Why there is no walker.
const NO_TIME_TO_WALK: &str = "no time for a walker in a graph of this size";
const NOTHING_TO_ADD: &str =
    "no walker, because it adds nothing to rules and an embedding model in a graph of this size";

/// The settings of a run, and about how long each stage will take.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The settings.
    pub config: Config,
    /// Seconds of mining, of the embedding model, of pre-training, of joint training, of the propagator, of ranking.
    pub seconds: [f64; 6],
    /// The graph it was made for.
    pub shape: GraphSize,
    /// The resources it was made for.
    pub resources: Resources,
    /// Which networks are left out, and why.
    pub missing: Option<&'static str>,
}

impl Plan {
    /// The plan for `config`, with its estimated cost.
    pub fn of(config: Config, shape: &GraphSize, resources: &Resources) -> Self {
        let seconds = seconds(&config, shape, resources);
        Self { config, seconds, shape: *shape, resources: *resources, missing: None }
    }

    /// The plan with the user's settings applied.
    ///
    /// # Errors
    /// If a setting is not known or does not fit.
    pub fn with(&self, set: &Layer) -> Result<Self, ConfigError> {
        let plan = Self::of(self.config.with(set)?, &self.shape, &self.resources);
        // A user who sets the system explicitly does not need this hint.
        let missing = self.missing.filter(|_| Stage::of(&plan.config) == Stage::of(&self.config));
        Ok(Self { missing, ..plan })
    }

    /// The time budget of the plan; `began` is when its time began.
    pub fn budget(&self, began: Instant) -> TimeBudget {
        let [mining, embedding, alone, together, propagation, ranking] = self.seconds;
        let planned = BTreeMap::from([
            (Stage::Embeddings, embedding),
            (Stage::Rules, mining),
            (Stage::Pretraining, alone),
            (Stage::Training, together),
            (Stage::Propagation, propagation),
            (Stage::Blending, ranking),
            (Stage::Calibration, ranking),
        ]);
        TimeBudget { resources: self.resources, began, planned, ranking }
    }
}

/// Settings for a graph of this shape with these resources: a blend of rules and the networks that there is time for.
pub fn choose(shape: &GraphSize, resources: &Resources) -> Plan {
    let budget = resources.seconds();
    let mut config = Config { system: System::Blend, ..Config::default() };
    let Networks { walker, embedding, propagator } = Networks::within(shape, resources);
    // Rules with constants help much on large graphs; on small ones cyclic rules suffice.
    if shape.entities >= LARGE || !(walker.fits || propagator.fits) {
        config.rules.types = vec![RuleType::Cyclic, RuleType::Acyclic, RuleType::Zero];
    }
    config.rules.longer = true;
    if shape.facts >= MANY_FACTS {
        config.rules.min_support = 5;
    }
    let missing = match (walker.fits, embedding.fits) {
        (_, trained) if propagator.fits => {
            config.rules.seconds = (0.1 * budget).clamp(1.0, 100.0);
            (config.blend.with_walker, config.blend.with_propagator) = (false, true);
            config.blend.with_embedding = trained;
            (!trained).then_some("no time for an embedding model in a graph of this size")
        }
        (true, _) => {
            config.rules.seconds = (0.1 * budget).clamp(1.0, 100.0);
            None
        }
        (false, true) => {
            config.rules.seconds = (0.2 * budget).clamp(1.0, 100.0);
            config.blend.with_walker = false;
            Some(if shape.walker_adds() { NO_TIME_TO_WALK } else { NOTHING_TO_ADD })
        }
        (false, false) => {
            // Too large for any network; rules scale.
            config.system = System::Rules;
            config.rules.signals = true;
            config.rules.confidence = Confidence::Validation;
            let left = 0.9 * budget - by_rules(shape, resources);
            config.rules.seconds = left.clamp(0.2 * budget, 0.8 * budget).max(1.0);
            Some("no time for networks in a graph of this size")
        }
    };
    (config.walk, config.embed, config.propagate) =
        (walker.settings, embedding.settings, propagator.settings);
    config.walk.soft_reward = embedding.fits;
    config.walk.start = if embedding.fits { Start::Embedding } else { Start::Random };
    config.walk.validation_queries = VALIDATION_QUERIES;
    config.blend.validation_queries = VALIDATION_QUERIES;
    Plan { missing, ..Plan::of(config, shape, resources) }
}

/// About how many seconds it takes to rank by rules.
fn by_rules(shape: &GraphSize, resources: &Resources) -> f64 {
    shape.ranked as f64 / (RANKED * resources.threads as f64)
}

/// About how long the stages of `config` take: mining, embedding, pre-training, joint training, propagation; and ranking.
fn seconds(config: &Config, shape: &GraphSize, resources: &Resources) -> [f64; 6] {
    let stages = Stage::of(config);
    let planned = |stage: Stage, seconds: f64| if stages.contains(&stage) { seconds } else { 0.0 };
    let embedding = embed_epoch(shape, resources, &config.embed) * config.embed.epochs as f64;
    let [alone, together] = walking(shape, resources, &config.walk);
    let searching = planned(Stage::Training, searching(shape, resources, &config.walk));
    let propagated = planned(Stage::Propagation, propagated(shape, resources, &config.propagate));
    let compared = planned(Stage::Embeddings, comparing(shape, resources, &config.embed));
    let ranking = match config.system {
        System::Embedding => compared,
        System::Rules => by_rules(shape, resources),
        System::Walker => searching,
        System::Propagator => propagated,
        System::Blend => {
            let compared = if config.blend.with_embedding { compared } else { 0.0 };
            BLENDING * searching + propagated + compared + OPENING + by_rules(shape, resources)
        }
    };
    [
        planned(Stage::Rules, config.rules.seconds),
        planned(Stage::Embeddings, embedding),
        planned(Stage::Pretraining, alone),
        planned(Stage::Training, together),
        planned(Stage::Propagation, propagating(shape, resources, &config.propagate)),
        ranking,
    ]
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { system, embed, walk, rules, propagate, .. } = &self.config;
        let [mining, embedding, alone, together, propagation, ranking] = self.seconds;
        let about = |seconds: f64| match seconds {
            _ if seconds < 90.0 => format!("{:.0} s", seconds.max(1.0)),
            _ if seconds < 600.0 => format!("{:.1} min", seconds / 60.0).replace(".0", ""),
            _ => format!("{:.0} min", seconds / 60.0),
        };
        let (all, most) = (about(self.seconds.iter().sum()), about(self.resources.seconds()));
        write!(f, "plan, about {all} in total, at most {most}:")?;
        let stages = Stage::of(&self.config);
        if stages.contains(&Stage::Embeddings) {
            let (model, dimension, epochs) = (embed.model.name(), embed.dimension, embed.epochs);
            write!(f, " {model} of dimension {dimension}, {epochs} epochs, about {};", about(embedding))?;
        }
        if stages.contains(&Stage::Rules) {
            let longer = if rules.longer { ", longer if that helps" } else { "" };
            write!(f, " rules up to length {}{longer}, at most {};", rules.max_length, about(mining))?;
        }
        if stages.contains(&Stage::Training) {
            let (width, hops, epochs) = (walk.dimension, walk.hops, walk.epochs);
            let walking = about(alone + together);
            write!(f, " walker of width {width}, {hops} hops, at most {epochs} epochs, about {walking};")?;
        }
        if stages.contains(&Stage::Propagation) {
            write!(f, " propagator of {} layers of width {},", propagate.layers, propagate.width)?;
            if propagate.networks > 1 {
                write!(f, " the mean of {} networks,", propagate.networks)?;
            }
            if propagate.frontier > 0 {
                write!(f, " at most {} entities send messages per layer,", propagate.frontier)?;
            }
            write!(f, " about {};", about(propagation))?;
        }
        if let Some(missing) = self.missing {
            write!(f, " {missing};")?;
        } else if stages.iter().any(|stage| stage.is_trained())
            && self.seconds.iter().sum::<f64>() < ENOUGH * self.resources.seconds()
        {
            write!(f, " more time would not help, networks get all their epochs;")?;
        }
        let by = match system {
            System::Rules => " by rules",
            System::Embedding => " by the embedding model",
            System::Walker => " by the walker",
            System::Propagator => " by the propagator",
            System::Blend => " by their blend",
        };
        write!(f, " ranking{by}, about {}", about(ranking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_CORES: Resources = Resources { minutes: 10.0, threads: 2, cuda: false };

    fn shape(entities: usize, facts: usize) -> GraphSize {
        GraphSize { entities, relations: 40, facts, training: facts, ranked: facts / 10 }
    }

    #[test]
    fn every_choice_is_sound_and_within_the_budget() {
        for entities in [1, 30, 500, 5_000, 40_000, 1_000_000] {
            for degree in [1, 6, 40] {
                for minutes in [0.5, 10.0, 600.0] {
                    let shape = shape(entities, entities * degree / 2 + 1);
                    let plan = choose(&shape, &Resources { minutes, ..TWO_CORES });
                    plan.config.check().unwrap();
                    let learning: f64 = plan.seconds[..5].iter().sum();
                    assert!(learning <= 60.0 * minutes, "{shape:?} {minutes} {plan}");
                }
            }
        }
    }

    #[test]
    fn large_graphs_get_rules_and_small_ones_small_networks() {
        assert_eq!(choose(&shape(2_000_000, 10_000_000), &TWO_CORES).config.system, System::Rules);
        let small = choose(&shape(300, 3_000), &TWO_CORES).config;
        assert_eq!((small.system, small.walk.dimension, small.walk.soft_reward), (System::Blend, 64, true));
        assert_eq!(small.walk.start, Start::Embedding);
        let dense = choose(&shape(15_000, 270_000), &Resources { minutes: 600.0, ..TWO_CORES }).config;
        assert!(!dense.blend.with_walker, "it would add nothing; whoever wants it has it sized:");
        assert_eq!((dense.walk.relation_dropout, dense.walk.dimension), (0.5, 200));
    }

    #[test]
    fn rules_answer_beside_the_networks_that_there_is_time_for() {
        let plan = choose(&shape(40_000, 75_000), &Resources { minutes: 5.0, ..TWO_CORES });
        let Config { system, blend, ref rules, .. } = plan.config;
        assert_eq!((system, blend.with_walker, blend.with_embedding), (System::Blend, false, true));
        assert_eq!((rules.types.len(), rules.min_support), (3, 2));
        let stages = [Stage::Embeddings, Stage::Rules, Stage::Blending, Stage::Calibration];
        assert_eq!(Stage::of(&plan.config), stages);
        let said = plan.to_string();
        assert!(said.contains("complex of dimension 64") && !said.contains("walker of width"), "{said}");
        assert!(
            said.contains(" no walker, because it adds nothing to rules and an embedding model"),
            "{said}"
        );
        let set = |pair: &str| plan.with(&Layer::from_pairs([pair]).unwrap()).unwrap().to_string();
        assert!(set("rules.top=50").contains("no walker"));
        for other in ["system=rules", "system=walker", "blend.with_walker=true"] {
            assert!(!set(other).contains("no walker"), "{other}");
        }
        let hasty = choose(&shape(5_000, 75_000), &Resources { minutes: 1.0, ..TWO_CORES });
        assert!(hasty.to_string().contains(" no time for a walker in a graph of this size;"), "{hasty}");
        let many = choose(&shape(270_000, 2_400_000), &TWO_CORES);
        assert_eq!((many.config.system, many.config.rules.min_support), (System::Rules, 5));
        // Ranking takes its time, and mining leaves it.
        assert!(many.seconds[5] > 10.0 && many.seconds.iter().sum::<f64>() <= 600.0, "{many}");
    }

    #[test]
    fn ranking_takes_longer_if_queries_are_compared_with_all_entities() {
        // The packages of a distribution, of which 93,125 queries took 133 s when a query took nearly twice as long.
        let shape =
            GraphSize { entities: 175_875, relations: 48, facts: 745_003, training: 745_003, ranked: 93_125 };
        let plan = choose(&shape, &Resources { minutes: 15.0, ..TWO_CORES });
        assert!(plan.config.blend.with_embedding);
        let rules = plan.with(&Layer::from_pairs(["blend.with_embedding=false"]).unwrap()).unwrap();
        let [with, without] = [&plan, &rules].map(|plan| plan.seconds[5]);
        assert!((40.0..120.0).contains(&with) && without < 20.0, "{with} {without}");
    }

    #[test]
    fn a_plan_goes_by_the_settings_of_the_user() {
        let plan = choose(&shape(300, 3_000), &TWO_CORES);
        let set = |pairs: &[&str]| plan.with(&Layer::from_pairs(pairs.iter().copied()).unwrap()).unwrap();
        let rules = set(&["system=rules", "rules.seconds=123"]);
        assert_eq!(rules.seconds[..5], [123.0, 0.0, 0.0, 0.0, 0.0]);
        let said = rules.to_string();
        assert!(said.contains("rules up to length 3") && !said.contains("walker"), "{said}");
        assert_eq!(set(&[]), plan);
        assert!(set(&["embed.epochs=1"]).seconds[1] < plan.seconds[1]);
    }

    #[test]
    fn the_plan_is_said_beforehand() {
        let said = choose(&shape(300, 3_000), &TWO_CORES).to_string();
        assert!(said.starts_with("plan, about ") && said.contains(" propagator of "), "{said}");
        assert!(!said.contains("walker of"), "{said}");
        let hasty = choose(&shape(5_000, 30_000), &TWO_CORES).to_string();
        assert!(hasty.contains("walker of width") && !hasty.contains("propagator of"), "{hasty}");
    }

    #[test]
    fn a_card_always_has_a_propagator() {
        for (entities, facts) in [(300, 3_000), (15_000, 270_000), (2_000_000, 10_000_000)] {
            let plan = choose(&shape(entities, facts), &Resources { cuda: true, ..TWO_CORES });
            let Config { system, blend, .. } = &plan.config;
            assert_eq!((*system, blend.with_propagator, blend.with_walker), (System::Blend, true, false));
            assert!(plan.to_string().contains("layers of width 32"), "{plan}");
        }
        let long = Resources { cuda: true, minutes: 600.0, ..TWO_CORES };
        let huge = choose(&shape(2_000_000, 10_000_000), &long);
        assert!(huge.to_string().contains("entities send messages per layer"), "{huge}");
    }
}
