//! Fits the weights of a blend's members and features so that the right answers become likely.
//!
//! A candidate with features `x` scores `w · x`. The weights maximise the logarithm of the softmax over a query's
//! candidates at the right one, which is concave, so Newton's method finds the one best set. There is a common set for
//! tail queries and one for head queries. A relation has its own, shrunk towards the common one by a prior worth `κ`
//! queries; `κ` is chosen by cross-fitting: weights are judged by queries that they were not fitted to. With few queries
//! the common weights are held to the given ones in the same way ([`Hold`]).

use crate::config::MOST_FURTHER;
use crate::graph::Link;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// How many features a candidate has: those of the project's members and of the graph, and one for each further member.
pub(crate) const WIDTH: usize = OWN_FEATURES + MOST_FURTHER;
/// How many of them are always there.
const OWN_FEATURES: usize = 13;
/// The features of a candidate, or their weights.
pub(crate) type Features = [f64; WIDTH];

/// The most Newton steps; a handful is enough.
const STEPS: usize = 30;
/// Queries per partial sum. Fixed, so that the result does not depend on the threads.
const CHUNK: usize = 128;
/// Keeps the weight of a constant feature unchanged.
const RIDGE: f64 = 1e-6;
/// The values of `κ` that are tried; if infinity is best, relations have no weights of their own.
const PULLS: [f64; 4] = [f64::INFINITY, 100.0, 30.0, 10.0];
/// Parts for cross-fitting.
const FOLDS: usize = 3;
/// From so many queries on, common weights need no other support than that of one query.
const ENOUGH: usize = 150;
/// The values of [`Hold::strength`] that are tried with fewer.
const HOLDS: [f64; 5] = [30.0, 10.0, 3.0, 1.0, 0.3];

/// A query whose right answer is among its candidates.
#[derive(Clone, Debug)]
pub(crate) struct FitQuery {
    /// What was asked.
    pub link: Link,
    /// The features of each candidate.
    pub candidates: Vec<[f32; WIDTH]>,
    /// Which of them is right.
    pub target: usize,
}

impl FitQuery {
    fn score(&self, candidate: usize, weights: &Features) -> f64 {
        self.candidates[candidate].iter().zip(weights).map(|(&x, w)| f64::from(x) * w).sum()
    }

    /// 1 / rank of the right answer, ties in the middle.
    pub(crate) fn reciprocal_rank(&self, weights: &Features) -> f64 {
        let own = self.score(self.target, weights);
        let (mut above, mut beside) = (0.0, -1.0);
        for candidate in 0..self.candidates.len() {
            let score = self.score(candidate, weights);
            above += f64::from(u8::from(score > own));
            beside += f64::from(u8::from(score == own));
        }
        1.0 / (1.0 + above + 0.5 * beside)
    }
}

/// How strongly common weights are held to the given ones.
///
/// With few queries there are features by which all right answers can be told from the others, such as one that only two
/// candidates have, and nothing in the likelihood bounds their weights. So weights are also held by the scale of their
/// features, a quarter of the range among the candidates of a query: at strength 1, a weight that moves candidates apart by
/// two more than the given one costs as much as one query that is missed by two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hold {
    /// Its strength, in queries.
    strength: f64,
    /// Whether the scale of features counts.
    scaled: bool,
}

impl Hold {
    /// That of many queries.
    const LIGHT: Hold = Hold { strength: 1.0, scaled: false };

    /// The strength whose weights make the right answers of other queries likeliest; ties go to the strongest.
    pub(crate) fn of(queries: &[FitQuery], given: &Features) -> Self {
        if queries.len() >= ENOUGH || queries.len() < FOLDS {
            return Self::LIGHT;
        }
        let held_out = |&strength: &f64| {
            let hold = Hold { strength, scaled: true };
            let of_fold = |fold: usize| {
                let part = |apart: bool| -> Vec<&FitQuery> {
                    let places = (0..queries.len()).filter(|at| (at % FOLDS == fold) == apart);
                    places.map(|at| &queries[at]).collect()
                };
                Local::of(&part(true), &fit_common(&part(false), given, hold)).value
            };
            (0..FOLDS).map(of_fold).sum::<f64>()
        };
        let likely: Vec<f64> = HOLDS.iter().map(held_out).collect();
        let best = (0..HOLDS.len()).fold(0, |best, at| if likely[at] > likely[best] { at } else { best });
        Hold { strength: HOLDS[best], scaled: true }
    }

