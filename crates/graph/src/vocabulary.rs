//! Names and their dense ids: one arena of bytes, one end offset per name, one hash table of ids.
//!
//! Ids follow first appearance. A name is stored once, however often it occurs.

use super::GraphError;
use super::array::Array;
use super::mapped::{SectionReader, SectionWriter};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use ruleguider_support::fnv::fnv;
use std::fmt::Write;
use std::hash::BuildHasher;

/// The hash every table of names in memory uses; fixed, so that ids never depend on the run.
const HASHER: FixedState = FixedState::with_seed(0x5eed);
/// A slot of a file's hash table without a name.
const FREE: u32 = u32::MAX;

/// A set of distinct names, numbered by first appearance.
#[derive(Clone)]
pub struct Vocabulary(Storage);

#[derive(Clone)]
enum Storage {
    Memory(Memory),
    Mapped(Mapped),
}

/// Names in memory, which may grow.
#[derive(Clone, Default)]
struct Memory {
    text: String,
    ends: Vec<u64>,
    table: HashTable<u32>,
}

/// Names in a file. The table has open addressing with linear probing by [`fnv`], which is the same on every machine.
#[derive(Clone)]
struct Mapped {
    text: Array<u8>,
    ends: Array<u64>,
    slots: Array<u32>,
}

/// The hash of `name` in every [`Vocabulary`] in memory.
pub(super) fn hash_name(name: &str) -> u64 {
    HASHER.hash_one(name)
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self(Storage::Memory(Memory::default()))
    }
}

impl Vocabulary {
    /// An empty vocabulary.
    pub fn new() -> Self {
        Self::default()
    }

    /// The numbers below `count`, each named by its digits.
    pub fn of_numbers(count: usize) -> Self {
        let mut names = Memory { ends: Vec::with_capacity(count), ..Memory::default() };
        names.table.reserve(count, |_| unreachable!("an empty table hashes nothing again"));
        let mut digits = String::new();
        for number in 0..count {
            digits.clear();
            // Writing to a string cannot fail.
            let _ = write!(digits, "{number}");
            names.intern_hashed(hash_name(&digits), &digits);
        }
        Self(Storage::Memory(names))
    }

    /// The given names in their order, which must all be different.
    ///
    /// # Errors
    /// If a name occurs twice; the error is that name.
    pub fn distinct<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut vocabulary = Vocabulary::new();
        for (place, name) in names.into_iter().enumerate() {
            if vocabulary.intern(name) as usize != place {
                return Err(format!("expected names that are all different, found `{name}` twice"));
            }
        }
        Ok(vocabulary)
    }

    /// Adds the names to a file, as sections that begin with `prefix`.
    pub(super) fn write<'a>(&'a self, prefix: &str, out: &mut SectionWriter<'a>) {
        let slots = match &self.0 {
            Storage::Memory(names) => {
                out.add(&format!("{prefix}.text"), names.text.as_bytes());
                out.add(&format!("{prefix}.ends"), &names.ends);
                hashed(self).into()
            }
            Storage::Mapped(names) => {
                out.add(&format!("{prefix}.text"), &names.text);
                out.add(&format!("{prefix}.ends"), &names.ends);
                names.slots.clone()
            }
        };
        out.add_made(&format!("{prefix}.slots"), slots);
    }

    /// The names that were [written](Self::write) with this prefix.
    ///
    /// # Errors
    /// If the file lacks them.
    pub(super) fn mapped(prefix: &str, file: &SectionReader) -> Result<Self, GraphError> {
        let text = file.array(&format!("{prefix}.text"))?;
        let ends: Array<u64> = file.array(&format!("{prefix}.ends"))?;
        let slots: Array<u32> = file.array(&format!("{prefix}.slots"))?;
        if !slots.len().is_power_of_two() || slots.len() <= ends.len() || ends.len() >= FREE as usize {
            return Err(file.damaged("names without a table of their own size"));
        }
        Ok(Self(Storage::Mapped(Mapped { text, ends, slots })))
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Memory(names) => names.ends.len(),
            Storage::Mapped(names) => names.ends.len(),
        }
    }

    /// Whether there is no name at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name with this id.
    ///
    /// # Panics
    /// If `id` is not below [`len`](Self::len).
    pub fn name(&self, id: u32) -> &str {
        match &self.0 {
            Storage::Memory(names) => name_at(&names.text, &names.ends, id),
            Storage::Mapped(names) => text_at(&names.text, &names.ends, id),
        }
    }

    /// The id of `name`, if it is known.
    pub fn get(&self, name: &str) -> Option<u32> {
        match &self.0 {
            Storage::Memory(names) => names.get(name),
            Storage::Mapped(names) => names.get(name),
        }
    }

    /// The id of `name`, which is added at the end if it is new.
    ///
    /// # Panics
    /// If there would be more than `u32::MAX` names.
    pub fn intern(&mut self, name: &str) -> u32 {
        self.intern_hashed(hash_name(name), name)
    }

    /// [`intern`](Self::intern) where the caller already has [`hash_name`] of the name.
    pub(super) fn intern_hashed(&mut self, hash: u64, name: &str) -> u32 {
        self.in_memory().intern_hashed(hash, name)
    }

    /// The names in memory, where they can grow; those of a file are copied.
    fn in_memory(&mut self) -> &mut Memory {
        if let Storage::Mapped(_) = self.0 {
            let mut names = Memory::default();
            for name in self.iter() {
                names.intern_hashed(hash_name(name), name);
            }
            self.0 = Storage::Memory(names);
        }
        match &mut self.0 {
            Storage::Memory(names) => names,
            Storage::Mapped(_) => unreachable!("they were copied above"),
        }
    }

    /// All names in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|id| self.name(id))
    }

    /// How many bytes the longest name has; 0 if there is none.
    pub fn longest(&self) -> usize {
        self.iter().map(str::len).max().unwrap_or(0)
    }

    /// Releases memory that was reserved for names and not used.
    pub fn shrink(&mut self) {
        if let Storage::Memory(names) = &mut self.0 {
            names.text.shrink_to_fit();
            names.ends.shrink_to_fit();
        }
    }
}

