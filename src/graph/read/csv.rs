//! Reads `head,relation,tail` records, quoted where needed, with a header or without. A header may put them in another
//! order.

use super::{Builder, columns_by_role};
use crate::graph::{GraphError, Triple};
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
    let mut reader =
        ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(source.chain(END));
    let mut record = ::csv::ByteRecord::new();
    let mut facts = Vec::new();
    let (mut columns, mut first) = ([0, 1, 2], true);
    loop {
        let line_before = reader.position().line();
        let bad = |line: u64, expected: &str, found: String| GraphError::line(path, line, expected, found);
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return Ok(facts),
            Err(error) => return Err(bad(line_before, "more of the file", format!("trouble: {error}"))),
        }
        let line = record.position().map_or(line_before, ::csv::Position::line);
        match record.iter().next_back() {
            Some(last) if record.len() == 1 && last == &END[1..] => {
                return match reader.read_byte_record(&mut record) {
                    Ok(true) => Err(bad(line, "3 comma-separated fields", "1".to_owned())),
                    _ => Ok(facts),
                };
            }
            Some(last) if last.ends_with(END) => {
                return Err(bad(
                    line,
                    "a quote that closes the last field",
                    "the end of the file".to_owned(),
                ));
            }
            _ => {}
        }
        if record.len() != 3 {
            return Err(bad(line, "3 comma-separated fields", record.len().to_string()));
        }
        let mut fields = [""; 3];
        for (field, bytes) in fields.iter_mut().zip(record.iter()) {
            *field = std::str::from_utf8(bytes).map_err(|error| {
                bad(line, "UTF-8 text", format!("the byte 0x{:02x}", bytes[error.valid_up_to()]))
            })?;
        }
        if std::mem::take(&mut first) {
            fields[0] = fields[0].strip_prefix('\u{feff}').unwrap_or(fields[0]);
            let named = columns_by_role(fields);
            if header.unwrap_or(named.is_some()) {
                columns = named.unwrap_or(columns);
                continue;
            }
        }
        let fields = columns.map(|column| fields[column]);
        if let Some(which) = super::first_empty(&fields) {
            return Err(bad(line, "3 fields with text in them", format!("an empty {which}")));
        }
        facts.push(builder.fact(fields));
    }
}
