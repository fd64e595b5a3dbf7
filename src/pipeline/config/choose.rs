//! Settings that suit a graph which nobody has tuned for, within a budget of time, and what they will cost.
//!
//! The estimates count multiplications and divide them by what a core does of them in our own code; they are
//! there to choose numbers of epochs and to say beforehand what will happen, and are off by a factor of two easily.

use super::{Config, Layer, RuleFamily, System};
use crate::embed::{self, ModelKind, Settings};
use crate::eval::Side;
use crate::graph::{Graph, Known};
use crate::pipeline::{Budget, PipelineError, Stage};
use crate::walk::{Pool, Start, WalkConfig};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// Multiply-adds that a core does in a second, in thousand millions: what small networks get of one with AVX-512 in training.
/// Large ones get two to three times as much.
const A_CORE: f64 = 20.0;
/// How many cores an NVIDIA card is worth here.
const A_CARD: f64 = 150.0;
/// What an epoch of the relation agent alone costs, an epoch of both being 1.
const PRETRAINING: f64 = 0.5;
/// The part of the time that the walker gets.
const WALKING: f64 = 0.5;
/// Walks may share states better than is assumed here: so many times as fast a walker has been seen.
const HOPE: f64 = 3.0;
/// What ranking by the blend costs, by the walker alone being 1.
const BLENDING: f64 = 3.0;
/// Seconds that it takes to open a blend with some hundred thousand rules.
const OPENING: f64 = 2.5;
/// So many validation triples tell enough, and cost little.
const VALIDATION_QUERIES: usize = 2000;
/// From this mean degree on a graph is walked like FB15k-237, below like WN18RR.
const DENSE: f64 = 15.0;

/// What matters of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// How many entities there are.
    pub entities: usize,
    /// How many facts.
    pub facts: usize,
    /// How many training queries the walker has.
    pub training: usize,
    /// How many queries are ranked in the end.
    pub ranked: usize,
}

impl Shape {
    /// The shape of `graph` with the training queries of `known`; `ranked` queries are ranked in the end.
    pub fn of(graph: &Graph, known: &Known, ranked: usize) -> Self {
        Self { entities: graph.entities(), facts: graph.facts(), training: known.queries.len(), ranked }
    }

    fn degree(&self) -> f64 {
        2.0 * self.facts as f64 / self.entities.max(1) as f64
    }
}

/// What there is to compute with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// The budget.
    pub minutes: f64,
    /// Threads of the CPU.
    pub threads: usize,
    /// Whether tensors live on a card.
    pub cuda: bool,
}

impl Means {
    fn seconds(&self) -> f64 {
        60.0 * self.minutes
    }

    /// Multiply-adds in a second.
    fn rate(&self) -> f64 {
        1e9 * A_CORE * if self.cuda { A_CARD } else { self.threads as f64 }
    }

    /// Seconds of an epoch of so many multiply-adds.
    fn epoch(&self, cost: f64) -> f64 {
        (cost / self.rate()).max(1e-3)
    }
}

/// What will be done, and about how long each stage will take.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The settings.
    pub config: Config,
    /// Seconds of mining, of the embedding model, of pre-training, of joint training, of ranking.
    pub seconds: [f64; 5],
    /// For which graph.
    pub shape: Shape,
    /// By what means.
    pub means: Means,
}

impl Plan {
    fn new(config: Config, shape: &Shape, means: &Means) -> Self {
        Self { seconds: seconds(&config, shape, means), config, shape: *shape, means: *means }
    }

    /// The plan with settings of the user's over it.
    ///
    /// # Errors
    /// If a setting is not known or does not fit.
    pub fn with(&self, set: &Layer) -> Result<Self, PipelineError> {
        Ok(Self::new(self.config.with(set)?, &self.shape, &self.means))
    }

    /// The same for the run that holds to it; `began` is when its time began.
    pub fn budget(&self, began: Instant) -> Budget {
        let [mining, embedding, alone, together, ranking] = self.seconds;
        let planned = BTreeMap::from([
            (Stage::Embeddings, embedding),
            (Stage::Rules, mining),
            (Stage::Pretraining, alone),
            (Stage::Training, together),
            (Stage::Blending, ranking),
        ]);
        Budget { seconds: self.means.seconds(), began, planned, ranking }
    }
}

