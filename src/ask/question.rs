//! Questions to an opened run: predictions, explanations, examples.

use super::answer::{Answer, HeldOut, RuleSaid, Step, in_words};
use super::{AskError, Model, Naming};
use crate::eval::Scored;
use crate::graph::{Dataset, Direction, EntityId, Graph, Known, Link, Query, Triple};
use crate::reason::{ByRules, Explains, Opinion, Reasoned, by_rule};
use crate::rule::{Reason, UNSEEN};
use crate::walk::SoftReward;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// How many ways to an answer, and rules for it, an explanation shows.
const WAYS: usize = 5;

/// The answers to a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The entity asked about, by id.
    pub subject: String,
    /// What is asked.
    pub relation: String,
    /// Whether the head is asked for.
    pub inverse: bool,
    /// Answers that are no facts of the graph, best first.
    pub answers: Vec<Answer>,
    /// Answers that the graph has already, by label.
    pub known: Vec<String>,
    /// The same by id.
    #[serde(default)]
    pub known_ids: Vec<String>,
}

/// Why, or why not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The entity asked about, by id.
    pub subject: String,
    /// What is asked.
    pub relation: String,
    /// Whether the head is asked for.
    pub inverse: bool,
    /// The answer that is explained, by id.
    pub object: String,
    /// Whether the graph has this fact already.
    pub known: bool,
    /// The split that has it, if it is a fact of the data that was put aside.
    #[serde(default)]
    pub held_out: Option<HeldOut>,
    /// Its place among the answers that are predicted, from 1; absent if it is not predicted at all.
    pub rank: Option<usize>,
    /// The best answer instead, if that is another one.
    pub instead: Option<Answer>,
    /// The ways to the object, those by rules first: empty if it is not predicted.
    pub answers: Vec<Answer>,
    /// The rules that predict it, most confident first, each with a path that grounds it.
    pub rules: Vec<GroundedRule>,
    /// What the embedding model thinks of it, where the run has one.
    pub embedding: Option<EmbeddingSaid>,
}

/// What the embedding model thinks of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingSaid {
    /// How plausible the fact is, from 0 to 1.
    pub plausibility: f64,
    /// Its place among all entities that the graph does not have as answers, from 1.
    pub rank: usize,
}

/// A rule with a path that grounds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroundedRule {
    /// The rule.
    #[serde(flatten)]
    pub rule: RuleSaid,
    /// The label of the entity where the path begins.
    pub from: String,
    /// The id of that entity.
    #[serde(default)]
    pub from_id: String,
    /// The path.
    pub path: Vec<Step>,
}

/// A query of the test split with the top answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The label of the entity asked about.
    pub subject: String,
    /// What is asked.
    pub relation: String,
    /// The top answer.
    pub answer: Answer,
    /// The same in plain words.
    pub words: String,
    /// Whether the test split has this answer.
    pub true_in_test: bool,
}

impl Example {
    /// The split that has the answer; none if it is not in the data at all.
    pub fn split(&self) -> Option<HeldOut> {
        // Runs of earlier versions have written down no more than this.
        self.answer.held_out.or(self.true_in_test.then_some(HeldOut::Test))
    }
}

