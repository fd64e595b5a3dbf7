//! Two reasoners: one for the relations that a run has learnt, one for all others.
//!
//! On a graph with new relations, members of a blend that know relations by name have nothing to say about them. A member
//! that needs to know none, the universal propagator, answers there alone. Relations that were learnt come first, so the
//! number of a relation says whose it is.

use super::{
    Because, Candidate, Detail, Explains, Found, IsNeeded, PathLimits, Reasoned, Rescored, ScoreWithout,
    SharePart,
};
use crate::eval::{Answers, Reasoner, ReasonerError, Scored};
use crate::graph::{Direction, EntityId, Graph, Link, Query, Triple};
use crate::progress::Progress;
use std::sync::Arc;

/// A reasoner for the relations that were learnt, and one for all others.
pub struct BesideLearnt {
    learnt: Arc<dyn Explains>,
    others: Arc<dyn Explains>,
    relations: usize,
}

/// `graph` with the facts of its first `relations` relations alone.
pub fn of_first_relations(graph: &Graph, relations: usize) -> Graph {
    let of_entity = |head: EntityId| {
        let forward = |link: Link| link.relation().filter(|_| link.direction() == Direction::Forward);
        let facts = graph.edges(head).iter().filter_map(move |edge| {
            let relation = forward(edge.link).filter(|relation| relation.index() < relations)?;
            Some(Triple { head, relation, tail: edge.target })
        });
        facts.collect::<Vec<Triple>>()
    };
    let facts: Vec<Triple> = (0..graph.entities() as u32).map(EntityId).flat_map(of_entity).collect();
    Graph::new(graph.entities(), relations, &facts)
}

impl BesideLearnt {
    /// `learnt` answers queries of the first `relations` relations, `others` all other queries.
    pub fn new(learnt: Arc<dyn Explains>, others: Arc<dyn Explains>, relations: usize) -> Self {
        Self { learnt, others, relations }
    }

    fn is_learnt(&self, query: &Query) -> bool {
        query.link.relation().is_none_or(|relation| relation.index() < self.relations)
    }

    fn of(&self, query: Query) -> &dyn Explains {
        if self.is_learnt(&query) { &*self.learnt } else { &*self.others }
    }

    /// What `ask` gives for each of `queries`, asked of the reasoner that answers it, in their order.
    fn each<T>(
        &self,
        queries: &[Query],
        ask: impl Fn(&dyn Explains, &[Query]) -> Result<Vec<T>, ReasonerError>,
    ) -> Result<Vec<T>, ReasonerError> {
        let (learnt, others): (Vec<Query>, Vec<Query>) =
            queries.iter().copied().partition(|query| self.is_learnt(query));
        let asked = |reasoner: &dyn Explains, queries: &[Query]| match queries {
            [] => Ok(Vec::new()),
            queries => ask(reasoner, queries),
        };
        let [mut learnt, mut others] =
            [asked(&*self.learnt, &learnt)?, asked(&*self.others, &others)?].map(Vec::into_iter);
        let next = |query| if self.is_learnt(query) { learnt.next() } else { others.next() };
        Ok(queries.iter().filter_map(next).collect())
    }
}

impl Reasoner for BesideLearnt {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        // Queries of one kind keep their form: all scores in one block.
        if let Some(&first) = queries.first()
            && queries.iter().all(|query| self.is_learnt(query) == self.is_learnt(&first))
        {
            return self.of(first).reasoner().answer(queries);
        }
        let lists = |reasoner: &dyn Explains, queries: &[Query]| {
            Ok(reasoner.reasoner().answer(queries)?.into_lists())
        };
        Ok(Answers::Listed(self.each(queries, lists)?))
    }

    fn answer_for_fact(&self, query: Query, fact: EntityId) -> Result<Option<Vec<Scored>>, ReasonerError> {
        self.of(query).reasoner().answer_for_fact(query, fact)
    }

    fn batch(&self) -> usize {
        self.learnt.reasoner().batch().min(self.others.reasoner().batch())
    }
}

impl Explains for BesideLearnt {
    fn reasoner(&self) -> &dyn Reasoner {
        self
    }

