//! Tells true facts from false ones: a logistic regression of what both ends of a fact say, and a threshold for every
//! relation.
//!
//! A single score does not separate facts of different relations, and the probability of an answer says how likely it
//! is among all answers to its query, not whether a given fact is true. The regression weighs both probabilities, both
//! ranks and the embedding model's score. The threshold of a relation is the one with the best accuracy on its
//! examples, drawn towards the one that is best for all relations, because most relations have few examples.

use super::view::End;
use crate::graph::{Graph, Link, RelationId};

/// How many features there are.
pub(super) const FEATURES: usize = 11;
/// The features of a fact.
pub(super) type Row = [f64; FEATURES];

/// The penalty on the weights of standardised features.
const RIDGE: f64 = 1.0;
/// The most steps of Newton's method.
const STEPS: usize = 50;
/// How many examples of its own a relation needs to weigh as much as all relations together.
const SHRINKAGE: f64 = 10.0;
/// Probabilities are kept this far from 0 and 1.
const SURE: f64 = 1e-6;

/// A fact that is known to be true or false.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub row: Row,
    pub relation: RelationId,
    pub is_true: bool,
}

/// The features of a fact, from what both of its ends say.
pub(super) fn features(graph: &Graph, [tail, head]: &[End; 2]) -> Row {
    let odds = |end: &End| {
        let share = end.probability.0.unwrap_or(0.0).clamp(SURE, 1.0 - SURE);
        (share / (1.0 - share)).ln()
    };
    let supported = |end: &End| f64::from(u8::from(end.candidate.is_some()));
    let uses = |end: &End, link: Link| (1.0 + graph.targets(end.object, link).len() as f64).ln();
    let [raw, tail_log_prob, head_log_prob] = match (tail.embedding, head.embedding) {
        (Some([a, tail]), Some([b, head])) => [(a + b) / 2.0, tail, head],
        _ => [0.0; 3],
    };
    [
        odds(tail),
        odds(head),
        tail.place.ln(),
        head.place.ln(),
        supported(tail),
        supported(head),
        raw,
        tail_log_prob,
        head_log_prob,
        uses(tail, tail.query.link.reversed()),
        uses(head, head.query.link.reversed()),
    ]
}

/// What tells true facts from false ones.
#[derive(Clone, Debug)]
pub(super) struct Verdicts {
    mean: Row,
    scale: Row,
    weights: Row,
    intercept: f64,
    /// The threshold of each relation that has examples, on the log-odds.
    thresholds: Vec<Option<f64>>,
    /// That of all others.
    general: f64,
}

impl Verdicts {
    /// Fits to `samples`; `None` unless there are true and false ones.
    pub(super) fn fit(samples: &[Sample], relations: usize) -> Option<Self> {
        let trues = samples.iter().filter(|sample| sample.is_true).count();
        if trues == 0 || trues == samples.len() {
            return None;
        }
        let (mean, scale) = standard(samples);
        let mut verdicts = Self {
            mean,
            scale,
            weights: [0.0; FEATURES],
            intercept: 0.0,
            thresholds: vec![None; relations],
            general: 0.0,
        };
        verdicts.descend(samples);
        let mut judged: Vec<(RelationId, f64, bool)> = samples
            .iter()
            .map(|sample| (sample.relation, verdicts.log_odds(&sample.row), sample.is_true))
            .collect();
        judged.sort_by(|a, b| a.1.total_cmp(&b.1));
        let all = Curve::of(judged.iter().map(|&(_, odds, is_true)| (odds, is_true)));
        verdicts.general = all.best(|_| 0.0);
        judged.sort_by_key(|one| one.0);
        for own in judged.chunk_by(|a, b| a.0 == b.0) {
            let curve = Curve::of(own.iter().map(|&(_, odds, is_true)| (odds, is_true)));
            let best = curve.best(|at| SHRINKAGE * all.accuracy(at));
            verdicts.thresholds[own[0].0.index()] = Some(best);
        }
        Some(verdicts)
    }

    fn standardised(&self, row: &Row) -> Row {
        std::array::from_fn(|at| (row[at] - self.mean[at]) / self.scale[at])
    }

    fn log_odds(&self, row: &Row) -> f64 {
        let row = self.standardised(row);
        self.intercept + row.iter().zip(&self.weights).map(|(value, weight)| value * weight).sum::<f64>()
    }

