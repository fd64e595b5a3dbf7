//! Completion: the name that was typed, then names that begin with it, then names with a word that does, then names
//! that contain it, then names whose words are similar to the typed ones.
//!
//! The first two are found by binary search. The others scan all names, so they are computed only where the first two
//! leave room. Names are compared folded (lower case, no accents); containing and similarity also ignore everything
//! that is neither letter nor digit, so that `APT 29` finds `APT29`.

use crate::suggest::{fold, nearest};
use std::cmp::Reverse;
use std::collections::HashSet;

/// The fewest letters of a text that is looked for inside words.
const INSIDE: usize = 3;
/// The most words of a typed text that are compared one by one.
const WORDS: usize = 8;
/// The most letters of a word that is compared letter by letter.
const LETTERS: usize = 40;

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
    /// Where each name begins in `text`, and the id that it belongs to.
    names: Vec<(usize, u32)>,
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
    pub(crate) fn new<'a>(names: impl Iterator<Item = (u32, &'a str)>) -> Self {
        let (mut text, mut starts, mut words) = (String::new(), Vec::new(), Vec::new());
        for (id, name) in names {
            let start = text.len();
            starts.push((start, id));
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
        Self { text, names: starts, words }
    }

    fn tail(text: &str, at: usize) -> &str {
        let rest = &text[at..];
        rest.find('\n').map_or(rest, |end| &rest[..end])
    }

    /// The ids that may be meant by `typed`, the likeliest first; of those that fit equally well, the ones with the
    /// largest `weight`. What only contains `typed` or is similar to it is left out once `enough` are found.
    pub(crate) fn completions(
        &self,
        typed: &str,
        enough: usize,
        weight: impl Fn(u32) -> usize,
    ) -> Vec<Completion> {
        let mut found = self.beginning_with(typed, &weight);
        let plain = squeezed(&fold(typed));
        if found.len() < enough && plain.chars().count() >= INSIDE {
            append(&mut found, self.containing(typed, &plain, &weight));
        }
        if found.is_empty() {
            append(&mut found, self.similar(typed, &plain, &weight));
        }
        found.into_iter().map(|id| Completion { id }).collect()
    }

    /// The ids with the name `typed`, then those with names of several words that begin with these, then those with a name
    /// that begins with `typed` otherwise, then those with a word that does: `T1566` is not meant to be `T1566.001`.
    fn beginning_with(&self, typed: &str, weight: &impl Fn(u32) -> usize) -> Vec<u32> {
        let folded = fold(typed);
        let tail = |word: &Word| Self::tail(&self.text, word.at);
        let from = self.words.partition_point(|word| tail(word) < folded.as_str());
        let hits = self.words[from..].iter().take_while(|word| tail(word).starts_with(&folded));
        let rank = |word: &Word| match &tail(word)[folded.len()..] {
            _ if !word.first => 3,
            "" => 0,
            rest if rest.starts_with(char::is_whitespace) => 1,
            _ => 2,
        };
        best_first(hits.map(|word| (rank(word), Reverse(weight(word.id)), word.id)))
    }

    /// The ids with a name that contains `plain` if only letters and digits count, then those with a name that contains
    /// every word of `typed`, in any order.
    fn containing(&self, typed: &str, plain: &str, weight: &impl Fn(u32) -> usize) -> Vec<u32> {
        let folded = fold(typed);
        let words: Vec<&str> = words_of(&folded).take(WORDS).collect();
        let mut letters = String::new();
        let hits = self.names.iter().filter_map(|&(at, id)| {
            let name = Self::tail(&self.text, at);
            letters.clear();
            letters.extend(name.chars().filter(|character| character.is_alphanumeric()));
            let whole = letters.contains(plain);
            (whole || words.iter().all(|word| name.contains(word))).then(|| (!whole, Reverse(weight(id)), id))
        });
        best_first(hits)
    }

    /// The ids with a name in which every word of `typed` has a similar one, the fewest differences first; `plain`, the
    /// whole without its spaces, may also be similar to the beginning of one word.
    fn similar(&self, typed: &str, plain: &str, weight: &impl Fn(u32) -> usize) -> Vec<u32> {
        let folded = fold(typed);
        let words: Vec<Vec<char>> =
            words_of(&folded).take(WORDS).map(|word| word.chars().collect()).collect();
        let plain: Vec<char> = plain.chars().collect();
        let mut own = Vec::new();
        let hits = self.names.iter().filter_map(|&(at, id)| {
            own.clear();
            own.extend(words_of(Self::tail(&self.text, at)).map(|word| word.chars().take(LETTERS).collect()));
            let each = words.iter().map(|word| differences(word, &own)).sum::<Option<usize>>();
            let whole = (words.len() > 1).then(|| differences(&plain, &own)).flatten();
            let fewest = each.into_iter().chain(whole).min()?;
            Some((fewest, Reverse(weight(id)), id))
        });
        best_first(hits)
    }
}

/// The ids in the order of `hits`, each once.
fn best_first<K: Ord>(hits: impl Iterator<Item = (K, Reverse<usize>, u32)>) -> Vec<u32> {
    let mut found: Vec<_> = hits.collect();
    found.sort_unstable();
    let mut seen = HashSet::new();
    found.into_iter().map(|(.., id)| id).filter(|&id| seen.insert(id)).collect()
}

/// Adds those of `more` that are not in `found` yet.
fn append(found: &mut Vec<u32>, more: Vec<u32>) {
    let seen: HashSet<u32> = found.iter().copied().collect();
    found.extend(more.into_iter().filter(|id| !seen.contains(id)));
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// `text` without everything that is neither letter nor digit.
fn squeezed(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).collect()
}

