//! Relations as phrases: `uses` becomes `{s} uses {o}`.
//!
//! A phrase has a place for each side of a fact. Users give their own in `relation_phrases.tsv`; for other relations it is
//! made from the label, or from the name split into words, by the kind of words it has: a verb (`uses`), a noun with a
//! preposition (`parent_of`: is a parent of), a participle (`attributed-to`: is attributed to), a noun (`platform`: its
//! platform is), a code that is no word (`P27`).

use crate::graph::{Names, RelationId};

/// The place of the subject in a phrase.
const SUBJECT: &str = "{s}";
/// The place of the object in a phrase.
const OBJECT: &str = "{o}";

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

/// Labels that no grammar makes a phrase of, and what a person says.
const SAID: [(&str, &str); 5] = [
    ("isa", "is a kind of"),
    ("is a", "is a kind of"),
    ("also see", "refers also to"),
    ("see also", "refers also to"),
    ("same as", "is the same as"),
];
/// Characters between words.
const BETWEEN_WORDS: [char; 4] = ['_', '-', '.', ':'];
/// Prefixes that stay with their word: `co-occurs`.
const PREFIXES: [&str; 5] = ["co", "non", "up", "down", "self"];
/// Prepositions that a relation may end with, or begin.
const PREPOSITIONS: [&str; 20] = [
    "of", "to", "in", "by", "with", "from", "for", "on", "at", "as", "about", "into", "under", "over",
    "through", "within", "after", "before", "against", "via",
];
/// First words that a subject can be put before.
const AUXILIARIES: [&str; 10] = ["is", "was", "are", "were", "has", "had", "have", "can", "may", "does"];
/// Participles that do not end in `ed`.
const PARTICIPLES: [&str; 14] = [
    "born", "made", "known", "written", "held", "led", "found", "won", "given", "built", "drawn", "set",
    "bound", "taught",
];
/// Adjectives before a preposition.
const ADJECTIVES: [&str; 18] = [
    "similar",
    "adjacent",
    "equal",
    "equivalent",
    "next",
    "close",
    "capable",
    "due",
    "parallel",
    "orthologous",
    "homologous",
    "identical",
    "opposite",
    "native",
    "specific",
    "sensitive",
    "resistant",
    "active",
];
/// Nouns that end as verbs do.
const NOUNS: [&str; 12] = [
    "sports",
    "news",
    "series",
    "genres",
    "awards",
    "parents",
    "symptoms",
    "languages",
    "members",
    "species",
    "politics",
    "physics",
];

/// The phrase of a relation with this label.
fn phrase_of(label: &str) -> String {
    // What has spaces is a phrase already.
    let is_phrase = label.trim().contains(char::is_whitespace);
    let words =
        if is_phrase { label.split_whitespace().map(str::to_owned).collect() } else { words_of(label) };
    let text = if is_phrase { label.trim().to_owned() } else { words.join(" ") };
    let (Some(first), Some(last)) = (words.first().map(String::as_str), words.last().map(String::as_str))
    else {
        return format!("{SUBJECT} is linked to {OBJECT}");
    };
    if words.len() == 1 && is_code(first) {
        return format!("{SUBJECT} is linked to {OBJECT} ({first})");
    }
    if let Some((_, phrase)) = SAID.iter().find(|(label, _)| *label == text) {
        return format!("{SUBJECT} {phrase} {OBJECT}");
    }
    let participle =
        |word: &String| (word.len() > 4 && word.ends_with("ed")) || PARTICIPLES.contains(&word.as_str());
    // `negatively_regulates` has its verb after the adverb.
    let leading = words.iter().find(|word| !word.ends_with("ly")).map_or(first, String::as_str);
    let before = &words[..words.len() - 1];
    let ends_in_preposition = !before.is_empty() && PREPOSITIONS.contains(&last);
    // `has_part`
    let owns = first == "has"
        && !is_phrase
        && !before.is_empty()
        && !ends_in_preposition
        && !words.last().is_some_and(participle);
    let between = match () {
        () if owns => format!("has the {}", words[1..].join(" ")),
        () if AUXILIARIES.contains(&first) || is_verb(leading) => text,
        () if ends_in_preposition && (before.iter().any(participle) || ADJECTIVES.contains(&first)) => {
            format!("is {text}")
        }
        // `in_pathway`
        () if words.len() > 1 && PREPOSITIONS.contains(&first) => format!("is {text}"),
        () if ends_in_preposition => {
            let article = if first.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
            format!("is {article} {text}")
        }
        () if words.len() == 1 && participle(&words[0]) => text,
        () => return format!("{SUBJECT}'s {text} is {OBJECT}"),
    };
    format!("{SUBJECT} {between} {OBJECT}")
}

