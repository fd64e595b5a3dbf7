//! Triple classification: how well verdicts tell labelled facts apart.

use super::ScoredTriple;
use super::fit::{FOR_TEST, drawn_negatives};
use super::score::{ScoreOptions, Scorer};
use crate::ask::{AskError, Model};
use crate::eval::Split;
use crate::graph::Triple;
use crate::progress::Progress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Scores are told apart up to this many steps from 0 to 1, so that memory does not grow with the list.
const STEPS: f64 = (1 << 20) as f64;

/// The figures of triple classification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    /// How many labelled facts there were.
    pub facts: u64,
    /// How many of them are true.
    #[serde(rename = "true")]
    pub trues: u64,
    /// The share of right verdicts; absent without verdicts, as are the next three.
    pub accuracy: Option<f64>,
    /// The share of true ones among those taken to be true.
    pub precision: Option<f64>,
    /// The share of those taken to be true among the true ones.
    pub recall: Option<f64>,
    /// The harmonic mean of precision and recall.
    pub f1: Option<f64>,
    /// The area under the ROC curve: how often a true fact has a higher score than a false one.
    pub auc: Option<f64>,
    /// The area under the curve of precision and recall.
    pub average_precision: Option<f64>,
}

impl fmt::Display for Classification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { facts, trues, accuracy, precision, recall, f1, auc, average_precision } = self;
        write!(f, "{facts} labelled facts, {trues} true")?;
        let figures = [
            ("accuracy", accuracy),
            ("precision", precision),
            ("recall", recall),
            ("F1", f1),
            ("AUC", auc),
            ("average precision", average_precision),
        ];
        for (name, figure) in figures {
            if let Some(figure) = figure {
                write!(f, "; {name} {figure:.4}")?;
            }
        }
        Ok(())
    }
}

/// Counts labelled facts.
#[derive(Default)]
pub(super) struct Tally {
    /// True and false ones by their score, in steps.
    by_score: BTreeMap<u32, [u64; 2]>,
    /// Those taken to be true, true and false.
    positive: [u64; 2],
    /// Those taken to be false.
    negative: [u64; 2],
    facts: [u64; 2],
}

impl Tally {
    /// Counts a row, if it has a label.
    pub(super) fn add(&mut self, row: &ScoredTriple) {
        if row.error.is_some() {
            return;
        }
        let Some(label) = row.label else { return };
        let at = usize::from(!label);
        self.facts[at] += 1;
        match row.is_true {
            Some(true) => self.positive[at] += 1,
            Some(false) => self.negative[at] += 1,
            None => {}
        }
        let by_score = row.score.map_or(0.0, |score| 1.0 / (1.0 + (-score).exp()));
        let score = row.plausibility.or(row.probability.0).unwrap_or(by_score);
        self.by_score.entry((score * STEPS) as u32).or_default()[at] += 1;
    }

    /// The figures; `None` if no row had a label.
    pub(super) fn figures(&self) -> Option<Classification> {
        let [trues, falses] = self.facts;
        let facts = trues + falses;
        if facts == 0 {
            return None;
        }
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let judged: u64 = self.positive.iter().chain(&self.negative).sum();
        let (precision, recall) = (
            share(self.positive[0], self.positive[0] + self.positive[1]),
            share(self.positive[0], self.positive[0] + self.negative[0]),
        );
        let f1 = share(2 * self.positive[0], 2 * self.positive[0] + self.positive[1] + self.negative[0]);
        let (mut above, mut pairs, mut average) = ([0u64; 2], 0.0, 0.0);
        for own in self.by_score.values().rev() {
            // Ties count half.
            pairs += own[1] as f64 * (above[0] as f64 + own[0] as f64 / 2.0);
            above = [above[0] + own[0], above[1] + own[1]];
            average += own[0] as f64 * above[0] as f64 / (above[0] + above[1]).max(1) as f64;
        }
        let both = trues > 0 && falses > 0;
        Some(Classification {
            facts,
            trues,
            accuracy: share(self.positive[0] + self.negative[1], judged),
            precision: precision.filter(|_| judged > 0),
            recall: recall.filter(|_| judged > 0),
            f1: f1.filter(|_| judged > 0),
            auc: both.then(|| pairs / (trues as f64 * falses as f64)),
            average_precision: (trues > 0).then(|| average / trues as f64),
        })
    }
}

