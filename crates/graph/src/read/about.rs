//! What files say about entities beside facts, collected by name until all facts are read: labels, types, attributes.
//!
//! A table of nodes may stand before or after the facts, and may have nodes that no fact mentions: those are counted.

use crate::{
    AttributesBuilder, Direction, EntityId, LabelMap, Names, RelationId, Types, TypesBuilder, Vocabulary,
};
use std::collections::{BTreeMap, BTreeSet};

/// Everything said about things that may turn out to be entities, relations or types.
#[derive(Default)]
pub(super) struct About {
    /// Their names; ids in the fields below are their numbers here.
    things: Vocabulary,
    /// With a rank: a lower one counts more.
    labels: BTreeMap<u32, (u8, String)>,
    types: TypesBuilder,
    attributes: AttributesBuilder,
    /// Types that a type is a kind of, to see whether there are any.
    parents: usize,
}

impl About {
    pub(super) fn is_empty(&self) -> bool {
        self.things.is_empty() && self.parents == 0
    }

    /// The first label of a thing stays.
    pub(super) fn label(&mut self, thing: &str, label: &str) {
        self.label_of_rank(thing, label, 0);
    }

    /// A label that stays unless there is one of a lower rank, or an earlier one of the same.
    pub(super) fn label_of_rank(&mut self, thing: &str, label: &str, rank: u8) {
        let thing = self.things.intern(thing);
        self.label_of_thing(thing, label, rank);
    }

    /// The number of the thing with a name of this hash.
    #[cfg_attr(not(feature = "rdf"), allow(dead_code))]
    pub(super) fn thing(&mut self, hash: u64, name: &str) -> u32 {
        self.things.intern_hashed(hash, name)
    }

    /// As [`label_of_rank`](Self::label_of_rank), of the thing with this number.
    pub(super) fn label_of_thing(&mut self, thing: u32, label: &str, rank: u8) {
        let is_better = self.labels.get(&thing).is_none_or(|(known, _)| rank < *known);
        if is_better && !label.is_empty() {
            self.labels.insert(thing, (rank, label.to_owned()));
        }
    }

    pub(super) fn of_type(&mut self, thing: &str, of: &str) {
        let thing = self.things.intern(thing);
        if !of.is_empty() {
            self.types.add(EntityId(thing), of);
        }
    }

    pub(super) fn attribute(&mut self, thing: &str, name: &str, value: &str) {
        let thing = self.things.intern(thing);
        self.attributes.add(EntityId(thing), name, value);
    }

    /// The number of the name of an attribute.
    #[cfg_attr(not(feature = "rdf"), allow(dead_code))]
    pub(super) fn attribute_name(&mut self, name: &str) -> u32 {
        self.attributes.name(name)
    }

    /// The attribute with this number of a thing, with a value and its hash.
    #[cfg_attr(not(feature = "rdf"), allow(dead_code))]
    pub(super) fn attribute_of_thing(&mut self, thing: u32, name: u32, value: (u64, &str)) {
        self.attributes.add_numbered(EntityId(thing), name, value);
    }

    pub(super) fn kind_of(&mut self, of: &str, parent: &str) {
        self.parents += 1;
        self.types.add_parent(of, parent);
    }

    pub(super) fn declare(&mut self, relation: &str, side: Direction, of: &str) {
        let relation = self.things.intern(relation);
        self.types.declare(RelationId(relation), side, of);
    }

    /// Gives `names` what is said about them. Labels that they have already stay. Returns how many things no fact
    /// mentions.
    pub(super) fn give(self, names: &mut Names) -> usize {
        let Self { things, labels, mut types, attributes, .. } = self;
        let find =
            |known: &Vocabulary| -> Vec<Option<u32>> { things.iter().map(|name| known.get(name)).collect() };
        let (entities, relations) = (find(&names.entities), find(&names.relations));
        let mut type_labels = LabelMap::default();
        for (thing, (_, label)) in labels {
            if let Some(of) = types.names.get(things.name(thing)) {
                type_labels.insert(crate::TypeId(of), label.clone());
            }
            if let Some(id) = relations[thing as usize].map(RelationId)
                && names.relation_labels.get(id).is_none()
            {
                names.relation_labels.insert(id, label.clone());
            }
            if let Some(id) = entities[thing as usize].map(EntityId)
                && names.labels.get(id).is_none()
            {
                names.labels.insert(id, label);
            }
        }
        types.labels = type_labels;
        let unused = entities.iter().zip(&relations).zip(things.iter());
        let is_unused = |((entity, relation), name): ((&Option<u32>, &Option<u32>), &str)| {
            entity.is_none() && relation.is_none() && types.names.get(name).is_none()
        };
        let unused = unused.filter(|&thing| is_unused(thing)).count();
        let entity = |thing: EntityId| entities[thing.index()].map(EntityId);
        let relation = |thing: RelationId| relations[thing.index()].map(RelationId);
        names.types = types.finish().map(entity, relation);
        names.attributes = attributes.finish().map(entity);
        unused
    }
}

