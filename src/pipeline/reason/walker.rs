//! The walker as a reasoner that says why: its path, and the rule that the path follows.

use super::Explains;
use crate::eval::{Reasoner, Scored};
use crate::graph::{Graph, Link, Query};
use crate::pipeline::PipelineError;
use crate::pipeline::answer::{Hop, Reasoned};
use crate::rule::{ScoredRule, Shape};
use crate::walk::{self, Walker};
use std::collections::HashMap;

/// The walker and the rules that its paths may follow.
pub struct ByWalker {
    walker: Walker,
    /// By query link and relation path without the hops that stay: the rule.
    rules: HashMap<(Link, Box<[Link]>), ScoredRule>,
}

impl ByWalker {
    /// `walker`, whose paths may follow `rules`.
    pub fn new(walker: Walker, rules: &[ScoredRule]) -> Self {
        let mut by_path: HashMap<(Link, Box<[Link]>), ScoredRule> = HashMap::new();
        for scored in rules.iter().filter(|scored| scored.rule.shape == Shape::Cyclic) {
            for rule in [scored.rule.clone(), scored.rule.reversed()] {
                by_path.entry((rule.head, rule.body)).or_insert_with(|| scored.clone());
            }
        }
        Self { walker, rules: by_path }
    }

    /// A walked answer with the rule that its path follows.
    pub(super) fn with_rule(&self, query: Query, answer: &walk::Answer) -> Reasoned {
        let path: Vec<Hop> = answer
            .path
            .iter()
            .map(|step| Hop {
                link: step.link,
                target: step.entity,
                scores: Some([f64::from(step.relation_score), f64::from(step.entity_score)]),
            })
            .collect();
        let walked: Box<[Link]> =
            path.iter().map(|hop| hop.link).filter(|link| *link != Link::NO_OP).collect();
        let rule = self.rules.get(&(query.link, walked)).cloned();
        let score = f64::from(answer.score);
        Reasoned { entity: answer.entity, score, start: query.subject, path, rule }
    }

    /// The answers of each query, best first, as beam search found them.
    pub(super) fn walked(&self, queries: &[Query]) -> Result<Vec<Vec<walk::Answer>>, PipelineError> {
        let mut all = Vec::with_capacity(queries.len());
        for batch in queries.chunks(self.walker.batch()) {
            all.extend(self.walker.answers(batch)?);
        }
        Ok(all)
    }
}

impl Explains for ByWalker {
    fn reasoner(&self) -> &dyn Reasoner {
        &self.walker
    }

    fn walker(&self) -> Option<&Walker> {
        Some(&self.walker)
    }

    fn reasons(&self, query: Query, answer: Scored, _most: usize) -> Result<Vec<Reasoned>, PipelineError> {
        let found = self.walked(&[query])?.remove(0);
        let ways = found.iter().filter(|way| way.entity == answer.entity);
        Ok(ways.map(|way| self.with_rule(query, way)).collect())
    }

    fn reasoned(
        &self,
        queries: &[Query],
        top: usize,
        graph: &Graph,
    ) -> Result<Vec<Vec<Reasoned>>, PipelineError> {
        let walked = self.walked(queries)?;
        let of_query = |(query, answers): (&Query, Vec<walk::Answer>)| {
            let known = graph.targets(query.subject, query.link);
            let fresh = answers.iter().filter(|answer| known.binary_search(&answer.entity).is_err());
            fresh.take(top).map(|answer| self.with_rule(*query, answer)).collect()
        };
        Ok(queries.iter().zip(walked).map(of_query).collect())
    }
}
