//! The walker: two agents trained by reinforcement learning to follow good paths, and the beam search for answers.
//!
//! The **relation agent** picks the next relation, the **entity agent** the next entity; rules reward the first,
//! reaching the right entity rewards both. Stage 3 trains the relation agent alone, stage 4 both ([`train()`]).
//! [`Walker::answers`] finds answers by beam search, each with its path and both agents' scores at every hop, and
//! a [`Walker`] is a [`Reasoner`](crate::eval::Reasoner) like any other. One agent instead of two gives MINERVA and
//! MultiHop: all systems are settings ([`WalkConfig`]) of the same parts.
//!
//! Inside, from the ground up: `world` is the environment; `layer` finds the states that walks share, which is where
//! the speed comes from; `network` is the policy; `episode` one batch of REINFORCE; `train` puts both phases on the
//! training harness; `beam` is the search; `measure` profiles a batch.
//!
//! Rules come in through [`PathRules`] and embeddings through [`SoftReward`]: this module mines nothing and embeds
//! nothing, and it never sees a test split.

mod beam;
mod config;
mod episode;
mod layer;
mod measure;
mod network;
mod paths;
mod reasoner;
mod reward;
#[cfg(test)]
mod tests;
mod train;
mod walker;
mod world;

pub use beam::{BeamWork, WalkStep, WalkedAnswer};
pub use config::{Agents, Baseline, MOST_HOPS, Pool, RewardBy, Start, WIDEST_BEAM, WalkConfig};
pub use episode::Phase;
pub use measure::{BatchPart, HopSize, Measured, Timing};
pub use paths::PathTable;
pub use reasoner::{Noting, WithTrainingMasks};
pub use reward::{NoRules, PathRules, SoftReward, SoftRewardError, Teacher};
pub use train::{TrainOptions, train};
pub use walker::Walker;
pub use world::World;

use crate::train::NetworkError;
