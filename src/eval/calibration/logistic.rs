//! A logistic regression with a few common features and, for every link, its own intercept and slope, which a penalty
//! shrinks to 0, towards what all links share.
//!
//! The weights of features with a prescribed sign keep it. Newton's method updates the common weights and the links
//! in turn; each step is halved until the loss falls, so the method always ends. Sums are taken in the order of the
//! observations: the same observations give the same weights to the last bit.

use super::features::{FEATURES, FeatureRow, ODDS, OWN, SIGNS};
use std::collections::BTreeMap;

/// The penalty on the common weights of standardised features.
const RIDGE: f64 = 1.0;
/// The maximum number of rounds.
const ROUNDS: usize = 30;
/// Stops when a round reduces the loss by less than this fraction.
const ENOUGH: f64 = 1e-7;
/// The index of the intercept.
const ONE: usize = FEATURES;
/// The number of common weights, including the intercept.
const ALL: usize = FEATURES + 1;

/// An observation, as the regression uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The standardised features.
    pub row: FeatureRow,
    /// Which link it belongs to, as a number from 0.
    pub link: usize,
    /// Whether it was true.
    pub is_true: bool,
    /// Its weight.
    pub weight: f64,
    /// How many false samples like this one are to be ignored. Together with the true sample itself, they add only a
    /// linear term to the loss, which stays convex.
    pub hidden: f64,
}

/// What a link adds: to the intercept, and to the weight of the common log-odds.
pub(crate) type Effect = [f64; 2];

/// The fitted weights.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weights {
    /// The weights of the features.
    pub common: FeatureRow,
    /// The intercept.
    pub intercept: f64,
    /// The effects of each link.
    pub links: Vec<Effect>,
}

impl Weights {
    /// The log-odds of a sample.
    pub(crate) fn log_odds(&self, row: &FeatureRow, link: Option<usize>) -> f64 {
        let common: f64 = self.common.iter().zip(row).map(|(weight, value)| weight * value).sum();
        let [intercept, slope] = link.map_or([0.0; 2], |link| self.links[link]);
        self.intercept + intercept + common + slope * row[ODDS]
    }
}

/// A sample's log-odds under the current weights.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// Its log-odds.
    odds: f64,
    /// `e^-|odds|`, from which both loss and share are computed: exponentials take most of the time here.
    rest: f64,
}

impl Standing {
    fn at(odds: f64) -> Self {
        Self { odds, rest: (-odds.abs()).exp() }
    }

    /// `-ln` of the probabilities of true and of false, without overflow.
    fn surprises(self) -> [f64; 2] {
        let both = self.rest.ln_1p();
        [(-self.odds).max(0.0) + both, self.odds.max(0.0) + both]
    }

    /// The probability of true.
    fn share(self) -> f64 {
        (if self.odds < 0.0 { self.rest } else { 1.0 }) / (1.0 + self.rest)
    }

    /// The gradient and curvature of the sample's loss by its log-odds.
    fn pressure(self, sample: &Sample) -> (f64, f64) {
        let share = self.share();
        let off = share - f64::from(u8::from(sample.is_true));
        let bend = (sample.weight - sample.hidden) * share * (1.0 - share);
        (sample.weight * off - sample.hidden * share, bend.max(1e-6))
    }
}

/// A point of the descent: the weights, each sample's log-odds under them, and the penalised loss.
struct Reached {
    weights: Weights,
    standings: Vec<Standing>,
    loss: f64,
}

impl Reached {
    fn by(weights: Weights, samples: &[Sample], pull: f64) -> Self {
        let mut standings = Vec::with_capacity(samples.len());
        let mut data = 0.0;
        for sample in samples {
            let standing = Standing::at(weights.log_odds(&sample.row, Some(sample.link)));
            let [of_true, of_false] = standing.surprises();
            data +=
                sample.weight * if sample.is_true { of_true } else { of_false } - sample.hidden * of_false;
            standings.push(standing);
        }
        let common: f64 = weights.common.iter().map(|weight| weight * weight).sum();
        let links: f64 = weights.links.iter().flatten().map(|effect| effect * effect).sum();
        let loss = data + 0.5 * RIDGE * common + 0.5 * pull * links;
        Self { weights, standings, loss }
    }

