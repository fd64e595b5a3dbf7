//! Folders of tables of nodes and edges, as KGX and Neo4j export them, and the small tables beside splits: types and
//! schemas.

use super::columns::layout_of;
use super::lines::{Lines, Separator};
use super::records::Records;
use super::table::{self, NodeLayout, Rows, stem};
use super::{Builder, ReadOptions, list_names};
use crate::format::{FileKind, Format};
use crate::memory::divided;
use crate::{Dataset, Direction, GraphError, split};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The tables of a folder.
pub(super) struct Tables {
    edges: Vec<Table>,
    nodes: Vec<Table>,
    others: Vec<PathBuf>,
}

/// A table, with the file that has its header if that is another.
struct Table {
    path: PathBuf,
    header: Option<PathBuf>,
}

impl Table {
    /// The tables among `files`: `roles.csv` and `roles-part2.csv` belong to `roles-header.csv`, as in Neo4j's imports.
    fn all(files: &[PathBuf]) -> Vec<Self> {
        let own = |path: &Path| {
            let stem = stem(path);
            let is_header = |ending: &str| stem.strip_suffix(ending).map(str::to_owned);
            ["-header", "_header"].into_iter().find_map(is_header).filter(|name| !name.is_empty())
        };
        let headers: Vec<(String, &PathBuf)> =
            files.iter().filter_map(|path| own(path).map(|name| (name, path))).collect();
        let header_of = |path: &Path| {
            let stem = stem(path);
            let of = |name: &str| {
                stem.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
            };
            let found = headers.iter().filter(|(name, _)| of(name)).max_by_key(|(name, _)| name.len());
            found.map(|(_, path)| (*path).clone())
        };
        // A header without a table is a table: of another kind.
        let is_used = |path: &PathBuf| {
            let belongs = |other: &PathBuf| {
                other != path && own(other).is_none() && header_of(other).as_ref() == Some(path)
            };
            own(path).is_some() && files.iter().any(belongs)
        };
        files
            .iter()
            .filter(|path| path.is_file() && !is_used(path))
            .map(|path| Self { path: path.clone(), header: header_of(path).filter(|header| header != path) })
            .collect()
    }

    /// Its records, the header first; `None` if it is no table of text.
    fn rows(&self) -> Result<Option<Box<dyn Rows>>, GraphError> {
        let Some(own) = rows(&self.path)? else { return Ok(None) };
        let Some(header) = &self.header else { return Ok(Some(own)) };
        let Some(mut first) = rows(header)? else { return Ok(Some(own)) };
        let is_begun = first.advance().unwrap_or(false);
        let header = if is_begun {
            (0..first.len()).map(|place| first.field(place).to_vec()).collect()
        } else {
            Vec::new()
        };
        Ok(Some(Box::new(table::WithHeader { header, at_header: None, rows: own })))
    }
}

/// The records of a table of text.
fn rows(path: &Path) -> Result<Option<Box<dyn Rows>>, GraphError> {
    let Some(FileKind { format, compression }) = FileKind::of(path) else { return Ok(None) };
    Ok(match format {
        Format::Tabs => Some(Box::new(Lines::new(compression.open(path)?, Separator::Tab))),
        Format::Commas => Some(Box::new(Records::new(compression.open(path)?))),
        Format::Sif | Format::Rdf(_) | Format::Parquet => None,
    })
}

/// The same, or an error for another format.
pub(super) fn expect_rows(path: &Path) -> Result<Box<dyn Rows>, GraphError> {
    rows(path)?.ok_or_else(|| {
        let found = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        GraphError::file(path, "a TSV or CSV file", found)
    })
}

