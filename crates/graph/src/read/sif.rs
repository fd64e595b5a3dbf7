//! Reads SIF, Cytoscape's simple interaction format: `node relation node node …`, a fact for every node after the
//! relation. A file with a tab is separated by tabs, any other by spaces; a line of one node states nothing.
//!
//! SIF has no header, but some are published with one (Hetionet's `source metaedge target`). A header that names the
//! columns in another order, or a choice of columns, makes the file a table.

use super::columns::{Layout, layout_of};
use super::facts::Facts;
use super::lines::{Lines, Separator};
use super::table::{self, Rows, stem};
use super::{Builder, ReadOptions};
use crate::GraphError;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Reads all of `source` into `builder`.
pub(super) fn read(
    path: &Path,
    source: impl Read,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let begun = source.fill_buf().map_err(GraphError::reading(path))?;
    let separator = if begun.contains(&b'\t') { Separator::Tab } else { Separator::White };
    let header = match first_line(begun, separator, path, options) {
        FirstLine::Table => return table::read(path, &mut Lines::new(source, separator), options, builder),
        FirstLine::Header => true,
        FirstLine::Fact => false,
    };
    let mut rows = Lines::new(source, separator);
    let bad = |line: u64, expected: &str, found: &str| GraphError::line(path, line, expected, found);
    if header {
        rows.advance().map_err(|(line, expected, found)| bad(line, &expected, &found))?;
        builder.headers += 1;
    }
    builder.first_is_a_fact = !header && options.header.is_none();
    let mut facts = Facts::default();
    let mut alone = 0;
    while rows.advance().map_err(|(line, expected, found)| bad(line, &expected, &found))? {
        let line = rows.line();
        let text = |place: usize| {
            std::str::from_utf8(rows.field(place)).map_err(|_| bad(line, "UTF-8 text", "other bytes"))
        };
        match rows.len() {
            1 => alone += 1,
            2 => return Err(bad(line, "a node, a relation and nodes", "2 fields")),
            fields => {
                let (head, relation) = (text(0)?, text(1)?);
                for place in 2..fields {
                    let fact = [head, relation, text(place)?];
                    if let Some(which) = super::first_empty(&fact) {
                        return Err(bad(line, "a node, a relation and nodes", &format!("an empty {which}")));
                    }
                    builder.take_fact(fact, &mut facts);
                }
            }
        }
    }
    if alone > 0 {
        builder.understood.push(format!("{}: {alone} nodes without an edge are left out.", path.display()));
    }
    Ok(facts)
}

/// What a file begins with.
enum FirstLine {
    Fact,
    /// A header over subject, relation and objects, in this order.
    Header,
    /// A header that says something else, or chosen columns: the file is a table.
    Table,
}

fn first_line(begun: &[u8], separator: Separator, path: &Path, options: &ReadOptions) -> FirstLine {
    if options.columns.is_some() {
        return FirstLine::Table;
    }
    let mut rows = Lines::new(begun, separator);
    let row = match rows.advance() {
        Ok(true) => (0..rows.len()).map(|place| std::str::from_utf8(rows.field(place))).collect(),
        _ => Ok(Vec::new()),
    };
    // What is no text, or no row at all, is reported where it is read.
    let row: Vec<&str> = row.unwrap_or_default();
    match layout_of(&row, &stem(path), options.header, false, None) {
        Ok((layout, true)) if Layout { names: Vec::new(), ..layout.clone() } != Layout::plain() => {
            FirstLine::Table
        }
        Ok((_, true)) => FirstLine::Header,
        _ if options.header == Some(true) => FirstLine::Header,
        _ => FirstLine::Fact,
    }
}
