//! Given facts: scored, classified, explained and doubted.
//!
//! A [`View`](view::View) asks a model for one or both ends of given facts, by the search that [`predict`](crate::Model::predict) uses, so that a
//! fact has one probability everywhere. A fact of the graph is asked of a view without it.
//! [`Verdicts`](verdict::Verdicts) tell true facts from false ones by what both ends say, fitted on the validation split.

mod classify;
mod doubt;
mod explain;
mod fit;
mod list;
mod relations;
mod row;
mod score;
#[cfg(test)]
mod tests;
mod verdict;
mod view;

pub use classify::Classification;
pub use doubt::{CounterEvidence, DetectionFigures, DoubtFigures, DoubtOptions, DoubtedFact, Doubts};
pub use explain::{ExplainedFile, ReasonRow};
pub(super) use fit::FittedVerdicts;
pub use relations::{RelationAnswer, RelationPrediction, RelationPredictionFigures};
pub use row::ScoredTriple;
pub(super) use score::merge_scores;
pub use score::{ScoreOptions, ScoredFile, Threshold};
