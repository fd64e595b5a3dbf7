//! Reads SIF, Cytoscape's simple interaction format: `node relation node node …`, a fact for every node after the
//! relation. A file with a tab is separated by tabs, any other by spaces; a line of one node states nothing.

use super::Builder;
use super::facts::Facts;
use super::lines::{Lines, Separator};
use super::table::Rows;
use crate::GraphError;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Reads all of `source` into `builder`.
pub(super) fn read(path: &Path, source: impl Read, builder: &mut Builder) -> Result<Facts, GraphError> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let begun = source.fill_buf().map_err(GraphError::reading(path))?;
    let separator = if begun.contains(&b'\t') { Separator::Tab } else { Separator::White };
    let mut rows = Lines::new(source, separator);
    let mut facts = Facts::default();
    let mut alone = 0;
    let bad = |line: u64, expected: &str, found: &str| GraphError::line(path, line, expected, found);
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
        builder.said.push(format!("{}: {alone} nodes without an edge are left out.", path.display()));
    }
    Ok(facts)
}
