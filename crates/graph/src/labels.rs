//! Readable labels of some entities or relations: in memory, where they can grow, or in a mapped file.

use super::array::Array;
use super::mapped::{SectionReader, SectionWriter};
use super::vocabulary::text_at;
use super::{EntityId, GraphError, RelationId};
use foldhash::fast::FixedState;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::BuildHasher;

/// What can have a label.
pub trait Labelled: Copy + Ord {
    /// Its number.
    fn number(self) -> u32;
    /// The one with this number.
    fn of_number(number: u32) -> Self;
}

impl Labelled for EntityId {
    fn number(self) -> u32 {
        self.0
    }
    fn of_number(number: u32) -> Self {
        Self(number)
    }
}

impl Labelled for RelationId {
    fn number(self) -> u32 {
        self.0
    }
    fn of_number(number: u32) -> Self {
        Self(number)
    }
}

/// LabelMap by id.
#[derive(Clone)]
pub struct LabelMap<I>(Storage<I>);

#[derive(Clone)]
enum Storage<I> {
    Memory(BTreeMap<I, String>),
    /// Ids, ascending, and the label of each.
    Mapped {
        ids: Array<u32>,
        text: Array<u8>,
        ends: Array<u64>,
        /// For every label that several ids have, in whatever case, a place among `ids`. A file may lack it.
        shared: Option<Array<u32>>,
    },
}

impl<I> Default for LabelMap<I> {
    fn default() -> Self {
        Self(Storage::Memory(BTreeMap::new()))
    }
}

impl<I: Labelled> LabelMap<I> {
    /// The label of `id`, if it has one.
    pub fn get(&self, id: I) -> Option<&str> {
        match &self.0 {
            Storage::Memory(labels) => labels.get(&id).map(String::as_str),
            Storage::Mapped { ids, text, ends, .. } => {
                let at = ids.binary_search(&id.number()).ok()?;
                Some(text_at(text, ends, at as u32))
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Memory(labels) => labels.len(),
            Storage::Mapped { ids, .. } => ids.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (I, &str)> {
        let (memory, mapped) = match &self.0 {
            Storage::Memory(labels) => (Some(labels), None),
            Storage::Mapped { ids, text, ends, .. } => (None, Some((ids, text, ends))),
        };
        let in_memory = memory.into_iter().flatten().map(|(&id, label)| (id, label.as_str()));
        let in_file = mapped.into_iter().flat_map(|(ids, text, ends)| {
            ids.iter().zip(0..).map(move |(&id, at)| (I::of_number(id), text_at(text, ends, at)))
        });
        in_memory.chain(in_file)
    }

    /// The labels that several ids have if case does not count, in lower case. Of a file this reads those labels alone.
    pub fn shared(&self) -> HashSet<String> {
        match &self.0 {
            Storage::Mapped { text, ends, shared: Some(shared), .. } => {
                shared.iter().map(|&at| text_at(text, ends, at).to_lowercase()).collect()
            }
            _ => self.places_of_shared().0,
        }
    }

    /// The same by looking at all labels, and where each of them stands the second time. A graph may have millions of
    /// labels, hardly any of them twice, so they are compared by their hashes first: eight bytes each, and no copy of
    /// their text.
    fn places_of_shared(&self) -> (HashSet<String>, Vec<u32>) {
        let hasher = FixedState::with_seed(0);
        let hash = |label: &str| hasher.hash_one(label.to_lowercase());
        let mut hashes: Vec<u64> = self.iter().map(|(_, label)| hash(label)).collect();
        hashes.sort_unstable();
        let repeated = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let repeated: HashSet<u64> = repeated.collect();
        let (mut seen, mut shared, mut places) = (HashSet::new(), HashSet::new(), Vec::new());
        for ((_, label), place) in self.iter().zip(0..).filter(|_| !repeated.is_empty()) {
            if repeated.contains(&hash(label))
                && let Some(again) = seen.replace(label.to_lowercase())
                && shared.insert(again)
            {
                places.push(place);
            }
        }
        (shared, places)
    }

    /// Sets the label of `id`. A label without visible text is none: it would show nothing.
    pub fn insert(&mut self, id: I, label: String) {
        if label.trim().is_empty() {
            return;
        }
        self.in_memory().insert(id, label);
    }

    /// Removes all labels.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn in_memory(&mut self) -> &mut BTreeMap<I, String> {
        if let Storage::Mapped { .. } = self.0 {
            self.0 = Storage::Memory(self.iter().map(|(id, label)| (id, label.to_owned())).collect());
        }
        match &mut self.0 {
            Storage::Memory(labels) => labels,
            Storage::Mapped { .. } => unreachable!("they were copied above"),
        }
    }

    /// Adds them to a file, as sections that begin with `prefix`.
    pub(super) fn write(&self, prefix: &str, out: &mut SectionWriter<'_>) {
        let (mut ids, mut text, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (id, label) in self.iter() {
            ids.push(id.number());
            text.extend_from_slice(label.as_bytes());
            ends.push(text.len() as u64);
        }
        out.add_made(&format!("{prefix}.ids"), ids.into());
        out.add_made(&format!("{prefix}.text"), text.into());
        out.add_made(&format!("{prefix}.ends"), ends.into());
        out.add_made(&format!("{prefix}.shared"), self.places_of_shared().1.into());
    }

    /// Those that were [written](Self::write) with this prefix.
    ///
    /// # Errors
    /// If the file lacks them.
    pub(super) fn mapped(prefix: &str, file: &SectionReader) -> Result<Self, GraphError> {
        let ids: Array<u32> = file.array(&format!("{prefix}.ids"))?;
        let text = file.array(&format!("{prefix}.text"))?;
        let ends: Array<u64> = file.array(&format!("{prefix}.ends"))?;
        if ids.len() != ends.len() {
            return Err(file.damaged("labels without a text"));
        }
        // Files of earlier versions lack it.
        let shared = format!("{prefix}.shared");
        let shared: Option<Array<u32>> = file.has(&shared).then(|| file.array(&shared)).transpose()?;
        if shared.iter().flat_map(|places| places.iter()).any(|&place| place as usize >= ids.len()) {
            return Err(file.damaged("shared labels that are not there"));
        }
        Ok(Self(Storage::Mapped { ids, text, ends, shared }))
    }
}

impl<I: Labelled> Extend<(I, String)> for LabelMap<I> {
    fn extend<T: IntoIterator<Item = (I, String)>>(&mut self, labels: T) {
        self.in_memory().extend(labels);
    }
}

impl<I: Labelled> FromIterator<(I, String)> for LabelMap<I> {
    fn from_iter<T: IntoIterator<Item = (I, String)>>(labels: T) -> Self {
        Self(Storage::Memory(labels.into_iter().collect()))
    }
}

impl<I: Labelled> PartialEq for LabelMap<I> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<I: Labelled + fmt::Debug> fmt::Debug for LabelMap<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
