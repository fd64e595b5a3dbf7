//! Which answers do all paths together support? Messages flow along every edge, from the query's subject to every
//! entity in reach.
//!
//! A query's embedding starts at its subject. In every layer each entity passes its state on along all of its edges,
//! transformed by the edge's relation, and aggregates the incoming messages; after a few layers a small perceptron
//! scores every entity by its final state (Zhu et al., *Neural Bellman-Ford networks*, 2021). States depend on the
//! query and on the graph around it, not on the identity of entities, so the same weights answer over another graph
//! with the same relations ([`Propagator::on`]).
//!
//! - [`PropagateSettings`] are all the settings. [`train()`] makes a [`Propagator`], which answers as a
//!   [`Reasoner`](crate::eval::Reasoner) and gives the paths behind an answer ([`Propagator::paths`]).
//! - Entities that no message has reached have state zero and cost nothing.
//! - A training query must not see its own answer: its edge is taken out for that query alone, and with it every other
//!   link between the two where validation pairs are (almost) never linked ([`Removal`]).
//!
//! Gradients, devices and the edge index are left to `tensor`, the training loop to `train`, ranking to `eval`.

mod examples;
mod file;
mod network;
mod networks;
mod paths;
mod propagator;
mod rows;
mod settings;
#[cfg(test)]
mod tests;
mod trainer;

pub use examples::linked_share;
pub(crate) use paths::{MessageEdge, add_edges, best_paths};
pub use paths::{MessagePath, PathHop, PathNetwork};
pub use propagator::{Propagator, StepPart};
pub(crate) use rows::{Area, LayerInputs, Rows, picking};
pub use settings::{
    FrontierBound, InitialWeights, MessageAggregate, PropagateSettings, RelationWeights, Removal,
};
pub use trainer::{PropagateTask, TrainedPropagator, WarmPropagator, train};

use crate::train::NetworkError;
