//! Which links often lead from an entity to itself.

use crate::graph::{Graph, Link};
use crate::rule::{Counts, UNSEEN};
use std::sync::{Arc, OnceLock};

/// From this confidence on, a link from an entity to itself counts as a rule. Far below the confidence that rewards a
/// walker (0.15 by default): it keeps out single odd facts, and only those.
const REFLEXIVE: f64 = 0.1;

/// Knows for which links an entity is plausibly its own answer. For others a score is not enough: a single odd fact
/// does not count.
pub(super) struct Reflexive {
    graph: Arc<Graph>,
    /// By link, computed on first use.
    found: Vec<OnceLock<bool>>,
}

impl Reflexive {
    pub(crate) fn new(graph: &Arc<Graph>) -> Self {
        Self { graph: Arc::clone(graph), found: vec![OnceLock::new(); graph.links()] }
    }

    /// Whether `link` often leads from an entity to itself.
    pub(crate) fn is(&self, link: Link) -> bool {
        let often = || {
            let (mut predicted, mut correct) = (0, 0);
            for (from, to) in self.graph.pairs(link).rows() {
                predicted += 1;
                correct += u64::from(to.binary_search(&from).is_ok());
            }
            Counts::exact(predicted, correct).confidence(UNSEEN) >= REFLEXIVE
        };
        *self.found[link.index()].get_or_init(often)
    }
}
