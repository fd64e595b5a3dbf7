//! Isotonic regression: the non-decreasing curve nearest to the observations.
//!
//! [`pool_adjacent_violators`] solves the problem exactly; [`Curve`] is the smooth form of the solution that is kept. A
//! pooled block is placed at its centre and the curve is straight between centres (centred isotonic regression, Oron
//! and Flournoy 2017), so that it keeps rising where plain isotonic regression has steps.

use serde::{Deserialize, Serialize};

/// An observed value and its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighted {
    /// The value.
    pub value: f64,
    /// Its weight; more than 0.
    pub weight: f64,
}

/// The sequence that never falls and has the least weighted squared distance to `points`.
pub fn pool_adjacent_violators(points: &[Weighted]) -> Vec<f64> {
    let blocks = pooled(points);
    blocks.iter().flat_map(|block| std::iter::repeat_n(block.mean.value, block.length)).collect()
}

/// Consecutive points that share one value in the solution.
struct Block {
    mean: Weighted,
    length: usize,
}

fn pooled(points: &[Weighted]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::with_capacity(points.len());
    for &point in points {
        let mut next = Block { mean: point, length: 1 };
        while let Some(last) = blocks.pop_if(|last| last.mean.value >= next.mean.value) {
            let weight = last.mean.weight + next.mean.weight;
            let sum = last.mean.weight * last.mean.value + next.mean.weight * next.mean.value;
            next =
                Block { mean: Weighted { value: sum / weight, weight }, length: last.length + next.length };
        }
        blocks.push(next);
    }
    blocks
}

/// A counted answer: its position, whether it is true, and how many answers counted as false are in fact true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counted {
    /// The position on the axis.
    pub at: f64,
    /// Whether it was true.
    pub is_true: bool,
    /// How many answers it stands for.
    pub weight: f64,
    /// How many false answers at this position are to be ignored.
    pub hidden: f64,
}

/// A curve that never falls: straight between its knots, level beyond them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    /// Where the knots are, ascending.
    at: Vec<f64>,
    /// The heights of the knots, ascending; one per position.
    height: Vec<f64>,
}

/// How many true answers a bin needs for a reliable share.
const TRUE_IN_A_BIN: f64 = 8.0;
/// The maximum number of knots of a curve.
const BINS: usize = 48;
/// How many pseudo-observations with the overall share every bin starts with.
const PRIOR: f64 = 1.0;

impl Curve {
    /// The share of true answers along the axis. Points at equal positions stay together; without points the curve is
    /// empty.
    pub(crate) fn of_shares(mut points: Vec<Counted>) -> Self {
        points.sort_by(|a, b| a.at.total_cmp(&b.at));
        if points.is_empty() {
            return Self::default();
        }
        let total = Bin::of(&points);
        // Never 0 and never 1, whatever was seen.
        let base = (total.is_true + 0.5) / (total.weight + 1.0);
        let trues = points.iter().filter(|point| point.is_true).count();
        let bins = binned(&points, trues as f64);
        let share = |bin: &Bin| Weighted {
            value: (bin.is_true + PRIOR * base) / (bin.weight + PRIOR),
            weight: bin.weight,
        };
        let shares: Vec<Weighted> = bins.iter().map(share).collect();
        let mut curve = Self::default();
        let mut from = 0;
        for block in pooled(&shares) {
            let within = &bins[from..from + block.length];
            let moment: f64 = within.iter().map(|bin| bin.weight * bin.at).sum();
            curve.at.push(moment / block.mean.weight);
            curve.height.push(block.mean.value);
            from += block.length;
        }
        curve
    }

    /// The curve with these knots, ascending.
    pub(crate) fn through(knots: impl Iterator<Item = (f64, f64)>) -> Self {
        let (at, height) = knots.unzip();
        Self { at, height }
    }

    /// The lowest knot: its position and its height.
    pub(crate) fn lowest(&self) -> Option<(f64, f64)> {
        Some((*self.at.first()?, *self.height.first()?))
    }

    /// The height at `at`; `None` if the curve is empty.
    pub(crate) fn height(&self, at: f64) -> Option<f64> {
        let after = self.at.partition_point(|&knot| knot <= at);
        let last = self.at.len().checked_sub(1)?;
        if after == 0 || after > last {
            return Some(self.height[after.min(last)]);
        }
        let (left, right) = (self.at[after - 1], self.at[after]);
        let part = (at - left) / (right - left);
        Some(self.height[after - 1] + part * (self.height[after] - self.height[after - 1]))
    }
}

/// Neighbouring points that are counted together.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    at: f64,
    is_true: f64,
    weight: f64,
}

impl Bin {
    fn of(points: &[Counted]) -> Self {
        let sum = |of: &dyn Fn(&Counted) -> f64| points.iter().map(of).sum::<f64>();
        let count = sum(&|point| point.weight);
        let at = sum(&|point| point.weight * point.at) / count;
        let is_true = sum(&|point| if point.is_true { point.weight } else { 0.0 });
        let hidden = sum(&|point| point.hidden);
        Self { at, is_true, weight: (count - hidden).max(is_true).max(f64::MIN_POSITIVE) }
    }
}

