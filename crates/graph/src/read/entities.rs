//! How much the entities of XML expand to: `<!ENTITY a "&b;&b;&b;">` can turn a few lines into gigabytes.
//!
//! The bytes are checked before the parser sees them. Lengths are summed as the parser would expand the text. If the
//! text is not proper XML, the sum errs on the high side.

use memchr::{memchr, memchr2};
use std::collections::HashMap;

/// The expansion allowed in any file, in bytes.
const ALLOWED: u64 = 8 << 20;
/// In longer files, the expansion allowed as a multiple of the bytes read.
const FACTOR: u64 = 20;
/// The beginning of a declaration, after `<`.
const DECLARATION: &[u8] = b"!ENTITY";
/// A longer name after `&` is not a reference.
const LONGEST_NAME: usize = 1024;

/// The parser state after the last byte.
#[derive(Default)]
enum State {
    #[default]
    Text,
    /// After `<`, while it may still begin a declaration.
    Opened,
    /// In a declaration, up to the next `<`.
    Declared,
    /// After `&`, in the name of an entity.
    Referred,
}

/// The entities declared so far, and how much references to them have expanded to.
#[derive(Default)]
pub(super) struct Entities {
    state: State,
    /// The bytes read in the current state.
    word: Vec<u8>,
    /// The expanded length of each entity.
    lengths: HashMap<Vec<u8>, u64>,
    read: u64,
    expanded: u64,
}

impl Entities {
    /// How many bytes the references in the next `bytes` expand to; `Err` is the position where the limit is
    /// exceeded.
    pub(super) fn expansion(&mut self, bytes: &[u8]) -> Result<u64, usize> {
        let before = self.expanded;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += match self.state {
                State::Text => self.text(rest),
                State::Opened => self.opened(rest[0]),
                State::Declared => self.declared(rest),
                State::Referred => self.referred(rest[0]),
            };
            if self.expanded > ALLOWED.max(FACTOR * (self.read + at as u64)) {
                return Err(at);
            }
        }
        self.read += bytes.len() as u64;
        Ok(self.expanded - before)
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.word.clear();
    }

    fn text(&mut self, rest: &[u8]) -> usize {
        let Some(at) = memchr2(b'<', b'&', rest) else { return rest.len() };
        self.begin(if rest[at] == b'<' { State::Opened } else { State::Referred });
        at + 1
    }

    /// Returns how many bytes are consumed: none if the byte is ordinary text again.
    fn opened(&mut self, byte: u8) -> usize {
        if byte != DECLARATION[self.word.len()] {
            self.begin(State::Text);
            return 0;
        }
        self.word.push(byte);
        if self.word.len() == DECLARATION.len() {
            self.begin(State::Declared);
        }
        1
    }

    fn declared(&mut self, rest: &[u8]) -> usize {
        let end = memchr(b'<', rest);
        self.word.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
        let Some(end) = end else { return rest.len() };
        let word = std::mem::take(&mut self.word);
        let length = word.len() as u64 + self.references(&word);
        self.expanded += length;
        if let Some(name) = declared_name(&word) {
            self.lengths.insert(name.to_vec(), length);
        }
        self.begin(State::Opened);
        end + 1
    }

    fn referred(&mut self, byte: u8) -> usize {
        match byte {
            b';' => {
                self.expanded += self.lengths.get(&self.word[..]).copied().unwrap_or(0);
                self.begin(State::Text);
                1
            }
            b'<' | b'&' => {
                self.begin(State::Text);
                0
            }
            _ if self.word.len() == LONGEST_NAME => {
                self.begin(State::Text);
                0
            }
            _ => {
                self.word.push(byte);
                1
            }
        }
    }

    /// What the references in a declaration expand to.
    fn references(&self, word: &[u8]) -> u64 {
        let length = |after: &[u8]| {
            let name = &after[..memchr(b';', after)?];
            self.lengths.get(name).copied()
        };
        word.split(|&byte| byte == b'&').skip(1).filter_map(length).sum()
    }
}

/// The name in ` name "value">`, with the `%` of a parameter or without.
fn declared_name(declaration: &[u8]) -> Option<&[u8]> {
    let text = declaration.trim_ascii_start();
    let text = text.strip_prefix(b"%").unwrap_or(text).trim_ascii_start();
    text.split(u8::is_ascii_whitespace).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text expands to if it is fed in pieces of `size` bytes.
    fn expansion(text: &str, size: usize) -> Option<u64> {
        let mut entities = Entities::default();
        text.as_bytes().chunks(size).map(|piece| entities.expansion(piece).ok()).sum()
    }

    #[test]
    fn lengths_follow_the_references_however_the_text_is_cut() {
        // ` a "12345">` has 11 bytes, ` b "&a;&a;">]>` 14 and twice 11.
        let text = "<!DOCTYPE x [<!ENTITY a \"12345\"><!ENTITY b \"&a;&a;\">]><x>&b;&amp;&a;<y z='&a;'/></x>";
        for size in 1..text.len() {
            assert_eq!(expansion(text, size), Some(11 + 36 + 36 + 11 + 11), "{size}");
        }
    }

    #[test]
    fn entities_within_entities_are_stopped_early() {
        let mut text = "<!DOCTYPE x [<!ENTITY a0 \"lol\">".to_owned();
        for i in 1..30 {
            text += &format!("<!ENTITY a{i} \"{}\">", format!("&a{};", i - 1).repeat(10));
        }
        assert_eq!(expansion(&text, 64), None);
        // A single long entity that is used again and again.
        let long = format!("<!ENTITY a \"{}\"><x>", "x".repeat(1 << 20));
        assert_eq!(expansion(&(long.clone() + &"&a;".repeat(100)), 4096), None);
        assert!(expansion(&(long + "&a;&a;"), 4096).is_some());
    }

    #[test]
    fn short_entities_may_be_used_for_ever() {
        let text = "<!ENTITY owl \"http://www.w3.org/2002/07/owl#\"><x>".to_owned();
        assert!(expansion(&(text + &"<a b='&owl;'/>".repeat(400_000)), 8192).is_some());
    }
}
