//! Settings for a graph without tuned ones, within a time budget, and their estimated cost.

use crate::config::{Config, ConfigError, Layer, System, TypesMode};
use crate::cost::{Beside, GraphSize, Networks, Resources, TimeBudget};
use crate::eval::Side;
use crate::propagate::{InitialWeights, PropagateSettings};
use crate::rule::{Confidence, RuleType};
use crate::run::member::{self, BLENDING, CALIBRATION, PRETRAINING, PROPAGATION, TRAINING, UNIVERSAL};
use crate::walk::Start;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// From this many facts on, there are millions of rules about single entities with a support of only two. Chosen by
/// hand, above the 310,116 facts of FB15k-237 and below the 674,228 of the smaller large family in results/NOTES.md.
const MANY_FACTS: usize = 500_000;
/// A plan that needs less than this share of the time says that there is time to spare.
const ENOUGH: f64 = 0.8;
/// The share of the time that fitting the blend may take, and again fitting the probabilities, and the share that the
/// ranking is planned with; it ranks a sample if it needs more. Chosen by hand.
const FITTING: f64 = 0.1;
const RANKING: f64 = 0.2;
/// The fewest validation facts that the blend is fitted to, and the fewest that probabilities are. Fewer than 150 queries
/// leave the weights near those that were given.
const FEWEST_FITTED: usize = 120;
const FEWEST_CALIBRATED: usize = 100;
/// How many validation facts the blend is fitted to for each second of the budget, at most: the fit itself is not stopped
/// when the time is up, and takes about a second for a hundred facts on a busy machine.
const FITTED_A_SECOND: f64 = 15.0;
/// This many validation triples are enough and cost little: the standard error of their MRR is about 0.01.
const VALIDATION_QUERIES: usize = 2000;
/// Queries for a fact that the blend is fitted to: both ends. For one that probabilities are fitted to, and for one that is
/// ranked and checked: the same, and as many others again for each.
const ASKED_TO_FIT: f64 = 2.0;
const ASKED_TO_CALIBRATE: f64 = 6.0;
const ASKED_TO_RANK: f64 = 6.0;
/// The fewest facts that are ranked and checked.
const FEWEST_RANKED: f64 = 200.0;
/// The settings that say which network a propagator is.
const SHAPE: [&str; 7] = [
    "propagate.layers",
    "propagate.width",
    "propagate.hidden",
    "propagate.aggregate",
    "propagate.weights",
    "propagate.frontier",
    "propagate.prior",
];
/// The largest share of the time that may be spent on answering before the propagator is trained.
const ANSWERING_EARLY: f64 = 0.08;
/// The largest share of the time that asking the universal propagator may take where as few queries are asked as can be.
/// Chosen by hand.
const ASKING: f64 = 0.4;

/// The settings of a run, and about how long each stage will take.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The settings.
    pub config: Config,
    /// About how many seconds each member takes, by name.
    pub seconds: BTreeMap<&'static str, f64>,
    /// About how many seconds the ranking takes.
    pub ranking: f64,
    /// The graph it was made for.
    pub shape: GraphSize,
    /// The resources it was made for.
    pub resources: Resources,
    /// Which networks are left out, and why.
    pub missing: Option<&'static str>,
}

/// What a run answers by first, while its propagator is still to be trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Early {
    plan: Plan,
    /// The whole plan.
    then: Plan,
}

impl Early {
    /// The settings.
    pub fn config(&self) -> &Config {
        &self.plan.config
    }

    /// The time budget, in which what comes later has its part; `began` is when its time began.
    pub fn budget(&self, began: Instant) -> TimeBudget {
        let Self { plan, then } = self;
        let mut budget = TimeBudget { ranking: then.ranking, ..plan.budget(began) };
        budget.later = vec![PROPAGATION, BLENDING, CALIBRATION];
        budget.planned.extend(then.seconds.get(PROPAGATION).map(|&seconds| (PROPAGATION, seconds)));
        budget
    }
}

impl Plan {
    /// The plan for `config`, with its estimated cost.
    pub fn of(config: Config, shape: &GraphSize, resources: &Resources) -> Self {
        let cost = |member: member::MemberRef| member.cost(&config, shape, resources).training;
        let seconds = member::of(&config).into_iter().map(|member| (member.name(), cost(member))).collect();
        // A sample is ranked where there is no time for more.
        let most = RANKING * resources.seconds();
        let ranking = member::ranking(&config, shape, resources).min(most);
        Self { config, seconds, ranking, shape: *shape, resources: *resources, missing: None }
    }

