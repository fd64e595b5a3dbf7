//! Reads rows of names as a stream: the lists of facts or pairs that a user asks about.
//!
//! TSV, CSV, JSON lines and Parquet, by the ending. Columns are recognised by their names or, without a header, by
//! their order. A stream has no ending; its beginning tells the format. A malformed row is a row with an error, not the end
//! of the file; memory does not grow with the file.

use super::{Compression, GraphError};
#[cfg(feature = "parquet")]
use ::parquet::file::reader::{FileReader, SerializedFileReader};
#[cfg(feature = "parquet")]
use ::parquet::record::Field;
#[cfg(feature = "parquet")]
use ::parquet::record::reader::RowIter;
use std::collections::VecDeque;
#[cfg(feature = "parquet")]
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line or record, as for files of facts.
const LONGEST: u64 = 16 << 20;
/// The longest text in which the end of a quoted field is looked for.
const LONGEST_QUOTE: usize = 1 << 20;
/// The endings of the formats that rows can be read from.
const ENDINGS: &str = ".tsv, .txt, .csv, .jsonl, each also with .gz or .zst, or .parquet";

/// A column of a list.
#[derive(Clone, Copy, Debug)]
pub struct RowColumn {
    /// What it may be called, the usual name first. Case and a final `_id` do not matter.
    pub names: &'static [&'static str],
    /// Whether every row must have it. Required columns come before the others.
    pub required: bool,
}

/// A row of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRow {
    /// Its place in the file, from 1: the line of a text file, the record of others.
    pub number: u64,
    /// Its fields in the order of the columns, or what is wrong with it.
    pub fields: Result<Vec<Option<String>>, String>,
}

/// The rows of a file or a stream.
pub struct NamedRows<'a> {
    path: PathBuf,
    columns: &'static [RowColumn],
    source: Source<'a>,
    /// Whether the sender may wait for what becomes of a row before the next one.
    interactive: bool,
    /// The place of each column, once that is known.
    places: Option<Vec<Option<usize>>>,
    read: u64,
}

type Input<'a> = BufReader<Box<dyn Read + 'a>>;

