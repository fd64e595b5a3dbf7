//! The actions of an entity: stay (NO_OP, always first), or follow one of its edges.
//!
//! If an entity has more edges than the bandwidth allows, the edges whose targets have the highest PageRank are kept.
//! Lists are ragged: one flat array, one start per entity, no padding.

use super::{Adjacency, Edge, EntityId, Link};

/// The action list of every entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actions {
    starts: Vec<u64>,
    actions: Vec<Edge>,
}

impl Actions {
    /// Lists with NO_OP and at most `bandwidth` edges each, kept by `rank` of their targets; edges of equal
    /// rank are kept in the order of the adjacency. A list stays sorted by (link, target), NO_OP first.
    pub fn new(adjacency: &Adjacency, rank: &[f64], bandwidth: usize) -> Self {
        let entities = adjacency.entities();
        let mut starts = Vec::with_capacity(entities + 1);
        let mut actions = Vec::with_capacity(adjacency.edge_count() + entities);
        starts.push(0);
        for entity in (0..entities as u32).map(EntityId) {
            actions.push(Edge { link: Link::NO_OP, target: entity });
            let edges = adjacency.edges(entity);
            if edges.len() <= bandwidth {
                actions.extend_from_slice(edges);
            } else {
                actions.extend(highest_ranked(edges, rank, bandwidth));
            }
            starts.push(actions.len() as u64);
        }
        Self { starts, actions }
    }

    /// How many entities have a list.
    pub fn entities(&self) -> usize {
        self.starts.len() - 1
    }

    /// The actions of `entity`: NO_OP, then edges by (link, target).
    pub fn of(&self, entity: EntityId) -> &[Edge] {
        &self.actions[self.starts[entity.index()] as usize..self.starts[entity.index() + 1] as usize]
    }

    /// Where each entity's list begins in [`all`](Self::all); one entry more than there are entities.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// All lists, one after the other.
    pub fn all(&self) -> &[Edge] {
        &self.actions
    }
}

fn highest_ranked(edges: &[Edge], rank: &[f64], bandwidth: usize) -> Vec<Edge> {
    let mut by_rank: Vec<u32> = (0..edges.len() as u32).collect();
    let rank_of = |place: u32| rank[edges[place as usize].target.index()];
    by_rank.sort_by(|&a, &b| rank_of(b).total_cmp(&rank_of(a)));
    by_rank.truncate(bandwidth);
    by_rank.sort_unstable();
    by_rank.into_iter().map(|place| edges[place as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Triple;

    fn star() -> Adjacency {
        let facts: Vec<Triple> = (1..6).map(|leaf| Triple::new(0, leaf % 2, leaf)).collect();
        Adjacency::new(7, &[&facts])
    }

    #[test]
    fn staying_comes_first_and_an_isolated_entity_can_only_stay() {
        let actions = Actions::new(&star(), &[0.0; 7], 10);
        let stay = |entity| Edge { link: Link::NO_OP, target: EntityId(entity) };
        assert_eq!(actions.of(EntityId(6)), [stay(6)]);
        assert_eq!(actions.of(EntityId(0))[0], stay(0));
        assert_eq!(&actions.of(EntityId(0))[1..], star().edges(EntityId(0)));
        assert_eq!(actions.entities(), 7);
        assert_eq!(actions.all().len(), *actions.starts().last().unwrap() as usize);
    }

    #[test]
    fn the_bandwidth_keeps_the_highest_ranked_targets() {
        let actions = Actions::new(&star(), &[0.0, 0.1, 0.5, 0.2, 0.4, 0.3, 0.0], 3);
        let mut kept: Vec<u32> = actions.of(EntityId(0))[1..].iter().map(|edge| edge.target.0).collect();
        assert!(actions.of(EntityId(0))[1..].is_sorted());
        kept.sort_unstable();
        assert_eq!(kept, [2, 4, 5]);
    }
}
