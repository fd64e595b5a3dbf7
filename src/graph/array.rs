//! Read-only arrays: in this process's memory, or in a file that all processes of a machine map.
//!
//! Access costs as much as a slice, whoever owns the memory; a clone shares it.

#![allow(unsafe_code)]

use bytemuck::Pod;
use memmap2::{Mmap, MmapOptions};
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

/// The bytes of a file, mapped.
#[derive(Clone)]
pub(super) struct MappedBytes(Arc<Mmap>);

impl MappedBytes {
    /// Maps all of `file`. The file must not change while it is mapped: such files are written aside and renamed,
    /// never modified in place.
    pub fn of(file: &File) -> io::Result<Self> {
        // SAFETY: see above. If the file is truncated nevertheless, a signal ends the process.
        let bytes = unsafe { MmapOptions::new().map(file) }?;
        Ok(Self(Arc::new(bytes)))
    }

    /// The values in `range`; `None` if the range is out of bounds or does not hold whole, aligned values.
    pub fn array<T: Pod>(&self, range: Range<usize>) -> Option<Array<T>> {
        let values: &[T] = bytemuck::try_cast_slice(self.0.get(range)?).ok()?;
        Some(Array { values: values.as_ptr(), len: values.len(), owner: self.0.clone() })
    }
}

impl Deref for MappedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
