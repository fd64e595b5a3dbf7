//! The reliability of probabilities: the reliability table and the expected calibration error.
//!
//! Most answers are false and have a probability near 0, so the error over all answers says little about those that
//! people act on. The error above [`ACTED_ON`] is that of the others, in total and by relation.

use crate::graph::RelationId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The number of equal-width bins for probabilities from 0 to 1.
pub(crate) const BINS: usize = 10;
/// Answers with at least this probability are judged apart: where a bin begins.
pub(crate) const ACTED_ON: f64 = 0.2;
/// How many relations are judged apart.
const RELATIONS: usize = 10;

/// A predicted probability, and how certainly the answer is true.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The prediction.
    pub probability: f64,
    /// 1 for a fact and 0 for others; for a fact with a confidence, that.
    pub truth: f64,
}

/// The verdicts on the answers to a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdicts {
    /// The relation that was asked about.
    pub relation: RelationId,
    /// How many queries this one stands for, up to a factor that is the same for all.
    pub weight: f64,
    /// Its judged answers.
    pub answers: Vec<Verdict>,
}

/// Answers whose probabilities lie in one bin. Queries of a sample stand for several, so its shares are weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReliabilityBin {
    /// The lowest probability of the bin.
    pub from: f64,
    /// Where the bin ends; 1 belongs to the last bin, every other end to the next.
    pub to: f64,
    /// Predicted and observed shares.
    #[serde(flatten)]
    pub of: ReliabilityOf,
}

/// How reliable the probabilities of some answers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReliabilityOf {
    /// How many answers were asked for.
    pub answers: usize,
    /// How many of those are true.
    #[serde(rename = "true")]
    pub is_true: usize,
    /// The mean of their probabilities; none without answers.
    pub predicted: Option<f64>,
    /// The share of them that is true; none without answers.
    pub observed: Option<f64>,
    /// The 95 % interval of that share, by Wilson; none without answers.
    pub interval: Option<[f64; 2]>,
}

/// Predicted and observed shares in ten bins of equal width.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reliability {
    /// How many distinct queries were asked, however many triples each stands for.
    pub queries: usize,
    /// How many of the best answers of each query were considered.
    pub top: usize,
    /// How many answers that makes in total.
    pub answers: usize,
    /// How many of them are true.
    #[serde(rename = "true")]
    pub is_true: usize,
    /// The expected calibration error: the mean of |predicted − observed| over the bins, weighted by their answers.
    pub ece: f64,
    /// The same over the bins from 0.2 on.
    #[serde(rename = "error_above_0.2")]
    pub error_above: f64,
    /// The answers of these bins together.
    #[serde(rename = "above_0.2")]
    pub above: ReliabilityOf,
    /// The same for the ten relations with the most such answers.
    #[serde(rename = "by_relation_above_0.2")]
    pub by_relation: BTreeMap<String, ReliabilityOf>,
    /// The mean squared difference between probability and truth (the Brier score).
    pub brier: f64,
    /// The bins, from 0 to 1.
    pub bins: Vec<ReliabilityBin>,
}

/// Weighted sums over answers.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    answers: usize,
    trues: usize,
    weight: f64,
    squares: f64,
    predicted: f64,
    observed: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, Verdict { probability, truth }: Verdict) {
        self.answers += 1;
        self.trues += usize::from(truth > 0.0);
        self.weight += weight;
        self.squares += weight * weight;
        self.predicted += weight * probability;
        self.observed += weight * truth;
    }

    fn of<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            answers: sum.answers + part.answers,
            trues: sum.trues + part.trues,
            weight: sum.weight + part.weight,
            squares: sum.squares + part.squares,
            predicted: sum.predicted + part.predicted,
            observed: sum.observed + part.observed,
        })
    }

    fn shares(&self) -> ReliabilityOf {
        let &Self { answers, trues, weight, squares, predicted, observed } = self;
        if answers == 0 {
            return ReliabilityOf::default();
        }
        let observed = observed / weight;
        ReliabilityOf {
            answers,
            is_true: trues,
            predicted: Some(predicted / weight),
            observed: Some(observed),
            // As many answers of equal weight would be as certain.
            interval: Some(wilson(observed, weight * weight / squares)),
        }
    }

    fn apart(&self) -> f64 {
        (self.predicted - self.observed).abs()
    }
}

