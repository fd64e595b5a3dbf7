//! Settings of the walker. Every system of the result table is one of these, not a copy of code:
//!
//! | system | what it sets |
//! |---|---|
//! | RuleGuider | the defaults |
//! | *Freeze* | `freeze_relation_agent` |
//! | *No* | `pretrain_epochs = 0` |
//! | *Single* | `agents = "single"`, `pretrain_epochs = 0` |
//! | MultiHop | [`WalkConfig::multihop`]: *Single* with `lambda = 0` |
//! | MINERVA | [`WalkConfig::minerva`]: MultiHop without soft reward, action dropout and closed ends |

use super::episode::Phase;
use crate::eval::Side;
use crate::settings::{self, WrongValue};
use serde::{Deserialize, Serialize};

/// The most hops a walk may have.
pub const MOST_HOPS: usize = 5;
/// The widest beam.
pub const WIDEST_BEAM: usize = 4096;

/// Which agents walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agents {
    /// A relation agent and an entity agent, whose probabilities are multiplied.
    #[default]
    Two,
    /// One agent that scores whole actions `[relation; entity]`.
    Single,
}

/// The baseline that is subtracted from the reward before it weights the gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// Nothing.
    #[default]
    None,
    /// The mean reward of the rollouts of the same query. Only for one agent without action dropout: otherwise samples
    /// do not follow the probabilities in the loss, and negative advantages push down every sampled action until
    /// training collapses.
    Query,
    /// A moving average of the mean reward of earlier batches, as in MINERVA's published code.
    Moving,
}

/// How an answer is scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pool {
    /// The best path that leads to it, as published.
    #[default]
    Best,
    /// All paths found that lead to it: their probabilities are added. The explanation still shows the best of them.
    Sum,
}

/// How embeddings are initialised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Random numbers, as published.
    #[default]
    Random,
    /// From the embedding model that gives the soft reward, so that similar entities start similar.
    Embedding,
}

/// The model that gives the soft reward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RewardBy {
    /// An embedding model, as published.
    #[default]
    Embedding,
    /// A propagator, which is trained before the walker.
    Propagator,
}

