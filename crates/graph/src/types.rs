//! What kind of thing an entity is, which types are kinds of others, and which types a relation connects.
//!
//! An entity may have several types. Statements are sorted pairs of ids, so that an entity without a type takes no
//! memory, and neither does a data set without types.

use super::array::Array;
use super::labels::{LabelMap, Labelled};
use super::mapped::{SectionReader, SectionWriter};
use super::{Direction, EntityId, GraphError, RelationId, Vocabulary};
use std::collections::BTreeSet;
use std::fmt;

/// A type, by its index in the vocabulary of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u32);

impl TypeId {
    /// The id as an index into per-type arrays.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Labelled for TypeId {
    fn number(self) -> u32 {
        self.0
    }
    fn of_number(number: u32) -> Self {
        Self(number)
    }
}

/// Pairs of ids, sorted and distinct.
type Pairs = Array<[u32; 2]>;

/// The types of entities, and what is declared about types.
#[derive(Clone, Default)]
pub struct Types {
    /// The names of the types.
    pub names: Vocabulary,
    /// Readable labels, for types that have one.
    pub labels: LabelMap<TypeId>,
    /// Entity and type.
    of: Pairs,
    /// Type and the type it is a kind of.
    parents: Pairs,
    /// Relation and type.
    domains: Pairs,
    ranges: Pairs,
}

impl Types {
    /// Whether nothing is known about types.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The name of a type, as in the data.
    pub fn name(&self, id: TypeId) -> &str {
        self.names.name(id.0)
    }

    /// The label of a type, or its name where it has none.
    pub fn label(&self, id: TypeId) -> &str {
        self.labels.get(id).unwrap_or_else(|| self.name(id))
    }

    /// The type with this name or, if there is none, the first with this label.
    pub fn find(&self, text: &str) -> Option<TypeId> {
        let by_label = || self.labels.iter().find(|(_, label)| *label == text).map(|(id, _)| id);
        self.names.get(text).map(TypeId).or_else(by_label)
    }

    /// The types that the data give `entity`, without the types that these are kinds of.
    pub fn of(&self, entity: EntityId) -> impl Iterator<Item = TypeId> {
        seconds(&self.of, entity.0)
    }

    /// The types of `entity` and all types that these are kinds of, ascending.
    pub fn all_of(&self, entity: EntityId) -> Vec<TypeId> {
        let mut all: BTreeSet<TypeId> = BTreeSet::new();
        self.of(entity).for_each(|of| self.add_ancestors(of, &mut all));
        all.into_iter().collect()
    }

    /// `of` and all types that it is a kind of.
    pub fn with_ancestors(&self, of: TypeId) -> BTreeSet<TypeId> {
        let mut all = BTreeSet::new();
        self.add_ancestors(of, &mut all);
        all
    }

    /// The types of `entity` with those that these are kinds of; without subclasses, those of the data.
    pub fn each_of(&self, entity: EntityId) -> Vec<TypeId> {
        if self.parents.is_empty() { self.of(entity).collect() } else { self.all_of(entity) }
    }

    /// How many types have `of` among their ancestors, itself included: of types with as many entities, the one with
    /// fewer kinds says more.
    pub fn height(&self, of: TypeId) -> usize {
        if self.parents.is_empty() { 1 } else { self.kinds(of).len() }
    }