    /// The metric in which weights are held, per query.
    fn metric(self, queries: &[&FitQuery], weights: &Features) -> [Features; WIDTH] {
        let mut metric = mean_curvature(queries, weights);
        if self.scaled {
            scales(queries).into_iter().enumerate().for_each(|(at, scale)| metric[at][at] += scale);
        }
        metric
    }
}

/// The square of a quarter of each feature's range, on average over the queries whose candidates differ in it.
fn scales(queries: &[&FitQuery]) -> Features {
    std::array::from_fn(|at| {
        let range = |query: &&FitQuery| {
            let values = query.candidates.iter().map(|candidate| candidate[at]);
            let ends = values.fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], value| {
                [low.min(value), high.max(value)]
            });
            f64::from(ends[1] - ends[0]).max(0.0)
        };
        let ranges: Vec<f64> = queries.iter().map(range).filter(|range| *range > 0.0).collect();
        ranges.iter().map(|range| (range / 4.0).powi(2)).sum::<f64>() / ranges.len().max(1) as f64
    })
}

/// The prior of a fit: `½ κ (w − w₀)ᵀ F (w − w₀)`.
struct Prior<'a> {
    weights: &'a Features,
    /// The mean curvature per query, the metric of the distance.
    curvature: &'a [Features; WIDTH],
    /// Its strength, in queries.
    pull: f64,
}

/// Log-likelihood, gradient and curvature of some queries at some weights.
#[derive(Clone)]
struct Local {
    value: f64,
    gradient: Features,
    curvature: [Features; WIDTH],
}

impl Local {
    const NONE: Local = Local { value: 0.0, gradient: [0.0; WIDTH], curvature: [[0.0; WIDTH]; WIDTH] };

    fn of(queries: &[&FitQuery], weights: &Features) -> Local {
        let parts: Vec<Local> = queries
            .par_chunks(CHUNK)
            .map(|chunk| {
                let mut sum = Local::NONE;
                chunk.iter().for_each(|query| sum.add_query(query, weights));
                sum
            })
            .collect();
        parts.into_iter().fold(Local::NONE, |mut all, part| {
            all.value += part.value;
            for (i, row) in part.curvature.iter().enumerate() {
                all.gradient[i] += part.gradient[i];
                row.iter().zip(&mut all.curvature[i]).for_each(|(x, sum)| *sum += x);
            }
            all
        })
    }

    fn add_query(&mut self, query: &FitQuery, weights: &Features) {
        let scores: Vec<f64> = (0..query.candidates.len()).map(|at| query.score(at, weights)).collect();
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - highest).exp()).sum();
        let (mut mean, mut square) = ([0.0; WIDTH], [[0.0; WIDTH]; WIDTH]);
        for (score, candidate) in scores.iter().zip(&query.candidates) {
            let probability = (score - highest).exp() / total;
            for i in 0..WIDTH {
                let weighted = probability * f64::from(candidate[i]);
                mean[i] += weighted;
                for j in 0..=i {
                    square[i][j] += weighted * f64::from(candidate[j]);
                }
            }
        }
        self.value += scores[query.target] - highest - total.ln();
        let right = &query.candidates[query.target];
        for i in 0..WIDTH {
            self.gradient[i] += f64::from(right[i]) - mean[i];
            for j in 0..=i {
                let covariance = square[i][j] - mean[i] * mean[j];
                self.curvature[i][j] += covariance;
                if i != j {
                    self.curvature[j][i] += covariance;
                }
            }
        }
    }

    /// Subtracts the prior's penalty at `weights`.
    fn held_to(mut self, prior: &Prior<'_>, weights: &Features) -> Local {
        for i in 0..WIDTH {
            let away = weights[i] - prior.weights[i];
            let mut force = RIDGE * away;
            for (j, (weight, held_to)) in weights.iter().zip(prior.weights).enumerate() {
                let held = prior.pull * prior.curvature[i][j];
                force += held * (weight - held_to);
                self.curvature[i][j] += held;
            }
            self.gradient[i] -= force;
            self.value -= 0.5 * away * force;
            self.curvature[i][i] += RIDGE;
        }
        self
    }
}

