//! What the data say about facts beside the facts: how certain one is, where it comes from, and when.
//!
//! Only facts with a note take memory. Sources and times are ids into tables of distinct strings; each of the three
//! arrays is empty if no fact has that kind of note.

use super::array::Array;
use super::mapped::{SectionReader, SectionWriter};
use super::{GraphError, Triple, Vocabulary};
use std::fmt;

/// The id of a source or time that a fact does not have.
const NONE: u32 = u32::MAX;
/// Between the sources of one fact, as KGX separates the values of a column.
const AND: char = '|';

/// What is said about one fact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Note<'a> {
    /// How certain it is, in (0, 1].
    pub confidence: Option<f32>,
    /// Where it comes from: a database, a publication, an address. Several are separated by `|`.
    pub source: Option<&'a str>,
    /// When: a date or a number ([`Time`](super::Time)), as the data give it.
    pub time: Option<&'a str>,
}

impl Note<'_> {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Note::default()
    }
}

/// The notes of facts.
#[derive(Clone, Default)]
pub struct Notes {
    /// The facts with a note, ascending.
    facts: Array<Triple>,
    /// 0 where a fact has none.
    confidence: Array<f32>,
    source: Array<u32>,
    time: Array<u32>,
    sources: Vocabulary,
    times: Vocabulary,
}

impl Notes {
    /// Whether no fact has a note.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// How many facts have a note.
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// Whether any fact has a confidence.
    pub fn has_confidence(&self) -> bool {
        !self.confidence.is_empty()
    }

    /// Whether any fact has a source.
    pub fn has_source(&self) -> bool {
        !self.source.is_empty()
    }

    /// Whether any fact has a time.
    pub fn has_time(&self) -> bool {
        !self.time.is_empty()
    }

    /// How many different sources there are.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// What is said about `fact`.
    pub fn of(&self, fact: Triple) -> Note<'_> {
        self.facts.binary_search(&fact).map_or_else(|_| Note::default(), |at| self.at(at))
    }

    /// How certain `fact` is: 1 unless the data say otherwise.
    pub fn confidence(&self, fact: Triple) -> f32 {
        if self.confidence.is_empty() { 1.0 } else { self.of(fact).confidence.unwrap_or(1.0) }
    }

    /// Where `fact` comes from, if the data say so.
    pub fn source(&self, fact: Triple) -> Option<&str> {
        if self.source.is_empty() { None } else { self.of(fact).source }
    }

    /// When `fact` holds or was stated, if the data say so.
    pub fn time(&self, fact: Triple) -> Option<&str> {
        if self.time.is_empty() { None } else { self.of(fact).time }
    }

    /// The facts with a note, ascending, each with its note.
    pub fn iter(&self) -> impl Iterator<Item = (Triple, Note<'_>)> {
        self.facts.iter().enumerate().map(|(at, &fact)| (fact, self.at(at)))
    }

    /// The notes of the facts that `new` maps to a fact, as notes of that fact.
    pub fn map(&self, mut new: impl FnMut(Triple) -> Option<Triple>) -> Notes {
        let mut notes = NotesBuilder::default();
        for (fact, note) in self.iter() {
            if let Some(fact) = new(fact) {
                notes.add(fact, note);
            }
        }
        notes.finish()
    }

    /// These notes and those of `other`.
    pub fn and(&self, other: &Notes) -> Notes {
        if other.is_empty() {
            return self.clone();
        }
        let mut notes = NotesBuilder::default();
        self.iter().chain(other.iter()).for_each(|(fact, note)| notes.add(fact, note));
        notes.finish()
    }

    fn at(&self, at: usize) -> Note<'_> {
        fn text<'a>(ids: &[u32], names: &'a Vocabulary, at: usize) -> Option<&'a str> {
            // The ids of a forged file may be anything.
            let id = ids.get(at).filter(|&&id| (id as usize) < names.len())?;
            Some(names.name(*id))
        }
        Note {
            confidence: self.confidence.get(at).copied().filter(|&confidence| confidence > 0.0),
            source: text(&self.source, &self.sources, at),
            time: text(&self.time, &self.times, at),
        }
    }

    /// Adds them to a file, as sections that begin with `prefix`; none if there are no notes.
    pub(super) fn write<'a>(&'a self, prefix: &str, out: &mut SectionWriter<'a>) {
        if self.is_empty() {
            return;
        }
        out.add(&format!("{prefix}.facts"), &self.facts);
        out.add(&format!("{prefix}.confidence"), &self.confidence);
        out.add(&format!("{prefix}.source"), &self.source);
        out.add(&format!("{prefix}.time"), &self.time);
        self.sources.write(&format!("{prefix}.sources"), out);
        self.times.write(&format!("{prefix}.times"), out);
    }

    /// Those that were [written](Self::write) with this prefix.
    ///
    /// # Errors
    /// If the file has them in part.
    pub(super) fn mapped(prefix: &str, file: &SectionReader) -> Result<Self, GraphError> {
        if !file.has(&format!("{prefix}.facts")) {
            return Ok(Self::default());
        }
        let notes = Self {
            facts: file.array(&format!("{prefix}.facts"))?,
            confidence: file.array(&format!("{prefix}.confidence"))?,
            source: file.array(&format!("{prefix}.source"))?,
            time: file.array(&format!("{prefix}.time"))?,
            sources: Vocabulary::mapped(&format!("{prefix}.sources"), file)?,
            times: Vocabulary::mapped(&format!("{prefix}.times"), file)?,
        };
        let whole = |length: usize| length == 0 || length == notes.len();
        match whole(notes.confidence.len()) && whole(notes.source.len()) && whole(notes.time.len()) {
            true => Ok(notes),
            false => Err(file.damaged("notes of some facts only")),
        }
    }
}