    /// The plan with the user's settings applied.
    ///
    /// # Errors
    /// If a setting is not known or does not fit.
    pub fn with(&self, set: &Layer) -> Result<Self, ConfigError> {
        let mut own = self.config.clone();
        if set.iter().any(|(key, ..)| SHAPE.contains(&key)) {
            // Weights from other graphs fit one network only.
            let PropagateSettings { start, learning_rate, .. } = PropagateSettings::default();
            (own.propagate.start, own.propagate.learning_rate) = (start, learning_rate);
        }
        let config = own.with(set)?;
        let walks = |config: &Config| config.includes(System::Walker);
        let config = match walks(&config) && !walks(&self.config) {
            // Whoever asks for a walker has the time divided with it.
            true => sized(&self.shape, &self.resources, true).config.with(set)?,
            false => config,
        };
        let plan = Self::of(config, &self.shape, &self.resources);
        // A user who sets the system explicitly does not need this hint.
        let missing = self.missing.filter(|_| plan.seconds.keys().eq(self.seconds.keys()));
        Ok(Self { missing, ..plan })
    }

    /// The time budget of the plan; `began` is when its time began.
    pub fn budget(&self, began: Instant) -> TimeBudget {
        let Self { resources, ranking, .. } = *self;
        let fitted = member::of(&self.config).into_iter().filter(|member| member.is_fitted());
        let kept = fitted.map(|member| member.name()).collect();
        let planned = self.seconds.clone();
        TimeBudget { resources, began, planned, kept, later: Vec::new(), ranking, pace: 1.0 }
    }

    /// What the run answers by until its propagator is trained: everything else, and the universal propagator in its place
    /// if there is time. It asks as few queries as can be. `None` if that would not be worth its time.
    pub fn early(&self) -> Option<Early> {
        let Self { config, shape, resources, .. } = self;
        if config.system != System::Blend || !config.blend.with_propagator || !config.blend.fit {
            return None;
        }
        let mut early = config.clone();
        early.blend.with_propagator = false;
        early.blend.validation_queries = FEWEST_FITTED.min(config.blend.validation_queries);
        early.eval.calibration_queries = FEWEST_CALIBRATED.min(config.eval.calibration_queries);
        if config.propagate.start == InitialWeights::Universal && early.blend.also.is_empty() {
            early.blend.also = vec![UNIVERSAL.to_owned()];
        }
        let asked = ASKED_TO_FIT * FEWEST_FITTED as f64 + ASKED_TO_CALIBRATE * FEWEST_CALIBRATED as f64;
        let worth = |early: &Config| {
            asked * member::query(early, shape, resources) <= ANSWERING_EARLY * resources.seconds()
        };
        if !worth(&early) {
            early.blend.also.clone_from(&config.blend.also);
        }
        worth(&early).then(|| Early { plan: Self::of(early, shape, resources), then: self.clone() })
    }

    /// About how many seconds the member called `name` takes; the two phases of the walker are shown as one.
    fn seconds_of(&self, name: &str) -> f64 {
        let of = |name: &str| self.seconds.get(name).copied().unwrap_or(0.0);
        of(name) + if name == TRAINING { of(PRETRAINING) } else { 0.0 }
    }

    /// About how many seconds learning takes. What is fitted to the trained members takes part of the ranking's time.
    pub fn learning(&self) -> f64 {
        let trained = member::of(&self.config).into_iter().filter(|member| !member.is_fitted());
        trained.filter_map(|member| self.seconds.get(member.name())).sum()
    }
}

/// Settings for a graph of this shape with these resources: a blend of rules, the universal propagator, and the networks
/// that there is time for.
pub fn choose(shape: &GraphSize, resources: &Resources) -> Plan {
    sized(shape, resources, false)
}