    /// How many entities each type has, those of its kinds included.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.len()];
        for same in self.of.chunk_by(|one, other| one[0] == other[0]) {
            self.each_of(EntityId(same[0][0])).iter().for_each(|of| counts[of.index()] += 1);
        }
        counts
    }

    /// The types that any entity has, the most frequent first; of equally frequent ones the more special. With counts,
    /// which include those of their kinds.
    pub fn by_frequency(&self) -> Vec<(TypeId, usize)> {
        let counted = self.counts().into_iter().zip(0..).filter(|(count, _)| *count > 0);
        let mut all: Vec<(TypeId, usize)> = counted.map(|(count, id)| (TypeId(id), count)).collect();
        all.sort_by_cached_key(|&(of, count)| (std::cmp::Reverse(count), self.height(of), of));
        all
    }

    /// Adds `of` and all types that it is a kind of; circles of subclasses end.
    fn add_ancestors(&self, of: TypeId, all: &mut BTreeSet<TypeId>) {
        let mut next = vec![of];
        while let Some(of) = next.pop() {
            if all.insert(of) {
                next.extend(self.parents(of));
            }
        }
    }

    /// The types that `of` is declared to be a kind of, without theirs.
    pub fn parents(&self, of: TypeId) -> impl Iterator<Item = TypeId> {
        seconds(&self.parents, of.0)
    }

    /// `of` and all its kinds.
    pub fn kinds(&self, of: TypeId) -> BTreeSet<TypeId> {
        let mut children: Vec<[u32; 2]> =
            self.parents.iter().map(|&[child, parent]| [parent, child]).collect();
        children.sort_unstable();
        let (mut all, mut next) = (BTreeSet::new(), vec![of]);
        while let Some(of) = next.pop() {
            if all.insert(of) {
                next.extend(seconds(&children, of.0));
            }
        }
        all
    }

    /// The entities of type `of`, or of a kind of it, ascending.
    pub fn entities(&self, of: TypeId) -> Vec<EntityId> {
        let kinds = self.kinds(of);
        let of_kind = self.of.iter().filter(|pair| kinds.contains(&TypeId(pair[1])));
        let mut entities: Vec<EntityId> = of_kind.map(|pair| EntityId(pair[0])).collect();
        entities.dedup();
        entities
    }

    /// Every entity with each of its types, as the data give them.
    pub fn iter(&self) -> impl Iterator<Item = (EntityId, TypeId)> {
        self.of.iter().map(|&[entity, of]| (EntityId(entity), TypeId(of)))
    }

    /// How many entities have a type.
    pub fn typed(&self) -> usize {
        self.of.chunk_by(|one, other| one[0] == other[0]).count()
    }

    /// Which types the data declare for one side of a relation: its domain where it starts (forward), its range where
    /// it ends. Any of them will do, as with schema.org.
    pub fn declared(&self, relation: RelationId, side: Direction) -> impl Iterator<Item = TypeId> {
        let side = if side == Direction::Forward { &self.domains } else { &self.ranges };
        seconds(side, relation.0)
    }

    /// How many domains and ranges are declared.
    pub fn declarations(&self) -> usize {
        self.domains.len() + self.ranges.len()
    }

    /// Everything as pairs of ids: entities and types, types and their parents, relations and types of their domains,
    /// of their ranges.
    pub fn pairs(&self) -> [&[[u32; 2]]; 4] {
        [&self.of, &self.parents, &self.domains, &self.ranges]
    }

    /// The same for entities and relations with other ids; what has none is left out.
    pub fn map(
        &self,
        entity: impl Fn(EntityId) -> Option<EntityId>,
        relation: impl Fn(RelationId) -> Option<RelationId>,
    ) -> Types {
        let entities = self.of.iter().filter_map(|&[of, id]| Some([entity(EntityId(of))?.0, id]));
        let relations = |pairs: &Pairs| {
            let moved = pairs.iter().filter_map(|&[of, id]| Some([relation(RelationId(of))?.0, id]));
            sorted(moved.collect())
        };
        Types {
            of: sorted(entities.collect()),
            domains: relations(&self.domains),
            ranges: relations(&self.ranges),
            ..self.clone()
        }
    }

    /// Adds them to a file, as sections that begin with `prefix`; none if there are no types.
    pub(super) fn write<'a>(&'a self, prefix: &str, out: &mut SectionWriter<'a>) {
        if self.is_empty() {
            return;
        }
        self.names.write(&format!("{prefix}.names"), out);
        self.labels.write(&format!("{prefix}.labels"), out);
        out.add(&format!("{prefix}.of"), &self.of);
        out.add(&format!("{prefix}.parents"), &self.parents);
        out.add(&format!("{prefix}.domains"), &self.domains);
        out.add(&format!("{prefix}.ranges"), &self.ranges);
    }

    /// Those that were [written](Self::write) with this prefix.
    ///
    /// # Errors
    /// If the file has them in part, or pairs of types that have no name.
    pub(super) fn mapped(prefix: &str, file: &SectionReader) -> Result<Self, GraphError> {
        if !file.has(&format!("{prefix}.of")) {
            return Ok(Self::default());
        }
        let types = Self {
            names: Vocabulary::mapped(&format!("{prefix}.names"), file)?,
            labels: LabelMap::mapped(&format!("{prefix}.labels"), file)?,
            of: file.array(&format!("{prefix}.of"))?,
            parents: file.array(&format!("{prefix}.parents"))?,
            domains: file.array(&format!("{prefix}.domains"))?,
            ranges: file.array(&format!("{prefix}.ranges"))?,
        };
        let named = |pairs: &[[u32; 2]]| pairs.iter().all(|pair| (pair[1] as usize) < types.len());
        let children_are_named = types.parents.iter().all(|pair| (pair[0] as usize) < types.len());
        if !children_are_named || !types.pairs().into_iter().all(named) {
            return Err(file.damaged("one with types that have no name"));
        }
        Ok(types)
    }
}

