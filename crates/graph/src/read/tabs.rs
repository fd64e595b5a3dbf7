//! Reads `head<TAB>relation<TAB>tail` lines, in [blocks](super::blocks) on all cores.

use super::blocks::{self, Blocks, InTurn, LocalNames};
use super::bounded::{LONGEST, LONGEST_IN_WORDS};
use super::columns::{Layout, layout_of};
use super::facts::Facts;
use super::lines::{Lines, Separator};
use super::table::{self, stem};
use super::{Builder, ReadOptions, columns_by_role};
use crate::{GraphError, Triple};
use memchr::memchr;
use std::io::Read;
use std::path::Path;

/// How many columns there are, and which of them hold head, relation and tail.
#[derive(Clone, Copy)]
struct Columns {
    count: usize,
    of: [usize; 3],
}

impl Columns {
    const PLAIN: Columns = Columns { count: 3, of: [0, 1, 2] };
}

/// Reads all of `source` into `builder`; returns the facts in the order of their lines.
///
/// The first line says how: three columns of a fact are read by all threads, tables that say more by one.
pub(super) fn read(
    path: &Path,
    source: Box<dyn Read + Send>,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    let mut blocks = Blocks::of(source);
    let mut first = blocks.take();
    if let Some((_, block, _)) = &mut first
        && block.starts_with(b"\xef\xbb\xbf")
    {
        block.drain(..3);
    }
    let form = first.as_ref().map_or(Form::Facts(None), |(_, block, _)| form_of(block, path, options));
    let taken = match (form, &mut first) {
        (Form::Rows(separator), first) => {
            let (_, begun, trouble) = first.take().unwrap_or_default();
            let seen = std::io::Cursor::new(begun).chain(std::io::Cursor::new(blocks.rest));
            let source = seen.chain(Troubled(trouble)).chain(blocks.source);
            return table::read(path, &mut Lines::new(source, separator), options, builder);
        }
        (Form::Facts(Some(layout)), Some((_, block, _))) => {
            builder.columns_of(path, &layout);
            take_header(block).zip(layout.only_facts().map(|of| Columns { count: layout.width, of }))
        }
        (Form::Facts(_), _) => None,
    };
    blocks.looked_at = first;
    builder.headers += usize::from(taken.is_some());
    builder.first_is_a_fact = taken.is_none();
    let (lines, columns) = taken.unwrap_or((0, Columns::PLAIN));
    let merge = Merge { path, lines, builder, facts: Facts::default(), error: None };
    let merge = blocks::read_all(blocks, &columns, merge);
    match merge.error {
        Some(error) => Err(error),
        None => Ok(merge.facts),
    }
}

/// How a file is read.
enum Form {
    /// Head, relation and tail, by all threads; behind a header, if there is one.
    Facts(Option<Layout>),
    /// Row by row.
    Rows(Separator),
}

/// How to read a file that begins with `block`.
fn form_of(block: &[u8], path: &Path, options: &ReadOptions) -> Form {
    let text = String::from_utf8_lossy(&block[..block.len().min(LONGEST)]);
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return Form::Facts(None) };
    if options.columns.is_none()
        && let Some(separator) = list_of_edges(first, lines)
    {
        return Form::Rows(separator);
    }
    let fields: Vec<&str> = first.split('\t').collect();
    match layout_of(&fields, &stem(path), options.header, false, options.columns.as_ref()) {
        Ok((layout, true)) if layout.only_facts().is_some() => Form::Facts(Some(layout)),
        Ok((layout, false)) if layout == Layout::plain() => Form::Facts(None),
        // A first line that cannot be a fact is reported as a line.
        Err(_) if fields.len() < 3 && options.columns.is_none() => Form::Facts(None),
        _ => Form::Rows(Separator::Tab),
    }
}

/// What separates the columns of a list of edges: comments first, or no tab at all and two or three words a line. A
/// line of one word, or of two words with a tab, is left to be reported.
fn list_of_edges<'t>(first: &'t str, rest: impl Iterator<Item = &'t str>) -> Option<Separator> {
    let is_comment = |line: &str| line.starts_with(['#', '%']);
    let commented = is_comment(first) && first.split('\t').count() != 3;
    let row = std::iter::once(first).chain(rest).find(|line| !(commented && is_comment(line)))?;
    let words = row.split([' ', '\t']).filter(|word| !word.is_empty());
    let numbers = words.clone().all(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let is_list = match words.count() {
        2 => commented || numbers,
        3 => !row.contains('\t'),
        _ => false,
    };
    is_list.then_some(Separator::White)
}

/// An error in place of the rest of a file, if there was one.
struct Troubled(Option<std::io::Error>);

impl Read for Troubled {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Removes the first non-blank line of `block`. Returns how many lines were removed.
fn take_header(block: &mut Vec<u8>) -> Option<u64> {
    let begin = block.iter().position(|byte| !b"\r\n".contains(byte))?;
    let end = memchr(b'\n', &block[begin..]).map_or(block.len(), |newline| begin + newline + 1);
    let lines = block.drain(..end).filter(|&byte| byte == b'\n').count() as u64;
    Some(lines.max(1))
}

/// Which columns the fields of a first line name, if it is a header. Names of one letter could just as well be a
/// fact.
pub(crate) fn named_columns(fields: [&str; 3]) -> Option<[usize; 3]> {
    columns_by_role(fields).filter(|_| fields.iter().all(|name| name.len() > 1))
}

/// A bad line: its place in the block, what was expected, what was found.
struct BadLine {
    line: u64,
    /// Whether it ends with a line break and is therefore complete.
    ended: bool,
    expected: &'static str,
    found: String,
}

/// A block with names numbered among themselves, up to the first bad line.
struct ParsedBlock<'b> {
    entities: LocalNames<'b>,
    relations: LocalNames<'b>,
    facts: Vec<[u32; 3]>,
    lines: u64,
    bad: Option<BadLine>,
}