impl Memory {
    fn get(&self, name: &str) -> Option<u32> {
        let is_it = |&id: &u32| name_at(&self.text, &self.ends, id) == name;
        self.table.find(hash_name(name), is_it).copied()
    }

    fn intern_hashed(&mut self, hash: u64, name: &str) -> u32 {
        let (text, ends) = (&self.text, &self.ends);
        let entry = self.table.entry(
            hash,
            |&id| name_at(text, ends, id) == name,
            |&id| hash_name(name_at(text, ends, id)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(known) => *known.get(),
            hashbrown::hash_table::Entry::Vacant(place) => {
                let id = u32::try_from(ends.len()).expect("fewer than 2^32 distinct names");
                place.insert(id);
                self.text.push_str(name);
                self.ends.push(self.text.len() as u64);
                id
            }
        }
    }
}

impl Mapped {
    fn get(&self, name: &str) -> Option<u32> {
        let last = self.slots.len() - 1;
        let first = fnv(name.as_bytes()) as usize & last;
        // A table without a free slot would be damaged; the search ends nevertheless.
        let slots = (0..self.slots.len()).map(|step| self.slots[(first + step) & last]);
        let known = slots.take_while(|&id| (id as usize) < self.ends.len());
        known.into_iter().find(|&id| text_at(&self.text, &self.ends, id) == name)
    }
}

/// The hash table of a file: at most half full.
fn hashed(names: &Vocabulary) -> Vec<u32> {
    let size = (2 * names.len()).next_power_of_two().max(2);
    let mut slots = vec![FREE; size];
    for (name, id) in names.iter().zip(0..) {
        let mut at = fnv(name.as_bytes()) as usize & (size - 1);
        while slots[at] != FREE {
            at = (at + 1) & (size - 1);
        }
        slots[at] = id;
    }
    slots
}

impl<'a> FromIterator<&'a str> for Vocabulary {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut vocabulary = Vocabulary::new();
        for name in names {
            vocabulary.intern(name);
        }
        vocabulary
    }
}

fn name_at<'a>(text: &'a str, ends: &[u64], id: u32) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] as usize };
    &text[start..ends[id] as usize]
}

/// The text that ends at `ends[id]`. The bytes of a file are not known to be text until they are looked at, and a
/// forged file may say anything: what is no text is empty.
pub(super) fn text_at<'a>(text: &'a [u8], ends: &[u64], id: u32) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] as usize };
    let bytes = text.get(start..ends[id] as usize).unwrap_or_default();
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_follow_first_appearance(names in prop::collection::vec("[a-cé]{0,2}", 0..60)) {
            let vocabulary: Vocabulary = names.iter().map(String::as_str).collect();
            let mut distinct: Vec<&str> = Vec::new();
            for name in &names {
                if !distinct.contains(&name.as_str()) {
                    distinct.push(name);
                }
            }
            prop_assert_eq!(vocabulary.iter().collect::<Vec<_>>(), distinct.clone());
            for (id, name) in distinct.iter().enumerate() {
                prop_assert_eq!(vocabulary.get(name), Some(id as u32));
            }
            prop_assert_eq!(vocabulary.get("not there"), None);
        }
    }
}
