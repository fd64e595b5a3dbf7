//! The joints between the rooms: the embedding as the walker's soft reward, the rules as its path table.

use crate::embed::{EmbedError, Embedding};
use crate::graph::{EntityId, Link, Query};
use crate::rule::{ScoredRule, Shape, UNSEEN};
use crate::tensor::Indices;
use crate::walk::{PathTable, SoftReward, SoftRewardError};
use std::collections::HashMap;
use std::sync::Mutex;

/// Facts that are scored at once; bounds the memory that scoring takes.
const AT_ONCE: usize = 1 << 15;

/// An embedding model that tells the walker how plausible the end of a walk is.
pub struct Opinion<'a> {
    embedding: &'a Embedding,
    /// The levels of the queries that were asked about: training asks the same ones in every epoch.
    levels: Mutex<HashMap<Query, f32>>,
}

impl<'a> Opinion<'a> {
    /// The opinion of `embedding`.
    pub fn new(embedding: &'a Embedding) -> Self {
        Self { embedding, levels: Mutex::default() }
    }

    /// The level of each fact's query.
    fn levels(&self, facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, EmbedError> {
        let query = |fact: &(EntityId, Link, EntityId)| Query { subject: fact.0, link: fact.1 };
        let mut known = self.levels.lock().expect("nobody panics while holding the levels");
        let mut new: Vec<Query> =
            facts.iter().map(query).filter(|query| !known.contains_key(query)).collect();
        new.dedup(); // facts of one query stand together
        known.extend(new.iter().copied().zip(self.embedding.levels(&new)?));
        Ok(facts.iter().map(|fact| known[&query(fact)]).collect())
    }
}

impl SoftReward for Opinion<'_> {
    fn plausibility(&self, facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> {
        let device = self.embedding.device();
        let levels = self.levels(facts)?;
        let mut all = Vec::with_capacity(facts.len());
        for (part, levels) in facts.chunks(AT_ONCE).zip(levels.chunks(AT_ONCE)) {
            let column = |of: fn(&(EntityId, Link, EntityId)) -> u32| {
                Indices::new(device, &part.iter().map(of).collect::<Vec<u32>>())
            };
            let (subjects, links) = (column(|fact| fact.0.0)?, column(|fact| fact.1.0)?);
            let objects = column(|fact| fact.2.0)?;
            all.extend(self.embedding.plausibility(&subjects, &links, &objects, levels)?.to_vec()?);
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