/// The weights that maximise the penalised likelihood of `queries`.
fn newton(queries: &[&FitQuery], prior: &Prior<'_>) -> Features {
    let mut weights = *prior.weights;
    let mut here = Local::of(queries, &weights).held_to(prior, &weights);
    for _ in 0..STEPS {
        let Some(direction) = solve(here.curvature, here.gradient) else { return weights };
        let gain: f64 = direction.iter().zip(&here.gradient).map(|(d, g)| d * g).sum();
        if gain < 1e-9 * (1.0 + here.value.abs()) {
            return weights;
        }
        // The step is halved until the likelihood rises: far from the optimum a full Newton step overshoots.
        let better = (0..20).find_map(|halvings| {
            let part = 0.5f64.powi(halvings);
            let there: Features = std::array::from_fn(|i| weights[i] + part * direction[i]);
            let local = Local::of(queries, &there).held_to(prior, &there);
            (local.value > here.value).then_some((there, local))
        });
        match better {
            Some((there, local)) => (weights, here) = (there, local),
            None => return weights,
        }
    }
    weights
}

/// The solution of `matrix · x = right` for a positive definite matrix, by Cholesky; `None` if it is not.
fn solve(matrix: [Features; WIDTH], right: Features) -> Option<Features> {
    let mut lower = [[0.0; WIDTH]; WIDTH];
    for i in 0..WIDTH {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = matrix[i][j] - known;
            lower[i][j] = if i == j { (rest > 0.0).then(|| rest.sqrt())? } else { rest / lower[j][j] };
        }
    }
    let mut x = right;
    for i in 0..WIDTH {
        let known: f64 = (0..i).map(|k| lower[i][k] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i][i];
    }
    for i in (0..WIDTH).rev() {
        let known: f64 = (i + 1..WIDTH).map(|k| lower[k][i] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i][i];
    }
    Some(x)
}

/// Weights for queries of one direction: the common ones, and those of the links that have their own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FittedWeights {
    /// For links without weights of their own.
    pub common: Features,
    /// By link.
    pub own: BTreeMap<Link, Features>,
}

/// Fits weights to `queries`, all of one direction, beginning from `given`.
pub(crate) fn fit(queries: &[FitQuery], given: &Features) -> FittedWeights {
    let all: Vec<&FitQuery> = queries.iter().collect();
    let hold = Hold::of(queries, given);
    let common = fit_common(&all, given, hold);
    let mut links: BTreeMap<Link, Vec<&FitQuery>> = BTreeMap::new();
    all.iter().for_each(|query| links.entry(query.link).or_default().push(query));
    let pull = best_pull(&all, &links, given, hold);
    let curvature = hold.metric(&all, &common);
    let own = |(link, queries): (Link, Vec<&FitQuery>)| {
        let prior = Prior { weights: &common, curvature: &curvature, pull };
        pull.is_finite().then(|| (link, newton(&queries, &prior)))
    };
    FittedWeights { common, own: links.into_iter().filter_map(own).collect() }
}

/// The weights that fit all `queries`, of any direction and of many graphs, beginning from `given`.
pub(crate) fn fit_together(queries: &[FitQuery], given: &Features) -> Features {
    fit_common(&queries.iter().collect::<Vec<&FitQuery>>(), given, Hold::of(queries, given))
}

