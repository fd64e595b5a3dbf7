//! Why a fact is predicted, or why not.

use super::answer::{Answer, HeldOut, Probability, Reason, is_false};
use super::firing::GroundedRule;
use super::{AskError, Contribution, Model, Page};
use crate::graph::{Direction, EntityId, Query};
use crate::progress::{Progress, Silent};
use crate::reason::{Detail, EmbeddingReward, Found, PathLimits, Reasoned, ScoreWithout, supported};
use crate::walk::SoftReward;
use serde::{Deserialize, Serialize};

/// How many paths an explanation shows, and how many rules unless told otherwise.
pub const MAX_PATHS: usize = 5;

/// Why, or why not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The subject of the query, by id.
    pub subject: String,
    /// The relation.
    pub relation: String,
    /// Whether the head is asked for.
    pub inverse: bool,
    /// The answer that is explained, by id.
    pub object: String,
    /// Whether the graph has this fact already.
    pub known: bool,
    /// The split that has it, if it is a fact of the data that was held out.
    #[serde(default)]
    pub held_out: Option<HeldOut>,
    /// Whether the data say that it is false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub known_false: bool,
    /// Where they say so, if they tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_false_source: Option<String>,
    /// Its rank among the predicted answers, from 1; absent if it is not predicted.
    pub rank: Option<usize>,
    /// Its score; absent if it is not predicted.
    #[serde(default)]
    pub score: Option<f64>,
    /// Its calibrated probability; absent if it is not predicted, or nothing is calibrated.
    #[serde(default)]
    pub probability: Probability,
    /// Whether the probability is rough: calibrated on too little.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probability_rough: bool,
    /// The top answer, if it is another one.
    pub instead: Option<Answer>,
    /// The score of a typical candidate of the query; absent if the object is not predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// What the object's score came from: with `typical`, the shares add up to it; empty if it is not predicted.
    #[serde(default)]
    pub because: Vec<Contribution>,
    /// The paths to the object, those by rules first; empty if it is not predicted.
    pub answers: Vec<Answer>,
    /// The rules that predict it, most confident first, each with a path that grounds it; at most as many as requested.
    pub rules: Vec<GroundedRule>,
    /// How many rules predict it altogether.
    #[serde(default)]
    pub rules_total: usize,
    /// The embedding model's score, where the run has one that has a say in such answers.
    pub embedding: Option<EmbeddingOpinion>,
}

/// The embedding model's score of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingOpinion {
    /// How plausible the fact is, from 0 to 1.
    pub plausibility: f64,
    /// Its rank among all entities that are not answers in the graph, from 1.
    pub rank: usize,
}

impl Model {
    /// Why `object` is, or is not, an answer to `(subject, relation, ?)`; entities and relations by name or label.
    ///
    /// # Errors
    /// If a name is not known or the reasoner fails.
    pub fn explain(&self, subject: &str, relation: &str, object: &str) -> Result<Explanation, AskError> {
        let query = self.query(subject, relation)?;
        self.explain_query(query, self.index().entity(object)?, MAX_PATHS, &Silent)
    }

    /// Why `object` is, or is not, an answer to `query`, with at most `rules` rules. One search finds everything.
    ///
    /// # Errors
    /// If the reasoner fails, or `progress` says to stop.
    pub fn explain_query(
        &self,
        query: Query,
        object: EntityId,
        rules: usize,
        progress: &dyn Progress,
    ) -> Result<Explanation, AskError> {
        self.explain_within(query, object, rules, &PathLimits::default(), progress)
    }

