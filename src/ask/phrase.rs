//! Relations as phrases: `uses` becomes `{s} uses {o}`.
//!
//! A phrase has a place for each side of a fact. Users give their own in `relation_phrases.tsv`; for other relations it is
//! made from the words of the label, or of the name (`wording`).

use super::wording::{OBJECT, SUBJECT, phrase_of};
use crate::graph::{Names, RelationId};

/// The phrases of all relations.
#[derive(Clone, Debug, Default)]
pub struct Phrases {
    /// By relation: one that begins with the subject, and one that begins with the object if the user gave it.
    relations: Vec<(String, Option<String>)>,
}

/// A fact in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The side that it begins with, where nothing but a space follows: `Ada` in `Ada knows Ben`.
    pub topic: Option<String>,
    /// What follows: `knows Ben`, or all of it.
    pub rest: String,
}

impl Told {
    /// The whole fact.
    pub fn whole(&self) -> String {
        match &self.topic {
            Some(topic) => format!("{topic} {}", self.rest),
            None => self.rest.clone(),
        }
    }
}

impl Phrases {
    /// The phrases of the relations of `names`.
    pub fn new(names: &Names) -> Self {
        let phrases = |id: u32| {
            let relation = RelationId(id);
            let Some(given) = names.relation_phrases.get(relation) else {
                return (phrase_of(names.relation_label(relation)), None);
            };
            match given.split_once('\t') {
                Some((forward, inverse)) => (forward.to_owned(), Some(inverse.to_owned())),
                None => (given.to_owned(), None),
            }
        };
        Self { relations: (0..names.relations.len() as u32).map(phrases).collect() }
    }

    /// The fact that `relation` leads from `subject` to `object`; beginning with the object, if there is a phrase for that
    /// and it is wished.
    pub fn told(&self, relation: RelationId, [subject, object]: [&str; 2], object_first: bool) -> Told {
        let Some((forward, inverse)) = self.relations.get(relation.index()) else {
            return Told { topic: Some(subject.to_owned()), rest: format!("is linked to {object}") };
        };
        let phrase = inverse.as_ref().filter(|_| object_first).unwrap_or(forward);
        for (place, name) in [(SUBJECT, subject), (OBJECT, object)] {
            if let Some(rest) = phrase.strip_prefix(place).and_then(|rest| rest.strip_prefix(' ')) {
                return Told { topic: Some(name.to_owned()), rest: filled(rest, subject, object) };
            }
        }
        Told { topic: None, rest: filled(phrase, subject, object) }
    }
}

/// `phrase` with names in their places. A name that looks like a place stays as it is.
fn filled(phrase: &str, subject: &str, object: &str) -> String {
    let mut text = String::new();
    let mut left = phrase;
    while let Some(at) = left.find('{') {
        let (before, from) = left.split_at(at);
        text.push_str(before);
        let (name, place) = match () {
            () if from.starts_with(SUBJECT) => (subject, SUBJECT),
            () if from.starts_with(OBJECT) => (object, OBJECT),
            () => ("{", "{"),
        };
        text.push_str(name);
        left = &from[place.len()..];
    }
    text + left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_what_they_are() {
        assert_eq!(filled("{s} knows {o} {well}", "{o}", "{s}"), "{o} knows {s} {well}");
    }

    #[test]
    fn a_given_phrase_is_used_and_may_begin_with_either_side() {
        let mut names = Names { relations: ["uses", "knows"].into_iter().collect(), ..Names::default() };
        let given = "{s} works with {o}\t{o} is used by {s}";
        names.relation_phrases.insert(RelationId(0), given.to_owned());
        let phrases = Phrases::new(&names);
        let whole = |relation, first| phrases.told(RelationId(relation), ["Ada", "Mimikatz"], first).whole();
        assert_eq!(whole(0, false), "Ada works with Mimikatz");
        assert_eq!(whole(0, true), "Mimikatz is used by Ada");
        assert_eq!(whole(1, true), "Ada knows Mimikatz");
        assert_eq!(phrases.told(RelationId(0), ["Ada", "x"], true).topic.as_deref(), Some("x"));
    }
}