/// The 95 % interval of a share among `count`.
fn wilson(share: f64, count: f64) -> [f64; 2] {
    let z = 1.96;
    let (middle, scale) = (share + z * z / (2.0 * count), 1.0 + z * z / count);
    let wide = z * (share * (1.0 - share) / count + z * z / (4.0 * count * count)).sqrt();
    [((middle - wide) / scale).max(0.0), ((middle + wide) / scale).min(1.0)]
}

/// The first bin above [`ACTED_ON`].
const FIRST_ABOVE: usize = (ACTED_ON * BINS as f64) as usize;

fn bin_of(probability: f64) -> usize {
    ((probability * BINS as f64) as usize).min(BINS - 1)
}

impl Reliability {
    /// The table of `verdicts` on the `top` best answers of each query; `name` names relations.
    pub fn of(verdicts: &[Verdicts], top: usize, name: impl Fn(RelationId) -> String) -> Self {
        let mut bins = [Sums::default(); BINS];
        let mut relations: BTreeMap<RelationId, Sums> = BTreeMap::new();
        let mut squares = 0.0;
        for Verdicts { relation, weight, answers } in verdicts {
            for &verdict in answers {
                let bin = bin_of(verdict.probability);
                bins[bin].add(*weight, verdict);
                if bin >= FIRST_ABOVE {
                    relations.entry(*relation).or_default().add(*weight, verdict);
                }
                let Verdict { probability, truth } = verdict;
                squares +=
                    weight * (truth * (1.0 - probability).powi(2) + (1.0 - truth) * probability.powi(2));
            }
        }
        let all = Sums::of(bins.iter());
        let error = |bins: &[Sums]| {
            let weight = Sums::of(bins.iter()).weight;
            if weight > 0.0 { bins.iter().map(Sums::apart).sum::<f64>() / weight } else { 0.0 }
        };
        let bin = |(place, sums): (usize, &Sums)| ReliabilityBin {
            from: place as f64 / BINS as f64,
            to: (place + 1) as f64 / BINS as f64,
            of: sums.shares(),
        };
        let mut largest: Vec<(RelationId, Sums)> = relations.into_iter().collect();
        largest.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.answers));
        Self {
            queries: verdicts.len(),
            top,
            answers: all.answers,
            is_true: all.trues,
            ece: error(&bins),
            error_above: error(&bins[FIRST_ABOVE..]),
            above: Sums::of(bins[FIRST_ABOVE..].iter()).shares(),
            by_relation: largest
                .iter()
                .take(RELATIONS)
                .map(|(id, sums)| (name(*id), sums.shares()))
                .collect(),
            brier: if all.weight > 0.0 { squares / all.weight } else { 0.0 },
            bins: bins.iter().enumerate().map(bin).collect(),
        }
    }
}

impl fmt::Display for ReliabilityOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answers, predicted, observed, interval, .. } = self;
        match (predicted, observed, interval) {
            (Some(predicted), Some(observed), Some([low, high])) => {
                write!(f, "{answers:9}      {predicted:.3}  {observed:.3}  {low:.3} to {high:.3}")
            }
            _ => write!(f, "{answers:9}          –      –"),
        }
    }
}

