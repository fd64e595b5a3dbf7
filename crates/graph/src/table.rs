//! Writes rows of cells as TSV, CSV or Parquet, as a stream.
//!
//! Memory is bounded: no more than a row group of a Parquet file is held. A file is written aside and renamed.

use super::format::{FileKind, Format, Out};
use super::write::write_packed;
use super::{GraphError, Names};
use std::fmt;
use std::io;
use std::path::Path;

/// The endings of the formats that tables can be written in.
const ENDINGS: &str = ".tsv, .txt, .csv, .parquet, .jsonl, each also with .gz or .zst";

/// What the cells of a column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Text; an absent one is empty.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Count,
    /// True or false.
    Truth,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableColumn {
    /// Its name.
    pub name: &'static str,
    /// What its cells hold.
    pub kind: CellKind,
    /// Whether no cell is empty. Text is never absent.
    pub required: bool,
}

impl TableColumn {
    /// A column whose cells may be empty.
    pub const fn new(name: &'static str, kind: CellKind) -> Self {
        Self { name, kind, required: matches!(kind, CellKind::Text) }
    }

    /// A column without empty cells.
    pub const fn required(name: &'static str, kind: CellKind) -> Self {
        Self { name, kind, required: true }
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// True or false.
    Truth(bool),
}

impl Cell {
    /// `text` as a cell.
    pub fn text(text: impl Into<String>) -> Self {
        Cell::Text(text.into())
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Cell::Empty, Cell::Number)
    }
}

impl From<Option<bool>> for Cell {
    fn from(truth: Option<bool>) -> Self {
        truth.map_or(Cell::Empty, Cell::Truth)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Empty => Ok(()),
            Cell::Text(text) => f.write_str(text),
            Cell::Number(number) => number.fmt(f),
            Cell::Count(count) => count.fmt(f),
            Cell::Truth(truth) => truth.fmt(f),
        }
    }
}

/// A stream of rows.
pub type TableRows<'a> = &'a mut dyn Iterator<Item = io::Result<Vec<Cell>>>;

/// Checks, before the work starts, that a table about these names can be written to `path`.
///
/// # Errors
/// If the ending is unknown, or names cannot be written to such a file.
pub fn check_table(path: &Path, names: &Names) -> Result<(), GraphError> {
    let kind = kind_of(path)?;
    check_names(path, kind, names)
}

/// Checks that a file of this kind can hold the names.
pub(super) fn check_names(path: &Path, kind: FileKind, names: &Names) -> Result<(), GraphError> {
    let breaks = |name: &&str| name.contains(['\t', '\n', '\r']);
    let mut all = names.entities.iter().chain(names.relations.iter());
    match all.find(breaks).filter(|_| kind.format == Format::Tabs) {
        Some(name) => {
            let expected = "names without tabs or line breaks (or the extension .csv)";
            Err(GraphError::file(path, expected, format!("{name:?}")))
        }
        None => Ok(()),
    }
}

fn kind_of(path: &Path) -> Result<FileKind, GraphError> {
    FileKind::expect_built(path)?;
    let fits = |kind: &FileKind| !matches!(kind.format, Format::Rdf(_) | Format::Sif);
    FileKind::of(path).filter(fits).ok_or_else(|| {
        let found = path.extension().map_or("no extension".into(), |ending| ending.to_string_lossy());
        GraphError::file(path, format!("one of the extensions {ENDINGS}"), found)
    })
}

/// Writes `rows` to `path` in their order, in the format its ending names. Returns how many there were.
///
/// # Errors
/// If the file cannot be written, or the iterator fails.
pub fn write_table(path: &Path, columns: &[TableColumn], rows: TableRows<'_>) -> Result<u64, GraphError> {
    let kind = kind_of(path)?;
    let mut count = 0;
    let mut counted = rows.inspect(|row| count += u64::from(row.is_ok()));
    let written = write_packed(path, |out| table(out, kind.format, columns, &mut counted));
    written.map_err(GraphError::writing(path))?;
    Ok(count)
}

/// The header of a tab-separated table, without a line ending.
pub fn header_line(columns: &[TableColumn]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    names.join("\t")
}

/// A line of a tab-separated table, without a line ending. Tabs and line breaks become spaces.
pub fn table_line(row: &[Cell]) -> String {
    let cells: Vec<String> =
        row.iter().map(|cell| cell.to_string().replace(['\t', '\n', '\r'], " ")).collect();
    cells.join("\t")
}

/// Writes a table in a format other than RDF.
pub(super) fn table(
    out: Out<'_>,
    format: Format,
    columns: &[TableColumn],
    rows: TableRows<'_>,
) -> io::Result<()> {
    match format {
        Format::Commas => commas(out, columns, rows),
        #[cfg(feature = "parquet")]
        Format::Parquet => super::row_groups::write(out, columns, rows),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(io::ErrorKind::Unsupported.into()),
        Format::Tabs | Format::Sif | Format::Rdf(_) => tabs(out, columns, rows),
    }
}

fn tabs(out: Out<'_>, columns: &[TableColumn], rows: TableRows<'_>) -> io::Result<()> {
    writeln!(out, "{}", header_line(columns))?;
    for row in rows {
        writeln!(out, "{}", table_line(&row?))?;
    }
    Ok(())
}

fn commas(out: Out<'_>, columns: &[TableColumn], rows: TableRows<'_>) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(|column| column.name))?;
    for row in rows {
        writer.write_record(row?.iter().map(Cell::to_string))?;
    }
    writer.flush()
}