/// The tables among `files`, if at least one has edges.
pub(super) fn tables(files: &[PathBuf], options: &ReadOptions) -> Result<Option<Tables>, GraphError> {
    let mut tables = Tables { edges: Vec::new(), nodes: Vec::new(), others: Vec::new() };
    for table in Table::all(files) {
        let path = &table.path;
        let Some(mut rows) = table.rows()? else {
            tables.others.push(path.clone());
            continue;
        };
        // Broken files are reported when they are read, if they are.
        let is_begun = rows.advance().unwrap_or(false);
        let header: Vec<&str> = match is_begun {
            true => (0..rows.len()).filter_map(|place| std::str::from_utf8(rows.field(place)).ok()).collect(),
            false => Vec::new(),
        };
        let has_header = matches!(
            layout_of(&header, &stem(path), options.header, rows.may_be_letters(), options.columns.as_ref()),
            Ok((_, true))
        );
        if NodeLayout::of_header(&header).is_some() && !has_header {
            tables.nodes.push(table);
        } else if has_header {
            tables.edges.push(table);
        } else {
            tables.others.push(path.clone());
        }
    }
    Ok((!tables.edges.is_empty()).then_some(tables))
}

impl Tables {
    /// Whether tables of nodes of different ID spaces have ids in common.
    fn share_ids(&self) -> Result<bool, GraphError> {
        let mut spaces = HashMap::new();
        for table in &self.nodes {
            if let Some(mut rows) = table.rows()? {
                table::collect_ids(&mut *rows, &mut spaces);
            }
        }
        let total: usize = spaces.values().map(HashSet::len).sum();
        Ok(spaces.len() > 1 && spaces.into_values().flatten().collect::<HashSet<_>>().len() < total)
    }

    /// All facts of the tables of edges, divided, with what the tables of nodes say.
    pub(super) fn read(self, folder: &Path, options: &ReadOptions) -> Result<Dataset, GraphError> {
        let mut builder = Builder::default();
        let mut all = Vec::new();
        builder.with_spaces = self.share_ids()?;
        for table in &self.edges {
            all.extend(match table.rows()? {
                Some(mut rows) if table.header.is_some() || builder.with_spaces => {
                    builder.read_rows(&table.path, &mut *rows, options)?
                }
                _ => builder.read(&table.path, options)?,
            });
        }
        if all.is_empty() {
            return Err(GraphError::file(folder, "at least one fact", "none"));
        }
        for table in &self.nodes {
            if let Some(mut rows) = table.rows()? {
                read_node_rows(&table.path, &mut *rows, &mut builder)?;
            }
        }
        if !self.others.is_empty() {
            builder.understood.push(format!(
                "Not read, because their columns are neither edges nor nodes: {}.",
                list_names(&self.others)
            ));
        }
        let (all, duplicates) = split::distinct(builder.names.entities.len(), all);
        let parts = super::parts_of(all, options, folder)?;
        let names = std::mem::take(&mut builder.names);
        builder.finish(divided(names, parts, duplicates))
    }
}

/// Reads a table of nodes.
pub(super) fn read_nodes(path: &Path, builder: &mut Builder) -> Result<(), GraphError> {
    read_node_rows(path, &mut *expect_rows(path)?, builder)
}

fn read_node_rows(path: &Path, rows: &mut dyn Rows, builder: &mut Builder) -> Result<(), GraphError> {
    let count = table::read_nodes(path, rows, builder)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    builder.understood.push(format!("{file}: {count} nodes."));
    Ok(())
}

/// Reads `entity<TAB>type` rows; an entity may have several types, in rows of their own or separated by `|`.
pub(super) fn read_types(path: &Path, builder: &mut Builder) -> Result<(), GraphError> {
    read_fields(path, "an entity and its type", 2, &["entity", "type"], |row| {
        row[1].split('|').for_each(|of| builder.about.of_type(row[0], of.trim()));
        Ok(())
    })
}

/// Reads `relation<TAB>domain<TAB>type`, `relation<TAB>range<TAB>type` and `type<TAB>subclass_of<TAB>type` rows.
pub(super) fn read_schema(path: &Path, builder: &mut Builder) -> Result<(), GraphError> {
    let expected = "a relation, `domain` or `range`, and a type (or a type, `subclass_of` and a type)";
    read_fields(path, expected, 3, &["subject", "predicate", "object"], |row| {
        match row[1] {
            "domain" => builder.about.declare(row[0], Direction::Forward, row[2]),
            "range" => builder.about.declare(row[0], Direction::Inverse, row[2]),
            "subclass_of" => builder.about.kind_of(row[0], row[2]),
            other => return Err(other.to_owned()),
        }
        Ok(())
    })
}

