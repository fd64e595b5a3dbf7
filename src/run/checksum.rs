//! Checksums: of data as it was parsed, of files, and of everything that a stage depends on.
//!
//! The checksum of data is taken over names and triples, not over the bytes of the files, so that compressing or
//! converting a file does not change it.

use super::RunError;
use crate::graph::{Dataset, Known, Names, Note, Notes, Triple, Types};
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

    /// Of the learnable data: the names, the facts, the training queries and the validation split, and what the data say
    /// beside them.
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
        // Data without any of this keep the checksum that they always had.
        for (what, split) in [(b"negatives", &known.negatives), (b"false val", &known.valid_negatives)] {
            if !split.is_empty() {
                sum.update(what);
                add_triples(&mut sum, split);
            }
        }
        add_notes(&mut sum, &known.notes);
        add_types(&mut sum, &names.types);
        Self::finish(sum)
    }

    /// Of a whole data set, the test split included; `known` is the checksum of its learnable part.
    pub fn of_dataset(dataset: &Dataset, known: &Checksum) -> Self {
        let mut sum = Sha256::new_with_prefix(&known.0);
        add_triples(&mut sum, &dataset.test);
        add_triples(&mut sum, &dataset.test_left_out);
        if !dataset.test_negatives.is_empty() {
            add_triples(&mut sum, &dataset.test_negatives);
        }
        add_notes(&mut sum, &dataset.test_notes);
        Self::finish(sum)
    }

    /// The checksum that was written as `text`.
    pub(super) fn from_text(text: String) -> Self {
        Self(text)
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

fn add_notes(sum: &mut Sha256, notes: &Notes) {
    for (fact, Note { confidence, source, time }) in notes.iter() {
        add_triples(sum, &[fact]);
        sum.update(confidence.unwrap_or(0.0).to_le_bytes());
        for text in [source, time].map(Option::unwrap_or_default) {
            sum.update((text.len() as u64).to_le_bytes());
            sum.update(text);
        }
    }
}

fn add_types(sum: &mut Sha256, types: &Types) {
    if types.is_empty() {
        return;
    }
    for name in types.names.iter() {
        sum.update((name.len() as u64).to_le_bytes());
        sum.update(name);
    }
    types.pairs().into_iter().for_each(|pairs| {
        sum.update((pairs.len() as u64).to_le_bytes());
        for [one, other] in pairs {
            sum.update(one.to_le_bytes());
            sum.update(other.to_le_bytes());
        }
    });
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
    use crate::graph::{NotesBuilder, TypesBuilder};

    #[test]
    fn the_test_split_is_in_the_sum_of_the_data_set_alone() {
        let dataset = crate::generate::demonstration();
        let mut other = dataset.clone();
        let test: Vec<Triple> = dataset.test.iter().rev().copied().collect();
        other.test = test.into();
        let known = |d: &Dataset| Checksum::of_known(&d.names, &d.known);
        assert_eq!(known(&dataset), known(&other));
        let whole = |d: &Dataset| Checksum::of_dataset(d, &known(d));
        assert_ne!(whole(&dataset), whole(&other));
    }

    #[test]
    fn what_the_data_say_beside_facts_is_in_the_sum() {
        let dataset = crate::generate::demonstration();
        let plain = Checksum::of_known(&dataset.names, &dataset.known);
        let fact = dataset.known.facts[0];
        let mut notes = NotesBuilder::default();
        notes.add(fact, Note { confidence: Some(0.5), ..Note::default() });
        let noted = Known { notes: notes.finish(), ..dataset.known.clone() };
        let denied = Known { negatives: [fact].into(), ..dataset.known.clone() };
        let mut types = TypesBuilder::default();
        types.add(fact.head, "Person");
        let typed = Names { types: types.finish(), ..Names::clone(&dataset.names) };
        for (names, known) in
            [(&*dataset.names, &noted), (&*dataset.names, &denied), (&typed, &dataset.known)]
        {
            assert_ne!(Checksum::of_known(names, known), plain);
        }
        let later = Dataset { test_notes: noted.notes.clone(), ..dataset.clone() };
        assert_ne!(Checksum::of_dataset(&later, &plain), Checksum::of_dataset(&dataset, &plain));
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
