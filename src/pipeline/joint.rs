//! The joints between the rooms: the embedding as the walker's soft reward, the rules as its path table.

use crate::embed::Embedding;
use crate::graph::{EntityId, Link};
use crate::rule::{ScoredRule, Shape, UNSEEN};
use crate::tensor::Indices;
use crate::walk::{PathTable, SoftReward, SoftRewardError};

/// Facts that are scored at once; bounds the memory that scoring takes.
const AT_ONCE: usize = 1 << 15;

/// An embedding model that tells the walker how plausible the end of a walk is.
pub struct Opinion<'a>(pub &'a Embedding);

impl SoftReward for Opinion<'_> {
    fn plausibility(&self, facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> {
        let device = self.0.device();
        let mut all = Vec::with_capacity(facts.len());
        for part in facts.chunks(AT_ONCE) {
            let column = |of: fn(&(EntityId, Link, EntityId)) -> u32| {
                Indices::new(device, &part.iter().map(of).collect::<Vec<u32>>())
            };
            let (subjects, links) = (column(|fact| fact.0.0)?, column(|fact| fact.1.0)?);
            let objects = column(|fact| fact.2.0)?;
            all.extend(self.0.plausibility(&subjects, &links, &objects)?.to_vec()?);
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
