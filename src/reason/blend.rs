//! The blend: the answers of walker and rules, scored by both and by the embedding model together.
//!
//! An answer is listed only if a path or a rule speaks for it; the embedding model re-scores and adds none. Each of
//! the three may be left out, but not both of those that give answers: without rules it is the walker's answers,
//! re-ordered.
//!
//! The score is `a·log r + b·log w + c·log f`: `r` the rules' score, `w` the walker's probability among its answers,
//! `f` the embedding's softmax over all entities. The weights are fitted on the validation split, one set for
//! every relation with enough queries there and one for all others.

use super::{ByRules, ByWalker, Candidate, Evidence, Explains, Found, Reasoned, ranked};
use crate::config::BlendWeights;
use crate::embed::Embedding;
use crate::eval::{Answers, EvalError, Reasoner, ReasonerError, Scored, Side};
use crate::graph::{Adjacency, Direction, EntityId, Graph, Link, Names, Query, Triple};
use crate::progress::Progress;
use crate::rule::{RuleAnswer, UNPREDICTED};
use crate::walk;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What an answer gets from a reasoner that does not give it: what the weakest rule that is kept by default gives, of
/// confidence 0.01 (`rules.min_confidence`) and without a body (`ApplyOptions::zero_weight`, 0.01).
const ABSENT: f64 = 1e-4;
/// The weights that are tried: parts of so many.
const PARTS: u32 = 10;
/// Queries that are answered at once at most.
const AT_ONCE: usize = 1024;
/// Queries that the weights are fitted to at once at most.
const FITTED_AT_ONCE: usize = 512;
/// How many queries of all relations a relation's own weights have to outvote. Chosen by hand, not fitted: with as many
/// validation queries of its own, a relation has half a say.
const PULL: f64 = 30.0;

/// The weights of a blend, as they are kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// For tail queries of relations without weights of their own.
    pub general: BlendWeights,
    /// The same for head queries, for which the walker may not be trained; those of tail queries if there are none.
    #[serde(default)]
    pub general_head: Option<BlendWeights>,
    /// By relation and direction asked (`tail`, `head`).
    pub relations: BTreeMap<String, BTreeMap<String, BlendWeights>>,
}

impl Recipe {
    /// The same weights for every query.
    pub fn of(general: BlendWeights) -> Self {
        Self { general, general_head: None, relations: BTreeMap::new() }
    }
}

/// An answer as each member sees it, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    entity: EntityId,
    /// The most confident rule that predicts it.
    rule: Option<u32>,
    rules: f64,
    walker: f64,
    embedding: f64,
}

impl Seen {
    fn score(&self, weights: BlendWeights) -> f64 {
        weights.rules * self.rules + weights.walker * self.walker + weights.embedding * self.embedding
    }
}

/// The members of a blend. Rules or a walker have to be among them.
pub struct Members {
    /// The rules.
    pub rules: Option<Arc<ByRules>>,
    /// The walker.
    pub walker: Option<ByWalker>,
    /// The embedding model.
    pub embedding: Option<Arc<Embedding>>,
}

/// Walker, rules and embedding together.
pub struct Blend {
    members: Members,
    graph: Arc<Graph>,
    general: [BlendWeights; 2],
    own: HashMap<Link, BlendWeights>,
}

impl Blend {
    /// A blend of `members` by `recipe`.
    pub fn new(members: Members, recipe: &Recipe, graph: &Arc<Graph>, names: &Names) -> Self {
        let mut own = HashMap::new();
        for (relation, directions) in &recipe.relations {
            let Some(id) = names.relations.get(relation) else { continue };
            for (direction, &weights) in directions {
                let direction = if direction == "head" { Direction::Inverse } else { Direction::Forward };
                own.insert(Link::new(crate::graph::RelationId(id), direction), weights);
            }
        }
        let general = [recipe.general, recipe.general_head.unwrap_or(recipe.general)];
        Self { members, graph: Arc::clone(graph), general, own }
    }

    fn weights(&self, link: Link) -> BlendWeights {
        let general = self.general[usize::from(link.direction() == Direction::Inverse)];
        self.own.get(&link).copied().unwrap_or(general)
    }

    fn scored(&self, query: Query, seen: &[Seen]) -> Vec<Scored> {
        let weights = self.weights(query.link);
        seen.iter().map(|one| Scored { entity: one.entity, score: one.score(weights) }).collect()
    }