    /// How plausible a fact is, from 0 to 1: the share of true facts among those like it, if half of all given facts are
    /// true.
    pub(super) fn plausibility(&self, row: &Row) -> f64 {
        1.0 / (1.0 + (-self.log_odds(row)).exp())
    }

    /// Whether a fact of the relation with these features is taken to be true.
    pub(super) fn is_true(&self, relation: RelationId, row: &Row) -> bool {
        let own = self.thresholds.get(relation.index()).copied().flatten();
        self.log_odds(row) >= own.unwrap_or(self.general)
    }

    /// Newton's method on the penalised log-loss, which is convex; a step is halved until the loss falls.
    fn descend(&mut self, samples: &[Sample]) {
        const ALL: usize = FEATURES + 1;
        let rows: Vec<([f64; ALL], f64)> = samples
            .iter()
            .map(|sample| {
                let row = self.standardised(&sample.row);
                let with_one = std::array::from_fn(|at| row.get(at).copied().unwrap_or(1.0));
                (with_one, f64::from(u8::from(sample.is_true)))
            })
            .collect();
        let dot = |a: &[f64; ALL], b: &[f64; ALL]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let loss = |weights: &[f64; ALL]| {
            let one = |(row, target): &([f64; ALL], f64)| {
                let odds = dot(row, weights);
                // ln(1 + e^x) without overflow.
                odds.max(0.0) + (-odds.abs()).exp().ln_1p() - target * odds
            };
            let penalty: f64 = weights[..FEATURES].iter().map(|weight| weight * weight).sum();
            rows.iter().map(one).sum::<f64>() + RIDGE / 2.0 * penalty
        };
        let mut weights = [0.0; ALL];
        let mut before = loss(&weights);
        for _ in 0..STEPS {
            let mut gradient = [0.0; ALL];
            let mut curvature = [[0.0; ALL]; ALL];
            for (row, target) in &rows {
                let share = 1.0 / (1.0 + (-dot(row, &weights)).exp());
                for a in 0..ALL {
                    gradient[a] += (share - target) * row[a];
                    for b in 0..ALL {
                        curvature[a][b] += share * (1.0 - share) * row[a] * row[b];
                    }
                }
            }
            for at in 0..FEATURES {
                gradient[at] += RIDGE * weights[at];
                curvature[at][at] += RIDGE;
            }
            curvature[FEATURES][FEATURES] += 1e-9;
            let step = solved(curvature, gradient);
            let mut part = 1.0;
            let moved = loop {
                let tried: [f64; ALL] = std::array::from_fn(|at| weights[at] - part * step[at]);
                let after = loss(&tried);
                if after < before || part < 1e-6 {
                    break (tried, after);
                }
                part /= 2.0;
            };
            let fell = before - moved.1;
            if fell > 0.0 {
                (weights, before) = moved;
            }
            if fell <= 1e-9 * before {
                break;
            }
        }
        self.weights = std::array::from_fn(|at| weights[at]);
        self.intercept = weights[FEATURES];
    }
}

/// Mean and spread of every feature.
fn standard(samples: &[Sample]) -> (Row, Row) {
    let count = samples.len() as f64;
    let mean: Row = std::array::from_fn(|at| samples.iter().map(|one| one.row[at]).sum::<f64>() / count);
    let spread = |at: usize| samples.iter().map(|one| (one.row[at] - mean[at]).powi(2)).sum::<f64>() / count;
    // A feature that is always the same tells nothing; its weight stays 0.
    let scale = std::array::from_fn(|at| Some(spread(at).sqrt()).filter(|&by| by > 1e-9).unwrap_or(1.0));
    (mean, scale)
}

/// The solution of `matrix · x = right`, by elimination with pivots.
fn solved<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> [f64; N] {
    for column in 0..N {
        let pivot = (column..N).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()));
        let pivot = pivot.unwrap_or(column);
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        if matrix[column][column].abs() < f64::MIN_POSITIVE {
            continue;
        }
        for row in column + 1..N {
            let factor = matrix[row][column] / matrix[column][column];
            let (above, below) = matrix.split_at_mut(row);
            for (cell, of_pivot) in below[0][column..].iter_mut().zip(&above[column][column..]) {
                *cell -= factor * of_pivot;
            }
            right[row] -= factor * right[column];
        }
    }
    let mut solution = [0.0; N];
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|at| matrix[row][at] * solution[at]).sum();
        let pivot = matrix[row][row];
        solution[row] = if pivot.abs() < f64::MIN_POSITIVE { 0.0 } else { (right[row] - known) / pivot };
    }
    solution
}