/// Settings for a graph of this shape with these means.
pub fn choose(shape: &Shape, means: &Means) -> Plan {
    let budget = means.seconds();
    let mut config = Config::default();
    config.rules.seconds = (0.1 * budget).clamp(1.0, 100.0);
    config.embed = embed::suited(ModelKind::ComplEx, shape.entities);
    config.walk = walker(shape);
    let embed_epoch = means.epoch(embedding_cost(shape, &config.embed));
    let walk_epoch = means.epoch(walker_cost(shape, &config.walk));
    let epochs = |in_time: f64, most: f64| in_time.floor().min(most) as usize;
    let embed_epochs = epochs(0.3 * budget / embed_epoch, config.embed.epochs as f64);
    // Pre-training takes its part of the walker's time, at most half of it.
    let in_time = WALKING * budget / walk_epoch;
    let alone = (f64::from(config.walk.pretrain_epochs) * PRETRAINING).min(0.5 * in_time);
    config.walk.pretrain_epochs = (alone / PRETRAINING) as f32;
    // The step size is constant, so a training that comes out slower than hoped for is cut where its time is up.
    let walk_epochs = epochs(HOPE * (in_time - alone), 40.0);
    if walk_epochs == 0 {
        // Too large for any of the networks: rules scale.
        config.system = System::Rules;
        config.rules.types = vec![RuleFamily::Cyclic, RuleFamily::Acyclic, RuleFamily::Zero];
        config.rules.seconds = (0.8 * budget).max(1.0);
        return Plan::new(config, shape, means);
    }
    // An embedding that has hardly been trained rewards at random and says nothing about who is alike.
    config.walk.soft_reward = embed_epochs >= 5;
    config.walk.start = if config.walk.soft_reward { Start::Embedding } else { Start::Random };
    config.embed.epochs = embed_epochs.max(1);
    // Where the validation split is learnt from there is no time to find the number of epochs without it first.
    config.embed.final_epochs = config.embed.epochs;
    config.embed.evaluate_every = (config.embed.epochs / 8).max(1);
    config.walk.epochs = walk_epochs;
    config.walk.validate_every = (walk_epochs / 8).max(1);
    config.walk.validation_queries = VALIDATION_QUERIES;
    config.blend.validation_queries = VALIDATION_QUERIES;
    if config.walk.soft_reward {
        // What rules, walker and embedding say together ranks far better than the walker alone.
        config.system = System::Blend;
    }
    Plan::new(config, shape, means)
}

/// About how long the stages of `config` take: mining, embedding, pre-training, joint training; and ranking.
fn seconds(config: &Config, shape: &Shape, means: &Means) -> [f64; 5] {
    let stages = Stage::of(config);
    let planned = |stage: Stage, seconds: f64| if stages.contains(&stage) { seconds } else { 0.0 };
    let walk_epoch = means.epoch(walker_cost(shape, &config.walk));
    let embed_epoch = means.epoch(embedding_cost(shape, &config.embed));
    let alone = f64::from(config.walk.pretrain_epochs) * PRETRAINING * walk_epoch;
    let alone = planned(Stage::Pretraining, alone);
    let together = (walk_epoch * config.walk.epochs as f64).min(WALKING * means.seconds() - alone).max(0.0);
    let searching = shape.ranked as f64 * query_cost(shape, &config.walk) / means.rate();
    let ranking = match config.system {
        System::Rules | System::Embedding => 0.0,
        System::Walker => searching,
        System::Blend => BLENDING * searching + OPENING,
    };
    [
        planned(Stage::Rules, config.rules.seconds),
        planned(Stage::Embeddings, embed_epoch * config.embed.epochs as f64),
        alone,
        planned(Stage::Training, together),
        ranking,
    ]
}

fn walker(shape: &Shape) -> WalkConfig {
    let dense = shape.degree() >= DENSE;
    let published = if dense { WalkConfig::fb15k_237() } else { WalkConfig::wn18rr() };
    let (width, layers, batch, rollouts) = match shape.entities {
        0..1000 => (64, 1, 128, 10),
        1000..10_000 => (100, 2, 128, 20),
        _ => (200, 3, 256, 20),
    };
    // A small graph leaves no room for as many batches as make the published step safe.
    let learning_rate = if shape.training < 20_000 { 0.003 } else { published.learning_rate };
    let beam = if shape.entities < 1000 { 64 } else { 128 };
    let lambda = if dense { 0.1 } else { 0.3 };
    // A user asks for either end.
    let side = Side::Both;
    // The relation agent wants about a thousand batches alone, which is many passes over few queries.
    let batches = (shape.training * side.directions().len()).div_ceil(batch).max(1);
    let pretrain_epochs = (1000 / batches).clamp(1, 15) as f32;
    // On graphs as dense as FB15k-237 less of it, and of the dropout of embeddings, than published learnt faster.
    let entropy = if dense { 0.01 } else { published.entropy };
    // Small graphs are explored soon enough without hiding much of them.
    let hidden = if shape.entities < 10_000 { 0.1 } else { published.relation_dropout };
    WalkConfig {
        side,
        pool: Pool::Sum,
        pretrain_epochs,
        embedding_dropout: 0.1,
        relation_dropout: hidden,
        entity_dropout: hidden,
        entropy,
        dimension: width,
        history: width,
        layers,
        batch,
        rollouts,
        learning_rate,
        beam,
        lambda,
        ..published
    }
}

/// Multiply-adds of an epoch: both queries of every fact against every entity, forward and twice backward.
fn embedding_cost(shape: &Shape, settings: &Settings) -> f64 {
    3.0 * 2.0 * shape.facts as f64 * shape.entities as f64 * 2.0 * settings.dimension as f64
}

