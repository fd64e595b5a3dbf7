//! Which settings suit a graph and a budget of time?
//!
//! [`choose`] makes a [`Plan`] for a graph without tuned settings. Nothing is learnt or read here.

mod choose;

pub use crate::cost::{GraphSize, Resources};
pub use choose::{Early, Plan, choose};
