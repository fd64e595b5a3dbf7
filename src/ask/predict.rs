//! Answers to queries, each with its reason.

use super::answer::{Answer, HeldOut, Probability};
use super::{AnswersAmong, AskError, Model};
use crate::eval::calibration::TOP;
use crate::graph::{Direction, EntityId, Query};
use crate::progress::{Progress, Silent};
use crate::reason::{Detail, Found, Reasoned, supported, supported_within};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The most known and held-out answers that a [`Prediction`] names; it counts all. A hub may have millions, and
/// [`Model::facts_of`] gives them page by page.
pub const MOST_KNOWN: usize = 100;

/// How many of the best candidates are looked at for answers with a certain kind of path, and at least how many for each
/// answer that is asked for.
const LOOKED_AT: usize = 200;
const LOOKED_AT_EACH: usize = 10;

/// The most candidates that are in memory at once where all entities are.
pub(super) const CANDIDATES: usize = 1 << 20;

/// The answers to a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The subject of the query, by id.
    pub subject: String,
    /// The relation.
    pub relation: String,
    /// Whether the head is asked for.
    pub inverse: bool,
    /// Answers that are not facts of the graph, best first.
    pub answers: Vec<Answer>,
    /// Answers that the graph has already, by label: the first [`MOST_KNOWN`].
    pub known: Vec<String>,
    /// The same by id.
    #[serde(default)]
    pub known_ids: Vec<String>,
    /// How many answers the graph has already.
    #[serde(default)]
    pub known_total: usize,
    /// Answers that are in the data but not in the graph: they were held out. The first [`MOST_KNOWN`].
    #[serde(default)]
    pub held_out: Vec<HeldOutAnswer>,
    /// How many were held out.
    #[serde(default)]
    pub held_out_total: usize,
    /// Where fewer answers than asked for are given: how many other entities there are. Nothing supports them, no rule and no
    /// path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<usize>,
    /// Why the user may have meant the other direction of the relation; absent if the direction makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// An answer that is in the data, in a split that was held out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOutAnswer {
    /// The entity, by its id.
    pub entity: String,
    /// Its label, or its id if it has none.
    pub label: String,
    /// The split that has it.
    pub held_out: HeldOut,
}

impl Prediction {
    /// The first `top` answers that were not held out.
    #[must_use]
    pub fn without_held_out(mut self, top: usize) -> Self {
        self.answers.retain(|answer| answer.held_out.is_none());
        self.answers.truncate(top);
        self
    }
}

impl IntoIterator for Prediction {
    type Item = Answer;
    type IntoIter = std::vec::IntoIter<Answer>;

    /// The answers, best first.
    fn into_iter(self) -> Self::IntoIter {
        self.answers.into_iter()
    }
}

/// How many candidates are looked at for `top` answers with a certain kind of path.
fn looked_at(top: usize) -> usize {
    top.saturating_mul(LOOKED_AT_EACH).max(LOOKED_AT)
}

impl Model {
    /// The `top` best answers to `(subject, relation, ?)` that the graph does not have, and those that it has. Entities by
    /// id or label; `~relation` asks for heads.
    ///
    /// # Errors
    /// If a name is not known or the reasoner fails.
    pub fn predict(&self, subject: &str, relation: &str, top: usize) -> Result<Prediction, AskError> {
        self.predict_query(self.query(subject, relation)?, top)
    }

