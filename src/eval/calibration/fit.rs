//! From queries with known outcomes to a [`Calibration`].
//!
//! Five-fold cross-validation: predictions for a fold are fitted on the others. They choose how much links may differ
//! and fit the final curve, so neither is judged on outcomes it was fitted to. The final weights are fitted to all
//! queries.

use super::FEWEST_TRUE;
use super::features::{Compared, FEATURES, FeatureRow, ODDS, RankedScores, share_of};
use super::few::rescaled;
use super::isotonic::{Counted, Curve};
use super::left::AnswersLeft;
use super::logistic::{self, Effect, Sample, Weights, numbered};
use crate::graph::Link;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// An answer that is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedAnswer {
    /// Its score.
    pub score: f64,
    /// How certainly it is true: 0 if it counts as false, 1 if it is a held-out fact, the confidence of that fact if the data
    /// say one.
    pub truth: f64,
    /// Whether the data say that it is false. Then it is no hidden fact.
    pub is_denied: bool,
}

impl JudgedAnswer {
    /// An answer that is a held-out fact, or counts as false because it is none.
    pub fn new(score: f64, is_true: bool) -> Self {
        Self { score, truth: if is_true { 1.0 } else { 0.0 }, is_denied: false }
    }

    /// Whether it is a held-out fact, however certain.
    pub fn is_true(&self) -> bool {
        self.truth > 0.0
    }
}

/// The best answers of a query, and which of the judged ones are true.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answers.
    pub list: RankedScores,
    /// The judged answers, best first.
    pub judged: Vec<JudgedAnswer>,
    /// Whether each true answer stands for a hidden one that counts as false because the test split must not be used.
    /// Facts are held out for validation or test at random. Had a validation fact been held out for test instead, it
    /// would count as false here, and its query would still be among those asked. True answers therefore stand for as
    /// many hidden ones.
    pub stands_in: bool,
    /// How many queries it stands for, up to a factor that is the same for all.
    pub weight: f64,
}

impl Outcome {
    /// The judged answers; true ones stand for `share` hidden ones each, if `stands_in` is set. A fact that is not certain is
    /// a true answer as far as it is, and a false one for the rest.
    fn counted(&self, share: f64) -> impl Iterator<Item = Counted> + '_ {
        self.judged.iter().flat_map(move |answer| {
            let (at, truth) = (answer.score, answer.truth);
            let [is, is_not] = [truth, 1.0 - truth].map(|certainly| certainly * self.weight);
            let hidden = if self.stands_in { share * is } else { 0.0 };
            let is = (truth > 0.0).then_some(Counted { at, is_true: true, weight: is, hidden });
            let is_not = (truth < 1.0).then_some(Counted { at, is_true: false, weight: is_not, hidden: 0.0 });
            is.into_iter().chain(is_not)
        })
    }
}

/// How many hidden answers a true answer stands for: one, unless that would explain more than most of the false
/// answers.
fn share_hidden(outcomes: &[Outcome]) -> f64 {
    let (mut hidden, mut falses) = (0.0, 0.0);
    for outcome in outcomes {
        for answer in &outcome.judged {
            hidden += if outcome.stands_in { answer.truth * outcome.weight } else { 0.0 };
            // What the data deny is not hidden.
            falses += if answer.is_denied { 0.0 } else { (1.0 - answer.truth) * outcome.weight };
        }
    }
    if hidden > 0.0 { (MOST_HIDDEN * falses / hidden).min(1.0) } else { 1.0 }
}

/// The largest share of false answers that may be hidden true ones.
const MOST_HIDDEN: f64 = 0.8;

/// The number of folds.
const PARTS: usize = 5;
/// The candidate strengths of the penalty that pulls links to the common weights; the best is chosen.
const PULLS: [f64; 4] = [1.0, 4.0, 16.0, 64.0];

/// The fitted parts: the common scale of scores, and the weights of unstandardised features.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fitted {
    /// Maps scores to the share of true answers.
    pub curve: Curve,
    /// The weights of the features.
    pub weights: FeatureRow,
    /// The intercept.
    pub intercept: f64,
    /// What each link adds to the intercept and to the weight of the score.
    pub links: BTreeMap<Link, Effect>,
    /// How often queries have an answer left.
    pub left: AnswersLeft,
}

impl Fitted {
    /// What the answers of `list` have in common.
    pub(super) fn compared<'a>(&'a self, list: &'a RankedScores) -> Compared<'a> {
        Compared::new(list, &self.curve, self.left.share(list.link, list.known))
    }

    /// The log-odds of an answer with these features.
    pub(crate) fn log_odds(&self, row: &FeatureRow, link: Link) -> f64 {
        let common: f64 = self.weights.iter().zip(row).map(|(weight, value)| weight * value).sum();
        let [intercept, slope] = self.links.get(&link).copied().unwrap_or_default();
        self.intercept + intercept + common + slope * row[ODDS]
    }

