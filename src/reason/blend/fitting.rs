//! Fitting the weights of a blend to the validation split.

use super::super::fit::{Added, FitQuery, Held, Hold, WIDTH, added_by, fit, leaving_out};
use super::super::recipe::{EMBEDDING, FeatureWeights, RELATIONS, Recipe, TYPES, score};
use super::{Blend, Seen};
use crate::eval::{EvalError, Reasoner, Side};
use crate::graph::{Adjacency, Direction, EntityId, Link, Names, Query, RelationId, Triple, spread_places};
use crate::progress::{Progress, Silent};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The most validation queries that are answered at once.
const FITTED_AT_ONCE: usize = 512;
/// The most candidates per query for fitting: the right one and the best of the others.
const FITTED_CANDIDATES: usize = 128;
/// A member that adds less MRR than this adds nothing: the gain is within the noise of a few thousand queries.
const ADDS_NOTHING: f64 = 5e-4;
/// The directions in the order of the weights: tail queries, then head queries.
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Inverse];
/// What the kinds of candidates are called beside the members.
const KINDS: &str = "types";
/// With fewer queries than this the given weights are used.
const FEWEST: usize = 20;

impl Blend {
    /// Fits the weights that rank the answers of the validation split best. `truth` are the known answers,
    /// `negatives` facts that are known to be false, ascending. If only members
    /// whose reasons are exact may rank (`explained`), the embedding model gets no weight.
    ///
    /// # Errors
    /// If one of the members fails or the user interrupts.
    pub fn fit(
        &self,
        valid: &[Triple],
        (truth, negatives): (&Adjacency, &[Triple]),
        names: &Names,
        explained: bool,
        progress: &dyn Progress,
    ) -> Result<Recipe, EvalError> {
        let asked: Vec<(Query, EntityId)> = Side::Both.asked(valid).collect();
        // In an order that meets all relations early: files are often sorted by relation, and time may be short.
        let order = spread_places(asked.len());
        let mut judged: [Vec<(usize, FitQuery)>; 2] = [Vec::new(), Vec::new()];
        progress.begin("blending", "queries", Some(asked.len() as u64));
        let mut done = 0;
        for places in order.chunks(self.batch().min(FITTED_AT_ONCE)) {
            if progress.interrupted() {
                return Err(EvalError::Interrupted);
            }
            // Weights from some of the queries are better than none.
            if done > 0 && progress.time_is_up() {
                break;
            }
            done += places.len();
            let batch: Vec<(Query, EntityId)> = places.iter().map(|&place| asked[place]).collect();
            let queries: Vec<Query> = batch.iter().map(|(query, _)| *query).collect();
            let seen = self.seen(&queries, &Silent).map_err(EvalError::Reasoner)?;
            let found: Vec<Option<FitQuery>> = seen
                .par_iter()
                .zip(batch)
                .map(|(seen, asked)| self.judged(seen, asked, (truth, negatives)))
                .collect();
            for (&place, one) in places.iter().zip(found) {
                let Some(one) = one else { continue };
                judged[usize::from(one.link.direction() == Direction::Inverse)].push((place, one));
            }
            progress.advance(done as u64, &"");
        }
        // The weights do not depend on the order of asking.
        let mut judged = judged.map(|mut queries| {
            queries.sort_unstable_by_key(|(place, _)| *place);
            queries.into_iter().map(|(_, query)| query).collect::<Vec<FitQuery>>()
        });
        let mut given = DIRECTIONS.map(|direction| *self.given(direction));
        let adds = self.without_harmful(&mut judged, &mut given, explained);
        let [tail, head] =
            [0, 1].map(|at| fit(if judged[at].len() < FEWEST { &[] } else { &judged[at] }, &given[at]));
        let mut recipe = Recipe::fitted(&tail, &head, names, &self.members.further_names());
        let named = |figure: fn(&Added) -> f64| {
            adds.iter().map(|(name, added)| ((*name).to_owned(), figure(added))).collect()
        };
        (recipe.adds, recipe.errors) = (named(|added| added.mrr), named(|added| added.error));
        progress.end(&self.shown(&recipe));
        Ok(recipe)
    }

