//! One layer of one query: who passes on, along which edges, and who receives.

use super::super::{Missing, NONE, Sender};
use super::{Bounds, StepItem, Touched};
use crate::edge_index::Edges;

/// How many edges are looked at for each message that may be sent, by a row and by all.
const LOOKED_AT: usize = 4;

/// The messages of a layer, by receiver.
pub(super) struct Expansion {
    /// Nodes that are reached for the first time, ascending. They get the places after all others.
    pub(super) new: Vec<u32>,
    /// The places of the rows that are updated, ascending: old ones, then all new ones.
    pub(super) receivers: Vec<u32>,
    /// How many of them are old.
    pub(super) old: usize,
    /// Where the messages of each receiver start, and its items; one entry more each.
    pub(super) starts: Vec<u32>,
    pub(super) item_starts: Vec<u32>,
    /// `at` counts from the first message of the receiver.
    pub(super) senders: Vec<Sender>,
    /// With places of messages counted from the first of this query.
    pub(super) items: Vec<StepItem>,
}

/// A message that may be sent.
#[derive(Clone, Copy)]
struct Candidate {
    to: u32,
    /// The place of the edge among those of the receiving node.
    back: u32,
    /// The row that sends.
    row: u32,
    kind: u32,
    /// How good it is: higher is better.
    key: u32,
}

/// A number whose order is that of `priority`.
fn key(priority: f32) -> u32 {
    let bits = priority.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// A fixed number that spreads ties: the edges of a node are sorted by kind, and its best should not all be of the first.
fn spread(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b9).rotate_left(15).wrapping_mul(0x85eb_ca6b)
}

/// Keeps the `most` elements of `list` from `first` on with the highest keys, ties by the lowest tie-break; their order
/// is fixed, but not that of before.
fn keep_best<T>(list: &mut Vec<T>, first: usize, most: usize, rank: impl Fn(&T) -> (u32, u32)) {
    if list.len() - first > most {
        let better = |one: &T, other: &T| {
            let (one, other) = (rank(one), rank(other));
            other.0.cmp(&one.0).then(one.1.cmp(&other.1))
        };
        list[first..].select_nth_unstable_by(most, better);
        list.truncate(first + most);
    }
}

impl Expansion {
    pub(super) fn new(edges: &Edges, missing: Missing, touched: &mut Touched, bounds: Bounds) -> Expansion {
        let candidates = candidates(edges, missing, touched, bounds);
        Receivers::new(touched, &candidates, bounds).expansion(edges, missing, touched, candidates)
    }
}

/// The places of the rows that pass on; the best first if something is bounded.
fn passing(touched: &Touched, bounds: Bounds) -> Vec<u32> {
    let mut passing: Vec<u32> = (0..touched.nodes.len() as u32).collect();
    if !bounds.are_none() {
        let rank = |&place: &u32| (key(touched.priorities[place as usize]), touched.nodes[place as usize]);
        keep_best(&mut passing, 0, bounds.passing, rank);
        passing.sort_unstable_by_key(|place| {
            let (key, node) = rank(place);
            (!key, node)
        });
    }
    passing
}

/// The messages that are sent, before receivers are chosen.
fn candidates(edges: &Edges, missing: Missing, touched: &Touched, bounds: Bounds) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for place in passing(touched, bounds) {
        let (node, row) = (touched.nodes[place as usize], touched.rows[place as usize]);
        let own = key(touched.priorities[place as usize]);
        let concerned = missing.concerns(node);
        let (range, first) = (edges.edges_of(node as usize), found.len());
        // Of a hub with very many edges, some that lie evenly among them are looked at.
        let stride = range.len().div_ceil(bounds.of_one.saturating_mul(LOOKED_AT)).max(1);
        for edge in range.step_by(stride) {
            let (kind, to) = (edges.links.host[edge], edges.others.host[edge]);
            if concerned && missing.misses(node, kind, to) {
                continue;
            }
            let key = match touched.places[to as usize] {
                NONE => own,
                place => key(touched.priorities[place as usize]),
            };
            found.push(Candidate { to, back: edges.backs.host[edge], row, kind, key });
        }
        keep_best(&mut found, first, bounds.of_one, |edge| (edge.key, spread(edge.to ^ edge.kind << 20)));
        if found.len() >= bounds.messages.saturating_mul(LOOKED_AT) {
            break;
        }
    }
    keep_best(&mut found, 0, bounds.messages, |edge| (edge.key, spread(edge.to ^ edge.row << 16)));
    found
}

/// Who receives: a number of messages for each place, with new nodes at the places after all others.
struct Receivers {
    /// New nodes by their first message.
    found: Vec<u32>,
    counts: Vec<u32>,
    /// How many places there were before.
    old: usize,
}

impl Receivers {
    fn new(touched: &mut Touched, candidates: &[Candidate], bounds: Bounds) -> Receivers {
        let old = touched.nodes.len();
        let mut counts = vec![0; old];
        let (mut found, mut keys) = (Vec::new(), Vec::new());
        for candidate in candidates {
            let place = &mut touched.places[candidate.to as usize];
            if *place == NONE {
                *place = counts.len() as u32;
                found.push(candidate.to);
                keys.push(candidate.key);
                counts.push(0);
            }
            counts[*place as usize] += 1;
            if *place as usize >= old {
                let key = &mut keys[*place as usize - old];
                *key = candidate.key.max(*key);
            }
        }
        let mut receivers = Receivers { found, counts, old };
        receivers.bound(touched, &keys, bounds.receivers);
        receivers
    }

