//! The interface of every reasoner (walker, rules, embeddings, blends): scoring the answers of queries.

use crate::{EntityId, Query};
use std::ops::Range;
use std::sync::Arc;

/// Why a reasoner failed; passed on by the evaluation.
pub type ReasonerError = Box<dyn std::error::Error + Send + Sync>;

/// One entity with its score. Higher is better; scores of different queries need not be comparable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The answer.
    pub entity: EntityId,
    /// How good it is.
    pub score: f64,
}

/// The scored answers of a batch of queries, in the order of the queries.
#[derive(Clone, Debug, PartialEq)]
pub enum Answers {
    /// A score for every entity: row `i` is `[i × entities..][..entities]`. What embeddings give.
    Dense {
        /// Row-major, `[queries, entities]`.
        scores: Vec<f32>,
        /// How long a row is.
        entities: usize,
    },
    /// Some entities for each query, in any order, without repetition. All others share the places after the last
    /// listed one, whatever its score. What rules and beam search give.
    Listed(Vec<Vec<Scored>>),
}

impl Answers {
    /// The answers of each query, in any order.
    pub fn into_lists(self) -> Vec<Vec<Scored>> {
        match self {
            Answers::Dense { ref scores, entities } => {
                (0..scores.len() / entities.max(1)).map(|row| self.best(row, usize::MAX)).collect()
            }
            Answers::Listed(lists) => lists,
        }
    }

    /// The `count` best answers to query `row`, best first; ties in the order of the ids.
    pub fn best(&self, row: usize, count: usize) -> Vec<Scored> {
        let mut all: Vec<Scored> = match self {
            Answers::Dense { scores, entities } => scores[row * entities..(row + 1) * entities]
                .iter()
                .zip(0..)
                .map(|(&score, id)| Scored { entity: EntityId(id), score: f64::from(score) })
                .collect(),
            Answers::Listed(lists) => lists[row].clone(),
        };
        let better = |a: &Scored, b: &Scored| b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity));
        if count < all.len() {
            all.select_nth_unstable_by(count, better);
            all.truncate(count);
        }
        all.sort_unstable_by(better);
        all
    }
}

/// Entities that follow after all listed ones with one score, and are too many to be listed for every query: on a sparse
/// graph most entities are answers equally often. Queries over the same link share their ids.
#[derive(Clone, Debug)]
pub struct Crowd {
    ids: Arc<[EntityId]>,
    /// Those of `ids` that it may consist of, ascending.
    range: Range<usize>,
    /// Those of the range that do not belong to it, ascending.
    without: Vec<EntityId>,
    score: f64,
}

impl Crowd {
    /// The entities `ids[range]`, which are ascending, but those `without`.
    pub fn new(ids: Arc<[EntityId]>, range: Range<usize>, mut without: Vec<EntityId>) -> Self {
        without.retain(|entity| ids[range.clone()].binary_search(entity).is_ok());
        without.sort_unstable();
        without.dedup();
        Self { ids, range, without, score: 0.0 }
    }

    /// The same, all with this score; it is 0 otherwise.
    pub fn with_score(self, score: f64) -> Self {
        Self { score, ..self }
    }

    /// How many they are.
    pub fn size(&self) -> usize {
        self.range.len() - self.without.len()
    }

    /// All of them with their score, by id.
    pub fn scored(&self) -> impl Iterator<Item = Scored> + '_ {
        let belongs = |entity: &&EntityId| self.without.binary_search(entity).is_err();
        let members = self.ids[self.range.clone()].iter().filter(belongs);
        members.map(|&entity| Scored { entity, score: self.score })
    }

    /// Whether `entity` is one of them.
    pub fn has(&self, entity: EntityId) -> bool {
        self.ids[self.range.clone()].binary_search(&entity).is_ok()
            && self.without.binary_search(&entity).is_err()
    }
}

/// The listed answers of a query, and the crowd after them.
pub type CrowdedAnswers = (Vec<Scored>, Option<Crowd>);

/// Something that answers queries.
///
/// The evaluation calls it from one thread with up to [`batch`](Self::batch) distinct queries at a time, sorted
/// by link; using several threads, or a device, is left to the reasoner. The answers of a query must not depend
/// on the other queries of the batch.
pub trait Reasoner: Sync {
    /// The scored answers to each of `queries`. They may include facts of the graph that is queried, since filtering
    /// is left to the evaluation. A reasoner that leaves facts out has to [answer for one](Self::answer_for_fact)
    /// when asked to.
    ///
    /// # Errors
    /// Whatever makes the reasoner fail.
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError>;

    /// The same for ranking alone: an entity that would be listed last may be one of a crowd instead. `None` if this
    /// reasoner lists them all.
    ///
    /// # Errors
    /// Whatever makes the reasoner fail.
    fn answer_with_crowds(&self, _queries: &[Query]) -> Result<Option<Vec<CrowdedAnswers>>, ReasonerError> {
        Ok(None)
    }

    /// The answers to `query` with `fact`, an answer that the graph states, scored like any other entity; `None` if
    /// [`answer`](Self::answer) does so anyway. A triple may be in two splits, and a target must not rank last just
    /// because it is known.
    ///
    /// # Errors
    /// Whatever makes the reasoner fail.
    fn answer_for_fact(&self, _query: Query, _fact: EntityId) -> Result<Option<Vec<Scored>>, ReasonerError> {
        Ok(None)
    }

    /// The preferred number of queries per call. With dense scores this bounds the memory.
    fn batch(&self) -> usize {
        256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_equal_scores_by_id() {
        let dense = Answers::Dense { scores: vec![0.0, 9.0, 1.0, 3.0, 3.0, -1.0], entities: 3 };
        let ids = |row, count| dense.best(row, count).iter().map(|s| s.entity.0).collect::<Vec<_>>();
        assert_eq!(ids(0, 2), [1, 2]);
        assert_eq!(ids(1, 9), [0, 1, 2]);
        let scored = |id, score| Scored { entity: EntityId(id), score };
        let listed = Answers::Listed(vec![vec![scored(7, 0.5), scored(2, 0.5), scored(4, 0.75)]]);
        assert_eq!(listed.best(0, 2), [scored(4, 0.75), scored(2, 0.5)]);
    }
}
