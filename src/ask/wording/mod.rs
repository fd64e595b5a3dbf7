//! The words of a relation's label, made into a phrase by what kind of words they are.
//!
//! | label | kind | phrase |
//! |---|---|---|
//! | `uses`, `interacts_with` | verb | {s} uses {o} |
//! | `attributed-to`, `lived_in` | participle | {s} is attributed to {o}, {s} lived in {o} |
//! | `parent_of`, `in_pathway` | preposition | {s} is a parent of {o} |
//! | `platform` | noun | {s}'s platform is {o} |
//! | `artists`, `languages_spoken` | plural | {s}'s artists include {o}, the languages spoken by {s} include {o} |
//! | `P27` | code | {s} is linked to {o} (P27) |
//!
//! A word that ends in `s` is a verb if it is in a list of verbs that relations are named by, has the ending of one
//! (`oxidizes`) or stands before a preposition (`docks_with`). Every other one is taken for a plural.

mod words;

use words::{
    ACTIVE, ADJECTIVES, AUXILIARIES, GOVERNING, NOUNS_LIKE_VERBS, PARTICIPLES, PLACES, PLURALS, PREFIXES,
    PREPOSITIONS, ROLES, SAID, SINGULAR_ENDINGS, SINGULARS, TIMES, VERB_ENDINGS, VERBS,
};

/// The place of the subject in a phrase.
pub(super) const SUBJECT: &str = "{s}";
/// The place of the object in a phrase.
pub(super) const OBJECT: &str = "{o}";

/// Characters between words.
const BETWEEN_WORDS: [char; 4] = ['_', '-', '.', ':'];
/// A longer word is several without a space: `agentbelongstoorganization`.
const LONGEST_WORD: usize = 16;

/// The phrase of a relation with this label.
pub(super) fn phrase_of(label: &str) -> String {
    // What has spaces is said already as a person would.
    let said = label.trim().contains(char::is_whitespace);
    let words = match said {
        true => label.split_whitespace().map(str::to_owned).collect(),
        false => through_another(label).unwrap_or_else(|| words_of(label)),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = words.join(" ");
    match words[..] {
        [] => return format!("{SUBJECT} is linked to {OBJECT}"),
        [word] if is_code(word) || is_run_together(word) => {
            return format!("{SUBJECT} is linked to {OBJECT} ({word})");
        }
        _ => {}
    }
    if let Some((_, phrase)) = SAID.iter().find(|(label, _)| *label == text) {
        return format!("{SUBJECT} {phrase} {OBJECT}");
    }
    let between = |between: String| format!("{SUBJECT} {between} {OBJECT}");
    as_possession(&words, said)
        .or_else(|| as_verb(&words).map(between))
        .or_else(|| as_participle(&words))
        .or_else(|| as_relative(&words).map(between))
        .unwrap_or_else(|| as_noun(&words))
}

/// `has_part`.
fn as_possession(words: &[&str], said: bool) -> Option<String> {
    let [first, what @ ..] = words else { return None };
    let last = what.last()?;
    if *first != "has" || said || is_preposition(last) || is_participle(last) {
        return None;
    }
    let what = what.join(" ");
    Some(match is_plural(last) {
        true => format!("{SUBJECT}'s {what} include {OBJECT}"),
        false => format!("{SUBJECT} has the {what} {OBJECT}"),
    })
}

/// `uses`, `interacts_with`; `negatively_regulates` has its verb after the adverb.
fn as_verb(words: &[&str]) -> Option<String> {
    let text = words.join(" ");
    if is_one_of(AUXILIARIES, words.first()?) {
        return Some(text);
    }
    let at = words.iter().position(|word| !word.ends_with("ly"))?;
    let (verb, next) = (words[at], words.get(at + 1));
    // `measures taken` are a noun.
    if next.is_some_and(|next| is_participle(next)) {
        return None;
    }
    let bare = verb.rsplit('-').next()?;
    match GOVERNING.iter().find(|(verb, _)| *verb == bare) {
        Some((_, preposition)) if next.is_none() => Some(format!("{text} {preposition}")),
        Some(_) => Some(text),
        None => is_verb(bare, next.copied()).then_some(text),
    }
}

/// Whether a word before `next` is a verb.
fn is_verb(word: &str, next: Option<&str>) -> bool {
    let listed = is_one_of(VERBS, word);
    let ends_so =
        || VERB_ENDINGS.split(' ').any(|ending| word.ends_with(ending)) && !is_one_of(NOUNS_LIKE_VERBS, word);
    // `parents_of` and `countries_within` are nouns.
    let governs = || {
        next.is_some_and(|next| next != "of" && is_preposition(next))
            && is_plural(word)
            && !word.ends_with("ies")
            && !is_one_of(PLURALS, word)
    };
    listed || ends_so() || governs()
}

/// `attributed-to`, `lived_in`, `languages_spoken`.
fn as_participle(words: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| is_participle(word))?;
    let (before, participle, mut after) = (&words[..at], words[at], &words[at + 1..]);
    // `languages spoken, written or signed`
    if after.iter().all(|word| is_participle(word) || ["and", "or"].contains(word)) {
        after = &[];
    }
    let Some(noun) = before.last() else { return done(words, participle, after) };
    let (nouns, text, active) = (before.join(" "), words.join(" "), is_one_of(ACTIVE, participle));
    let be = if is_plural(noun) { "include" } else { "is" };
    match after {
        [] if is_one_of(PLACES, noun) || is_one_of(TIMES, noun) => {
            let asked = if is_one_of(PLACES, noun) { "where" } else { "when" };
            let was = if active { "" } else { "was " };
            Some(format!("the {nouns} {asked} {SUBJECT} {was}{participle} {be} {OBJECT}"))
        }
        [] => {
            let by = if participle == "involved" { "in" } else { "by" };
            Some(format!("the {text} {by} {SUBJECT} {be} {OBJECT}"))
        }
        // `nominees./nominated_for`
        [preposition] if noun.ends_with("ees") => {
            Some(format!("{SUBJECT}'s {nouns} are {participle} {preposition} {OBJECT}"))
        }
        // `countries_spoken_in`
        [preposition] if is_plural(noun) && is_preposition(preposition) => {
            let is = if active { "" } else { "is " };
            Some(format!("the {nouns} that {SUBJECT} {is}{participle} {preposition} include {OBJECT}"))
        }
        // `executive_produced_by`
        [.., last] if is_preposition(last) => done(words, participle, after),
        _ => None,
    }
}