/// Divides sorted `points` into bins of about equally many true answers, or of equally many points where true answers
/// are scarce.
fn binned(points: &[Counted], trues: f64) -> Vec<Bin> {
    let count = ((trues / TRUE_IN_A_BIN) as usize).clamp(2, BINS) as f64;
    let mut bins = Vec::new();
    let (mut from, mut end) = (0, 0);
    for group in points.chunk_by(|a, b| a.at == b.at) {
        end += group.len();
        let within = &points[from..end];
        // Half by true answers, half by all answers, so that neither end is coarse.
        let by_true = within.iter().filter(|point| point.is_true).count() as f64 / trues.max(1.0);
        let by_all = within.len() as f64 / points.len() as f64;
        if (by_true + by_all) * count >= 2.0 || end == points.len() {
            bins.push(Bin::of(within));
            from = end;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The solution by its definition: the maximum over the minimum means of all stretches around a position.
    fn by_means(points: &[Weighted]) -> Vec<f64> {
        let mean = |stretch: &[Weighted]| {
            let weight: f64 = stretch.iter().map(|point| point.weight).sum();
            stretch.iter().map(|point| point.weight * point.value).sum::<f64>() / weight
        };
        (0..points.len())
            .map(|at| {
                let lowest = |from: usize| {
                    let means = (at..points.len()).map(|to| mean(&points[from..=to]));
                    means.fold(f64::INFINITY, f64::min)
                };
                (0..=at).map(lowest).fold(f64::NEG_INFINITY, f64::max)
            })
            .collect()
    }

    fn distance(points: &[Weighted], fitted: &[f64]) -> f64 {
        points.iter().zip(fitted).map(|(point, height)| point.weight * (point.value - height).powi(2)).sum()
    }

    proptest! {
        #[test]
        fn pooling_is_what_brute_force_finds(
            seen in prop::collection::vec((0u8..5, 1u8..4), 0..14),
            other in prop::collection::vec(-1.0f64..6.0, 14),
        ) {
            let points: Vec<Weighted> = seen
                .iter()
                .map(|&(value, weight)| Weighted { value: f64::from(value), weight: f64::from(weight) })
                .collect();
            let fitted = pool_adjacent_violators(&points);
            prop_assert_eq!(fitted.len(), points.len());
            for (one, two) in fitted.iter().zip(by_means(&points)) {
                prop_assert!((one - two).abs() < 1e-9, "{one} {two}");
            }
            prop_assert!(fitted.windows(2).all(|pair| pair[0] <= pair[1]));
            // No other non-decreasing sequence is nearer.
            let mut rising = other[..points.len()].to_vec();
            rising.sort_by(f64::total_cmp);
            prop_assert!(distance(&points, &fitted) <= distance(&points, &rising) + 1e-9);
        }

        #[test]
        fn a_curve_never_falls_and_stays_between_0_and_1(
            seen in prop::collection::vec((-3i8..4, any::<bool>()), 0..60),
        ) {
            let points = seen.iter().map(|&(at, is_true)| Counted { at: f64::from(at), is_true, weight: 1.0, hidden: 0.0 });
            let curve = Curve::of_shares(points.collect());
            prop_assert_eq!(curve.lowest().is_none(), seen.is_empty());
            let heights: Vec<f64> =
                (-40..=40).filter_map(|tenth| curve.height(f64::from(tenth) / 10.0)).collect();
            prop_assert!(heights.windows(2).all(|pair| pair[0] <= pair[1] + 1e-12));
            prop_assert!(heights.iter().all(|height| (0.0..=1.0).contains(height)));
        }
    }

    #[test]
    fn a_curve_is_straight_between_its_knots_and_level_beyond() {
        let curve = Curve { at: vec![0.0, 2.0], height: vec![0.25, 0.75] };
        let heights: Vec<f64> =
            [-1.0, 0.0, 1.0, 2.0, 9.0].iter().filter_map(|&at| curve.height(at)).collect();
        assert_eq!(heights, [0.25, 0.25, 0.5, 0.75, 0.75]);
        assert_eq!(Curve::default().height(0.0), None);
    }

    #[test]
    fn a_known_share_is_found() {
        // At position x of 0..10, a share of x / 10 is true.
        let points = (0..10_000).map(|at| {
            let x = f64::from(at % 10);
            Counted { at: x, is_true: (at / 10) % 10 < at % 10, weight: 1.0, hidden: 0.0 }
        });
        let curve = Curve::of_shares(points.collect());
        for x in 0..10 {
            let found = curve.height(f64::from(x)).unwrap();
            assert!((found - f64::from(x) / 10.0).abs() < 0.02, "{x}: {found}");
        }
    }
}