enum Source<'a> {
    Tabs(Input<'a>),
    Json(Input<'a>),
    Commas(CommaLines<'a>),
    #[cfg(feature = "parquet")]
    Parquet(Box<RowIter<'static>>),
}

/// What one record of the source is.
enum Record {
    End,
    Empty,
    Fields(Vec<String>),
    Named(Vec<(String, Option<String>)>),
    Malformed(String),
}

/// The ending of a file that begins with `first`: an object is JSON lines, and where there is no tab, commas separate.
pub fn ending_of_rows(first: &[u8]) -> &'static str {
    let first = first.strip_prefix("\u{feff}".as_bytes()).unwrap_or(first);
    let line =
        first.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    match () {
        () if line.trim_ascii_start().starts_with(b"{") => "jsonl",
        () if !line.contains(&b'\t') && line.contains(&b',') => "csv",
        () => "tsv",
    }
}

impl<'a> NamedRows<'a> {
    /// The rows that come through `input`, which is called `name` in messages: tabs, commas or JSON lines, by the first
    /// line. A block does not wait for more rows.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(
        name: &Path,
        input: Box<dyn Read + 'a>,
        columns: &'static [RowColumn],
    ) -> Result<Self, GraphError> {
        let mut input = BufReader::with_capacity(1 << 16, input);
        let first = input.fill_buf().map_err(GraphError::reading(name))?;
        let source = match ending_of_rows(first) {
            "jsonl" => Source::Json(input),
            "csv" => Source::Commas(CommaLines { input, begun: false, waiting: VecDeque::new() }),
            _ => Source::Tabs(input),
        };
        Ok(Self { path: name.to_owned(), columns, source, interactive: true, places: None, read: 0 })
    }

    /// The rows of the file at `path`, which has `columns`.
    ///
    /// # Errors
    /// If it cannot be opened, or its ending is not known.
    pub fn open(path: &Path, columns: &'static [RowColumn]) -> Result<Self, GraphError> {
        let compression = Compression::of(path);
        let name = path.to_string_lossy().to_ascii_lowercase();
        let stem = match compression {
            Compression::Plain => name.as_str(),
            _ => name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem),
        };
        let ending = stem.rsplit('/').next().and_then(|file| file.rsplit_once('.')).map(|(_, ending)| ending);
        let open = || compression.open(path).map(|input| -> Box<dyn Read + 'a> { input });
        let source = match ending {
            Some("tsv" | "txt") => Source::Tabs(BufReader::with_capacity(1 << 16, open()?)),
            Some("jsonl" | "ndjson") => Source::Json(BufReader::with_capacity(1 << 16, open()?)),
            Some("csv") => {
                let input = BufReader::with_capacity(1 << 16, open()?);
                Source::Commas(CommaLines { input, begun: false, waiting: VecDeque::new() })
            }
            #[cfg(feature = "parquet")]
            Some("parquet") if compression == Compression::Plain => {
                let file = File::open(path).map_err(GraphError::reading(path))?;
                let broken = |error| GraphError::file(path, "a Parquet file", format!("{error}"));
                let reader = SerializedFileReader::new(file).map_err(broken)?;
                let schema = reader.metadata().file_metadata().schema_descr();
                if schema.columns().iter().any(|column| column.max_rep_level() > 0) {
                    return Err(GraphError::file(path, "columns of single values", "a column of lists"));
                }
                Source::Parquet(Box::new(RowIter::from_file_into(Box::new(reader))))
            }
            other => {
                let found = other.map_or("no extension".to_owned(), |ending| format!(".{ending}"));
                std::fs::metadata(path).map_err(GraphError::reading(path))?;
                return Err(GraphError::file(path, format!("one of the extensions {ENDINGS}"), found));
            }
        };
        Ok(Self { path: path.to_owned(), columns, source, interactive: false, places: None, read: 0 })
    }

    /// The next rows, at most `most`, without empty lines and the header; of a stream at least one, and then as many as are
    /// there. None at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or a required column is missing from its header.
    pub fn next_block(&mut self, most: usize) -> Result<Vec<NamedRow>, GraphError> {
        let mut rows = Vec::new();
        while rows.is_empty() || (rows.len() < most && self.more_is_there()) {
            let record = self.record()?;
            if matches!(record, Record::End) {
                break;
            }
            self.read += 1;
            let fields = match record {
                Record::End | Record::Empty => continue,
                Record::Malformed(why) => Err(why),
                Record::Named(named) => self.by_name(&named),
                Record::Fields(fields) => match self.by_place(&fields) {
                    Some(row) => row,
                    None => continue,
                },
            };
            rows.push(NamedRow { number: self.read, fields });
        }
        Ok(rows)
    }

    /// Whether the next row can be read without waiting for the sender.
    fn more_is_there(&self) -> bool {
        let line_is_there = |input: &Input<'_>| input.buffer().contains(&b'\n');
        !self.interactive
            || match &self.source {
                Source::Tabs(input) | Source::Json(input) => line_is_there(input),
                Source::Commas(lines) => !lines.waiting.is_empty() || line_is_there(&lines.input),
                #[cfg(feature = "parquet")]
                Source::Parquet(_) => true,
            }
    }

    fn record(&mut self) -> Result<Record, GraphError> {
        let (path, number) = (&self.path, self.read + 1);
        let unreadable = |error: io::Error| GraphError::file(path, "a readable file", format!("{error}"));
        Ok(match &mut self.source {
            Source::Tabs(input) => match line(input, number == 1).map_err(unreadable)? {
                None => Record::End,
                Some(Err(why)) => Record::Malformed(why),
                Some(Ok(line)) if line.is_empty() => Record::Empty,
                Some(Ok(line)) => Record::Fields(line.split('\t').map(str::to_owned).collect()),
            },
            Source::Json(input) => match line(input, number == 1).map_err(unreadable)? {
                None => Record::End,
                Some(Err(why)) => Record::Malformed(why),
                Some(Ok(line)) if line.trim().is_empty() => Record::Empty,
                Some(Ok(line)) => match serde_json::from_str(&line) {
                    Ok(serde_json::Value::Object(object)) => {
                        Record::Named(object.into_iter().map(|(key, value)| (key, text_of(&value))).collect())
                    }
                    Ok(_) => Record::Malformed("expected a JSON object, found another value".to_owned()),
                    Err(error) => Record::Malformed(format!("expected a JSON object: {error}")),
                },
            },
            Source::Commas(lines) => lines.record().map_err(unreadable)?,
            #[cfg(feature = "parquet")]
            Source::Parquet(rows) => match rows.next() {
                None => Record::End,
                Some(Err(error)) => return Err(unreadable(io::Error::other(error))),
                Some(Ok(row)) => Record::Named(
                    row.get_column_iter().map(|(name, field)| (name.clone(), text_of_field(field))).collect(),
                ),
            },
        })
    }

    /// The fields of a record whose columns have names.
    fn by_name(&self, named: &[(String, Option<String>)]) -> Result<Vec<Option<String>>, String> {
        let field = |column: &RowColumn| {
            let found = column.names.iter().find_map(|name| named.iter().find(|(key, _)| role(key) == *name));
            match found.and_then(|(_, value)| value.clone()) {
                None if column.required => {
                    Err(format!("expected a value for `{}`, found none", column.names[0]))
                }
                value => Ok(value),
            }
        };
        self.columns.iter().map(field).collect()
    }

    /// The fields of a record by their order; `None` if it is the header.
    fn by_place(&mut self, fields: &[String]) -> Option<Result<Vec<Option<String>>, String>> {
        let is_first = self.places.is_none();
        if is_first {
            let place = |column: &RowColumn| {
                column.names.iter().find_map(|name| fields.iter().position(|field| role(field) == *name))
            };
            let places: Vec<Option<usize>> = self.columns.iter().map(place).collect();
            let header =
                self.columns.iter().zip(&places).all(|(column, at)| !column.required || at.is_some());
            self.places = Some(if header { places } else { (0..self.columns.len()).map(Some).collect() });
            if header {
                return None;
            }
        }
        let places = self.places.as_ref()?;
        let field = |(column, place): (&RowColumn, &Option<usize>)| {
            let field = place.and_then(|at| fields.get(at)).filter(|field| !field.is_empty());
            match field {
                None if column.required => {
                    let names: Vec<&str> =
                        self.columns.iter().filter(|one| one.required).map(|one| one.names[0]).collect();
                    let found = fields.len();
                    Err(format!("expected {} fields ({}), found {found}", names.len(), names.join(", ")))
                }
                field => Ok(field.cloned()),
            }
        };
        Some(self.columns.iter().zip(places).map(field).collect())
    }
}

/// Records of comma-separated values. A quoted field may have line breaks, so a record may be several lines.
struct CommaLines<'a> {
    input: Input<'a>,
    /// Whether the first line was read.
    begun: bool,
    /// Lines that were read in search of a quote that closes, and do not belong to the record before them.
    waiting: VecDeque<Result<String, String>>,
}

