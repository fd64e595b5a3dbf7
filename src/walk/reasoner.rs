//! The walker as a reasoner among others, and how often its best paths are rules.

use super::reward::PathRules;
use super::world::Ask;
use super::{NetworkError, WalkedAnswer, Walker};
use crate::eval::{Answers, Reasoner, ReasonerError, Scored};
use crate::graph::{EntityId, Query};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Paths that one beam search holds at a time, over all its queries.
const PATHS_AT_ONCE: usize = 16 * 1024;

impl Reasoner for Walker {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        Ok(scored(&self.answers(queries)?))
    }

    fn batch(&self) -> usize {
        (PATHS_AT_ONCE / self.config().beam).clamp(1, 256)
    }
}

fn scored(answers: &[Vec<WalkedAnswer>]) -> Answers {
    let scored = |answer: &WalkedAnswer| Scored { entity: answer.entity, score: f64::from(answer.score) };
    Answers::Listed(answers.iter().map(|answers| answers.iter().map(scored).collect()).collect())
}

/// A walker that records, while it answers, whether the path to its top answer is a rule, so that ranking and the rule
/// share need only one search.
pub struct Noting<'a> {
    walker: &'a Walker,
    rules: &'a dyn PathRules,
    by_rule: Mutex<HashMap<Query, bool>>,
}

impl<'a> Noting<'a> {
    /// `walker`, whose paths are looked up in `rules`.
    pub fn new(walker: &'a Walker, rules: &'a dyn PathRules) -> Self {
        Self { walker, rules, by_rule: Mutex::default() }
    }

    fn answers(&self, queries: &[Query]) -> Result<Vec<Vec<WalkedAnswer>>, NetworkError> {
        let found = self.walker.answers(queries)?;
        let mut by_rule = self.by_rule.lock().unwrap_or_else(PoisonError::into_inner);
        for (query, answers) in queries.iter().zip(&found) {
            let top = answers.first();
            let is_rule = top.is_some_and(|top| self.rules.confidence(query.link, &top.links()) > 0.0);
            by_rule.insert(*query, is_rule);
        }
        Ok(found)
    }

    /// For how many of `queries`, as a share of all, the path to the top answer was a rule. Queries that were not asked
    /// count as not following a rule. As in the published figure, a path is a rule if its relations are the body of
    /// one; its entities need not all be different, although rule confidences and the reasons shown to users require
    /// that.
    pub fn share(&self, queries: &[Query]) -> f64 {
        let by_rule = self.by_rule.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = queries.iter().filter(|query| by_rule.get(query).copied().unwrap_or(false)).count();
        rules as f64 / queries.len().max(1) as f64
    }
}

impl Reasoner for Noting<'_> {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        Ok(scored(&self.answers(queries)?))
    }

    fn batch(&self) -> usize {
        self.walker.batch()
    }
}

/// A walker that is asked for its own training facts under the masks of training: the fact's own edge is closed, and so
/// are the query's other answers on the last hop. This measures how well training queries are answered, not
/// generalisation.
pub struct WithTrainingMasks {
    found: HashMap<(Query, EntityId), Vec<Scored>>,
    batch: usize,
}

impl WithTrainingMasks {
    /// Searches for `facts`, each a query and its answer, with `walker`.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(
        walker: &Walker,
        facts: impl IntoIterator<Item = (Query, EntityId)>,
    ) -> Result<Self, NetworkError> {
        let asks: Vec<Ask> =
            facts.into_iter().map(|(query, target)| Ask { query, target: Some(target) }).collect();
        let mut found = HashMap::with_capacity(asks.len());
        for part in asks.chunks(walker.batch()) {
            let (answers, _) = walker.search(part)?;
            let lists = scored(&answers).into_lists();
            let training = part.iter().zip(lists);
            found.extend(training.filter_map(|(ask, list)| Some(((ask.query, ask.target?), list))));
        }
        Ok(Self { found, batch: walker.batch() })
    }
}

impl Reasoner for WithTrainingMasks {
    /// No answers: this reasoner is only asked for training facts.
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        Ok(Answers::Listed(vec![Vec::new(); queries.len()]))
    }

    fn answer_for_fact(&self, query: Query, fact: EntityId) -> Result<Option<Vec<Scored>>, ReasonerError> {
        Ok(self.found.get(&(query, fact)).cloned())
    }

    fn batch(&self) -> usize {
        self.batch
    }
}

impl Walker {
    /// For how many of `queries` the path to the top answer is a rule of `rules`, as a share of all queries.
    ///
    /// # Errors
    /// If the device fails.
    pub fn rule_share(&self, queries: &[Query], rules: &dyn PathRules) -> Result<f64, NetworkError> {
        let noting = Noting::new(self, rules);
        let mut distinct = queries.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        for batch in distinct.chunks(self.batch()) {
            noting.answers(batch)?;
        }
        Ok(noting.share(queries))
    }
}
