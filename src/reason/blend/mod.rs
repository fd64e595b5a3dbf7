//! The blend of rules, walker, embedding model, propagator and features of each candidate.
//!
//! Rules, walker and propagator give candidates, each with a rule or a path that supports it; the embedding model re-scores
//! and adds none. Any member may be left out, but at least one that gives candidates must stay.
//!
//! A candidate's score is `w · x`. Its features `x` are the logarithms of the members' scores and those of the candidate itself
//! ([`FeatureWeights`](super::FeatureWeights)); the weights are fitted on the validation split ([`fit`](super::fit)),
//! for every relation and direction.

mod bounds;
mod decomposed;
mod embedded;
mod fitting;
mod judged;
mod seen;

use super::recipe::{
    EMBEDDING, FREQUENCY, FURTHER, LINKED, LINKED_BACK, PROPAGATOR, RELATIONS, RULES, RULES_ABSENT,
    RULES_SURE, Recipe, TAKEN, TYPES, WALKER, WALKER_ABSENT, WeightsByLink, score,
};
use super::{
    Because, ByPropagator, ByRules, ByWalker, Candidate, Detail, Evidence, Explains, Found, IsNeeded, Kinds,
    PathLimits, Reasoned, Rescored, ScoreWithout,
};
use super::{because, ranked, unless_stopped};
use crate::embed::Embedding;
use crate::eval::{Answers, Crowd, CrowdedAnswers, Reasoner, ReasonerError, Scored};
use crate::graph::{EntityId, Graph, Link, Names, Query};
use crate::progress::{Interrupted, Progress, Silent};
use crate::rule::{RuleAnswer, UNPREDICTED};
use crate::walk;
use embedded::add_embedding;
pub use judged::JudgedQueries;
use rayon::prelude::*;
use seen::{Dense, Scores, Seen, of_rules, seen};
use std::collections::HashMap;
use std::sync::Arc;

/// The most queries that are answered at once.
const AT_ONCE: usize = 1024;
/// The features of the rules.
const RULES_FEATURES: [usize; 3] = [RULES, RULES_ABSENT, RULES_SURE];
/// The features of the walker.
const WALKER_FEATURES: [usize; 2] = [WALKER, WALKER_ABSENT];

/// The members of a blend. At least one of rules, walker and propagator must be present.
pub struct Members {
    /// The rules.
    pub rules: Option<Arc<ByRules>>,
    /// The walker.
    pub walker: Option<ByWalker>,
    /// The embedding model.
    pub embedding: Option<Arc<Embedding>>,
    /// The propagator.
    pub propagator: Option<ByPropagator>,
    /// Others, at most [`MOST_FURTHER`](crate::config::MOST_FURTHER).
    pub further: Vec<Further>,
}

/// A member that the blend knows only as a reasoner.
pub struct Further {
    /// Its name.
    pub name: &'static str,
    /// Its reasoner. The entities that it ranks first become candidates, and the softmax of its scores is a feature.
    pub reasoner: Arc<dyn Explains>,
}

impl Members {
    /// The members' names and the indices of their features.
    fn features(&self) -> Vec<(&'static str, Vec<usize>)> {
        let Self { rules, walker, embedding, propagator, further } = self;
        let own = [
            (rules.is_some(), because::RULES, RULES_FEATURES.to_vec()),
            (walker.is_some(), because::WALKER, WALKER_FEATURES.to_vec()),
            (embedding.is_some(), because::EMBEDDING, vec![EMBEDDING]),
            (propagator.is_some(), because::PROPAGATOR, vec![PROPAGATOR]),
        ];
        let own = own.into_iter().filter(|part| part.0).map(|(_, name, places)| (name, places));
        own.chain(further.iter().enumerate().map(|(at, member)| (member.name, vec![FURTHER + at]))).collect()
    }

    fn further_names(&self) -> Vec<&'static str> {
        self.further.iter().map(|member| member.name).collect()
    }
}

/// The members together.
pub struct Blend {
    members: Members,
    graph: Arc<Graph>,
    weights: WeightsByLink,
    /// The kinds of candidates, if they count.
    kinds: Option<Arc<Kinds>>,
}

