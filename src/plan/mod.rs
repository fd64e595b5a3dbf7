//! How large, how long: a graph and a budget of time become settings.
//!
//! [`choose`] makes a [`Plan`] for a graph without tuned settings; [`Stage`] says which stages a configuration needs;
//! [`TimeBudget`] divides the time among them. Nothing is learnt or read here.

mod budget;
mod choose;
mod networks;
mod propagation;
mod stage;

pub use budget::{TimeBudget, Timed};
pub use choose::{Plan, choose};
pub use networks::{GraphSize, Resources};
pub use stage::Stage;
