//! Reads Parquet: three columns of names, recognised by their own names or, if a file has no other columns, by their
//! order.
//!
//! Text and whole numbers are names; a row without a value in one of the three columns is an error.

use super::bounded::{LONGEST, LONGEST_IN_WORDS};
use super::columns::{Layout, layout_of};
use super::facts::Facts;
use super::layout::{FILE, PAGE};
use super::table::stem;
use super::thrift::check;
use super::{Builder, ReadOptions};
use crate::{Compression, GraphError};
use ::parquet::basic::{ConvertedType, Type};
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use ::parquet::file::serialized_reader::SerializedPageReader;
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use bytes::Bytes;
use ruleguider_support::shown::Shown;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// The magic bytes at the beginning of every Parquet file.
const MAGIC: &[u8] = b"PAR1";

/// Rows read at a time.
const ROWS: usize = 8192;

/// Reads all of the file at `path` into `builder`.
pub(super) fn read(
    path: &Path,
    compression: Compression,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    if compression == Compression::Plain {
        return read_from(
            path,
            Pages(Arc::new(File::open(path).map_err(GraphError::reading(path))?)),
            options,
            builder,
        );
    }
    read_from(path, Pages(Arc::new(unpacked(path, compression)?)), options, builder)
}

/// The format needs random access, which a compressed stream lacks: the file is decompressed into a temporary file
/// that disappears with the process.
fn unpacked(path: &Path, compression: Compression) -> Result<File, GraphError> {
    let mut source = compression.open(path)?;
    let mut magic = Vec::new();
    source.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(|error| broken(path, error))?;
    if magic != MAGIC {
        return Err(broken(path, "it does not begin with the Parquet magic bytes"));
    }
    let place = std::env::temp_dir();
    let cannot_unpack = |error: io::Error| GraphError::writing(&place)(error);
    let mut file = tempfile::tempfile_in(&place).map_err(cannot_unpack)?;
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = magic.len();
    buffer[..bytes].copy_from_slice(&magic);
    while bytes > 0 {
        file.write_all(&buffer[..bytes]).map_err(cannot_unpack)?;
        bytes = loop {
            match source.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| broken(path, error))?,
            }
        };
    }
    Ok(file)
}

/// A file whose end is an error: as long as reading does not fail, the decoder skips the billions of elements that a
/// damaged header claims, one by one.
#[derive(Clone)]
struct Pages(Arc<File>);

/// Such a file from an offset on.
struct FromPlace(io::BufReader<File>);

impl Read for FromPlace {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        Length::len(&*self.0)
    }
}

impl ChunkReader for Pages {
    type T = FromPlace;

    fn get_read(&self, start: u64) -> Result<FromPlace, ParquetError> {
        self.0.get_read(start).map(FromPlace)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}

/// Such a file, of which the decoder reads the header of a page wherever it begins to read.
struct Headers(Pages);

/// The size that a header may have: twice that of the longest name, because it may hold the first and the last name of
/// its page.
const LARGEST_HEADER: u64 = 2 * LONGEST as u64 + (1 << 16);

impl Length for Headers {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Headers {
    type T = FromPlace;

