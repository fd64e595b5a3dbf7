//! What one layer of a bounded frontier does, for all queries of a batch.

use std::sync::{Arc, OnceLock};

use super::super::{NONE, ScoredRows, Sender, Trace, UpdatedRows};
use super::{Expansion, Frontier};
use crate::error::{Result, TensorError};
use crate::value::Indices;

/// Messages of a receiver that are aggregated together: those of an item of the edge index.
#[derive(Clone, Copy)]
pub(crate) struct StepItem {
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// Whether zeros of silent neighbours count beside what the query starts with.
    pub(crate) idle: bool,
}

/// A layer of a [`Frontier`]: its messages by receiver, and in the orders of the backward pass.
pub struct FrontierStep {
    /// The number of the layer, from 1.
    pub(crate) layer: usize,
    pub(crate) queries: usize,
    pub(crate) kinds: usize,
    /// Rows before and after the layer.
    pub(crate) before: usize,
    pub(crate) rows: usize,
    /// Which rows are updated. First those that had a state, of one query after the other, then the new ones.
    pub(crate) receivers: Indices,
    /// The first of them: those that had a state.
    pub(crate) old_receivers: Indices,
    receiver_queries: Indices,
    degrees: Indices,
    mean_log: f32,
    /// The same as (query, place among those it has touched).
    pub(super) order: Vec<(u32, u32)>,
    /// Which receiver is the start of each query.
    pub(crate) starts: Vec<u32>,
    /// Where the messages and the items of each receiver start; one entry more each.
    first_messages: Vec<u32>,
    first_items: Vec<u32>,
    pub(crate) senders: Vec<Sender>,
    pub(crate) items: Vec<StepItem>,
    back: OnceLock<BackwardLists>,
    pub(crate) trace: Option<Arc<Trace>>,
}

/// The messages by sender and by kind.
pub(crate) struct BackwardLists {
    /// The messages by sender, kind and receiver, each as the receiver's index and the message's place.
    pub(crate) sent: Vec<(u32, u32)>,
    /// Stretches of them with the same sender and kind.
    pub(crate) runs: Vec<Run>,
    /// Where the runs of each sender start; one entry more.
    pub(crate) sender_runs: Vec<u32>,
    /// The runs by (query, kind) and sender, and where those of a pair start; one entry more.
    pub(crate) by_kind: Vec<u32>,
    pub(crate) kind_starts: Vec<u32>,
}

/// Equal messages: those that a row sends along one kind.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) row: u32,
    pub(crate) query: u32,
    pub(crate) kind: u32,
    pub(crate) first: u32,
    pub(crate) end: u32,
}

impl FrontierStep {
    pub(super) fn new(frontier: &Frontier, before: usize, expansions: &[Expansion]) -> Result<FrontierStep> {
        let total: usize = expansions.iter().map(|expansion| expansion.senders.len()).sum();
        if total >= NONE as usize {
            let why =
                format!("{} queries at once send {total} messages; ask fewer at a time", expansions.len());
            return Err(TensorError::Parameter { name: "frontier".to_owned(), why });
        }
        let mut lists = Lists::default();
        let mut starts = Vec::with_capacity(expansions.len());
        for (query, expansion) in expansions.iter().enumerate() {
            // The start has the first place, and is always a receiver.
            starts.push(lists.order.len() as u32);
            lists.add(query as u32, expansion, 0..expansion.old);
        }
        let old = lists.order.len();
        for (query, expansion) in expansions.iter().enumerate() {
            lists.add(query as u32, expansion, expansion.old..expansion.receivers.len());
        }
        let Lists { order, first_messages, first_items, senders, items } = lists;
        let row = |&(query, place): &(u32, u32)| frontier.touched[query as usize].rows[place as usize];
        let receivers: Vec<u32> = order.iter().map(row).collect();
        let degrees: Vec<u32> = receivers.iter().map(|&row| frontier.row_degrees[row as usize]).collect();
        let receiver_queries: Vec<u32> = order.iter().map(|(query, _)| *query).collect();
        let edges = &*frontier.edge_index.0;
        let list = |values: &[u32]| Indices::new(&edges.device, values);
        Ok(FrontierStep {
            layer: frontier.steps.len() + 1,
            queries: expansions.len(),
            kinds: edges.kinds,
            before,
            rows: frontier.rows(),
            old_receivers: list(&receivers[..old])?,
            receivers: list(&receivers)?,
            receiver_queries: list(&receiver_queries)?,
            degrees: list(&degrees)?,
            mean_log: edges.mean_log,
            order,
            starts,
            first_messages,
            first_items,
            senders,
            items,
            back: OnceLock::new(),
            trace: frontier.trace.clone(),
        })
    }

    /// The rows that are updated.
    pub(crate) fn receivers(&self) -> &[u32] {
        self.receivers.buffer().host()
    }

    pub(crate) fn receiver_query(&self, index: usize) -> usize {
        self.receiver_queries.buffer().host()[index] as usize
    }

    pub(crate) fn degree(&self, index: usize) -> u32 {
        self.degrees.buffer().host()[index]
    }

