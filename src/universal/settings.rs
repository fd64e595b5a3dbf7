//! The size of a universal propagator. It is stored with the weights: they fit no other.

use crate::settings::{WrongValue, whole};
use serde::{Deserialize, Serialize};

/// The widest state: the kernels of the layer normalisation hold no more.
const WIDEST: usize = 256;
/// The most layers of either network.
const DEEPEST: usize = 64;

/// The size of the two networks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UniversalSettings {
    /// Numbers in the state of a link and of an entity, at most 256.
    pub width: usize,
    /// How many times messages are passed on between entities: the longest path that counts.
    pub layers: usize,
    /// How many times messages are passed on between relations.
    pub relation_layers: usize,
    /// Whether entities that no message has reached have states too. Their states tell of the links around them, so
    /// they are scored by those; it costs time, since every layer then visits all entities. Weights that were trained
    /// in one way answer badly in the other.
    pub whole: bool,
}

impl Default for UniversalSettings {
    fn default() -> Self {
        UniversalSettings { width: 32, layers: 6, relation_layers: 4, whole: true }
    }
}

impl UniversalSettings {
    /// Width of the hidden layer of the score.
    pub const HIDDEN: usize = 64;

    /// Checks every value.
    ///
    /// # Errors
    /// If one is out of range.
    pub fn check(&self) -> Result<(), WrongValue> {
        whole("width", self.width, 1..=WIDEST)?;
        whole("layers", self.layers, 1..=DEEPEST)?;
        whole("relation_layers", self.relation_layers, 1..=DEEPEST)
    }
}
