//! What is known: ids, names, triples, splits, and the indexes that every other room walks on.
//!
//! This room knows no other. [`Dataset`] is what a folder of files holds; [`Graph`] is the facts of it as
//! something to walk on. What a stage of training may see is [`Known`], which has no test split.

mod adjacency;
mod dataset;
mod ids;
mod index;
mod vocabulary;

pub use adjacency::{Adjacency, Edge};
pub use dataset::{Dataset, Known, Names};
pub use ids::{Direction, EntityId, Link, Query, RelationId, Triple};
pub use index::{Graph, LinkPairs};
pub use vocabulary::Vocabulary;
