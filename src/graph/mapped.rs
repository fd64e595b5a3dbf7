//! Files of arrays that are mapped instead of read: opening one costs a single pass over its bytes, and all processes
//! of a machine share the memory.
//!
//! A file consists of a magic number, the length of its header, the header as JSON (a description of the arrays, the
//! length of each, and a checksum of their bytes), and the arrays, each aligned to 64 bytes, in this machine's byte
//! order.

use super::GraphError;
use super::array::{Array, MappedBytes};
use crate::aside::write_checked;
use bytemuck::Pod;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first number of a file. It reads differently on a machine with the other byte order.
const MAGIC: u64 = u64::from_le_bytes(*b"rgarray3");
/// The alignment of arrays.
const ALIGNED: usize = 64;

#[derive(Serialize, Deserialize)]
struct Header<T> {
    /// What the reader needs to know besides the arrays.
    about: T,
    /// In bytes.
    lengths: Vec<usize>,
    sum: u64,
}

/// Arrays to be written to a file, in an order that the reader knows.
#[derive(Default)]
pub struct ArrayWriter<'a>(Vec<&'a [u8]>);

impl<'a> ArrayWriter<'a> {
    /// Adds an array.
    pub fn add<T: Pod>(&mut self, values: &'a [T]) {
        self.0.push(bytemuck::cast_slice(values));
    }

    /// Writes the file; `about` is whatever the reader needs to know besides the arrays, which `took` this long to make.
    ///
    /// # Errors
    /// If it cannot be written. Nothing partial remains then.
    pub fn write(self, path: &Path, about: &impl Serialize, took: Duration) -> Result<(), GraphError> {
        let sum = self.0.iter().fold(0, |sum, bytes| sum_of(bytes, sum));
        let lengths = self.0.iter().map(|bytes| bytes.len()).collect();
        let header = serde_json::to_vec(&Header { about, lengths, sum }).expect("plain data");
        let written = write_checked(path, took, |out| {
            let mut place = 0;
            let numbers = [MAGIC, header.len() as u64];
            let start: [&[u8]; 2] = [bytemuck::cast_slice(&numbers), &header];
            for bytes in start {
                out.write_all(bytes)?;
                place += bytes.len();
            }
            for bytes in self.0 {
                out.write_all(&[0; ALIGNED][..place.next_multiple_of(ALIGNED) - place])?;
                out.write_all(bytes)?;
                place = place.next_multiple_of(ALIGNED) + bytes.len();
            }
            Ok(())
        });
        written.map_err(GraphError::writing(path))
    }
}

/// A file of arrays, mapped.
pub struct ArrayReader {
    path: PathBuf,
    bytes: MappedBytes,
    /// The lengths, in bytes, of the arrays not read yet.
    lengths: VecDeque<usize>,
    /// Where the previous array ends.
    place: usize,
}

impl ArrayReader {
    /// Maps the file at `path` and checks that it is whole. Also returns what the writer stored besides the arrays.
    ///
    /// # Errors
    /// If it cannot be read, is not such a file, or is not whole.
    pub fn open<T: DeserializeOwned>(path: &Path) -> Result<(Self, T), GraphError> {
        let damaged = |found: &str| GraphError::file(path, "a complete index", found);
        let bytes = File::open(path).and_then(|file| MappedBytes::of(&file));
        let bytes = bytes.map_err(GraphError::reading(path))?;
        let number = |place: usize| bytes.array::<u64>(place..place + 8).map(|number| number[0]);
        if number(0) != Some(MAGIC) {
            return Err(damaged("another kind of file"));
        }
        let end = number(8).and_then(|length| usize::try_from(length).ok()?.checked_add(16));
        let header = end.and_then(|end| bytes.get(16..end)).ok_or_else(|| damaged("an incomplete one"))?;
        let Header { about, lengths, sum } = serde_json::from_slice(header)
            .map_err(|error| damaged(&format!("one with a damaged header ({error})")))?;
        let place = 16 + header.len();
        let arrays = lengths.len();
        let all: VecDeque<usize> = lengths.into();
        let mut reader = Self { path: path.to_owned(), bytes, lengths: all.clone(), place };
        let found = (0..arrays).try_fold(0, |found, _| Ok(sum_of(&reader.array::<u8>()?, found)))?;
        if found != sum {
            return Err(damaged("one with a wrong checksum"));
        }
        Ok((Self { lengths: all, place, ..reader }, about))
    }

