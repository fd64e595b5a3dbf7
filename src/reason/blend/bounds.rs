//! Bounds on the scores of a query's candidates without the embedding model's scores of all entities.
//!
//! A candidate's score is `a + w · max(f − L, floor)`: `a` comes from the other members and the features, `f` is the
//! embedding model's score, and `L` the logarithm of the sum of `eᶠ` over all entities. `L` is the same for all
//! candidates of a query, takes nearly all of the time, and is at least the logarithm of the sum over some entities. So
//! possible values of `L` are taken in intervals, each of which bounds the scores, up to where all are at the floor.

use super::super::recipe::{EMBEDDING, score};
use super::super::{IsNeeded, ScoreBounds};
use super::Blend;
use super::seen::{LEAST_LOG_PROB, Seen};
use crate::embed::Embedding;
use crate::eval::ReasonerError;
use crate::eval::calibration::TOP;
use crate::graph::{EntityId, Link, Query};
use crate::tensor::logsumexp;
use rayon::prelude::*;

/// The ends of the intervals, above the least possible value.
const ENDS: [f64; 12] = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, f64::INFINITY];
/// How many frequent answers of a link are summed over, beside the candidates.
const FREQUENT: usize = 1024;
/// Logarithms of the softmax differ by far less than this because of rounding: scores of some entities from those of
/// all in their last digits, and features, which have 24 bits, from the floor.
const ROUNDING: f64 = 1e-3;

/// A candidate, without what is the same for all.
struct Part {
    /// The score by everything but the embedding model.
    others: f64,
    /// The embedding model's score.
    embedded: f64,
}

impl Blend {
    /// Those of `queries` that have candidates, `seen` without the embedding model's feature, and may be needed.
    pub(super) fn needed_among(
        &self,
        embedding: &Embedding,
        queries: &[Query],
        seen: &[Vec<Seen>],
        is_needed: &IsNeeded<'_>,
    ) -> Result<Vec<Query>, ReasonerError> {
        let all = queries.iter().zip(seen).map(|(query, seen)| (*query, seen.as_slice()));
        let asked: Vec<(Query, &[Seen])> = all.filter(|(_, seen)| !seen.is_empty()).collect();
        let mut needed = Vec::new();
        for group in asked.chunk_by(|a, b| a.0.link == b.0.link) {
            let mut entities = self.frequent(group[0].0.link);
            entities.extend(group.iter().flat_map(|(_, seen)| seen.iter().map(|one| one.entity)));
            entities.sort_unstable();
            entities.dedup();
            let queries: Vec<Query> = group.iter().map(|(query, _)| *query).collect();
            let scores = embedding.scores_among(&queries, &entities)?;
            let scores = scores.on_host()?;
            let rows = scores.par_chunks_exact(entities.len());
            let may_be = |(&(query, seen), scores): (&(Query, &[Seen]), &[f32])| {
                self.may_be_needed(query, seen, ScoredSome { entities: &entities, scores }, is_needed)
                    .then_some(query)
            };
            needed.par_extend(group.par_iter().zip(rows).filter_map(may_be));
        }
        Ok(needed)
    }

    /// The most frequent answers of a link, which have much of the embedding model's mass.
    fn frequent(&self, link: Link) -> Vec<EntityId> {
        let rows = self.graph.pairs(link.reversed()).rows();
        let mut counted: Vec<(usize, EntityId)> = rows.map(|(answer, of)| (of.len(), answer)).collect();
        if counted.len() > FREQUENT {
            counted.select_nth_unstable_by(FREQUENT - 1, |a, b| b.cmp(a));
            counted.truncate(FREQUENT);
        }
        counted.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Whether the candidates of `query` may be needed, given the embedding model's scores of some entities.
    fn may_be_needed(
        &self,
        query: Query,
        seen: &[Seen],
        some: ScoredSome<'_>,
        is_needed: &IsNeeded<'_>,
    ) -> bool {
        let (weights, facts) = (self.weights.of(query.link), self.graph.targets(query.subject, query.link));
        let part = |one: &Seen| Part {
            others: score(&one.features, weights),
            embedded: f64::from(some.of(one.entity)),
        };
        let new = |one: &&Seen| facts.binary_search(&one.entity).is_err();
        let parts: Vec<Part> = seen.iter().filter(new).map(part).collect();
        let least = logsumexp(some.scores);
        let mut from = 0.0;
        ENDS.iter().any(|&to| {
            let interval = [least + from, least + to];
            from = to;
            let [lowest, highest] = bounds(&parts, weights[EMBEDDING], interval).map(best);
            is_needed(&ScoreBounds { query, lowest, highest })
        })
    }
}

/// The embedding model's scores of some entities, candidates among them, for one query.
struct ScoredSome<'a> {
    /// Ascending.
    entities: &'a [EntityId],
    /// One for each.
    scores: &'a [f32],
}