/// Everything that shapes and trains a walker. The defaults are the published settings of WN18RR.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WalkConfig {
    /// One agent or two.
    pub agents: Agents,
    /// Whether entities have embeddings. Without them actions differ by their relations alone.
    pub entity_embeddings: bool,
    /// How the embeddings of entities and relations are initialised.
    pub start: Start,
    /// Width of the embeddings of entities and relations.
    pub dimension: usize,
    /// Width of the LSTMs' state.
    pub history: usize,
    /// Layers of each LSTM.
    pub layers: usize,
    /// Initial bias of the LSTMs' forget gates: 1 in TensorFlow, and therefore in MINERVA's published code; 0 in
    /// PyTorch.
    pub forget_bias: f32,
    /// Whether the LSTMs' gates see the memory directly, each unit its own (peephole connections), as in MINERVA's
    /// published code.
    pub peepholes: bool,
    /// Whether the output of an agent's head goes through a ReLU before it is compared with the actions, as in
    /// MINERVA's published code.
    pub output_relu: bool,
    /// T, the hops of a walk, 1 to 5.
    pub hops: usize,
    /// η, the most edges an entity offers; the targets of highest PageRank are kept.
    pub bandwidth: usize,
    /// Which ends of the training facts are queried. Published walkers train on tail queries only and answer head
    /// queries badly.
    pub side: Side,
    /// Training queries per batch.
    pub batch: usize,
    /// Whether every batch is drawn from all training queries with replacement, as in MINERVA's published code. An epoch
    /// is then as many batches as a pass would have, all of them full. Otherwise an epoch is a pass over the shuffled
    /// queries.
    pub with_replacement: bool,
    /// Rollouts per training query.
    pub rollouts: usize,
    /// Whether the walks of a batch that are in the same state share it, and with it its dropout. Otherwise every walk
    /// draws dropout of its own, as in the published code, which costs several times as much.
    pub share_states: bool,
    /// Adam's learning rate.
    pub learning_rate: f32,
    /// The fraction of the learning rate left at the last joint epoch; it decays linearly. 1 keeps it constant, as
    /// published.
    pub final_rate: f32,
    /// The largest norm of the gradient; 0 for no limit.
    pub clip: f32,
    /// λ, the share of the rule reward in `λ R_r + (1 − λ) R_h`.
    pub lambda: f32,
    /// Whether a walk that ends elsewhere is rewarded by the plausibility `f(s, q, e)` instead of 0.
    pub soft_reward: bool,
    /// The model that gives that plausibility.
    pub reward: RewardBy,
    /// Whether other known training answers are masked on the last hop.
    pub close_answers: bool,
    /// Whether a walk is kept from ending at its own subject, unless the relation is known to link some entity with
    /// itself. Not in the published code, whose walkers often return to where they began.
    pub close_subject: bool,
    /// β, the weight of the entity agent's (or single agent's) mean entropy a hop.
    pub entropy: f32,
    /// The factor by which β decays over `entropy_steps` joint batches; the decay is smooth. 1 keeps β constant.
    pub entropy_decay: f32,
    /// See `entropy_decay`.
    pub entropy_steps: usize,
    /// The baseline that is subtracted from the reward.
    pub baseline: Baseline,
    /// The weight of a batch in the moving-average baseline.
    pub baseline_weight: f32,
    /// Whether advantages (rewards minus baseline) are normalised to mean 0 and standard deviation 1 over the whole
    /// batch.
    pub normalise_rewards: bool,
    /// Dropout of embeddings.
    pub embedding_dropout: f32,
    /// Dropout of the heads' hidden layers.
    pub hidden_dropout: f32,
    /// The fraction of relations hidden from a sample (action dropout).
    pub relation_dropout: f32,
    /// The fraction of entities (actions) hidden from a sample (action dropout).
    pub entity_dropout: f32,
    /// Passes over the training queries in which the relation agent is trained alone, on rule rewards. May be a
    /// fraction; ignored with a single agent.
    pub pretrain_epochs: f32,
    /// Whether the relation agent stays as pre-training left it. The relation embeddings are its output
    /// layer, so they stay too.
    pub freeze_relation_agent: bool,
    /// Passes over the training queries in joint training.
    pub epochs: usize,
    /// Total batches of joint training, which overrides `epochs`; 0 trains for `epochs`.
    pub steps: usize,
    /// Epochs from one validation to the next.
    pub validate_every: usize,
    /// Validations without a better MRR after which training stops; 0 for never.
    pub patience: usize,
    /// The most validation triples used, evenly spread; 0 for all.
    pub validation_queries: usize,
    /// Paths kept by beam search at each hop.
    pub beam: usize,
    /// How an answer is scored.
    pub pool: Pool,
}

impl Default for WalkConfig {
    fn default() -> Self {
        Self {
            agents: Agents::Two,
            entity_embeddings: true,
            start: Start::Random,
            dimension: 200,
            history: 200,
            layers: 3,
            forget_bias: 0.0,
            peepholes: false,
            output_relu: false,
            hops: 3,
            bandwidth: 500,
            side: Side::Tail,
            batch: 256,
            with_replacement: false,
            rollouts: 20,
            share_states: true,
            learning_rate: 0.001,
            final_rate: 1.0,
            clip: 0.0,
            lambda: 0.65,
            soft_reward: true,
            reward: RewardBy::Embedding,
            close_answers: true,
            close_subject: true,
            entropy: 0.0,
            entropy_decay: 1.0,
            entropy_steps: 200,
            baseline: Baseline::None,
            baseline_weight: 0.02,
            normalise_rewards: false,
            embedding_dropout: 0.1,
            hidden_dropout: 0.1,
            relation_dropout: 0.1,
            entity_dropout: 0.1,
            pretrain_epochs: 1.0,
            freeze_relation_agent: false,
            epochs: 30,
            steps: 0,
            validate_every: 2,
            patience: 10,
            validation_queries: 0,
            beam: 128,
            pool: Pool::Best,
        }
    }
}