/// Multiply-adds of an epoch of joint training. Walks share states; what `benches/walk` counts of them over all hops is half
/// as many as walks on WN18RR and NELL-995, and one and a half times as many on FB15k-237.
fn walker_cost(shape: &Shape, config: &WalkConfig) -> f64 {
    let shared = if shape.degree() >= DENSE { 0.5 } else { 0.18 };
    let states = shared * (config.rollouts * config.hops) as f64;
    let asked = shape.training * config.side.directions().len();
    3.0 * asked as f64 * states * state_cost(shape, config)
}

/// Multiply-adds of beam search for a query.
fn query_cost(shape: &Shape, config: &WalkConfig) -> f64 {
    let states = 0.3 * config.beam as f64 * config.hops as f64;
    states * state_cost(shape, config)
}

/// Multiply-adds of one state: two LSTMs, two heads, the candidates.
fn state_cost(shape: &Shape, config: &WalkConfig) -> f64 {
    let (width, layers) = (config.dimension as f64, config.layers as f64);
    let candidates = (3.0 * shape.degree()).min(config.bandwidth as f64);
    2.0 * layers * 8.0 * width * width + 8.0 * width * width + candidates * width
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { system, embed, walk, rules, .. } = &self.config;
        let [mining, embedding, alone, together, ranking] = self.seconds;
        let about = |seconds: f64| match seconds {
            _ if seconds < 90.0 => format!("{:.0} s", seconds.max(1.0)),
            _ if seconds < 600.0 => format!("{:.1} min", seconds / 60.0).replace(".0", ""),
            _ => format!("{:.0} min", seconds / 60.0),
        };
        let (all, most) = (about(self.seconds.iter().sum()), about(self.means.seconds()));
        write!(f, "plan, about {all} in all, at most {most}:")?;
        let stages = Stage::of(&self.config);
        if stages.contains(&Stage::Embeddings) {
            let (model, dimension, epochs) = (embed.model.name(), embed.dimension, embed.epochs);
            write!(f, " {model} of dimension {dimension}, {epochs} epochs, about {};", about(embedding))?;
        }
        if stages.contains(&Stage::Rules) {
            write!(f, " rules up to length {}, at most {};", rules.max_length, about(mining))?;
        }
        if stages.contains(&Stage::Training) {
            let (width, hops, epochs) = (walk.dimension, walk.hops, walk.epochs);
            let walking = about(alone + together);
            write!(f, " walker of width {width}, {hops} hops, at most {epochs} epochs, about {walking};")?;
        }
        let walk_epoch = self.means.epoch(walker_cost(&self.shape, walk));
        if HOPE * WALKING * self.means.seconds() < walk_epoch {
            write!(f, " the graph is too large for networks in this time;")?;
        }
        let by = match system {
            System::Rules => " by rules",
            System::Embedding => " by the embedding model",
            System::Walker => " by the walker",
            System::Blend => " by all three",
        };
        write!(f, " ranking{by}, about {}", about(ranking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_CORES: Means = Means { minutes: 10.0, threads: 2, cuda: false };

    fn shape(entities: usize, facts: usize) -> Shape {
        Shape { entities, facts, training: facts, ranked: facts / 10 }
    }

    #[test]
    fn every_choice_is_sound_and_within_the_budget() {
        for entities in [1, 30, 500, 5_000, 40_000, 1_000_000] {
            for degree in [1, 6, 40] {
                for minutes in [0.5, 10.0, 600.0] {
                    let shape = shape(entities, entities * degree / 2 + 1);
                    let plan = choose(&shape, &Means { minutes, ..TWO_CORES });
                    plan.config.check().unwrap();
                    let learning: f64 = plan.seconds[..4].iter().sum();
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
        let dense = choose(&shape(15_000, 270_000), &Means { minutes: 600.0, ..TWO_CORES }).config;
        assert_eq!((dense.walk.relation_dropout, dense.walk.dimension), (0.5, 200));
    }

    #[test]
    fn a_plan_goes_by_the_settings_of_the_user() {
        let plan = choose(&shape(300, 3_000), &TWO_CORES);
        let set = |pairs: &[&str]| plan.with(&Layer::from_pairs(pairs.iter().copied()).unwrap()).unwrap();
        let rules = set(&["system=rules", "rules.seconds=123"]);
        assert_eq!(rules.seconds, [123.0, 0.0, 0.0, 0.0, 0.0]);
        let said = rules.to_string();
        assert!(said.contains("rules up to length 3") && !said.contains("walker"), "{said}");
        assert_eq!(set(&[]), plan);
        assert!(set(&["embed.epochs=1"]).seconds[1] < plan.seconds[1]);
    }

    #[test]
    fn the_plan_is_said_beforehand() {
        let said = choose(&shape(300, 3_000), &TWO_CORES).to_string();
        assert!(said.starts_with("plan, about ") && said.contains("walker of width 64, 3 hops"), "{said}");
    }
}