    fn heeds_embedding(&self, query: Query) -> bool {
        self.is_learnt(&query) && self.learnt.heeds_embedding(query)
    }

    fn search(
        &self,
        queries: &[Query],
        at_least: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Found>, ReasonerError> {
        self.each(queries, |reasoner, queries| reasoner.search(queries, at_least, progress))
    }

    fn needed(
        &self,
        queries: &[Query],
        is_needed: &IsNeeded<'_>,
        progress: &dyn Progress,
    ) -> Result<Vec<Query>, ReasonerError> {
        let (learnt, others): (Vec<Query>, Vec<Query>) =
            queries.iter().copied().partition(|query| self.is_learnt(query));
        let mut needed = self.learnt.needed(&learnt, is_needed, progress)?;
        needed.extend(self.others.needed(&others, is_needed, progress)?);
        Ok(queries.iter().copied().filter(|query| needed.contains(query)).collect())
    }

    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        self.of(query).reasons(query, candidate, most)
    }

    fn reasons_within(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
        limits: &PathLimits,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        self.of(query).reasons_within(query, candidate, most, limits)
    }

    fn are_supported(&self, found: &Found, count: usize) -> Result<Vec<bool>, ReasonerError> {
        self.of(found.query).are_supported(found, count)
    }

    fn because(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        self.of(found.query).because(found, chosen, detail)
    }

    fn shared_out(
        &self,
        query: Query,
        candidate: &Candidate,
        share: f64,
        weight: f64,
    ) -> Result<Vec<SharePart>, ReasonerError> {
        self.of(query).shared_out(query, candidate, share, weight)
    }

    fn without(
        &self,
        query: Query,
        answer: EntityId,
        ways: &[Reasoned],
    ) -> Result<Vec<Option<ScoreWithout>>, ReasonerError> {
        self.of(query).without(query, answer, ways)
    }

    fn rescored(&self, query: Query, candidate: &Candidate, before: f64, after: Option<f64>) -> Rescored {
        self.of(query).rescored(query, candidate, before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RelationId;
    use crate::progress::Silent;
    use crate::reason::ByScore;

    #[test]
    fn a_query_is_answered_by_the_reasoner_that_has_its_relation_and_the_order_stays() {
        let graph = Arc::new(Graph::new(3, 2, &[Triple::new(0, 0, 1), Triple::new(1, 1, 2)]));
        let by = |sign: f32| -> Arc<dyn Explains> {
            Arc::new(ByScore::new(graph.clone(), move |_, entity| sign * entity.0 as f32))
        };
        let both = BesideLearnt::new(by(1.0), by(-1.0), 1);
        let asked = |subject, relation| Query {
            subject: EntityId(subject),
            link: Link::inverse_of(RelationId(relation)),
        };
        let queries = [asked(0, 1), asked(0, 0), asked(1, 1), asked(2, 0)];
        let found = both.search(&queries, 3, &Silent).unwrap();
        assert_eq!(found.iter().map(|found| found.query).collect::<Vec<_>>(), queries);
        let best = |found: &Found| found.candidates[0].entity.0;
        assert_eq!(found.iter().map(best).collect::<Vec<_>>(), [0, 2, 0, 2]);
        let first = |answers: Answers| {
            (0..queries.len()).map(|row| answers.best(row, 1)[0].entity.0).collect::<Vec<_>>()
        };
        assert_eq!(first(both.answer(&queries).unwrap()), [0, 2, 0, 2]);
        assert!(matches!(both.answer(&queries[1..2]).unwrap(), Answers::Dense { .. }));
        let needed = both.needed(&queries, &|_| true, &Silent).unwrap();
        assert_eq!(needed, queries);
    }

    #[test]
    fn facts_of_the_first_relations_stay() {
        let graph = Graph::new(3, 2, &[Triple::new(0, 0, 1), Triple::new(1, 1, 2), Triple::new(2, 0, 2)]);
        let first = of_first_relations(&graph, 1);
        assert_eq!((first.entities(), first.relations(), first.facts()), (3, 1, 2));
        let link = Link::forward(RelationId(0));
        assert!(
            first.contains(EntityId(0), link, EntityId(1)) && first.contains(EntityId(2), link, EntityId(2))
        );
    }
}
