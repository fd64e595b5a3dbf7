//! Reads `head,relation,tail` records, quoted where needed, with a header or without. A header may put them in another
//! order.

use super::{Builder, columns_by_role};
use crate::graph::{GraphError, Triple};
use ::csv::{ByteRecord, Position, ReaderBuilder};
use std::io::Read;
use std::path::Path;

/// Put after the end of a file: a record of its own, unless a quote is still open there.
const END: &[u8] = b"\n\0";

/// Reads all of `source` into `builder`. `header` says whether the first record is one; `None` looks at it.
pub(super) fn read(
    path: &Path,
    source: impl Read,
    header: Option<bool>,
    builder: &mut Builder,
) -> Result<Vec<Triple>, GraphError> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(source.chain(END));
    let (mut record, mut facts) = (ByteRecord::new(), Vec::new());
    let (mut columns, mut width, mut begins) = ([0, 1, 2], 3, true);
    loop {
        let line_before = reader.position().line();
        let bad = |line: u64, expected: &str, found: &str| GraphError::line(path, line, expected, found);
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return Ok(facts),
            Err(error) => return Err(bad(line_before, "more of the file", &format!("trouble: {error}"))),
        }
        let line = record.position().map_or(line_before, Position::line);
        let last = record.iter().next_back().unwrap_or_default();
        if last.ends_with(END) {
            return Err(bad(line, "a quote that closes the last field", "the end of the file"));
        }
        let of_width = || format!("{width} comma-separated fields");
        if record.len() == 1 && last == &END[1..] {
            // Unless it is a record of the file itself.
            let more = reader.read_byte_record(&mut record).unwrap_or(false);
            return if more { Err(bad(line, &of_width(), "1")) } else { Ok(facts) };
        }
        let first = std::mem::take(&mut begins);
        if first && let Some(named) = header_of(&record, header) {
            (columns, width) = named;
            continue;
        }
        if record.len() != width {
            return Err(bad(line, &of_width(), &record.len().to_string()));
        }
        let mut fields = [""; 3];
        for (field, column) in fields.iter_mut().zip(columns) {
            let bytes = &record[column];
            *field = std::str::from_utf8(bytes).map_err(|error| {
                bad(line, "UTF-8 text", &format!("the byte 0x{:02x}", bytes[error.valid_up_to()]))
            })?;
        }
        if first {
            fields[0] = fields[0].trim_start_matches('\u{feff}');
        }
        if let Some(which) = super::first_empty(&fields) {
            return Err(bad(line, "3 fields with text in them", &format!("an empty {which}")));
        }
        facts.push(builder.fact(fields));
    }
}

/// Where a first record says that head, relation and tail stand, and among how many columns, if it is a header.
fn header_of(record: &ByteRecord, header: Option<bool>) -> Option<([usize; 3], usize)> {
    let names: Option<Vec<&str>> = record.iter().map(|name| std::str::from_utf8(name).ok()).collect();
    let without_mark =
        |names: Vec<&str>| columns_by_role(names.iter().map(|name| name.trim_start_matches('\u{feff}')));
    match names.and_then(without_mark) {
        Some(columns) if header != Some(false) => Some((columns, record.len())),
        None if header == Some(true) => Some(([0, 1, 2], 3)),
        _ => None,
    }
}
