//! Turns scores into probabilities: the share of such answers that are held-out facts.
//!
//! [`observe`] asks a reasoner the queries of the validation split, [`Calibration::fit`] learns from the outcomes,
//! and a [`Calibrator`] gives every answer of a query its probability. The features of an answer are its score, its
//! rank, how far it is behind the first and how far the first is ahead of the second, the total probability mass of
//! the query's best answers, how many answers the query has already and usually has, how many were found, and the
//! relation with its direction. There are three steps: isotonic regression brings scores of any scale to a common
//! one, a logistic regression weighs the features, with a shrunken intercept and slope for every relation and
//! direction, and isotonic regression on its cross-validated output turns that into probabilities.
//!
//! There are two kinds of queries. Someone who asks a query expects an answer: those probabilities are fitted to
//! queries that have one. Someone who completes a graph asks everything, and most of those queries have no answer
//! left: their probabilities are fitted to a sample of all sensible queries ([`Calibration::open`]). The first kind
//! compares the answers of one query, the second those of all queries.
//!
//! Facts of the test split are among the answers and must not be used; [`Outcome::stands_in`] says how this is
//! corrected for.
//!
//! Invariant: within a query a higher score never has a lower probability, and equal scores have equal ones. The
//! module knows no reasoner; only [`Reliability`] sees the test split.

mod features;
mod fit;
mod isotonic;
mod logistic;
mod observe;
mod population;
mod reliability;
#[cfg(test)]
mod tests;

pub use features::RankedScores;
pub use fit::Outcome;
pub use isotonic::{Weighted, pool_adjacent_violators};
pub use observe::{Judged, observe, outcomes_on_test, outcomes_on_valid, usual_answers};
pub use population::{FitOutcomes, outcomes_to_fit};
pub use reliability::{Reliability, ReliabilityBin, Verdict};

use crate::graph::{Direction, Link, Names, RelationId};
use features::{Compared, FEATURES, bounds_of_best, log_odds, share_of};
use fit::Fitted;
use isotonic::Curve;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many of the best answers of a query the probabilities are fitted to and judged by.
pub const TOP: usize = 10;

/// What a relation and direction add to the log-odds and to the weight of the score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkEffect {
    /// To the log-odds.
    pub intercept: f64,
    /// To the weight of the score.
    pub slope: f64,
}

/// A fitted calibration, as stored in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// How many validation queries it was fitted to.
    pub queries: usize,
    /// How many answers they have.
    pub answers: usize,
    /// How many of those are true.
    #[serde(rename = "true")]
    pub is_true: usize,
    /// Maps scores to the share of true answers.
    scores: Curve,
    /// The weights of the features.
    weights: [f64; FEATURES],
    /// The intercept.
    intercept: f64,
    /// The effects by relation and direction asked (`tail`, `head`).
    relations: BTreeMap<String, BTreeMap<String, LinkEffect>>,
    /// Maps log-odds to probabilities.
    probabilities: Curve,
    /// The same for queries that may have no answer. Runs of earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<Box<Calibration>>,
}

impl Calibration {
    /// Fits to `outcomes`; `None` if they have no answers at all.
    pub fn fit(outcomes: &[Outcome], names: &Names) -> Option<Self> {
        let (Fitted { curve, weights, intercept, links }, probabilities, _) = fit::fit(outcomes)?;
        let mut relations: BTreeMap<String, BTreeMap<String, LinkEffect>> = BTreeMap::new();
        for (link, [intercept, slope]) in links {
            let Some(relation) = link.relation() else { continue };
            let sides = relations.entry(names.relation(relation).to_owned()).or_default();
            sides.insert(side(link.direction()).to_owned(), LinkEffect { intercept, slope });
        }
        let trues = |outcome: &Outcome| outcome.judged.iter().filter(|one| one.1).count();
        Some(Self {
            queries: outcomes.len(),
            answers: outcomes.iter().map(|outcome| outcome.judged.len()).sum(),
            is_true: outcomes.iter().map(trues).sum(),
            scores: curve,
            weights,
            intercept,
            relations,
            probabilities,
            open: None,
        })
    }

