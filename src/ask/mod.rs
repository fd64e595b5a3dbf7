//! What can be asked of a run: [`Model`] answers, explains and ranks; names are looked up as people type them.

pub mod answer;
mod error;
mod lookup;
mod many;
mod model;
mod question;
mod results;

pub use error::AskError;
pub use lookup::{Lookup, Naming};
pub use model::{Model, Split};
pub use question::{EmbeddingSaid, Example, Explanation, GroundedRule, Prediction};
pub use results::{RunReport, run};