impl PartialEq for Types {
    fn eq(&self, other: &Self) -> bool {
        let same_names = self.names.iter().eq(other.names.iter());
        same_names && self.labels == other.labels && self.pairs() == other.pairs()
    }
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Types({} types, {} entities with one)", self.len(), self.typed())
    }
}

/// The second ids of the pairs that begin with `first`.
fn seconds(pairs: &[[u32; 2]], first: u32) -> impl Iterator<Item = TypeId> {
    let start = pairs.partition_point(|pair| pair[0] < first);
    pairs[start..].iter().take_while(move |pair| pair[0] == first).map(|pair| TypeId(pair[1]))
}

fn sorted(mut pairs: Vec<[u32; 2]>) -> Pairs {
    pairs.sort_unstable();
    pairs.dedup();
    pairs.into()
}

/// Types while they are collected.
#[derive(Default)]
pub struct TypesBuilder {
    /// The names of the types.
    pub names: Vocabulary,
    /// Their labels.
    pub labels: LabelMap<TypeId>,
    of: Vec<[u32; 2]>,
    parents: Vec<[u32; 2]>,
    domains: Vec<[u32; 2]>,
    ranges: Vec<[u32; 2]>,
}

impl From<Types> for TypesBuilder {
    /// The same types, to which more can be added.
    fn from(types: Types) -> Self {
        let [of, parents, domains, ranges] = types.pairs().map(<[_]>::to_vec);
        Self { names: types.names, labels: types.labels, of, parents, domains, ranges }
    }
}

impl TypesBuilder {
    /// Gives `entity` the type called `of`.
    pub fn add(&mut self, entity: EntityId, of: &str) {
        let of = self.names.intern(of);
        self.of.push([entity.0, of]);
    }

    /// Declares that everything of type `of` is of type `parent` too.
    pub fn add_parent(&mut self, of: &str, parent: &str) {
        let of = self.names.intern(of);
        self.parents.push([of, self.names.intern(parent)]);
    }

    /// Declares that one side of `relation` is of type `of`: its domain (forward) or its range.
    pub fn declare(&mut self, relation: RelationId, side: Direction, of: &str) {
        let pair = [relation.0, self.names.intern(of)];
        (if side == Direction::Forward { &mut self.domains } else { &mut self.ranges }).push(pair);
    }

    /// The types.
    pub fn finish(self) -> Types {
        let Self { names, labels, of, parents, domains, ranges } = self;
        let [of, parents, domains, ranges] = [of, parents, domains, ranges].map(sorted);
        Types { names, labels, of, parents, domains, ranges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types() -> Types {
        let mut types = TypesBuilder::default();
        types.add(EntityId(7), "Drug");
        types.add(EntityId(7), "Protein");
        types.add(EntityId(7), "Drug");
        types.add(EntityId(2), "Thing");
        types.add_parent("Drug", "Compound");
        types.add_parent("Compound", "Thing");
        // A circle, which real ontologies have.
        types.add_parent("Thing", "Compound");
        types.declare(RelationId(3), Direction::Forward, "Compound");
        types.finish()
    }

    #[test]
    fn an_entity_has_its_types_and_those_they_are_kinds_of() {
        let types = types();
        let names = |ids: Vec<TypeId>| ids.into_iter().map(|id| types.name(id)).collect::<Vec<_>>();
        assert_eq!(names(types.of(EntityId(7)).collect()), ["Drug", "Protein"]);
        assert_eq!(names(types.all_of(EntityId(7))), ["Drug", "Protein", "Thing", "Compound"]);
        assert!(types.all_of(EntityId(3)).is_empty());
        let compound = types.find("Compound").unwrap();
        assert_eq!(types.entities(compound), [EntityId(2), EntityId(7)]);
        assert_eq!(types.entities(types.find("Protein").unwrap()), [EntityId(7)]);
        assert_eq!((types.typed(), types.iter().count()), (2, 3));
        let declared = |side| types.declared(RelationId(3), side).collect::<Vec<_>>();
        assert_eq!((declared(Direction::Forward), declared(Direction::Inverse)), (vec![compound], vec![]));
    }

    #[test]
    fn other_ids_have_the_same_types() {
        let moved = types().map(|entity| (entity.0 == 7).then_some(EntityId(0)), |_| None);
        assert_eq!((moved.typed(), moved.of(EntityId(0)).count(), moved.declarations()), (1, 2, 0));
    }
}
