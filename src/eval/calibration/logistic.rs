//! A logistic regression with a few common features and, for every link, its own intercept and slope, which a penalty
//! shrinks to 0, towards what all links share.
//!
//! Weights of features with a sign are held to it. Newton's method, the common weights and the links in turn; each
//! step is halved until the loss falls, so it always ends. Sums are taken in the order of the observations: the same
//! observations give the same weights to the last digit.

use super::features::{FEATURES, FeatureRow, ODDS, SIGNS, share_of};
use std::collections::BTreeMap;

/// The penalty on the common weights of standardised features.
const RIDGE: f64 = 1.0;
/// Rounds at most.
const ROUNDS: usize = 30;
/// Stops when a round reduces the loss by less than this fraction.
const ENOUGH: f64 = 1e-7;
/// The intercept's place.
const ONE: usize = FEATURES;
/// Common weights with the intercept.
const ALL: usize = FEATURES + 1;

/// An observation as the regression sees it.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The features, of unit size.
    pub row: FeatureRow,
    /// Which link it belongs to, as a number from 0.
    pub link: usize,
    /// Whether it was true.
    pub is_true: bool,
    /// Its weight.
    pub weight: f64,
    /// How many false ones like it are to be ignored. With the true one itself such a sample adds no more than a
    /// straight line to the loss, which stays convex.
    pub hidden: f64,
}

/// What a link adds: to the intercept, and to the weight of the common log-odds.
pub type Effect = [f64; 2];

/// The weights that were found.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    /// Of the features.
    pub common: FeatureRow,
    /// The intercept.
    pub intercept: f64,
    /// Of each link.
    pub links: Vec<Effect>,
}

impl Weights {
    /// The log-odds of a sample.
    pub fn log_odds(&self, row: &FeatureRow, link: Option<usize>) -> f64 {
        let common: f64 = self.common.iter().zip(row).map(|(weight, value)| weight * value).sum();
        let [intercept, slope] = link.map_or([0.0; 2], |link| self.links[link]);
        self.intercept + intercept + common + slope * row[ODDS]
    }

    /// The penalised loss.
    fn loss(&self, samples: &[Sample], pull: f64) -> f64 {
        let data: f64 = samples
            .iter()
            .map(|sample| {
                let odds = self.log_odds(&sample.row, Some(sample.link));
                let own = softplus(if sample.is_true { -odds } else { odds });
                sample.weight * own - sample.hidden * softplus(odds)
            })
            .sum();
        let common: f64 = self.common.iter().map(|weight| weight * weight).sum();
        let links: f64 = self.links.iter().flatten().map(|effect| effect * effect).sum();
        data + 0.5 * RIDGE * common + 0.5 * pull * links
    }
}

/// `ln(1 + e^x)` without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Fits the weights to `samples` over `links` links; `pull` draws the links to what they have in common.
pub fn fit(samples: &[Sample], links: usize, pull: f64) -> Weights {
    let total: f64 = samples.iter().map(|sample| sample.weight).sum();
    let trues: f64 = samples.iter().filter(|sample| sample.is_true).map(|sample| sample.weight).sum();
    let mut weights = Weights {
        intercept: ((trues + 0.5) / (total - trues + 0.5)).ln(),
        links: vec![[0.0; 2]; links],
        ..Weights::default()
    };
    let mut loss = weights.loss(samples, pull);
    for _ in 0..ROUNDS {
        let before = loss;
        let step = common_step(&weights, samples);
        loss = shortened(&mut weights, loss, samples, pull, |weights, part| {
            weights.common.iter_mut().zip(step).for_each(|(weight, step)| *weight += part * step);
            weights.intercept += part * step[ONE];
            keep_slopes(weights);
        });
        let steps = link_steps(&weights, samples, links, pull);
        loss = shortened(&mut weights, loss, samples, pull, |weights, part| {
            for (effect, step) in weights.links.iter_mut().zip(&steps) {
                effect.iter_mut().zip(step).for_each(|(effect, step)| *effect += part * step);
            }
            keep_slopes(weights);
        });
        if before - loss <= ENOUGH * before.abs() {
            break;
        }
    }
    weights
}

/// No link may reverse the order of scores.
fn keep_slopes(weights: &mut Weights) {
    let lowest = -weights.common[ODDS];
    for effect in &mut weights.links {
        effect[1] = effect[1].max(lowest);
    }
}

/// Takes a step, or the half of it, or the half of that, until the loss is less than before; the loss then.
fn shortened(
    weights: &mut Weights,
    loss: f64,
    samples: &[Sample],
    pull: f64,
    take: impl Fn(&mut Weights, f64),
) -> f64 {
    for halved in 0..8 {
        let mut tried = weights.clone();
        take(&mut tried, 0.5f64.powi(halved));
        let reached = tried.loss(samples, pull);
        if reached < loss {
            *weights = tried;
            return reached;
        }
    }
    loss
}

/// How far each sample's share is off, and how much its log-odds matter there: gradient and curvature.
fn pressure(weights: &Weights, sample: &Sample) -> (f64, f64) {
    let share = share_of(weights.log_odds(&sample.row, Some(sample.link)));
    let off = share - f64::from(u8::from(sample.is_true));
    let bend = (sample.weight - sample.hidden) * share * (1.0 - share);
    (sample.weight * off - sample.hidden * share, bend.max(1e-6))
}

/// Newton's step for the common weights, within their signs.
fn common_step(weights: &Weights, samples: &[Sample]) -> [f64; ALL] {
    let mut gradient = [0.0; ALL];
    let mut curvature = [[0.0; ALL]; ALL];
    for sample in samples {
        let (off, bend) = pressure(weights, sample);
        let mut row = [1.0; ALL];
        row[..FEATURES].copy_from_slice(&sample.row);
        for ((slope, line), value) in gradient.iter_mut().zip(&mut curvature).zip(row) {
            *slope += off * value;
            line.iter_mut().zip(row).for_each(|(cell, other)| *cell += bend * value * other);
        }
    }
    for i in 0..FEATURES {
        gradient[i] += RIDGE * weights.common[i];
        curvature[i][i] += RIDGE;
    }
    curvature[ONE][ONE] += 1e-9;
    bounded(&gradient, &curvature, &weights.common)
}

/// The step that minimises `gradient·step + ½ step·curvature·step` and leaves every weight its sign: coordinate by
/// coordinate, over and over.
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

/// Newton's steps for the links, each by its own samples.
fn link_steps(weights: &Weights, samples: &[Sample], links: usize, pull: f64) -> Vec<Effect> {
    // Gradient of intercept and slope, then the curvature: of both and between them.
    let mut sums: Vec<[f64; 5]> = vec![[0.0; 5]; links];
    for sample in samples {
        let (off, bend) = pressure(weights, sample);
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
    sums.iter().zip(&weights.links).map(step).collect()
}

/// Numbers links from 0 in their order.
pub fn numbered<T: Ord + Copy>(keys: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut numbers: BTreeMap<T, usize> = keys.map(|key| (key, 0)).collect();
    numbers.values_mut().enumerate().for_each(|(number, place)| *place = number);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of two links whose log-odds are `1.5 x - 0.5 ± 1`, without noise: each is there with both outcomes,
    /// weighted by their probabilities.
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
        // Higher is worse here, which cannot be.
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
        // Half of what is true counts as false, and each of the others says so.
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
