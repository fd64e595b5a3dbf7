//! Values in a row, read-only: in memory of this process, or in a file that every process of a machine maps.
//!
//! Reading costs what a slice costs, whoever owns the memory; a copy shares it.

#![allow(unsafe_code)]

use bytemuck::Pod;
use memmap2::{Mmap, MmapOptions};
use std::any::Any;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Values that are owned together.
pub struct Array<T> {
    values: *const T,
    len: usize,
    /// Keeps the memory where it is.
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: it is a shared slice, with an owner that may be shared between threads.
unsafe impl<T: Send + Sync> Send for Array<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Array<T> {}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `values` and `len` are those of a slice that `owner` keeps, in one place and unchanged, while it lives.
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
    /// Maps all of `file`. Nobody may change it while it is mapped: files that are mapped here are written aside and
    /// renamed, never changed where they are.
    pub fn of(file: &File) -> io::Result<Self> {
        // All pages at once: nearly all are read, and asking for them one by one takes longer.
        // SAFETY: see above; who truncates the file nevertheless ends the process by a signal.
        let bytes = unsafe { MmapOptions::new().populate().map(file) }?;
        Ok(Self(Arc::new(bytes)))
    }

    /// The values in `range`; none if there is no such range, or it holds no whole values.
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
