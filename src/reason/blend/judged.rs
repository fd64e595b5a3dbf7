//! Queries with known answers over one graph or several: weights that were fitted over some are measured on others.

use super::super::fit::{FitQuery, fit_together};
use super::super::recipe::FeatureWeights;
use super::Blend;
use crate::eval::{EvalError, Reasoner, Side};
use crate::graph::{Adjacency, EntityId, Query, Triple};
use crate::progress::{Progress, Silent};
use rayon::prelude::*;

/// The most queries that are answered at once.
const JUDGED_AT_ONCE: usize = 128;

/// Queries with a known answer, with the features of their candidates.
#[derive(Clone, Debug, Default)]
pub struct JudgedQueries {
    /// `None` where the answer is no candidate.
    queries: Vec<Option<FitQuery>>,
    further: Vec<&'static str>,
}

impl Blend {
    /// Asks for both ends of `facts`, which the graph does not have; other answers that are true by `truth` do not count.
    ///
    /// # Errors
    /// If one of the members fails or the user interrupts.
    pub fn judge(
        &self,
        facts: &[Triple],
        truth: &Adjacency,
        progress: &dyn Progress,
    ) -> Result<JudgedQueries, EvalError> {
        let asked: Vec<(Query, EntityId)> = Side::Both.asked(facts).collect();
        let mut queries = Vec::with_capacity(asked.len());
        for batch in asked.chunks(self.batch().min(JUDGED_AT_ONCE)) {
            if progress.interrupted() {
                return Err(EvalError::Interrupted);
            }
            let alone: Vec<Query> = batch.iter().map(|(query, _)| *query).collect();
            let seen = self.seen(&alone, &Silent).map_err(EvalError::Reasoner)?;
            let judged = seen.par_iter().zip(batch);
            queries.par_extend(judged.map(|(seen, &asked)| self.judged(seen, asked, (truth, &[]))));
        }
        Ok(JudgedQueries { queries, further: self.members.further_names() })
    }
}

impl JudgedQueries {
    /// The queries of several graphs, of whose blends the members have to be the same.
    pub fn together<'q>(graphs: impl IntoIterator<Item = &'q Self>) -> Self {
        let mut all = Self::default();
        for Self { queries, further } in graphs {
            all.queries.extend_from_slice(queries);
            all.further.clone_from(further);
        }
        all
    }

    /// The queries about the first half of the facts, and about the second.
    pub fn halves(&self) -> [Self; 2] {
        let (first, second) = self.queries.split_at(self.queries.len() / 4 * 2);
        [first, second].map(|part| Self { queries: part.to_vec(), further: self.further.clone() })
    }

    /// Only the features that have a weight in `kept`.
    #[must_use]
    pub fn with_only(&self, kept: &FeatureWeights) -> Self {
        let row = kept.row(&self.further);
        let places: Vec<usize> = (0..row.len()).filter(|&at| row[at] == 0.0).collect();
        let mut all = self.clone();
        for candidate in all.queries.iter_mut().flatten().flat_map(|query| &mut query.candidates) {
            places.iter().for_each(|&at| candidate[at] = 0.0);
        }
        all
    }

    /// The weights that make the right answers of all these queries likeliest, held to `given` as far as there are few.
    pub fn fitted(&self, given: &FeatureWeights) -> FeatureWeights {
        let queries: Vec<FitQuery> = self.queries.iter().flatten().cloned().collect();
        FeatureWeights::of_row(&fit_together(&queries, &given.row(&self.further)), &self.further)
    }

    /// The mean reciprocal rank by these weights; an answer that is no candidate counts as 0.
    pub fn mrr(&self, weights: &FeatureWeights) -> f64 {
        let row = weights.row(&self.further);
        let rank = |query: &Option<FitQuery>| query.as_ref().map_or(0.0, |query| query.reciprocal_rank(&row));
        let ranks: Vec<f64> = self.queries.par_iter().map(rank).collect();
        ranks.iter().sum::<f64>() / ranks.len().max(1) as f64
    }
}