/// Passes on the rows of a small table, without a header that has these names.
fn read_fields(
    path: &Path,
    expected: &str,
    width: usize,
    header: &[&str],
    mut take: impl FnMut(&[&str]) -> Result<(), String>,
) -> Result<(), GraphError> {
    let mut rows = expect_rows(path)?;
    let bad = |line: u64, expected: &str, found: &str| GraphError::line(path, line, expected, found);
    while rows.advance().map_err(|(line, expected, found)| bad(line, &expected, &found))? {
        let text = |place| {
            std::str::from_utf8(rows.field(place)).map_err(|_| bad(rows.line(), "UTF-8 text", "other bytes"))
        };
        let row = (0..rows.len()).map(text).collect::<Result<Vec<&str>, GraphError>>()?;
        if row.len() != width || row.iter().any(|field| field.is_empty()) {
            return Err(bad(rows.line(), expected, &row.join(", ")));
        }
        if row != header {
            take(&row).map_err(|found| bad(rows.line(), expected, &found))?;
        }
    }
    Ok(())
}

impl Builder {
    /// Reads a table of facts from its records.
    fn read_rows(
        &mut self,
        path: &Path,
        rows: &mut dyn Rows,
        options: &ReadOptions,
    ) -> Result<Vec<crate::Triple>, GraphError> {
        self.files.push((path.to_owned(), options.clone()));
        self.conflicts = options.conflicts;
        let (facts, copies) = table::read(path, rows, options, self)?.into_parts();
        self.copies += copies;
        Ok(facts)
    }

    /// Reads a file of facts that are known to be false, for the split of this number.
    pub(super) fn read_negatives(
        &mut self,
        path: &Path,
        split: usize,
        options: &ReadOptions,
    ) -> Result<(), GraphError> {
        let facts = self.read_some(path, options)?;
        self.negatives.extend(facts.into_iter().map(|fact| (split, fact, path.to_owned(), 0)));
        Ok(())
    }
}

/// The line of the file at `path` that states the fact with these names, in Parquet the row; `None` if it has none, or a
/// format in which lines cannot be told.
pub(super) fn line_of(path: &Path, words: [&str; 3], options: &ReadOptions) -> Option<u64> {
    let kind = options.format.or_else(|| FileKind::of(path))?;
    match kind.format {
        Format::Tabs | Format::Commas => line_of_table(path, words, options),
        #[cfg(feature = "rdf")]
        Format::Rdf(format) => super::rdf::line_of(path, kind.compression, format, words),
        _ => row_of(path, words, options),
    }
}

fn line_of_table(path: &Path, words: [&str; 3], options: &ReadOptions) -> Option<u64> {
    let mut rows = rows(path).ok()??;
    let mut layout = None;
    while rows.advance().ok()? {
        let text = |place| std::str::from_utf8(rows.field(place)).ok();
        let row = (0..rows.len()).map(text).collect::<Option<Vec<&str>>>()?;
        if layout.is_none() {
            layout =
                layout_of(&row, &stem(path), options.header, rows.may_be_letters(), options.columns.as_ref())
                    .ok()
                    .map(|found| found.0);
        }
        if layout.as_ref().is_some_and(|layout| layout.words(&row) == Some(words)) {
            return Some(rows.line());
        }
    }
    None
}

/// The row of a file that has no other lines, where every row is a fact.
fn row_of(path: &Path, [head, relation, tail]: [&str; 3], options: &ReadOptions) -> Option<u64> {
    if FileKind::of(path)?.format != Format::Parquet {
        return None;
    }
    let mut builder = Builder::default();
    let facts = builder.read(path, options).ok()?;
    let wanted = crate::Triple::new(
        builder.names.entities.get(head)?,
        builder.names.relations.get(relation)?,
        builder.names.entities.get(tail)?,
    );
    // Where facts have been left out, places are no rows.
    let is_whole = builder.copies == 0 && builder.negatives.is_empty();
    facts.iter().position(|fact| *fact == wanted).filter(|_| is_whole).map(|at| at as u64 + 1)
}
