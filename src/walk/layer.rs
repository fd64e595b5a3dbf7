//! The distinct states of one hop, shared by all walks that are in them.
//!
//! - An *entity state* is a query of the batch and the entities visited for it: what the entity agent's memory
//!   and candidate list depend on. All rollouts of a query begin in one. For a single agent the links walked
//!   are part of it too.
//! - A *history* is a sequence of links, whatever the query: what the relation agent's memory depends on.
//! - A *head* is a history with the link asked for: what the relation agent's distribution depends on.
//!
//! States of a layer are numbered in the order in which walks reach them, so the same walks give the same
//! layers for any number of threads. A gradient through a shared state is the sum over the walks in it.
//! Dropout masks are drawn once for each state rather than for each walk: every walk still sees masks of the
//! right distribution, so the expected gradient is the same.

use super::config::Agents;
use super::world::Ask;
use crate::graph::Link;
use hashbrown::HashMap;

/// The states of one walk in a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stand {
    /// Its entity state.
    pub(super) state: u32,
    /// Its history.
    pub(super) history: u32,
    /// Its head.
    pub(super) head: u32,
}

/// What one walk does next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// From where.
    pub(super) from: Stand,
    /// Along which link.
    pub(super) link: u32,
    /// To which entity.
    pub(super) target: u32,
}

/// All distinct states of a hop. `parents` are indices into the previous layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layer {
    /// For every entity state the query of the batch it belongs to.
    pub(super) items: Vec<u32>,
    /// … its entity.
    pub(super) entities: Vec<u32>,
    /// … the link that led there (of the first walk that reached it).
    pub(super) links: Vec<u32>,
    /// … the previous state.
    pub(super) parents: Vec<u32>,
    /// For every history its last link.
    pub(super) history_links: Vec<u32>,
    /// … the previous history.
    pub(super) history_parents: Vec<u32>,
    /// For every head its history.
    pub(super) head_histories: Vec<u32>,
    /// … the link asked for.
    pub(super) head_queries: Vec<u32>,
}

type Map<K> = HashMap<K, u32, foldhash::fast::FixedState>;

/// The initial capacity of maps whose keys many walks share.
const SHARED: usize = 256;

fn map<K>(capacity: usize) -> Map<K> {
    Map::with_capacity_and_hasher(capacity, foldhash::fast::FixedState::with_seed(0))
}

impl Layer {
    /// The layer before the first hop, in which every query is at its subject, and the states of each.
    pub(super) fn first(asks: &[Ask]) -> (Layer, Vec<Stand>) {
        let mut layer = Layer { history_links: vec![Link::START.0], ..Layer::default() };
        let mut heads = map(asks.len());
        let stands = asks.iter().enumerate().map(|(item, ask)| {
            layer.items.push(item as u32);
            layer.entities.push(ask.query.subject.0);
            layer.links.push(Link::START.0);
            let head = layer.head(&mut heads, 0, ask.query.link.0);
            Stand { state: item as u32, history: 0, head }
        });
        let stands = stands.collect();
        (layer, stands)
    }

    /// The layer after `moves`, and where each of them ends.
    pub(super) fn after(&self, agents: Agents, asks: &[Ask], moves: &[Move]) -> (Layer, Vec<Stand>) {
        let mut layer = Layer::default();
        // Walks share histories and heads far more than states; a small map stays in the CPU cache.
        let (mut states, mut histories, mut heads) = (map(moves.len()), map(SHARED), map(SHARED));
        let stands = moves.iter().map(|step| {
            let item = self.items[step.from.state as usize];
            let by_link = if agents == Agents::Single { step.link } else { 0 };
            let state = *states.entry((step.from.state, by_link, step.target)).or_insert_with(|| {
                layer.items.push(item);
                layer.entities.push(step.target);
                layer.links.push(step.link);
                layer.parents.push(step.from.state);
                layer.items.len() as u32 - 1
            });
            let history = *histories.entry((step.from.history, step.link)).or_insert_with(|| {
                layer.history_links.push(step.link);
                layer.history_parents.push(step.from.history);
                layer.history_links.len() as u32 - 1
            });
            let head = layer.head(&mut heads, history, asks[item as usize].query.link.0);
            Stand { state, history, head }
        });
        let stands = stands.collect();
        (layer, stands)
    }

    /// As [`first`](Self::first), but `rollouts` walks of every query have a state each.
    pub(super) fn first_apart(asks: &[Ask], rollouts: usize) -> (Layer, Vec<Stand>) {
        let walks = asks.iter().enumerate().flat_map(|walk| std::iter::repeat_n(walk, rollouts));
        let mut layer = Layer::default();
        let stands = walks.map(|(item, ask)| {
            layer.history_links.push(Link::START.0);
            layer.alone(item as u32, ask, Link::START.0, ask.query.subject.0)
        });
        let stands = stands.collect();
        (layer, stands)
    }

    /// As [`after`](Self::after), but every walk has a state of its own.
    pub(super) fn after_apart(&self, asks: &[Ask], moves: &[Move]) -> (Layer, Vec<Stand>) {
        let mut layer = Layer::default();
        let stands = moves.iter().map(|step| {
            layer.parents.push(step.from.state);
            layer.history_links.push(step.link);
            layer.history_parents.push(step.from.history);
            let item = self.items[step.from.state as usize];
            layer.alone(item, &asks[item as usize], step.link, step.target)
        });
        let stands = stands.collect();
        (layer, stands)
    }

    /// Adds a state and a head that no other walk has, for the last history.
    fn alone(&mut self, item: u32, ask: &Ask, link: u32, entity: u32) -> Stand {
        let number = self.items.len() as u32;
        self.items.push(item);
        self.entities.push(entity);
        self.links.push(link);
        self.head_histories.push(number);
        self.head_queries.push(ask.query.link.0);
        Stand { state: number, history: number, head: number }
    }

    fn head(&mut self, heads: &mut Map<(u32, u32)>, history: u32, query: u32) -> u32 {
        *heads.entry((history, query)).or_insert_with(|| {
            self.head_histories.push(history);
            self.head_queries.push(query);
            self.head_histories.len() as u32 - 1
        })
    }

    /// How many entity states there are.
    pub(super) fn states(&self) -> usize {
        self.items.len()
    }
}