/// What was done to the subject, or it did: `influenced_by`, `lived_in`, `located_in_place`.
fn done(words: &[&str], participle: &str, after: &[&str]) -> Option<String> {
    let is = match participle {
        "born" => "was ",
        _ if after.is_empty() || is_one_of(ACTIVE, participle) => "",
        _ => "is ",
    };
    let prepositions = [after.first(), after.last()];
    let leads_on = after.is_empty() || prepositions.into_iter().flatten().any(|word| is_preposition(word));
    leads_on.then(|| format!("{SUBJECT} {is}{} {OBJECT}", words.join(" ")))
}

/// `parent_of`, `similar_to`, `in_pathway`, `story_by`: what the subject is to the object.
fn as_relative(words: &[&str]) -> Option<String> {
    let text = words.join(" ");
    let (first, last) = (*words.first()?, *words.last()?);
    if words.len() < 2 {
        return None;
    }
    if is_preposition(first) || (is_one_of(ADJECTIVES, first) && is_preposition(last)) {
        return Some(format!("is {text}"));
    }
    let article = if first.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    if !is_preposition(last) {
        let role = words[1] == "of" && is_one_of(ROLES, first);
        return role.then(|| format!("is {article} {text}"));
    }
    let plural = is_plural(words[words.len() - 2]);
    match last {
        "by" => Some(format!("has {text}")),
        "of" if plural => Some(format!("is one of the {text}")),
        // `countries_within`: what the objects are.
        _ if plural => None,
        _ => Some(format!("is {article} {text}")),
    }
}

