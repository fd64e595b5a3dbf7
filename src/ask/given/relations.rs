//! Which relations lead from one entity to another: [`Model::relations`].
//!
//! Every relation is asked from both ends, and a regression weighs what they say. It is fitted on validation facts and the
//! same pairs under other relations, because what tells relations of a pair apart is not what tells answers of a query
//! apart.

use super::score::best_reason;
use super::verdict::{Verdicts, features};
use super::view::{BOTH_ENDS, End, View};
use crate::ask::answer::is_false;
use crate::ask::{AskError, Contribution, HeldOut, Model, Probability, Reason};
use crate::eval::Split;
use crate::graph::{Adjacency, Direction, EntityId, Link, Query, RelationId, Triple, evenly, mixed};
use crate::progress::{Progress, Silent};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most validation facts that the regression is fitted to.
const FACTS: usize = 500;
/// Wrong relations for each of them.
const WRONG: u64 = 5;
/// The most queries that an evaluation asks; a split that needs more is represented by an even sample.
const QUERIES: usize = 200_000;

/// The relations between two entities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationPrediction {
    /// The subject, by id.
    pub subject: String,
    /// The object, by id.
    pub object: String,
    /// The relations that lead from the subject to the object and are not in the graph, best first.
    pub answers: Vec<RelationAnswer>,
    /// Those that the graph has already.
    pub known: Vec<String>,
}

/// A relation that may lead from one entity to another. The names of the fields are a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationAnswer {
    /// The relation.
    pub relation: String,
    /// Its label, or its name if it has none.
    pub label: String,
    /// The calibrated probability of the object, as [`Model::predict`] gives it.
    pub probability: Probability,
    /// Whether the probability is rough: calibrated on too little.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probability_rough: bool,
    /// The score of the object; absent if nothing supports it.
    pub score: Option<f64>,
    /// How plausible the fact is by both ends, from 0 to 1; absent if nothing could be fitted.
    pub plausibility: Option<f64>,
    /// The rank of the object among all entities.
    pub rank_tail: f64,
    /// The rank of the subject.
    pub rank_head: f64,
    /// The best reason for the object, or else for the subject; without path, rule and sentence if nothing supports either.
    #[serde(flatten)]
    pub reason: Reason,
    /// The score of a typical candidate of the object's query; absent if nothing supports the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// What the score came from: with `typical`, the shares add up to it; empty if nothing supports the object.
    #[serde(default)]
    pub because: Vec<Contribution>,
    /// The reason in one line.
    pub words: String,
    /// The split that has this fact, if it is one of the data that was held out.
    pub held_out: Option<HeldOut>,
}

/// How well the relations of facts are predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationPredictionFigures {
    /// How many facts were asked.
    pub facts: usize,
    /// How many facts the split has, if only an even sample was asked.
    pub sampled_from: Option<usize>,
    /// How many relations there are to choose from.
    pub relations: usize,
    /// The share of facts whose relation is ranked first.
    #[serde(rename = "hits@1")]
    pub hits_at_1: f64,
    /// Among the first three.
    #[serde(rename = "hits@3")]
    pub hits_at_3: f64,
    /// Among the first ten.
    #[serde(rename = "hits@10")]
    pub hits_at_10: f64,
    /// The mean reciprocal rank.
    pub mrr: f64,
}

impl fmt::Display for RelationPredictionFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { facts, sampled_from, relations, hits_at_1, hits_at_3, hits_at_10, mrr } = self;
        write!(f, "The relation of {facts} facts")?;
        if let Some(all) = sampled_from {
            write!(f, " (an even sample of {all})")?;
        }
        write!(f, " among {relations}, filtered: hits@1 {hits_at_1:.4}, hits@3 {hits_at_3:.4}")?;
        write!(f, ", hits@10 {hits_at_10:.4}, MRR {mrr:.4}")
    }
}

/// What ranks the relations of a pair.
struct Ranker<'a> {
    view: View<'a>,
    verdicts: Option<Verdicts>,
    workers: usize,
}

/// A relation between two entities, with what both ends say.
struct PairRelation {
    fact: Triple,
    ends: [End; 2],
    /// Higher is better.
    key: f64,
    plausibility: Option<f64>,
}

