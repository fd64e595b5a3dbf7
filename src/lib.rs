//! RuleGuider answers queries `(subject, relation, ?)` over an incomplete knowledge graph (link prediction, knowledge graph
//! completion). Every answer comes with its reason: the path that led to it, and the rule that the path follows.
//!
//! Answers are a blend of rules in AnyBURL's language, embeddings (ComplEx, DistMult, RotatE, ConvE), a walker of two
//! agents with rule guidance (RuleGuider; by its settings also MINERVA and MultiHop) and a propagator (NBFNet); one with
//! weights from other graphs (ULTRA) answers with no training at all. `CITATION.cff` names the papers.
//!
//! ```
//! use ruleguider::{Learn, Model};
//!
//! # fn main() -> Result<(), ruleguider::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let (data, out) = (folder.path().join("family"), folder.path().join("mine"));
//! # ruleguider::generate::write(60, 1, &data, false, &ruleguider::progress::Silent).unwrap();
//! // A folder with train, valid and test, or one file of triples. Interrupted, the same call goes on.
//! let model = Learn::new(&data).minutes(0.1).out(&out).seed(1).run()?;
//!
//! // Later, and as often as you like:
//! let model = Model::open(&out)?;
//! # let test = model.dataset().test[0];
//! # let (ada, uncle_of) = (model.names().entity(test.head), model.names().relation(test.relation));
//! # let ben = model.names().entity(test.tail);
//! for answer in model.predict(ada, uncle_of, 10)? {
//!     println!("{} {:.2} {}", answer.label, answer.probability, answer.reason);
//! }
//! let why = model.explain(ada, uncle_of, ben)?;
//! println!("place {:?}, {} rules predict it", why.rank, why.rules.len());
//! # Ok(())
//! # }
//! ```
//!
//! [`Learn`] has everything that can be chosen; [`Model`] answers, explains and ranks, from many threads at a time.
//! The [`tutorial`] goes through all of it. Long work takes a [`Progress`](progress::Progress), which receives reports and may stop it.
//!
//! Graphs, rules and tensors are crates of their own, which this one hands on as [`graph`], [`rule`] and [`tensor`].
//! Features leave out what a program does without, see `Cargo.toml`: `parquet` and `rdf` (file formats), `cuda`, `study`.
//! `ARCHITECTURE.md` says which module may use which others, and a test enforces it. The library never prints, never
//! exits and parses no arguments.
#![warn(unreachable_pub)]

pub mod ask;
pub mod config;
pub mod cost;
pub mod embed;
pub mod eval;
#[cfg(feature = "study")]
pub mod judge;
pub mod plan;
pub mod propagate;
pub mod reason;
pub mod report;
pub mod run;
#[cfg(test)]
#[path = "../tests/skip/mod.rs"]
mod skip;
pub mod sweep;
pub mod train;
pub mod tutorial;
pub mod universal;
pub mod walk;

pub use ask::{AskError as Error, Learn, Model};
pub use ruleguider_graph::{self as graph, generate, shard};
pub use ruleguider_rule as rule;
pub use ruleguider_support::{VERSION, memory, progress, settings, shown};
use ruleguider_support::{aside, fnv, suggest};
pub use ruleguider_tensor as tensor;
