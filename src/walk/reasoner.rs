//! The walker as a reasoner among others, and how often its best paths are rules.

use super::reward::PathRules;
use super::{WalkError, Walker};
use crate::eval::{Answers, Reasoner, ReasonerError, Scored};
use crate::graph::Query;

/// Paths that one beam search holds at a time, over all its queries.
const PATHS_AT_ONCE: usize = 16 * 1024;

impl Reasoner for Walker {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let answers = self.answers(queries)?;
        let scored =
            |answer: &super::Answer| Scored { entity: answer.entity, score: f64::from(answer.score) };
        Ok(Answers::Listed(answers.iter().map(|answers| answers.iter().map(scored).collect()).collect()))
    }

    fn batch(&self) -> usize {
        (PATHS_AT_ONCE / self.config().beam).clamp(1, 256)
    }
}

impl Walker {
    /// For how many of `queries` the path to the top answer is a rule of `rules`, as a share of all queries.
    ///
    /// # Errors
    /// If the device fails.
    pub fn rule_share(&self, queries: &[Query], rules: &dyn PathRules) -> Result<f64, WalkError> {
        let mut by_rule = 0usize;
        for batch in queries.chunks(self.batch()) {
            for (query, answers) in batch.iter().zip(self.answers(batch)?) {
                let top = answers.first();
                by_rule +=
                    usize::from(top.is_some_and(|top| rules.confidence(query.link, &top.links()) > 0.0));
            }
        }
        Ok(by_rule as f64 / queries.len().max(1) as f64)
    }
}