impl Model {
    /// The `top` best answers to `query` that the graph does not have, and those that it has.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn predict(&self, reasoner: &dyn Explains, query: Query, top: usize) -> Result<Prediction, AskError> {
        let mut found = self.predict_batch(reasoner, &[query], top)?;
        Ok(found.pop().expect("one query has one prediction"))
    }

    /// The answers to a batch of queries, on this thread as far as the reasoner goes.
    pub(super) fn predict_batch(
        &self,
        reasoner: &dyn Explains,
        queries: &[Query],
        top: usize,
    ) -> Result<Vec<Prediction>, AskError> {
        let names = &self.dataset.names;
        let reasoned = reasoner.reasoned(queries, top, &self.learnable.graph)?;
        let prediction = |(query, answers): (&Query, Vec<Reasoned>)| {
            let known = self.learnable.graph.targets(query.subject, query.link);
            Prediction {
                subject: names.entity(query.subject).to_owned(),
                relation: self.relation_name(*query),
                inverse: query.link.direction() == Direction::Inverse,
                answers: answers.iter().map(|answer| self.said(*query, answer)).collect(),
                known: known.iter().map(|&entity| names.label(entity).to_owned()).collect(),
                known_ids: known.iter().map(|&entity| names.entity(entity).to_owned()).collect(),
            }
        };
        Ok(queries.iter().zip(reasoned).map(prediction).collect())
    }

    /// Why `object` is, or is not, an answer to `query`.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn explain(
        &self,
        reasoner: &dyn Explains,
        query: Query,
        object: EntityId,
    ) -> Result<Explanation, AskError> {
        let names = &self.dataset.names;
        let graph = &self.learnable.graph;
        let best = reasoner.reasoned(&[query], 1, graph)?.remove(0).pop();
        let instead = best.filter(|best| best.entity != object);
        let (rank, ways) = placed(reasoner, query, object, graph)?;
        Ok(Explanation {
            subject: names.entity(query.subject).to_owned(),
            relation: self.relation_name(query),
            inverse: query.link.direction() == Direction::Inverse,
            object: names.entity(object).to_owned(),
            known: graph.contains(query.subject, query.link, object),
            held_out: self.held_out(query, object),
            rank,
            instead: instead.map(|best| self.said(query, &best)),
            answers: ways.iter().map(|way| self.said(query, way)).collect(),
            rules: self.rules_for(query, object),
            embedding: self.embedding_said(query, object)?,
        })
    }

    /// An answer to `query` with its names.
    fn said(&self, query: Query, reasoned: &Reasoned) -> Answer {
        let held_out = self.held_out(query, reasoned.entity);
        Answer::new(reasoned, held_out, &self.dataset.names, self.naming())
    }

    /// The split that has the fact that `object` answers `query`, if the data has it and the graph does not.
    fn held_out(&self, query: Query, object: EntityId) -> Option<HeldOut> {
        if self.learnable.graph.contains(query.subject, query.link, object) {
            return None;
        }
        let relation = query.link.relation()?;
        let (head, tail) = match query.link.direction() {
            Direction::Forward => (query.subject, object),
            Direction::Inverse => (object, query.subject),
        };
        self.put_aside.get_or_init(|| put_aside(&self.dataset)).get(&Triple { head, relation, tail }).copied()
    }

    /// What to say of a query for one end of a relation whose subject the graph has at that end only: the other one
    /// may be meant.
    pub fn other_direction(&self, query: Query) -> Option<String> {
        let graph = &self.learnable.graph;
        let leads = |link: Link| !graph.targets(query.subject, link).is_empty();
        if leads(query.link) || !leads(query.link.reversed()) {
            return None;
        }
        let (subject, relation) =
            (self.naming().of(query.subject, &self.dataset.names), self.relation_name(query));
        let (end, other) = match query.link.direction() {
            Direction::Forward => ("head", "~"),
            Direction::Inverse => ("tail", ""),
        };
        Some(format!(
            "{subject} is never a {end} of `{relation}` in the graph; did you mean `{other}{relation}`?"
        ))
    }

    /// What entities are called so that a person knows which is meant.
    pub fn naming(&self) -> &Naming {
        self.naming.get_or_init(|| Naming::new(&self.dataset.names))
    }

    fn embedding_said(&self, query: Query, object: EntityId) -> Result<Option<EmbeddingSaid>, AskError> {
        let Some(embedding) = self.embedding()? else { return Ok(None) };
        let fact = [(query.subject, query.link, object)];
        let plausible = Opinion::new(&embedding, [query])?.plausibility(&fact)?;
        let scores = embedding.scores(&[query])?;
        let known = self.learnable.graph.targets(query.subject, query.link);
        let own = scores[object.index()];
        let above = scores
            .iter()
            .zip(0..)
            .filter(|(score, id)| **score > own && known.binary_search(&EntityId(*id)).is_err());
        Ok(Some(EmbeddingSaid { plausibility: f64::from(plausible[0]), rank: above.count() + 1 }))
    }

    fn rules_for(&self, query: Query, object: EntityId) -> Vec<GroundedRule> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let names = &self.dataset.names;
        let options = self.config.rules.apply_options();
        let by_rules = ByRules::new(&self.learnable.graph, self.rules.clone(), options);
        let fired = by_rules.rules().explain(query, object);
        let said = |reason: &Reason<'_>| {
            let answer = Scored { entity: object, score: reason.confidence };
            let Answer { from, from_id, path, .. } = self.said(query, &by_rule(reason, answer));
            GroundedRule { rule: RuleSaid::new(reason.rule, names, self.naming()), from, from_id, path }
        };
        fired.iter().take(WAYS).map(said).collect()
    }

    /// Test queries with their top answers: of different relations, those with a longer reason first.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn examples(&self, reasoner: &dyn Explains, count: usize) -> Result<Vec<Example>, AskError> {
        let names = &self.dataset.names;
        let test = &self.dataset.test;
        let looked_at = count.saturating_mul(40).min(400).max(count);
        let stride = (test.len() / looked_at.max(1)).max(1);
        let queries: Vec<Query> = test
            .iter()
            .step_by(stride)
            .take(looked_at)
            .map(|&triple| Query::of(triple, Direction::Forward).0)
            .collect();
        let reasoned = reasoner.reasoned(&queries, 1, &self.learnable.graph)?;
        let mut found: Vec<(Query, Reasoned)> = queries
            .into_iter()
            .zip(reasoned)
            .filter_map(|(query, answers)| Some((query, answers.into_iter().next()?)))
            .collect();
        // Those that say most first: by a rule that may be trusted, on a path that turns back nowhere, of more hops.
        // Stable, so that among equals the order of the split decides.
        let trusted = |answer: &Reasoned| {
            let confidence = answer.rule.as_ref().map(|rule| rule.counts.confidence(UNSEEN));
            confidence.is_some_and(|confidence| confidence > self.config.rules.threshold)
        };
        found.sort_by_key(|(query, answer)| {
            let mut visited: Vec<EntityId> = vec![query.subject];
            visited.extend(answer.path.iter().filter(|hop| hop.link != Link::NO_OP).map(|hop| hop.target));
            let hops = visited.len();
            visited.sort_unstable();
            visited.dedup();
            std::cmp::Reverse((trusted(answer), visited.len() == hops, hops))
        });
        let mut chosen: Vec<(Query, Reasoned)> = Vec::new();
        let mut shown: HashMap<Link, usize> = HashMap::new();
        while chosen.len() < count && !found.is_empty() {
            // Relations take turns: next comes one that has been shown least often.
            let times = |(query, _): &(Query, Reasoned)| shown.get(&query.link).copied().unwrap_or(0);
            let fewest = found.iter().map(times).min().unwrap_or(0);
            let next = found.iter().position(|one| times(one) == fewest).unwrap_or(0);
            *shown.entry(found[next].0.link).or_default() += 1;
            chosen.push(found.remove(next));
        }
        let example = |(query, reasoned): (Query, Reasoned)| {
            let answer = self.said(query, &reasoned);
            Example {
                subject: names.label(query.subject).to_owned(),
                relation: self.relation_name(query),
                words: in_words(query, &answer, names, self.naming()),
                true_in_test: answer.held_out == Some(HeldOut::Test),
                answer,
            }
        };
        Ok(chosen.into_iter().map(example).collect())
    }

    fn relation_name(&self, query: Query) -> String {
        query.link.relation().map_or("", |relation| self.dataset.names.relation(relation)).to_owned()
    }
}

