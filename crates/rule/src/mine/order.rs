//! Yields the best items first without sorting all of them beforehand: sorting millions takes seconds, during which
//! the clock could not be checked.

use rayon::prelude::*;
use std::cmp::Ordering;

/// The size of the first block.
const FIRST: usize = 1 << 14;
/// The size of the largest block, unless there are very many items.
const LARGEST: usize = 1 << 18;
/// With very many items, a block is one in this many of them.
const PART: usize = 16;

/// Passes the items to `take` in order, block by block, until it returns `false`; the remaining items are in any
/// order.
pub(super) fn in_order<T: Send>(
    items: &mut [T],
    compare: impl Fn(&T, &T) -> Ordering + Sync,
    mut take: impl FnMut(&[T]) -> bool,
) {
    let largest = LARGEST.max(items.len() / PART);
    let mut size = FIRST;
    let mut rest = items;
    while !rest.is_empty() {
        let here = size.min(rest.len());
        if here < rest.len() {
            rest.select_nth_unstable_by(here, &compare);
        }
        let (block, after) = rest.split_at_mut(here);
        block.par_sort_unstable_by(&compare);
        if !take(block) {
            return;
        }
        rest = after;
        size = (2 * size).min(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_join_to_what_sorting_gives_and_end_when_told() {
        let numbers = || (0..100_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect::<Vec<u64>>();
        let (mut items, mut sorted) = (numbers(), numbers());
        sorted.sort_unstable();
        let mut taken = Vec::new();
        in_order(&mut items, u64::cmp, |block| {
            taken.extend_from_slice(block);
            true
        });
        assert_eq!(taken, sorted);
        let mut blocks = 0;
        in_order(&mut numbers(), u64::cmp, |block| {
            assert_eq!(block, &sorted[..FIRST]);
            blocks += 1;
            false
        });
        assert_eq!(blocks, 1);
        in_order(&mut [], u64::cmp, |_| panic!("there is nothing"));
    }
}
