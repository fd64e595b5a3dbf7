//! A slice that several threads write to at once, each to its own part.
//!
//! Work divided into items along a ragged list cannot always be split into consecutive slices beforehand. Here the
//! caller guarantees that no element belongs to two items.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

/// A slice that is written in parts.
pub(crate) struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: parts in use at the same time never overlap, as `part` requires.
unsafe impl<T: Send> Send for Disjoint<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    pub(crate) fn new(values: &'a mut [T]) -> Self {
        Disjoint { start: values.as_mut_ptr(), len: values.len(), borrow: PhantomData }
    }

    /// A part of the slice.
    ///
    /// # Safety
    /// While the part is in use, no overlapping part may be.
    #[allow(clippy::mut_from_ref, reason = "the caller vouches that parts do not overlap")]
    #[inline(always)]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "a part is outside its slice");
        // SAFETY: the range lies inside the slice, which is borrowed for as long as `self` lives.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.end - range.start) }
    }
}