/// How many letters of `word` have to be changed for one of `others` to begin with it or to be it; none if that is more
/// than a slip: nothing in up to three letters, one change in up to seven, else two.
fn differences(word: &[char], others: &[Vec<char>]) -> Option<usize> {
    let allowed = match word.len() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    others.iter().filter_map(|other| slips(word, other, allowed)).min()
}

/// The fewest insertions, deletions, replacements and swaps of neighbours that make `word` a beginning of `other`, if
/// at most `allowed`. (Damerau and Levenshtein's distance, optimal alignment, with a free end of `other`.)
fn slips(word: &[char], other: &[char], allowed: usize) -> Option<usize> {
    if word.len() > LETTERS || word.len() > other.len() + allowed {
        return None;
    }
    // Only a beginning of about the same length can be near enough.
    let other = &other[..other.len().min(word.len() + allowed)];
    // rows[i % 3][j]: the distance of the first i letters of `word` and the first j of `other`; three rows are needed,
    // because a swap looks back by two.
    let mut rows = [[0; LETTERS + 3]; 3];
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=word.len() {
        let [row, last, before] = [i % 3, (i + 2) % 3, (i + 1) % 3];
        rows[row][0] = i;
        for j in 1..=other.len() {
            let same = word[i - 1] == other[j - 1];
            let mut least =
                (rows[last][j] + 1).min(rows[row][j - 1] + 1).min(rows[last][j - 1] + usize::from(!same));
            if i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1] {
                least = least.min(rows[before][j - 2] + 1);
            }
            rows[row][j] = least;
        }
        if rows[row][..=other.len()].iter().all(|&cell| cell > allowed) {
            return None;
        }
    }
    let fewest = rows[word.len() % 3][..=other.len()].iter().min().copied()?;
    (fewest <= allowed).then_some(fewest)
}

/// Names similar to `typed` as a whole, the most similar first.
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

    fn ids(sorted: &Sorted, typed: &str) -> Vec<u32> {
        sorted.completions(typed, 10, |id| if id == 3 { 9 } else { 0 }).iter().map(|one| one.id).collect()
    }

    #[test]
    fn whole_names_come_before_words_and_weights_decide_among_equals() {
        let names = ["Ada Byron", "Byron, Ada", "The Byron Society", "Byron Bay", "_byron", "Élan"];
        let sorted = Sorted::new((0..).zip(names));
        assert_eq!(ids(&sorted, "byr"), [3, 1, 0, 2, 4]);
        assert_eq!(ids(&sorted, "elan"), [5]);
        assert_eq!(ids(&sorted, "_by"), [4]);
        assert_eq!(ids(&sorted, "byron s"), [2]);
        assert_eq!(ids(&sorted, "zzz"), [0u32; 0]);
        // What was typed whole comes first, whatever else begins with it.
        let names = ["T1566.001", "T1566", "of T1566", "T1566.002 Link", "T1566 Phishing"];
        assert_eq!(ids(&Sorted::new((0..).zip(names)), "t1566"), [1, 4, 3, 0, 2]);
        let names = ["Ada Byron", "Byron, Ada", "The Byron Society", "Byron Bay"];
        assert_eq!(nearly("Byrn Bay", (0..).zip(names))[0].id, 3);
    }

    #[test]
    fn words_are_forgiven_one_by_one_and_found_inside_others() {
        let names = [
            "G0016 APT29",
            "G0034 Sandworm Team",
            "S0002 Mimikatz",
            "T1566.002 Spearphishing Link",
            "T1071.001 Web Protocols",
            "G0050 APT32",
            "T1598 Phishing for Information",
            "Fancy-Bear group",
        ];
        let sorted = Sorted::new((0..).zip(names));
        for (typed, best) in [
            ("ATP29", 0),
            ("APT 29", 0),
            ("apt-29", 0),
            ("Sandwrm", 1),
            ("Mimikaz", 2),
            ("Spearphishng", 3),
            ("Web Protocls", 4),
            ("protocols web", 4),
            ("T1071.01", 4),
            ("fancybear", 7),
            ("bear fncy", 7),
        ] {
            assert_eq!(ids(&sorted, typed).first(), Some(&best), "{typed}");
        }
        // A word of its own comes before one within another; both are found.
        assert_eq!(ids(&sorted, "phishing"), [6, 3]);
        // Two letters are not looked for inside words, and short words are not guessed.
        assert_eq!(ids(&sorted, "is"), [0u32; 0]);
        assert_eq!(ids(&sorted, "xyz"), [0u32; 0]);
    }

    #[test]
    fn slips_are_counted_as_a_table_of_all_prefixes_says() {
        let letters = |text: &str| text.chars().collect::<Vec<char>>();
        let mut compared = 0;
        for word in ["atp29", "mimikaz", "protocls", "sandwrm", "abcd", "aabbccdd"] {
            for other in ["apt29", "mimikatz", "protocols", "sandworm", "sandwich", "acbd", "bbaaddcc", "a"] {
                let prefixes = (0..=other.len()).map(|end| strsim::osa_distance(word, &other[..end]));
                let fewest = prefixes.min().unwrap();
                for allowed in 0..=2 {
                    let expected = (fewest <= allowed).then_some(fewest);
                    assert_eq!(slips(&letters(word), &letters(other), allowed), expected, "{word} {other}");
                    compared += usize::from(expected.is_some());
                }
            }
        }
        assert!(compared > 8, "{compared}");
    }
}
