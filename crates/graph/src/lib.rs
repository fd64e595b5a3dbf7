//! What is known: ids, names, triples, splits, and the indexes that everything else walks on.
//!
//! [`Dataset`] is what a folder of files contains; [`Graph`] is its facts, indexed. What a
//! stage of training may see is [`Known`], which has no test split. A [`Reasoner`] is whatever answers queries.
#![warn(unreachable_pub)]

mod actions;
mod adjacency;
mod after;
mod all_splits;
mod annotated;
mod array;
mod attributes;
mod by_time;
mod corrupt;
mod data_file;
mod dataset;
mod error;
mod format;
pub mod generate;
mod graph;
mod ids;
mod labels;
mod mapped;
mod memory;
mod notes;
mod pagerank;
mod predicted;
mod prefixes;
mod profile;
mod read;
mod reasoner;
#[cfg(feature = "rdf")]
mod reified;
mod relations;
mod renumber;
#[cfg(feature = "parquet")]
mod row_groups;
mod rows;
pub mod shard;
#[cfg(feature = "rdf")]
pub mod sparql;
mod split;
mod staged;
mod stats;
mod subjects;
mod sums;
mod table;
mod time;
mod types;
mod vocabulary;
mod write;

pub use actions::Actions;
pub use adjacency::{Adjacency, Edge};
pub use after::{after, read_after};
pub use all_splits::with_all_splits;
pub use annotated::{AnnotatedFact, RdfStyle, UsedFact, is_annotated, write_annotated};
pub use array::Array;
pub use attributes::{Attributes, AttributesBuilder};
pub use by_time::divided_by_time;
pub use corrupt::{corrupted, mixed};
pub use data_file::{DATA_FILE_ENDING, DataFile, DataSums};
pub use dataset::{Dataset, FactCounts, Findings, Indexed, Known, Names};
pub use error::GraphError;
pub use format::{Compression, ENDINGS, FileKind, Format};
pub use graph::{Graph, LinkPairs};
pub use ids::{Direction, EntityId, Link, Query, RelationId, Triple};
pub use labels::{LabelMap, Labelled};
pub use memory::{Division, MemoryTriples, triple_columns};
pub use notes::{Note, Notes, NotesBuilder};
pub use pagerank::pagerank;
pub use predicted::{PredictedFact, check_predicted, write_predicted};
pub use prefixes::Prefixes;
pub use profile::{Likeness, RelatedRelation, RelationProfile, TypeCount};
pub use read::{
    ChosenColumns, ColumnChoice, Conflicts, Literals, ReadOptions, beside_columns, chosen_columns, is_part,
    panic_is_caught, read, read_file, read_known, read_undivided,
};
pub use reasoner::{Answers, Crowd, CrowdedAnswers, Reasoner, ReasonerError, Scored};
pub use relations::OtherRelations;
pub use renumber::Renumbering;
pub use rows::{NamedRow, NamedRows, RowColumn, ending_of_rows};
pub use split::{SplitShares, evenly, spread_places};
pub use staged::{Staged, is_free};
pub use stats::{Spread, Statistics};
pub use subjects::{count_queries, sensible_queries, subjects};
pub use table::{Cell, CellKind, TableColumn, TableRows, check_table, header_line, table_line, write_table};
pub use time::Time;
pub use types::{TypeId, Types, TypesBuilder};
pub use vocabulary::Vocabulary;
pub use write::{check_writable, lost_in, write_dataset, write_file, write_packed, write_undivided};

/// The example of the README, which is tested here.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
