//! The adapters between rooms: the embedding as the walker's soft reward, the rules as its path table.

use crate::embed::{EmbedError, Embedding};
use crate::graph::{EntityId, Link, Query};
use crate::rule::{ScoredRule, Shape, UNSEEN};
use crate::tensor::Indices;
use crate::walk::{PathTable, SoftReward, SoftRewardError};
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
    ) -> Result<Self, EmbedError> {
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
