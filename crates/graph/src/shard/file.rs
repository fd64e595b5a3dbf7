//! A part as a file: a header, rows of JSON, and a last line with the number of rows and the SHA-256 checksum of all lines
//! before it.
//!
//! Files are written aside and renamed. The last line tells whether a file survived copying intact, or a power failure if
//! it was too quickly made to be worth waiting for the disk.

use super::{Shard, ShardError};
use crate::{Compression, write_packed};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// The version of the file layout; raised when the meaning of rows changes, or which of them belong to which part.
const LAYOUT: u32 = 6;

/// What kind of rows a part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShardKind {
    /// Rules that were mined.
    Rules,
    /// Answers to a file of queries.
    Answers,
    /// The ranks of a split.
    Ranks,
    /// Missing facts.
    Facts,
    /// Scores of given facts.
    Scores,
}

impl fmt::Display for ShardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ShardKind::Rules => "rules",
            ShardKind::Answers => "answers",
            ShardKind::Ranks => "ranks",
            ShardKind::Facts => "facts",
            ShardKind::Scores => "scores",
        })
    }
}

/// What a part is, and what it was made from: the first line of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The layout of the file.
    #[serde(rename = "ruleguider_shard")]
    layout: u32,
    /// The kind of its rows.
    pub kind: ShardKind,
    /// Which part it is.
    pub shard: Shard,
    /// The seed of the work.
    pub seed: u64,
    /// The version of the program that made it.
    pub version: String,
    /// The checksum of the data.
    pub data: String,
    /// Everything else that the rows depend on.
    pub settings: Value,
}

impl Header {
    /// The header of a part that this program makes.
    pub fn new(kind: ShardKind, shard: Shard, seed: u64, data: String, settings: &impl Serialize) -> Self {
        let settings = serde_json::to_value(settings).expect("settings are plain data");
        Self {
            layout: LAYOUT,
            kind,
            shard,
            seed,
            version: ruleguider_support::VERSION.to_owned(),
            data,
            settings,
        }
    }

    /// The settings, as the type they were written from.
    ///
    /// # Errors
    /// If they have another form; the error names `path`.
    pub fn settings<T: DeserializeOwned>(&self, path: &Path) -> Result<T, ShardError> {
        let damaged = |error: serde_json::Error| ShardError::Damaged {
            path: path.to_owned(),
            what: format!("its settings are not those of {} ({error})", self.kind),
        };
        serde_json::from_value(self.settings.clone()).map_err(damaged)
    }
}

/// The last line of a part.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    rows: u64,
    sha256: String,
}

fn hexadecimal(sum: Sha256) -> String {
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the rows of a part.
pub struct RowWriter<'a> {
    out: &'a mut (dyn Write + Send),
    line: Vec<u8>,
    sum: Sha256,
    rows: u64,
}

impl RowWriter<'_> {
    /// Adds a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn row(&mut self, row: &impl Serialize) -> io::Result<()> {
        self.rows += 1;
        self.add(row)
    }

    /// Adds a line to the file and to its checksum.
    fn add(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        self.sum.update(&self.line);
        self.out.write_all(&self.line)
    }
}

/// Checks that `path` has the name of a part.
///
/// # Errors
/// If it is not.
pub fn check_name(path: &Path) -> Result<(), ShardError> {
    let name = path.to_string_lossy();
    match [".shard", ".shard.gz", ".shard.zst"].iter().any(|ending| name.ends_with(ending)) {
        true => Ok(()),
        false => Err(ShardError::Name { path: path.to_owned() }),
    }
}