impl<'b> ParsedBlock<'b> {
    fn new(block: &'b [u8], columns: Columns) -> Self {
        let mut parsed = Self {
            entities: LocalNames::default(),
            relations: LocalNames::default(),
            facts: Vec::with_capacity(block.len() / 32),
            lines: 0,
            bad: None,
        };
        let valid = match std::str::from_utf8(block) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&block[..error.valid_up_to()]).unwrap_or_default(),
        };
        let whole = valid.len() == block.len();
        let lines = if whole { valid } else { &valid[..valid.rfind('\n').map_or(0, |at| at + 1)] };
        parsed.read_lines(lines, columns);
        if !whole && parsed.bad.is_none() {
            let byte = block[valid.len()];
            parsed.bad = Some(BadLine {
                line: parsed.lines + 1,
                ended: memchr(b'\n', &block[valid.len()..]).is_some(),
                expected: "UTF-8 text",
                found: format!("the byte 0x{byte:02x}"),
            });
        }
        parsed
    }

    fn read_lines(&mut self, text: &'b str, columns: Columns) {
        let mut rest = text;
        while !rest.is_empty() {
            let newline = memchr(b'\n', rest.as_bytes());
            let (line, after) = match newline {
                Some(newline) => (&rest[..newline], &rest[newline + 1..]),
                None => (rest, ""),
            };
            rest = after;
            self.lines += 1;
            let line = line.strip_suffix('\r').unwrap_or(line);
            // Blank lines are skipped: they hold no fact.
            if line.is_empty() {
                continue;
            }
            let fields = match columns.count {
                _ if line.len() > LONGEST => Err(too_long()),
                3 => split_line(line).map(|fields| columns.of.map(|column| fields[column])),
                _ => pick_fields(line, columns),
            };
            match fields {
                Ok([head, relation, tail]) => {
                    let head = self.entities.number(head);
                    let relation = self.relations.number(relation);
                    self.facts.push([head, relation, self.entities.number(tail)]);
                }
                Err((expected, found)) => {
                    self.bad = Some(BadLine { line: self.lines, ended: newline.is_some(), expected, found });
                    return;
                }
            }
        }
    }
}

fn too_long() -> (&'static str, String) {
    ("a line of 3 tab-separated fields", format!("a line of more than {LONGEST_IN_WORDS}"))
}

/// Head, relation and tail of a line with more columns, or what was expected and what was found.
fn pick_fields(line: &str, Columns { count, of }: Columns) -> Result<[&str; 3], (&'static str, String)> {
    let mut picked = [""; 3];
    let mut found = 0;
    for (column, field) in line.split('\t').enumerate() {
        if let Some(role) = of.iter().position(|&wanted| wanted == column) {
            picked[role] = field;
        }
        found += 1;
    }
    if found != count {
        return Err((
            "as many tab-separated fields as the header has",
            format!("{found} instead of {count}"),
        ));
    }
    match super::first_empty(&picked) {
        Some(which) => Err(("a head, a relation and a tail", format!("an empty {which}"))),
        None => Ok(picked),
    }
}

/// The three fields of a line, or what was expected and what was found.
fn split_line(line: &str) -> Result<[&str; 3], (&'static str, String)> {
    let bytes = line.as_bytes();
    let three = memchr(b'\t', bytes).and_then(|first| {
        let second = first + 1 + memchr(b'\t', &bytes[first + 1..])?;
        memchr(b'\t', &bytes[second + 1..]).is_none().then_some((first, second))
    });
    let Some((first, second)) = three else {
        return Err((
            "3 tab-separated fields",
            (bytes.iter().filter(|&&b| b == b'\t').count() + 1).to_string(),
        ));
    };
    let fields = [&line[..first], &line[first + 1..second], &line[second + 1..]];
    match super::first_empty(&fields) {
        Some(which) => Err(("3 fields with text in them", format!("an empty {which}"))),
        None => Ok(fields),
    }
}

/// The facts so far.
struct Merge<'a> {
    path: &'a Path,
    lines: u64,
    builder: &'a mut Builder,
    facts: Facts,
    error: Option<GraphError>,
}

impl InTurn for Merge<'_> {
    type How = Columns;
    type Parsed<'b> = ParsedBlock<'b>;

    fn parse<'b>(columns: &Columns, block: &'b [u8]) -> ParsedBlock<'b> {
        ParsedBlock::new(block, *columns)
    }

    fn take(&mut self, block: ParsedBlock<'_>, trouble: Option<std::io::Error>) -> bool {
        let entities = block.entities.global_ids(&mut self.builder.names.entities);
        let relations = block.relations.global_ids(&mut self.builder.names.relations);
        let global = |&[head, relation, tail]: &[u32; 3]| {
            Triple::new(entities[head as usize], relations[relation as usize], entities[tail as usize])
        };
        self.facts.extend(block.facts.iter().map(global), self.builder.names.entities.len());
        let line = |line: u64, expected: &str, found: String| {
            GraphError::line(self.path, self.lines + line, expected, found)
        };
        self.error = match (block.bad, trouble) {
            // A line truncated by the I/O error is not reported as malformed.
            (Some(bad), trouble) if trouble.is_none() || bad.ended => {
                Some(line(bad.line, bad.expected, bad.found))
            }
            (_, Some(trouble)) => {
                Some(line(block.lines.max(1), "more of the file", format!("an error: {trouble}")))
            }
            (_, None) => None,
        };
        self.lines += block.lines;
        self.error.is_none()
    }
}
