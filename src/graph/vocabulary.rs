//! Names and their dense ids: one arena of bytes, one end offset per name, one hash table of ids.
//!
//! Ids follow first appearance. A name is stored once, however often it occurs.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::fmt::Write;
use std::hash::BuildHasher;

/// The hash every table of names uses; fixed, so that ids never depend on the run.
const HASHER: FixedState = FixedState::with_seed(0x5eed);

/// A set of distinct names, numbered by first appearance.
#[derive(Clone, Default)]
pub struct Vocabulary {
    text: String,
    ends: Vec<u64>,
    table: HashTable<u32>,
}

/// The hash of `name` in every [`Vocabulary`].
pub(super) fn hash_name(name: &str) -> u64 {
    HASHER.hash_one(name)
}

impl Vocabulary {
    /// An empty vocabulary.
    pub fn new() -> Self {
        Self::default()
    }

    /// The numbers below `count`, each named by its digits.
    pub fn of_numbers(count: usize) -> Self {
        let mut vocabulary = Vocabulary { ends: Vec::with_capacity(count), ..Self::default() };
        vocabulary.table.reserve(count, |_| unreachable!("an empty table hashes nothing again"));
        let mut digits = String::new();
        for number in 0..count {
            digits.clear();
            // Writing to a string cannot fail.
            let _ = write!(digits, "{number}");
            vocabulary.intern(&digits);
        }
        vocabulary
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

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no name at all.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name with this id.
    ///
    /// # Panics
    /// If `id` is not below [`len`](Self::len).
    pub fn name(&self, id: u32) -> &str {
        name_at(&self.text, &self.ends, id)
    }

    /// The id of `name`, if it is known.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.table.find(hash_name(name), |&id| self.name(id) == name).copied()
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

    /// All names in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|id| self.name(id))
    }

    /// How many bytes the longest name has; 0 if there is none.
    pub fn longest(&self) -> usize {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| (end - start) as usize).max().unwrap_or(0)
    }

    /// Releases memory that was reserved for names and not used.
    pub fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
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
