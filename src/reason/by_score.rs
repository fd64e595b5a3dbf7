//! Models of other crates that score an entity and have no paths.

use super::{Candidate, Explains, Found, Reasoned};
use crate::eval::{Answers, Reasoner, ReasonerError};
use crate::graph::{EntityId, Graph, Query};
use crate::progress::Progress;
use rayon::prelude::*;
use std::sync::Arc;

/// Scores every entity by a function of query and entity, and gives no reasons. It is for a blend with others that do:
/// alone it predicts nothing, because candidates without a reason are not predicted.
pub struct ByScore<F> {
    graph: Arc<Graph>,
    score: F,
}

impl<F: Fn(Query, EntityId) -> f32 + Send + Sync> ByScore<F> {
    /// Answers over the entities of `graph`; higher scores are better.
    pub fn new(graph: Arc<Graph>, score: F) -> Self {
        Self { graph, score }
    }
}

impl<F: Fn(Query, EntityId) -> f32 + Send + Sync> Reasoner for ByScore<F> {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let entities = self.graph.entities();
        let row =
            |&query: &Query| (0..entities as u32).map(move |entity| (self.score)(query, EntityId(entity)));
        Ok(Answers::Dense { scores: queries.par_iter().flat_map_iter(row).collect(), entities })
    }
}

impl<F: Fn(Query, EntityId) -> f32 + Send + Sync> Explains for ByScore<F> {
    fn reasoner(&self) -> &dyn Reasoner {
        self
    }

    fn search(&self, queries: &[Query], _: usize, _: &dyn Progress) -> Result<Vec<Found>, ReasonerError> {
        Ok(Found::beside(&self.graph, queries, &self.answer(queries)?))
    }

    fn reasons(&self, _: Query, _: &Candidate, _: usize) -> Result<Vec<Reasoned>, ReasonerError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Link, RelationId, Triple};
    use crate::progress::Silent;

    #[test]
    fn every_entity_has_its_score_and_facts_are_no_candidates() {
        let graph = Arc::new(Graph::new(4, 1, &[Triple::new(0, 0, 2)]));
        let by_score = ByScore::new(graph, |_, entity| entity.0 as f32);
        let query = Query { subject: EntityId(0), link: Link::forward(RelationId(0)) };
        let scores = vec![0.0, 1.0, 2.0, 3.0];
        assert_eq!(by_score.answer(&[query]).unwrap(), Answers::Dense { scores, entities: 4 });
        let found = by_score.search(&[query], 1, &Silent).unwrap().remove(0);
        let order: Vec<u32> = found.candidates.iter().map(|candidate| candidate.entity.0).collect();
        assert_eq!(order, [3, 1, 0]);
        assert!(by_score.reasons(query, &found.candidates[0], 3).unwrap().is_empty());
    }
}
