//! The adapters between modules: embedding model or propagator as the walker's soft reward, the rules as its path table.

use crate::embed::Embedding;
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{EntityId, Link, Query};
use crate::progress::Progress;
use crate::propagate::Propagator;
use crate::rule::{ScoredRule, Shape, UNSEEN};
use crate::tensor::Indices;
use crate::train::NetworkError;
use crate::walk::{PathTable, SoftReward, SoftRewardError};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// Facts that are scored at once; bounds the memory that scoring takes.
const AT_ONCE: usize = 1 << 15;

/// An embedding model as the soft reward of a walker.
pub struct EmbeddingReward {
    embedding: Arc<Embedding>,
    logsumexp: HashMap<Query, f32>,
}

impl EmbeddingReward {
    /// The soft reward of walks for `queries`. Their `logsumexp` is computed here for all together: the last digits of
    /// a matrix product depend on its number of rows, and a resumed training must see the same values as one that was
    /// never stopped.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(
        embedding: &Arc<Embedding>,
        queries: impl IntoIterator<Item = Query>,
    ) -> Result<Self, NetworkError> {
        let mut queries: Vec<Query> = queries.into_iter().collect();
        queries.sort_unstable();
        queries.dedup();
        let logsumexp = embedding.logsumexp(&queries)?;
        Ok(Self { embedding: Arc::clone(embedding), logsumexp: queries.into_iter().zip(logsumexp).collect() })
    }

    /// The `logsumexp` of each fact's query.
    fn logsumexp(&self, facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> {
        let of_query = |fact: &(EntityId, Link, EntityId)| {
            let query = Query { subject: fact.0, link: fact.1 };
            self.logsumexp.get(&query).copied().ok_or_else(|| format!("{query:?} was not announced").into())
        };
        facts.iter().map(of_query).collect()
    }
}

impl SoftReward for EmbeddingReward {
    fn plausibility(&self, facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> {
        let device = self.embedding.device();
        let logsumexp = self.logsumexp(facts)?;
        let mut all = Vec::with_capacity(facts.len());
        for (part, sums) in facts.chunks(AT_ONCE).zip(logsumexp.chunks(AT_ONCE)) {
            let column = |of: fn(&(EntityId, Link, EntityId)) -> u32| {
                Indices::new(device, &part.iter().map(of).collect::<Vec<u32>>())
            };
            let (subjects, links) = (column(|fact| fact.0.0)?, column(|fact| fact.1.0)?);
            let objects = column(|fact| fact.2.0)?;
            all.extend(self.embedding.plausibility(&subjects, &links, &objects, sums)?.to_vec()?);
        }
        Ok(all)
    }
}

/// Ends with a probability below this get no reward, like entities that the propagator does not reach.
const LEAST_PLAUSIBLE: f32 = 1e-3;

/// A propagator as the soft reward of a walker: the probability that it gives an end, under a softmax over all entities.
pub struct PropagatorReward {
    /// By query, the ends worth a reward, by entity. The probabilities of all ends would not fit into memory.
    likely: HashMap<Query, Box<[(EntityId, f32)]>>,
}

impl PropagatorReward {
    /// The soft reward of walks for `queries`, each of which is propagated once; `None` if the user interrupts.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(
        propagator: &Propagator,
        mut queries: Vec<Query>,
        progress: &dyn Progress,
    ) -> Result<Option<Self>, ReasonerError> {
        queries.sort_unstable();
        queries.dedup();
        progress.begin("rewards by the propagator", "queries", Some(queries.len() as u64));
        let mut likely = HashMap::with_capacity(queries.len());
        for batch in queries.chunks(propagator.batch()) {
            if progress.interrupted() {
                return Ok(None);
            }
            let scores = propagator.scores(batch)?;
            let rows: Vec<_> =
                scores.par_chunks(propagator.edge_index().nodes().max(1)).map(plausible).collect();
            likely.extend(batch.iter().copied().zip(rows));
            progress.advance(likely.len() as u64, &"");
        }
        progress.end(&format_args!("{} queries", likely.len()));
        Ok(Some(Self { likely }))
    }
}

/// The entities whose probability is worth a reward.
fn plausible(scores: &[f32]) -> Box<[(EntityId, f32)]> {
    let highest = scores.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    let total: f64 = scores.iter().map(|&score| f64::from(score - highest).exp()).sum();
    let probability = |score: f32| (f64::from(score - highest).exp() / total) as f32;
    let ends = (0..).map(EntityId).zip(scores.iter().map(|&score| probability(score)));
    ends.filter(|(_, probability)| *probability >= LEAST_PLAUSIBLE).collect()
}

impl SoftReward for PropagatorReward {
    fn plausibility(&self, facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> {
        let of_fact = |&(subject, link, end): &(EntityId, Link, EntityId)| -> Result<f32, SoftRewardError> {
            let query = Query { subject, link };
            let ends = self.likely.get(&query).ok_or_else(|| format!("{query:?} was not announced"))?;
            Ok(ends.binary_search_by_key(&end, |(entity, _)| *entity).map_or(0.0, |place| ends[place].1))
        };
        facts.iter().map(of_fact).collect()
    }
}

/// The cyclic rules with a confidence above `threshold`, as paths of `hops` links.
pub fn path_table(rules: &[ScoredRule], hops: usize, threshold: f64) -> PathTable {
    let cyclic = rules.iter().filter(|scored| scored.rule.shape == Shape::Cyclic);
    let both_ways = cyclic.flat_map(|scored| {
        let confidence = scored.counts.confidence(UNSEEN);
        [(scored.rule.clone(), confidence), (scored.rule.reversed(), confidence)]
    });
    let trusted = both_ways.filter(|(_, confidence)| *confidence > threshold);
    PathTable::new(hops, trusted.map(|(rule, confidence)| (rule.head, rule.body, confidence as f32)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, RelationId, Triple};
    use crate::progress::{Impatient, Silent};
    use crate::propagate::PropagateSettings;
    use crate::tensor::Device;

    #[test]
    fn the_propagator_rewards_an_end_by_its_probability() {
        let facts: Vec<Triple> = (0..6).map(|at| Triple::new(at, at % 2, (at + 1) % 6)).collect();
        let graph = Graph::new(7, 2, &facts);
        let settings = PropagateSettings { layers: 2, width: 8, ..PropagateSettings::default() };
        let propagator = Propagator::new(&settings, &graph, &Device::cpu(1).unwrap(), 3).unwrap();
        let query = Query { subject: EntityId(2), link: Link::forward(RelationId(1)) };
        let asked = vec![query, Query { subject: EntityId(0), ..query }, query];
        assert!(PropagatorReward::new(&propagator, asked.clone(), &Impatient).unwrap().is_none());
        let reward = PropagatorReward::new(&propagator, asked, &Silent).unwrap().unwrap();
        let ends: Vec<_> = (0..7).map(|end| (query.subject, query.link, EntityId(end))).collect();
        let given = reward.plausibility(&ends).unwrap();
        let scores = propagator.scores(&[query]).unwrap();
        let total: f32 = scores.iter().map(|score| score.exp()).sum();
        for (given, score) in given.iter().zip(&scores) {
            assert!((given - score.exp() / total).abs() < 2e-3, "{given} {score}");
        }
        assert!((given.iter().sum::<f32>() - 1.0).abs() < 1e-2);
        let other = [(EntityId(5), query.link, EntityId(1))];
        assert!(reward.plausibility(&other).unwrap_err().to_string().contains("was not announced"));
    }
}
