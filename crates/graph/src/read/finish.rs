//! What remains when all files are read: what was said by name is given to ids, negatives are checked against the facts,
//! and what was understood is put into words.

use super::Builder;
use super::about::types_by_prefix;
use crate::{Dataset, EntityId, GraphError, Names, RelationId, Types};
use std::sync::Arc;

/// The relation of RDF that gives a thing its type.
pub(super) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

impl Builder {
    /// Gives `dataset`, which was made of this builder's names, everything that was said beside facts.
    ///
    /// # Errors
    /// If something is both a fact and known to be false.
    pub(super) fn finish(mut self, mut dataset: Dataset) -> Result<Dataset, GraphError> {
        dataset.findings.headers = self.headers;
        dataset.findings.duplicates += self.copies;
        self.place_negatives(&mut dataset)?;
        self.take_types_of_facts(&dataset);
        let names = Arc::make_mut(&mut dataset.names);
        names.prefixes = std::mem::take(&mut self.prefixes);
        if !self.about.is_empty() {
            let unused = std::mem::take(&mut self.about).give(names);
            if unused > 0 {
                self.understood.push(format!("{unused} things that are described are in no fact."));
            }
        }
        let mut by_prefix = false;
        if names.types.typed() == 0
            && let Some(types) = types_by_prefix(names)
        {
            (names.types, by_prefix) = (types, true);
        }
        if self.is_rdf {
            abbreviate(names);
        }
        let notes = std::mem::take(&mut self.notes).finish();
        let mut dataset = dataset.with_notes(notes);
        self.say(&dataset, by_prefix);
        dataset.understood = self.understood;
        Ok(dataset)
    }

    /// Every `rdf:type` that is learnt from is a type as well as a fact. Those of other splits are not: they would tell
    /// what is asked for.
    fn take_types_of_facts(&mut self, dataset: &Dataset) {
        let names = &dataset.names;
        let Some(relation) = names.relations.get(RDF_TYPE).map(RelationId).filter(|_| self.is_rdf) else {
            return;
        };
        for fact in dataset.known.facts.iter().filter(|fact| fact.relation == relation) {
            self.about.of_type(names.entity(fact.head), names.entity(fact.tail));
        }
    }

    /// Says in words what is there beside facts.
    fn say(&mut self, dataset: &Dataset, by_prefix: bool) {
        let Names { types, attributes, labels, .. } = &*dataset.names;
        let entities = dataset.names.entities.len();
        let mut say = |sentence: String| self.understood.push(sentence);
        if types.typed() > 0 {
            let how = if by_prefix { " by what their names begin with" } else { "" };
            say(format!(
                "{} of {entities} entities have a type{how}: {}.",
                types.typed(),
                most_frequent(types)
            ));
        }
        if types.declarations() > 0 {
            say(format!("{} domains and ranges of relations are declared.", types.declarations()));
        }
        if self.is_rdf && !labels.is_empty() {
            say(format!("{} of {entities} entities have a label.", labels.len()));
        }
        if !attributes.is_empty() {
            say(format!(
                "{} attributes of {} entities are kept apart from facts ({}).",
                attributes.len(),
                attributes.entities(),
                shortened(&attributes.names.iter().collect::<Vec<_>>())
            ));
        }
        let notes = [&dataset.known.notes, &dataset.test_notes];
        let any = |has: fn(&crate::Notes) -> bool| notes.iter().any(|notes| has(notes));
        let noted: usize = notes.iter().map(|notes| notes.len()).sum();
        let kinds: Vec<&str> = [
            ("a confidence", any(crate::Notes::has_confidence)),
            ("a source", any(crate::Notes::has_source)),
            ("a time", any(crate::Notes::has_time)),
        ]
        .into_iter()
        .filter_map(|(what, has)| has.then_some(what))
        .collect();
        if !kinds.is_empty() {
            say(format!("{noted} facts have {}.", kinds.join(" or ")));
        }
        let negatives = [&dataset.known.negatives, &dataset.known.valid_negatives, &dataset.test_negatives];
        let negatives: usize = negatives.iter().map(|split| split.len()).sum();
        if negatives > 0 {
            say(format!("{negatives} facts are known to be false."));
        }
    }
}

/// The types that most entities have, with their counts.
fn most_frequent(types: &Types) -> String {
    let all: Vec<String> =
        types.by_frequency().into_iter().map(|(of, count)| format!("{count} {}", types.label(of))).collect();
    shortened(&all)
}

/// The first of several words, and how many more there are.
pub(super) fn shortened<T: AsRef<str>>(words: &[T]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<&str> = words.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let mut text = shown.join(", ");
    if words.len() > SHOWN {
        text += &format!(" and {} more", words.len() - SHOWN);
    }
    text
}

/// Gives everything without a label its abbreviated IRI as one.
fn abbreviate(names: &mut Names) {
    let Names { entities, relations, labels, relation_labels, types, prefixes, .. } = names;
    for (name, id) in entities.iter().zip(0..) {
        let id = EntityId(id);
        if labels.get(id).is_none()
            && let Some(short) = prefixes.shorten(name)
        {
            labels.insert(id, short);
        }
    }
    for (name, id) in relations.iter().zip(0..) {
        let id = RelationId(id);
        if relation_labels.get(id).is_none()
            && let Some(short) = prefixes.shorten(name)
        {
            relation_labels.insert(id, short);
        }
    }
    for (name, id) in types.names.iter().zip(0..) {
        let id = crate::TypeId(id);
        if types.labels.get(id).is_none()
            && let Some(short) = prefixes.shorten(name)
        {
            types.labels.insert(id, short);
        }
    }
}
