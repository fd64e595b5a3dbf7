//! How often an entity is the answer to queries over a link: used to break ties.

use crate::reach::Reach;
use ruleguider_graph::{EntityId, Link};

/// The answers to all queries over one link, the most frequent first.
pub(super) struct Frequency {
    /// Sorted by entity, for lookup.
    counts: Vec<(EntityId, u32)>,
    /// The most frequent first.
    ranked: Vec<(EntityId, u32)>,
    total: f64,
}

impl Frequency {
    /// Counts how often `link` leads to each entity.
    pub(crate) fn new(reach: &Reach, link: Link) -> Self {
        let rows = reach.rows(link.reversed());
        let counts: Vec<(EntityId, u32)> = rows.map(|(entity, from)| (entity, from.len() as u32)).collect();
        let mut ranked = counts.clone();
        ranked.sort_by_key(|&(entity, count)| (std::cmp::Reverse(count), entity));
        Self { counts, ranked, total: reach.pairs(link).max(1) as f64 }
    }

    /// How often `entity` is the answer.
    pub(crate) fn of(&self, entity: EntityId) -> u32 {
        match self.counts.binary_search_by_key(&entity, |&(entity, _)| entity) {
            Ok(place) => self.counts[place].1,
            Err(_) => 0,
        }
    }

    /// All answers with their share of the facts, the most frequent first.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = (EntityId, f64)> {
        self.ranked.iter().map(|&(entity, count)| (entity, f64::from(count) / self.total))
    }
}