    /// The highest log-odds of an answer whose features lie between those of two rows.
    pub(crate) fn log_odds_at_most(&self, [low, high]: &[FeatureRow; 2], link: Link) -> f64 {
        let [intercept, slope] = self.links.get(&link).copied().unwrap_or_default();
        let part = |at: usize| {
            let weight = self.weights[at] + if at == ODDS { slope } else { 0.0 };
            (weight * low[at]).max(weight * high[at])
        };
        self.intercept + intercept + (0..FEATURES).map(part).sum::<f64>()
    }

    /// Fits to the `outcomes` that `used` selects; `pull` is the penalty on the links' own effects.
    fn to(outcomes: &[Outcome], left: &AnswersLeft, used: impl Fn(usize) -> bool, pull: f64) -> Self {
        let share = share_hidden(outcomes);
        let chosen = || outcomes.iter().enumerate().filter(|(at, _)| used(*at)).map(|(_, outcome)| outcome);
        let counted = chosen().flat_map(|outcome| outcome.counted(share));
        let curve = Curve::of_shares(counted.collect());
        let numbers = numbered(chosen().map(|outcome| outcome.list.link));
        let mut samples = Vec::new();
        for outcome in chosen() {
            let list = &outcome.list;
            let compared = Compared::new(list, &curve, left.share(list.link, list.known));
            let link = numbers[&outcome.list.link];
            for Counted { at, is_true, weight, hidden } in outcome.counted(share) {
                samples.push(Sample { row: compared.row(at), link, is_true, weight, hidden });
            }
        }
        let units = to_units(&mut samples);
        let weights = logistic::fit(&samples, numbers.len(), pull);
        Self { left: left.clone(), ..Self::from_units(curve, &weights, &numbers, &units) }
    }

    /// Converts weights of standardised features to weights of the features themselves.
    fn from_units(curve: Curve, weights: &Weights, numbers: &BTreeMap<Link, usize>, units: &[Unit]) -> Self {
        let mut common = weights.common;
        let mut intercept = weights.intercept;
        for (weight, unit) in common.iter_mut().zip(units) {
            *weight /= unit.size;
            intercept -= *weight * unit.mean;
        }
        let link = |(&link, &number): (&Link, &usize)| {
            let [own, slope] = weights.links[number];
            let slope = slope / units[ODDS].size;
            (link, [own - slope * units[ODDS].mean, slope])
        };
        let links = numbers.iter().map(link).collect();
        Self { curve, weights: common, intercept, links, left: AnswersLeft::default() }
    }
}

/// The mean and scale that standardise a feature.
struct Unit {
    mean: f64,
    size: f64,
}

fn to_units(samples: &mut [Sample]) -> Vec<Unit> {
    let count = samples.len().max(1) as f64;
    (0..FEATURES)
        .map(|feature| {
            let mean = samples.iter().map(|sample| sample.row[feature]).sum::<f64>() / count;
            let square = |sample: &Sample| (sample.row[feature] - mean).powi(2);
            let spread = (samples.iter().map(square).sum::<f64>() / count).sqrt();
            // A constant feature carries no information and must not be scaled up.
            let size = if spread > 1e-9 { spread } else { 1.0 };
            samples.iter_mut().for_each(|sample| sample.row[feature] = (sample.row[feature] - mean) / size);
            Unit { mean, size }
        })
        .collect()
}

/// The fitted parts, the final curve from log-odds to probabilities, and the chosen penalty on links. `None` if there
/// are no answers.
pub(crate) fn fit(outcomes: &[Outcome], left: &AnswersLeft) -> Option<(Fitted, Curve, f64)> {
    if outcomes.iter().all(|outcome| outcome.judged.is_empty()) {
        return None;
    }
    let tried: Vec<(f64, f64, Vec<Counted>)> = PULLS
        .par_iter()
        .map(|&pull| {
            let predictions = cross_validated(outcomes, left, pull);
            (log_loss(&predictions), pull, predictions)
        })
        .collect();
    let (_, pull, predictions) = tried.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let trues = predictions.iter().filter(|one| one.is_true).count();
    let curve = if trues < FEWEST_TRUE { rescaled(&predictions) } else { Curve::of_shares(predictions) };
    Some((Fitted::to(outcomes, left, |_| true, pull), curve, pull))
}

/// The cross-validated log-odds of every answer, and its outcome. A single query is fitted to itself.
fn cross_validated(outcomes: &[Outcome], left: &AnswersLeft, pull: f64) -> Vec<Counted> {
    let parts = outcomes.len().min(PARTS);
    let share = share_hidden(outcomes);
    let mut predictions = Vec::new();
    for part in 0..parts {
        let fitted = Fitted::to(outcomes, left, |at| parts == 1 || at % parts != part, pull);
        for outcome in outcomes.iter().skip(part).step_by(parts) {
            let compared = fitted.compared(&outcome.list);
            for one in outcome.counted(share) {
                let at = fitted.log_odds(&compared.row(one.at), outcome.list.link);
                predictions.push(Counted { at, ..one });
            }
        }
    }
    predictions
}

fn log_loss(predictions: &[Counted]) -> f64 {
    let loss = |one: &Counted| {
        let loss_of = |odds: f64| -share_of(odds).max(1e-12).ln();
        one.weight * loss_of(if one.is_true { one.at } else { -one.at }) - one.hidden * loss_of(-one.at)
    };
    predictions.iter().map(loss).sum()
}
