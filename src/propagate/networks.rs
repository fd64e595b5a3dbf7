//! The networks of a propagator: usually one, or several that start from other weights and whose scores are averaged.
//!
//! They are trained on the same queries, each by its own loss. Where they err in different ways, their mean errs less;
//! validation tells whether they do.

use super::network::Network;
use super::rows::{Area, Rows};
use super::settings::{FrontierBound, PropagateSettings};
use super::{NetworkError, StepPart};
use crate::tensor::{Device, EdgeIndex, Indices, Parameters, Reach, ReachQuery, Tape, Tensor, TensorError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the names of all but the first network's parameters begin with, before a number and a point.
const PREFIX: &str = "network.";

/// All networks of a propagator, with their parameters.
pub(super) struct Networks {
    pub(super) parameters: Parameters,
    members: Vec<Network>,
}

impl Networks {
    /// Networks with initial weights. The parameters of the first have plain names, those of the others are prefixed.
    pub(super) fn new(
        settings: &PropagateSettings,
        relations: usize,
        device: &Device,
        seed: u64,
    ) -> Result<Self, NetworkError> {
        settings.check()?;
        let mut parameters = Parameters::new(device, seed);
        let members = (1..=settings.networks).map(|number| {
            let prefix = if number == 1 { String::new() } else { format!("{PREFIX}{number}.") };
            Network::new(settings, relations, &mut parameters, &prefix)
        });
        let members = members.collect::<Result<_, _>>()?;
        Ok(Networks { parameters, members })
    }

    /// The name of a parameter within its network.
    pub(super) fn plain(name: &str) -> &str {
        let rest = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.'));
        rest.map_or(name, |(_, plain)| plain)
    }

    /// Every network.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Network> {
        self.members.iter()
    }

    /// Copies the weights of `other` that have the same name and shape.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn take_over(&mut self, other: &Networks) -> Result<(), TensorError> {
        for id in other.parameters.ids() {
            let value = other.parameters.value(id);
            let own = self.parameters.find(other.parameters.name(id));
            if let Some(own) = own.filter(|&own| self.parameters.value(own).shape() == value.shape()) {
                self.parameters.set(own, &value.to_vec()?)?;
            }
        }
        Ok(())
    }

    /// Sets the parameters of the first network that `values` names. The others keep their own: a mean of networks that
    /// start alike is hardly better than one of them.
    ///
    /// # Errors
    /// If a value has another shape, or the device fails.
    pub(super) fn begin_with(&mut self, values: &BTreeMap<String, Vec<f32>>) -> Result<(), TensorError> {
        for id in self.parameters.ids() {
            if let Some(value) = values.get(self.parameters.name(id)) {
                self.parameters.set(id, value)?;
            }
        }
        Ok(())
    }

    /// From now on, every network has this frontier.
    pub(super) fn set_frontier(&mut self, frontier: FrontierBound) {
        self.members.iter_mut().for_each(|member| member.frontier = frontier);
    }

    /// The area that every network answers queries over.
    pub(super) fn area(&self, edge_index: &EdgeIndex, asks: &[ReachQuery]) -> Result<Area, NetworkError> {
        self.members[0].area(edge_index, asks)
    }

    /// The mean score of every entity for queries by `links`, without gradients: `[queries, entities]`.
    pub(super) fn answers(&self, links: &Indices, area: &Area) -> Result<Tensor, NetworkError> {
        Ok(self.answers_and_rows(links, area)?.0)
    }

    /// The same, and the rows of every network.
    pub(super) fn answers_and_rows(
        &self,
        links: &Indices,
        area: &Area,
    ) -> Result<(Tensor, Vec<Rows>), NetworkError> {
        let mut rows = Vec::new();
        let mut tape = Tape::inference(&self.parameters);
        let mut sum = None;
        for network in &self.members {
            let (scores, of_network) = network.answers(&self.parameters, links, area)?;
            rows.push(of_network);
            let scores = tape.constant(scores)?;
            sum = Some(match sum {
                None => scores,
                Some(sum) => tape.add(sum, scores)?,
            });
        }
        let sum = sum.expect("there is at least one network");
        let mean = match self.members.len() {
            1 => sum,
            several => tape.scale(sum, (several as f32).recip())?,
        };
        Ok((tape.value(mean), rows))
    }

    /// Appends the seconds of each part of a step of the first network.
    pub(super) fn timed(
        &self,
        links: &Indices,
        reach: &Arc<Reach>,
        seed: u64,
        parts: &mut Vec<StepPart>,
    ) -> Result<(), NetworkError> {
        self.members[0].timed(&self.parameters, links, reach, seed, parts)
    }
}