impl Blend {
    /// A blend of `members` by `recipe`.
    pub fn new(members: Members, recipe: &Recipe, graph: &Arc<Graph>, names: &Names) -> Self {
        let weights = recipe.by_link(names, &members.further_names());
        Self { members, graph: Arc::clone(graph), weights, kinds: None }
    }

    /// The same where candidates are judged by their kinds, too.
    pub fn with_kinds(self, kinds: Arc<Kinds>) -> Self {
        Self { kinds: Some(kinds).filter(|kinds| kinds.are_used()), ..self }
    }

    /// Whether `entity` is of a kind that may be an answer of `query`.
    fn admits(&self, query: Query, entity: EntityId) -> bool {
        let strict = self.kinds.as_ref().filter(|kinds| kinds.are_strict());
        strict.is_none_or(|kinds| kinds.admits(query.link, entity))
    }

    fn scored(&self, query: Query, seen: &[Seen]) -> Vec<Scored> {
        let weights = self.weights.of(query.link);
        seen.iter().map(|one| Scored { entity: one.entity, score: score(&one.features, weights) }).collect()
    }

    /// Whether rules answer alone. They then also rank entities that no rule predicts, by frequency, after all others.
    fn rules_alone(&self) -> bool {
        let Members { rules, walker, embedding, propagator, further } = &self.members;
        let others = walker.is_some() || embedding.is_some() || propagator.is_some() || !further.is_empty();
        rules.is_some() && !others
    }

    /// The scores of the members for the candidates of rules and walker.
    fn seen(&self, queries: &[Query], progress: &dyn Progress) -> Result<Vec<Vec<Seen>>, ReasonerError> {
        let (by_rules, walked) = (self.by_rules(queries, false, progress)?, self.walked(queries, progress)?);
        self.seen_beside(queries, &by_rules, &walked, None, progress)
    }

