//! Reads `head,relation,tail` records, quoted where needed, with a header or without. A header may put them in another
//! order.

use super::facts::Facts;
use super::records::Records;
use super::{Builder, columns_by_role};
use crate::graph::GraphError;
use std::io::Read;
use std::path::Path;

/// Reads all of `source` into `builder`. `header` says whether the first record is one; `None` detects it.
pub(super) fn read(
    path: &Path,
    source: impl Read,
    header: Option<bool>,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    let mut records = Records::new(source);
    let mut facts = Facts::default();
    let (mut columns, mut width, mut begins) = ([0, 1, 2], 3, true);
    let bad = |line: u64, expected: &str, found: &str| GraphError::line(path, line, expected, found);
    while records.advance().map_err(|(line, expected, found)| bad(line, &expected, &found))? {
        let line = records.first_line();
        let first = std::mem::take(&mut begins);
        if first && let Some(named) = header_of(&records, header) {
            (columns, width) = named;
            continue;
        }
        if records.len() != width {
            let expected = format!("{width} comma-separated fields");
            return Err(bad(line, &expected, &records.len().to_string()));
        }
        let mut fields = [""; 3];
        for (field, column) in fields.iter_mut().zip(columns) {
            let bytes = records.field(column);
            *field = std::str::from_utf8(bytes).map_err(|error| {
                bad(line, "UTF-8 text", &format!("the byte 0x{:02x}", bytes[error.valid_up_to()]))
            })?;
        }
        if let Some(which) = super::first_empty(&fields) {
            return Err(bad(line, "3 fields with text in them", &format!("an empty {which}")));
        }
        builder.take_fact(fields, &mut facts);
    }
    Ok(facts)
}

/// The columns of head, relation and tail, and the number of columns, if the first record is a header.
fn header_of<R: Read>(record: &Records<R>, header: Option<bool>) -> Option<([usize; 3], usize)> {
    let names = (0..record.len()).map(|place| std::str::from_utf8(record.field(place)).ok());
    match names.collect::<Option<Vec<&str>>>().and_then(columns_by_role) {
        Some(columns) if header != Some(false) => Some((columns, record.len())),
        None if header == Some(true) => Some(([0, 1, 2], 3)),
        _ => None,
    }
}
