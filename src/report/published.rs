//! Published figures, as data, for comparison.

use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// One row of a published table, in per cent. `None` means not published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// The data set.
    pub dataset: String,
    /// The system, by the name of its configuration.
    pub system: String,
    /// `test` or `valid`.
    #[serde(default = "test")]
    pub split: String,
    /// Targets ranked first.
    #[serde(rename = "hits@1")]
    pub hits_at_1: Option<f64>,
    /// Targets among the first five.
    #[serde(rename = "hits@5")]
    pub hits_at_5: Option<f64>,
    /// Targets among the first ten.
    #[serde(rename = "hits@10")]
    pub hits_at_10: Option<f64>,
    /// The mean of 1 / rank.
    pub mrr: Option<f64>,
    /// For how many queries the path of the top answer is a rule.
    pub rule_share: Option<RuleShare>,
}

/// The share of rules among the paths of the top answers, in per cent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleShare {
    /// At the end of pre-training.
    pub pretraining: f64,
    /// At the end of joint training.
    pub training: f64,
}

/// All that was published.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// How it was ranked.
    pub protocol: PublishedProtocol,
    /// How people judged paths.
    pub judgement: PublishedJudgement,
    /// The rows.
    #[serde(rename = "row")]
    pub rows: Vec<PublishedRow>,
}

/// How published figures were measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedProtocol {
    /// What was ranked.
    pub ranking: String,
    /// How it differs from ours.
    pub differs: String,
}

/// How people judged the paths of two systems, in per cent of the items with a majority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedJudgement {
    /// The data set.
    pub dataset: String,
    /// The first system.
    pub first: String,
    /// The second system.
    pub second: String,
    /// Items for the first.
    pub first_better: f64,
    /// Items for neither.
    pub draw: f64,
    /// Items for the second.
    pub second_better: f64,
    /// Facts with identical paths.
    pub identical: f64,
    /// Facts that were drawn.
    pub triples: usize,
    /// Judges of each.
    pub judges: usize,
}

fn test() -> String {
    "test".to_owned()
}

/// The published figures.
pub fn published() -> &'static Published {
    static PUBLISHED: LazyLock<Published> = LazyLock::new(|| {
        toml::from_str(include_str!("../../configs/published.toml")).expect("a test reads this file")
    });
    &PUBLISHED
}

impl Published {
    /// The row of `system` on `dataset`.
    pub fn row(&self, dataset: &str, system: &str, split: &str) -> Option<&PublishedRow> {
        self.rows.iter().find(|row| row.dataset == dataset && row.system == system && row.split == split)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_once() {
        let published = published();
        for (at, row) in published.rows.iter().enumerate() {
            let first = published.rows.iter().position(|other| {
                (&other.dataset, &other.system, &other.split) == (&row.dataset, &row.system, &row.split)
            });
            assert_eq!(first, Some(at), "{row:?}");
            let figures = [row.hits_at_1, row.hits_at_5, row.hits_at_10];
            let given: Vec<f64> = figures.into_iter().flatten().collect();
            assert!(given.is_sorted() && row.mrr.is_none_or(|mrr| mrr < 100.0), "{row:?}");
        }
        let row = published.row("wn18rr", "ruleguider-complex", "test").unwrap();
        assert_eq!((row.hits_at_1, row.mrr), (Some(44.3), Some(48.0)));
    }

    #[test]
    fn every_system_of_the_paper_has_a_configuration() {
        for row in &published().rows {
            let name = format!("{}/{}", row.dataset, row.system);
            let small = ["umls", "kinship"].contains(&row.dataset.as_str());
            assert!(small || crate::config::names().any(|known| known == name), "{name}");
        }
    }
}