/// The same, with the time divided with a walker if `walks` says so.
fn sized(shape: &GraphSize, resources: &Resources, walks: bool) -> Plan {
    let budget = resources.seconds();
    let mut config = Config { system: System::Blend, ..Config::default() };
    // Users ask for heads as well as tails.
    config.eval.direction = Side::Both;
    // Learnt, and left out by the fit where the others rank better without it.
    config.types.mode = TypesMode::Soft;
    config.rules.types = vec![RuleType::Cyclic, RuleType::Acyclic, RuleType::Zero];
    config.rules.longer = true;
    if shape.facts >= MANY_FACTS {
        config.rules.min_support = 5;
    }
    config.blend.with_walker = false;
    let with_universal = Config { system: System::Further(UNIVERSAL), ..config.clone() };
    let asking = fewest_asked() * member::query(&with_universal, shape, resources);
    if asking <= ASKING * budget {
        config.blend.also = vec![UNIVERSAL.to_owned()];
    }
    let beside = Beside { walker: walks, universal: !config.blend.also.is_empty() };
    let Networks { walker, embedding, propagator } = Networks::within(shape, resources, beside);
    // Beside a propagator a walker gets no weight (results/NOTES.md, *Blends*), so there is only one of them.
    config.blend.with_propagator = propagator.fits && !walks;
    config.blend.with_embedding = embedding.fits;
    if config.blend.with_propagator && propagator.settings.start == InitialWeights::Universal {
        // It takes the place of what it started from: both together cost twice as much to ask, and err alike.
        config.blend.also.clear();
    }
    let others = config.blend.with_propagator || !config.blend.also.is_empty();
    let missing = match (others, embedding.fits) {
        (true, trained) => {
            config.rules.seconds = (0.1 * budget).clamp(1.0, 100.0);
            (!trained).then_some("no time for an embedding model in a graph of this size")
        }
        (false, true) => {
            config.rules.seconds = (0.2 * budget).clamp(1.0, 100.0);
            None
        }
        (false, false) => {
            // Too large for any network; rules scale.
            config.system = System::Rules;
            config.rules.features = true;
            config.rules.confidence = Confidence::Validation;
            let ranking = member::ranking(&config, shape, resources);
            let left = 0.9 * budget - ranking;
            config.rules.seconds = left.clamp(0.2 * budget, 0.8 * budget).max(1.0);
            Some("no time for networks in a graph of this size")
        }
    };
    (config.walk, config.embed, config.propagate) =
        (walker.settings, embedding.settings, propagator.settings);
    config.walk.soft_reward = embedding.fits;
    config.walk.start = if embedding.fits { Start::Embedding } else { Start::Random };
    config.walk.validation_queries = VALIDATION_QUERIES;
    let query = member::query(&config, shape, resources).max(1e-9);
    let facts = |asked: f64| (FITTING * budget / (asked * query)) as usize;
    let in_time = ((FITTED_A_SECOND * budget) as usize).clamp(FEWEST_FITTED, VALIDATION_QUERIES);
    config.blend.validation_queries = facts(ASKED_TO_FIT).clamp(FEWEST_FITTED, in_time);
    let calibrated = facts(ASKED_TO_CALIBRATE).max(FEWEST_CALIBRATED);
    config.eval.calibration_queries = calibrated.min(config.eval.calibration_queries);
    Plan { missing, ..Plan::of(config, shape, resources) }
}