    /// What each member says about the candidates of rules and walker.
    fn seen(&self, queries: &[Query]) -> Result<Vec<Vec<Seen>>, ReasonerError> {
        self.seen_beside(queries, &self.by_rules(queries), &self.walked(queries)?)
    }

    fn by_rules(&self, queries: &[Query]) -> Vec<Vec<RuleAnswer>> {
        match &self.members.rules {
            Some(rules) => rules.ranked(queries),
            None => vec![Vec::new(); queries.len()],
        }
    }

    fn walked(&self, queries: &[Query]) -> Result<Vec<Vec<walk::WalkedAnswer>>, ReasonerError> {
        match &self.members.walker {
            Some(walker) => walker.walked(queries),
            None => Ok(vec![Vec::new(); queries.len()]),
        }
    }

    /// What each member says, if rules and walker give these answers to each of `queries`.
    fn seen_beside(
        &self,
        queries: &[Query],
        by_rules: &[Vec<RuleAnswer>],
        walked: &[Vec<walk::WalkedAnswer>],
    ) -> Result<Vec<Vec<Seen>>, ReasonerError> {
        let embedding = &self.members.embedding;
        // The embedding's scores of all entities exist for one of its batches at a time.
        let at_once = embedding.as_ref().map_or(queries.len(), |embedding| embedding.batch()).max(1);
        let mut all = Vec::with_capacity(queries.len());
        for (part, batch) in queries.chunks(at_once).enumerate() {
            let scores = embedding.as_ref().map(|embedding| embedding.scores(batch)).transpose()?;
            let rows = (0..batch.len()).into_par_iter().map(|row| {
                let query = part * at_once + row;
                let scores = scores.as_ref().map(|scores| {
                    let entities = scores.len() / batch.len();
                    &scores[row * entities..(row + 1) * entities]
                });
                seen(&by_rules[query], &walked[query], scores.unwrap_or_default())
            });
            all.par_extend(rows);
        }
        Ok(all)
    }

    /// Finds the weights by which the answers of the validation split rank best. `truth` are the known answers.
    ///
    /// # Errors
    /// If one of the reasoners fails or the user interrupts.
    pub fn fit(
        &self,
        valid: &[Triple],
        truth: &Adjacency,
        names: &Names,
        progress: &dyn Progress,
    ) -> Result<Recipe, EvalError> {
        let asked: Vec<(Query, EntityId)> = Side::Both.asked(valid).collect();
        let queries: Vec<Query> = asked.iter().map(|(query, _)| *query).collect();
        let choices = self.choices();
        let mut gains: BTreeMap<Link, Gain> = BTreeMap::new();
        progress.begin("blending", "queries", Some(queries.len() as u64));
        let mut done = 0;
        let at_once = self.batch().min(FITTED_AT_ONCE);
        for (batch, asked) in queries.chunks(at_once).zip(asked.chunks(at_once)) {
            if progress.interrupted() {
                return Err(EvalError::Interrupted);
            }
            // Weights from some of the queries are better than none.
            if done > 0 && progress.time_is_up() {
                break;
            }
            done += batch.len();
            let seen = self.seen(batch).map_err(EvalError::Reasoner)?;
            let ranked: Vec<(Link, Vec<f64>)> = seen
                .par_iter()
                .zip(asked)
                .map(|(seen, &(query, target))| {
                    let open =
                        |entity| entity == target || !truth.contains(query.subject, query.link, entity);
                    let seen: Vec<Seen> = seen.iter().filter(|one| open(one.entity)).copied().collect();
                    let brought = |&weights: &BlendWeights| reciprocal_rank(&seen, target, weights);
                    (query.link, choices.iter().map(brought).collect())
                })
                .collect();
            for (link, reciprocal) in ranked {
                gains.entry(link).or_default().add(&reciprocal);
            }
            progress.advance(done as u64, &"");
        }
        let recipe = recipe(&gains, &choices, self.general[0], names);
        progress.end(&self.spoken(recipe.general));
        Ok(recipe)
    }

    /// The weights that are tried: those that give nothing to who does not speak.
    fn choices(&self) -> Vec<BlendWeights> {
        let Members { rules, walker, embedding } = &self.members;
        let allowed = |weights: &BlendWeights| {
            (rules.is_some() || weights.rules == 0.0)
                && (walker.is_some() || weights.walker == 0.0)
                && (embedding.is_some() || weights.embedding == 0.0)
        };
        grid().filter(allowed).collect()
    }