    /// Fits to the observations for both uses; `None` if no query that has an answer was answered.
    pub fn fit_both(outcomes: &FitOutcomes, names: &Names) -> Option<Self> {
        let open = Self::fit(&outcomes.open, names).map(Box::new);
        Some(Self { open, ..Self::fit(&outcomes.asked, names)? })
    }

    /// The calibration for queries that may have no answer.
    pub fn open(&self) -> Option<&Calibration> {
        self.open.as_deref()
    }
}

fn side(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "tail",
        Direction::Inverse => "head",
    }
}

/// Gives answers their probabilities.
#[derive(Clone, Debug)]
pub struct Calibrator {
    fitted: Fitted,
    probabilities: Curve,
}

impl Calibrator {
    /// Applies `calibration`, whose relations are looked up in `names`; unknown relations have no effects of their
    /// own.
    pub fn new(calibration: &Calibration, names: &Names) -> Self {
        let mut links = BTreeMap::new();
        for (relation, sides) in &calibration.relations {
            let Some(id) = names.relations.get(relation) else { continue };
            for direction in [Direction::Forward, Direction::Inverse] {
                if let Some(&LinkEffect { intercept, slope }) = sides.get(side(direction)) {
                    links.insert(Link::new(RelationId(id), direction), [intercept, slope]);
                }
            }
        }
        let Calibration { scores, weights, intercept, probabilities, .. } = calibration.clone();
        Self { fitted: Fitted { curve: scores, weights, intercept, links }, probabilities }
    }

    /// The probability of every score of `list`, in their order.
    pub fn probabilities(&self, list: &RankedScores) -> Vec<f64> {
        let probability = self.within(list);
        list.scores.iter().map(|&score| probability(score)).collect()
    }

    /// A function from scores of `list` to their probabilities.
    pub fn within<'a>(&'a self, list: &'a RankedScores) -> impl Fn(f64) -> f64 + 'a {
        let compared = Compared::new(list, &self.fitted.curve);
        move |score| self.probability_at(self.fitted.log_odds(&compared.row(score), list.link))
    }

    /// A bound on the probabilities of a query's answers, if their scores lie between those of two lists, the lowest
    /// and the highest, place by place. Both have as many scores as there are answers, or at least 10.
    pub fn at_most(&self, [lowest, highest]: [&RankedScores; 2]) -> f64 {
        let rows = bounds_of_best([lowest, highest], &self.fitted.curve);
        self.probability_at(self.fitted.log_odds_at_most(&rows, highest.link))
    }

    /// Below the observed range, odds keep falling with the regression; above it, probabilities are capped at the
    /// highest observed.
    fn probability_at(&self, odds: f64) -> f64 {
        match self.probabilities.lowest() {
            Some((at, height)) if odds < at && height > 0.0 => {
                share_of(log_odds(height) + odds - at).min(height)
            }
            _ => self.probabilities.height(odds).unwrap_or(0.0),
        }
    }

    /// The reliability of the predicted probabilities of `outcomes`.
    pub fn reliability(&self, outcomes: &[Outcome], top: usize) -> Reliability {
        let verdicts: Vec<Verdict> = outcomes.iter().flat_map(|outcome| self.verdicts(outcome)).collect();
        Reliability::of(&verdicts, outcomes.len(), top)
    }

    /// The predicted probability of every judged answer, and whether the answer is true.
    pub fn verdicts(&self, outcome: &Outcome) -> Vec<Verdict> {
        let probability = self.within(&outcome.list);
        let verdict = |&(score, is_true): &(f64, bool)| Verdict { probability: probability(score), is_true };
        outcome.judged.iter().map(verdict).collect()
    }
}