/// Writes the part at `path` with the rows that `fill` adds; compressed if its ending says so. Returns the number of rows.
///
/// # Errors
/// If it cannot be written. Nothing partial remains then.
pub fn write_part(
    path: &Path,
    header: &Header,
    fill: impl FnOnce(&mut RowWriter<'_>) -> io::Result<()>,
) -> Result<u64, ShardError> {
    let mut rows = 0;
    let written = write_packed(path, |out| {
        let mut writer = RowWriter { out, line: Vec::new(), sum: Sha256::new(), rows: 0 };
        writer.add(header)?;
        fill(&mut writer)?;
        rows = writer.rows;
        serde_json::to_writer(&mut *writer.out, &End { rows, sha256: hexadecimal(writer.sum) })?;
        writer.out.write_all(b"\n")
    });
    written.map_err(|source| ShardError::Unwritable { path: path.to_owned(), source })?;
    Ok(rows)
}

/// Whether the file at `path` is the complete part that `header` describes; `false` if it cannot be read.
pub fn is_complete(path: &Path, header: &Header) -> bool {
    let Ok(part) = Part::open(path) else { return false };
    part.header == *header && part.rows::<Value>().all(|row| row.is_ok())
}

/// Whether the file at `path` is a complete part, of any job.
pub fn is_whole(path: &Path) -> bool {
    Part::open(path).is_ok_and(|part| part.rows::<Value>().all(|row| row.is_ok()))
}

/// A part that is being read.
pub struct Part {
    path: PathBuf,
    header: Header,
    /// The checksum up to here: rows mean what the header says, so it is part of what is checked.
    sum: Sha256,
    input: BufReader<Box<dyn Read + Send>>,
}

impl Part {
    /// Opens the part at `path` and reads its header.
    ///
    /// # Errors
    /// If it cannot be read or is not a part.
    pub fn open(path: &Path) -> Result<Self, ShardError> {
        let unreadable = |source| ShardError::Unreadable { path: path.to_owned(), source };
        let damaged = |what: String| ShardError::Damaged { path: path.to_owned(), what };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut input = BufReader::new(Compression::of(path).unpack(file).map_err(unreadable)?);
        let mut line = Vec::new();
        input.read_until(b'\n', &mut line).map_err(unreadable)?;
        // Other versions may have other fields, so only the layout and version are read first.
        #[derive(Deserialize)]
        struct Outline {
            #[serde(rename = "ruleguider_shard")]
            layout: u32,
            version: String,
        }
        let outline: Outline = serde_json::from_slice(&line)
            .map_err(|_| damaged("is not a part (its first line is not a header)".to_owned()))?;
        if outline.layout != LAYOUT {
            return Err(ShardError::Version { path: path.to_owned(), made: outline.version });
        }
        let header =
            serde_json::from_slice(&line).map_err(|error| damaged(format!("its header: {error}")))?;
        let sum = Sha256::new_with_prefix(&line);
        Ok(Self { path: path.to_owned(), header, sum, input })
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its rows. If the file is not complete, the last one is an error.
    pub fn rows<T: DeserializeOwned>(self) -> Rows<T> {
        let Self { path, input, sum, .. } = self;
        let (line, next) = (Vec::new(), Vec::new());
        Rows { path, input, line, next, sum, seen: 0, over: false, row: PhantomData }
    }
}

/// The rows of a part.
pub struct Rows<T> {
    path: PathBuf,
    input: BufReader<Box<dyn Read + Send>>,
    /// The current line.
    line: Vec<u8>,
    /// The line read ahead, empty at first: the last line of the file is not a row.
    next: Vec<u8>,
    sum: Sha256,
    seen: u64,
    over: bool,
    row: PhantomData<T>,
}

impl<T: DeserializeOwned> Rows<T> {
    fn damaged<R>(&self, what: impl Into<String>) -> Result<R, ShardError> {
        Err(ShardError::Damaged { path: self.path.clone(), what: what.into() })
    }

    /// Makes the line read ahead the current one, and reads the one after it.
    fn turn(&mut self) -> Result<(), ShardError> {
        std::mem::swap(&mut self.line, &mut self.next);
        self.next.clear();
        let read = self.input.read_until(b'\n', &mut self.next);
        read.map(drop).map_err(|source| ShardError::Unreadable { path: self.path.clone(), source })
    }

    /// The next row; `None` after the last one, if the file is complete.
    fn advance(&mut self) -> Result<Option<T>, ShardError> {
        if self.next.is_empty() {
            self.turn()?;
        }
        self.turn()?;
        if self.next.is_empty() {
            return self.check_end().map(|()| None);
        }
        self.sum.update(&self.line);
        self.seen += 1;
        match serde_json::from_slice(&self.line) {
            Ok(row) => Ok(Some(row)),
            Err(error) => self.damaged(format!("row {} is not valid ({error})", self.seen)),
        }
    }

    fn check_end(&mut self) -> Result<(), ShardError> {
        let Ok(End { rows, sha256 }) = serde_json::from_slice(&self.line) else {
            return self.damaged("is incomplete (it ends before its last line)");
        };
        if rows != self.seen || sha256 != hexadecimal(std::mem::take(&mut self.sum)) {
            return self.damaged("its lines do not match its checksum");
        }
        Ok(())
    }
}

impl<T: DeserializeOwned> Iterator for Rows<T> {
    type Item = Result<T, ShardError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let row = self.advance();
        self.over = !matches!(row, Ok(Some(_)));
        row.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(seed: u64) -> Header {
        Header::new(
            ShardKind::Facts,
            "2/3".parse().unwrap(),
            seed,
            "abc".to_owned(),
            &serde_json::json!({"top": 3}),
        )
    }

    #[test]
    fn a_part_has_the_rows_that_were_written_and_is_known_to_be_whole() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.shard", "a.shard.gz", "a.shard.zst"] {
            for rows in [vec![], vec!["one".to_owned()], vec!["line\nbreak".to_owned(), String::new()]] {
                let path = folder.path().join(name);
                check_name(&path).unwrap();
                let written =
                    write_part(&path, &header(1), |out| rows.iter().try_for_each(|row| out.row(row)));
                assert_eq!(written.unwrap(), rows.len() as u64);
                let part = Part::open(&path).unwrap();
                assert_eq!((part.header(), part.path()), (&header(1), path.as_path()));
                assert_eq!(part.rows::<String>().collect::<Result<Vec<_>, _>>().unwrap(), rows);
                assert!(is_whole(&path) && is_complete(&path, &header(1)) && !is_complete(&path, &header(2)));
            }
        }
        assert!(check_name(Path::new("missing.parquet")).is_err());
    }

    #[test]
    fn a_file_that_was_cut_off_or_changed_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.shard");
        write_part(&path, &header(1), |out| (0..9).try_for_each(|row| out.row(&row))).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() - 1 {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(!is_complete(&path, &header(1)) && !is_whole(&path), "{length} bytes of {}", whole.len());
        }
        let damaged = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let error = Part::open(&path).unwrap().rows::<u32>().find_map(Result::err).unwrap();
            let message = error.to_string();
            assert!(
                message.ends_with("a.shard: its lines do not match its checksum; make the part again"),
                "{message}"
            );
        };
        let text = String::from_utf8(whole.clone()).unwrap();
        damaged(text.replace("\n4\n", "\n5\n").as_bytes());
        damaged(text.replace("\"abc\"", "\"abd\"").as_bytes());
        // Of the header, too: it has the names that the rows are about.
        for place in 0..whole.iter().position(|&byte| byte == b'\n').unwrap() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[place] ^= 1 << bit;
                std::fs::write(&path, flipped).unwrap();
                assert!(!is_whole(&path), "bit {bit} of byte {place}");
            }
        }
        std::fs::write(&path, "head\trelation\ttail\n").unwrap();
        assert!(Part::open(&path).err().unwrap().to_string().contains("is not a part"));
        assert!(!is_complete(&folder.path().join("nowhere.shard"), &header(1)));
    }
}