    /// What `weights` give to those who speak.
    fn spoken(&self, weights: BlendWeights) -> String {
        let Members { rules, walker, embedding } = &self.members;
        let said = [
            rules.as_ref().map(|_| format!("rules {}", weights.rules)),
            walker.as_ref().map(|_| format!("walker {}", weights.walker)),
            embedding.as_ref().map(|_| format!("embedding {}", weights.embedding)),
        ];
        said.into_iter().flatten().collect::<Vec<String>>().join(", ")
    }
}

/// What each reasoner says about every answer of `by_rules` and `walked`, `scores` being the embedding's, if it has any.
fn seen(by_rules: &[RuleAnswer], walked: &[walk::WalkedAnswer], scores: &[f32]) -> Vec<Seen> {
    let highest = scores.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    let sum: f64 = scores.iter().map(|&score| f64::from(score - highest).exp()).sum();
    let embedding = |entity: EntityId| {
        scores.get(entity.index()).map_or(0.0, |&score| f64::from(score - highest) - sum.ln())
    };
    let all: f64 = walked.iter().map(|answer| f64::from(answer.score).exp()).sum();
    let mut found: BTreeMap<EntityId, Seen> = BTreeMap::new();
    let absent = |entity: EntityId| Seen {
        entity,
        rule: None,
        rules: ABSENT.ln(),
        walker: ABSENT.ln(),
        embedding: embedding(entity).max(4.0 * ABSENT.ln()),
    };
    for RuleAnswer { scored, rule } in by_rules.iter().filter(|ranked| ranked.scored.score > UNPREDICTED) {
        let seen = found.entry(scored.entity).or_insert_with(|| absent(scored.entity));
        (seen.rules, seen.rule) = (scored.score.max(ABSENT).ln(), *rule);
    }
    for answer in walked {
        let share = f64::from(answer.score).exp() / all.max(f64::MIN_POSITIVE);
        found.entry(answer.entity).or_insert_with(|| absent(answer.entity)).walker = share.max(ABSENT).ln();
    }
    found.into_values().collect()
}

/// All weights that add up to 1, in steps of a part.
fn grid() -> impl Iterator<Item = BlendWeights> {
    (0..=PARTS).flat_map(|rules| {
        (0..=PARTS - rules).map(move |walker| {
            let part = |parts: u32| f64::from(parts) / f64::from(PARTS);
            BlendWeights { rules: part(rules), walker: part(walker), embedding: part(PARTS - rules - walker) }
        })
    })
}

/// 1 / rank of the target among `seen`, ties in the middle; 0 if it is not there.
fn reciprocal_rank(seen: &[Seen], target: EntityId, weights: BlendWeights) -> f64 {
    let Some(own) = seen.iter().find(|one| one.entity == target).map(|one| one.score(weights)) else {
        return 0.0;
    };
    let (mut above, mut beside) = (0.0, -1.0);
    for one in seen {
        let score = one.score(weights);
        above += f64::from(u8::from(score > own));
        beside += f64::from(u8::from(score == own));
    }
    1.0 / (1.0 + above + 0.5 * beside)
}

/// What each choice of weights brought over some queries.
#[derive(Clone, Debug, Default)]
struct Gain {
    /// The sum of 1 / rank, for each choice of the grid.
    sums: Vec<f64>,
    queries: f64,
}

impl Gain {
    fn add(&mut self, reciprocal: &[f64]) {
        self.add_part(&Gain { sums: reciprocal.to_vec(), queries: 1.0 }, 1.0);
    }

    fn add_part(&mut self, other: &Gain, part: f64) {
        self.sums.resize(other.sums.len().max(self.sums.len()), 0.0);
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, gain)| *sum += part * gain);
        self.queries += part * other.queries;
    }

    /// Which of `choices` brought most, of equals the first; `given` if nothing brought anything.
    fn best(&self, choices: &[BlendWeights], given: BlendWeights) -> BlendWeights {
        let mut best = (0.0, given);
        for (&weights, &sum) in choices.iter().zip(&self.sums) {
            if sum > best.0 {
                best = (sum, weights);
            }
        }
        best.1
    }
}

