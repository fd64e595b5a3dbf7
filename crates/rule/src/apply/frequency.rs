//! How often an entity is the answer to queries over a link: used to break ties.

use crate::reach::Reach;
use ruleguider_graph::{Crowd, EntityId, Link};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// The answers to all queries over one link, the most frequent first.
pub(super) struct Frequency {
    /// Sorted by entity, for lookup.
    counts: Vec<(EntityId, u32)>,
    /// The most frequent first; those as frequent as each other by id.
    ranked: Arc<[EntityId]>,
    /// Where in `ranked` the entities of each frequency end.
    ends: Vec<(u32, usize)>,
    total: f64,
}

/// The entities that are the answer equally often.
pub(super) struct EquallyFrequent<'a> {
    all: &'a Frequency,
    range: Range<usize>,
    /// Which part of the facts each of them is the answer of.
    pub(crate) share: f64,
}

impl Frequency {
    /// Counts how often `link` leads to each entity.
    pub(crate) fn new(reach: &Reach, link: Link) -> Self {
        let rows = reach.rows(link.reversed());
        let counts: Vec<(EntityId, u32)> = rows.map(|(entity, from)| (entity, from.len() as u32)).collect();
        let mut ranked = counts.clone();
        ranked.sort_unstable_by_key(|&(entity, count)| (Reverse(count), entity));
        let mut end = 0;
        let ends = ranked.chunk_by(|a, b| a.1 == b.1).map(|equal| {
            end += equal.len();
            (equal[0].1, end)
        });
        let (ends, total) = (ends.collect(), reach.pairs(link).max(1) as f64);
        Self { counts, ranked: ranked.iter().map(|one| one.0).collect(), ends, total }
    }

    /// How often `entity` is the answer.
    pub(crate) fn of(&self, entity: EntityId) -> u32 {
        match self.counts.binary_search_by_key(&entity, |&(entity, _)| entity) {
            Ok(place) => self.counts[place].1,
            Err(_) => 0,
        }
    }

    /// All answers, the most frequent first, those that are equally frequent together.
    pub(crate) fn classes(&self) -> impl Iterator<Item = EquallyFrequent<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|one| one.1));
        let class = |(start, &(count, end)): (usize, &(u32, usize))| EquallyFrequent {
            all: self,
            range: start..end,
            share: f64::from(count) / self.total,
        };
        starts.zip(&self.ends).map(class)
    }
}

impl EquallyFrequent<'_> {
    /// Their ids, ascending.
    pub(crate) fn ids(&self) -> &[EntityId] {
        &self.all.ranked[self.range.clone()]
    }

    /// All of them but those `without`.
    pub(crate) fn crowd(&self, without: Vec<EntityId>) -> Crowd {
        Crowd::new(Arc::clone(&self.all.ranked), self.range.clone(), without)
    }
}
