//! Turns scores into probabilities: the share of such answers that are held-out facts.
//!
//! [`outcomes_to_fit`] asks a reasoner a sample of all queries that make sense, [`Calibration::fit`] learns from the
//! outcomes, and a [`Calibrator`] gives every answer of a query its probability. The features of an answer are its score, its
//! rank, how far it is behind the first and how far the first is ahead of the second, the total probability mass of
//! the query's best answers, how many answers the query has already and usually has, how many were found, how often such
//! a query has an answer left ([`AnswersLeft`]), and the relation with its direction. There are three steps: isotonic regression brings scores of any scale to a common
//! one, a logistic regression weighs the features, with a shrunken intercept and slope for every relation and
//! direction, and isotonic regression on its cross-validated output turns that into probabilities.
//!
//! Most queries that make sense have no answer left, and whoever asks one does not know. So there is one probability of a
//! fact, however it is asked for: of all answers that look like this one, this share is true.
//!
//! Facts of the test split are among the answers and must not be used; [`Outcome::stands_in`] says how this is
//! corrected for.
//!
//! Invariant: within a query a higher score never has a lower probability, and equal scores have equal ones. The
//! module knows no reasoner; only [`Reliability`] sees the test split.

mod features;
mod few;
mod fit;
mod isotonic;
mod left;
mod logistic;
mod observe;
mod population;
mod reliability;
#[cfg(test)]
mod tests;

pub use features::RankedScores;
pub use fit::{JudgedAnswer, Outcome};
pub use isotonic::{Weighted, pool_adjacent_violators};
pub use left::AnswersLeft;
pub use observe::{Judged, observe, usual_answers};
pub use population::{FitOutcomes, outcomes_on_test, outcomes_on_valid, outcomes_to_fit, queries_to_fit};
pub use reliability::{Reliability, ReliabilityBin, ReliabilityOf, Verdict, Verdicts};

use crate::graph::{Direction, Link, Names, RelationId};
use features::{FEATURES, bounds_of_best, log_odds, share_of};
use fit::Fitted;
use isotonic::Curve;
use left::Shares;
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
    /// How often such queries have an answer left, by how many answers they have already.
    left: Shares,
}

/// A fitted calibration, as stored in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// How many queries it was fitted to.
    pub queries: usize,
    /// How many it would have been fitted to with enough time.
    pub planned: usize,
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
    /// How often queries of other relations have an answer left.
    left: Shares,
    /// Maps log-odds to probabilities.
    probabilities: Curve,
}

/// With fewer true answers, probabilities are rough: a share of a half among a fifth of them is off by a tenth or more.
/// The last step is then a shift and a slope ([`few`]).
const FEWEST_TRUE: usize = 100;

impl Calibration {
    /// Fits to outcomes; `None` if they have no answers at all.
    pub fn fit(FitOutcomes { outcomes, planned, left }: &FitOutcomes, names: &Names) -> Option<Self> {
        let (Fitted { curve, weights, intercept, links, .. }, probabilities, _) = fit::fit(outcomes, left)?;
        let mut relations: BTreeMap<String, BTreeMap<String, LinkEffect>> = BTreeMap::new();
        for link in links.keys().chain(left.links.keys()) {
            let Some(relation) = link.relation() else { continue };
            let [intercept, slope] = links.get(link).copied().unwrap_or_default();
            let left = left.links.get(link).copied().unwrap_or(left.others);
            let sides = relations.entry(names.relation(relation).to_owned()).or_default();
            sides.insert(side(link.direction()).to_owned(), LinkEffect { intercept, slope, left });
        }
        let trues = |outcome: &Outcome| outcome.judged.iter().filter(|answer| answer.is_true()).count();
        Some(Self {
            queries: outcomes.len(),
            planned: *planned,
            answers: outcomes.iter().map(|outcome| outcome.judged.len()).sum(),
            is_true: outcomes.iter().map(trues).sum(),
            scores: curve,
            weights,
            intercept,
            relations,
            left: left.others,
            probabilities,
        })
    }

    /// Why its probabilities are rough; `None` if they are not.
    pub fn why_rough(&self) -> Option<String> {
        let Self { queries, planned, is_true, .. } = *self;
        if is_true < FEWEST_TRUE {
            return Some(format!("calibration found only {is_true} true answers to {queries} queries"));
        }
        (2 * queries < planned)
            .then(|| format!("the time for calibration was enough for only {queries} of {planned} queries"))
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
        let (mut links, mut left) = (BTreeMap::new(), BTreeMap::new());
        for (relation, sides) in &calibration.relations {
            let Some(id) = names.relations.get(relation) else { continue };
            for direction in [Direction::Forward, Direction::Inverse] {
                if let Some(&LinkEffect { intercept, slope, left: shares }) = sides.get(side(direction)) {
                    links.insert(Link::new(RelationId(id), direction), [intercept, slope]);
                    left.insert(Link::new(RelationId(id), direction), shares);
                }
            }
        }
        let Calibration { scores, weights, intercept, probabilities, .. } = calibration.clone();
        let left = AnswersLeft { others: calibration.left, links: left };
        Self { fitted: Fitted { curve: scores, weights, intercept, links, left }, probabilities }
    }

    /// The probability of every score of `list`, in their order.
    pub fn probabilities(&self, list: &RankedScores) -> Vec<f64> {
        let probability = self.within(list);
        list.scores.iter().map(|&score| probability(score)).collect()
    }

    /// A function from scores of `list` to their probabilities.
    pub fn within<'a>(&'a self, list: &'a RankedScores) -> impl Fn(f64) -> f64 + 'a {
        let compared = self.fitted.compared(list);
        move |score| self.probability_at(self.fitted.log_odds(&compared.row(score), list.link))
    }

    /// A bound on the probabilities of a query's answers, if their scores lie between those of two lists, the lowest
    /// and the highest, place by place. Both have as many scores as there are answers, or at least 10.
    pub fn at_most(&self, [lowest, highest]: [&RankedScores; 2]) -> f64 {
        let left = self.fitted.left.share(highest.link, highest.known);
        let rows = bounds_of_best([lowest, highest], &self.fitted.curve, left);
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

    /// The reliability of the predicted probabilities of `outcomes`; `name` names relations.
    pub fn reliability(
        &self,
        outcomes: &[Outcome],
        top: usize,
        name: impl Fn(RelationId) -> String,
    ) -> Reliability {
        let verdicts: Vec<Verdicts> = outcomes.iter().filter_map(|outcome| self.verdicts(outcome)).collect();
        Reliability::of(&verdicts, top, name)
    }

    /// The predicted probability of every judged answer to a query, and whether the answer is true.
    pub fn verdicts(&self, outcome: &Outcome) -> Option<Verdicts> {
        let probability = self.within(&outcome.list);
        let verdict =
            |answer: &JudgedAnswer| Verdict { probability: probability(answer.score), truth: answer.truth };
        let answers = outcome.judged.iter().map(verdict).collect();
        Some(Verdicts { relation: outcome.list.link.relation()?, weight: outcome.weight, answers })
    }
}
