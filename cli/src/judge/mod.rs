//! `ruleguider judge`: where a study is kept, and the server to which judges come.
//!
//! The study itself and what votes come to are the library's. SQLite is here and not there, because only the program
//! keeps votes: whoever uses the library would have to build a database for nothing.

mod page;
mod schema;
mod server;
mod store;
#[cfg(test)]
mod tests;
pub mod token;

pub use server::serve;
pub use store::{Store, expect_new};
