//! A missing fact as scripts see it, and the order of missing facts.

use crate::ask::answer::is_false;
use crate::ask::{Answer, Contribution, HeldOut, Probability, Reason};
use crate::graph::{Direction, EntityId, Names, PredictedFact, Query};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A predicted fact that the graph does not have. The names of the fields are a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingFact {
    /// The head of the fact, by id.
    pub head: String,
    /// The relation.
    pub relation: String,
    /// The tail of the fact, by id.
    pub tail: String,
    /// The label of the head, or its id if it has none.
    pub head_label: String,
    /// The label of the tail, or its id if it has none.
    pub tail_label: String,
    /// The calibrated probability: the share of such answers that turn out to be held-out facts.
    pub probability: Probability,
    /// Whether the probability is rough.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probability_rough: bool,
    /// Its score; scores of different queries need not be comparable.
    pub score: f64,
    /// Why it is predicted.
    #[serde(flatten)]
    pub reason: Reason,
    /// The score of a typical candidate of the same query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// What the score came from: with `typical`, the shares add up to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Contribution>,
    /// The reason in one line.
    pub words: String,
    /// The split that has this fact, if it is one of the data that was held out.
    pub held_out: Option<HeldOut>,
}

impl MissingFact {
    /// `answer` to `query`, by its entity `object`.
    pub fn new(query: Query, object: EntityId, answer: Answer, names: &Names) -> Self {
        let (head, tail) = match query.link.direction() {
            Direction::Forward => (query.subject, object),
            Direction::Inverse => (object, query.subject),
        };
        let relation = query.link.relation().map_or("", |relation| names.relation(relation));
        Self {
            head: names.entity(head).to_owned(),
            relation: relation.to_owned(),
            tail: names.entity(tail).to_owned(),
            head_label: names.label(head).to_owned(),
            tail_label: names.label(tail).to_owned(),
            probability: answer.probability,
            probability_rough: answer.probability_rough,
            score: answer.score,
            words: answer.reason_in_words(),
            reason: answer.reason,
            typical: answer.typical,
            because: answer.because,
            held_out: answer.held_out,
        }
    }
}

impl From<MissingFact> for PredictedFact {
    fn from(fact: MissingFact) -> Self {
        let MissingFact { head, relation, tail, probability, score, words, held_out, .. } = fact;
        let rough = fact.probability_rough;
        let held_out = held_out.map_or("", HeldOut::split);
        PredictedFact {
            head,
            relation,
            tail,
            probability: probability.0,
            rough,
            score,
            held_out,
            reason: words,
        }
    }
}

/// The sort key of a fact: probability, then score, then query and answer. Smaller keys come first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rank {
    /// The probability, where there are any.
    pub probability: Option<f64>,
    /// The score.
    pub score: f64,
    /// Link, subject and answer, by their numbers.
    pub ids: [u32; 3],
}

impl Eq for Rank {}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let likely = |rank: &Self| rank.probability.unwrap_or(0.0);
        let by_probability = likely(other).total_cmp(&likely(self));
        by_probability.then(other.score.total_cmp(&self.score)).then(self.ids.cmp(&other.ids))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A missing fact with its sort key, as stored in blocks on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankedFact(pub Rank, pub MissingFact);