    /// The answers of the rules; the `rest`, which no rule predicts, is no candidate of the blend.
    fn by_rules(
        &self,
        queries: &[Query],
        rest: bool,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<RuleAnswer>>, Interrupted> {
        match &self.members.rules {
            Some(rules) => rules.ranked(queries, rest, progress),
            None => Ok(vec![Vec::new(); queries.len()]),
        }
    }

    fn walked(
        &self,
        queries: &[Query],
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<walk::WalkedAnswer>>, ReasonerError> {
        match &self.members.walker {
            Some(walker) => walker.walked(queries, progress),
            None => Ok(vec![Vec::new(); queries.len()]),
        }
    }

    /// The features of the candidates, given the answers of rules and walker to each of `queries`.
    fn seen_beside(
        &self,
        queries: &[Query],
        by_rules: &[Vec<RuleAnswer>],
        walked: &[Vec<walk::WalkedAnswer>],
        fact: Option<EntityId>,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<Seen>>, ReasonerError> {
        let mut all = self.candidates(queries, by_rules, walked, fact, progress)?;
        if let Some(embedding) = &self.members.embedding {
            add_embedding(embedding, queries, &mut all, progress)?;
        }
        Ok(all)
    }

    /// The candidates with all features except that of the embedding model, which adds none and takes longest.
    fn candidates(
        &self,
        queries: &[Query],
        by_rules: &[Vec<RuleAnswer>],
        walked: &[Vec<walk::WalkedAnswer>],
        fact: Option<EntityId>,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<Seen>>, ReasonerError> {
        let propagator = self.members.propagator.as_ref();
        // The propagator's scores of all entities exist for one batch at a time.
        let of_further = self.members.further.iter().map(|member| member.reasoner.reasoner().batch());
        let of_propagator = propagator.map(|propagator| propagator.reasoner().batch());
        let at_once = of_further.chain(of_propagator).min().unwrap_or(queries.len()).max(1);
        let mut all = Vec::with_capacity(queries.len());
        for (part, batch) in queries.chunks(at_once).enumerate() {
            unless_stopped(progress)?;
            let propagated = propagator.map(|propagator| propagator.scores(batch, progress)).transpose()?;
            let further = self.further(batch)?;
            let rows = batch.par_iter().enumerate().map(|(row, &query)| {
                let at = part * at_once + row;
                let propagated = propagated.as_ref().map_or(Dense::NONE, |scores| {
                    let entities = scores.len() / batch.len();
                    Dense::of(&scores[row * entities..(row + 1) * entities])
                });
                let further: Vec<Scores<'_>> =
                    further.iter().map(|answers| Scores::of(answers, row)).collect();
                let mut seen = seen(&by_rules[at], &walked[at], &propagated, &further);
                seen.retain(|one| self.admits(query, one.entity));
                self.add_signals(query, fact, &mut seen);
                seen
            });
            all.par_extend(rows);
        }
        Ok(all)
    }

    /// The answers of the further members.
    fn further(&self, queries: &[Query]) -> Result<Vec<Answers>, ReasonerError> {
        self.members.further.iter().map(|member| member.reasoner.reasoner().answer(queries)).collect()
    }

    /// Features of each candidate from the graph.
    /// `fact` is an answer that is in the graph but is treated as if it were not.
    fn add_signals(&self, query: Query, fact: Option<EntityId>, seen: &mut [Seen]) {
        let is_fact = |entity: EntityId| fact == Some(entity);
        let edges = self.graph.edges(query.subject).iter();
        let others = edges.filter(|edge| edge.link != query.link || !is_fact(edge.target));
        let mut linked: Vec<EntityId> = others.map(|edge| edge.target).collect();
        linked.sort_unstable();
        for one in seen {
            let stated = self.graph.targets(one.entity, query.link.reversed()).len();
            let times = stated - usize::from(stated > 0 && is_fact(one.entity));
            let is_linked = linked.binary_search(&one.entity).is_ok();
            let back = is_linked && self.graph.contains(query.subject, query.link.reversed(), one.entity);
            one.features[LINKED] = f32::from(u8::from(is_linked));
            one.features[LINKED_BACK] = f32::from(u8::from(back));
            one.features[TAKEN] = f32::from(u8::from(times > 0));
            one.features[FREQUENCY] = (1.0 + times as f32).ln();
            if let Some(kinds) = &self.kinds {
                [one.features[TYPES], one.features[RELATIONS]] = kinds.fit(query.link, one.entity);
            }
        }
    }
}

impl Blend {
    /// Whether any of these features has a weight for queries by `link`.
    fn has_weight(&self, link: Link, places: &[usize]) -> bool {
        let weights = self.weights.of(link);
        places.iter().any(|&place| weights[place] != 0.0)
    }

    /// The reasons by those members whose features `counts` accepts.
    fn reasons_if(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
        counts: &dyn Fn(&[usize]) -> bool,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        let Members { rules, walker, propagator, further, .. } = &self.members;
        let rules = rules.as_ref().filter(|_| counts(&RULES_FEATURES));
        let by_rules = rules.map_or_else(Vec::new, |rules| rules.reasons_for(query, candidate, most));
        // If one reason is enough and a rule gives it, no path is searched for.
        if most == 1 && !by_rules.is_empty() {
            return Ok(by_rules);
        }
        let mut ways = match (walker.as_ref().filter(|_| counts(&WALKER_FEATURES)), &candidate.evidence.walk)
        {
            (Some(walker), Some(walk)) => walker.ways(query, walk),
            _ => Vec::new(),
        };
        ways.truncate(most);
        ways.iter_mut().for_each(|way| way.score = candidate.score);
        let mut reasons = together(by_rules, ways, most);
        // The propagator's paths cost most, so they are searched for only if more reasons are wanted.
        if let Some(propagator) = propagator.as_ref().filter(|_| counts(&[PROPAGATOR]))
            && reasons.len() < most
        {
            reasons = together(reasons, propagator.ways(query, candidate, most)?, most);
        }
        for (at, member) in further.iter().enumerate() {
            if reasons.len() < most && counts(&[FURTHER + at]) {
                reasons = together(reasons, member.reasoner.reasons(query, candidate, most)?, most);
            }
        }
        Ok(reasons)
    }
}

/// The score that an answer has below all others that are `scored`, if no rule predicts it; `score` is the rules' own.
fn unpredicted(scored: &[Scored]) -> impl Fn(f64) -> f64 + use<> {
    let lowest = scored.iter().map(|one| one.score).fold(0.0, f64::min);
    move |score| lowest - 2.0 + score / UNPREDICTED
}

/// Appends the answers that no rule predicts, in the order of `by_rules`.
fn add_unpredicted(scored: &mut Vec<Scored>, by_rules: &[RuleAnswer], below: impl Fn(f64) -> f64) {
    let rest = by_rules.iter().filter(|answer| !answer.is_predicted()).map(|answer| answer.scored);
    scored.extend(rest.map(|Scored { entity, score }| Scored { entity, score: below(score) }));
}

impl Reasoner for Blend {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let alone = self.rules_alone();
        let by_rules = self.by_rules(queries, alone, &Silent)?;
        let seen = self.seen_beside(queries, &by_rules, &self.walked(queries, &Silent)?, None, &Silent)?;
        let scored = |((query, seen), mut by_rules): ((&Query, Vec<Seen>), Vec<RuleAnswer>)| {
            let mut scored = self.scored(*query, &seen);
            if alone {
                by_rules.retain(|answer| self.admits(*query, answer.scored.entity));
                let below = unpredicted(&scored);
                add_unpredicted(&mut scored, &by_rules, below);
            }
            scored
        };
        Ok(Answers::Listed(queries.iter().zip(seen).zip(by_rules).map(scored).collect()))
    }

    /// Only rules alone rank entities that they do not predict. Strict types may leave out some of a crowd.
    fn answer_with_crowds(&self, queries: &[Query]) -> Result<Option<Vec<CrowdedAnswers>>, ReasonerError> {
        let is_strict = self.kinds.as_ref().is_some_and(|kinds| kinds.are_strict());
        let Some(rules) = self.members.rules.as_ref().filter(|_| self.rules_alone() && !is_strict) else {
            return Ok(None);
        };
        let (by_rules, crowds): (Vec<Vec<RuleAnswer>>, Vec<Option<Crowd>>) =
            queries.par_iter().map(|&query| rules.rules().ranked_with_crowd(query)).unzip();
        let walked = vec![Vec::new(); queries.len()];
        let seen = self.seen_beside(queries, &by_rules, &walked, None, &Silent)?;
        let scored = |at: usize| {
            let mut scored = self.scored(queries[at], &seen[at]);
            let below = unpredicted(&scored);
            add_unpredicted(&mut scored, &by_rules[at], &below);
            let crowd = crowds[at].clone();
            (
                scored,
                crowd.map(|crowd| {
                    let score = below(crowd.score());
                    crowd.with_score(score)
                }),
            )
        };
        Ok(Some((0..queries.len()).map(scored).collect()))
    }

    /// Rules leave facts out; the others do not.
    fn answer_for_fact(&self, query: Query, fact: EntityId) -> Result<Option<Vec<Scored>>, ReasonerError> {
        let Some(rules) = &self.members.rules else { return Ok(None) };
        let Some(by_rules) = rules.reasoner().answer_for_fact(query, fact)? else { return Ok(None) };
        let ranked =
            by_rules.into_iter().map(|scored| RuleAnswer { scored, rules: Box::default() }).collect();
        let walked = self.walked(&[query], &Silent)?;
        let seen = self.seen_beside(&[query], &[ranked], &walked, Some(fact), &Silent)?.pop();
        Ok(seen.map(|seen| self.scored(query, &seen)))
    }

    /// Scoring the answers of rules takes three times their memory.
    fn batch(&self) -> usize {
        let rules = self.members.rules.as_ref();
        rules.map_or(AT_ONCE, |rules| rules.reasoner().batch() / 3).clamp(16, AT_ONCE)
    }
}

impl Explains for Blend {
    fn reasoner(&self) -> &dyn Reasoner {
        self
    }

    fn heeds_embedding(&self, query: Query) -> bool {
        self.has_weight(query.link, &[EMBEDDING])
    }

    fn search(
        &self,
        queries: &[Query],
        _at_least: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Found>, ReasonerError> {
        let (by_rules, walked) = (self.by_rules(queries, false, progress)?, self.walked(queries, progress)?);
        let seen = self.seen_beside(queries, &by_rules, &walked, None, progress)?;
        type Answered = ((Vec<Seen>, Vec<RuleAnswer>), Vec<walk::WalkedAnswer>);
        let found = |(&query, ((seen, by_rules), walked)): (&Query, Answered)| {
            let weights = self.weights.of(query.link);
            let mut rules: HashMap<EntityId, Box<[u32]>> =
                by_rules.into_iter().map(|answer| (answer.scored.entity, answer.rules)).collect();
            let mut walks: HashMap<EntityId, walk::WalkedAnswer> =
                walked.into_iter().map(|walk| (walk.entity, walk)).collect();
            let candidate = |one: &Seen| {
                let scored = Scored { entity: one.entity, score: score(&one.features, weights) };
                let rules = rules.remove(&one.entity).unwrap_or_default();
                let features = Some(one.features);
                (scored, Evidence { rules, walk: walks.remove(&one.entity), features })
            };
            Found { query, candidates: ranked(query, &self.graph, seen.iter().map(candidate)) }
        };
        Ok(queries.iter().zip(seen.into_iter().zip(by_rules).zip(walked)).map(found).collect())
    }

    /// Only the embedding model takes much longer than bounds on its scores: on a CPU.
    fn needed(
        &self,
        queries: &[Query],
        is_needed: &IsNeeded<'_>,
        progress: &dyn Progress,
    ) -> Result<Vec<Query>, ReasonerError> {
        let Members { walker: None, embedding: Some(embedding), propagator: None, .. } = &self.members else {
            return Ok(queries.to_vec());
        };
        if !self.members.further.is_empty() {
            return Ok(queries.to_vec());
        }
        // A new entity has no row to bound.
        if embedding.device().is_cuda() || embedding.size().entities != self.graph.entities() {
            return Ok(queries.to_vec());
        }
        let by_rules = self.by_rules(queries, false, progress)?;
        let walked = vec![Vec::new(); queries.len()];
        let seen = self.candidates(queries, &by_rules, &walked, None, progress)?;
        self.needed_among(embedding, queries, &seen, is_needed)
    }

    /// The rules that predict it, then the walker's paths, for which slots are reserved. A member without weight gives no
    /// reason, but what it alone supports is still an answer: one whose reason is that of the other members.
    fn reasons(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        let reasons =
            self.reasons_if(query, candidate, most, &|places| self.has_weight(query.link, places))?;
        if reasons.is_empty() && !self.reasons_if(query, candidate, 1, &|_| true)?.is_empty() {
            return Ok(vec![Reasoned::bare(query, candidate)]);
        }
        Ok(reasons)
    }

    /// By the members that have a weight, in the order in which they give reasons.
    fn reasons_within(
        &self,
        query: Query,
        candidate: &Candidate,
        most: usize,
        limits: &PathLimits,
    ) -> Result<Vec<Reasoned>, ReasonerError> {
        let Members { rules, walker, propagator, further, .. } = &self.members;
        let own: [(Option<&dyn Explains>, &[usize]); 3] = [
            (rules.as_deref().map(|member| member as _), &RULES_FEATURES),
            (walker.as_ref().map(|member| member as _), &WALKER_FEATURES),
            (propagator.as_ref().map(|member| member as _), &[PROPAGATOR]),
        ];
        let own = own.into_iter().filter_map(|(member, places)| Some((member?, places.to_vec())));
        let further = further.iter().enumerate().map(|(at, member)| (&*member.reasoner, vec![FURTHER + at]));
        let mut reasons = Vec::new();
        for (member, places) in own.chain(further) {
            if reasons.len() < most && self.has_weight(query.link, &places) {
                let mut ways = member.reasons_within(query, candidate, most, limits)?;
                ways.iter_mut().for_each(|way| way.score = candidate.score);
                reasons = together(reasons, ways, most);
            }
        }
        Ok(reasons)
    }

    /// What rules or a walk predicted is supported by that; paths are looked for only for the others.
    fn are_supported(&self, found: &Found, count: usize) -> Result<Vec<bool>, ReasonerError> {
        let Members { rules, walker, propagator, further, .. } = &self.members;
        let is_evident = |candidate: &Candidate| {
            let Evidence { rules: fired, walk, .. } = &candidate.evidence;
            (rules.is_some() && !fired.is_empty()) || (walker.is_some() && walk.is_some())
        };
        let candidates = &found.candidates[..count.min(found.candidates.len())];
        let mut supported: Vec<bool> = candidates.iter().map(is_evident).collect();
        if let Some(propagator) = propagator {
            let others: Vec<usize> = (0..candidates.len()).filter(|&at| !supported[at]).collect();
            let asked: Vec<&Candidate> = others.iter().map(|&at| &candidates[at]).collect();
            for (at, has_path) in others.into_iter().zip(propagator.have_paths(found.query, &asked)?) {
                supported[at] = has_path;
            }
        }
        for member in further {
            let others: Vec<usize> = (0..candidates.len()).filter(|&at| !supported[at]).collect();
            let asked = others.iter().map(|&at| candidates[at].clone()).collect();
            let asked = Found { query: found.query, candidates: asked };
            let by_member = member.reasoner.are_supported(&asked, others.len())?;
            others.into_iter().zip(by_member).for_each(|(at, by_member)| supported[at] = by_member);
        }
        for (candidate, supported) in candidates.iter().zip(&mut supported) {
            *supported = *supported || !self.reasons(found.query, candidate, 1)?.is_empty();
        }
        Ok(supported)
    }

    fn because(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        self.decomposed(found, chosen, detail)
    }

    fn without(
        &self,
        query: Query,
        answer: EntityId,
        ways: &[Reasoned],
    ) -> Result<Vec<Option<ScoreWithout>>, ReasonerError> {
        let Members { propagator, further, .. } = &self.members;
        let further = further.first().map(|member| &*member.reasoner);
        match propagator.as_ref().map(|propagator| propagator as &dyn Explains).or(further) {
            Some(propagator) => propagator.without(query, answer, ways),
            None => Ok(vec![None; ways.len()]),
        }
    }

    fn rescored(&self, query: Query, candidate: &Candidate, before: f64, after: Option<f64>) -> Rescored {
        let Evidence { rules, walk, .. } = &candidate.evidence;
        if rules.is_empty() || self.members.rules.is_none() {
            return Rescored::Same;
        }
        let scores_all = self.members.propagator.is_some() || !self.members.further.is_empty();
        if after.is_none() && walk.is_none() && !scores_all {
            return Rescored::Unsupported;
        }
        let weights = self.weights.of(query.link);
        let part = |by_rules: Option<f64>| match by_rules {
            Some(score) => {
                let [certain, sure] = of_rules(score);
                weights[RULES] * f64::from(certain) + weights[RULES_SURE] * f64::from(sure)
            }
            None => weights[RULES_ABSENT],
        };
        Rescored::Score(candidate.score + part(after) - part(Some(before)))
    }
}

/// At most `most` reasons: the best rules, then the walker's paths that are not among them. With several slots the
/// first goes to a rule and the last to a path of the walker, so that an explanation shows both.
fn together(mut by_rules: Vec<Reasoned>, mut ways: Vec<Reasoned>, most: usize) -> Vec<Reasoned> {
    ways.retain(|way| by_rules.iter().all(|reason| reason.path != way.path));
    by_rules.truncate(most.saturating_sub(ways.len()).max(1));
    by_rules.extend(ways);
    by_rules.truncate(most);
    by_rules
}

#[cfg(test)]
mod tests {
    use super::super::fit::WIDTH;
    use super::*;
    use crate::graph::{RelationId, Triple};
    use crate::reason::Hop;

    #[test]
    fn what_is_left_without_a_rule_is_what_the_blend_says_without_it() {
        use crate::reason::rules::tests::{asked, crowd};
        let blended = |counts: &[(u64, u64)]| {
            let (graph, rules) = crowd(counts);
            let members = Members {
                rules: Some(Arc::new(rules)),
                walker: None,
                embedding: None,
                propagator: None,
                further: Vec::new(),
            };
            let given =
                crate::config::BlendWeights { rules: 0.7, walker: 0.2, embedding: 0.1, propagator: 0.0 };
            let blend = Blend::new(members, &Recipe::of(given), &graph, &Names::default());
            let candidate = blend.search(&[asked()], 10, &Silent).unwrap().remove(0).candidates.remove(0);
            (blend, candidate)
        };
        let (blend, candidate) = blended(&[(90, 60), (80, 40)]);
        let rules = blend.members.rules.as_ref().unwrap().rules();
        let [before, after] = [2, 1].map(|rules_left| {
            let firings = rules.firings(asked(), candidate.entity, &|| false).unwrap();
            rules.aggregated(firings.iter().map(|one| one.0).take(rules_left))
        });
        let (_, without) = blended(&[(90, 60), (1_000_000_000, 0)]);
        let Rescored::Score(score) = blend.rescored(asked(), &candidate, before.unwrap(), after) else {
            panic!("the other rule still predicts it");
        };
        assert!((score - without.score).abs() < 1e-6, "{score} {}", without.score);
        assert_eq!(blend.rescored(asked(), &candidate, before.unwrap(), None), Rescored::Unsupported);
    }

    #[test]
    fn signals_come_from_the_graph() {
        // 0 -r0-> 1, 2 -r1-> 1, 3 -r1-> 1.
        let facts = [Triple::new(0, 0, 1), Triple::new(2, 1, 1), Triple::new(3, 1, 1)];
        let graph = Arc::new(Graph::new(5, 2, &facts));
        let members =
            Members { rules: None, walker: None, embedding: None, propagator: None, further: Vec::new() };
        let given = crate::config::BlendWeights { rules: 1.0, walker: 0.0, embedding: 0.0, propagator: 0.0 };
        let blend = Blend::new(members, &Recipe::of(given), &graph, &Names::default());
        let bare = |id| Seen { entity: EntityId(id), features: [0.0; WIDTH] };
        let mut seen = [bare(1), bare(4)];
        let query = Query { subject: EntityId(0), link: Link::forward(RelationId(1)) };
        blend.add_signals(query, None, &mut seen);
        assert_eq!(seen[0].features[LINKED..=FREQUENCY], [1.0, 0.0, 1.0, 3.0f32.ln()]);
        assert_eq!(seen[1].features[LINKED..=FREQUENCY], [0.0; 4]);
        // The other way round: 1 has r1 from 2.
        let query = Query { subject: EntityId(2), link: Link::inverse_of(RelationId(1)) };
        let mut seen = [bare(1)];
        blend.add_signals(query, None, &mut seen);
        assert_eq!(seen[0].features[LINKED..=FREQUENCY], [1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn an_explanation_has_places_for_both_rules_and_walks() {
        let reason = |relation: u32, scores: Option<[f64; 2]>| Reasoned {
            entity: EntityId(1),
            score: 0.5,
            start: EntityId(0),
            path: vec![Hop { link: Link::forward(RelationId(relation)), target: EntityId(1), scores }],
            rule: None,
            without: None,
        };
        let by_rules: Vec<Reasoned> = (0..5).map(|relation| reason(relation, None)).collect();
        let walk = reason(0, Some([-1.0, -2.0]));
        // The walk, and a grounding that a rule has shown already.
        let both = together(by_rules.clone(), vec![by_rules[1].clone(), walk.clone()], 5);
        assert_eq!(both, [&by_rules[..4], std::slice::from_ref(&walk)].concat());
        assert_eq!(together(by_rules.clone(), vec![walk.clone()], 1), by_rules[..1]);
        assert_eq!(together(Vec::new(), vec![walk.clone()], 1), [walk]);
    }
}
