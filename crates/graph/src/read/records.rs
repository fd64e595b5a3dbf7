//! Splits comma-separated text into records: fields may be quoted, a quote within quotes is doubled, `\n`, `\r\n` and
//! `\r` end a record, and blank lines are skipped.
//!
//! Malformed text is an error, never a guess: text after a closing quote, a quote left open, a record of more than
//! [`LONGEST`] bytes.

use super::bounded::{LONGEST, LONGEST_IN_WORDS};
use memchr::{memchr, memchr_iter, memchr3};
use std::io::{self, BufRead, BufReader, Read};

/// Why there is no next record: the line, what was expected and what was found.
pub(super) type Bad = (u64, String, String);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a record.
    Between,
    /// Before a field.
    Begins,
    Plain,
    Quoted,
    /// After a quote inside a quoted field: either the end of the field or the first half of an escaped quote.
    QuoteSeen,
    /// The record has ended.
    Ended,
}

/// Records of `source`, one at a time.
pub(super) struct Records<R> {
    source: BufReader<R>,
    cutter: Cutter,
}

impl<R: Read> Records<R> {
    /// The records of `source`, without a byte order mark.
    pub(super) fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(1 << 16, source), cutter: Cutter::default() }
    }

    /// Advances to the next record; `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, Bad> {
        self.cutter.begin();
        loop {
            let bytes = match self.source.fill_buf() {
                Ok([]) => return self.cutter.end(),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let found = format!("an error: {error}");
                    return Err((self.cutter.line, "more of the file".to_owned(), found));
                }
            };
            let used = self.cutter.feed(bytes)?;
            self.source.consume(used);
            if self.cutter.state == State::Ended {
                return Ok(true);
            }
        }
    }

    /// The line on which the record begins.
    pub(super) fn first_line(&self) -> u64 {
        self.cutter.first_line
    }

    /// How many fields the record has.
    pub(super) fn len(&self) -> usize {
        self.cutter.ends.len()
    }

    /// A field of the record.
    pub(super) fn field(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.cutter.ends[place - 1] };
        &self.cutter.text[start as usize..self.cutter.ends[place] as usize]
    }
}

/// The state of the record being read.
struct Cutter {
    state: State,
    /// The fields, one after the other, and where each ends.
    text: Vec<u8>,
    ends: Vec<u32>,
    line: u64,
    first_line: u64,
    /// Whether the last record ended in `\r`, which a `\n` may complete.
    returned: bool,
    /// How many bytes of a byte order mark have been matched.
    mark: usize,
}

const MARK: &[u8] = b"\xef\xbb\xbf";

impl Default for Cutter {
    fn default() -> Self {
        let state = State::Between;
        Self { state, text: Vec::new(), ends: Vec::new(), line: 1, first_line: 1, returned: false, mark: 0 }
    }
}

impl Cutter {
    fn begin(&mut self) {
        self.state = State::Between;
        self.text.clear();
        self.ends.clear();
        self.first_line = self.line;
    }

