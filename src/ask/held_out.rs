//! The facts of the data that its graph may lack, each with the split that has it, found by query.
//!
//! The splits of a run are mapped files. A table of millions of held-out facts takes a second and a hundred megabytes, so
//! a process that answers a few questions looks through the splits instead; the table is made once more are asked.

use super::HeldOut;
use crate::graph::{Dataset, Direction, EntityId, Known, Link, Query, Triple};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How many queries are answered by looking through the splits.
const SCANS: usize = 8;

/// An answer of a query, and the split that has the fact.
type SplitAnswer = (EntityId, HeldOut);

/// Finds held-out facts by query.
#[derive(Default)]
pub(super) struct HeldOutIndex {
    /// The queries asked so far, at most [`SCANS`], with their answers.
    scanned: Mutex<Vec<(Query, Vec<SplitAnswer>)>>,
    /// Every fact from both of its ends, sorted, each answer of a query once. Made without a thread pool: its callers run
    /// on one, and a thread that waits for others could be given a task that waits for this table.
    table: OnceLock<Vec<(EntityId, Link, EntityId, HeldOut)>>,
}

impl HeldOutIndex {
    /// The answers to `query` in the splits of `dataset` that its graph may lack, ascending. A fact of several splits is
    /// given with the one that was used least for learning. The same `dataset` must be given each time.
    pub(super) fn answers(&self, query: Query, dataset: &Dataset) -> Vec<SplitAnswer> {
        if self.table.get().is_none() {
            let before = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, answers)) = before.iter().find(|(asked, _)| *asked == query) {
                return answers.clone();
            }
            let may_scan = before.len() < SCANS;
            drop(before);
            if may_scan {
                let answers = scan(query, dataset);
                let mut scanned = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
                scanned.push((query, answers.clone()));
                return answers;
            }
        }
        let table = self.table.get_or_init(|| table(dataset));
        let from =
            table.partition_point(|&(subject, link, ..)| (subject, link) < (query.subject, query.link));
        let own = table[from..].iter().take_while(|one| (one.0, one.1) == (query.subject, query.link));
        own.map(|&(.., answer, split)| (answer, split)).collect()
    }
}

/// The splits whose facts may not be in the graph.
fn splits(dataset: &Dataset) -> [(&[Triple], HeldOut); 4] {
    let Known { queries, valid, .. } = &dataset.known;
    let train: &[Triple] = if dataset.known.has_own_graph() { queries } else { &[] };
    [
        (train, HeldOut::Train),
        (valid, HeldOut::Valid),
        (&dataset.test_left_out, HeldOut::Test),
        (&dataset.test, HeldOut::Test),
    ]
}

/// A fact as an answer from both of its ends.
fn queries_of(fact: Triple) -> [(Query, EntityId); 2] {
    [Direction::Forward, Direction::Inverse].map(|direction| Query::of(fact, direction))
}

fn scan(query: Query, dataset: &Dataset) -> Vec<SplitAnswer> {
    let mut answers = Vec::new();
    for (facts, split) in splits(dataset) {
        let own = facts.iter().flat_map(|&fact| queries_of(fact));
        let own = own.filter(|&(asked, _)| asked == query);
        answers.extend(own.map(|(_, answer)| (answer, split)));
    }
    // Of several splits the last.
    answers.sort_unstable_by(|a, b| b.cmp(a));
    answers.dedup_by_key(|&mut (answer, _)| answer);
    answers.reverse();
    answers
}

fn table(dataset: &Dataset) -> Vec<(EntityId, Link, EntityId, HeldOut)> {
    let splits = splits(dataset);
    let mut table = Vec::with_capacity(2 * splits.iter().map(|(facts, _)| facts.len()).sum::<usize>());
    for (facts, split) in splits {
        let ends = facts.iter().flat_map(|&fact| queries_of(fact));
        table.extend(ends.map(|(query, answer)| (query.subject, query.link, answer, split)));
    }
    table.sort_unstable_by(|a, b| b.cmp(a));
    table.dedup_by_key(|&mut (subject, link, answer, _)| (subject, link, answer));
    table.reverse();
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use std::collections::BTreeMap;

    #[test]
    fn scans_and_the_table_find_what_the_splits_have() {
        let mut dataset = generate::family(60, 3).dataset;
        // A fact of two splits, and one that is held out twice.
        let (valid, test) = (dataset.known.valid.to_vec(), dataset.test.to_vec());
        dataset.known.valid = [&valid[..], &test[..3]].concat().into();
        dataset.test = [&test[..], &test[..2]].concat().into();
        let own_graph = {
            let mut other = dataset.clone();
            other.known.queries = [&other.known.facts[..9], &test[5..7]].concat().into();
            other.test_left_out = other.known.facts[20..25].to_vec().into();
            other
        };
        for dataset in [dataset, own_graph, Dataset::default()] {
            let mut expected: BTreeMap<Query, BTreeMap<EntityId, HeldOut>> = BTreeMap::new();
            for (facts, split) in splits(&dataset) {
                for (query, answer) in facts.iter().flat_map(|&fact| queries_of(fact)) {
                    expected.entry(query).or_default().insert(answer, split);
                }
            }
            let index = HeldOutIndex::default();
            // More than are scanned for; each twice, so that it is also remembered.
            for _ in 0..2 {
                for (&query, answers) in &expected {
                    let expected: Vec<SplitAnswer> =
                        answers.iter().map(|(&of, &split)| (of, split)).collect();
                    assert_eq!(index.answers(query, &dataset), expected);
                    assert_eq!(scan(query, &dataset), expected);
                }
            }
            assert_eq!(index.table.get().is_some(), expected.len() > SCANS);
            let none = Query { subject: EntityId(u32::MAX), link: Link::PAD };
            assert!(index.answers(none, &dataset).is_empty());
        }
    }
}
