//! Facts that arrive while a run is served, and what people decide about suggestions.
//!
//! The [`log`] of everything that was said is a file (SQLite); what holds now ([`state`]) follows from it. A change is on
//! the disk before it is answered. [`Live`] keeps both, and rebuilds the served model when they have changed: base and
//! edits become a new model ([`Model::with_edits`](ruleguider::ask::Model::with_edits)), which takes the place of the old
//! one while requests that hold the old one finish on it. [`tokens`] say who may do what.

pub mod event;
pub mod log;
pub mod review;
pub mod routes;
pub mod served;
pub mod state;
pub mod tokens;
pub mod written;

pub use served::Live;
#[cfg(unix)]
pub use served::reload_on_hangup;
