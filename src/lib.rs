//! RuleGuider answers queries `(subject, relation, ?)` over an incomplete knowledge graph. Every answer comes with its
//! reason: the path that led to it, and the rule that the path follows.
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
//! Long work takes a [`Progress`](progress::Progress), which receives reports and may stop it.
//!
//! The modules are the rooms of the house; `ARCHITECTURE.md` says what each may know of the others, and a test keeps
//! that law. The library never prints, never exits and parses no arguments.

mod aside;
pub mod ask;
pub mod config;
pub mod embed;
pub mod eval;
mod fnv;
pub mod generate;
pub mod graph;
pub mod judge;
pub mod memory;
pub mod plan;
pub mod progress;
pub mod propagate;
pub mod reason;
pub mod report;
pub mod rule;
pub mod run;
pub mod settings;
pub mod shard;
pub mod shown;
#[cfg(test)]
#[path = "../tests/skip/mod.rs"]
mod skip;
mod suggest;
pub mod sweep;
pub mod tensor;
pub mod train;
pub mod walk;

pub use ask::{AskError as Error, Learn, Model};

/// The version of the library and of the program that comes with it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