    /// The same with those paths and rules that the `limits` admit. What the score came from is not limited.
    ///
    /// # Errors
    /// If the reasoner fails, or `progress` says to stop.
    pub fn explain_within(
        &self,
        query: Query,
        object: EntityId,
        rules: usize,
        limits: &PathLimits,
        progress: &dyn Progress,
    ) -> Result<Explanation, AskError> {
        let names = self.names();
        let found = self.reasoner.search(&[query], usize::MAX, progress)?.remove(0);
        let best = supported(&*self.reasoner, &found, 1)?.pop();
        let instead = best.filter(|best| best.entity != object);
        let (rank, ways) = self.placed(&found, object, limits)?;
        let probabilities = self.probabilities(&found);
        let named = |way: &Reasoned| self.named(query, way, probabilities.of(way.score));
        let own = found.candidates.iter().find(|candidate| rank.is_some() && candidate.entity == object);
        let score = own.map(|candidate| candidate.score);
        let probability = score.map_or_else(Probability::default, |score| probabilities.of(score));
        let decomposed = match rank {
            Some(_) => self.because(&found, &[object], Detail::Full)?.pop(),
            None => None,
        };
        let (typical, because) =
            decomposed.map_or((None, Vec::new()), |(typical, because)| (Some(typical), because));
        let without = self.reasoner.without(query, object, &ways)?;
        let way = |(way, propagator): (&Reasoned, Option<ScoreWithout>)| {
            let answer = named(way);
            Answer { reason: Reason { propagator, ..answer.reason }, ..answer }
        };
        let Page { items, total, .. } = self.rules_among(&found, object, (0, rules), limits, progress)?;
        Ok(Explanation {
            subject: names.entity(query.subject).to_owned(),
            relation: self.relation_name(query),
            inverse: query.link.direction() == Direction::Inverse,
            object: names.entity(object).to_owned(),
            known: self.graph().contains(query.subject, query.link, object),
            held_out: self.held_out(query, object),
            known_false: self.is_denied(query, object),
            known_false_source: self.source_of_denial(query, object),
            rank,
            score,
            probability,
            probability_rough: self.is_rough(query.link, probability),
            instead: instead.as_ref().map(named),
            typical,
            because,
            answers: ways.iter().zip(without).map(way).collect(),
            rules: items,
            rules_total: total,
            embedding: self.embedding_opinion(query, object)?,
        })
    }

    /// The rank of `object` among the supported candidates, and the paths to it; none if it is unsupported.
    fn placed(
        &self,
        found: &Found,
        object: EntityId,
        limits: &PathLimits,
    ) -> Result<(Option<usize>, Vec<Reasoned>), AskError> {
        let Found { query, candidates } = found;
        let Some(place) = candidates.iter().position(|candidate| candidate.entity == object) else {
            return Ok((None, Vec::new()));
        };
        let mut ways = self.reasoner.reasons(*query, &candidates[place], MAX_PATHS)?;
        if ways.is_empty() {
            return Ok((None, ways));
        }
        if !limits.is_none() {
            ways = self.reasoner.reasons_within(*query, &candidates[place], MAX_PATHS, limits)?;
        }
        let above = self.reasoner.are_supported(found, place)?;
        Ok((Some(1 + above.iter().filter(|supported| **supported).count()), ways))
    }

    fn embedding_opinion(
        &self,
        query: Query,
        object: EntityId,
    ) -> Result<Option<EmbeddingOpinion>, AskError> {
        // What has no weight here is no reason.
        let embedding = if self.reasoner.heeds_embedding(query) { self.embedding()? } else { None };
        let Some(embedding) = embedding else { return Ok(None) };
        let fact = [(query.subject, query.link, object)];
        let plausible = EmbeddingReward::new(&embedding, [query])?.plausibility(&fact)?;
        let scores = embedding.scores(&[query])?;
        let scores = scores.on_host()?;
        let known = self.graph().targets(query.subject, query.link);
        let own = scores[object.index()];
        let above = scores
            .iter()
            .zip(0..)
            .filter(|(score, id)| **score > own && known.binary_search(&EntityId(*id)).is_err());
        Ok(Some(EmbeddingOpinion { plausibility: f64::from(plausible[0]), rank: above.count() + 1 }))
    }
}
