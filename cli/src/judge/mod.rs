//! `ruleguider judge`: the storage of a study, and the server for judges.
//!
//! The study itself and the evaluation of votes are in the library. SQLite is here because only the program stores
//! votes: users of the library should not have to build a database.

mod page;
mod schema;
mod server;
mod store;
#[cfg(test)]
mod tests;

pub use server::serve;
pub use store::{Store, expect_new};