    /// The next array.
    ///
    /// # Errors
    /// If there is no further array, or its bytes do not fit the type.
    pub fn array<T: Pod>(&mut self) -> Result<Array<T>, GraphError> {
        let array = self.lengths.pop_front().and_then(|length| {
            let start = self.place.next_multiple_of(ALIGNED);
            let end = start.checked_add(length)?;
            self.place = end;
            self.bytes.array(start..end)
        });
        array.ok_or_else(|| self.damaged("fewer bytes than its header says"))
    }

    /// The error that `found` stands in place of what was written.
    pub fn damaged(&self, found: &str) -> GraphError {
        GraphError::file(&self.path, "a complete index", found)
    }
}

/// The pairs of words that [`sum_of`] mixes side by side, because each has to wait for the previous one of its lane.
const LANES: usize = 8;

/// A checksum of `bytes`, continued from `sum`: detects accidental damage, nearly at the speed of memory.
pub(super) fn sum_of(bytes: &[u8], sum: u64) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<16>();
    let (blocks, after) = pairs.as_chunks::<LANES>();
    let mut lanes: [u64; LANES] = std::array::from_fn(|lane| sum.wrapping_add(lane as u64));
    for block in blocks {
        for (lane, pair) in lanes.iter_mut().zip(block) {
            *lane = mixed(*lane, pair);
        }
    }
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let ends = after.iter().chain([&last]).fold(bytes.len() as u64, mixed);
    lanes.iter().fold(ends, |sum, lane| mixed(sum, &u128::from(*lane).to_le_bytes()))
}

/// Mixes two words into a lane by a single multiplication. A factor of 0 would hide the other word, so both are made
/// from constants that no data has by itself: a lane begins with a small number, and so do many arrays.
#[inline]
fn mixed(lane: u64, pair: &[u8; 16]) -> u64 {
    const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
    const SECOND: u64 = 0xbf58_476d_1ce4_e5b9;
    let pair = u128::from_le_bytes(*pair);
    let product = u128::from(lane ^ FIRST ^ pair as u64) * u128::from(SECOND ^ (pair >> 64) as u64);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path) -> Vec<u8> {
        let mut arrays = ArrayWriter::default();
        arrays.add(&[1u64, 2, 3]);
        arrays.add::<u32>(&[]);
        arrays.add(&[7u32, 8, 9, 10, 11]);
        arrays.write(path, &"three arrays", Duration::ZERO).unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn arrays_are_mapped_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.index");
        written(&path);
        let (mut reader, about) = ArrayReader::open::<String>(&path).unwrap();
        assert_eq!(about, "three arrays");
        assert!(ArrayReader::open::<u32>(&path).is_err());
        let numbers = reader.array::<u64>().unwrap();
        assert_eq!((&numbers[..], &reader.array::<u32>().unwrap()[..]), (&[1, 2, 3][..], &[][..]));
        assert_eq!(reader.array::<u32>().unwrap()[..], [7, 8, 9, 10, 11]);
        assert!(reader.array::<u32>().is_err());
        // The arrays outlive the file and the reader.
        std::fs::remove_file(&path).unwrap();
        drop(reader);
        assert_eq!(numbers.clone()[..], [1, 2, 3]);
    }

    #[test]
    fn a_file_that_was_cut_off_or_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.index");
        let whole = written(&path);
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(ArrayReader::open::<String>(&path).is_err(), "{length} bytes of {}", whole.len());
        }
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        std::fs::write(&path, changed).unwrap();
        let error = ArrayReader::open::<String>(&path).err().unwrap().to_string();
        assert!(error.contains("expected a complete index, found one with a wrong checksum"), "{error}");
        assert!(ArrayReader::open::<String>(&folder.path().join("nowhere.index")).is_err());
    }

    #[test]
    fn sums_differ_by_any_byte_and_by_length() {
        let bytes: Vec<u8> = (0..=255).cycle().take(16 * LANES + 75).collect();
        let sum = sum_of(&bytes, 0);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0x80;
            assert_ne!(sum_of(&other, 0), sum, "{at}");
        }
        assert_ne!(sum_of(&bytes[..bytes.len() - 1], 0), sum);
        assert_ne!(sum_of(&[0; 3], 0), sum_of(&[0; 4], 0));
        // A first word that a lane, or the length, equals must not hide the second.
        for (first, words) in [(0, 2 * LANES), (1, 2 * LANES), (16, 2)] {
            let mut plain = vec![first; words];
            let sum = sum_of(bytemuck::cast_slice::<u64, u8>(&plain), 0);
            for at in 0..words {
                plain[at] ^= 1 << 40;
                assert_ne!(sum_of(bytemuck::cast_slice(&plain), 0), sum, "{first}, {at} of {words}");
                plain[at] ^= 1 << 40;
            }
        }
        assert_ne!(sum_of(&bytes, 1), sum);
    }
}
