//! The rows of a batch of queries: everything that messages reach, or what a bounded frontier touches.
//!
//! Both networks, this one and the [universal](crate::universal) one, propagate over them. A bounded frontier grows with
//! the states: who passes messages on is decided by the scores that the rows would have as answers. So every network has
//! its own, while all may share a reach of everything.

use super::NetworkError;
use super::settings::FrontierBound;
use crate::tensor::{
    EdgeIndex, Frontier, Messages, Reach, ReachQuery, Result, ScoredRows, Tape, Tensor, Trace, UpdateWeights,
    Var,
};
use std::sync::Arc;

/// Where a batch of queries starts, and over how much of a graph it is answered.
pub(crate) enum Area {
    /// Everything within the layers, which several networks share.
    All(Arc<Reach>),
    /// What a frontier of so many rows touches.
    Bounded { edge_index: EdgeIndex, asks: Vec<ReachQuery>, most: usize },
}

impl Area {
    /// The area of `asks`. With `whole`, entities out of reach have rows too, if nothing bounds the frontier.
    pub(crate) fn new(
        edge_index: &EdgeIndex,
        asks: &[ReachQuery],
        (layers, whole, frontier): (usize, bool, FrontierBound),
    ) -> Result<Area> {
        Ok(match frontier {
            FrontierBound::All if whole => Area::All(Arc::new(Reach::whole(edge_index, asks, layers)?)),
            FrontierBound::All => Area::All(Arc::new(Reach::new(edge_index, asks, layers)?)),
            FrontierBound::Most(most) => {
                Area::Bounded { edge_index: edge_index.clone(), asks: asks.to_vec(), most }
            }
        })
    }

    /// The rows of one network, before its first layer.
    pub(crate) fn rows(&self) -> Result<Rows> {
        Ok(match self {
            Area::All(reach) => Rows::All(reach.clone()),
            Area::Bounded { edge_index, asks, most } => {
                let frontier = Box::new(Frontier::new(edge_index, asks, *most)?);
                Rows::Bounded { frontier, priorities: Vec::new() }
            }
        })
    }

    /// The rows of one network whose backward pass stores the derivative of every message, and where.
    pub(crate) fn traced(self) -> Result<(Rows, Arc<Trace>)> {
        let mut rows = self.rows()?;
        drop(self);
        let trace = match &mut rows {
            Rows::All(reach) => Arc::get_mut(reach).expect("the area was the only other owner").trace(),
            Rows::Bounded { frontier, .. } => frontier.trace(),
        };
        Ok((rows, trace))
    }

    /// How many nodes the graph has.
    pub(crate) fn nodes(&self) -> usize {
        match self {
            Area::All(reach) => reach.nodes(),
            Area::Bounded { edge_index, .. } => edge_index.nodes(),
        }
    }
}

/// The rows that a network propagates over.
pub(crate) enum Rows {
    /// Everything within its layers.
    All(Arc<Reach>),
    /// A frontier, and the priorities of the rows that were updated last.
    Bounded { frontier: Box<Frontier>, priorities: Vec<f32> },
}

/// The inputs of a layer: states, weights of the kinds and starts, and the weights of the update.
pub(crate) struct LayerInputs {
    /// The number of the layer, from 1.
    pub(crate) number: usize,
    pub(crate) messages: Messages,
    pub(crate) update: UpdateWeights,
    pub(crate) dropout: f32,
}

impl Rows {
    /// The states after a layer. `score` gives rows the scores that they would have as answers, from their states and
    /// what the queries start with; it is asked where these decide who passes messages on in the next layer.
    pub(crate) fn layer<'a, E: From<crate::tensor::TensorError>>(
        &mut self,
        tape: &mut Tape<'a>,
        inputs: LayerInputs,
        score: impl FnOnce(&mut Tape<'a>, (Var, Var), &ScoredRows) -> std::result::Result<Var, E>,
    ) -> std::result::Result<Var, E> {
        let LayerInputs { number, messages, update, dropout } = inputs;
        match self {
            Rows::All(reach) => {
                Ok(tape.propagate_layer(messages.passed, messages, update, (&*reach, number), dropout)?)
            }
            Rows::Bounded { frontier, priorities } => {
                let step = frontier.grow(priorities)?;
                let states = tape.frontier_layer(messages, update, &step, dropout)?;
                if frontier.is_bounded() {
                    // Which rows pass on is no differentiable choice.
                    let mut beside = tape.beside();
                    let updated = beside.constant(tape.value(states.updated))?;
                    let start = beside.constant(tape.value(messages.start))?;
                    let scores = score(&mut beside, (updated, start), &step.scored_rows())?;
                    *priorities = beside.value(scores).to_vec()?;
                }
                Ok(states.all)
            }
        }
    }

    /// The rows after the last layer.
    pub(crate) fn scored(&self) -> Result<ScoredRows> {
        match self {
            Rows::All(reach) => Ok(reach.scored_rows()),
            Rows::Bounded { frontier, .. } => frontier.scored_rows(),
        }
    }

    /// Visits the messages of a layer, from 0, of a single query: the node they leave, their kind, the node they enter,
    /// and their derivative.
    pub(crate) fn each_message(&self, layer: usize, slopes: &[f32], visit: impl FnMut(u32, u32, u32, f32)) {
        match self {
            Rows::All(reach) => reach.each_edge(layer, slopes, visit),
            Rows::Bounded { frontier, .. } => frontier.each_message(layer, slopes, visit),
        }
    }

    /// The nodes that the first query has touched, if the frontier is bounded.
    pub(crate) fn touched(&self) -> Option<&[u32]> {
        match self {
            Rows::All(_) => None,
            Rows::Bounded { frontier, .. } => Some(frontier.touched(0)),
        }
    }

    /// How many messages were sent and how many rows updated, if the frontier is bounded.
    pub(crate) fn work(&self) -> Option<[usize; 2]> {
        match self {
            Rows::All(_) => None,
            Rows::Bounded { frontier, .. } => Some([frontier.messages(), frontier.updates()]),
        }
    }

    /// The reach of everything, for what works on nothing else.
    ///
    /// # Errors
    /// If the frontier is bounded.
    pub(crate) fn all(&self, what: &str) -> std::result::Result<&Arc<Reach>, NetworkError> {
        match self {
            Rows::All(reach) => Ok(reach),
            Rows::Bounded { .. } => {
                Err(NetworkError::Unsuitable { why: format!("{what} needs a frontier of all") })
            }
        }
    }
}

/// A tensor of one row that picks the score of one node.
pub(crate) fn picking(
    device: &crate::tensor::Device,
    nodes: usize,
    node: usize,
    share: f32,
) -> Result<Tensor> {
    let mut picked = vec![0.0; nodes];
    picked[node] = share;
    Tensor::new(device, &picked, 1, nodes)
}
