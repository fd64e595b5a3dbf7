//! The reasons for answers that are known to be true.

use super::many::by_workers;
use super::{AskError, Model};
use crate::graph::{EntityId, Query};
use crate::progress::Progress;
use crate::reason::{Found, Reasoned};
use crate::run::RunError;

/// How many reasons are examined: the first may not be a path from the subject.
const MAX_PATHS: usize = 5;

impl Model {
    /// Why each of `asked` (a query and its answer) is predicted, best reason first, by `workers` threads; nothing for
    /// an answer that is not among the first `within` candidates, or not found at all.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn reasons_for(
        &self,
        asked: &[(Query, EntityId)],
        within: Option<usize>,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<Reasoned>>, AskError> {
        // Queries of one relation share states of the networks.
        let mut order: Vec<usize> = (0..asked.len()).collect();
        order.sort_by_key(|&at| (asked[at].0.link, asked[at].0.subject, asked[at].1));
        let sorted: Vec<(Query, EntityId)> = order.iter().map(|&at| asked[at]).collect();
        let explain = |batch: &[(Query, EntityId)]| -> Result<Vec<Vec<Reasoned>>, AskError> {
            if progress.interrupted() {
                return Err(RunError::Interrupted.into());
            }
            let queries: Vec<Query> = batch.iter().map(|(query, _)| *query).collect();
            let found = self.reasoner.search(&queries, within.unwrap_or(usize::MAX), progress)?;
            { found.iter().zip(batch) }
                .map(|(found, &(_, answer))| self.reasons_among(found, answer, within))
                .collect()
        };
        let batches: Vec<_> = sorted.chunks(self.reasoner.reasoner().batch().max(1)).collect();
        let reasons = by_workers(&batches, workers, 0, explain, progress)?;
        let mut all: Vec<Vec<Reasoned>> = vec![Vec::new(); asked.len()];
        for (at, reasons) in order.into_iter().zip(reasons) {
            all[at] = reasons;
        }
        Ok(all)
    }

    fn reasons_among(
        &self,
        found: &Found,
        answer: EntityId,
        within: Option<usize>,
    ) -> Result<Vec<Reasoned>, AskError> {
        let mut looked_at = found.candidates.iter().take(within.unwrap_or(usize::MAX));
        let candidate = looked_at.find(|candidate| candidate.entity == answer);
        candidate.map_or(Ok(Vec::new()), |one| Ok(self.reasoner.reasons(found.query, one, MAX_PATHS)?))
    }
}