    /// How many messages are sent.
    pub fn messages(&self) -> usize {
        self.senders.len()
    }

    /// How many rows are updated.
    pub fn updates(&self) -> usize {
        self.order.len()
    }

    /// Whether the rows that are updated are all rows, in order.
    pub(crate) fn updates_all(&self) -> bool {
        self.updates() == self.rows && self.queries == 1
    }

    pub(crate) fn messages_of(&self, index: usize) -> std::ops::Range<usize> {
        self.first_messages[index] as usize..self.first_messages[index + 1] as usize
    }

    pub(crate) fn items_of(&self, index: usize) -> &[StepItem] {
        &self.items[self.first_items[index] as usize..self.first_items[index + 1] as usize]
    }

    /// The rows that are updated, as rows that are scored: for their priorities, without a gradient.
    ///
    /// # Errors
    /// If the device fails.
    pub fn scored_rows(&self) -> ScoredRows {
        ScoredRows {
            queries: self.queries,
            nodes: 0,
            row_nodes: self.receivers.clone(),
            row_queries: self.receiver_queries.clone(),
            runs: self.receivers.clone(),
            places: None,
        }
    }

    pub(crate) fn updated_rows(&self) -> UpdatedRows {
        UpdatedRows {
            before: self.old_receivers.len(),
            rows: self.updates(),
            degrees: self.degrees.clone(),
            mean_log: self.mean_log,
        }
    }

    /// The messages in the orders of the backward pass, made when they are needed first. `own` says whether queries have
    /// weights of their own; if not, all queries count as one.
    pub(crate) fn backward_lists(&self, own: bool) -> &BackwardLists {
        self.back.get_or_init(|| BackwardLists::new(self, own))
    }
}

#[derive(Default)]
struct Lists {
    order: Vec<(u32, u32)>,
    first_messages: Vec<u32>,
    first_items: Vec<u32>,
    senders: Vec<Sender>,
    items: Vec<StepItem>,
}

impl Lists {
    /// Adds some receivers of a query.
    fn add(&mut self, query: u32, expansion: &Expansion, range: std::ops::Range<usize>) {
        let (start, items) = (&expansion.starts, &expansion.item_starts);
        let first = start[range.start];
        let moved = self.senders.len() as u32;
        self.first_messages.pop();
        self.first_messages.extend(start[range.start..=range.end].iter().map(|start| start - first + moved));
        let first_item = items[range.start];
        let moved_items = self.items.len() as u32;
        self.first_items.pop();
        self.first_items
            .extend(items[range.start..=range.end].iter().map(|item| item - first_item + moved_items));
        self.senders.extend_from_slice(&expansion.senders[first as usize..start[range.end] as usize]);
        let own = &expansion.items[first_item as usize..items[range.end] as usize];
        self.items.extend(own.iter().map(|item| StepItem {
            first: item.first - first + moved,
            end: item.end - first + moved,
            ..*item
        }));
        self.order.extend(expansion.receivers[range].iter().map(|&place| (query, place)));
    }
}

impl BackwardLists {
    fn new(step: &FrontierStep, own: bool) -> BackwardLists {
        // Counted by sender. Within a sender, receivers ascend; a stable sort by kind keeps that.
        let mut starts = vec![0u32; step.before + 1];
        step.senders.iter().for_each(|sender| starts[sender.row as usize + 1] += 1);
        (0..step.before).for_each(|row| starts[row + 1] += starts[row]);
        let (mut sent, mut next) = (vec![(0, 0); step.senders.len()], starts.clone());
        let mut row_queries = vec![0u32; step.before];
        for index in 0..step.updates() {
            for at in step.messages_of(index) {
                let row = step.senders[at].row as usize;
                row_queries[row] = step.receiver_query(index) as u32;
                sent[next[row] as usize] = (index as u32, at as u32);
                next[row] += 1;
            }
        }
        let kind_of = |message: &(u32, u32)| step.senders[message.1 as usize].kind;
        let (mut runs, mut sender_runs) = (Vec::new(), vec![0]);
        for row in 0..step.before {
            let range = starts[row] as usize..starts[row + 1] as usize;
            sent[range.clone()].sort_by_key(kind_of);
            let mut first = range.start as u32;
            for same in sent[range].chunk_by(|one, next| kind_of(one) == kind_of(next)) {
                let end = first + same.len() as u32;
                runs.push(Run {
                    row: row as u32,
                    query: row_queries[row],
                    kind: kind_of(&same[0]),
                    first,
                    end,
                });
                first = end;
            }
            sender_runs.push(runs.len() as u32);
        }
        let group = |run: &u32| {
            let Run { query, kind, .. } = runs[*run as usize];
            (if own { query } else { 0 }, kind)
        };
        let mut by_kind: Vec<u32> = (0..runs.len() as u32).collect();
        by_kind.sort_by_key(group);
        let mut kind_starts = vec![0];
        for same in by_kind.chunk_by(|one, next| group(one) == group(next)) {
            kind_starts.push(kind_starts[kind_starts.len() - 1] + same.len() as u32);
        }
        BackwardLists { sent, runs, sender_runs, by_kind, kind_starts }
    }
}
