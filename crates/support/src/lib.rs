//! What every crate of RuleGuider may use and what knows none of them: atomic files and locks, reports of progress,
//! settings with their errors, names in messages.
//!
//! A module belongs here if `tensor` and `graph`, which do not know each other, both need it.
#![warn(unreachable_pub)]

pub mod aside;
pub mod fnv;
pub mod memory;
pub mod progress;
pub mod settings;
pub mod shown;
#[cfg(test)]
#[path = "../../../tests/skip/mod.rs"]
mod skip;
pub mod suggest;

/// The version of the library and of the program that comes with it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