/// The best weights over all queries of each direction, and for each link those that its own queries and [`PULL`] of
/// all others of its direction like best together.
fn recipe(
    gains: &BTreeMap<Link, Gain>,
    choices: &[BlendWeights],
    given: BlendWeights,
    names: &Names,
) -> Recipe {
    let mut recipe = Recipe::of(given);
    for (direction, side) in [(Direction::Forward, "tail"), (Direction::Inverse, "head")] {
        let gains = gains.iter().filter(|(link, _)| link.direction() == direction);
        let mut all = Gain::default();
        gains.clone().for_each(|(_, gain)| all.add_part(gain, 1.0));
        match direction {
            Direction::Forward => recipe.general = all.best(choices, given),
            Direction::Inverse => recipe.general_head = Some(all.best(choices, given)),
        }
        for (link, own) in gains {
            let Some(relation) = link.relation() else { continue };
            let mut pulled = own.clone();
            pulled.add_part(&all, PULL / all.queries);
            let place = recipe.relations.entry(names.relation(relation).to_owned()).or_default();
            place.insert(side.to_owned(), pulled.best(choices, given));
        }
    }
    recipe
}

impl Reasoner for Blend {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let scored = |(query, seen): (&Query, Vec<Seen>)| self.scored(*query, &seen);
        Ok(Answers::Listed(queries.iter().zip(self.seen(queries)?).map(scored).collect()))
    }

    /// Rules leave facts out; the others do not.
    fn answer_for_fact(&self, query: Query, fact: EntityId) -> Result<Option<Vec<Scored>>, ReasonerError> {
        let Some(rules) = &self.members.rules else { return Ok(None) };
        let Some(by_rules) = rules.reasoner().answer_for_fact(query, fact)? else { return Ok(None) };
        let ranked = by_rules.into_iter().map(|scored| RuleAnswer { scored, rule: None }).collect();
        let seen = self.seen_beside(&[query], &[ranked], &self.walked(&[query])?)?.pop();
        Ok(seen.map(|seen| self.scored(query, &seen)))
    }

    /// What is seen of the answers of rules takes three times their memory.
    fn batch(&self) -> usize {
        let rules = self.members.rules.as_ref();
        rules.map_or(AT_ONCE, |rules| rules.reasoner().batch() / 3).clamp(16, AT_ONCE)
    }
}

impl Explains for Blend {
    fn reasoner(&self) -> &dyn Reasoner {
        self
    }

    fn search(&self, queries: &[Query], _at_least: usize) -> Result<Vec<Found>, ReasonerError> {
        let walked = self.walked(queries)?;
        let seen = self.seen_beside(queries, &self.by_rules(queries), &walked)?;
        let found = |((&query, seen), walked): ((&Query, Vec<Seen>), Vec<walk::WalkedAnswer>)| {
            let weights = self.weights(query.link);
            let mut walks: HashMap<EntityId, walk::WalkedAnswer> =
                walked.into_iter().map(|walk| (walk.entity, walk)).collect();
            let candidate = |one: &Seen| {
                let scored = Scored { entity: one.entity, score: one.score(weights) };
                (scored, Evidence { rule: one.rule, walk: walks.remove(&one.entity) })
            };
            Found { query, candidates: ranked(query, &self.graph, seen.iter().map(candidate)) }
        };
        Ok(queries.iter().zip(seen).zip(walked).map(found).collect())
    }

    /// The rules that predict it, then the walker's ways, for which places are kept.
    fn reasons(&self, query: Query, candidate: &Candidate, most: usize) -> Vec<Reasoned> {
        let Members { rules, walker, .. } = &self.members;
        let by_rules =
            rules.as_ref().map_or_else(Vec::new, |rules| rules.reasons_for(query, candidate, most));
        let (Some(walker), Some(walk)) = (walker, &candidate.evidence.walk) else { return by_rules };
        // Where one reason is enough and a rule has given it, the walk need not be looked at.
        if most == 1 && !by_rules.is_empty() {
            return by_rules;
        }
        let mut ways = walker.ways(query, walk);
        ways.truncate(most);
        ways.iter_mut().for_each(|way| way.score = candidate.score);
        together(by_rules, ways, most)
    }
}