    /// Takes a step, halved until the loss is lower than before.
    fn step(&mut self, samples: &[Sample], pull: f64, take: impl Fn(&mut Weights, f64)) {
        for halved in 0..8 {
            let mut tried = self.weights.clone();
            take(&mut tried, 0.5f64.powi(halved));
            keep_slopes(&mut tried);
            let tried = Self::by(tried, samples, pull);
            if tried.loss < self.loss {
                *self = tried;
                return;
            }
        }
    }
}

/// Fits the weights to `samples` over `links` links; `pull` is the penalty on the links' own effects.
pub(crate) fn fit(samples: &[Sample], links: usize, pull: f64) -> Weights {
    let total: f64 = samples.iter().map(|sample| sample.weight).sum();
    let trues: f64 = samples.iter().filter(|sample| sample.is_true).map(|sample| sample.weight).sum();
    let weights = Weights {
        intercept: ((trues + 0.5) / (total - trues + 0.5)).ln(),
        links: vec![[0.0; 2]; links],
        ..Weights::default()
    };
    let mut reached = Reached::by(weights, samples, pull);
    for _ in 0..ROUNDS {
        let before = reached.loss;
        let step = common_step(&reached, samples);
        reached.step(samples, pull, |weights, part| {
            weights.common.iter_mut().zip(step).for_each(|(weight, step)| *weight += part * step);
            weights.intercept += part * step[ONE];
        });
        let steps = link_steps(&reached, samples, pull);
        reached.step(samples, pull, |weights, part| {
            for (effect, step) in weights.links.iter_mut().zip(&steps) {
                effect.iter_mut().zip(step).for_each(|(effect, step)| *effect += part * step);
            }
        });
        if before - reached.loss <= ENOUGH * before.abs() {
            break;
        }
    }
    reached.weights
}

/// No link may reverse the order of scores.
fn keep_slopes(weights: &mut Weights) {
    let lowest = -weights.common[ODDS];
    for effect in &mut weights.links {
        effect[1] = effect[1].max(lowest);
    }
}

/// Gradient and curvature of the loss with respect to the common weights, without the penalty.
struct Sums {
    gradient: [f64; ALL],
    curvature: [[f64; ALL]; ALL],
}

impl Sums {
    fn of(samples: &[Sample], standings: &[Standing]) -> Self {
        let mut sums = Self { gradient: [0.0; ALL], curvature: [[0.0; ALL]; ALL] };
        let mut at = 0;
        for answers in samples.chunk_by(|one, next| one.row[OWN..] == next.row[OWN..]) {
            sums.add(answers, &standings[at..at + answers.len()]);
            at += answers.len();
        }
        for i in 0..ALL {
            for j in 0..i {
                sums.curvature[i][j] = sums.curvature[j][i];
            }
        }
        sums
    }

    /// Adds answers of one query, which share all features but their own: the sums over the answers are taken first
    /// and multiplied by the shared features once. Fills only the upper triangle.
    fn add(&mut self, answers: &[Sample], standings: &[Standing]) {
        let (mut off, mut bend) = (0.0, 0.0);
        let (mut own_off, mut own_bend, mut own_both) = ([0.0; OWN], [0.0; OWN], [[0.0; OWN]; OWN]);
        for (sample, standing) in answers.iter().zip(standings) {
            let (off_here, bend_here) = standing.pressure(sample);
            off += off_here;
            bend += bend_here;
            for i in 0..OWN {
                let bent = bend_here * sample.row[i];
                own_off[i] += off_here * sample.row[i];
                own_bend[i] += bent;
                add_times(&mut own_both[i][i..], bent, &sample.row[i..OWN]);
            }
        }
        let mut shared = [1.0; ALL];
        shared[..FEATURES].copy_from_slice(&answers[0].row);
        for i in 0..OWN {
            self.gradient[i] += own_off[i];
            add_times(&mut self.curvature[i][i..OWN], 1.0, &own_both[i][i..]);
            add_times(&mut self.curvature[i][OWN..], own_bend[i], &shared[OWN..]);
        }
        for i in OWN..ALL {
            self.gradient[i] += off * shared[i];
            add_times(&mut self.curvature[i][i..], bend * shared[i], &shared[i..]);
        }
    }
}

