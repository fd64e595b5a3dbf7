//! The embedding model as a reasoner. It gives scores but no paths: its answers are the only ones without a reason. An
//! entity is its own answer only for relations that often link entities to themselves.

use super::reflexive::Reflexive;
use super::{Candidate, Explains, Found, Reasoned, found_among_all};
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
        let &Candidate { entity, score, .. } = candidate;
        Ok(match entity == query.subject {
            true if !self.reflexive.is(query.link) => Vec::new(),
            _ => vec![Reasoned {
                entity,
                score,
                start: query.subject,
                path: Vec::new(),
                rule: None,
                without: None,
            }],
        })
    }
}