    /// The same for a query in ids.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn predict_query(&self, query: Query, top: usize) -> Result<Prediction, AskError> {
        self.predict_among(query, top, &AnswersAmong::default())
    }

    /// The same with answers among some entities only.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn predict_among(
        &self,
        query: Query,
        top: usize,
        among: &AnswersAmong,
    ) -> Result<Prediction, AskError> {
        let found = self.reasoner.search(&[query], self.at_least(top, among), &Silent)?;
        self.prediction(found.first().expect("one query has one result"), (top, true), among)
    }

    /// How many candidates are needed for `top` answers: the best of all may be none `among` those wanted.
    fn at_least(&self, top: usize, among: &AnswersAmong) -> usize {
        let every_path = among.paths().is_none();
        if !among.is_all() {
            self.graph().entities()
        } else if every_path {
            top.max(TOP)
        } else {
            looked_at(top)
        }
    }

    /// The answers to a batch of queries, at most as many as the reasoner's batch. Without `reasons` nothing is looked
    /// for but scores: answers have no path and no rule, and those that nothing supports are among them.
    pub(super) fn predict_batch(
        &self,
        queries: &[Query],
        (top, reasons): (usize, bool),
        among: &AnswersAmong,
        progress: &dyn Progress,
    ) -> Result<Vec<Prediction>, AskError> {
        let at_least = self.at_least(top, among);
        // All entities may be candidates of each query; they are in memory for some queries at a time.
        let at_once = if among.is_all() { queries.len() } else { CANDIDATES / at_least.max(1) };
        let mut predictions = Vec::with_capacity(queries.len());
        for some in queries.chunks(at_once.max(1)) {
            let found = self.reasoner.search(some, at_least, progress)?;
            let made: Result<Vec<Prediction>, AskError> =
                found.par_iter().map(|found| self.prediction(found, (top, reasons), among)).collect();
            predictions.extend(made?);
        }
        Ok(predictions)
    }

    fn prediction(
        &self,
        found: &Found,
        (top, reasons): (usize, bool),
        among: &AnswersAmong,
    ) -> Result<Prediction, AskError> {
        let (query, names) = (found.query, self.names());
        let known = self.graph().targets(query.subject, query.link);
        let named_ones = &known[..known.len().min(MOST_KNOWN)];
        let aside = self.held_out_answers(query);
        let probabilities = self.probabilities(found);
        let is_answer = |entity| among.has(entity) && !self.is_denied(query, entity);
        let admitted = found.candidates.iter().filter(|one| is_answer(one.entity));
        let named = |answer: &Reasoned| self.named(query, answer, probabilities.of(answer.score));
        let answers: Vec<Answer> = match reasons {
            true => {
                let admitted = Found { query, candidates: admitted.cloned().collect() };
                let answers = match among.paths().is_none() {
                    true => supported(&*self.reasoner, &admitted, top)?,
                    false => {
                        supported_within(&*self.reasoner, &admitted, (top, looked_at(top)), among.paths())?
                    }
                };
                let entities: Vec<EntityId> = answers.iter().map(|answer| answer.entity).collect();
                let because = self.because(found, &entities, Detail::Shown)?;
                answers.iter().zip(because).map(|(answer, because)| named(answer).because(because)).collect()
            }
            false => admitted.take(top).map(|candidate| named(&Reasoned::bare(query, candidate))).collect(),
        };
        let held_out = |(entity, held_out)| HeldOutAnswer {
            entity: names.entity(entity).to_owned(),
            label: names.label(entity).to_owned(),
            held_out,
        };
        let unsupported = (answers.len() < top && among.paths().is_none())
            .then(|| self.possible(query, among).saturating_sub(answers.len()));
        Ok(Prediction {
            subject: names.entity(query.subject).to_owned(),
            relation: self.relation_name(query),
            inverse: query.link.direction() == Direction::Inverse,
            answers,
            known: named_ones.iter().map(|&entity| names.label(entity).to_owned()).collect(),
            known_ids: named_ones.iter().map(|&entity| names.entity(entity).to_owned()).collect(),
            known_total: known.len(),
            held_out_total: aside.len(),
            held_out: aside.into_iter().take(MOST_KNOWN).map(held_out).collect(),
            unsupported,
            hint: self.other_direction(query),
        })
    }

    /// How many entities may be answers that the graph does not have.
    fn possible(&self, query: Query, among: &AnswersAmong) -> usize {
        let (known, entities) = (self.graph().targets(query.subject, query.link), self.graph().entities());
        if among.is_all() && self.dataset().known.negatives.is_empty() {
            return entities - known.len();
        }
        let is_possible = |entity: &EntityId| {
            among.has(*entity) && !self.is_denied(query, *entity) && known.binary_search(entity).is_err()
        };
        (0..entities as u32).map(EntityId).filter(is_possible).count()
    }

    /// An answer to `query` with its names.
    pub(super) fn named(&self, query: Query, reasoned: &Reasoned, probability: Probability) -> Answer {
        let held_out = self.held_out(query, reasoned.entity);
        let probability_rough = self.is_rough(query.link, probability);
        self.noted(Answer {
            probability,
            probability_rough,
            ..Answer::new(reasoned, held_out, self.names(), self.naming())
        })
    }
}