impl fmt::Display for Reliability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queries, top, answers, is_true, ece, error_above, above, by_relation, brier, bins } = self;
        writeln!(
            f,
            "Probabilities of the {top} best answers of {queries} queries: {answers} answers, {is_true} true; \
             expected calibration error {ece:.4}, Brier score {brier:.4}"
        )?;
        writeln!(f, "Above {ACTED_ON}: {} answers, error {error_above:.4}", above.answers)?;
        writeln!(f, "probability   answers  predicted   true  95 % interval")?;
        for ReliabilityBin { from, to, of } in bins {
            writeln!(f, "{from:.1} to {to:.1}  {of}")?;
        }
        if !by_relation.is_empty() {
            writeln!(f, "By relation, above {ACTED_ON}:")?;
        }
        for (relation, of) in by_relation {
            writeln!(f, "            {of}  {}", crate::shown::Shown(relation))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(probability: f64, is_true: bool) -> Verdict {
        Verdict { probability, truth: if is_true { 1.0 } else { 0.0 } }
    }

    fn verdicts(answers: &[(f64, bool)], weight: f64, relation: u32) -> Verdicts {
        let answers = answers.iter().map(|&(probability, is_true)| verdict(probability, is_true)).collect();
        Verdicts { relation: RelationId(relation), weight, answers }
    }

    fn name(relation: RelationId) -> String {
        format!("r{}", relation.0)
    }

    #[test]
    fn the_error_is_the_mean_distance_by_answers() {
        let answers = [(0.0, false), (0.05, false), (0.25, true), (0.25, false), (1.0, true), (0.1, false)];
        let table =
            Reliability::of(&[verdicts(&answers[..3], 1.0, 0), verdicts(&answers[3..], 1.0, 1)], 3, name);
        let counts: Vec<usize> = table.bins.iter().map(|bin| bin.of.answers).collect();
        assert_eq!(counts, [2, 1, 2, 0, 0, 0, 0, 0, 0, 1], "0.1 begins the second bin, 1 is in the last");
        let above = 2.0 * 0.25 + 0.0;
        let apart = 2.0 * 0.025 + 0.1 + above;
        assert!((table.ece - apart / 6.0).abs() < 1e-12, "{}", table.ece);
        assert!((table.error_above - above / 3.0).abs() < 1e-12, "{}", table.error_above);
        assert_eq!((table.answers, table.is_true, table.queries), (6, 2, 2));
        assert_eq!((table.above.answers, table.above.is_true), (3, 2));
        assert_eq!(table.by_relation["r0"].answers, 1);
        assert_eq!(
            (table.by_relation["r1"].predicted, table.by_relation["r1"].observed),
            (Some(0.625), Some(0.5))
        );
        assert_eq!((table.bins[2].of.is_true, table.bins[5].of.answers), (1, 0));
        // Nothing is observed of no answers: a plot has no point there.
        let ReliabilityOf { predicted, observed, interval, .. } = table.bins[5].of;
        assert_eq!((predicted, observed, interval), (None, None, None));
        let none = Reliability::of(&[], 10, name);
        assert_eq!((none.ece, none.error_above, none.brier), (0.0, 0.0, 0.0));
    }

    #[test]
    fn an_answer_that_stands_for_four_counts_four_times() {
        let counted =
            Reliability::of(&[verdicts(&[(0.4, true)], 1.0, 0), verdicts(&[(0.4, false)], 4.0, 0)], 1, name);
        let [mut all, one] = [vec![], vec![verdicts(&[(0.4, true)], 1.0, 0)]];
        all.extend(one);
        all.extend((0..4).map(|_| verdicts(&[(0.4, false)], 1.0, 0)));
        let all = Reliability::of(&all, 1, name);
        for (counted, all) in
            [(counted.ece, all.ece), (counted.brier, all.brier), (counted.above.observed.unwrap(), 0.2)]
        {
            assert!((counted - all).abs() < 1e-12, "{counted} {all}");
        }
        // Two answers, however much they stand for, leave more doubt than five.
        let wide = |of: &ReliabilityOf| of.interval.map(|[low, high]| high - low).unwrap();
        assert!(wide(&counted.above) > wide(&all.above));
    }

    #[test]
    fn an_interval_holds_the_share() {
        let [low, high] = wilson(0.5, 100.0);
        assert!((low - 0.404).abs() < 1e-3 && (high - 0.596).abs() < 1e-3, "{low} {high}");
        assert_eq!(wilson(0.0, 5.0)[0], 0.0);
        assert!(wilson(0.0, 5.0)[1] > 0.4);
    }

    #[test]
    fn the_table_is_for_people() {
        let table =
            Reliability::of(&[verdicts(&[(0.25, true), (0.93, true), (0.95, false)], 1.0, 0)], 3, name);
        insta::assert_snapshot!(table.to_string());
    }
}
