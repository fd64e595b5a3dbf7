//! The embedding model as a reasoner. It gives scores and no paths: its answers are the only ones without a reason.

use super::Explains;
use crate::embed::Embedding;
use crate::eval::{Reasoner, Scored};
use crate::graph::Query;
use crate::pipeline::PipelineError;
use crate::pipeline::answer::Reasoned;

/// The embedding model alone.
pub struct ByEmbedding {
    embedding: Embedding,
}

impl ByEmbedding {
    /// Answers by `embedding`.
    pub fn new(embedding: Embedding) -> Self {
        Self { embedding }
    }
}

impl Explains for ByEmbedding {
    fn reasoner(&self) -> &dyn Reasoner {
        &self.embedding
    }

    fn reasons(&self, query: Query, answer: Scored, _most: usize) -> Result<Vec<Reasoned>, PipelineError> {
        let Scored { entity, score } = answer;
        Ok(vec![Reasoned { entity, score, start: query.subject, path: Vec::new(), rule: None }])
    }
}