/// At most `most` reasons: the best of the rules', then the walker's ways that are not among them. Of several places
/// the first is the rules' and the walker's ways have the last, so that an explanation shows both.
fn together(mut by_rules: Vec<Reasoned>, mut ways: Vec<Reasoned>, most: usize) -> Vec<Reasoned> {
    ways.retain(|way| by_rules.iter().all(|reason| reason.path != way.path));
    by_rules.truncate(most.saturating_sub(ways.len()).max(1));
    by_rules.extend(ways);
    by_rules.truncate(most);
    by_rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RelationId;
    use crate::reason::Hop;

    fn one(id: u32, rules: f64, walker: f64, embedding: f64) -> Seen {
        Seen {
            entity: EntityId(id),
            rule: None,
            rules: rules.ln(),
            walker: walker.ln(),
            embedding: embedding.ln(),
        }
    }

    #[test]
    fn the_grid_covers_the_corners() {
        let all: Vec<BlendWeights> = grid().collect();
        assert_eq!(all.len(), 66);
        for corner in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
            let [rules, walker, embedding] = corner;
            assert!(all.contains(&BlendWeights { rules, walker, embedding }));
        }
    }

    #[test]
    fn ranks_are_reciprocal_and_ties_in_the_middle() {
        let seen = [one(1, 0.9, 0.1, 0.1), one(2, 0.1, 0.9, 0.1), one(3, 0.1, 0.1, 0.1)];
        let by_rules = BlendWeights { rules: 1.0, walker: 0.0, embedding: 0.0 };
        assert_eq!(reciprocal_rank(&seen, EntityId(1), by_rules), 1.0);
        assert_eq!(reciprocal_rank(&seen, EntityId(2), by_rules), 1.0 / 2.5);
        assert_eq!(reciprocal_rank(&seen, EntityId(9), by_rules), 0.0);
    }

    #[test]
    fn a_relation_with_many_queries_gets_its_own_weights() {
        let names = Names { relations: ["a", "b"].into_iter().collect(), ..Names::default() };
        let choices: Vec<BlendWeights> = grid().collect();
        let likes = |wanted: &dyn Fn(&BlendWeights) -> bool| -> Vec<f64> {
            choices.iter().map(|weights| f64::from(u8::from(wanted(weights)))).collect()
        };
        let (rules, walker) = (likes(&|w| w.rules == 1.0), likes(&|w| w.walker == 1.0));
        let links = [Link::forward(RelationId(0)), Link::forward(RelationId(1))];
        let mut gains: BTreeMap<Link, Gain> = BTreeMap::new();
        (0..100).for_each(|_| gains.entry(links[0]).or_default().add(&rules));
        (0..3).for_each(|_| gains.entry(links[1]).or_default().add(&walker));
        let given = BlendWeights { rules: 0.4, walker: 0.3, embedding: 0.3 };
        let nothing = recipe(
            &BTreeMap::from([(links[0], Gain { sums: vec![0.0; 66], queries: 9.0 })]),
            &choices,
            given,
            &names,
        );
        assert_eq!((nothing.general, nothing.general_head), (given, Some(given)));
        let recipe = recipe(&gains, &choices, given, &names);
        assert_eq!(recipe.general.rules, 1.0);
        assert_eq!(recipe.relations["a"]["tail"].rules, 1.0);
        // Three queries cannot outvote thirty.
        assert_eq!(recipe.relations["b"]["tail"].rules, 1.0);
    }

    #[test]
    fn what_a_reasoner_does_not_give_counts_little() {
        let scored = |id, score| RuleAnswer { scored: Scored { entity: EntityId(id), score }, rule: Some(7) };
        // 2 is an entity that no rule predicts.
        let seen = seen(&[scored(0, 0.5), scored(2, 0.9 * UNPREDICTED)], &[], &[0.0, 1.0, 0.0]);
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].entity, seen[0].rules, seen[0].walker), (EntityId(0), 0.5f64.ln(), ABSENT.ln()));
        assert!(seen[0].embedding < 0.0);
    }
    #[test]
    fn an_explanation_has_places_for_both_rules_and_walks() {
        let reason = |relation: u32, scores: Option<[f64; 2]>| Reasoned {
            entity: EntityId(1),
            score: 0.5,
            start: EntityId(0),
            path: vec![Hop { link: Link::forward(RelationId(relation)), target: EntityId(1), scores }],
            rule: None,
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
