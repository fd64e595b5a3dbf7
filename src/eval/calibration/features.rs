//! The features of an answer for a logistic regression.
//!
//! All scores pass through `odds`: the log-odds that answers with such a score are true, over all relations. This
//! puts rule confidences, log-probabilities and logits on the same scale. Every feature is either the same for all
//! answers of a query or monotone in the score; [`SIGNS`] fixes the signs of the latter's weights, so that an answer
//! never gets a higher probability than one ranked before it.

use super::isotonic::Curve;
use crate::graph::Link;

/// The best answers of one query that are not facts of the graph, reduced to what probabilities depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedScores {
    /// The link that was asked about.
    pub link: Link,
    /// How many answers the graph already has.
    pub known: usize,
    /// The mean number of answers in the graph to queries over this link that have any; at least 1.
    pub usual: f64,
    /// The scores, best first; at least 10 if there are that many.
    pub scores: Vec<f64>,
}

/// How many answers of a query are compared with one another.
pub(crate) const COMPARED: usize = 10;

/// How many features there are.
pub(crate) const FEATURES: usize = 12;
/// A row of features.
pub(crate) type FeatureRow = [f64; FEATURES];
/// The index of the score's common log-odds, whose weight may differ by relation.
pub(crate) const ODDS: usize = 0;

/// The sign a feature's weight must have: 1 for features that rise with the score, -1 for those that fall, 0 for
/// those that are the same for all answers of a query.
pub(crate) const SIGNS: [i8; FEATURES] = [1, -1, -1, 1, -1, 0, 0, 0, 0, 0, 0, 0];

/// The first features belong to an answer; the others are the same for all answers of a query.
pub(crate) const OWN: usize = 5;

/// Shares are clamped to this distance from 0 and 1.
const SURE: f64 = 1e-4;

/// The log-odds of a share.
pub(crate) fn log_odds(share: f64) -> f64 {
    let share = share.clamp(SURE, 1.0 - SURE);
    (share / (1.0 - share)).ln()
}

/// The share that has these log-odds.
pub(crate) fn share_of(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// What the answers of a query have in common, computed once.
pub(crate) struct Compared<'a> {
    list: &'a RankedScores,
    curve: &'a Curve,
    first: f64,
    lead: f64,
    common: [f64; FEATURES - OWN],
}

impl<'a> Compared<'a> {
    /// The answers of `list`; `curve` turns their scores into shares, and `left` is how often such a query has an
    /// answer left.
    pub(crate) fn new(list: &'a RankedScores, curve: &'a Curve, left: f64) -> Self {
        let share = |score: &f64| curve.height(*score).unwrap_or(0.0);
        let best = &list.scores[..list.scores.len().min(COMPARED)];
        let odds =
            |place: usize| best.get(place).map_or_else(|| log_odds(0.0), |score| log_odds(share(score)));
        let mass = best.iter().map(share).sum::<f64>().max(SURE).ln();
        let (known, usual) = ((1.0 + list.known as f64).ln(), list.usual.max(1.0).ln());
        // By how much the query has more answers already than such a query usually has.
        let beyond = known - (1.0 + list.usual.max(1.0)).ln();
        let found = (1.0 + best.len() as f64).ln();
        let common = [mass, known, usual, beyond.max(0.0), mass * usual, found, log_odds(left)];
        Self { list, curve, first: odds(0), lead: odds(0) - odds(1), common }
    }

    /// The features of an answer with this score.
    pub(crate) fn row(&self, score: f64) -> FeatureRow {
        let odds = log_odds(self.curve.height(score).unwrap_or(0.0));
        let place = self.place(score);
        let (leads, follows) = if place == 1.0 { (self.lead, 0.0) } else { (0.0, self.lead) };
        with_common([odds, place.ln(), self.first - odds, leads, follows], &self.common)
    }

    /// Its rank from 1; ties share their mean rank. Only ties among the answers that are compared count: a search for
    /// few answers and one for all of them give the same place.
    fn place(&self, score: f64) -> f64 {
        // Compared by value: 0 and -0 are equal.
        let before = self.list.scores.partition_point(|&other| other > score);
        let up_to = self.list.scores.partition_point(|&other| other >= score);
        (before + 1 + up_to.min(COMPARED).max(before + 1)) as f64 / 2.0
    }
}

/// The features of an answer, and those that it shares with the others of its query.
fn with_common(own: [f64; OWN], common: &[f64; FEATURES - OWN]) -> FeatureRow {
    std::array::from_fn(|at| if at < OWN { own[at] } else { common[at - OWN] })
}

/// Bounds on the features of a query's best answer, if its scores lie between those of two lists, place by place. Its
/// place is taken for the first, and nobody leads before it.
pub(crate) fn bounds_of_best(
    [lowest, highest]: [&RankedScores; 2],
    curve: &Curve,
    left: f64,
) -> [FeatureRow; 2] {
    let [low, high] = [lowest, highest].map(|list| Compared::new(list, curve, left));
    let row = |compared: &Compared<'_>, other: &Compared<'_>| {
        let leads = compared.first - (other.first - other.lead);
        with_common([compared.first, 0.0, 0.0, leads.max(0.0), 0.0], &compared.common)
    };
    [row(&low, &high), row(&high, &low)]
}

#[cfg(test)]
mod tests {
    use super::super::isotonic::Counted;
    use super::*;
    use crate::graph::RelationId;

    #[test]
    fn equals_share_a_place_and_features_follow_the_order() {
        let points =
            (0..100).map(|at| Counted { at: f64::from(at), is_true: at > 60, weight: 1.0, hidden: 0.0 });
        let curve = Curve::of_shares(points.collect());
        let scores = vec![90.0, 70.0, 70.0, 20.0];
        let list =
            RankedScores { link: Link::forward(RelationId(0)), known: 2, usual: 1.5, scores: scores.clone() };
        let compared = Compared::new(&list, &curve, 0.5);
        let places: Vec<f64> = scores.iter().map(|&score| compared.place(score)).collect();
        assert_eq!(places, [1.0, 2.5, 2.5, 4.0]);
        let rows: Vec<FeatureRow> = scores.iter().map(|&score| compared.row(score)).collect();
        assert_eq!(rows[1], rows[2]);
        assert!(SIGNS[..OWN].iter().all(|&sign| sign != 0) && SIGNS[OWN..].iter().all(|&sign| sign == 0));
        for pair in rows.windows(2) {
            for ((before, after), sign) in pair[0].iter().zip(&pair[1]).zip(SIGNS) {
                match sign {
                    0 => assert_eq!(before, after),
                    sign => assert!(f64::from(sign) * before >= f64::from(sign) * after),
                }
            }
        }
    }

    #[test]
    fn odds_and_shares_are_the_reverse_of_each_other() {
        for share in [0.001, 0.3, 0.5, 0.99] {
            assert!((share_of(log_odds(share)) - share).abs() < 1e-12);
        }
    }
}
