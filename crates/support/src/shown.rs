//! Names as people see them, in messages and tables. Names may contain anything and be of any length; files and JSON
//! keep them unchanged.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

/// One line of text with names in it. Characters that would move the cursor, change colours, break the line or
/// reverse the writing direction are escaped.
pub struct Shown<T>(pub T);

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(SpelledOut(f), "{}", self.0)
    }
}

struct SpelledOut<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl fmt::Write for SpelledOut<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_unprintable) {
            let (before, from) = rest.split_at(at);
            let letter = from.chars().next().unwrap_or_default();
            write!(self.0, "{before}{}", letter.escape_default())?;
            rest = &from[letter.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

fn is_unprintable(letter: char) -> bool {
    let turns = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// A name for a message; a long name loses its middle.
pub fn shortened(name: &str) -> Cow<'_, str> {
    shortened_to(name, 400)
}

/// `text`, without its middle if it has more than about `most` bytes.
pub fn shortened_to(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let boundary =
        |from: usize| (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    let (begin, end) = (boundary(most - most / 4), boundary(text.len() - most / 6));
    format!("{} […] {}", &text[..begin], &text[end..]).into()
}

/// A count with its thousands apart: `26,975`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_change_the_terminal_is_spelt_out() {
        let shown = |text: &str| Shown(text).to_string();
        assert_eq!(shown("Ada Lovelace, é, 北京, \\n"), "Ada Lovelace, é, 北京, \\n");
        assert_eq!(shown("a\u{1b}[31mred\nnext\ttab\r"), "a\\u{1b}[31mred\\nnext\\ttab\\r");
        assert_eq!(shown("\u{202e}drow\u{9b}1m\u{2028}"), "\\u{202e}drow\\u{9b}1m\\u{2028}");
    }

    #[test]
    fn a_long_name_loses_its_middle() {
        assert_eq!(shortened("Ada"), "Ada");
        let long = shortened_to("éééééééééééé", 12).into_owned();
        assert!(long.starts_with("ééééé […] é"), "{long}");
        assert!(shortened(&"é".repeat(100_000)).len() < 420);
    }
}
