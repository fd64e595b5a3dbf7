//! The embedding model as a reasoner. It gives scores but no paths: its reasons are similar cases. An
//! entity is its own answer only for relations that often link entities to themselves.

use super::because::{EMBEDDING, middle};
use super::cases::{CaseQuery, cases};
use super::reflexive::Reflexive;
use super::{Because, Candidate, Detail, Explains, Found, Reasoned, found_among_all};
use crate::embed::Embedding;
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{Graph, Query};
use crate::progress::Progress;
use std::sync::Arc;

/// The embedding model alone.
pub struct ByEmbedding {
    embedding: Arc<Embedding>,
    graph: Arc<Graph>,
    reflexive: Reflexive,
}

impl ByEmbedding {
    /// Answers about `graph` by `embedding`.
    pub fn new(embedding: Arc<Embedding>, graph: &Arc<Graph>) -> Self {
        Self { embedding, graph: Arc::clone(graph), reflexive: Reflexive::new(graph) }
    }
}

impl Explains for ByEmbedding {
    fn reasoner(&self) -> &dyn Reasoner {
        &*self.embedding
    }

    fn search(
        &self,
        queries: &[Query],
        at_least: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Found>, ReasonerError> {
        // The subject itself may be left out later.
        found_among_all(self.reasoner(), &self.graph, queries, at_least.saturating_add(1), progress)
    }

    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        _most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        Ok(match candidate.entity == query.subject {
            true if !self.reflexive.is(query.link) => Vec::new(),
            _ => vec![Reasoned::bare(query, candidate)],
        })
    }

    fn because(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        let scores: Vec<f64> = found.candidates.iter().map(|candidate| candidate.score).collect();
        let middle = middle(&scores);
        let typical = middle.map_or(0.0, |place| scores[place]);
        let against = middle.map(|place| found.candidates[place].entity);
        let one = |candidate: &&Candidate| {
            let &Candidate { entity: answer, score, .. } = *candidate;
            let asked =
                CaseQuery { query: found.query, answer, against, weight: 1.0, share: score - typical };
            let parts = cases(&self.embedding, &self.graph, asked, detail)?;
            Ok::<_, ReasonerError>(Because::alone(EMBEDDING, score, typical, parts))
        };
        chosen.iter().map(one).collect()
    }
}
