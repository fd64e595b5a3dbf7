//! RuleGuider answers queries `(subject, relation, ?)` over an incomplete knowledge graph and shows the
//! path that led to every answer.
//!
//! The rooms, and the only rooms each may know, are listed in `ARCHITECTURE.md`; a test reads the `use`
//! lines and keeps that law. The library never prints, never exits and parses no arguments: long work
//! reports itself through [`progress::Progress`].

mod aside;
pub mod ask;
pub mod config;
pub mod embed;
pub mod eval;
pub mod generate;
pub mod graph;
pub mod plan;
pub mod progress;
pub mod reason;
pub mod report;
pub mod rule;
pub mod run;
pub mod tensor;
pub mod walk;

/// The version of the library and of the program that comes with it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
