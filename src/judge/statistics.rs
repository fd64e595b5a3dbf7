//! Intervals and agreement, from their definitions. Categories are numbers from 0.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The 97.5 % quantile of the normal distribution: intervals hold with 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's 95 % score interval of a share; `None` if `total` is 0.
pub fn wilson(successes: usize, total: usize) -> Option<[f64; 2]> {
    if total == 0 {
        return None;
    }
    let (n, p) = (total as f64, successes as f64 / total as f64);
    let scale = 1.0 + Z * Z / n;
    let centre = (p + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    // 0 and 1 are set exactly, since rounding would miss them.
    let low = if successes == 0 { 0.0 } else { centre - half };
    let high = if successes == total { 1.0 } else { centre + half };
    Some([low, high])
}

/// Krippendorff's alpha for nominal data: each unit has the categories that its judges chose, however many there were.
///
/// From the matrix of coincidences *o*, to which every ordered pair of votes in a unit of *m* adds 1 / (*m* − 1):
/// α = 1 − (n − 1) Σ_{c≠k} o_ck / Σ_{c≠k} n_c n_k. None where no unit has two votes or all votes are the same.
pub fn krippendorff_alpha<U: AsRef<[usize]>>(units: &[U]) -> Option<f64> {
    let categories = units.iter().flat_map(|unit| unit.as_ref()).max().map_or(0, |most| most + 1);
    let mut by_category = vec![0.0; categories];
    let mut disagreements = 0.0;
    for unit in units.iter().map(AsRef::as_ref).filter(|unit| unit.len() > 1) {
        let mut counts = vec![0usize; categories];
        for &category in unit {
            counts[category] += 1;
            by_category[category] += 1.0;
        }
        let agreeing: usize = counts.iter().map(|count| count * count.saturating_sub(1)).sum();
        let pairs = unit.len() * (unit.len() - 1);
        disagreements += (pairs - agreeing) as f64 / (unit.len() - 1) as f64;
    }
    let votes: f64 = by_category.iter().sum();
    let expected = votes * votes - by_category.iter().map(|count| count * count).sum::<f64>();
    (expected > 0.0).then(|| 1.0 - (votes - 1.0) * disagreements / expected)
}

/// Fleiss' kappa: each item has the number of judges who chose each category. `None` unless all items have the same
/// number of judges, at least two, and more than one category was chosen.
pub fn fleiss_kappa<C: AsRef<[usize]>>(items: &[C]) -> Option<f64> {
    let judges: usize = items.first()?.as_ref().iter().sum();
    let same = items.iter().all(|item| item.as_ref().iter().sum::<usize>() == judges);
    if !same || judges < 2 {
        return None;
    }
    let (n, pairs) = (items.len() as f64, (judges * (judges - 1)) as f64);
    let agreeing =
        |item: &C| item.as_ref().iter().map(|count| count * count.saturating_sub(1)).sum::<usize>();
    let observed = items.iter().map(agreeing).sum::<usize>() as f64 / (n * pairs);
    let categories = items.iter().map(|item| item.as_ref().len()).max().unwrap_or(0);
    let share = |category: usize| {
        let chosen = items.iter().map(|item| item.as_ref().get(category).copied().unwrap_or(0));
        chosen.sum::<usize>() as f64 / (n * judges as f64)
    };
    let expected: f64 = (0..categories).map(|category| share(category).powi(2)).sum();
    (expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
}

/// The 95 % percentile interval of a statistic over items resampled with replacement, `rounds` times. Samples for which
/// the statistic has no value are left out; `None` if no sample has one.
pub fn bootstrap<T>(
    items: &[T],
    rounds: usize,
    seed: u64,
    statistic: impl Fn(&[&T]) -> Option<f64>,
) -> Option<[f64; 2]> {
    if items.is_empty() {
        return None;
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut round = || {
        let drawn: Vec<&T> = items.iter().map(|_| &items[random.random_range(0..items.len())]).collect();
        statistic(&drawn)
    };
    let mut values: Vec<f64> = (0..rounds).filter_map(|_| round()).collect();
    values.sort_by(f64::total_cmp);
    Some([quantile(&values, 0.025)?, quantile(&values, 0.975)?])
}

/// The quantile of sorted numbers, linearly interpolated; `None` if there are none.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("a value");
        assert!((found - expected).abs() < 5e-4, "{found} instead of {expected}");
    }

    #[test]
    fn wilson_as_worked_out_by_hand() {
        // 8 of 10, z² = 3.8415: centre (0.8 + 0.19207) / 1.38415 = 0.71674,
        // half 1.95996 / 1.38415 · √(0.016 + 0.0096037) = 1.41601 · 0.160012 = 0.226579.
        let [low, high] = wilson(8, 10).unwrap();
        near(Some(low), 0.49016);
        near(Some(high), 0.94332);
        // None of ten: from 0 to z² / (n + z²) = 3.8415 / 13.8415.
        let [low, high] = wilson(0, 10).unwrap();
        assert_eq!(low, 0.0);
        near(Some(high), 0.27753);
        assert_eq!(wilson(10, 10).unwrap()[1], 1.0);
        assert_eq!(wilson(0, 0), None);
    }

    /// Krippendorff's example C of *Computing Krippendorff's alpha-reliability* (2011): four observers, twelve units, the
    /// last with a single value; nominal alpha 0.743. Values 1 to 5 are 0 to 4 here.
    #[test]
    fn alpha_as_published_by_its_author() {
        let units: [&[usize]; 12] = [
            &[0, 0, 0],
            &[1, 1, 2, 1],
            &[2, 2, 2, 2],
            &[2, 2, 2, 2],
            &[1, 1, 1, 1],
            &[0, 1, 2, 3],
            &[3, 3, 3, 3],
            &[0, 0, 1, 0],
            &[1, 1, 1, 1],
            &[4, 4, 4],
            &[0, 0],
            &[2],
        ];
        near(krippendorff_alpha(&units), 0.743);
    }

    #[test]
    fn alpha_as_worked_out_by_hand() {
        // Two judges: (a a) (a b) (b b) (b b). o_ab = o_ba = 1, n_a = 3, n_b = 5, n = 8.
        // alpha = 1 − 7 · 2 / (2 · 3 · 5) = 1 − 14 / 30.
        near(krippendorff_alpha(&[[0, 0], [0, 1], [1, 1], [1, 1]]), 16.0 / 30.0);
        assert_eq!(krippendorff_alpha(&[[0, 0], [1, 1]]), Some(1.0));
        assert_eq!(krippendorff_alpha(&[[0, 0], [0, 0]]), None);
        assert_eq!(krippendorff_alpha(&[vec![0], vec![1]]), None);
    }

    /// The example of Fleiss (1971) as Wikipedia has it: ten subjects, fourteen raters, five categories; kappa 0.210.
    #[test]
    fn kappa_as_published() {
        let items = [
            [0, 0, 0, 0, 14],
            [0, 2, 6, 4, 2],
            [0, 0, 3, 5, 6],
            [0, 3, 9, 2, 0],
            [2, 2, 8, 1, 1],
            [7, 7, 0, 0, 0],
            [3, 2, 6, 3, 0],
            [2, 5, 3, 2, 2],
            [6, 5, 2, 1, 0],
            [0, 2, 2, 3, 7],
        ];
        near(fleiss_kappa(&items), 0.210);
    }

    #[test]
    fn kappa_as_worked_out_by_hand() {
        // Three judges, two items: 3-0 and 1-2. P = (1 + 1/3) / 2 = 2/3; p = 4/6, 2/6; P_e = 20/36.
        // kappa = (24/36 − 20/36) / (16/36) = 1/4.
        near(fleiss_kappa(&[[3, 0], [1, 2]]), 0.25);
        assert_eq!(fleiss_kappa(&[[3, 0], [0, 2]]), None, "not all were judged by all");
        assert_eq!(fleiss_kappa(&[[3, 0], [3, 0]]), None, "nothing else was chosen");
        assert_eq!(fleiss_kappa(&[[1, 0], [0, 1]]), None, "one judge agrees with nobody");
        assert_eq!(fleiss_kappa::<[usize; 2]>(&[]), None);
    }

    #[test]
    fn the_bootstrap_of_a_share_is_near_the_normal_interval() {
        // 600 of 1000: ± 1.96 · √(0.24 / 1000) = ± 0.0304.
        let items: Vec<bool> = (0..1000).map(|at| at < 600).collect();
        let share =
            |drawn: &[&bool]| Some(drawn.iter().filter(|one| ***one).count() as f64 / drawn.len() as f64);
        let [low, high] = bootstrap(&items, 2000, 1, share).unwrap();
        assert!((low - 0.5696).abs() < 0.004 && (high - 0.6304).abs() < 0.004, "{low} {high}");
        assert_eq!(bootstrap(&items, 200, 5, share), bootstrap(&items, 200, 5, share));
        assert_eq!(bootstrap(&items[..0], 200, 5, share), None);
        assert_eq!(bootstrap(&items, 20, 5, |_| None), None);
    }

    #[test]
    fn quantiles_lie_between() {
        let numbers = [1.0, 2.0, 4.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&numbers, share).unwrap()),
            [1.0, 1.5, 2.0, 3.0, 4.0]
        );
        assert_eq!(quantile(&[], 0.5), None);
    }
}
