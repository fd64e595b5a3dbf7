//! What can be asked of a run: [`Model`] answers, explains and ranks; names are looked up as people type them.

mod among;
pub mod answer;
mod apply;
mod because;
mod browse;
mod complete;
mod direction;
mod elsewhere;
mod error;
mod evaluated;
mod examples;
mod explain;
mod export;
mod faithful;
mod firing;
mod given;
mod groundings;
mod held_out;
mod instant;
mod learn;
mod learnt_edits;
mod lines;
mod many;
mod model;
mod names;
mod noted;
mod overlay;
mod overview;
pub mod phrase;
mod predict;
mod probability;
mod reasons;
mod relearn;
mod results;
pub mod sentence;
mod shards;
mod wording;

pub use among::{AnswersAmong, EntityChoice};
pub use answer::{Answer, HeldOut, PathStep, Probability, Reason, RuleSummary};
pub use apply::{AppliedRules, DrawnRule};
pub use because::{Contribution, EvidenceShare, SimilarCase, because_in_words, signed};
pub use browse::{EntityAttribute, EntityFact, EntityFacts, LinkCount, Page, RelationUse};
pub use complete::{CompleteOptions, Completed, HeldOutFacts, MissingFact, MissingFacts, Recovered};
pub use elsewhere::OtherGraph;
pub use error::AskError;
pub use evaluated::{AboutEvaluation, EvaluateOptions, Evaluated, RankColumns, SituationColumns};
pub use examples::ExampleAnswer;
pub use explain::{EmbeddingOpinion, Explanation, MAX_PATHS};
pub use export::{ExportFormat, Exported, export};
pub use faithful::{Estimate, Faithfulness, MemberFaithfulness};
pub use firing::{GroundedRule, WithoutRule};
pub use given::{
    Classification, CounterEvidence, DetectionFigures, DoubtFigures, DoubtOptions, DoubtedFact, Doubts,
    ExplainedFile, ReasonRow, RelationAnswer, RelationPrediction, RelationPredictionFigures, ScoreOptions,
    ScoredFile, ScoredTriple, Threshold,
};
pub use groundings::Groundings;
pub use instant::{INSTANT, instant, with_weights};
pub use learn::{Learn, Learning};
pub use learnt_edits::LearntEdits;
pub use lines::{AnsweredLines, QueryLine, QueryLines};
pub use model::{Model, OpenOptions};
pub use names::{Completion, NameIndex, NamedItem, Naming};
pub use noted::StepNote;
pub use overlay::{AddedFact, Edited, Edits, NamedFact};
pub use overview::{EntityKind, ExampleQuestion, Overview, RelationExample};
pub use predict::{HeldOutAnswer, MOST_KNOWN, Prediction};
pub use relearn::{LearntEverything, UpdateReport};
pub use results::RunReport;
pub use shards::{Merged, ShardReport, merge, mine_shard};