    fn get_read(&self, start: u64) -> Result<FromPlace, ParquetError> {
        let left = self.len().saturating_sub(start).min(LARGEST_HEADER);
        check(self.0.get_read(start)?, left, PAGE)
            .map_err(|fault| ParquetError::General(format!("the header of a page {fault}")))?;
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}

/// The pages of a column, checked so that no page claims a larger dictionary than it holds: the decoder allocates the
/// claimed size before it reads anything.
struct CheckedPages(SerializedPageReader<Headers>);

/// The minimum size of a dictionary entry in bytes: the length of a string, or an integer.
const SHORTEST: usize = 4;

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.0.get_next_page()?;
        match &page {
            Some(Page::DictionaryPage { buf, num_values, .. })
                if buf.len() / SHORTEST < *num_values as usize =>
            {
                let why = format!("a dictionary of {num_values} names in {} bytes", buf.len());
                Err(ParquetError::General(why))
            }
            _ => Ok(page),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.0.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

fn read_from(
    path: &Path,
    source: Pages,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    // Maliciously damaged files can make the decoder panic instead of returning an error.
    CAUGHT.set(true);
    let read = catch_unwind(AssertUnwindSafe(|| facts_of(path, source, options, builder)));
    CAUGHT.set(false);
    read.unwrap_or_else(|_| Err(broken(path, "its pages contradict each other")))
}

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is currently inside the Parquet decoder. A panic there becomes an error about the file, so
/// panic hooks need not show it.
pub fn panic_is_caught() -> bool {
    CAUGHT.get()
}

/// The footer, if the file claims to have one: its length and the four magic bytes are the end of the file.
fn footer(source: &Pages) -> Result<Option<Bytes>, ParquetError> {
    let end = MAGIC.len() as u64 + 4;
    let Some(before) = source.len().checked_sub(end) else { return Ok(None) };
    let last = source.get_bytes(before, end as usize)?;
    let length = u64::from(u32::from_le_bytes([last[0], last[1], last[2], last[3]]));
    match before.checked_sub(length) {
        Some(start) if &last[4..] == MAGIC => source.get_bytes(start, length as usize).map(Some),
        _ => Ok(None),
    }
}

fn facts_of(
    path: &Path,
    source: Pages,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    if let Some(footer) = footer(&source).map_err(|error| broken(path, error))? {
        check(&*footer, footer.len() as u64, FILE)
            .map_err(|fault| broken(path, format_args!("its footer {fault}")))?;
    }
    let headers = Arc::new(Headers(source.clone()));
    let file = SerializedFileReader::new(source).map_err(|error| broken(path, error))?;
    let (layout, columns) =
        columns(path, file.metadata().file_metadata().schema_descr(), options, |layout| {
            builder.columns_of(path, layout)
        })?;
    let mut facts = Facts::default();
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(|error| broken(path, error))?;
        let declared = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut readers = Vec::with_capacity(3);
        for &column in &columns {
            let column = group.metadata().column(column);
            let pages = SerializedPageReader::new(headers.clone(), column, declared, None)
                .map_err(|error| broken(path, error))?;
            readers.push(get_column_reader(column.column_descr_ptr(), Box::new(CheckedPages(pages))));
        }
        let mut rows_read = 0;
        loop {
            let mut batch = Vec::with_capacity(3);
            for reader in &mut readers {
                batch.push(next(reader).map_err(|error| broken(path, error))?);
            }
            let rows = batch.iter().map(Vec::len).max().unwrap_or(0);
            rows_read += rows;
            if rows_read > declared {
                // A damaged page may claim billions of rows.
                return Err(broken(
                    path,
                    format_args!("its pages hold more than the {declared} rows that its footer declares"),
                ));
            }
            for row in 0..rows {
                let line = facts.read() as u64 + 1;
                let fields = fields(path, line, &batch, row)?;
                if let Some(which) = layout.words(&fields).and_then(|words| super::first_empty(&words)) {
                    let expected = "a name in each of the 3 columns";
                    return Err(GraphError::line(path, line, expected, format!("no {which}")));
                }
                builder
                    .take_row(path, line, &layout, &fields, &mut facts)
                    .map_err(|(expected, found)| GraphError::line(path, line, expected, found))?;
            }
            if rows == 0 {
                break;
            }
        }
    }
    Ok(facts)
}

/// The names in one row.
fn fields<'v>(path: &Path, line: u64, batch: &'v [Names], row: usize) -> Result<Vec<&'v str>, GraphError> {
    let mut fields = vec![""; batch.len()];
    for (field, names) in fields.iter_mut().zip(batch) {
        let bytes = names.get(row).and_then(Option::as_ref).map_or(&[][..], ByteArray::data);
        if bytes.len() > LONGEST {
            let expected = format!("names of at most {LONGEST_IN_WORDS}");
            return Err(GraphError::line(path, line, expected, "a longer one"));
        }
        *field = std::str::from_utf8(bytes).map_err(|error| {
            GraphError::line(
                path,
                line,
                "UTF-8 text",
                format!("the byte 0x{:02x}", bytes[error.valid_up_to()]),
            )
        })?;
    }
    Ok(fields)
}

fn broken(path: &Path, trouble: impl std::fmt::Display) -> GraphError {
    let found = format!("an error: {trouble}").replace(['\n', '\r'], " ");
    GraphError::file(path, "a Parquet file", found)
}

/// What the columns are, as places among those that are read, and which columns are read. The other columns of a table
/// may be of any type.
fn columns(
    path: &Path,
    schema: &SchemaDescriptor,
    options: &ReadOptions,
    report: impl FnOnce(&Layout),
) -> Result<(Layout, Vec<usize>), GraphError> {
    let all: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    // The names of columns are not values: without a meaning, three columns are a fact in order.
    let header = Layout::of_header(&names, &stem(path)).map(|_| true);
    let found = match (&options.columns, header, names.len()) {
        (Some(_), ..) | (None, Some(_), _) => {
            layout_of(&names, &stem(path), Some(true), true, options.columns.as_ref())
        }
        (None, None, 3) => Ok((Layout::plain(), false)),
        (None, None, _) => {
            let found = if all.is_empty() { "none".to_owned() } else { Shown(all.join(", ")).to_string() };
            Err(("columns called head, relation and tail, or only three".to_owned(), found))
        }
    };
    let (layout, _) = found.map_err(|(expected, found)| GraphError::file(path, expected, found))?;
    let read = layout.places();
    match read.iter().map(|&place| schema.column(place)).find(|column| !holds_names(column)) {
        Some(column) => Err(GraphError::file(
            path,
            format!("text or numbers in the column {}", Shown(column.path().string())),
            format!("{} ({:?})", column.physical_type(), column.converted_type()),
        )),
        None => {
            report(&layout);
            Ok((layout.among(&read), read))
        }
    }
}

fn holds_names(column: &ColumnDescriptor) -> bool {
    use ConvertedType as Kind;
    let plain = column.converted_type() == Kind::NONE && column.logical_type_ref().is_none();
    let fits = match column.physical_type() {
        Type::BYTE_ARRAY => matches!(column.converted_type(), Kind::UTF8 | Kind::ENUM | Kind::JSON),
        Type::INT32 => {
            use Kind::{INT_8, INT_16, INT_32, UINT_8, UINT_16};
            matches!(column.converted_type(), INT_8 | INT_16 | INT_32 | UINT_8 | UINT_16)
        }
        Type::INT64 => column.converted_type() == Kind::INT_64,
        Type::FLOAT | Type::DOUBLE | Type::BOOLEAN => true,
        _ => return false,
    };
    column.max_rep_level() == 0 && (plain || fits)
}

/// The names in one column, row after row.
type Names = Vec<Option<ByteArray>>;

/// The next names of a column; none at its end.
fn next(reader: &mut ColumnReader) -> Result<Names, ParquetError> {
    fn number(id: impl ToString) -> ByteArray {
        ByteArray::from(id.to_string().into_bytes())
    }
    match reader {
        ColumnReader::ByteArrayColumnReader(reader) => rows(reader, |name| name),
        ColumnReader::Int32ColumnReader(reader) => rows(reader, number),
        ColumnReader::Int64ColumnReader(reader) => rows(reader, number),
        ColumnReader::FloatColumnReader(reader) => rows(reader, number),
        ColumnReader::DoubleColumnReader(reader) => rows(reader, number),
        ColumnReader::BoolColumnReader(reader) => rows(reader, number),
        _ => Err(ParquetError::General("a column whose type is not that of the schema".to_owned())),
    }
}

/// The same, with `named` turning each value into a name.
fn rows<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    named: impl Fn(T::T) -> ByteArray,
) -> Result<Names, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < ROWS {
        let (more, _, _) = reader.read_records(ROWS - read, Some(&mut levels), None, &mut values)?;
        if more == 0 {
            break;
        }
        read += more;
    }
    let mut names = values.into_iter().map(named);
    if levels.is_empty() {
        return Ok(names.map(Some).collect());
    }
    let most = levels.iter().copied().max().unwrap_or(0);
    Ok(levels.iter().map(|&level| if level == most { names.next() } else { None }).collect())
}