impl ScoredSome<'_> {
    fn of(&self, entity: EntityId) -> f32 {
        self.entities.binary_search(&entity).map_or(f32::NAN, |at| self.scores[at])
    }
}

/// The lowest and the highest score of each candidate, for `L` in an interval.
fn bounds(parts: &[Part], weight: f64, interval: [f64; 2]) -> [Vec<f64>; 2] {
    let at = |part: &Part, logsumexp: f64| {
        part.others + weight * (part.embedded - logsumexp).clamp(LEAST_LOG_PROB, 0.0)
    };
    let ends = interval.map(|end| parts.iter().map(|part| at(part, end)).collect::<Vec<f64>>());
    let [from, to] = &ends;
    let both = || from.iter().zip(to);
    let slack = weight.abs() * ROUNDING;
    [both().map(|(a, b)| a.min(*b) - slack).collect(), both().map(|(a, b)| a.max(*b) + slack).collect()]
}

/// The best scores, as many as probabilities depend on.
fn best(mut scores: Vec<f64>) -> Vec<f64> {
    if scores.len() > TOP {
        scores.select_nth_unstable_by(TOP - 1, |a, b| b.total_cmp(a));
        scores.truncate(TOP);
    }
    scores.sort_unstable_by(|a, b| b.total_cmp(a));
    scores
}

#[cfg(test)]
mod tests {
    use super::super::super::recipe::Recipe;
    use super::super::Members;
    use super::*;
    use crate::config::BlendWeights;
    use crate::embed::{self, ModelKind, Settings, Size};
    use crate::graph::Names;
    use crate::progress::Silent;
    use crate::reason::Explains;
    use crate::reason::rules::tests::{asked, crowd};
    use crate::tensor::Device;
    use std::sync::{Arc, Mutex};

    /// A blend of rules and an untrained embedding model.
    fn blend(model: ModelKind, weight: f64) -> Blend {
        let (graph, rules) = crowd(&[(90, 60), (80, 40)]);
        let suited = embed::suited(model, 40);
        let settings = Settings { dimension: 8, initial: 1.0, entity_bias: true, ..suited };
        let size = Size { entities: 40, relations: 3 };
        let embedding = Embedding::new(&settings, size, &Device::cpu(1).unwrap(), 7).unwrap();
        let members = Members {
            rules: Some(Arc::new(rules)),
            walker: None,
            embedding: Some(Arc::new(embedding)),
            propagator: None,
            further: Vec::new(),
        };
        let given = BlendWeights { rules: 0.7, walker: 0.0, embedding: weight, propagator: 0.0 };
        Blend::new(members, &Recipe::of(given), &graph, &Names::default())
    }

    #[test]
    fn scores_lie_between_the_bounds_of_an_interval() {
        for model in [ModelKind::ComplEx, ModelKind::RotatE] {
            for weight in [0.5, -0.5] {
                let blend = blend(model, weight);
                let queries: Vec<Query> =
                    (0..40).map(|id| Query { subject: EntityId(id), ..asked() }).collect();
                let told = Mutex::new(Vec::new());
                let refuses = |bounds: &ScoreBounds| {
                    told.lock().unwrap().push(bounds.clone());
                    false
                };
                assert_eq!(blend.needed(&queries, &refuses, &Silent).unwrap(), []);
                let told = told.into_inner().unwrap();
                for found in blend.search(&queries, TOP, &Silent).unwrap() {
                    let scores = found.candidates.iter().take(TOP).map(|candidate| candidate.score);
                    let scores: Vec<f64> = scores.collect();
                    let holds = |bounds: &&ScoreBounds| {
                        let within = |(at, score): (usize, &f64)| {
                            (bounds.lowest[at]..=bounds.highest[at]).contains(score)
                        };
                        bounds.query == found.query && scores.iter().enumerate().all(within)
                    };
                    let of_query =
                        || told.iter().filter(|bounds| bounds.query == found.query).collect::<Vec<_>>();
                    let bounds = told.iter().find(holds).unwrap_or_else(|| {
                        panic!("{model:?} {weight}: {scores:?} is in none of {:?}", of_query())
                    });
                    assert_eq!(bounds.highest.len(), scores.len());
                    assert!(scores.len() > 1);
                }
                assert_eq!(blend.needed(&queries, &|_| true, &Silent).unwrap(), queries);
            }
        }
    }
}
