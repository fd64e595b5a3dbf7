//! What a search found for a query: candidates with their evidence, and the reasons made from it. All in ids.

use crate::graph::{EntityId, Link, Query};
use crate::rule::ScoredRule;
use crate::walk;
use serde::{Deserialize, Serialize};

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
    /// Its score; comparable only within one system and one query.
    pub score: f64,
    /// Where the path begins: at the subject, or at the answer if the rule that predicts it is about the answer.
    pub start: EntityId,
    /// The path that supports the answer; empty if the reason is not a path.
    pub path: Vec<Hop>,
    /// The rule that predicts it, if there is one.
    pub rule: Option<ScoredRule>,
    /// The propagator's score with and without the path, if that was measured when the path was chosen.
    pub without: Option<ScoreWithout>,
}

/// The propagator's score of an answer, with and without the facts of one path: shows whether the answer depends on
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreWithout {
    /// The score with all facts of the graph.
    pub score: f64,
    /// The score without those of the path.
    pub without: f64,
}

/// What the search that ranked a candidate found in support of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The most confident rule that predicts it, by its place among the rules.
    pub rule: Option<u32>,
    /// The walk that led to it.
    pub walk: Option<walk::WalkedAnswer>,
}

/// A scored entity with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: EntityId,
    /// Its score.
    pub score: f64,
    /// What supports it.
    pub evidence: Evidence,
}

/// The candidates of one query, best first. None of them is a fact of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The query.
    pub query: Query,
    /// The candidates, including those that only a score supports.
    pub candidates: Vec<Candidate>,
}