impl PartialEq for Notes {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Notes while they are collected.
#[derive(Default)]
pub struct NotesBuilder {
    notes: Vec<(Triple, f32, u32, u32)>,
    sources: Vocabulary,
    times: Vocabulary,
}

impl NotesBuilder {
    /// Adds what is said about `fact`. If something is said already, the higher confidence and the first time count,
    /// and sources are joined.
    pub fn add(&mut self, fact: Triple, note: Note<'_>) {
        if note.is_empty() {
            return;
        }
        let source = note.source.map_or(NONE, |source| self.sources.intern(source));
        let time = note.time.map_or(NONE, |time| self.times.intern(time));
        self.notes.push((fact, note.confidence.unwrap_or(0.0), source, time));
    }

    /// The notes.
    pub fn finish(mut self) -> Notes {
        // The order of a fact's notes is that in which they were added.
        self.notes.sort_by_key(|&(fact, ..)| fact);
        let mut merged: Vec<(Triple, f32, u32, u32)> = Vec::with_capacity(self.notes.len());
        for same in self.notes.chunk_by(|one, other| one.0 == other.0) {
            let confidence = same.iter().map(|note| note.1).fold(0.0, f32::max);
            let time = same.iter().map(|note| note.3).find(|&time| time != NONE).unwrap_or(NONE);
            merged.push((same[0].0, confidence, joined(&mut self.sources, same), time));
        }
        // The tables are made again in the order of the facts, without what was joined: the same notes then are the
        // same file.
        let mut sources = Interned::new(&self.sources);
        let mut times = Interned::new(&self.times);
        for (_, _, source, time) in &mut merged {
            (*source, *time) = (sources.id(*source), times.id(*time));
        }
        let any = |said: bool| if said { merged.len() } else { 0 };
        let confidences = any(merged.iter().any(|note| note.1 > 0.0));
        let (with_source, with_time) = (any(!sources.new.is_empty()), any(!times.new.is_empty()));
        Notes {
            facts: merged.iter().map(|note| note.0).collect(),
            confidence: merged.iter().take(confidences).map(|note| note.1).collect(),
            source: merged.iter().take(with_source).map(|note| note.2).collect(),
            time: merged.iter().take(with_time).map(|note| note.3).collect(),
            sources: sources.new,
            times: times.new,
        }
    }
}

/// The id of all sources of `same`, notes of one fact.
fn joined(sources: &mut Vocabulary, same: &[(Triple, f32, u32, u32)]) -> u32 {
    let mut ids: Vec<u32> = Vec::new();
    for &(_, _, source, _) in same {
        if source != NONE && !ids.contains(&source) {
            ids.push(source);
        }
    }
    match ids[..] {
        [] => NONE,
        [one] => one,
        _ => {
            let mut parts: Vec<&str> = Vec::new();
            for part in ids.iter().flat_map(|&id| sources.name(id).split(AND)) {
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            let text = parts.join(&AND.to_string());
            sources.intern(&text)
        }
    }
}

/// Names that are numbered again in the order in which they are met.
struct Interned<'a> {
    old: &'a Vocabulary,
    new: Vocabulary,
}

impl<'a> Interned<'a> {
    fn new(old: &'a Vocabulary) -> Self {
        Self { old, new: Vocabulary::new() }
    }

    fn id(&mut self, old: u32) -> u32 {
        if old == NONE { NONE } else { self.new.intern(self.old.name(old)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(confidence: f32, source: &'static str, time: &'static str) -> Note<'static> {
        Note {
            confidence: (confidence > 0.0).then_some(confidence),
            source: (!source.is_empty()).then_some(source),
            time: (!time.is_empty()).then_some(time),
        }
    }

    #[test]
    fn what_is_said_about_a_fact_is_found_by_the_fact() {
        let mut notes = NotesBuilder::default();
        let facts = [Triple::new(4, 0, 1), Triple::new(0, 1, 2), Triple::new(9, 0, 0)];
        notes.add(facts[0], note(0.5, "PMID:1", "2015"));
        notes.add(facts[1], note(0.0, "PMID:2", ""));
        notes.add(facts[2], Note::default());
        let notes = notes.finish();
        assert_eq!(notes.of(facts[0]), note(0.5, "PMID:1", "2015"));
        assert_eq!((notes.confidence(facts[1]), notes.source(facts[1])), (1.0, Some("PMID:2")));
        assert_eq!((notes.len(), notes.of(facts[2]), notes.time(facts[1])), (2, Note::default(), None));
        assert!(notes.iter().map(|(fact, _)| fact).eq([facts[1], facts[0]]));
        let moved = notes.map(|fact| (fact != facts[1]).then(|| Triple::new(7, 7, 7)));
        assert_eq!((moved.len(), moved.of(Triple::new(7, 7, 7))), (1, note(0.5, "PMID:1", "2015")));
        assert_eq!(moved.sources(), 1);
    }

    #[test]
    fn a_fact_that_is_stated_twice_has_both_sources_and_the_higher_confidence() {
        let mut notes = NotesBuilder::default();
        let fact = Triple::new(1, 0, 2);
        for said in [note(0.5, "a", "2020"), note(0.9, "b|a", "2019"), note(0.1, "a", "")] {
            notes.add(fact, said);
        }
        assert_eq!(notes.finish().of(fact), note(0.9, "a|b", "2020"));
    }

    #[test]
    fn what_nothing_says_takes_no_memory() {
        let mut notes = NotesBuilder::default();
        notes.add(Triple::new(1, 0, 2), note(0.0, "a", ""));
        let notes = notes.finish();
        assert!(!notes.has_confidence() && notes.has_source() && !notes.has_time());
        assert!(Notes::default().is_empty() && Notes::default().and(&notes) == notes);
    }
}