impl WalkConfig {
    /// RuleGuider as published for WN18RR: the defaults.
    pub fn wn18rr() -> Self {
        Self::default()
    }

    /// RuleGuider as published for NELL-995.
    pub fn nell_995() -> Self {
        Self {
            entropy: 0.05,
            bandwidth: 256,
            batch: 128,
            lambda: 0.1,
            clip: 5.0,
            beam: 512,
            epochs: 60,
            validate_every: 5,
            ..Self::default()
        }
    }

    /// RuleGuider as published for FB15k-237.
    pub fn fb15k_237() -> Self {
        Self {
            entropy: 0.02,
            embedding_dropout: 0.3,
            relation_dropout: 0.5,
            entity_dropout: 0.5,
            bandwidth: 400,
            learning_rate: 0.0015,
            lambda: 0.1,
            epochs: 30,
            ..Self::default()
        }
    }

    /// The *Single* ablation of these settings: one agent, with rule reward.
    pub fn single(self) -> Self {
        Self { agents: Agents::Single, pretrain_epochs: 0.0, freeze_relation_agent: false, ..self }
    }

    /// MultiHop on these settings: one agent, soft reward, no rules.
    pub fn multihop(self) -> Self {
        Self { lambda: 0.0, ..self.single() }
    }

    /// MINERVA on these settings: one agent, reward 0 or 1, no action dropout, no end closed.
    pub fn minerva(self) -> Self {
        Self {
            soft_reward: false,
            close_answers: false,
            close_subject: false,
            relation_dropout: 0.0,
            entity_dropout: 0.0,
            ..self.multihop()
        }
    }

    /// An error that names the first invalid setting.
    ///
    /// # Errors
    /// The key, what was expected and what was found.
    pub fn check(&self) -> Result<(), WrongValue> {
        let whole = |key, value: usize, least, most| settings::whole(key, value, least..=most);
        let real = |key, value: f32, least, most| settings::number(key, value, least..=most);
        let embedded = self.start != Start::Embedding || self.entity_embeddings;
        settings::expect(embedded, "start", "random where entities have no embeddings", "embedding")?;
        whole("hops", self.hops, 1, MOST_HOPS)?;
        whole("dimension", self.dimension, 1, 4096)?;
        whole("history", self.history, 1, 4096)?;
        whole("layers", self.layers, 1, 16)?;
        whole("bandwidth", self.bandwidth, 1, u32::MAX as usize)?;
        whole("batch", self.batch, 1, 65_536)?;
        whole("rollouts", self.rollouts, 1, 4096)?;
        whole("beam", self.beam, 1, WIDEST_BEAM)?;
        whole("validate_every", self.validate_every, 1, usize::MAX)?;
        whole("entropy_steps", self.entropy_steps, 1, usize::MAX)?;
        real("learning_rate", self.learning_rate, 0.0, 1.0)?;
        real("final_rate", self.final_rate, 0.0, 1.0)?;
        real("clip", self.clip, 0.0, f32::MAX)?;
        real("lambda", self.lambda, 0.0, 1.0)?;
        real("entropy", self.entropy, 0.0, 100.0)?;
        real("entropy_decay", self.entropy_decay, 0.0, 1.0)?;
        real("baseline_weight", self.baseline_weight, 0.0, 1.0)?;
        real("pretrain_epochs", self.pretrain_epochs, 0.0, 1e6)?;
        real("embedding_dropout", self.embedding_dropout, 0.0, 0.99)?;
        real("hidden_dropout", self.hidden_dropout, 0.0, 0.99)?;
        real("forget_bias", self.forget_bias, -100.0, 100.0)?;
        real("relation_dropout", self.relation_dropout, 0.0, 1.0)?;
        real("entity_dropout", self.entity_dropout, 0.0, 1.0)
    }

    /// β after `step` joint batches.
    pub(super) fn entropy_at(&self, step: u64) -> f32 {
        self.entropy * self.entropy_decay.powf(step as f32 / self.entropy_steps as f32)
    }

