//! A scored fact as scripts see it: as JSON, and as a row of a table.

use crate::ask::answer::is_false;
use crate::ask::{Contribution, HeldOut, Probability, Reason};
use crate::graph::{Cell, CellKind, TableColumn};
use serde::{Deserialize, Serialize};

/// A given fact with its scores. The names of the fields are a contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoredTriple {
    /// Its place in the list, from 1.
    pub line: u64,
    /// The subject by id, or as typed if it is not known.
    pub subject: String,
    /// The relation.
    pub relation: String,
    /// The object.
    pub object: String,
    /// The calibrated probability of the object, as [`predict`](crate::Model::predict) gives it.
    pub probability: Probability,
    /// Whether the probability is rough: calibrated on too little.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probability_rough: bool,
    /// The score of the object; absent if nothing supports it.
    pub score: Option<f64>,
    /// The rank of the object among all entities, without all other facts of the data.
    pub rank_tail: Option<f64>,
    /// The rank of the subject.
    pub rank_head: Option<f64>,
    /// How plausible the fact is by both ends, from 0 to 1; absent without thresholds.
    pub plausibility: Option<f64>,
    /// Whether it is taken to be true; absent without a threshold.
    #[serde(rename = "true")]
    pub is_true: Option<bool>,
    /// Whether the graph has it: then it was asked with itself taken out.
    pub known: bool,
    /// The split that has it, if it is a fact of the data that was held out.
    pub held_out: Option<HeldOut>,
    /// Whether the data say that it is false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub known_false: bool,
    /// Where they say so, if they tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_false_source: Option<String>,
    /// Whether the list calls it true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<bool>,
    /// The best reason for the object, or else for the subject; without path, rule and sentence if nothing supports either.
    #[serde(flatten)]
    pub reason: Reason,
    /// The score of a typical candidate of the object's query; absent if nothing supports the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// What the score came from: with `typical`, the shares add up to it; empty if nothing supports the object.
    #[serde(default)]
    pub because: Vec<Contribution>,
    /// The reason in one line.
    pub words: String,
    /// What is wrong with the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Names that may have been meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

impl ScoredTriple {
    /// The columns of a table of scored facts.
    pub const COLUMNS: [TableColumn; 15] = [
        TableColumn::new("subject", CellKind::Text),
        TableColumn::new("relation", CellKind::Text),
        TableColumn::new("object", CellKind::Text),
        TableColumn::new("probability", CellKind::Number),
        TableColumn::new("score", CellKind::Number),
        TableColumn::new("rank_tail", CellKind::Number),
        TableColumn::new("rank_head", CellKind::Number),
        TableColumn::new("plausibility", CellKind::Number),
        TableColumn::new("true", CellKind::Truth),
        TableColumn::new("known", CellKind::Truth),
        TableColumn::new("held_out", CellKind::Text),
        TableColumn::new("label", CellKind::Truth),
        TableColumn::new("reason", CellKind::Text),
        TableColumn::new("error", CellKind::Text),
        TableColumn::required("probability_rough", CellKind::Truth),
    ];

    /// It as a row of that table.
    pub fn cells(self) -> Vec<Cell> {
        vec![
            Cell::Text(self.subject),
            Cell::Text(self.relation),
            Cell::Text(self.object),
            self.probability.0.into(),
            self.score.into(),
            self.rank_tail.into(),
            self.rank_head.into(),
            self.plausibility.into(),
            self.is_true.into(),
            Cell::Truth(self.known),
            Cell::text(self.held_out.map_or("", HeldOut::split)),
            self.label.into(),
            Cell::Text(self.words),
            Cell::Text(self.error.unwrap_or_default()),
            Cell::Truth(self.probability_rough),
        ]
    }
}
