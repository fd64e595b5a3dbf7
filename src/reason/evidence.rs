//! An answer and why it was given, in ids.

use crate::graph::{EntityId, Link};
use crate::rule::ScoredRule;

/// One step of a path: which link was walked and where it led.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// The link.
    pub link: Link,
    /// Where it led.
    pub target: EntityId,
    /// The log-probabilities of the relation agent and of the entity agent, where agents walked.
    pub scores: Option<[f64; 2]>,
}

/// An answer and why it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Reasoned {
    /// The answer.
    pub entity: EntityId,
    /// How good it is; scores of one system and one query compare.
    pub score: f64,
    /// Where the path begins: at the subject, unless it is a rule about the answer that says so.
    pub start: EntityId,
    /// The path that speaks for the answer; empty where the reason is no path.
    pub path: Vec<Hop>,
    /// The rule that says so, if there is one.
    pub rule: Option<ScoredRule>,
}