/// Weights common to all, held to `given`.
fn fit_common(queries: &[&FitQuery], given: &Features, hold: Hold) -> Features {
    let curvature = hold.metric(queries, given);
    newton(queries, &Prior { weights: given, curvature: &curvature, pull: hold.strength })
}

fn mean_curvature(queries: &[&FitQuery], weights: &Features) -> [Features; WIDTH] {
    let count = queries.len().max(1) as f64;
    Local::of(queries, weights).curvature.map(|row| row.map(|x| x / count))
}

/// The `κ` whose weights rank held-out queries best; ties go to the strongest.
fn best_pull(all: &[&FitQuery], links: &BTreeMap<Link, Vec<&FitQuery>>, given: &Features, hold: Hold) -> f64 {
    let mut gains = [0.0; PULLS.len()];
    for fold in 0..FOLDS {
        let kept = |queries: &[&FitQuery], apart: bool| -> Vec<usize> {
            (0..queries.len()).filter(|at| (at % FOLDS == fold) == apart).collect()
        };
        let fitted: Vec<&FitQuery> = kept(all, false).into_iter().map(|at| all[at]).collect();
        let common = fit_common(&fitted, given, hold);
        let curvature = hold.metric(&fitted, &common);
        for queries in links.values() {
            let learnt: Vec<&FitQuery> = kept(queries, false).into_iter().map(|at| queries[at]).collect();
            let apart = kept(queries, true);
            for (gain, &pull) in gains.iter_mut().zip(&PULLS) {
                let weights = match pull.is_finite() && !learnt.is_empty() {
                    true => newton(&learnt, &Prior { weights: &common, curvature: &curvature, pull }),
                    false => common,
                };
                *gain += apart.iter().map(|&at| queries[at].reciprocal_rank(&weights)).sum::<f64>();
            }
        }
    }
    let best = (0..PULLS.len()).fold(0, |best, at| if gains[at] > gains[best] { at } else { best });
    PULLS[best]
}

/// How much MRR some features add to the others, measured on queries that the weights were not fitted to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Added {
    /// The mean over all queries.
    pub mrr: f64,
    /// Its standard error.
    pub error: f64,
}

impl Added {
    /// From the gain of each query.
    fn of(gains: &[f64]) -> Self {
        let count = gains.len().max(1) as f64;
        let mrr = gains.iter().sum::<f64>() / count;
        let spread = gains.iter().map(|gain| (gain - mrr).powi(2)).sum::<f64>() / count;
        Self { mrr, error: (spread / count).sqrt() }
    }

    /// Whether the others rank better without these features, by more than the standard error.
    pub(crate) fn harms(&self) -> bool {
        self.mrr < -self.error
    }
}

/// The queries of a direction, and what weights fitted to them are held to.
#[derive(Clone, Copy)]
pub(crate) struct Held<'a> {
    pub queries: &'a [FitQuery],
    pub given: &'a Features,
    pub hold: Hold,
}

