//! A reasoner whose candidates are of the kinds that the side of the relation has: `types.mode = "strict"`.
//!
//! A [blend](super::Blend) leaves others out itself, before it weighs them; this is for all other reasoners.

use super::{
    Because, Candidate, Detail, Explains, Found, Kinds, Reasoned, Rescored, ScoreWithout, SharePart,
};
use crate::eval::{Answers, Reasoner, ReasonerError, Scored};
use crate::graph::{EntityId, Query};
use crate::progress::Progress;
use crate::walk::Walker;
use std::sync::Arc;

/// The most candidates that are in memory at once.
const CANDIDATES: usize = 1 << 20;

/// A reasoner without the candidates of other kinds.
pub struct OfKind {
    inner: Arc<dyn Explains>,
    kinds: Arc<Kinds>,
}

impl OfKind {
    /// `inner` with candidates of fitting kinds.
    pub fn new(inner: Arc<dyn Explains>, kinds: Arc<Kinds>) -> Self {
        Self { inner, kinds }
    }

    fn admits(&self, query: Query, entity: EntityId) -> bool {
        self.kinds.admits(query.link, entity)
    }
}

impl Reasoner for OfKind {
    /// Entities of other kinds are after all others, tied.
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let mut answers = self.inner.reasoner().answer(queries)?;
        match &mut answers {
            Answers::Dense { scores, entities } => {
                for (row, &query) in scores.chunks_exact_mut(*entities).zip(queries) {
                    for (score, id) in row.iter_mut().zip(0..) {
                        if !self.admits(query, EntityId(id)) {
                            *score = f32::NEG_INFINITY;
                        }
                    }
                }
            }
            Answers::Listed(lists) => {
                for (list, &query) in lists.iter_mut().zip(queries) {
                    list.retain(|one| self.admits(query, one.entity));
                }
            }
        }
        Ok(answers)
    }

    fn answer_for_fact(&self, query: Query, fact: EntityId) -> Result<Option<Vec<Scored>>, ReasonerError> {
        let answers = self.inner.reasoner().answer_for_fact(query, fact)?;
        let of_kind = |mut answers: Vec<Scored>| {
            answers.retain(|one| self.admits(query, one.entity));
            answers
        };
        Ok(answers.map(of_kind))
    }

    /// All entities may be candidates of each query.
    fn batch(&self) -> usize {
        self.inner.reasoner().batch().min((CANDIDATES / self.kinds.entities().max(1)).max(1))
    }
}

/// `needed` stays as it is: all queries, since bounds on the scores of all candidates are none on those of some.
impl Explains for OfKind {
    fn reasoner(&self) -> &dyn Reasoner {
        self
    }

    fn walker(&self) -> Option<&Walker> {
        self.inner.walker()
    }

    fn search(
        &self,
        queries: &[Query],
        at_least: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Found>, ReasonerError> {
        // The best may all be of other kinds.
        let at_least = at_least.max(self.kinds.entities());
        let mut found = self.inner.search(queries, at_least, progress)?;
        for one in &mut found {
            let query = one.query;
            one.candidates.retain(|candidate| self.admits(query, candidate.entity));
        }
        Ok(found)
    }

    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        self.inner.reasons(query, candidate, most)
    }

    fn because(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        self.inner.because(found, chosen, detail)
    }

    fn shared_out(
        &self,
        query: Query,
        candidate: &Candidate,
        share: f64,
        weight: f64,
    ) -> Result<Vec<SharePart>, ReasonerError> {
        self.inner.shared_out(query, candidate, share, weight)
    }

    fn without(
        &self,
        query: Query,
        answer: EntityId,
        ways: &[Reasoned],
    ) -> Result<Vec<Option<ScoreWithout>>, ReasonerError> {
        self.inner.without(query, answer, ways)
    }

    fn rescored(&self, query: Query, candidate: &Candidate, before: f64, after: Option<f64>) -> Rescored {
        self.inner.rescored(query, candidate, before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BlendWeights, TypesMode};
    use crate::graph::{Names, TypesBuilder};
    use crate::progress::Silent;
    use crate::reason::rules::tests::{asked, crowd};
    use crate::reason::{Blend, Members, Recipe};

    #[test]
    fn strict_candidates_are_of_the_declared_type_alone_and_in_a_blend_too() {
        let (graph, rules) = crowd(&[(90, 60), (80, 40)]);
        let rules = Arc::new(rules);
        let all = rules.search(&[asked()], 10, &Silent).unwrap().remove(0).candidates;
        assert!(all.len() > 1);
        let wanted = all[all.len() - 1].entity;
        let mut types = TypesBuilder::default();
        types.add(wanted, "Wanted");
        let link = asked().link;
        types.declare(link.relation().unwrap(), link.reversed().direction(), "Wanted");
        let names = Arc::new(Names {
            relations: ["a", "b", "c"].into_iter().collect(),
            types: types.finish(),
            ..Names::default()
        });
        let kinds = |mode| Arc::new(Kinds::new(&graph, &names, mode));
        let strict = OfKind::new(rules.clone(), kinds(TypesMode::Strict));
        let left = |reasoner: &dyn Explains| {
            let candidates = reasoner.search(&[asked()], 10, &Silent).unwrap().remove(0).candidates;
            candidates.iter().map(|candidate| candidate.entity).collect::<Vec<_>>()
        };
        assert_eq!(left(&strict), [wanted]);
        let listed = strict.answer(&[asked()]).unwrap().into_lists().remove(0);
        assert!(listed.iter().all(|one| one.entity == wanted), "{listed:?}");
        let given = BlendWeights { rules: 1.0, walker: 0.0, embedding: 0.0, propagator: 0.0 };
        let blend = |mode| {
            let rules = Some(rules.clone());
            let members =
                Members { rules, walker: None, embedding: None, propagator: None, further: Vec::new() };
            Blend::new(members, &Recipe::of(given), &graph, &names).with_kinds(kinds(mode))
        };
        assert_eq!(left(&blend(TypesMode::Strict)), [wanted]);
        assert_eq!(left(&blend(TypesMode::Soft)).len(), all.len());
    }
}