impl CommaLines<'_> {
    fn line(&mut self) -> io::Result<Option<Result<String, String>>> {
        if let Some(line) = self.waiting.pop_front() {
            return Ok(Some(line));
        }
        let first = !std::mem::replace(&mut self.begun, true);
        line(&mut self.input, first)
    }

    /// The next record. If a quote is never closed, its line alone is malformed, and the next one begins a record.
    fn record(&mut self) -> io::Result<Record> {
        let mut text = match self.line()? {
            None => return Ok(Record::End),
            Some(Err(why)) => return Ok(Record::Malformed(why)),
            Some(Ok(line)) if line.is_empty() => return Ok(Record::Empty),
            Some(Ok(line)) => line,
        };
        let mut further = VecDeque::new();
        loop {
            if let Some(fields) = fields_of(&text) {
                return Ok(Record::Fields(fields));
            }
            let next = if text.len() > LONGEST_QUOTE { None } else { self.line()? };
            match next {
                Some(Ok(line)) => {
                    text.push('\n');
                    text.push_str(&line);
                    further.push_back(Ok(line));
                }
                other => {
                    further.extend(other);
                    further.append(&mut self.waiting);
                    self.waiting = further;
                    return Ok(Record::Malformed("expected a closing quote, found none".to_owned()));
                }
            }
        }
    }
}

/// The fields of a record of comma-separated values; `None` if a quoted one is not closed.
fn fields_of(record: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut rest = record.chars().peekable();
    let (mut begins, mut quoted) = (true, false);
    while let Some(one) = rest.next() {
        match one {
            // A doubled quote within quotes is one.
            '"' if quoted && rest.next_if_eq(&'"').is_some() => fields.last_mut()?.push('"'),
            '"' if quoted || begins => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut()?.push(other),
        }
        begins = one == ',' && !quoted;
    }
    (!quoted).then_some(fields)
}

/// The next line without its ending; `None` at the end.
fn line(input: &mut Input<'_>, first: bool) -> io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == LONGEST && line.last() != Some(&b'\n') {
        return Err(io::Error::other("a line of more than 16 MB"));
    }
    let end = line.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
    line.truncate(end);
    Ok(Some(match String::from_utf8(line) {
        Ok(line) if first => Ok(line.strip_prefix('\u{feff}').unwrap_or(&line).to_owned()),
        Ok(line) => Ok(line),
        Err(_) => Err("expected UTF-8, found other bytes".to_owned()),
    }))
}

fn role(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_suffix("_id").unwrap_or(&name).to_owned()
}

