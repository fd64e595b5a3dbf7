//! Missing facts in memory, for interactive use.

use super::{Best, CompleteOptions, Counted, Cut, MissingFact, RankedFact, Recovered};
use crate::ask::{AskError, Model};
use crate::graph::Query;
use crate::progress::Progress;
use serde::Serialize;
use std::io;

/// Queries between two checks of the time.
const BLOCK: usize = 512;

/// The best missing facts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MissingFacts {
    /// The facts, best first.
    pub facts: Vec<MissingFact>,
    /// How many test facts were found beside them, or are among them.
    #[serde(flatten)]
    pub recovered: Recovered,
    /// How many of the first have the probability of the best; they are in the order of their scores.
    pub tied: u64,
    /// How many queries were asked.
    pub asked: usize,
    /// How many there would have been with enough time.
    pub subjects: usize,
}

impl Model {
    /// The missing facts that `options` ask for. If [time is up](Progress::time_is_up) early, only those of the
    /// entities asked so far.
    ///
    /// # Errors
    /// If a probability is asked for and there is none, the reasoner fails, or the user interrupts.
    pub fn missing_facts(
        &self,
        options: &CompleteOptions,
        progress: &dyn Progress,
    ) -> Result<MissingFacts, AskError> {
        self.check_probability(options)?;
        let batch = self.reasoner.reasoner().batch().clamp(1, super::BATCH);
        let cut = Cut { batch, block: batch * BLOCK.div_ceil(batch) };
        let links = self.links_of(options);
        let queries: Vec<Query> = self.asked(options, &links).collect();
        let best = Best::new(options.top);
        let (mut rows, mut asked) = (Vec::new(), 0);
        progress.begin("completing", "queries", Some(queries.len() as u64));
        for block in queries.chunks(cut.block) {
            if asked > 0 && progress.time_is_up() {
                break;
            }
            let found = self.block(block, cut.batch, options, &best, asked as u64, progress)?;
            rows.extend(found);
            asked += block.len();
        }
        rows.sort_by_key(|row: &RankedFact| row.0);
        let mut found = Counted::default();
        let shown: io::Result<Vec<RankedFact>> =
            options.kept().shown(rows.into_iter().map(Ok), &mut found).collect();
        let shown = shown.expect("rows in memory can be read");
        progress.end(&format_args!("{} missing facts", shown.len()));
        let facts = shown.into_iter().map(|row| row.1).collect();
        let recovered = found.of(self.hidden(&links));
        Ok(MissingFacts { facts, recovered, tied: found.tied.count, asked, subjects: queries.len() })
    }
}