    /// Consumes those of `bytes` that belong to the record. Returns how many.
    fn feed(&mut self, bytes: &[u8]) -> Result<usize, Bad> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Ended {
            let rest = &bytes[at..];
            at += match self.state {
                State::Between => self.between(rest[0]),
                State::Begins if rest[0] == b'"' => {
                    self.state = State::Quoted;
                    1
                }
                State::Begins | State::Plain => {
                    self.state = State::Plain;
                    let end = memchr3(b',', b'\n', b'\r', rest);
                    self.text.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
                    end.map_or(rest.len(), |end| end + self.separator(rest[end]))
                }
                State::Quoted => self.quoted(rest),
                State::QuoteSeen => self.quote_seen(rest[0])?,
                State::Ended => 0,
            };
            if self.text.len() + self.ends.len() > LONGEST {
                let expected = format!("a record of at most {LONGEST_IN_WORDS} (a quote left open?)");
                return Err((self.first_line, expected, "more".to_owned()));
            }
        }
        Ok(at)
    }

    fn between(&mut self, byte: u8) -> usize {
        // A byte order mark is only recognised at the very beginning of a file.
        if self.mark < MARK.len() && byte == MARK[self.mark] {
            self.mark += 1;
            return 1;
        }
        let begun = if self.mark < MARK.len() { self.mark } else { 0 };
        self.mark = MARK.len();
        match byte {
            // The beginning of a mark that is not completed is ordinary text.
            _ if begun > 0 => {
                self.text.extend_from_slice(&MARK[..begun]);
                self.state = State::Plain;
                0
            }
            b'\n' if self.returned => {
                self.returned = false;
                1
            }
            b'\n' | b'\r' => {
                self.end_line(byte);
                self.first_line = self.line;
                1
            }
            _ => {
                self.state = State::Begins;
                0
            }
        }
    }

    fn end_line(&mut self, byte: u8) {
        self.line += 1;
        self.returned = byte == b'\r';
    }

    /// A field ends with a comma or the end of a line.
    fn separator(&mut self, byte: u8) -> usize {
        self.ends.push(self.text.len() as u32);
        if byte == b',' {
            self.state = State::Begins;
        } else {
            self.end_line(byte);
            self.state = State::Ended;
        }
        1
    }

    fn quoted(&mut self, rest: &[u8]) -> usize {
        let end = memchr(b'"', rest);
        let text = &rest[..end.unwrap_or(rest.len())];
        self.text.extend_from_slice(text);
        self.line += memchr_iter(b'\n', text).count() as u64;
        let Some(end) = end else { return rest.len() };
        self.state = State::QuoteSeen;
        end + 1
    }

    fn quote_seen(&mut self, byte: u8) -> Result<usize, Bad> {
        match byte {
            b',' | b'\n' | b'\r' => Ok(self.separator(byte)),
            b'"' => {
                self.text.push(byte);
                self.state = State::Quoted;
                Ok(1)
            }
            _ => {
                let expected = "a comma or the end of the line after a closing quote (a quote within quotes is written twice)";
                let found =
                    if byte.is_ascii_graphic() { (byte as char).to_string() } else { "text".to_owned() };
                Err((self.line, expected.to_owned(), found))
            }
        }
    }

    /// At the end of the file: whether there is one more record.
    fn end(&mut self) -> Result<bool, Bad> {
        match self.state {
            State::Quoted => {
                let expected = "a quote that closes the last field".to_owned();
                Err((self.first_line, expected, "the end of the file".to_owned()))
            }
            State::Between if (1..MARK.len()).contains(&self.mark) => {
                self.text.extend_from_slice(&MARK[..self.mark]);
                self.mark = MARK.len();
                self.ends.push(self.text.len() as u32);
                Ok(true)
            }
            State::Between => Ok(false),
            _ => {
                self.ends.push(self.text.len() as u32);
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads at most `size` bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    /// The line on which a record begins, and its fields.
    type Numbered = (u64, Vec<Vec<u8>>);

    fn records(text: &[u8], size: usize) -> Result<Vec<Numbered>, Bad> {
        let mut records = Records::new(Slow(text, size));
        let mut all = Vec::new();
        while records.advance()? {
            all.push((records.first_line(), (0..records.len()).map(|i| records.field(i).to_vec()).collect()));
        }
        Ok(all)
    }

    proptest! {
        /// Without text after a closing quote and without an open quote, it reads the same records as the crate
        /// `csv`.
        #[test]
        fn reads_as_others_do(text in "[a,\"\r\n]{0,30}", size in 1usize..8) {
            let Ok(ours) = records(text.as_bytes(), size) else { return Ok(()) };
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
            let theirs: Vec<Vec<Vec<u8>>> = reader
                .byte_records()
                .map(|record| record.expect("bytes").iter().map(<[u8]>::to_vec).collect())
                .collect();
            prop_assert_eq!(ours.into_iter().map(|(_, fields)| fields).collect::<Vec<_>>(), theirs);
        }
    }

    #[test]
    fn lines_are_counted_over_every_end_and_within_quotes() {
        let text = b"\xef\xbb\xbf\"a\",b\r\n\r\nc\rd\n\"e\nf\"\ng";
        for size in 1..text.len() {
            let lines: Vec<u64> = records(text, size).unwrap().into_iter().map(|(line, _)| line).collect();
            assert_eq!(lines, [1, 3, 4, 5, 7], "{size}");
            assert_eq!(records(text, size).unwrap()[0].1, [b"a", b"b"]);
        }
    }

    #[test]
    fn text_behind_a_closing_quote_is_refused() {
        let (line, expected, found) = records(b"a,b\nc,\"r\"x\n", 3).unwrap_err();
        assert_eq!((line, found.as_str()), (2, "x"));
        assert!(expected.starts_with("a comma or the end of the line"), "{expected}");
        assert_eq!(records(b"a,\"b\n", 3).unwrap_err().2, "the end of the file");
        assert_eq!(records(b"\xef\xbb", 1).unwrap(), [(1, vec![b"\xef\xbb".to_vec()])]);
        assert_eq!(records(b"\xef\xbb\"a\"", 1).unwrap(), [(1, vec![b"\xef\xbb\"a\"".to_vec()])]);
    }

    #[test]
    fn a_record_has_an_end() {
        let open = [b"a,\"".to_vec(), vec![b'x'; LONGEST + 1]].concat();
        let (line, expected, found) = records(&open, 1 << 16).unwrap_err();
        assert_eq!((line, found.as_str()), (1, "more"));
        assert!(expected.contains("16 MB"), "{expected}");
    }
}