    /// These settings with everything that may change during training set to fixed values: how to validate and search,
    /// and how long to train unless the learning rate depends on it; in pre-training everything that only joint
    /// training uses. Trainings of a phase that agree in the rest share checkpoints.
    pub fn checkpoint_settings(&self, phase: Phase) -> Self {
        let shared = Self {
            patience: 0,
            validate_every: 1,
            validation_queries: 0,
            beam: 1,
            pool: Pool::Best,
            ..self.clone()
        };
        match phase {
            Phase::Joint => {
                let by_epochs = self.steps == 0 && self.final_rate < 1.0;
                Self { epochs: if by_epochs { self.epochs } else { 0 }, ..shared }
            }
            Phase::Pretrain => Self {
                epochs: 0,
                steps: 0,
                entropy_decay: 1.0,
                entropy_steps: 1,
                final_rate: 1.0,
                lambda: 1.0,
                soft_reward: false,
                reward: RewardBy::Embedding,
                entropy: 0.0,
                freeze_relation_agent: false,
                ..shared
            },
        }
    }

    /// Whether an embedding model has to be trained before the walker.
    pub fn needs_embedding(&self) -> bool {
        self.soft_reward && self.reward == RewardBy::Embedding || self.start == Start::Embedding
    }

    /// Whether a propagator has to be trained before the walker.
    pub fn needs_propagator(&self) -> bool {
        self.soft_reward && self.reward == RewardBy::Propagator
    }

    /// Whether stage 3 has anything to do.
    pub fn pretrains(&self) -> bool {
        self.agents == Agents::Two && self.pretrain_epochs > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_settings_are_sound_and_every_system_is_one_of_them() {
        for config in [WalkConfig::wn18rr(), WalkConfig::nell_995(), WalkConfig::fb15k_237()] {
            for system in [
                config.clone(),
                config.clone().single(),
                config.clone().multihop(),
                config.clone().minerva(),
                WalkConfig { freeze_relation_agent: true, ..config.clone() },
                WalkConfig { pretrain_epochs: 0.0, ..config },
            ] {
                system.check().unwrap();
            }
        }
    }

    #[test]
    fn the_weight_of_the_entropy_falls_by_a_factor_every_so_many_batches() {
        let config =
            WalkConfig { entropy: 0.2, entropy_decay: 0.9, entropy_steps: 200, ..WalkConfig::default() };
        for (step, weight) in [(0, 0.2), (200, 0.18), (400, 0.162), (100, 0.2 * 0.9f32.sqrt())] {
            assert!((config.entropy_at(step) - weight).abs() < 1e-6, "{step}");
        }
        let constant = WalkConfig { entropy: 0.3, ..WalkConfig::default() };
        assert_eq!(constant.entropy_at(12_345), 0.3);
    }

    #[test]
    fn an_impossible_setting_names_itself_and_what_it_should_be() {
        let config = WalkConfig { hops: 6, ..WalkConfig::default() };
        assert_eq!(
            config.check().unwrap_err().to_string(),
            "`hops`: expected a whole number from 1 to 5, found 6"
        );
        let config =
            WalkConfig { entity_embeddings: false, start: Start::Embedding, ..WalkConfig::default() };
        assert_eq!(
            config.check().unwrap_err().to_string(),
            "`start`: expected random where entities have no embeddings, found embedding"
        );
        let config = WalkConfig { lambda: f32::NAN, ..WalkConfig::default() };
        assert_eq!(config.check().unwrap_err().found, "NaN");
        let config = WalkConfig { clip: -1.0, ..WalkConfig::default() };
        let message = config.check().unwrap_err().in_group("walk").to_string();
        assert_eq!(message, "`walk.clip`: expected a number, 0 or more, found -1");
    }

    #[test]
    fn unknown_keys_are_refused_and_missing_ones_have_defaults() {
        let config: WalkConfig = serde_json::from_str(r#"{"lambda": 0.1, "agents": "single"}"#).unwrap();
        assert_eq!((config.lambda, config.agents, config.hops), (0.1, Agents::Single, 3));
        assert!(
            serde_json::from_str::<WalkConfig>(r#"{"lamda": 0.1}"#)
                .unwrap_err()
                .to_string()
                .contains("lamda")
        );
    }
}
