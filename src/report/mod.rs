//! What people read about runs: tables beside the published figures, one HTML page, the rows of `reproduce`.

mod embedding_table;
pub mod figure;
#[cfg(feature = "study")]
pub mod judgement;
pub mod page;
pub mod published;
pub mod reproduce;
pub mod sweep;
pub mod tables;