/// The place of `object` among the answers that `reasoner` gives for `query`, and the ways to it; none if nothing but a
/// score speaks for it.
fn placed(
    reasoner: &dyn Explains,
    query: Query,
    object: EntityId,
    graph: &Graph,
) -> Result<(Option<usize>, Vec<Reasoned>), AskError> {
    let ranked = reasoner.ranked(query, graph)?;
    let Some(place) = ranked.iter().position(|scored| scored.entity == object) else {
        return Ok((None, Vec::new()));
    };
    let ways = reasoner.reasons(query, &ranked[place..=place], WAYS)?.remove(0);
    if ways.is_empty() {
        return Ok((None, ways));
    }
    let before = reasoner.reasons(query, &ranked[..place], 1)?;
    Ok((Some(before.iter().filter(|reasons| !reasons.is_empty()).count() + 1), ways))
}

/// The facts of the data that are not in the graph, each with the split that has it. Of several splits, the one that
/// less was learnt from.
fn put_aside(dataset: &Dataset) -> HashMap<Triple, HeldOut> {
    let Known { queries, valid, .. } = &dataset.known;
    let train: &[Triple] = if dataset.known.has_own_graph() { queries } else { &[] };
    let splits: [(&[Triple], HeldOut); 4] = [
        (train, HeldOut::Train),
        (valid, HeldOut::Valid),
        (&dataset.test_left_out, HeldOut::Test),
        (&dataset.test, HeldOut::Test),
    ];
    splits.into_iter().flat_map(|(facts, split)| facts.iter().map(move |&fact| (fact, split))).collect()
}