    /// Leaves all but the best `most` receivers without messages: the old ones by their own priorities, the new ones by
    /// the best that reaches them.
    fn bound(&mut self, touched: &mut Touched, keys: &[u32], most: usize) {
        let mut all: Vec<u32> =
            (1..self.counts.len() as u32).filter(|&place| self.counts[place as usize] > 0).collect();
        let old = self.old;
        let rank = |&place: &u32| match (place as usize).checked_sub(old) {
            None => (key(touched.priorities[place as usize]), touched.nodes[place as usize]),
            Some(new) => (keys[new], self.found[new]),
        };
        if all.len() < most {
            return;
        }
        // The start is always among them.
        keep_best(&mut all, 0, most - 1, rank);
        let mut kept = vec![false; self.counts.len()];
        kept[0] = true;
        all.iter().for_each(|&place| kept[place as usize] = true);
        for place in (0..kept.len()).filter(|&place| !kept[place]) {
            self.counts[place] = 0;
            if place >= old {
                touched.places[self.found[place - old] as usize] = NONE;
            }
        }
    }

    /// The lists, from the messages to those who receive.
    fn expansion(
        self,
        edges: &Edges,
        missing: Missing,
        touched: &mut Touched,
        candidates: Vec<Candidate>,
    ) -> Expansion {
        let Receivers { found, counts, old } = self;
        // Rows come by layer and node, so new nodes are sorted.
        let mut new: Vec<(u32, u32)> = (old as u32..)
            .zip(found)
            .filter(|&(place, _)| counts[place as usize] > 0)
            .map(|(place, node)| (node, counts[place as usize]))
            .collect();
        new.sort_unstable();
        let mut receivers: Vec<u32> =
            (0..old as u32).filter(|&place| place == 0 || counts[place as usize] > 0).collect();
        let olds = receivers.len();
        let mut slots = vec![NONE; old + new.len()];
        let mut starts = Vec::with_capacity(olds + new.len() + 1);
        let mut total = 0;
        for (slot, &place) in receivers.iter().enumerate() {
            slots[place as usize] = slot as u32;
            starts.push(total);
            total += counts[place as usize];
        }
        for (index, &(node, count)) in new.iter().enumerate() {
            touched.places[node as usize] = (old + index) as u32;
            receivers.push((old + index) as u32);
            slots[old + index] = (olds + index) as u32;
            starts.push(total);
            total += count;
        }
        starts.push(total);
        let mut senders = vec![Sender { row: 0, kind: 0, at: 0 }; total as usize];
        let mut next = starts.clone();
        for Candidate { to, back, row, kind, .. } in candidates {
            let place = touched.places[to as usize];
            let Some(&slot) = slots.get(place as usize).filter(|slot| **slot != NONE) else { continue };
            senders[next[slot as usize] as usize] = Sender { row, kind, at: back };
            next[slot as usize] += 1;
        }
        let new: Vec<u32> = new.into_iter().map(|(node, _)| node).collect();
        let mut lists =
            Expansion { new, receivers, old: olds, starts, item_starts: vec![0], senders, items: Vec::new() };
        lists.add_items(edges, missing, touched);
        lists
    }
}

impl Expansion {
    /// Sorts the messages of every receiver as its edges are, and cuts them where its items are cut.
    fn add_items(&mut self, edges: &Edges, missing: Missing, touched: &Touched) {
        for (slot, &place) in self.receivers.iter().enumerate() {
            let node = match (place as usize).checked_sub(touched.nodes.len()) {
                None => touched.nodes[place as usize],
                Some(new) => self.new[new],
            };
            let first = self.starts[slot];
            let messages = &mut self.senders[first as usize..self.starts[slot + 1] as usize];
            messages.sort_unstable_by_key(|message| message.at);
            let ends = edges.item_starts.host[node as usize]..edges.item_starts.host[node as usize + 1];
            if ends.len() == 1 && place > 0 {
                self.items.push(StepItem { first, end: first + messages.len() as u32, idle: false });
            } else {
                let node_items = Cut { edges, missing, node, first };
                node_items.cut(messages, place == 0, &mut self.items);
            }
            messages.iter_mut().zip(0..).for_each(|(message, at)| message.at = at);
            self.item_starts.push(self.items.len() as u32);
        }
    }
}

/// How the messages of a receiver with several items, or of a start, are cut.
struct Cut<'a> {
    edges: &'a Edges,
    missing: Missing<'a>,
    node: u32,
    /// The place of the first message.
    first: u32,
}

impl Cut<'_> {
    /// The first item begins with what the query starts with, so it always exists; others without messages are left
    /// out, except at a start, where the zeros of silent neighbours count.
    fn cut(&self, messages: &[Sender], is_start: bool, items: &mut Vec<StepItem>) {
        let Cut { edges, node, first, .. } = *self;
        let range = edges.edges_of(node as usize);
        let all = edges.item_starts.host[node as usize]..edges.item_starts.host[node as usize + 1];
        let edge_of =
            |item: u32| edges.piece_edges.host[edges.item_pieces.host[item as usize] as usize] as usize;
        let mut at = 0;
        for item in all.clone() {
            let (begin, end) = (edge_of(item), edge_of(item + 1));
            let count = messages[at..].partition_point(|message| range.start + (message.at as usize) < end);
            let silent = is_start && count < end - begin - self.gone(begin..end);
            if count > 0 || silent || item == all.start {
                let place = first + at as u32;
                items.push(StepItem { first: place, end: place + count as u32, idle: silent });
            }
            at += count;
            if at == messages.len() && !is_start {
                break;
            }
        }
    }

    /// How many of some edges of the node are missing.
    fn gone(&self, range: std::ops::Range<usize>) -> usize {
        let edges = self.edges;
        if !self.missing.concerns(self.node) {
            return 0;
        }
        let gone =
            |edge: &usize| self.missing.misses(self.node, edges.links.host[*edge], edges.others.host[*edge]);
        range.filter(gone).count()
    }
}
