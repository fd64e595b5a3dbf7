//! The walker as a reasoner that explains: its path, and the rule that the path follows.
//!
//! A walk may revisit an entity. The variables of a rule stand for different entities, and its confidence was counted
//! that way: a walk that repeats an entity grounds no rule, even if its links are the body of one.

use super::because::{WALKER, typical_score, with_rest};
use super::path_rules::{PathRuleIndex, repeats_nobody};
use super::reflexive::Reflexive;
use super::{Because, Candidate, Detail, Evidence, Explains, Found, Hop, Reasoned, SharePart, ShareSource};
use crate::eval::{Reasoner, ReasonerError};
use crate::graph::{EntityId, Graph, Link, Query};
use crate::progress::{Interrupted, Progress};
use crate::rule::Grounding;
use crate::walk::{self, Walker};
use std::sync::Arc;

/// The most entities tried to ground the rule whose links were walked.
const TRIED: usize = 100_000;

/// The walker and the rules that its paths may follow.
pub struct ByWalker {
    walker: Arc<Walker>,
    graph: Arc<Graph>,
    rules: Arc<PathRuleIndex>,
    reflexive: Reflexive,
}

impl ByWalker {
    /// `walker` on `graph`, whose paths may follow `rules`.
    pub fn new(walker: Arc<Walker>, graph: &Arc<Graph>, rules: Arc<PathRuleIndex>) -> Self {
        Self { walker, graph: Arc::clone(graph), rules, reflexive: Reflexive::new(graph) }
    }

    /// The paths to a walked answer, the one with a rule first. Empty if the walker only stayed at the subject: that
    /// is not a reason, unless the relation often links an entity to itself.
    pub(super) fn ways(&self, query: Query, answer: &walk::WalkedAnswer) -> Vec<Reasoned> {
        let hop = |step: &walk::WalkStep| Hop {
            link: step.link,
            target: step.entity,
            scores: Some([f64::from(step.relation_score), f64::from(step.entity_score)]),
        };
        let walk = Reasoned {
            entity: answer.entity,
            score: f64::from(answer.score),
            start: query.subject,
            path: answer.path.iter().map(hop).collect(),
            rule: None,
            without: None,
        };
        let links: Box<[Link]> = answer.links().into_iter().filter(|link| *link != Link::NO_OP).collect();
        if links.is_empty() {
            return if self.reflexive.is(query.link) { vec![walk] } else { Vec::new() };
        }
        let Some(rule) = self.rules.with_body(query.link, &links) else { return vec![walk] };
        let rule = Some(rule.clone());
        if repeats_nobody(query.subject, &walk.path) {
            return vec![Reasoned { rule, ..walk }];
        }
        match self.grounding(query.subject, &links, answer.entity) {
            Some(path) => vec![Reasoned { path, rule, ..walk.clone() }, walk],
            None => vec![walk],
        }
    }

    /// A path along `links` from `start` to `end` whose entities are all different, if one is found within the limit.
    fn grounding(&self, start: EntityId, links: &[Link], end: EntityId) -> Option<Vec<Hop>> {
        let targets = |entity, link| self.graph.targets(entity, link);
        let found =
            Grounding { targets, distinct: true, avoid: None, tries: TRIED }.find(start, links, Some(end))?;
        let hop = |(&link, &target): (&Link, &EntityId)| Hop { link, target, scores: None };
        Some(links.iter().zip(&found[1..]).map(hop).collect())
    }

    /// The answers of each query, best first, as beam search found them.
    pub(super) fn walked(
        &self,
        queries: &[Query],
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<walk::WalkedAnswer>>, ReasonerError> {
        let mut all = Vec::with_capacity(queries.len());
        for batch in queries.chunks(self.walker.batch()) {
            let answers = self.walker.answers_unless(batch, &|| progress.interrupted())?;
            all.extend(answers.ok_or(Interrupted)?);
        }
        Ok(all)
    }
}

impl ByWalker {
    /// The `share` that the walker has in a candidate's score, as that of its path.
    pub(super) fn parts(&self, query: Query, candidate: &Candidate, share: f64) -> Vec<SharePart> {
        let walk = candidate.evidence.walk.as_ref();
        let way = walk.and_then(|walk| self.ways(query, walk).into_iter().next());
        let path = |way| SharePart { share, source: ShareSource::Path(way) };
        with_rest(share, way.map(path).into_iter().collect(), 0)
    }
}

impl Explains for ByWalker {
    fn reasoner(&self) -> &dyn Reasoner {
        &*self.walker
    }

    fn walker(&self) -> Option<&Walker> {
        Some(&self.walker)
    }

    /// The candidates keep the order of the beam search.
    fn search(
        &self,
        queries: &[Query],
        _at_least: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Found>, ReasonerError> {
        let found = |(&query, answers): (&Query, Vec<walk::WalkedAnswer>)| {
            let new =
                |walk: &walk::WalkedAnswer| !self.graph.contains(query.subject, query.link, walk.entity);
            let candidate = |walk: walk::WalkedAnswer| Candidate {
                entity: walk.entity,
                score: f64::from(walk.score),
                evidence: Evidence { walk: Some(walk), ..Evidence::default() },
            };
            Found { query, candidates: answers.into_iter().filter(new).map(candidate).collect() }
        };
        Ok(queries.iter().zip(self.walked(queries, progress)?).map(found).collect())
    }

    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        let mut ways = candidate.evidence.walk.as_ref().map_or_else(Vec::new, |walk| self.ways(query, walk));
        ways.truncate(most);
        Ok(ways)
    }