impl<'a> Ranker<'a> {
    fn new(model: &'a Model, workers: usize, progress: &dyn Progress) -> Result<Self, AskError> {
        let view = View::whole(model)?;
        let workers = workers.max(1);
        let verdicts = match model.expect_valid_unlearnt() {
            Err(_) => None,
            Ok(()) => model.fitted.relations.get(&view, || Ok(examples(&view)), workers, progress)?,
        };
        Ok(Self { verdicts, view, workers })
    }

    /// All relations from `head` to `tail`, best first, for every pair.
    fn ranked(
        &self,
        pairs: &[(EntityId, EntityId)],
        truth: &Adjacency,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<PairRelation>>, AskError> {
        let relations = self.view.graph.relations() as u32;
        let of_pair = |&(head, tail): &(EntityId, EntityId)| {
            (0..relations).map(move |id| Triple { head, relation: RelationId(id), tail })
        };
        let facts: Vec<Triple> = pairs.iter().flat_map(of_pair).collect();
        let ends = self.view.judge(&facts, BOTH_ENDS, truth, self.workers, progress)?;
        let asked = facts.into_iter().zip(ends).map(|(fact, ends)| self.asked(fact, ends));
        let mut all: Vec<PairRelation> = asked.collect();
        let rows = all.drain(..);
        let mut ranked: Vec<Vec<PairRelation>> = Vec::with_capacity(pairs.len());
        for one in rows {
            match ranked.last_mut().filter(|last| last.len() < relations as usize) {
                Some(last) => last.push(one),
                None => ranked.push(vec![one]),
            }
        }
        for one in &mut ranked {
            one.sort_by(|a, b| b.key.total_cmp(&a.key).then(a.fact.relation.cmp(&b.fact.relation)));
        }
        Ok(ranked)
    }

    fn asked(&self, fact: Triple, ends: [End; 2]) -> PairRelation {
        let plausibility =
            self.verdicts.as_ref().map(|verdicts| verdicts.plausibility(&features(&self.view.graph, &ends)));
        let by_place = || ends.iter().map(|end| -end.place.ln()).sum::<f64>();
        PairRelation { key: plausibility.unwrap_or_else(by_place), fact, ends, plausibility }
    }
}

/// Validation facts, and the same pairs under other relations.
fn examples(view: &View<'_>) -> Vec<(Triple, bool)> {
    let model = view.model;
    let relations = view.graph.relations() as u64;
    let known = model.dataset().known.answers(view.graph.entities());
    let is_known = |known: &Adjacency, fact: Triple| {
        let (query, object) = Query::of(fact, Direction::Forward);
        known.contains(query.subject, query.link, object)
    };
    let valid: Vec<Triple> = { model.dataset().known.valid.iter().copied() }
        .filter(|&fact| !is_known(view.graph.adjacency(), fact))
        .collect();
    let trues = evenly(&valid, FACTS);
    let wrong = trues.iter().enumerate().flat_map(|(place, &fact)| {
        (0..WRONG).map(move |draw| {
            let key = mixed(mixed(place as u64) ^ draw) % relations;
            Triple { relation: RelationId(key as u32), ..fact }
        })
    });
    let mut falses: Vec<Triple> = wrong.filter(|&fact| !is_known(&known, fact)).collect();
    falses.sort_unstable_by_key(|fact| (fact.head, fact.relation, fact.tail));
    falses.dedup();
    trues.into_iter().map(|fact| (fact, true)).chain(falses.into_iter().map(|fact| (fact, false))).collect()
}

impl Model {
    /// The `top` best relations from `subject` to `object`, each with its reason; entities by id or label.
    ///
    /// # Errors
    /// If a name is not known or the reasoner fails.
    pub fn relations(&self, subject: &str, object: &str, top: usize) -> Result<RelationPrediction, AskError> {
        let index = self.index();
        self.relations_between(index.entity(subject)?, index.entity(object)?, top, 1, &Silent)
    }

