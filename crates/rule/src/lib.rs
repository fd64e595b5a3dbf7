//! Which relation paths imply what: rules, their file format, the miner and prediction by rules.
//!
//! A [`Rule`] says that a path of links (its body) implies a link (its head). [`mine`] finds rules in a graph
//! and counts what they predict; [`RuleFile`] reads and writes AnyBURL's format; [`RuleReasoner`] answers
//! queries by rules alone.
//!
//! This module knows the graph, and of evaluation only the trait that reasoners implement. It never sees a test split.
#![warn(unreachable_pub)]

mod apply;
mod carry;
mod clause;
mod count;
mod file;
mod frontier;
mod ground;
mod known;
mod mine;
mod reach;
mod recount;
mod shard;
mod spelling;
mod text;
mod weighted;

pub use apply::{
    Aggregate, ApplyOptions, FiredRule, Firings, RuleAnswer, RuleReasoner, UNPREDICTED, write_predictions,
};
pub use carry::{CarriedRules, MovedRule, carry_over};
pub use clause::{Counts, Rule, RuleType, ScoredRule, Shape, UNSEEN, reversed_path, sort_by_confidence};
pub use file::{RuleFile, parse_rule, rule_calling, rule_text, write_lines, write_rules};
pub use ground::Grounding;
pub use known::{Confidence, over_known};
pub use mine::{
    Keep, MineOptions, Mined, MinedShard, MiningBudget, PartialBody, PartialTally, mine, mine_shard,
};
pub use recount::{count_rules, estimate_rules};
pub use shard::{RuleCounts, RuleShardSettings, merge_rule_shards, write_rule_shard};
pub use weighted::{KeptRules, weigh_by_confidence};

use ruleguider_support::settings::WrongValue;
use std::path::PathBuf;

/// A map whose iteration order depends only on its contents and their insertion, so that the same seed gives the same
/// result.
type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;

/// What can go wrong with rules.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// A rule file cannot be read.
    #[error("{}: cannot read the rules", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{}: cannot write", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line of a rule file is not a rule.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Which character of the line, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// An invalid option.
    #[error(transparent)]
    Option(#[from] WrongValue),
    /// An error with the parts of a mining job.
    #[error(transparent)]
    Shard(#[from] ruleguider_graph::shard::ShardError),
}

/// The example of the README, which is tested here.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