    fn because(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        _detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        let typical = typical_score(found);
        let one = |candidate: &&Candidate| {
            let parts = self.parts(found.query, candidate, candidate.score - typical);
            Because::alone(WALKER, candidate.score, typical, parts)
        };
        Ok(chosen.iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Array, Known, RelationId, Triple};
    use crate::reason::supported;
    use crate::rule::{Counts, Rule, ScoredRule};
    use crate::tensor::Device;
    use crate::walk::WalkConfig;

    fn both_ways() -> (Link, Link) {
        (Link::forward(RelationId(0)), Link::inverse_of(RelationId(0)))
    }

    fn hops(path: &[(Link, u32)]) -> Vec<Hop> {
        path.iter().map(|&(link, target)| Hop { link, target: EntityId(target), scores: None }).collect()
    }

    #[test]
    fn a_walk_that_comes_back_grounds_no_rule() {
        let (parent, up) = both_ways();
        assert!(repeats_nobody(EntityId(0), &hops(&[(up, 1), (parent, 2), (Link::NO_OP, 2)])));
        assert!(!repeats_nobody(EntityId(0), &hops(&[(up, 1), (parent, 0)])));
        assert!(!repeats_nobody(EntityId(0), &hops(&[(up, 1), (parent, 2), (up, 1)])));
    }

    /// An untrained walker, which finds every path of two hops.
    fn untrained(facts: &[Triple], graph: &Graph) -> Arc<Walker> {
        let facts: Array<Triple> = facts.into();
        let known = Known { facts: facts.clone(), queries: facts, ..Known::default() };
        let config = WalkConfig {
            hops: 2,
            dimension: 8,
            history: 8,
            close_subject: false,
            close_answers: false,
            ..WalkConfig::default()
        };
        Walker::new(&config, graph, &known, &Device::cpu(1).unwrap(), 1).unwrap().into()
    }

    #[test]
    fn staying_is_a_reason_only_where_many_facts_lead_from_an_entity_to_itself() {
        let mut facts = vec![Triple::new(0, 0, 1), Triple::new(1, 0, 2), Triple::new(3, 1, 3)];
        // One odd fact of many.
        facts.extend((3..15).map(|head| Triple::new(head, 2, 3)));
        let graph = Arc::new(Graph::new(15, 3, &facts));
        let reasoner = ByWalker::new(untrained(&facts, &graph), &graph, PathRuleIndex::new(&[]).into());
        for (relation, itself) in [(0, false), (1, true), (2, false)] {
            let query = Query { subject: EntityId(0), link: Link::forward(RelationId(relation)) };
            let found = reasoner.search(&[query], 10, &crate::progress::Silent).unwrap().remove(0);
            let candidates = &found.candidates;
            assert!(candidates.iter().any(|candidate| candidate.entity == query.subject), "it is ranked");
            let answers = supported(&reasoner, &found, 10).unwrap();
            assert_eq!(answers.iter().any(|answer| answer.entity == query.subject), itself);
            assert!(answers.len() > usize::from(itself));
        }
    }

    #[test]
    fn a_search_that_has_begun_is_stopped_at_the_next_hop() {
        let facts = [Triple::new(0, 0, 1), Triple::new(1, 0, 2)];
        let graph = Arc::new(Graph::new(3, 1, &facts));
        let reasoner = ByWalker::new(untrained(&facts, &graph), &graph, PathRuleIndex::new(&[]).into());
        let query = Query { subject: EntityId(0), link: Link::forward(RelationId(0)) };
        for allowed in [0, 1] {
            let progress = crate::progress::Countdown::from(allowed);
            assert!(reasoner.search(&[query], 10, &progress).unwrap_err().is::<Interrupted>());
        }
        assert!(reasoner.search(&[query], 10, &crate::progress::Countdown::from(2)).is_ok());
    }

    #[test]
    fn a_rule_stands_beside_a_path_that_grounds_it() {
        // 0 -> 1 <- 2, and 0 -> 3 -> 1: from 0 over 1 back to 0 is no grounding, over 3 to 1 is.
        let facts: Vec<Triple> =
            [(0, 1), (2, 1), (0, 3), (3, 1)].iter().map(|&(h, t)| Triple::new(h, 0, t)).collect();
        let graph = Arc::new(Graph::new(4, 2, &facts));
        let (forward, back) = both_ways();
        let rule = |body: &[Link]| ScoredRule {
            rule: Rule::cyclic(Link::forward(RelationId(1)), body),
            counts: Counts::exact(5, 5),
        };
        let rules = [rule(&[forward, back]), rule(&[forward, forward, back])];
        let reasoner = ByWalker::new(untrained(&facts, &graph), &graph, PathRuleIndex::new(&rules).into());
        let query = Query { subject: EntityId(0), link: Link::forward(RelationId(1)) };
        let step = |link, entity| walk::WalkStep {
            link,
            entity: EntityId(entity),
            relation_score: -1.0,
            entity_score: -1.0,
        };
        let walked = |path: Vec<walk::WalkStep>| walk::WalkedAnswer {
            entity: path[path.len() - 1].entity,
            score: -1.0,
            path,
        };
        let said = |path| {
            let ways = reasoner.ways(query, &walked(path));
            ways.into_iter()
                .map(|way| (way.path.iter().map(|hop| hop.target.0).collect(), way.rule.is_some()))
                .collect::<Vec<(Vec<u32>, bool)>>()
        };
        assert_eq!(said(vec![step(forward, 1), step(back, 2)]), [(vec![1, 2], true)]);
        assert_eq!(said(vec![step(forward, 1), step(back, 0)]), [(vec![1, 0], false)]);
        let returns = vec![step(forward, 1), step(forward, 1), step(back, 2)];
        assert_eq!(said(returns), [(vec![3, 1, 2], true), (vec![1, 1, 2], false)]);
    }
}
