//! The reliability of probabilities: the reliability table and the expected calibration error.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of equal-width bins for probabilities from 0 to 1.
pub const BINS: usize = 10;

/// A predicted probability, and whether the answer is true.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The prediction.
    pub probability: f64,
    /// The truth.
    pub is_true: bool,
}

/// Answers whose probabilities lie in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// The lowest probability of the bin.
    pub from: f64,
    /// Where the bin ends; 1 belongs to the last bin, every other end to the next.
    pub to: f64,
    /// How many answers are in it.
    pub answers: usize,
    /// The mean of their probabilities; 0 if there are none.
    pub predicted: f64,
    /// The share of them that is true; 0 if there are none.
    pub observed: f64,
}

/// Predicted and observed shares in ten bins of equal width.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The mean squared difference between probability and truth (the Brier score).
    pub brier: f64,
    /// The bins, from 0 to 1.
    pub bins: Vec<ReliabilityBin>,
}

impl Reliability {
    /// The table of `verdicts` on the `top` best answers of each of `queries` queries.
    pub fn of(verdicts: &[Verdict], queries: usize, top: usize) -> Self {
        let width = 1.0 / BINS as f64;
        let mut sums = [(0usize, 0.0f64, 0usize); BINS];
        let mut squares = 0.0;
        for &Verdict { probability, is_true } in verdicts {
            let bin = ((probability * BINS as f64) as usize).min(BINS - 1);
            let (answers, predicted, trues) = &mut sums[bin];
            *answers += 1;
            *predicted += probability;
            *trues += usize::from(is_true);
            squares += (probability - f64::from(u8::from(is_true))).powi(2);
        }
        let bin = |(place, &(answers, predicted, trues)): (usize, &(usize, f64, usize))| ReliabilityBin {
            from: place as f64 * width,
            to: (place + 1) as f64 * width,
            answers,
            predicted: predicted / answers.max(1) as f64,
            observed: trues as f64 / answers.max(1) as f64,
        };
        let bins: Vec<ReliabilityBin> = sums.iter().enumerate().map(bin).collect();
        let all = verdicts.len().max(1) as f64;
        let apart = |bin: &ReliabilityBin| bin.answers as f64 * (bin.predicted - bin.observed).abs();
        Self {
            queries,
            top,
            answers: verdicts.len(),
            is_true: verdicts.iter().filter(|verdict| verdict.is_true).count(),
            ece: bins.iter().map(apart).sum::<f64>() / all,
            brier: squares / all,
            bins,
        }
    }
}

impl fmt::Display for Reliability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queries, top, answers, is_true, ece, brier, bins } = self;
        writeln!(
            f,
            "Probabilities of the {top} best answers of {queries} queries: {answers} answers, {is_true} true; \
             expected calibration error {ece:.4}, Brier score {brier:.4}"
        )?;
        writeln!(f, "probability   answers  predicted   true")?;
        for ReliabilityBin { from, to, answers, predicted, observed } in bins {
            match answers {
                0 => writeln!(f, "{from:.1} to {to:.1}  {answers:9}          –      –")?,
                _ => writeln!(f, "{from:.1} to {to:.1}  {answers:9}      {predicted:.3}  {observed:.3}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(said: &[(f64, bool)]) -> Vec<Verdict> {
        said.iter().map(|&(probability, is_true)| Verdict { probability, is_true }).collect()
    }

    #[test]
    fn the_error_is_the_mean_distance_by_answers() {
        let said =
            verdicts(&[(0.0, false), (0.05, false), (0.25, true), (0.25, false), (1.0, true), (0.1, false)]);
        let table = Reliability::of(&said, 2, 3);
        let counts: Vec<usize> = table.bins.iter().map(|bin| bin.answers).collect();
        assert_eq!(counts, [2, 1, 2, 0, 0, 0, 0, 0, 0, 1], "0.1 begins the second bin, 1 is in the last");
        let apart = 2.0 * 0.025 + 0.1 + 2.0 * 0.25 + 0.0;
        assert!((table.ece - apart / 6.0).abs() < 1e-12, "{}", table.ece);
        assert_eq!((table.answers, table.is_true), (6, 2));
        assert_eq!(Reliability::of(&[], 0, 10).ece, 0.0);
    }

    #[test]
    fn the_table_is_for_people() {
        let table = Reliability::of(&verdicts(&[(0.25, true), (0.93, true), (0.95, false)]), 1, 3);
        insta::assert_snapshot!(table.to_string(), @r"
        Probabilities of the 3 best answers of 1 queries: 3 answers, 2 true; expected calibration error 0.5433, Brier score 0.4900
        probability   answers  predicted   true
        0.0 to 0.1          0          –      –
        0.1 to 0.2          0          –      –
        0.2 to 0.3          1      0.250  1.000
        0.3 to 0.4          0          –      –
        0.4 to 0.5          0          –      –
        0.5 to 0.6          0          –      –
        0.6 to 0.7          0          –      –
        0.7 to 0.8          0          –      –
        0.8 to 0.9          0          –      –
        0.9 to 1.0          2      0.940  0.500
        ");
    }
}
