//! The last step of a calibration to few true answers: a shift and a slope instead of a curve.
//!
//! Isotonic regression through a handful of true answers is a staircase of two or three steps, and whatever lies below
//! the first true answer seems impossible. So cross-validated log-odds `x` become `a + b x`, as Platt scaling has it:
//! `a` is drawn towards 0 and `b` towards 1, which is to believe the log-odds, and `b` is never negative. The fewer the
//! answers, the more they are believed.

use super::features::share_of;
use super::isotonic::{Counted, Curve};

/// The standard deviations of `a` and `b`, in the prior.
const SHIFT: f64 = 2.0;
const SLOPE: f64 = 0.5;
/// The least slope: a better answer always has a higher probability.
const LEAST_SLOPE: f64 = 0.05;
/// Steps of Newton's method.
const STEPS: usize = 30;
/// The knots of the curve.
const KNOTS: usize = 33;

/// The shares that log-odds stand for, as a curve over the range of `predictions`.
pub(super) fn rescaled(predictions: &[Counted]) -> Curve {
    let ends = predictions
        .iter()
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], one| [low.min(one.at), high.max(one.at)]);
    let [low, high] = ends;
    if low > high {
        return Curve::default();
    }
    let [shift, slope] = fitted(predictions);
    let count = if low < high { KNOTS } else { 1 };
    let at = |knot: usize| low + (high - low) * knot as f64 / (count.max(2) - 1) as f64;
    Curve::through((0..count).map(|knot| (at(knot), share_of(shift + slope * at(knot)))))
}

/// The shift and the slope.
fn fitted(predictions: &[Counted]) -> [f64; 2] {
    // An answer stands for as many as its query does, but is no more evidence than one.
    let total: f64 = predictions.iter().map(|one| one.weight).sum();
    let unit = predictions.len() as f64 / total.max(f64::MIN_POSITIVE);
    let [mut shift, mut slope] = [0.0, 1.0];
    for _ in 0..STEPS {
        let mut gradient = [shift / SHIFT.powi(2), (slope - 1.0) / SLOPE.powi(2)];
        let mut curvature = [[1.0 / SHIFT.powi(2), 0.0], [0.0, 1.0 / SLOPE.powi(2)]];
        for &Counted { at, is_true, weight, hidden } in predictions {
            let share = share_of(shift + slope * at);
            let off = weight * (share - f64::from(u8::from(is_true))) - hidden * share;
            let bend = (weight - hidden).max(0.0) * share * (1.0 - share);
            let row = [1.0, at];
            for i in 0..2 {
                gradient[i] += unit * off * row[i];
                (0..2).for_each(|j| curvature[i][j] += unit * bend * row[i] * row[j]);
            }
        }
        let [[a, b], [_, d]] = curvature;
        let determinant = a * d - b * b;
        let step = [
            (d * gradient[0] - b * gradient[1]) / determinant,
            (a * gradient[1] - b * gradient[0]) / determinant,
        ];
        // Both are of the size of log-odds, so longer steps overshoot.
        let length = step[0].abs().max(step[1].abs());
        let part = if length > 1.0 { 1.0 / length } else { 1.0 };
        shift -= part * step[0];
        slope = (slope - part * step[1]).max(LEAST_SLOPE);
        if length < 1e-9 {
            break;
        }
    }
    [shift, slope]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at: f64, is_true: bool) -> Counted {
        Counted { at, is_true, weight: 1.0, hidden: 0.0 }
    }

    #[test]
    fn a_few_answers_leave_log_odds_nearly_as_they_are_and_many_do_not() {
        // Where the log-odds are 2, half of the answers are true.
        let answers = |count: usize| -> Vec<Counted> {
            (0..count).flat_map(|_| [seen(2.0, true), seen(2.0, false), seen(-3.0, false)]).collect()
        };
        let height = |count: usize| rescaled(&answers(count)).height(2.0).unwrap();
        assert!(height(1) > 0.6 && height(1) < share_of(2.0), "{}", height(1));
        assert!((height(500) - 0.5).abs() < 0.02, "{}", height(500));
    }

    #[test]
    fn a_better_answer_is_always_more_likely_and_nothing_is_impossible() {
        // The only true answer is the worst one.
        let answers = [seen(-4.0, true), seen(-1.0, false), seen(1.0, false), seen(3.0, false)];
        let curve = rescaled(&answers);
        let heights: Vec<f64> = answers.iter().map(|one| curve.height(one.at).unwrap()).collect();
        assert!(heights.is_sorted_by(|a, b| a < b) && heights[0] > 0.0, "{heights:?}");
        assert_eq!(rescaled(&[]).height(0.0), None);
        assert!(rescaled(&answers[..1]).height(0.0).is_some());
    }
}
