//! The embedding model's part of a blend: the logarithm of its softmax over all entities, at the candidates.

use super::Seen;
use super::seen::Dense;
use crate::embed::Embedding;
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{EntityId, Query};
use crate::progress::Progress;
use crate::reason::recipe::EMBEDDING;
use crate::reason::unless_stopped;
use rayon::prelude::*;

/// Adds the feature to the candidates of each of `queries`. A query without candidates need not be scored. An entity
/// that came after the model was learnt is as likely as any.
pub(super) fn add_embedding(
    embedding: &Embedding,
    queries: &[Query],
    seen: &mut [Vec<Seen>],
    progress: &dyn Progress,
) -> Result<(), ReasonerError> {
    let learnt = embedding.size().entities;
    let is_learnt = |entity: EntityId| entity.index() < learnt;
    let as_any = -(learnt as f32).ln();
    let mut asked: Vec<(Query, &mut Vec<Seen>)> = Vec::with_capacity(queries.len());
    for (&query, seen) in queries.iter().zip(seen).filter(|(_, seen)| !seen.is_empty()) {
        match is_learnt(query.subject) {
            true => asked.push((query, seen)),
            false => seen.iter_mut().for_each(|one| one.features[EMBEDDING] = as_any),
        }
    }
    // Scores of all entities exist for one batch at a time.
    for batch in asked.chunks_mut(embedding.batch()) {
        unless_stopped(progress)?;
        let mut queries: Vec<Query> = batch.iter().map(|(query, _)| *query).collect();
        // A single row would be multiplied in another order, and its last digits differ from those in a larger batch.
        if queries.len() == 1 {
            queries.push(queries[0]);
        }
        let scores = embedding.scores(&queries)?;
        let scores = scores.on_host()?;
        let rows = scores.par_chunks_exact(learnt);
        rows.zip(batch).for_each(|(scores, (_, seen))| {
            let softmax = Dense::of(scores);
            for one in seen.iter_mut() {
                let met = is_learnt(one.entity);
                one.features[EMBEDDING] = if met { softmax.log_prob(one.entity) as f32 } else { as_any };
            }
        });
    }
    Ok(())
}