/// The fewest queries that a run asks its blend: to fit it and its probabilities, to rank and to check.
fn fewest_asked() -> f64 {
    ASKED_TO_FIT * FEWEST_FITTED as f64
        + ASKED_TO_CALIBRATE * FEWEST_CALIBRATED as f64
        + ASKED_TO_RANK * FEWEST_RANKED
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = |seconds: f64| match seconds {
            _ if seconds < 90.0 => format!("{:.0} s", seconds.max(1.0)),
            _ if seconds < 600.0 => format!("{:.1} min", seconds / 60.0).replace(".0", ""),
            _ => format!("{:.0} min", seconds / 60.0),
        };
        // Estimates add up to more where each is given its share at most; the clock divides what there is.
        let most = self.resources.seconds();
        let all = (self.seconds.values().sum::<f64>() + self.ranking).min(most);
        let (all, most) = (about(all), about(most));
        write!(f, "plan, about {all} in total, at most {most}:")?;
        let members = member::of(&self.config);
        for member in &members {
            if let Some(text) = member.planned(&self.config) {
                write!(f, " {text} {};", about(self.seconds_of(member.name())))?;
            }
        }
        if let Some(missing) = self.missing {
            write!(f, " {missing};")?;
        } else if members.iter().any(|member| member.epochs(&self.config).is_some())
            && self.learning() + self.ranking < ENOUGH * self.resources.seconds()
        {
            write!(f, " every network gets all its epochs, with time to spare;")?;
        }
        let by = match self.config.system {
            System::Rules => "by rules".to_owned(),
            System::Embedding => "by the embedding model".to_owned(),
            System::Blend => "by their blend".to_owned(),
            other => format!("by the {other}"),
        };
        write!(f, " ranking {by}, about {}", about(self.ranking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::member::{EMBEDDINGS, RULES};

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
                    let learning = plan.learning();
                    assert!(learning <= 60.0 * minutes, "{shape:?} {minutes} {plan}");
                }
            }
        }
    }

    #[test]
    fn a_run_answers_before_its_propagator_is_trained() {
        let minutes = |minutes| Resources { minutes, ..TWO_CORES };
        let plan = choose(&shape(4_202, 21_579), &minutes(3.0));
        let early = plan.early().unwrap();
        assert!(early.config().blend.also.contains(&UNIVERSAL.to_owned()));
        assert!(!early.config().blend.with_propagator && plan.config.blend.with_propagator);
        // What both train is the same, so it is not trained twice.
        assert_eq!((&early.config().embed, &early.config().rules), (&plan.config.embed, &plan.config.rules));
        let budget = early.budget(Instant::now());
        assert_eq!(budget.planned[PROPAGATION], plan.seconds[PROPAGATION]);
        // Without a propagator there is nothing to wait for.
        assert_eq!(choose(&shape(4_202, 21_579), &minutes(0.3)).early(), None);
    }

    #[test]
    fn what_is_planned_fits_into_the_time() {
        for (entities, facts) in [(135, 5_216), (4_202, 21_579), (17_050, 185_584), (40_943, 86_835)] {
            for minutes in [1.0, 3.0, 8.0] {
                let plan = choose(&shape(entities, facts), &Resources { minutes, ..TWO_CORES });
                let all = plan.seconds.values().sum::<f64>() + plan.ranking;
                assert!(all <= 69.0 * minutes + 3.0, "{entities} {minutes}: {all} {plan}");
            }
        }
    }

    #[test]
    fn large_graphs_get_rules_and_small_ones_small_networks() {
        assert_eq!(choose(&shape(2_000_000, 10_000_000), &TWO_CORES).config.system, System::Rules);
        let small = choose(&shape(300, 3_000), &TWO_CORES).config;
        assert_eq!((small.system, small.walk.dimension, small.walk.soft_reward), (System::Blend, 64, true));
        assert_eq!(small.walk.start, Start::Embedding);
        // The propagator takes the place of the universal one that it starts from.
        assert_eq!((small.propagate.start, small.blend.also.len()), (InitialWeights::Universal, 0));
        assert!(small.blend.with_propagator);
        let dense = choose(&shape(15_000, 270_000), &Resources { minutes: 600.0, ..TWO_CORES }).config;
        assert_eq!((dense.walk.relation_dropout, dense.walk.dimension), (0.5, 200), "whoever wants it");
    }

    #[test]
    fn a_walker_is_trained_only_where_it_was_asked_for_and_then_has_its_share() {
        for (entities, facts) in [(300, 3_000), (5_000, 30_000), (40_000, 75_000)] {
            let plan = choose(&shape(entities, facts), &TWO_CORES);
            assert!(!plan.seconds.contains_key(TRAINING) && plan.config.rules.types.len() == 3, "{plan}");
            for asked in ["system=walker", "blend.with_walker=true"] {
                let with = plan.with(&Layer::from_pairs([asked]).unwrap()).unwrap();
                assert!(
                    with.seconds[TRAINING] > 0.0 && with.to_string().contains("walker of width"),
                    "{with}"
                );
                assert!(with.learning() <= with.resources.seconds(), "{with}");
            }
        }
    }

    #[test]
    fn rules_answer_beside_the_networks_that_there_is_time_for() {
        let plan = choose(&shape(40_000, 75_000), &Resources { minutes: 5.0, ..TWO_CORES });
        let Config { system, ref blend, ref rules, .. } = plan.config;
        assert_eq!((system, blend.with_walker, blend.with_embedding), (System::Blend, false, true));
        assert_eq!((rules.types.len(), rules.min_support), (3, 2));
        let members = [EMBEDDINGS, RULES, PROPAGATION, BLENDING, CALIBRATION];
        let found: Vec<&str> = member::of(&plan.config).iter().map(|member| member.name()).collect();
        assert_eq!(found, members);
        let message = plan.to_string();
        assert!(
            message.contains("complex of dimension") && !message.contains("walker of width"),
            "{message}"
        );
        let many = choose(&shape(270_000, 2_400_000), &TWO_CORES);
        assert_eq!((many.config.system, many.config.rules.min_support), (System::Rules, 5));
        let message = |set: &str| many.with(&Layer::from_pairs([set]).unwrap()).unwrap().to_string();
        assert!(message("rules.top=50").contains("no time for networks"));
        assert!(!message("system=embedding").contains("no time for networks"));
        // Ranking takes its time, and mining leaves it.
        assert!(many.ranking > 10.0 && many.learning() + many.ranking <= 600.0, "{many}");
    }

    #[test]
    fn ranking_takes_longer_if_queries_are_compared_with_all_entities() {
        // The packages of a distribution, of which 93,125 queries took 133 s when a query took nearly twice as long.
        let shape =
            GraphSize { entities: 175_875, relations: 48, facts: 745_003, training: 745_003, ranked: 93_125 };
        let plan = choose(&shape, &Resources { minutes: 15.0, ..TWO_CORES });
        assert!(plan.config.blend.with_embedding);
        let rules = plan.with(&Layer::from_pairs(["blend.with_embedding=false"]).unwrap()).unwrap();
        let [with, without] = [&plan, &rules].map(|plan| plan.ranking);
        assert!((40.0..120.0).contains(&with) && without < 20.0, "{with} {without}");
    }

    #[test]
    fn a_plan_goes_by_the_settings_of_the_user() {
        let plan = choose(&shape(300, 3_000), &TWO_CORES);
        let set = |pairs: &[&str]| plan.with(&Layer::from_pairs(pairs.iter().copied()).unwrap()).unwrap();
        let rules = set(&["system=rules", "rules.seconds=123"]);
        assert_eq!((rules.seconds[RULES], rules.learning()), (123.0, 123.0));
        let message = rules.to_string();
        assert!(message.contains("rules up to length 3") && !message.contains("walker"), "{message}");
        assert_eq!(set(&[]), plan);
        assert_eq!(plan.config.propagate.start, InitialWeights::Universal);
        let narrow = set(&["propagate.width=8"]).config.propagate;
        assert_eq!((narrow.start, narrow.width), (InitialWeights::Random, 8));
        assert!(set(&["embed.epochs=1"]).seconds[EMBEDDINGS] < plan.seconds[EMBEDDINGS]);
    }

    #[test]
    fn the_plan_is_said_beforehand() {
        let message = choose(&shape(300, 3_000), &TWO_CORES).to_string();
        assert!(message.starts_with("plan, about ") && message.contains(" propagator of "), "{message}");
        assert!(!message.contains("walker of"), "{message}");
        let hasty = choose(&shape(5_000, 30_000), &Resources { minutes: 1.0, ..TWO_CORES }).to_string();
        assert!(hasty.contains("complex of") && !hasty.contains("propagator of"), "{hasty}");
    }

    #[test]
    fn a_card_always_has_a_propagator() {
        for (entities, facts) in [(300, 3_000), (15_000, 270_000), (2_000_000, 10_000_000)] {
            let plan = choose(&shape(entities, facts), &Resources { cuda: true, ..TWO_CORES });
            let Config { system, blend, .. } = &plan.config;
            assert_eq!((*system, blend.with_propagator, blend.with_walker), (System::Blend, true, false));
            assert!(plan.to_string().contains("layers of width 32"), "{plan}");
        }
        // What six layers reach of a huge graph does not fit into its memory.
        let long = Resources { cuda: true, minutes: 600.0, ..TWO_CORES };
        let huge = choose(&shape(2_000_000, 10_000_000), &long);
        assert!(huge.to_string().contains("propagator of 4 layers"), "{huge}");
    }
}
