//! Files of named arrays that are mapped instead of parsed.
//!
//! A file has a magic number, the length and the checksum of its header, the header as JSON (a description, and for every
//! section its name, length and checksum), and the sections, each aligned to 64 bytes, in this machine's byte order.
//! Opening one costs a single pass over its bytes to compare checksums. That pass reads the file in blocks instead of
//! touching the mapping, so a process has only those pages in memory that it uses.

use super::GraphError;
use super::array::{Array, MappedBytes};
use bytemuck::Pod;
use rayon::prelude::*;
use ruleguider_support::aside::write_aside;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The first number of a file. It reads differently on a machine with the other byte order.
const MAGIC: u64 = u64::from_le_bytes(*b"rgdata01");
/// Magic number, length of the header, checksum of the header.
const BEFORE_HEADER: usize = 24;
/// The alignment of sections.
const ALIGNED: usize = 64;
/// The longest header: a damaged file may claim any length.
const LONGEST_HEADER: usize = 1 << 30;
/// Checksums are computed over blocks of this many bytes, on all threads.
const BLOCK: usize = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Header<T> {
    /// What the reader needs to know besides the arrays.
    about: T,
    sections: Vec<Section>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Section {
    name: String,
    /// In bytes.
    length: usize,
    sum: u64,
}

/// An array that is written: borrowed from what it belongs to, or made for the file.
enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Made(Box<dyn AsRef<[u8]> + Send + Sync + 'a>),
}

impl Bytes<'_> {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Made(made) => (**made).as_ref(),
        }
    }
}

/// An array as its bytes.
struct AsBytes<T>(Array<T>);

impl<T: Pod> AsRef<[u8]> for AsBytes<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Named arrays to be written to a file.
#[derive(Default)]
pub(crate) struct SectionWriter<'a>(Vec<(String, Bytes<'a>)>);

impl<'a> SectionWriter<'a> {
    /// Adds an array under a name of its own.
    pub(crate) fn add<T: Pod>(&mut self, name: &str, values: &'a [T]) {
        self.0.push((name.to_owned(), Bytes::Borrowed(bytemuck::cast_slice(values))));
    }

    /// Adds an array that exists only for the file.
    pub(crate) fn add_made<T: Pod + Send + Sync>(&mut self, name: &str, values: Array<T>) {
        self.0.push((name.to_owned(), Bytes::Made(Box::new(AsBytes(values)))));
    }

    /// Writes the file at `path`; `about` is whatever the reader needs to know besides the arrays.
    ///
    /// # Errors
    /// If it cannot be written. Nothing partial remains then.
    pub(crate) fn write(&self, path: &Path, about: &impl Serialize) -> Result<(), GraphError> {
        write_aside(path, |out| self.write_to(out, about)).map_err(GraphError::writing(path))
    }

    /// The content of the file as bytes, to be sent to other processes.
    pub(crate) fn to_bytes(&self, about: &impl Serialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes, about).expect("memory can be written to");
        bytes
    }

    fn write_to(&self, out: &mut dyn Write, about: &impl Serialize) -> io::Result<()> {
        let section = |(name, bytes): &(String, Bytes<'_>)| {
            let bytes = bytes.get();
            Section { name: name.clone(), length: bytes.len(), sum: sum_of_blocks(bytes) }
        };
        let sections = self.0.iter().map(section).collect();
        let header = serde_json::to_vec(&Header { about, sections })?;
        let numbers = [MAGIC, header.len() as u64, sum_of(&header, 0)];
        out.write_all(bytemuck::cast_slice(&numbers))?;
        out.write_all(&header)?;
        let mut place = BEFORE_HEADER + header.len();
        for (_, bytes) in &self.0 {
            let start = place.next_multiple_of(ALIGNED);
            out.write_all(&[0; ALIGNED][..start - place])?;
            out.write_all(bytes.get())?;
            place = start + bytes.get().len();
        }
        Ok(())
    }
}

/// A file of named arrays, mapped.
pub(crate) struct SectionReader {
    path: PathBuf,
    bytes: MappedBytes,
    sections: Vec<(String, Range<usize>)>,
}