/// Whether a word looks like a verb: `uses`.
fn is_verb(word: &str) -> bool {
    let noun = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) || NOUNS.contains(&word);
    word.len() > 3 && word.ends_with('s') && !noun
}

/// Whether a name is a code and not a word: `P27`, `CtD`.
fn is_code(word: &str) -> bool {
    let capital = word.chars().skip(1).any(char::is_uppercase);
    word.chars().any(|letter| letter.is_ascii_digit()) || (capital && word.chars().count() <= 5)
}

/// A label in words: the last part of an address or path, divided at punctuation and at capital letters.
fn words_of(label: &str) -> Vec<String> {
    let last = label.trim_end_matches(['/', '#', '>']).rsplit(['/', '#']).next().unwrap_or(label);
    let divides = |letter: char| letter.is_whitespace() || BETWEEN_WORDS.contains(&letter);
    if is_code(last) && !last.contains(divides) {
        return vec![last.to_owned()];
    }
    let mut words: Vec<String> = Vec::new();
    for part in last.split(divides) {
        let mut word = String::new();
        let mut small_before = false;
        for letter in part.chars() {
            if letter.is_uppercase() && small_before {
                words.push(std::mem::take(&mut word));
            }
            small_before = letter.is_lowercase();
            word.push(letter);
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    if words.len() > 1 && PREFIXES.contains(&words[0].to_lowercase().as_str()) {
        let prefix = words.remove(0);
        words[0] = format!("{prefix}-{}", words[0]);
    }
    for word in &mut words {
        // Abbreviations stay as they are.
        if word.chars().skip(1).any(char::is_lowercase) || word.chars().count() == 1 {
            *word = word.to_lowercase();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_relations_become_phrases() {
        for (name, phrase) in [
            ("uses", "{s} uses {o}"),
            ("parent_of", "{s} is a parent of {o}"),
            ("aunt_of", "{s} is an aunt of {o}"),
            ("subtechnique-of", "{s} is a subtechnique of {o}"),
            ("attributed-to", "{s} is attributed to {o}"),
            ("conceptually_related_to", "{s} is conceptually related to {o}"),
            ("interacts_with", "{s} interacts with {o}"),
            ("co-occurs_with", "{s} co-occurs with {o}"),
            ("negatively_regulates", "{s} negatively regulates {o}"),
            ("in_pathway", "{s} is in pathway {o}"),
            ("_also_see", "{s} refers also to {o}"),
            ("has-analytic", "{s} has the analytic {o}"),
            ("has_enzyme_class", "{s} has the enzyme class {o}"),
            ("platform", "{s}'s platform is {o}"),
            ("country of citizenship", "{s}'s country of citizenship is {o}"),
            ("/people/person/place_of_birth", "{s}'s place of birth is {o}"),
            ("http://www.w3.org/ns/bornIn", "{s} is born in {o}"),
            ("_similar_to", "{s} is similar to {o}"),
            ("_hypernym", "{s}'s hypernym is {o}"),
            ("isa", "{s} is a kind of {o}"),
            ("is <a_b> here", "{s} is <a_b> here {o}"),
            ("P27", "{s} is linked to {o} (P27)"),
            ("CtD", "{s} is linked to {o} (CtD)"),
            ("Gr>G", "{s} is linked to {o} (Gr>G)"),
            ("___", "{s} is linked to {o}"),
        ] {
            assert_eq!(phrase_of(name), phrase, "{name}");
        }
    }

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
