//! Headers whose names are not known words: a first row of three names that stand nowhere else in the file.
//!
//! A fact whose subject, relation and object all occur only once, in the very first line, is possible but hardly met;
//! what is left out is said, with the option that keeps it. The check is a comparison of ids after the file is read and
//! ends, for nearly every file, at the second fact.

use super::tabs::named_columns;
use super::{Builder, ReadOptions};
use crate::{Triple, Vocabulary};
use std::path::Path;

/// In a file with fewer facts, a first row with names of its own says nothing.
const FEWEST: usize = 10;

/// Whether `word` could be the name of a column.
fn is_name_of_column(word: &str) -> bool {
    let letters = word.chars().filter(|letter| letter.is_alphabetic()).count();
    letters > 1
        && word.len() <= 40
        && word.chars().all(|letter| letter.is_alphabetic() || "_ -".contains(letter))
}

/// Whether the first of `facts`, with these words, would be taken for a header: by what they say, or because they stand
/// nowhere else.
pub(crate) fn begins_like_header(words: [&str; 3], facts: &[Triple]) -> bool {
    let is_alone =
        || facts.len() > FEWEST && words.iter().all(|word| is_name_of_column(word)) && is_alone(facts);
    named_columns(words).is_some() || is_alone()
}

/// Whether no other fact has the relation or an end of the first.
fn is_alone(facts: &[Triple]) -> bool {
    let Some((first, others)) = facts.split_first() else { return false };
    let again = |fact: &Triple| {
        fact.relation == first.relation
            || [fact.head, fact.tail].iter().any(|end| [first.head, first.tail].contains(end))
    };
    first.head != first.tail && !others.iter().any(again)
}

impl Builder {
    /// Takes the first of the `facts` of a file away if it is a header. `entities` and `relations` are how many names
    /// there were before the file was read.
    pub(super) fn leave_out_header(
        &mut self,
        path: &Path,
        options: &ReadOptions,
        [entities, relations]: [usize; 2],
        facts: &mut Vec<Triple>,
    ) {
        let is_asked = std::mem::take(&mut self.first_is_a_fact) && options.header.is_none();
        let Some(&first) = facts.first().filter(|_| is_asked) else { return };
        let names = &self.names;
        let words = [
            names.entities.name(first.head.0),
            names.relations.name(first.relation.0),
            names.entities.name(first.tail.0),
        ];
        if !words.iter().all(|word| is_name_of_column(word)) {
            return;
        }
        let words = words.map(str::to_owned);
        // Splits of one data set are written alike: what began one of them with a header begins the others.
        let is_known = self.unnamed_header.as_ref() == Some(&words);
        if !is_alone(facts) || !(is_known || facts.len() > FEWEST) {
            return;
        }
        facts.remove(0);
        let gone = [first.head.0, first.tail.0]
            .into_iter()
            .filter(|&id| id as usize >= entities)
            .collect::<Vec<_>>();
        let gone_relations: Vec<u32> =
            [first.relation.0].into_iter().filter(|&id| id as usize >= relations).collect();
        without(&mut self.names.entities, &gone);
        without(&mut self.names.relations, &gone_relations);
        let moved = |id: u32, gone: &[u32]| id - gone.iter().filter(|&&other| other < id).count() as u32;
        for fact in facts.iter_mut() {
            *fact = Triple::new(
                moved(fact.head.0, &gone),
                moved(fact.relation.0, &gone_relations),
                moved(fact.tail.0, &gone),
            );
        }
        self.understood.push(format!(
            "{}: the first line ({}) is taken for a header, because its names stand nowhere else; --header false reads it as a \
             fact.",
            path.file_name().unwrap_or_default().to_string_lossy(),
            words.join(", ")
        ));
        self.headers += 1;
        self.unnamed_header = Some(words);
    }
}

/// Takes the names with these ids out; later ones move up.
fn without(names: &mut Vocabulary, gone: &[u32]) {
    if !gone.is_empty() {
        let kept = names.iter().zip(0..).filter(|(_, id)| !gone.contains(id)).map(|(name, _)| name);
        *names = kept.collect();
    }
}