impl SectionReader {
    /// Whether the file at `path` begins as one of these does.
    pub(crate) fn is_one(path: &Path) -> bool {
        let mut first = [0; 8];
        let read = File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut first));
        read.is_ok() && u64::from_ne_bytes(first) == MAGIC
    }

    /// Maps the file at `path` and compares its checksums. Also returns what the writer stored besides the arrays.
    ///
    /// # Errors
    /// If it cannot be read, is not such a file, or is not whole.
    pub(crate) fn open<T: DeserializeOwned>(path: &Path) -> Result<(Self, T), GraphError> {
        let file = File::open(path).map_err(GraphError::reading(path))?;
        let bytes = MappedBytes::of(&file).map_err(GraphError::reading(path))?;
        let (reader, about, sums) = Self::parse(path, bytes)?;
        let block = |range: Range<usize>| sum_of_file_block(&file, &reader.bytes, range);
        reader.compare(&sums, &block)?;
        Ok((reader, about))
    }

    /// The same for the content of a file that is in memory; `name` stands for its path in messages.
    ///
    /// # Errors
    /// If it is not such a file, or is not whole.
    pub(crate) fn of_bytes<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<(Self, T), GraphError> {
        let bytes = MappedBytes::copied(bytes);
        let (reader, about, sums) = Self::parse(Path::new(name), bytes)?;
        reader.compare(&sums, &|range| Ok(sum_of(&reader.bytes[range], 0)))?;
        Ok((reader, about))
    }

    fn parse<T: DeserializeOwned>(
        path: &Path,
        bytes: MappedBytes,
    ) -> Result<(Self, T, Vec<u64>), GraphError> {
        let damaged = |found: &str| GraphError::file(path, WHOLE, found);
        let number = |at: usize| -> Option<u64> {
            bytes.get(at..at + 8).map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
        };
        if number(0) != Some(MAGIC) {
            return Err(damaged("another kind of file"));
        }
        let incomplete = || damaged("an incomplete one");
        let length = number(8).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|&length| length <= LONGEST_HEADER).ok_or_else(incomplete)?;
        let sum = number(16).ok_or_else(incomplete)?;
        let header = bytes.get(BEFORE_HEADER..BEFORE_HEADER + length).ok_or_else(incomplete)?;
        if sum_of(header, 0) != sum {
            return Err(damaged("one with a damaged header"));
        }
        let Header { about, sections } = serde_json::from_slice(header)
            .map_err(|error| damaged(&format!("one of another version ({error})")))?;
        let mut place = BEFORE_HEADER + length;
        let (mut ranges, mut sums) = (Vec::new(), Vec::new());
        for Section { name, length, sum } in sections {
            let start = place.next_multiple_of(ALIGNED);
            let end = start.checked_add(length).filter(|&end| end <= bytes.len()).ok_or_else(incomplete)?;
            ranges.push((name, start..end));
            sums.push(sum);
            place = end;
        }
        if place != bytes.len() {
            return Err(damaged("one with bytes after its end"));
        }
        Ok((Self { path: path.to_owned(), bytes, sections: ranges }, about, sums))
    }

    /// Compares the checksum of every section, block by block.
    fn compare(
        &self,
        sums: &[u64],
        sum_of_block: &(dyn Fn(Range<usize>) -> io::Result<u64> + Sync),
    ) -> Result<(), GraphError> {
        for ((name, range), &sum) in self.sections.iter().zip(sums) {
            let blocks: io::Result<Vec<u64>> = blocks(range.clone()).map(sum_of_block).collect();
            let found = folded(&blocks.map_err(GraphError::reading(&self.path))?, range.len());
            if found != sum {
                return Err(self.damaged(&format!("one whose {name} has a wrong checksum")));
            }
        }
        Ok(())
    }

    /// Whether there is an array of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|(known, _)| known == name)
    }

    /// The array called `name`.
    ///
    /// # Errors
    /// If there is none, or its bytes do not fit the type.
    pub(crate) fn array<T: Pod>(&self, name: &str) -> Result<Array<T>, GraphError> {
        let section = self.sections.iter().find(|(known, _)| known == name);
        let array = section.and_then(|(_, range)| self.bytes.array(range.clone()));
        array.ok_or_else(|| self.damaged(&format!("one without {name}")))
    }

    /// The error that `found` stands in place of what was written.
    pub(crate) fn damaged(&self, found: &str) -> GraphError {
        GraphError::file(&self.path, WHOLE, found)
    }
}

