//! The learning stages of a run: which there are, and which of them a configuration needs.

use crate::config::{Config, System};

/// A learning stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The embedding model is trained.
    Embeddings,
    /// Rules are mined.
    Rules,
    /// The relation agent is trained alone.
    Pretraining,
    /// Both agents are trained.
    Training,
    /// The propagator is trained.
    Propagation,
    /// The weights of the blend are fitted.
    Blending,
    /// Scores are calibrated to probabilities.
    Calibration,
}

impl Stage {
    /// All of them, in their order.
    pub const ALL: [Stage; 7] = [
        Stage::Embeddings,
        Stage::Rules,
        Stage::Pretraining,
        Stage::Training,
        Stage::Propagation,
        Stage::Blending,
        Stage::Calibration,
    ];

    /// The name in files and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Embeddings => "embeddings",
            Stage::Rules => "rules",
            Stage::Pretraining => "pretraining",
            Stage::Training => "training",
            Stage::Propagation => "propagation",
            Stage::Blending => "blending",
            Stage::Calibration => "calibration",
        }
    }

    /// Whether it trains a network for some epochs, validates it, and keeps the best.
    pub fn is_trained(self) -> bool {
        matches!(self, Stage::Embeddings | Stage::Training | Stage::Propagation)
    }

    /// The stages that `config` needs, in their order.
    pub fn of(config: &Config) -> Vec<Stage> {
        let (walk, blend) = (&config.walk, &config.blend);
        let blends = config.system == System::Blend;
        let walks = config.system == System::Walker || (blends && blend.with_walker);
        let pretrains = walks && walk.pretrains();
        let guided = pretrains || (walks && walk.lambda > 0.0);
        let wanted = |stage: &Stage| match stage {
            Stage::Embeddings => {
                let speaks = config.system == System::Embedding || (blends && blend.with_embedding);
                speaks || (walks && walk.needs_embedding())
            }
            Stage::Rules => {
                // The propagator's paths are shown with the rules that they follow.
                let named = [System::Rules, System::Propagator].contains(&config.system);
                guided || named || (blends && blend.with_rules)
            }
            Stage::Pretraining => pretrains,
            Stage::Training => walks,
            Stage::Propagation => {
                let speaks = config.system == System::Propagator || (blends && blend.with_propagator);
                speaks || (walks && walk.needs_propagator())
            }
            Stage::Blending => blends || (config.system == System::Rules && config.rules.signals),
            Stage::Calibration => true,
        };
        let mut stages: Vec<Stage> = Self::ALL.into_iter().filter(wanted).collect();
        // A propagator that rewards the walker is trained before it.
        if walks && walk.needs_propagator() {
            stages.retain(|stage| *stage != Stage::Propagation);
            let first = stages.iter().position(|stage| [Stage::Pretraining, Stage::Training].contains(stage));
            stages.insert(first.unwrap_or(stages.len()), Stage::Propagation);
        }
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::{RewardBy, Start};

    #[test]
    fn a_run_has_the_stages_that_its_walker_learns_from() {
        let mut config = Config::default();
        (config.system, config.walk.soft_reward) = (System::Walker, false);
        let wanted = [Stage::Rules, Stage::Pretraining, Stage::Training, Stage::Calibration];
        assert_eq!(Stage::of(&config), wanted);
        config.walk.start = Start::Embedding;
        assert_eq!(Stage::of(&config)[0], Stage::Embeddings);
        (config.walk.lambda, config.walk.pretrain_epochs) = (0.0, 0.0);
        assert_eq!(Stage::of(&config), [Stage::Embeddings, Stage::Training, Stage::Calibration]);
    }

    #[test]
    fn a_propagator_that_rewards_a_walker_is_trained_before_it() {
        let mut config = Config { system: System::Walker, ..Config::default() };
        (config.walk.reward, config.walk.soft_reward) = (RewardBy::Propagator, true);
        let wanted =
            [Stage::Rules, Stage::Propagation, Stage::Pretraining, Stage::Training, Stage::Calibration];
        assert_eq!(Stage::of(&config), wanted);
        config.walk.soft_reward = false;
        assert!(!Stage::of(&config).contains(&Stage::Propagation));
    }
}
