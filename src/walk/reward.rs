//! The reward of a finished walk: `R = λ R_r + (1 − λ) R_h`.
//!
//! `R_r` is the confidence of the walked relation path as a rule for the query's link; `R_h` is 1 at the target and the
//! embedding's `f(s, q, e)` elsewhere. A walk that could only end at a masked entity gets no `R_h`: it is not evidence
//! for this target.

use super::NetworkError;
use crate::graph::{EntityId, Link};

/// Looks relation paths up as rules.
pub trait PathRules: Sync {
    /// The confidence of `path` (as many links as the walk has hops, shorter bodies padded with NO_OP at the end)
    /// as a rule for `query`, or 0.
    fn confidence(&self, query: Link, path: &[Link]) -> f32;
}

/// No rules at all: every path earns 0.
pub struct NoRules;

impl PathRules for NoRules {
    fn confidence(&self, _query: Link, _path: &[Link]) -> f32 {
        0.0
    }
}

/// Why a soft reward could not be computed.
pub type SoftRewardError = Box<dyn std::error::Error + Send + Sync>;

/// The plausibility of facts by an embedding model, each from 0 to 1.
pub trait SoftReward: Sync {
    /// `f(s, q, e)` of each fact. Facts of one query are adjacent.
    ///
    /// # Errors
    /// Whatever makes the model fail.
    fn plausibility(&self, facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError>;
}

impl<F> SoftReward for F
where
    F: Fn(&[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> + Sync,
{
    fn plausibility(&self, facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> {
        self(facts)
    }
}

/// The rewards that train a walker.
#[derive(Clone, Copy)]
pub struct Teacher<'a> {
    /// The rules that reward relation paths.
    pub rules: &'a dyn PathRules,
    /// The embedding model that rewards plausible ends; without one they earn 0.
    pub soft: Option<&'a dyn SoftReward>,
}

/// Asks `soft` for the plausibility of distinct facts and checks that it returned one value per fact.
pub(super) fn ask_soft(
    soft: &dyn SoftReward,
    facts: &[(EntityId, Link, EntityId)],
) -> Result<Vec<f32>, NetworkError> {
    let values = soft.plausibility(facts).map_err(NetworkError::SoftReward)?;
    if values.len() != facts.len() {
        let why = format!("it gave {} values for {} facts", values.len(), facts.len());
        return Err(NetworkError::SoftReward(why.into()));
    }
    Ok(values)
}