fn text_of(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(feature = "parquet")]
fn text_of_field(field: &Field) -> Option<String> {
    match field {
        Field::Null => None,
        Field::Str(text) => Some(text.clone()),
        Field::Bytes(bytes) => bytes.as_utf8().ok().map(str::to_owned),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Cell, CellKind, TableColumn, write_table};
    use super::*;

    const COLUMNS: &[RowColumn] = &[
        RowColumn { names: &["subject", "head"], required: true },
        RowColumn { names: &["object", "tail"], required: true },
        RowColumn { names: &["label"], required: false },
    ];

    fn rows(path: &Path) -> Vec<NamedRow> {
        let mut rows = NamedRows::open(path, COLUMNS).unwrap();
        let mut all = Vec::new();
        loop {
            let block = rows.next_block(2).unwrap();
            if block.is_empty() {
                return all;
            }
            all.extend(block);
        }
    }

    fn row(number: u64, fields: &[&str]) -> NamedRow {
        let mut fields: Vec<Option<String>> = fields.iter().map(|field| Some((*field).to_owned())).collect();
        fields.resize(3, None);
        NamedRow { number, fields: Ok(fields) }
    }

    #[test]
    fn a_stream_is_read_by_its_first_line_and_gives_what_is_there() {
        /// Gives one line at a time, as a pipe does.
        struct Lines(std::vec::IntoIter<&'static str>);
        impl Read for Lines {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let Some(line) = self.0.next() else { return Ok(0) };
                buffer[..line.len()].copy_from_slice(line.as_bytes());
                Ok(line.len())
            }
        }
        for lines in [
            ["a\tb\t1\n", "c\td\n"],
            ["a,b,1\n", "c,d\n"],
            ["{\"subject\":\"a\",\"object\":\"b\",\"label\":1}\n", "{\"head\":\"c\",\"tail\":\"d\"}\n"],
        ] {
            let input = Lines(Vec::from(lines).into_iter());
            let mut rows = NamedRows::of(Path::new("stdin"), Box::new(input), COLUMNS).unwrap();
            assert_eq!(rows.next_block(100).unwrap(), [row(1, &["a", "b", "1"])]);
            assert_eq!(rows.next_block(100).unwrap(), [row(2, &["c", "d"])]);
            assert_eq!(rows.next_block(100).unwrap(), []);
        }
        let mut nothing = NamedRows::of(Path::new("stdin"), Box::new(io::empty()), COLUMNS).unwrap();
        assert_eq!(nothing.next_block(1).unwrap(), []);
    }

    #[test]
    fn every_format_gives_the_same_rows_and_a_bad_row_does_not_end_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let expected = |from: u64| vec![row(from, &["a", "b", "1"]), row(from + 1, &["c", "d"])];
        let tabs = rows(&file("plain.tsv", "a\tb\t1\nc\td\n\nonly\n"));
        assert_eq!(tabs[..2], expected(1));
        assert_eq!(tabs[2].number, 4);
        let said = tabs[2].fields.clone().unwrap_err();
        assert_eq!(said, "expected 2 fields (subject, object), found 1");
        assert_eq!(
            rows(&file("named.tsv", "\u{feff}label\ttail_id\thead_id\n1\tb\ta\n\td\tc\n")),
            expected(2)
        );
        assert_eq!(rows(&file("quoted.csv", "a,\"b\",1\nc,d\n")), expected(1));
        let open = rows(&file("open.csv", "a,b,1\n\"open,b\nc,d\ne,f\n"));
        assert_eq!(open[1].fields, Err("expected a closing quote, found none".to_owned()));
        assert_eq!(open[2..], [row(3, &["c", "d"]), row(4, &["e", "f"])]);
        let spread = rows(&file("spread.csv", "\"a\nb\",\"x\"\"y\"\nc,5\" disk\n"));
        assert_eq!(spread, [row(1, &["a\nb", "x\"y"]), row(2, &["c", "5\" disk"])]);
        let lines = rows(&file(
            "lines.jsonl",
            "{\"tail\":\"b\",\"head\":\"a\",\"label\":1}\n{\"subject\":\"c\",\"object\":\"d\"}\n{\"subject\":\"e\"}\nx\n",
        ));
        assert_eq!(lines[..2], expected(1));
        assert!(lines[2].fields.as_ref().unwrap_err().contains("a value for `object`"));
        assert!(lines[3].fields.as_ref().unwrap_err().contains("expected a JSON object"));
        if !cfg!(feature = "parquet") {
            return;
        }
        let parquet = folder.path().join("rows.parquet");
        let columns = ["subject", "object", "label"].map(|name| TableColumn::new(name, CellKind::Text));
        let cells = |fields: [&str; 3]| Ok(fields.map(|field| Cell::Text(field.to_owned())).to_vec());
        let mut written = [cells(["a", "b", "1"]), cells(["c", "d", "x"])].into_iter();
        write_table(&parquet, &columns, &mut written).unwrap();
        assert_eq!(rows(&parquet), [row(1, &["a", "b", "1"]), row(2, &["c", "d", "x"])]);
        let said = NamedRows::open(&file("list.docx", ""), COLUMNS).err().unwrap().to_string();
        assert!(said.contains("one of the extensions .tsv") && said.contains(".docx"), "{said}");
    }
}
