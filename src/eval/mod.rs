//! How good are the answers? Filtered ranking, its figures, and the report that a person or a script reads.
//!
//! This module knows no reasoner, only the trait that all of them share: [`Reasoner`]. A [`Protocol`] says what
//! is asked and how ties are ranked, [`Truth`] says which answers are true and what was learnt from, and
//! [`evaluate`] asks every distinct query once, in batches, so that no more than one batch of scores exists at
//! a time. Ranks do not depend on the number of threads or on the size of the batch.

mod baseline;
pub mod calibration;
mod evaluation;
mod ranking;
mod report;
mod split;
mod strata;

pub use crate::graph::{Answers, Crowd, CrowdedAnswers, Reasoner, ReasonerError, Scored};
pub use baseline::Baselines;
pub use evaluation::{
    Evaluation, LeftOut, Protocol, Ranked, Side, Totals, Truth, Unseen, evaluate, evaluate_among,
    evaluate_shard,
};
pub use ranking::{Ties, filtered_rank};
pub use report::{BaselineFigures, Figures, RankRow, RelationFigures, Report};
pub use split::{Split, evaluate_relations, evaluate_split, of_relations, rank_relations};
pub use strata::{FARTHEST, Situation, Stratum, situations, strata};

/// What can go wrong while ranking.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The reasoner itself failed.
    #[error("answering the queries failed")]
    Reasoner(#[source] ReasonerError),
    /// A score is NaN, so it cannot be ranked.
    #[error(
        "a score of the query ({subject}, {link}, ?) is not a number: the model has diverged; train it with a lower learning rate"
    )]
    NotANumber {
        /// The subject of the query, by its id.
        subject: u32,
        /// The link asked about, by its number.
        link: u32,
    },
    /// The reasoner answered a different number of queries than it was asked, or scored a different number of
    /// entities.
    #[error("the reasoner returned {found} {what}, expected {expected}")]
    Shape {
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The user stopped it. Figures over a part of the queries would mislead, so there are none.
    #[error("interrupted before all queries were ranked")]
    Interrupted,
}