/// The share of false facts among the `first` of `facts`, worst first. A tie is worth its mean.
pub(super) fn precision_first(facts: &[(f64, bool)], first: usize) -> f64 {
    let mut found = 0.0;
    let mut left = first;
    for tied in facts.chunk_by(|a, b| a.0 == b.0) {
        let taken = left.min(tied.len());
        let falses = tied.iter().filter(|one| one.1).count();
        found += falses as f64 * taken as f64 / tied.len() as f64;
        left -= taken;
    }
    found / first.max(1) as f64
}

/// The average precision of an order in which false facts should come first. A tie is taken as a whole.
pub(super) fn average_precision(facts: &[(f64, bool)]) -> f64 {
    let (mut seen, mut found, mut sum) = (0usize, 0usize, 0.0);
    for tied in facts.chunk_by(|a, b| a.0 == b.0) {
        let falses = tied.iter().filter(|one| one.1).count();
        (seen, found) = (seen + tied.len(), found + falses);
        sum += falses as f64 * found as f64 / seen as f64;
    }
    sum / found.max(1) as f64
}

impl Model {
    /// Triple classification of a split: its facts, and the false ones of the data, or as many that are drawn within the
    /// types that the relations show. Thresholds are fitted on the validation split, with other false facts.
    ///
    /// # Errors
    /// If the validation split has been learnt, the reasoner fails, or the user interrupts.
    pub fn classify(
        &self,
        split: Split,
        options: &ScoreOptions,
        progress: &dyn Progress,
    ) -> Result<Classification, AskError> {
        let scorer = Scorer::new(self, options, false, progress)?;
        let trues: Vec<Triple> = split.triples(&self.dataset).to_vec();
        let known = self.dataset.answers();
        let given = match split {
            Split::Test => &self.dataset.test_negatives,
            _ => &self.dataset.known.valid_negatives,
        };
        let falses = match given.is_empty() {
            true => drawn_negatives(self.graph(), &trues, &known, self.seed(), FOR_TEST),
            false => given.to_vec(),
        };
        let mut tally = Tally::default();
        progress.begin("classifying", "facts", Some((trues.len() + falses.len()) as u64));
        let mut done = 0;
        for (facts, label) in [(&trues, true), (&falses, false)] {
            for block in facts.chunks(self.given_block()) {
                for row in scorer.facts(block, progress)? {
                    tally.add(&ScoredTriple { label: Some(label), ..row });
                }
                done += block.len() as u64;
                progress.advance(done, &"");
            }
        }
        let figures = tally.figures().ok_or_else(|| {
            AskError::Cannot("this split has no facts, so there is nothing to classify".to_owned())
        })?;
        progress.end(&figures);
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_their_definitions() {
        // Sorted by score: true, false, true, true, false; the verdict is true from 0.5 on.
        let rows = [(0.9, true), (0.8, false), (0.6, true), (0.4, true), (0.1, false)];
        let mut tally = Tally::default();
        for (score, label) in rows {
            let row = ScoredTriple { plausibility: Some(score), ..ScoredTriple::default() };
            tally.add(&ScoredTriple { label: Some(label), is_true: Some(score >= 0.5), ..row });
        }
        tally.add(&ScoredTriple::default());
        let figures = tally.figures().unwrap();
        assert_eq!((figures.facts, figures.trues), (5, 3));
        let close = |found: Option<f64>, expected: f64| assert!((found.unwrap() - expected).abs() < 1e-12);
        close(figures.accuracy, 3.0 / 5.0);
        close(figures.precision, 2.0 / 3.0);
        close(figures.recall, 2.0 / 3.0);
        close(figures.f1, 2.0 / 3.0);
        // Of six pairs, the true one is ahead in four.
        close(figures.auc, 4.0 / 6.0);
        close(figures.average_precision, (1.0 + 2.0 / 3.0 + 3.0 / 4.0) / 3.0);
        assert_eq!(Tally::default().figures(), None);
    }
}
