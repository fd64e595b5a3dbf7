//! Numbers, texts and dates of entities: what the data say about an entity that is not a fact about two.
//!
//! They are kept to be shown. Only attributes that are there take memory.

use super::array::Array;
use super::mapped::{SectionReader, SectionWriter};
use super::{EntityId, GraphError, Vocabulary};
use std::fmt;

/// The attributes of entities.
#[derive(Clone, Default)]
pub struct Attributes {
    /// The names of the attributes.
    pub names: Vocabulary,
    values: Vocabulary,
    /// Entity, attribute and value, sorted and distinct.
    all: Array<[u32; 3]>,
}

impl Attributes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The attributes of `entity`: names and values.
    pub fn of(&self, entity: EntityId) -> impl Iterator<Item = (&str, &str)> {
        let start = self.all.partition_point(|row| row[0] < entity.0);
        self.all[start..].iter().take_while(move |row| row[0] == entity.0).map(|row| self.words(row))
    }

    /// All of them: entities, names and values.
    pub fn iter(&self) -> impl Iterator<Item = (EntityId, &str, &str)> {
        self.all.iter().map(|row| {
            let (name, value) = self.words(row);
            (EntityId(row[0]), name, value)
        })
    }

    /// How many entities have one.
    pub fn entities(&self) -> usize {
        self.all.chunk_by(|one, other| one[0] == other[0]).count()
    }

    /// The same for entities with other ids; what has none is left out.
    pub fn map(&self, entity: impl Fn(EntityId) -> Option<EntityId>) -> Attributes {
        let mut moved = AttributesBuilder::default();
        for (id, name, value) in self.iter() {
            if let Some(id) = entity(id) {
                moved.add(id, name, value);
            }
        }
        moved.finish()
    }

    fn words(&self, &[_, name, value]: &[u32; 3]) -> (&str, &str) {
        // The ids of a forged file may be anything.
        let text = |names: &'_ Vocabulary, id: u32| (id as usize) < names.len();
        let name = if text(&self.names, name) { self.names.name(name) } else { "" };
        (name, if text(&self.values, value) { self.values.name(value) } else { "" })
    }

    /// Adds them to a file, as sections that begin with `prefix`; none if there are no attributes.
    pub(super) fn write<'a>(&'a self, prefix: &str, out: &mut SectionWriter<'a>) {
        if self.is_empty() {
            return;
        }
        self.names.write(&format!("{prefix}.names"), out);
        self.values.write(&format!("{prefix}.values"), out);
        out.add(&format!("{prefix}.all"), &self.all);
    }

    /// Those that were [written](Self::write) with this prefix.
    ///
    /// # Errors
    /// If the file has them in part.
    pub(super) fn mapped(prefix: &str, file: &SectionReader) -> Result<Self, GraphError> {
        if !file.has(&format!("{prefix}.all")) {
            return Ok(Self::default());
        }
        Ok(Self {
            names: Vocabulary::mapped(&format!("{prefix}.names"), file)?,
            values: Vocabulary::mapped(&format!("{prefix}.values"), file)?,
            all: file.array(&format!("{prefix}.all"))?,
        })
    }
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attributes({} of {} entities)", self.len(), self.entities())
    }
}

/// Attributes while they are collected.
#[derive(Default)]
pub struct AttributesBuilder {
    names: Vocabulary,
    values: Vocabulary,
    all: Vec<[u32; 3]>,
}

impl AttributesBuilder {
    /// Gives `entity` an attribute.
    pub fn add(&mut self, entity: EntityId, name: &str, value: &str) {
        let name = self.names.intern(name);
        self.all.push([entity.0, name, self.values.intern(value)]);
    }

    /// The number of the name of an attribute.
    #[cfg_attr(not(feature = "rdf"), allow(dead_code))]
    pub(super) fn name(&mut self, name: &str) -> u32 {
        self.names.intern(name)
    }

    /// As [`add`](Self::add), by the number of the name and with the hash of the value.
    #[cfg_attr(not(feature = "rdf"), allow(dead_code))]
    pub(super) fn add_numbered(&mut self, entity: EntityId, name: u32, (hash, value): (u64, &str)) {
        self.all.push([entity.0, name, self.values.intern_hashed(hash, value)]);
    }

    /// The attributes.
    pub fn finish(mut self) -> Attributes {
        self.all.sort_unstable();
        self.all.dedup();
        Attributes { names: self.names, values: self.values, all: self.all.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_has_its_own_attributes() {
        let mut attributes = AttributesBuilder::default();
        for (entity, name, value) in [(9, "height", "1.65"), (4, "born", "1815"), (9, "born", "1852")] {
            attributes.add(EntityId(entity), name, value);
        }
        attributes.add(EntityId(9), "height", "1.65");
        let attributes = attributes.finish();
        let of = |entity| attributes.of(EntityId(entity)).collect::<Vec<_>>();
        assert_eq!(of(9), [("height", "1.65"), ("born", "1852")]);
        assert_eq!((of(4), of(5)), (vec![("born", "1815")], vec![]));
        assert_eq!((attributes.len(), attributes.entities()), (3, 2));
        let moved = attributes.map(|entity| (entity.0 == 4).then_some(EntityId(1)));
        assert!(moved.iter().eq([(EntityId(1), "born", "1815")]));
    }
}
