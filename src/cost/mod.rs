//! How long does training take, and how is a budget of time divided among the members of a run?
//!
//! The estimates count multiply-adds; [`Networks`] is the largest networks that fit into a budget; [`TimeBudget`]
//! divides the time while it passes. Nothing is learnt or read here.

mod budget;
mod networks;
mod propagation;

pub use budget::{TimeBudget, Timed};
pub use networks::{Beside, GraphSize, Networks, Resources, comparing, embed_epoch, searching, walking};
pub use propagation::{propagated, propagating};
