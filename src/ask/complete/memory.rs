//! The missing facts of one link in memory, for those who look at them and then ask on.

use super::{Best, CompleteOptions, Cut, MissingFact, Shard};
use crate::ask::{AskError, Model};
use crate::graph::{Link, Query, sensible_queries};
use crate::progress::Progress;
use serde::Serialize;
use std::collections::BinaryHeap;

/// Queries between two looks at the time.
const BLOCK: usize = 512;

/// The best missing facts of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingFacts {
    /// The facts, best first.
    pub facts: Vec<MissingFact>,
    /// How many entities were asked.
    pub asked: usize,
    /// How many would have been, had there been time.
    pub subjects: usize,
}

impl Model {
    /// The `top` best missing facts of `link`, by `workers` threads. Where [time is up](Progress::time_is_up) before all
    /// entities have been asked, those of the entities that have.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn missing_facts(
        &self,
        link: Link,
        top: usize,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<MissingFacts, AskError> {
        let batch = self.reasoner.reasoner().batch().clamp(1, super::BATCH);
        let cut = Cut { batch, block: batch * BLOCK.div_ceil(batch) };
        let (links, shard) = (vec![link], Shard::WHOLE);
        let options = CompleteOptions { links, top: Some(top), min_probability: None, shard, workers };
        let queries: Vec<Query> = sensible_queries(self.graph(), &options.links).collect();
        let mut best = Best { most: top, kept: BinaryHeap::new() };
        let (mut rows, mut asked) = (Vec::new(), 0);
        for block in queries.chunks(cut.block) {
            if asked > 0 && progress.time_is_up() {
                break;
            }
            let found = self.block(block, cut.batch, &options, &best, asked as u64, progress)?;
            best.extend(found.iter().map(|row| row.0));
            rows.extend(found);
            asked += block.len();
        }
        rows.sort_by_key(|row| row.0);
        rows.truncate(top);
        let facts = rows.into_iter().map(|row| row.1).collect();
        Ok(MissingFacts { facts, asked, subjects: queries.len() })
    }
}
