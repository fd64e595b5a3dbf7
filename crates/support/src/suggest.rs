//! "Did you mean": names similar to what was typed, ignoring accents and case.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// How many names a message suggests at most.
const SUGGESTED: usize = 5;
/// Names less similar than this are not suggested.
const ALIKE: f64 = 0.55;

/// Longer names match only if one contains the other: comparing them letter by letter takes too long.
const COMPARED: usize = 1024;

/// `text` in lower case and without accents: the form in which names are compared.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let plain = text.nfkd().filter(|&character| !is_combining_mark(character));
    let mut folded = String::with_capacity(text.len());
    for character in plain.flat_map(char::to_lowercase) {
        // Letters without a Unicode decomposition.
        match character {
            'ł' => folded.push('l'),
            'ø' => folded.push('o'),
            'đ' | 'ð' => folded.push('d'),
            'ı' => folded.push('i'),
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            other => folded.push(other),
        }
    }
    folded
}

/// The names most similar to `text`, the most similar first.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    nearest_by(likeness, text, names)
}

/// The dotted key most similar to `key`, compared as a whole and by its last part alone, if any is similar enough.
pub fn nearest_key<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |key: &'_ str| key.rfind('.').map_or(0, |dot| dot + 1);
    let key_likeness = |a: &str, b: &str| {
        let whole = likeness(a, b);
        // A misplaced key is as likely as a misspelt one, and likelier still if the rest is similar too.
        whole.max(0.9 * likeness(&a[last(a)..], &b[last(b)..]) + 0.1 * whole)
    };
    nearest_by(key_likeness, key, known).into_iter().next()
}

fn nearest_by<'a>(
    likeness: impl Fn(&str, &str) -> f64,
    text: &str,
    names: impl Iterator<Item = &'a str>,
) -> Vec<&'a str> {
    let folded = fold(text);
    let mut alike: Vec<(f64, &str)> = names
        .map(|name| (likeness(&folded, &fold(name)), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    alike.dedup_by_key(|(_, name)| *name);
    alike.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

/// The similarity of two folded names, from 0 to 1. Cheap for names of very different lengths, which most are.
pub fn likeness(a: &str, b: &str) -> f64 {
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    if long == 0 {
        return 1.0;
    }
    // A name that contains the typed text is similar, however long it is. A name contained in it is similar if it
    // makes up most of it.
    if short >= 4 && (b.contains(a) || (2 * short > long && a.contains(b))) {
        return 0.8 + 0.2 * short as f64 / long as f64;
    }
    if long > COMPARED || (short as f64) < ALIKE * long as f64 {
        return 0.0;
    }
    strsim::normalized_damerau_levenshtein(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_case_do_not_matter() {
        for (text, folded) in [
            ("Piotr Ożarowski", "piotr ozarowski"),
            ("Łódź", "lodz"),
            ("STRASSE", "strasse"),
            ("Straße", "strasse"),
            ("ÅNGSTRÖM", "angstrom"),
            ("日本", "日本"),
            ("İstanbul", "istanbul"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn what_is_typed_finds_the_name_that_holds_it() {
        let names = ["Piotr Ożarowski <piotr@debian.org>", "Peter Ustinov", "Ozark"];
        assert_eq!(nearest("Piotr Ozarowski", names.into_iter()), [names[0]]);
        assert!(nearest("Zanzibar", names.into_iter()).is_empty());
    }

    #[test]
    fn a_key_is_found_as_a_whole_or_by_its_last_part() {
        let known = ["embed.batch", "embed.epochs", "rules.threshold", "walk.batch", "walk.lambda"];
        let near = |key: &str| nearest_key(key, known.into_iter());
        assert_eq!(near("rules.treshold"), Some("rules.threshold"));
        assert_eq!(near("lambda"), Some("walk.lambda"));
        assert_eq!(near("wolk.batch"), Some("walk.batch"));
        assert_eq!(near("embd.batch"), Some("embed.batch"));
        assert_eq!(near("walk.epoch"), Some("embed.epochs"));
        assert_eq!(near("x.qqq"), None);
    }
}