/// How many examples are right at every threshold.
struct Curve {
    /// The log-odds of the examples, lowest first.
    odds: Vec<f64>,
    /// How many are right if those from a place on are taken to be true.
    right: Vec<usize>,
}

impl Curve {
    /// For examples that are sorted by their log-odds.
    fn of(examples: impl Iterator<Item = (f64, bool)>) -> Self {
        let examples: Vec<(f64, bool)> = examples.collect();
        let mut right = vec![examples.iter().filter(|one| one.1).count()];
        for (_, is_true) in &examples {
            let last = right[right.len() - 1];
            right.push(if *is_true { last - 1 } else { last + 1 });
        }
        Self { odds: examples.into_iter().map(|one| one.0).collect(), right }
    }

    /// The share of examples that are right at a threshold.
    fn accuracy(&self, threshold: f64) -> f64 {
        let place = self.odds.partition_point(|&odds| odds < threshold);
        self.right[place] as f64 / self.odds.len().max(1) as f64
    }

    /// The threshold with the most right examples, to which `prior` is added.
    fn best(&self, prior: impl Fn(f64) -> f64) -> f64 {
        let last = self.odds.len() - 1;
        let between = (1..=last).filter(|&at| self.odds[at - 1] < self.odds[at]);
        let middle = between.map(|at| (at, (self.odds[at - 1] + self.odds[at]) / 2.0));
        let ends = [(0, self.odds[0] - 1.0), (last + 1, self.odds[last] + 1.0)];
        let worth = |&(at, threshold): &(usize, f64)| self.right[at] as f64 + prior(threshold);
        let places = ends.into_iter().chain(middle);
        places.max_by(|a, b| worth(a).total_cmp(&worth(b))).map_or(0.0, |(_, threshold)| threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(value: f64, relation: u32, is_true: bool) -> Sample {
        let mut row = [0.0; FEATURES];
        row[0] = value;
        row[7] = 3.0;
        Sample { row, relation: RelationId(relation), is_true }
    }

    #[test]
    fn a_relation_with_enough_examples_has_a_threshold_of_its_own() {
        // Facts of relation 0 are true above 0, of relation 1 above 20; relation 2 has one odd example.
        let mut samples: Vec<Sample> = Vec::new();
        for value in -50..50 {
            let value = f64::from(value) + 0.5;
            samples.push(sample(value, 0, value > 0.0));
            samples.push(sample(value, 1, value > 20.0));
        }
        samples.push(sample(-30.0, 2, true));
        let verdicts = Verdicts::fit(&samples, 4).unwrap();
        let right = |relation| {
            let own = samples.iter().filter(|one| one.relation == RelationId(relation));
            own.filter(|one| verdicts.is_true(one.relation, &one.row) == one.is_true).count()
        };
        assert_eq!((right(0), right(1)), (100, 100));
        assert_eq!(right(2), 0, "one example does not outweigh all others");
        // A relation without examples has the threshold of all.
        assert!(verdicts.is_true(RelationId(3), &sample(45.0, 3, true).row));
        assert!(!verdicts.is_true(RelationId(3), &sample(-45.0, 3, true).row));
        let plausible = |value| verdicts.plausibility(&sample(value, 0, true).row);
        assert!(plausible(40.0) > 0.9 && plausible(-40.0) < 0.1 && plausible(20.0) > plausible(10.0));
        assert!(Verdicts::fit(&samples[..0], 4).is_none());
    }

    #[test]
    fn equations_are_solved() {
        let matrix = [[0.0, 2.0, 1.0], [1.0, -2.0, 4.0], [3.0, 1.0, -1.0]];
        let solution = [2.0, -1.0, 0.5];
        let right = matrix.map(|row| row.iter().zip(&solution).map(|(a, b)| a * b).sum());
        let found = solved(matrix, right);
        assert!(found.iter().zip(&solution).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }
}
