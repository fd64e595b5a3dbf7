//! What can be asked of a run: [`Model`] answers, explains and ranks; names are looked up as people type them.

mod again;
pub mod answer;
mod apply;
mod browse;
mod complete;
mod direction;
mod elsewhere;
mod error;
mod evaluated;
mod examples;
mod explain;
mod firing;
mod groundings;
mod learn;
mod lines;
mod many;
mod model;
mod names;
mod predict;
mod probability;
mod reasons;
mod results;
mod shards;

pub use again::{LearntEverything, UpdateReport};
pub use answer::{Answer, HeldOut, PathStep, Probability, Reason, RuleSummary};
pub use apply::{AppliedRules, DrawnRule};
pub use browse::{EntityFact, EntityFacts, LinkCount, Page, RelationUse};
pub use complete::{CompleteOptions, Completed, MissingFact, MissingFacts};
pub use elsewhere::OtherGraph;
pub use error::AskError;
pub use evaluated::{AboutEvaluation, Evaluated};
pub use examples::ExampleAnswer;
pub use explain::{EmbeddingOpinion, Explanation, WAYS};
pub use firing::{GroundedRule, WithoutRule};
pub use groundings::Groundings;
pub use learn::{Learn, Learning};
pub use lines::{AnsweredLines, QueryLine, QueryLines};
pub use model::{Model, OpenOptions};
pub use names::{Completion, NameIndex, Naming};
pub use predict::{HeldOutAnswer, Prediction};
pub use results::RunReport;
pub use shards::{
    IndexedData, Merged, ShardReport, Unfit, merge, mine_indexed_shard, mine_shard, mining_index,
    write_mining_index,
};