    /// The same in ids, by `workers` threads.
    ///
    /// # Errors
    /// If the reasoner fails, or the user interrupts.
    pub fn relations_between(
        &self,
        subject: EntityId,
        object: EntityId,
        top: usize,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<RelationPrediction, AskError> {
        let mut ranker = Ranker::new(self, workers, progress)?;
        ranker.view.decomposes = true;
        let truth = self.graph().adjacency();
        let ranked = ranker.ranked(&[(subject, object)], truth, progress)?.pop().unwrap_or_default();
        let names = self.names();
        let (mut answers, mut known) = (Vec::new(), Vec::new());
        for asked in ranked {
            let relation = asked.fact.relation;
            let [tail, head] = &asked.ends;
            if self.graph().contains(subject, Link::forward(relation), object) {
                known.push(names.relation(relation).to_owned());
                continue;
            }
            if answers.len() == top {
                continue;
            }
            let reason = best_reason(&ranker.view, &asked.ends)?;
            let (typical, because) = self.decomposition_of(tail);
            answers.push(RelationAnswer {
                relation: names.relation(relation).to_owned(),
                label: names.relation_label(relation).to_owned(),
                probability: tail.probability,
                probability_rough: self.is_rough(tail.query.link, tail.probability),
                score: tail.candidate.as_ref().map(|candidate| candidate.score),
                plausibility: asked.plausibility,
                rank_tail: tail.rank,
                rank_head: head.rank,
                words: reason.as_ref().map_or_else(String::new, |one| one.reason_in_words()),
                reason: reason.map(|answer| answer.reason).unwrap_or_default(),
                typical,
                because,
                held_out: self.held_out(tail.query, object),
            });
        }
        known.sort();
        let [subject, object] = [subject, object].map(|entity| names.entity(entity).to_owned());
        Ok(RelationPrediction { subject, object, answers, known })
    }

    /// How well the relations of a split's facts are predicted: each among all relations, without others that are true.
    ///
    /// # Errors
    /// If the split has been learnt, the reasoner fails, or the user interrupts.
    pub fn evaluate_relation_prediction(
        &self,
        split: Split,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<RelationPredictionFigures, AskError> {
        if split != Split::Test {
            self.expect_valid_unlearnt()?;
        }
        let ranker = Ranker::new(self, workers, progress)?;
        let relations = self.graph().relations();
        let all: Vec<Triple> = split.triples(&self.dataset).to_vec();
        let facts = evenly(&all, (QUERIES / (2 * relations).max(1)).max(1));
        let truth = self.dataset.answers();
        let mut ranks: Vec<f64> = Vec::with_capacity(facts.len());
        progress.begin("ranking relations", "facts", Some(facts.len() as u64));
        for block in facts.chunks((4096 / relations.max(1)).max(1)) {
            let pairs: Vec<(EntityId, EntityId)> = block.iter().map(|fact| (fact.head, fact.tail)).collect();
            for (fact, ranked) in block.iter().zip(ranker.ranked(&pairs, &truth, progress)?) {
                ranks.push(rank_of(fact, &ranked, &truth));
            }
            progress.advance(ranks.len() as u64, &"");
        }
        let count = ranks.len().max(1) as f64;
        let hits = |within: f64| ranks.iter().filter(|&&rank| rank <= within).count() as f64 / count;
        let figures = RelationPredictionFigures {
            facts: ranks.len(),
            sampled_from: (facts.len() < all.len()).then_some(all.len()),
            relations,
            hits_at_1: hits(1.0),
            hits_at_3: hits(3.0),
            hits_at_10: hits(10.0),
            mrr: ranks.iter().map(|rank| 1.0 / rank).sum::<f64>() / count,
        };
        progress.end(&format_args!("MRR {:.4}", figures.mrr));
        Ok(figures)
    }
}

/// The rank of the fact's relation, without others that are true; ties share their mean rank.
fn rank_of(fact: &Triple, ranked: &[PairRelation], truth: &Adjacency) -> f64 {
    let Some(own) = ranked.iter().find(|asked| asked.fact.relation == fact.relation) else {
        return f64::INFINITY;
    };
    let is_open = |asked: &&PairRelation| {
        let (query, object) = Query::of(asked.fact, Direction::Forward);
        asked.fact.relation != fact.relation && !truth.contains(query.subject, query.link, object)
    };
    let open = || ranked.iter().filter(is_open);
    let above = open().filter(|asked| asked.key > own.key).count() as f64;
    let beside = open().filter(|asked| asked.key == own.key).count() as f64;
    1.0 + above + beside / 2.0
}