/// What a reader expects, in messages.
const WHOLE: &str = "a complete data file";

fn blocks(range: Range<usize>) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let count = range.len().div_ceil(BLOCK);
    (0..count).into_par_iter().map(move |block| {
        let start = range.start + block * BLOCK;
        start..(start + BLOCK).min(range.end)
    })
}

/// The checksum of `bytes`, computed block by block.
fn sum_of_blocks(bytes: &[u8]) -> u64 {
    let sums: Vec<u64> = blocks(0..bytes.len()).map(|block| sum_of(&bytes[block], 0)).collect();
    folded(&sums, bytes.len())
}

fn folded(sums: &[u64], length: usize) -> u64 {
    sum_of(bytemuck::cast_slice(sums), length as u64)
}

/// The checksum of a part of `file`, read into a buffer so that its pages do not count as memory of this process.
#[cfg(unix)]
fn sum_of_file_block(file: &File, _: &MappedBytes, range: Range<usize>) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    thread_local! {
        static BUFFER: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(BLOCK, 0);
        let block = &mut buffer[..range.len()];
        file.read_exact_at(block, range.start as u64)?;
        Ok(sum_of(block, 0))
    })
}

/// Where files cannot be read at a position without moving a shared one, the mapping is read.
#[cfg(not(unix))]
fn sum_of_file_block(_: &File, bytes: &MappedBytes, range: Range<usize>) -> io::Result<u64> {
    Ok(sum_of(&bytes[range], 0))
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
        let mut sections = SectionWriter::default();
        sections.add("numbers", &[1u64, 2, 3]);
        sections.add::<u32>("nothing", &[]);
        sections.add_made("made", Array::from(vec![7u32, 8, 9, 10, 11]));
        sections.write(path, &"three arrays").unwrap();
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(sections.to_bytes(&"three arrays"), bytes);
        bytes
    }

    #[test]
    fn arrays_are_mapped_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rg");
        let bytes = written(&path);
        assert!(SectionReader::is_one(&path));
        let (reader, about) = SectionReader::open::<String>(&path).unwrap();
        assert_eq!(about, "three arrays");
        assert!(SectionReader::open::<u32>(&path).is_err());
        let numbers = reader.array::<u64>("numbers").unwrap();
        assert_eq!((&numbers[..], &reader.array::<u32>("nothing").unwrap()[..]), (&[1, 2, 3][..], &[][..]));
        assert_eq!(reader.array::<u32>("made").unwrap()[..], [7, 8, 9, 10, 11]);
        assert!(reader.has("made") && !reader.has("other") && reader.array::<u32>("other").is_err());
        let (sent, _) = SectionReader::of_bytes::<String>("sent", &bytes).unwrap();
        assert_eq!(sent.array::<u64>("numbers").unwrap(), numbers);
        // The arrays outlive the file and the reader.
        std::fs::remove_file(&path).unwrap();
        drop(reader);
        assert_eq!(numbers.clone()[..], [1, 2, 3]);
    }

    #[test]
    fn a_file_that_was_cut_off_or_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rg");
        let whole = written(&path);
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(SectionReader::open::<String>(&path).is_err(), "{length} bytes of {}", whole.len());
        }
        let padding = |at: usize| {
            let (reader, _, _) = SectionReader::parse::<String>(&path, MappedBytes::copied(&whole)).unwrap();
            let header = reader.sections[0].1.start.saturating_sub(ALIGNED);
            at > header && reader.sections.iter().all(|(_, range)| !range.contains(&at)) && whole[at] == 0
        };
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            let refused = SectionReader::of_bytes::<String>("changed", &changed).is_err();
            assert!(refused || padding(at), "byte {at}");
        }
        assert!(SectionReader::open::<String>(&folder.path().join("nowhere.rg")).is_err());
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
