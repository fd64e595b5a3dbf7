//! Completion: the names that start with what was typed, then those with a word that does, then similar names.

use crate::suggest::{fold, nearest};

/// A possible completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number of the entity or relation.
    pub id: u32,
}

/// Folded names, sorted from every place where a word begins.
pub(super) struct Sorted {
    /// All folded names, one after the other, each ended by a line break.
    text: String,
    /// Where a word begins in `text`, whether it is the first of its name, and the id that the name belongs to; sorted
    /// by the text from there on.
    words: Vec<Word>,
}

#[derive(Clone, Copy)]
struct Word {
    at: usize,
    first: bool,
    id: u32,
}

impl Sorted {
    /// Sorts `names`; one thing may have several.
    pub fn new<'a>(names: impl Iterator<Item = (u32, &'a str)>) -> Self {
        let (mut text, mut words) = (String::new(), Vec::new());
        for (id, name) in names {
            let start = text.len();
            // Of a name with several lines, only the first is indexed.
            text.push_str(fold(name).lines().next().unwrap_or_default());
            let mut inside = false;
            for (at, character) in text[start..].char_indices() {
                if character.is_alphanumeric() && !inside {
                    words.push(Word { at: start + at, first: at == 0, id });
                }
                inside = character.is_alphanumeric();
            }
            if !text[start..].starts_with(char::is_alphanumeric) && text.len() > start {
                words.push(Word { at: start, first: true, id });
            }
            text.push('\n');
        }
        words.sort_unstable_by(|a, b| {
            Self::tail(&text, a.at).cmp(Self::tail(&text, b.at)).then(a.id.cmp(&b.id))
        });
        Self { text, words }
    }

    fn tail(text: &str, at: usize) -> &str {
        let rest = &text[at..];
        rest.find('\n').map_or(rest, |end| &rest[..end])
    }

    /// The ids with a name that begins with `typed`, then those with a word that does; each group is ordered by
    /// `weight`, the largest first.
    pub fn beginning_with(&self, typed: &str, weight: impl Fn(u32) -> usize) -> Vec<Completion> {
        let folded = fold(typed);
        let tail = |word: &Word| Self::tail(&self.text, word.at);
        let from = self.words.partition_point(|word| tail(word) < folded.as_str());
        let hits = self.words[from..].iter().take_while(|word| tail(word).starts_with(&folded));
        let mut found: Vec<(bool, usize, u32)> =
            hits.map(|word| (!word.first, usize::MAX - weight(word.id), word.id)).collect();
        found.sort_unstable();
        let mut seen = std::collections::HashSet::new();
        found.retain(|&(_, _, id)| seen.insert(id));
        found.into_iter().map(|(_, _, id)| Completion { id }).collect()
    }
}

/// Names similar to `typed`, the most similar first.
pub(super) fn nearly<'a>(
    typed: &str,
    names: impl Iterator<Item = (u32, &'a str)> + Clone,
) -> Vec<Completion> {
    let near = nearest(typed, names.clone().map(|(_, name)| name));
    let id_of =
        |wanted: &&str| names.clone().find(|(_, name)| name == wanted).map(|(id, _)| Completion { id });
    near.iter().filter_map(id_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_come_before_words_and_weights_decide_among_equals() {
        let names = ["Ada Byron", "Byron, Ada", "The Byron Society", "Byron Bay", "_byron", "Élan"];
        let sorted = Sorted::new((0..).zip(names));
        let ids = |typed: &str| -> Vec<u32> {
            sorted.beginning_with(typed, |id| if id == 3 { 9 } else { 0 }).iter().map(|one| one.id).collect()
        };
        assert_eq!(ids("byr"), [3, 1, 0, 2, 4]);
        assert_eq!(ids("elan"), [5]);
        assert_eq!(ids("_by"), [4]);
        assert_eq!(ids("byron s"), [2]);
        assert_eq!(ids("zzz"), [0u32; 0]);
        assert_eq!(nearly("Byrn Bay", (0..).zip(names))[0].id, 3);
    }
}
