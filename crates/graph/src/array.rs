//! Read-only arrays: in this process's memory, or in a file that all processes of a machine map.
//!
//! Access costs as much as a slice, whoever owns the memory; a clone shares it.

#![allow(unsafe_code)]

use bytemuck::Pod;
use memmap2::MmapOptions;
use std::any::Any;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A read-only array with shared ownership.
pub struct Array<T> {
    values: *const T,
    len: usize,
    /// Keeps the memory alive and in place.
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: this is a shared slice whose owner may be shared between threads.
unsafe impl<T: Send + Sync> Send for Array<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Array<T> {}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `values` and `len` describe a slice that `owner` keeps alive, in place and unchanged.
        unsafe { std::slice::from_raw_parts(self.values, self.len) }
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Self {
        let owner = Arc::new(values);
        Self { values: owner.as_ptr(), len: owner.len(), owner }
    }
}

impl<T: Send + Sync + 'static> Default for Array<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Clone + Send + Sync + 'static> From<&[T]> for Array<T> {
    fn from(values: &[T]) -> Self {
        values.to_vec().into()
    }
}

impl<T: Send + Sync + 'static, const N: usize> From<[T; N]> for Array<T> {
    fn from(values: [T; N]) -> Self {
        Vec::from(values).into()
    }
}

impl<T: Send + Sync + 'static> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        values.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T> Array<T> {
    /// Whether both are the same memory.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq::<[T]>(&**self, &**other)
    }
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        Self { values: self.values, len: self.len, owner: Arc::clone(&self.owner) }
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Array<T> {}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The bytes of a file: mapped, or a copy in memory.
#[derive(Clone)]
pub(super) struct MappedBytes {
    bytes: *const u8,
    len: usize,
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: this is a shared slice whose owner may be shared between threads.
unsafe impl Send for MappedBytes {}
// SAFETY: as above.
unsafe impl Sync for MappedBytes {}

impl MappedBytes {
    /// Maps all of `file`. The file must not change while it is mapped: such files are written aside and renamed,
    /// never modified in place.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        // SAFETY: see above. If the file is truncated nevertheless, a signal ends the process.
        let mapped = Arc::new(unsafe { MmapOptions::new().map(file) }?);
        Ok(Self { bytes: mapped.as_ptr(), len: mapped.len(), owner: mapped })
    }

    /// A copy, aligned for any array.
    pub(crate) fn copied(bytes: &[u8]) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        let words = Arc::new(words);
        Self { bytes: words.as_ptr().cast(), len: bytes.len(), owner: words }
    }

    /// The values in `range`; `None` if the range is out of bounds or does not hold whole, aligned values.
    pub(crate) fn array<T: Pod>(&self, range: Range<usize>) -> Option<Array<T>> {
        let values: &[T] = bytemuck::try_cast_slice(self.get(range)?).ok()?;
        Some(Array { values: values.as_ptr(), len: values.len(), owner: self.owner.clone() })
    }
}

impl Deref for MappedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` and `len` describe a slice that `owner` keeps alive, in place and unchanged.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len) }
    }
}