    /// A validation query in the form that weights are fitted to, without its other true answers; `None` if its answer
    /// is not a candidate, since no weights could then rank it.
    pub(super) fn judged(
        &self,
        seen: &[Seen],
        (query, target): (Query, EntityId),
        (truth, negatives): (&Adjacency, &[Triple]),
    ) -> Option<FitQuery> {
        let weights = self.weights.of(query.link);
        let right = seen.iter().find(|one| one.entity == target)?;
        let open =
            |one: &&Seen| one.entity != target && !truth.contains(query.subject, query.link, one.entity);
        let mut others: Vec<&Seen> = seen.iter().filter(open).collect();
        // What is known to be false is always compared with, others if they are among the best.
        let is_denied = |one: &Seen| {
            let fact = query.fact(one.entity).filter(|_| !negatives.is_empty());
            fact.is_some_and(|fact| negatives.binary_search(&fact).is_ok())
        };
        others.sort_by(|a, b| {
            let by_score = || score(&b.features, weights).total_cmp(&score(&a.features, weights));
            is_denied(b).cmp(&is_denied(a)).then_with(by_score)
        });
        others.truncate(FITTED_CANDIDATES - 1);
        let candidates = std::iter::once(right).chain(others).map(|one| one.features).collect();
        Some(FitQuery { link: query.link, candidates, target: 0 })
    }

    /// What each member adds to the others, if there are others, over tail and head queries. Members that harm the
    /// ranking of the others are removed one at a time, the worst first: from `judged`, and with weight 0 in `given`. If
    /// answers have to be `explained`, the embedding model is removed before all.
    fn without_harmful(
        &self,
        judged: &mut [Vec<FitQuery>; 2],
        given: &mut [[f64; WIDTH]; 2],
        explained: bool,
    ) -> BTreeMap<&'static str, Added> {
        let mut parts = self.parts();
        let mut added = BTreeMap::new();
        let holds = [0, 1].map(|at| Hold::of(&judged[at], &given[at]));
        while parts.len() >= 2 && judged.iter().map(Vec::len).sum::<usize>() >= FEWEST {
            let directions =
                [0, 1].map(|at| Held { queries: judged[at].as_slice(), given: &given[at], hold: holds[at] });
            let adds: Vec<Added> = parts.iter().map(|(_, places)| added_by(&directions, places)).collect();
            // The remaining members add more once one is removed, so their gains are measured again.
            added.extend(parts.iter().map(|part| part.0).zip(adds.iter().copied()));
            let worst = (0..parts.len()).min_by(|&a, &b| adds[a].mrr.total_cmp(&adds[b].mrr));
            let inexact = parts.iter().position(|part| explained && part.1 == [EMBEDDING]);
            let Some(worst) = inexact.or(worst.filter(|&worst| adds[worst].harms())) else { break };
            let (_, places) = parts.remove(worst);
            for (queries, given) in judged.iter_mut().zip(&mut *given) {
                *queries = leaving_out(queries, &places);
                places.iter().for_each(|&at| given[at] = 0.0);
            }
        }
        added
    }

    /// The members and, if they count, the kinds of candidates, with their features.
    fn parts(&self) -> Vec<(&'static str, Vec<usize>)> {
        let kinds = self.kinds.is_some().then(|| (KINDS, vec![TYPES, RELATIONS]));
        self.members.features().into_iter().chain(kinds).collect()
    }

    /// The weights that were given for queries of a direction.
    fn given(&self, direction: Direction) -> &[f64; WIDTH] {
        self.weights.of(Link::new(RelationId(0), direction))
    }

    /// The weights that `recipe` gives to the members, and what each adds.
    fn shown(&self, recipe: &Recipe) -> String {
        let FeatureWeights { rules, walker, embedding, propagator, types, relations, further, .. } =
            &recipe.general;
        let weight = |name: &str| match name {
            "rules" => *rules,
            "walker" => *walker,
            "embedding" => *embedding,
            "propagator" => *propagator,
            KINDS => types.abs().max(relations.abs()),
            other => further.get(other).copied().unwrap_or(0.0),
        };
        let one = |(name, _): (&str, Vec<usize>)| match recipe.adds.get(name) {
            Some(&adds) if weight(name) == 0.0 && adds > 0.0 => {
                format!("{name} left out (would add {:.1} MRR)", 100.0 * adds)
            }
            Some(adds) if weight(name) == 0.0 => {
                format!("{name} left out (costs {:.1} MRR)", -100.0 * adds)
            }
            Some(&adds) if adds < ADDS_NOTHING => format!("{name} {:.2} (adds nothing)", weight(name)),
            Some(&adds) => format!("{name} {:.2} (adds {:.1} MRR)", weight(name), 100.0 * adds),
            None => format!("{name} {:.2}", weight(name)),
        };
        self.parts().into_iter().map(one).collect::<Vec<String>>().join(", ")
    }
}