/// `platform`, `artists`.
fn as_noun(words: &[&str]) -> String {
    let text = words.join(" ");
    // What it is, without of what: `languages of instruction`.
    let end = words.iter().skip(1).position(|word| is_preposition(word)).map_or(words.len(), |at| at + 1);
    let be = if is_plural(words[end - 1]) { "include" } else { "is" };
    match words {
        // `people_with_this_title`
        [before @ .., "this", _] if !before.is_empty() => {
            format!("the {} {SUBJECT} {be} {OBJECT}", before.join(" "))
        }
        // `countries_within`
        [.., last] if words.len() > 1 && is_preposition(last) => {
            format!("the {text} {SUBJECT} {be} {OBJECT}")
        }
        _ => format!("{SUBJECT}'s {text} {be} {OBJECT}"),
    }
}

/// Whether a word is in a list of words.
fn is_one_of(list: &str, word: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

fn is_preposition(word: &str) -> bool {
    is_one_of(PREPOSITIONS, word)
}

fn is_participle(word: &str) -> bool {
    let word = word.trim_end_matches(',');
    // `breed` and `seed` are nouns.
    (word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed"))
        || is_one_of(PARTICIPLES, word)
        || is_one_of(ACTIVE, word)
}

fn is_plural(word: &str) -> bool {
    let ends_so = || {
        word.len() > 2 && word.ends_with('s') && !SINGULAR_ENDINGS.split(' ').any(|end| word.ends_with(end))
    };
    is_one_of(PLURALS, word) || (ends_so() && !is_one_of(SINGULARS, word))
}

/// Whether a name is a code and not a word: `P27`, `CtD`.
fn is_code(word: &str) -> bool {
    let capital = word.chars().skip(1).any(char::is_uppercase);
    word.chars().any(|letter| letter.is_ascii_digit()) || (capital && word.chars().count() <= 5)
}

/// Whether a word is too long to be one.
fn is_run_together(word: &str) -> bool {
    !word.contains('-') && word.chars().count() > LONGEST_WORD
}

/// The words of a path of two relations with a node for the statement between them, `/film/estimated_budget./money/currency`:
/// those of the last relation, and those of the first where the last alone says little.
fn through_another(label: &str) -> Option<Vec<String>> {
    let (first, last) = label.rsplit_once("./")?;
    let (mut first, last) = (words_of(first), words_of(last));
    let (noun, end) = (first.pop()?, last.last()?);
    if is_participle(&noun) && *end == "participant" {
        return Some(vec![noun]);
    }
    // `nominees./nominated_for`: it is they who are.
    if first.is_empty() && noun.ends_with("ees") && last.first().is_some_and(|word| is_participle(word)) {
        return Some([noun].into_iter().chain(last).collect());
    }
    let one = match noun.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None if is_plural(&noun) => noun.strip_suffix('s').unwrap_or(&noun).to_owned(),
        None => noun,
    };
    let says_more = |word: &String| !is_preposition(word) && !is_participle(word) && !is_code(word);
    let plain = last.len() == 1 && is_noun(end) && first.iter().chain([&one]).all(says_more);
    let repeats =
        first.iter().chain([&one]).any(|word| end.contains(word.as_str()) || word.contains(end.as_str()));
    (plain && !repeats).then(|| first.into_iter().chain([one]).chain(last).collect())
}

/// Whether a word is neither a verb nor a participle nor a preposition.
fn is_noun(word: &str) -> bool {
    !is_preposition(word) && !is_participle(word) && !is_verb(word, None)
}

/// A label in words: the last part of an address, path or prefixed name, divided at punctuation and at capital letters.
fn words_of(label: &str) -> Vec<String> {
    let last = label.trim_end_matches(['/', '#', '>']).rsplit(['/', '#']).next().unwrap_or(label);
    // `schema:knows`; `GNBR::E::Gene` says more than its end.
    let last = match last.split_once(':') {
        Some((_, name)) if !name.is_empty() && !name.contains(':') => name,
        _ => last,
    };
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
    if words.len() > 1 && is_one_of(PREFIXES, &words[0].to_lowercase()) {
        let prefix = words.remove(0);
        words[0] = format!("{prefix}-{}", words[0]);
    }
    // Freebase's `position_s` may be several.
    if words.len() > 1 && words.last().is_some_and(|word| word == "s") {
        words.pop();
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
mod tests;