/// The types of `names` with those that names begin with, as in `Gene::123`: if nine of ten names have a prefix and there
/// are few of them. What is declared about types stays.
pub(super) fn types_by_prefix(names: &Names) -> Option<Types> {
    /// At most so many types, and at least so many entities of each on average.
    const MOST: usize = 100;
    const EACH: usize = 5;
    let mut prefixes: BTreeSet<&str> = BTreeSet::new();
    let mut without = 0;
    for name in names.entities.iter() {
        match prefix(name) {
            Some(of) => drop(prefixes.insert(of)),
            None => without += 1,
        }
        if prefixes.len() > MOST || without > names.entities.len() / 10 {
            return None;
        }
    }
    let with = names.entities.len() - without;
    if prefixes.len() < 2 || with < EACH * prefixes.len() {
        return None;
    }
    let mut types = TypesBuilder::from(names.types.clone());
    for (name, id) in names.entities.iter().zip(0..) {
        if let Some(of) = prefix(name) {
            types.add(EntityId(id), of);
        }
    }
    Some(types.finish())
}

/// What `name` begins with, if that looks like a kind: letters before the first colon, and not the scheme of an address.
fn prefix(name: &str) -> Option<&str> {
    let (prefix, rest) = name.split_once(':')?;
    let is_word = prefix.starts_with(|first: char| first.is_alphabetic())
        && prefix.len() <= 40
        && prefix.chars().all(|letter| letter.is_alphanumeric() || " _-.".contains(letter));
    let is_address = rest.starts_with("//") || ["urn", "mailto", "doi"].contains(&prefix);
    (is_word && !rest.trim_start_matches(':').is_empty() && !is_address).then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_entities_relations_or_types_wherever_they_are_named() {
        let mut about = About::default();
        about.label("ada", "Ada Lovelace");
        about.label("ada", "Augusta");
        about.label("knows", "is acquainted with");
        about.label("Person", "a person");
        about.of_type("ada", "Person");
        about.of_type("nobody", "Person");
        about.attribute("ada", "born", "1815");
        about.declare("knows", Direction::Forward, "Person");
        let mut names = Names {
            entities: ["ben", "ada"].into_iter().collect(),
            relations: ["knows"].into_iter().collect(),
            ..Names::default()
        };
        assert_eq!(about.give(&mut names), 1);
        let ada = EntityId(1);
        assert_eq!(
            (names.label(ada), names.relation_label(RelationId(0))),
            ("Ada Lovelace", "is acquainted with")
        );
        let of: Vec<&str> = names.types.of(ada).map(|of| names.types.label(of)).collect();
        assert_eq!((of, names.types.of(EntityId(0)).count()), (vec!["a person"], 0));
        assert!(names.attributes.of(ada).eq([("born", "1815")]));
        assert_eq!(names.types.declared(RelationId(0), Direction::Forward).count(), 1);
    }

    #[test]
    fn prefixes_are_types_if_nearly_all_names_have_one_of_a_few() {
        let types = |names: Vec<String>| {
            let entities = names.iter().map(String::as_str).collect();
            types_by_prefix(&Names { entities, ..Names::default() })
        };
        let genes = (0..20).flat_map(|id| [format!("Gene::{id}"), format!("GO:{id:07}")]);
        assert_eq!(types(genes.clone().collect()).unwrap().len(), 2);
        assert!(types(genes.chain((0..20).map(|id| format!("thing {id}"))).collect()).is_none());
        assert!(types((0..20).map(|id| format!("http://example.org/{id}")).collect()).is_none());
        assert!(types((0..40).map(|id| format!("a{id}:b")).collect()).is_none());
    }
}
