//! A few example answers: queries of the test split with their reasons.

use super::answer::{Answer, HeldOut, Probability, in_words};
use super::{AskError, Contribution, Model};
use crate::eval::calibration::TOP;
use crate::graph::{Direction, EntityId, Link, Query};
use crate::progress::Silent;
use crate::reason::{Detail, Found, Reasoned, supported};
use crate::rule::UNSEEN;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What is known of an example beside its reason: its probability, and what its score came from.
type Score = (Probability, Option<(f64, Vec<Contribution>)>);

/// A query of the test split with the top answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExampleAnswer {
    /// The label of the entity asked about.
    pub subject: String,
    /// The relation.
    pub relation: String,
    /// The label of that relation, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_label: Option<String>,
    /// The top answer.
    pub answer: Answer,
    /// The same in plain words.
    pub words: String,
    /// Whether the test split has this answer.
    pub true_in_test: bool,
}

impl ExampleAnswer {
    /// The display name of the relation: its label, or its name if it has none.
    pub fn relation_shown(&self) -> &str {
        self.relation_label.as_deref().unwrap_or(&self.relation)
    }

    /// The answer in plain words, without its reason.
    pub fn claim(&self) -> &str {
        let claim = self.words.strip_suffix(self.answer.reason_in_words().as_str());
        claim.map_or(self.words.as_str(), |claim| claim.trim_end_matches([':', ' ']))
    }

    /// The split that has the answer; none if it is not in the data at all.
    pub fn split(&self) -> Option<HeldOut> {
        self.answer.held_out
    }
}

impl Model {
    /// Test queries with their top answers: of different relations, those with a longer reason first.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn examples(&self, count: usize) -> Result<Vec<ExampleAnswer>, AskError> {
        let names = self.names();
        let test = &self.dataset.test;
        let looked_at = count.saturating_mul(40).min(400).max(count);
        let stride = (test.len() / looked_at.max(1)).max(1);
        let queries: Vec<Query> = test
            .iter()
            .step_by(stride)
            .take(looked_at)
            .map(|&triple| Query::of(triple, Direction::Forward).0)
            .collect();
        let mut reasoned = Vec::with_capacity(queries.len());
        for batch in queries.chunks(self.reasoner.reasoner().batch().max(1)) {
            let found = self.reasoner.search(batch, TOP, &Silent)?;
            let first = |found: &Found| -> Result<_, AskError> {
                let answer = supported(&*self.reasoner, found, 1)?.pop();
                let Some(answer) = answer else { return Ok(None) };
                let probability = self.probabilities(found).of(answer.score);
                let because = self.because(found, &[answer.entity], Detail::Brief)?.pop();
                Ok(Some((answer, (probability, because))))
            };
            let some: Result<Vec<_>, AskError> = found.par_iter().map(first).collect();
            reasoned.extend(some?);
        }
        let mut found: Vec<(Query, Reasoned, Score)> = queries
            .into_iter()
            .zip(reasoned)
            .filter_map(|(query, first)| first.map(|(answer, score)| (query, answer, score)))
            .collect();
        // The most informative first: by a confident rule, on a path without repetition, with more hops. Stable, so
        // that among equals the order of the split decides.
        let trusted = |answer: &Reasoned| {
            let confidence = answer.rule.as_ref().map(|rule| rule.counts.confidence(UNSEEN));
            confidence.is_some_and(|confidence| confidence > self.config().rules.threshold)
        };
        found.sort_by_key(|(query, answer, _)| {
            let mut visited: Vec<EntityId> = vec![query.subject];
            visited.extend(answer.path.iter().filter(|hop| hop.link != Link::NO_OP).map(|hop| hop.target));
            let hops = visited.len();
            visited.sort_unstable();
            visited.dedup();
            std::cmp::Reverse((trusted(answer), visited.len() == hops, hops))
        });
        let mut chosen: Vec<(Query, Reasoned, Score)> = Vec::new();
        let mut shown: HashMap<Link, usize> = HashMap::new();
        while chosen.len() < count && !found.is_empty() {
            // Relations take turns: the next example is of a relation that has been shown least often.
            let times = |(query, ..): &(Query, Reasoned, Score)| shown.get(&query.link).copied().unwrap_or(0);
            let fewest = found.iter().map(times).min().unwrap_or(0);
            let next = found.iter().position(|one| times(one) == fewest).unwrap_or(0);
            *shown.entry(found[next].0.link).or_default() += 1;
            chosen.push(found.remove(next));
        }
        let example = |(query, reasoned, (probability, because)): (Query, Reasoned, Score)| {
            let answer = self.named(query, &reasoned, probability);
            let answer = because.into_iter().fold(answer, Answer::because);
            ExampleAnswer {
                subject: names.label(query.subject).to_owned(),
                relation: self.relation_name(query),
                relation_label: query
                    .link
                    .relation()
                    .and_then(|id| names.relation_labels.get(id).map(str::to_owned)),
                words: in_words(query, &answer, names, self.naming()),
                true_in_test: answer.held_out == Some(HeldOut::Test),
                answer,
            }
        };
        Ok(chosen.into_iter().map(example).collect())
    }
}