/// What the features at `places` add, over the queries of all `directions`.
pub(crate) fn added_by(directions: &[Held<'_>], places: &[usize]) -> Added {
    let mut gains = Vec::new();
    for &Held { queries, given, hold } in directions {
        let without = leaving_out(queries, places);
        let [with, without] = [queries, without.as_slice()].map(|queries| cross_fitted(queries, given, hold));
        gains.extend(with.iter().zip(without).map(|(with, without)| with - without));
    }
    Added::of(&gains)
}

/// The same queries without the features at `places`.
pub(crate) fn leaving_out(queries: &[FitQuery], places: &[usize]) -> Vec<FitQuery> {
    let mut all = queries.to_vec();
    for row in all.iter_mut().flat_map(|query| &mut query.candidates) {
        places.iter().for_each(|&at| row[at] = 0.0);
    }
    all
}

/// 1 / rank of each query by common weights that were fitted without its fold, fold by fold.
fn cross_fitted(queries: &[FitQuery], given: &Features, hold: Hold) -> Vec<f64> {
    let mut ranks = Vec::with_capacity(queries.len());
    for fold in 0..FOLDS {
        let fitted: Vec<&FitQuery> =
            queries.iter().enumerate().filter(|(at, _)| at % FOLDS != fold).map(|(_, query)| query).collect();
        let weights = fit_common(&fitted, given, hold);
        let apart: Vec<&FitQuery> = queries.iter().skip(fold).step_by(FOLDS).collect();
        ranks.par_extend(apart.par_iter().map(|query| query.reciprocal_rank(&weights)));
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RelationId;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Queries whose right answer is drawn from the softmax of `truth · x`.
    fn drawn(truth: &Features, link: Link, count: usize, seed: u64) -> Vec<FitQuery> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut query = || {
            let mut row =
                || std::array::from_fn(|i| if i < 4 { random.random_range(-2.0..2.0) } else { 0.0 });
            let candidates: Vec<[f32; WIDTH]> = (0..12).map(|_| row()).collect();
            let mut judged = FitQuery { link, candidates, target: 0 };
            let odds: Vec<f64> = (0..12).map(|at| judged.score(at, truth).exp()).collect();
            let mut left = random.random_range(0.0..odds.iter().sum());
            judged.target = odds
                .iter()
                .position(|odds| {
                    left -= odds;
                    left < 0.0
                })
                .unwrap_or(11);
            judged
        };
        (0..count).map(|_| query()).collect()
    }

    fn row(first: [f64; 4]) -> Features {
        std::array::from_fn(|i| first.get(i).copied().unwrap_or(0.0))
    }

    fn held<'a>(queries: &'a [FitQuery], given: &'a Features) -> Held<'a> {
        Held { queries, given, hold: Hold::LIGHT }
    }

    #[test]
    fn few_queries_do_not_send_weights_far_away() {
        let link = Link::forward(RelationId(0));
        // One feature says something. Another is by chance that of the right answer alone, in two queries.
        let mut queries = drawn(&row([1.0, 0.0, 0.0, 0.0]), link, 25, 31);
        for query in queries.iter_mut().step_by(12).take(2) {
            query.candidates[query.target][5] = 1.0;
        }
        let given = row([0.4, 0.3, 0.3, 0.3]);
        let fitted = fit(&queries, &given);
        let size = |weights: &Features| weights.iter().map(|weight| weight.abs()).fold(0.0, f64::max);
        assert!(size(&fitted.common) < 5.0, "{fitted:?}");
        assert!(fitted.own.values().all(|own| size(own) < 8.0), "{fitted:?}");
        assert!(fitted.common[0] > 0.4, "what says something is still found: {fitted:?}");
        // Nothing is known of many queries: then the strongest hold would only be in the way.
        assert_eq!(Hold::of(&drawn(&row([1.0; 4]), link, ENOUGH, 32), &given), Hold::LIGHT);
    }

    #[test]
    fn the_weights_that_made_the_answers_are_found() {
        let truth = row([1.0, -0.5, 0.0, 2.0]);
        let queries = drawn(&truth, Link::forward(RelationId(0)), 4000, 1);
        let found = fit(&queries, &row([0.3, 0.3, 0.3, 0.3])).common;
        for (found, truth) in found.iter().zip(&truth).take(4) {
            assert!((found - truth).abs() < 0.12, "{found} {truth}");
        }
        assert!(found[4..].iter().all(|weight| *weight == 0.0), "what never differs stays where it was");
    }

    #[test]
    fn the_gradient_is_that_of_the_likelihood() {
        let queries = drawn(&row([1.0, 1.0, 0.0, 0.0]), Link::forward(RelationId(0)), 20, 2);
        let queries: Vec<&FitQuery> = queries.iter().collect();
        let at = row([0.2, -0.1, 0.5, 0.3]);
        let local = Local::of(&queries, &at);
        for i in 0..4 {
            let moved = |by: f64| std::array::from_fn(|j| if i == j { at[j] + by } else { at[j] });
            let derivative =
                (Local::of(&queries, &moved(1e-5)).value - Local::of(&queries, &moved(-1e-5)).value) / 2e-5;
            assert!((derivative - local.gradient[i]).abs() < 1e-4, "{derivative} {}", local.gradient[i]);
            for j in 0..4 {
                let change = Local::of(&queries, &moved(1e-5)).gradient[j] - local.gradient[j];
                assert!((change / 1e-5 + local.curvature[i][j]).abs() < 1e-2);
            }
        }
    }

    #[test]
    fn a_relation_of_its_own_kind_gets_its_own_weights_and_a_small_one_is_held() {
        let [a, b, c] = [0, 1, 2].map(|relation| Link::forward(RelationId(relation)));
        let mut queries = drawn(&row([2.0, 0.0, 0.0, 0.0]), a, 1500, 3);
        queries.extend(drawn(&row([0.0, 2.0, 0.0, 0.0]), b, 1500, 4));
        queries.extend(drawn(&row([1.0, 1.0, 0.0, 0.0]), c, 4, 5));
        let fitted = fit(&queries, &row([0.5; 4]));
        assert!(fitted.own[&a][0] > 1.5 && fitted.own[&a][1] < 0.4, "{fitted:?}");
        assert!(fitted.own[&b][1] > 1.5 && fitted.own[&b][0] < 0.4, "{fitted:?}");
        let away = |weights: &Features| (0..2).map(|i| (weights[i] - fitted.common[i]).abs()).sum::<f64>();
        assert!(away(&fitted.own[&c]) < 0.5 * away(&fitted.own[&a]), "{fitted:?}");
    }

    #[test]
    fn relations_alike_share_their_weights() {
        let truth = row([1.0, 0.5, 0.0, 0.0]);
        let links = (0..40).map(|relation| Link::forward(RelationId(relation)));
        let queries: Vec<FitQuery> =
            links.flat_map(|link| drawn(&truth, link, 6, 7 + link.0 as u64)).collect();
        let fitted = fit(&queries, &row([0.5; 4]));
        let far = fitted.own.values().map(|own| (own[0] - fitted.common[0]).abs()).fold(0.0, f64::max);
        assert!(far < 0.4, "{far}");
    }

    #[test]
    fn what_says_nothing_adds_nothing() {
        let truth = row([1.5, 1.0, 0.0, 0.0]);
        let queries = drawn(&truth, Link::forward(RelationId(0)), 2000, 9);
        let given = row([0.3; 4]);
        let adds = |places: &[usize]| added_by(&[held(&queries, &given)], places);
        assert!(adds(&[0]).mrr > 0.1 && adds(&[1]).mrr > 0.05, "{:?} {:?}", adds(&[0]), adds(&[1]));
        assert!(adds(&[2, 3]).mrr.abs() < 0.005, "{:?}", adds(&[2, 3]));
        assert!(adds(&[0]).error < 0.01 && !adds(&[0]).harms());
        assert_eq!(added_by(&[held(&[], &given)], &[0]), Added::default());
    }

    #[test]
    fn what_leads_astray_harms() {
        let link = Link::forward(RelationId(0));
        // In one fold the second feature has the opposite sign from the others.
        let folds = [2.0, -1.0, -1.0].map(|says| drawn(&row([1.5, says, 0.0, 0.0]), link, 500, 12));
        let queries: Vec<FitQuery> =
            (0..500).flat_map(|at| folds.iter().map(move |fold| fold[at].clone())).collect();
        let given = row([0.3; 4]);
        let adds = |places: &[usize]| added_by(&[held(&queries, &given)], places);
        assert!(adds(&[1]).harms() && adds(&[1]).mrr < -0.02, "{:?}", adds(&[1]));
        assert!(!adds(&[0]).harms());
        assert_eq!(added_by(&[held(&leaving_out(&queries, &[1]), &given)], &[1]), Added::default());
    }

    #[test]
    fn without_queries_the_given_weights_stay() {
        let given = row([0.4, 0.3, 0.3, 0.0]);
        assert_eq!(fit(&[], &given), FittedWeights { common: given, own: BTreeMap::new() });
    }
}
