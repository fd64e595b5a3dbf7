//! Lines of fields as records: separated by tabs, or by any white space as in lists of edges.

use super::bounded::{LONGEST, LONGEST_IN_WORDS};
use super::records::Bad;
use super::table::Rows;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;

/// What separates the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    Tab,
    /// Spaces and tabs; lines that begin with `#` or `%` are comments.
    White,
}

/// The lines of a text, without blank ones.
pub(super) struct Lines<R> {
    source: BufReader<R>,
    separator: Separator,
    bytes: Vec<u8>,
    fields: Vec<Range<usize>>,
    line: u64,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(source: R, separator: Separator) -> Self {
        let source = BufReader::with_capacity(1 << 16, source);
        Self { source, separator, bytes: Vec::new(), fields: Vec::new(), line: 0 }
    }

    /// Reads the next line into `bytes`, without its end; `false` at the end of the file.
    fn next_line(&mut self) -> Result<bool, Bad> {
        self.bytes.clear();
        self.line += 1;
        let read = (&mut self.source).take(LONGEST as u64 + 1).read_until(b'\n', &mut self.bytes);
        let length =
            read.map_err(|error| (self.line, "more of the file".to_owned(), format!("an error: {error}")))?;
        if length > LONGEST {
            let found = format!("a line of more than {LONGEST_IN_WORDS}");
            return Err((self.line, format!("{} in a line", self.words()), found));
        }
        while self.bytes.last().is_some_and(|byte| b"\r\n".contains(byte)) {
            self.bytes.pop();
        }
        if self.line == 1 && self.bytes.starts_with(b"\xef\xbb\xbf") {
            self.bytes.drain(..3);
        }
        Ok(length > 0)
    }

    fn split(&mut self) {
        self.fields.clear();
        let is_end = |byte: u8| byte == b'\t' || (self.separator == Separator::White && byte == b' ');
        let mut start = 0;
        for at in 0..=self.bytes.len() {
            if at == self.bytes.len() || is_end(self.bytes[at]) {
                if self.separator == Separator::Tab || at > start {
                    self.fields.push(start..at);
                }
                start = at + 1;
            }
        }
    }
}

impl<R: Read> Rows for Lines<R> {
    fn advance(&mut self) -> Result<bool, Bad> {
        while self.next_line()? {
            let is_comment = self.separator == Separator::White && self.bytes.starts_with(b"#");
            let is_comment =
                is_comment || (self.separator == Separator::White && self.bytes.starts_with(b"%"));
            self.split();
            if !self.bytes.is_empty() && !is_comment && !self.fields.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn line(&self) -> u64 {
        self.line
    }

    fn len(&self) -> usize {
        self.fields.len()
    }

    fn field(&self, place: usize) -> &[u8] {
        &self.bytes[self.fields[place].clone()]
    }

    fn may_be_letters(&self) -> bool {
        false
    }

    fn may_be_edges(&self) -> bool {
        self.separator == Separator::White
    }

    fn words(&self) -> &'static str {
        match self.separator {
            Separator::Tab => "tab-separated fields",
            Separator::White => "fields separated by white space",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str, separator: Separator) -> Vec<(u64, Vec<String>)> {
        let mut lines = Lines::new(text.as_bytes(), separator);
        let mut all = Vec::new();
        while lines.advance().unwrap() {
            let field = |place| String::from_utf8(lines.field(place).to_vec()).unwrap();
            all.push((lines.line(), (0..lines.len()).map(field).collect()));
        }
        all
    }

    #[test]
    fn lines_are_cut_at_what_separates_them() {
        let of =
            |line, fields: &[&str]| (line, fields.iter().map(|&field| field.to_owned()).collect::<Vec<_>>());
        let tabs = records("\u{feff}a b\t\tc\r\n\n# d\te\n", Separator::Tab);
        assert_eq!(tabs, [of(1, &["a b", "", "c"]), of(3, &["# d", "e"])]);
        let white = records("# from to\n1  2\n\n % 3\n%x\n4\t5 ", Separator::White);
        assert_eq!(white, [of(2, &["1", "2"]), of(4, &["%", "3"]), of(6, &["4", "5"])]);
    }
}