/// Adds `factor` times `values` to `sums`.
fn add_times(sums: &mut [f64], factor: f64, values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

/// Newton's step for the common weights, within their sign constraints.
fn common_step(reached: &Reached, samples: &[Sample]) -> [f64; ALL] {
    let Sums { mut gradient, mut curvature } = Sums::of(samples, &reached.standings);
    for i in 0..FEATURES {
        gradient[i] += RIDGE * reached.weights.common[i];
        curvature[i][i] += RIDGE;
    }
    curvature[ONE][ONE] += 1e-9;
    bounded(&gradient, &curvature, &reached.weights.common)
}

/// The step that minimises `gradient·step + ½ step·curvature·step` and keeps every weight's sign, by repeated
/// coordinate descent.
fn bounded(gradient: &[f64; ALL], curvature: &[[f64; ALL]; ALL], common: &FeatureRow) -> [f64; ALL] {
    let mut step = [0.0f64; ALL];
    for _ in 0..500 {
        let mut moved = 0.0f64;
        for i in 0..ALL {
            let slope = gradient[i] + curvature[i].iter().zip(&step).map(|(bend, by)| bend * by).sum::<f64>();
            let mut to = step[i] - slope / curvature[i][i];
            if i < FEATURES {
                match SIGNS[i] {
                    1 => to = to.max(-common[i]),
                    -1 => to = to.min(-common[i]),
                    _ => {}
                }
            }
            moved = moved.max((to - step[i]).abs());
            step[i] = to;
        }
        if moved < 1e-9 {
            break;
        }
    }
    step
}

/// Newton's steps for the links, each from its own samples.
fn link_steps(reached: &Reached, samples: &[Sample], pull: f64) -> Vec<Effect> {
    // The gradient by intercept and slope, then the curvature: both diagonal entries and the one between them.
    let mut sums: Vec<[f64; 5]> = vec![[0.0; 5]; reached.weights.links.len()];
    for (sample, standing) in samples.iter().zip(&reached.standings) {
        let (off, bend) = standing.pressure(sample);
        let odds = sample.row[ODDS];
        let sum = &mut sums[sample.link];
        for (sum, more) in sum.iter_mut().zip([off, off * odds, bend, bend * odds, bend * odds * odds]) {
            *sum += more;
        }
    }
    let step = |(sum, [intercept, slope]): (&[f64; 5], &Effect)| {
        let (g, h) = (sum[0] + pull * intercept, sum[1] + pull * slope);
        let (a, b, c) = (sum[2] + pull, sum[3], sum[4] + pull);
        let scale = a * c - b * b;
        [-(c * g - b * h) / scale, -(a * h - b * g) / scale]
    };
    sums.iter().zip(&reached.weights.links).map(step).collect()
}

/// Numbers the keys from 0 in ascending order.
pub(crate) fn numbered<T: Ord + Copy>(keys: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut numbers: BTreeMap<T, usize> = keys.map(|key| (key, 0)).collect();
    numbers.values_mut().enumerate().for_each(|(number, place)| *place = number);
    numbers
}

#[cfg(test)]
mod tests {
    use super::super::features::share_of;
    use super::*;

    /// Samples of two links whose log-odds are `1.5 x - 0.5 ± 1`, without noise: each sample occurs with both
    /// outcomes, weighted by their probabilities.
    fn samples(strength: f64) -> Vec<Sample> {
        let mut all = Vec::new();
        for step in -20..=20 {
            let x = f64::from(step) / 10.0;
            for link in 0..2 {
                let share = share_of(1.5 * x - 0.5 + if link == 0 { 1.0 } else { -1.0 });
                let mut row = [0.0; FEATURES];
                row[ODDS] = x;
                let sample =
                    |is_true, weight| Sample { row, link, is_true, weight: strength * weight, hidden: 0.0 };
                all.extend([sample(true, share), sample(false, 1.0 - share)]);
            }
        }
        all
    }

    #[test]
    fn sums_over_the_answers_of_queries_are_those_over_samples() {
        // Three answers to each of ten queries, with features of their own and of the query.
        let feature = |query: usize, answer: usize, at: usize| {
            let place = if at < OWN { 31 * query + 7 * answer } else { 31 * query };
            ((place + 5 * at) % 17) as f64 / 8.5 - 1.0
        };
        let sample = |query: usize, answer: usize| {
            let row: FeatureRow = std::array::from_fn(|at| feature(query, answer, at));
            let (weight, hidden) = (1.0 + query as f64 / 3.0, answer as f64 / 4.0);
            Sample { row, link: 0, is_true: answer > 0, weight, hidden }
        };
        let samples: Vec<Sample> = (0..30).map(|at| sample(at / 3, at % 3)).collect();
        let standings: Vec<Standing> = (0..30).map(|at| Standing::at(f64::from(at) / 5.0 - 3.0)).collect();
        let sums = Sums::of(&samples, &standings);
        for i in 0..ALL {
            let value = |sample: &Sample, at: usize| if at == ONE { 1.0 } else { sample.row[at] };
            let both = || samples.iter().zip(&standings);
            let gradient: f64 = both().map(|(one, at)| at.pressure(one).0 * value(one, i)).sum();
            assert!((gradient - sums.gradient[i]).abs() < 1e-9, "{i}: {gradient}");
            for j in 0..ALL {
                let bend =
                    |(one, at): (&Sample, &Standing)| at.pressure(one).1 * value(one, i) * value(one, j);
                let curvature: f64 = both().map(bend).sum();
                assert!((curvature - sums.curvature[i][j]).abs() < 1e-9, "{i} {j}: {curvature}");
            }
        }
    }

    #[test]
    fn known_weights_are_found() {
        let weights = fit(&samples(1000.0), 2, 1.0);
        for (link, own) in [(0, 1.0), (1, -1.0)] {
            for x in [-1.0, 0.0, 2.0] {
                let mut row = [0.0; FEATURES];
                row[ODDS] = x;
                let found = weights.log_odds(&row, Some(link));
                assert!((found - (1.5 * x - 0.5 + own)).abs() < 0.01, "{x}: {found}");
            }
        }
    }

    #[test]
    fn a_strong_pull_leaves_links_what_they_have_in_common() {
        let weights = fit(&samples(1000.0), 2, 1e9);
        assert!(weights.links.iter().flatten().all(|effect| effect.abs() < 1e-3), "{weights:?}");
    }

    #[test]
    fn a_weight_keeps_its_sign_whatever_was_seen() {
        // Here a higher score is worse, which the sign constraint does not allow.
        let mut turned = samples(100.0);
        turned.iter_mut().for_each(|sample| sample.row[ODDS] *= -1.0);
        let weights = fit(&turned, 2, 1.0);
        assert!(weights.common[ODDS] >= 0.0);
        assert!(weights.links.iter().all(|effect| weights.common[ODDS] + effect[1] >= 0.0));
    }

    #[test]
    fn outcomes_that_features_tell_apart_leave_the_weights_finite() {
        let sample = |x: f64| {
            let mut row = [0.0; FEATURES];
            row[ODDS] = x;
            Sample { row, link: 0, is_true: x > 0.0, weight: 1.0, hidden: 0.0 }
        };
        let weights = fit(&[sample(-1.0), sample(-0.5), sample(0.5), sample(1.0)], 1, 1.0);
        assert!(weights.common[ODDS].is_finite() && weights.common[ODDS] > 0.0);
        assert!(fit(&[], 0, 1.0).intercept.abs() < 1e-9);
    }

    #[test]
    fn what_is_hidden_among_the_false_ones_is_left_out_of_account() {
        // Half of the true samples count as false, and each of the others stands for one of them.
        let mut seen = Vec::new();
        for sample in samples(1000.0) {
            if sample.is_true {
                let weight = sample.weight / 2.0;
                seen.push(Sample { weight, hidden: weight, ..sample });
                seen.push(Sample { weight, is_true: false, ..sample });
            } else {
                seen.push(Sample { weight: sample.weight / 2.0, ..sample });
            }
        }
        let weights = fit(&seen, 2, 1.0);
        let mut row = [0.0; FEATURES];
        row[ODDS] = 1.0;
        let found = weights.log_odds(&row, Some(0));
        assert!((found - 2.0).abs() < 0.05, "{found}");
    }
}
