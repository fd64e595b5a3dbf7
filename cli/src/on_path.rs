//! The arguments that say which paths may be reasons.

use ruleguider::ask::{AskError, Model};
use ruleguider::reason::PathLimits;

/// Which paths may be reasons.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct OnPath {
    /// Only reasons whose path uses no other relation than this one, or passes through an entity of this type, or of this
    /// file, or through this entity; may be given several times
    #[arg(long, value_name = "RELATION|TYPE|ENTITY")]
    through: Vec<String>,
    /// Only reasons whose path does not use this relation, or does not pass through such an entity; may be given several
    /// times
    #[arg(long, value_name = "RELATION|TYPE|ENTITY")]
    without: Vec<String>,
    /// Only reasons whose path has at most N facts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_hops: Option<u32>,
}

impl OnPath {
    /// The same in the ids of `model`.
    pub fn limits(&self, model: &Model) -> Result<PathLimits, AskError> {
        model.path_limits(&self.through, &self.without, self.max_hops.map(|most| most as usize))
    }

    /// Whether any was given.
    pub fn is_given(&self) -> bool {
        !self.through.is_empty() || !self.without.is_empty() || self.max_hops.is_some()
    }
}
