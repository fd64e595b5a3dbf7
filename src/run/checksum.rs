//! Checksums: of data as it was parsed, of files, and of everything that a stage depends on.
//!
//! The checksum of data is taken over names and triples, not over the bytes of the files, so that compressing or
//! converting a file does not change it.

use super::RunError;
use crate::graph::{Dataset, Known, Names, Triple};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

/// A SHA-256 sum, as hexadecimal text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checksum(String);

impl Checksum {
    /// Of anything that can be written as JSON.
    pub fn of(value: &impl Serialize) -> Self {
        let text = serde_json::to_vec(value).expect("plain data with text keys can be written as JSON");
        Self::finish(Sha256::new_with_prefix(text))
    }

    /// Of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_file(path: &Path) -> Result<Self, RunError> {
        let file = std::fs::File::open(path).map_err(RunError::reading(path))?;
        Summed::new(file).finish().map_err(RunError::reading(path))
    }

    /// Of the learnable data: the names, the facts, the training queries and the validation split.
    pub fn of_known(names: &Names, known: &Known) -> Self {
        let mut sum = Sha256::new();
        for vocabulary in [&names.entities, &names.relations] {
            sum.update((vocabulary.len() as u64).to_le_bytes());
            for name in vocabulary.iter() {
                sum.update((name.len() as u64).to_le_bytes());
                sum.update(name);
            }
        }
        for split in [&known.facts, &known.queries, &known.valid] {
            add_triples(&mut sum, split);
        }
        Self::finish(sum)
    }

    /// Of a whole data set, the test split included; `known` is the checksum of its learnable part.
    pub fn of_dataset(dataset: &Dataset, known: &Checksum) -> Self {
        let mut sum = Sha256::new_with_prefix(&known.0);
        add_triples(&mut sum, &dataset.test);
        add_triples(&mut sum, &dataset.test_left_out);
        Self::finish(sum)
    }

    /// The first digits, enough to distinguish two by eye.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }

    fn finish(sum: Sha256) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
        Self(sum.finalize().into_iter().flat_map(digits).collect())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

/// A reader that computes the checksum of its input.
pub(super) struct Summed<R> {
    source: R,
    sum: Sha256,
}

impl<R: Read> Summed<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, sum: Sha256::new() }
    }

    /// The checksum of all of `source`: what has been read so far, and the rest.
    pub(super) fn finish(mut self) -> io::Result<Checksum> {
        let mut buffer = vec![0; 1 << 18];
        while self.read(&mut buffer)? > 0 {}
        Ok(Checksum::finish(self.sum))
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.sum.update(&buffer[..read]);
        Ok(read)
    }
}

fn add_triples(sum: &mut Sha256, triples: &[Triple]) {
    sum.update((triples.len() as u64).to_le_bytes());
    for block in triples.chunks(1024) {
        let ids = |triple: &Triple| [triple.head.0, triple.relation.0, triple.tail.0].map(u32::to_le);
        let block: Vec<[u32; 3]> = block.iter().map(ids).collect();
        sum.update(bytemuck::cast_slice(&block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_test_split_is_in_the_sum_of_the_data_set_alone() {
        let dataset = crate::generate::demonstration();
        let mut other = dataset.clone();
        let test: Vec<Triple> = dataset.test.iter().rev().copied().collect();
        other.test = Arc::from(test);
        let known = |d: &Dataset| Checksum::of_known(&d.names, &d.known);
        assert_eq!(known(&dataset), known(&other));
        let whole = |d: &Dataset| Checksum::of_dataset(d, &known(d));
        assert_ne!(whole(&dataset), whole(&other));
    }

    #[test]
    fn what_was_read_and_the_rest_are_summed_alike() {
        let whole = |read: usize| {
            let mut source = Summed::new(&b"some bytes"[..]);
            source.read_exact(&mut vec![0; read]).unwrap();
            source.finish().unwrap()
        };
        assert!([0, 4, 10].map(whole).iter().all(|sum| *sum == whole(1)));
        assert_ne!(whole(0), Summed::new(&b"some byte"[..]).finish().unwrap());
    }

    #[test]
    fn a_file_has_the_sum_that_everybody_computes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let sum = Checksum::of_file(file.path()).unwrap();
        assert_eq!(sum.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sum.short(), "ba7816bf8f01");
    }
}
