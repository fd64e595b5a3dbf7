//! What a search found for a query: candidates with their evidence, and the reasons made from it. All in ids.

use super::fit::WIDTH;
use crate::eval::{Answers, Scored};
use crate::graph::{Edge, EntityId, Graph, Link, Query};
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

impl From<Edge> for Hop {
    fn from(edge: Edge) -> Self {
        Self { link: edge.link, target: edge.target, scores: None }
    }
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

impl Reasoned {
    /// The facts of its path, each (entity, link, entity).
    pub fn facts(&self) -> Vec<(EntityId, Link, EntityId)> {
        let starts = std::iter::once(self.start).chain(self.path.iter().map(|hop| hop.target));
        let walked = starts.zip(&self.path).filter(|(_, hop)| hop.link != Link::NO_OP);
        walked.map(|(from, hop)| (from, hop.link, hop.target)).collect()
    }

    /// `entity` without a path or a rule.
    pub fn bare(query: Query, candidate: &Candidate) -> Self {
        let &Candidate { entity, score, .. } = candidate;
        Self { entity, score, start: query.subject, path: Vec::new(), rule: None, without: None }
    }
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
    /// The rules that its score by rules is made of, by their places, the most confident first.
    pub rules: Box<[u32]>,
    /// The walk that led to it.
    pub walk: Option<walk::WalkedAnswer>,
    /// Its features, if a blend scored it.
    pub(super) features: Option<[f32; WIDTH]>,
}

impl Evidence {
    /// The most confident rule that predicts it.
    pub fn rule(&self) -> Option<u32> {
        self.rules.first().copied()
    }
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

impl Found {
    /// What `answers` hold beside the facts of `graph`, for a reasoner that keeps no evidence of its scores.
    pub fn beside(graph: &Graph, queries: &[Query], answers: &Answers) -> Vec<Self> {
        let candidate = |Scored { entity, score }| Candidate { entity, score, evidence: Evidence::default() };
        let found = |(row, &query): (usize, &Query)| {
            let known = graph.targets(query.subject, query.link);
            let new = answers.best(row, usize::MAX).into_iter().filter(|best| !known.contains(&best.entity));
            Self { query, candidates: new.map(candidate).collect() }
        };
        queries.iter().enumerate().map(found).collect()
    }
}
