//! Answers to queries, each with its reason.

use super::answer::{Answer, HeldOut, Probability};
use super::{AskError, Model};
use crate::eval::calibration::TOP;
use crate::graph::{Direction, Query};
use crate::progress::{Progress, Silent};
use crate::reason::{Found, Reasoned, supported};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

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
    /// Answers that the graph has already, by label.
    pub known: Vec<String>,
    /// The same by id.
    #[serde(default)]
    pub known_ids: Vec<String>,
    /// Answers that are in the data but not in the graph: they were held out.
    #[serde(default)]
    pub held_out: Vec<HeldOutAnswer>,
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

impl IntoIterator for Prediction {
    type Item = Answer;
    type IntoIter = std::vec::IntoIter<Answer>;

    /// The answers, best first.
    fn into_iter(self) -> Self::IntoIter {
        self.answers.into_iter()
    }
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
        let mut found = self.predict_batch(&[query], top, &Silent)?;
        Ok(found.pop().expect("one query has one prediction"))
    }

    /// The answers to a batch of queries, at most as many as the reasoner's batch.
    pub(super) fn predict_batch(
        &self,
        queries: &[Query],
        top: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Prediction>, AskError> {
        let found = self.reasoner.search(queries, top.max(TOP), progress)?;
        found.par_iter().map(|found| self.prediction(found, top)).collect()
    }

    fn prediction(&self, found: &Found, top: usize) -> Result<Prediction, AskError> {
        let (query, names) = (found.query, self.names());
        let known = self.graph().targets(query.subject, query.link);
        let answers = supported(&*self.reasoner, found, top)?;
        let probabilities = self.probabilities(found);
        let named = |answer: &Reasoned| self.named(query, answer, probabilities.of(answer.score));
        let held_out = |(entity, held_out)| HeldOutAnswer {
            entity: names.entity(entity).to_owned(),
            label: names.label(entity).to_owned(),
            held_out,
        };
        Ok(Prediction {
            subject: names.entity(query.subject).to_owned(),
            relation: self.relation_name(query),
            inverse: query.link.direction() == Direction::Inverse,
            answers: answers.iter().map(named).collect(),
            known: known.iter().map(|&entity| names.label(entity).to_owned()).collect(),
            known_ids: known.iter().map(|&entity| names.entity(entity).to_owned()).collect(),
            held_out: self.held_out_answers(query).into_iter().map(held_out).collect(),
            hint: self.other_direction(query),
        })
    }

    /// An answer to `query` with its names.
    pub(super) fn named(&self, query: Query, reasoned: &Reasoned, probability: Probability) -> Answer {
        let held_out = self.held_out(query, reasoned.entity);
        Answer { probability, ..Answer::new(reasoned, held_out, self.names(), self.naming()) }
    }
}
