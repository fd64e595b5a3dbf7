//! The embedding model as a reasoner. It gives scores and no paths: its answers are the only ones without a reason.
//! That an entity is its own answer is left out where facts are seldom like that.

use super::Reasoned;
use super::{Explains, Reflexive};
use crate::embed::Embedding;
use crate::eval::{Reasoner, ReasonerError, Scored};
use crate::graph::{Graph, Query};

/// The embedding model alone.
pub struct ByEmbedding<'g> {
    embedding: Embedding,
    reflexive: Reflexive<'g>,
}

impl<'g> ByEmbedding<'g> {
    /// Answers about `graph` by `embedding`.
    pub fn new(embedding: Embedding, graph: &'g Graph) -> Self {
        Self { embedding, reflexive: Reflexive::new(graph) }
    }
}

impl Explains for ByEmbedding<'_> {
    fn reasoner(&self) -> &dyn Reasoner {
        &self.embedding
    }

    fn reasons(
        &self,
        query: Query,
        answers: &[Scored],
        _most: usize,
    ) -> Result<Vec<Vec<Reasoned>>, ReasonerError> {
        let bare = |&Scored { entity, score }: &Scored| match entity == query.subject {
            true if !self.reflexive.is(query.link) => Vec::new(),
            _ => vec![Reasoned { entity, score, start: query.subject, path: Vec::new(), rule: None }],
        };
        Ok(answers.iter().map(bare).collect())
    }
}
