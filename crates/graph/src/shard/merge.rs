//! Merges many sorted sources into one, with one row of each in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The rows of sorted sources in the order of their keys; rows with equal keys come in the order of the sources.
/// Nothing follows an error.
pub struct Merge<I, T, E, K, F> {
    sources: Vec<I>,
    key: F,
    /// The keys of the next row of each remaining source.
    next: BinaryHeap<Reverse<(K, usize)>>,
    held: Vec<Option<T>>,
    failed: Option<E>,
}

impl<I, T, E, K, F> Merge<I, T, E, K, F>
where
    I: Iterator<Item = Result<T, E>>,
    K: Ord,
    F: Fn(&T) -> K,
{
    /// The rows of `sources`, each sorted by `key`.
    pub fn new(sources: Vec<I>, key: F) -> Self {
        let held = sources.iter().map(|_| None).collect();
        let mut merge = Self { sources, key, next: BinaryHeap::new(), held, failed: None };
        for source in 0..merge.sources.len() {
            merge.refill(source);
        }
        merge
    }

    fn refill(&mut self, source: usize) {
        match self.sources[source].next() {
            Some(Ok(row)) => {
                self.next.push(Reverse(((self.key)(&row), source)));
                self.held[source] = Some(row);
            }
            Some(Err(error)) => self.failed = self.failed.take().or(Some(error)),
            None => {}
        }
    }
}

impl<I, T, E, K, F> Iterator for Merge<I, T, E, K, F>
where
    I: Iterator<Item = Result<T, E>>,
    K: Ord,
    F: Fn(&T) -> K,
{
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.next.clear();
            return Some(Err(error));
        }
        let Reverse((_, source)) = self.next.pop()?;
        let row = self.held[source].take();
        self.refill(source);
        row.map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merging_is_sorting_all_at_once(sources in prop::collection::vec(prop::collection::vec(0u8..20, 0..9), 0..9)) {
            let mut rows: Vec<(u8, usize)> = Vec::new();
            let mut sorted = Vec::new();
            for (number, mut source) in sources.into_iter().enumerate() {
                source.sort_unstable();
                rows.extend(source.iter().map(|&row| (row, number)));
                sorted.push(source.into_iter().map(move |row| Ok::<_, ()>((row, number))));
            }
            rows.sort();
            let merged: Result<Vec<(u8, usize)>, ()> = Merge::new(sorted, |row| row.0).collect();
            prop_assert_eq!(merged, Ok(rows));
        }
    }

    #[test]
    fn an_error_is_the_last_that_comes() {
        let sources = vec![vec![Ok(1), Err("broken"), Ok(9)], vec![Ok(2), Ok(3)]];
        let merged: Vec<Result<u32, &str>> =
            Merge::new(sources.into_iter().map(Vec::into_iter).collect(), |&row| row).collect();
        assert_eq!(merged, [Ok(1), Err("broken")]);
    }
}
