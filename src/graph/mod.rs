//! What is known: ids, names, triples, splits, and the indexes that every other room walks on.
//!
//! This room knows no other. [`Dataset`] is what a folder of files contains; [`Graph`] is its facts, indexed. What a
//! stage of training may see is [`Known`], which has no test split.

mod actions;
mod adjacency;
mod after;
mod array;
mod dataset;
mod error;
mod format;
mod ids;
mod index;
mod mapped;
mod memory;
mod pagerank;
mod predicted;
mod profile;
mod read;
mod relations;
mod renumber;
mod split;
mod stats;
mod subjects;
mod vocabulary;
mod write;

pub use actions::Actions;
pub use adjacency::{Adjacency, Edge};
pub use after::{after, read_after};
pub use array::Array;
pub use dataset::{Dataset, Findings, Known, Names};
pub use error::GraphError;
pub use format::{Compression, ENDINGS, FileKind, Format};
pub use ids::{Direction, EntityId, Link, Query, RelationId, Triple};
pub use index::{Graph, LinkPairs};
pub use mapped::{ArrayReader, ArrayWriter};
pub use memory::{Division, MemoryTriples, triple_columns};
pub use pagerank::pagerank;
pub use predicted::{PredictedFact, check_predicted, write_predicted};
pub use profile::{RelatedRelation, RelationProfile};
pub use read::{ReadOptions, glance, panic_is_caught, read, read_file, read_known, stamp};
pub use relations::OtherRelations;
pub use renumber::Renumbering;
pub use split::{SplitShares, evenly};
pub use stats::{Spread, Statistics};
pub use subjects::{count_queries, sensible_queries, subjects};
pub use vocabulary::Vocabulary;
pub use write::{check_writable, write_dataset, write_file, write_packed, write_packed_checked};
