//! Which format and compression a file has, told by its ending.

use super::GraphError;
use oxrdfio::RdfFormat;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

/// How triples are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `head<TAB>relation<TAB>tail`
    Tabs,
    /// `head,relation,tail`, quoted where needed, with a header or without
    Commas,
    /// One of the RDF family.
    Rdf(RdfFormat),
    /// Columns, told by their names or their order.
    Parquet,
}

impl Format {
    /// What a file of it is, for messages.
    pub(super) fn words(self) -> &'static str {
        match self {
            Format::Tabs => "a file of tabs",
            Format::Commas => "a file of commas",
            Format::Rdf(_) => "a file of RDF",
            Format::Parquet => "a Parquet file",
        }
    }
}

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    Plain,
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

/// The endings that are understood, for messages and help.
pub const ENDINGS: &str =
    ".txt, .tsv, .csv, .nt, .ttl, .nq, .trig, .rdf, .owl, .n3, .parquet, each also with .gz or .zst";

/// What an ending says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// How triples are written down.
    pub format: Format,
    /// How the file is packed.
    pub compression: Compression,
}

impl FileKind {
    /// What the ending of `path` says, if it is one of [`ENDINGS`].
    pub fn of(path: &Path) -> Option<Self> {
        let compression = Compression::of(path);
        let stem = match compression {
            Compression::Plain => path.file_name()?,
            Compression::Gzip | Compression::Zstd => path.file_stem()?,
        };
        let format = match Path::new(stem).extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" | "tsv" => Format::Tabs,
            "csv" => Format::Commas,
            "parquet" => Format::Parquet,
            "owl" => Format::Rdf(RdfFormat::RdfXml),
            other => Format::Rdf(RdfFormat::from_extension(other)?),
        };
        Some(Self { format, compression })
    }

    /// Like [`of`](Self::of), with an error that names the endings.
    pub fn expect(path: &Path) -> Result<Self, GraphError> {
        Self::of(path).ok_or_else(|| {
            let found = match path.extension() {
                Some(ending) => format!(".{}", ending.to_string_lossy()),
                None => "no ending".to_owned(),
            };
            GraphError::file(path, format!("an ending among {ENDINGS}"), found)
        })
    }
}

impl Compression {
    /// What the ending of `path` says.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            _ => Compression::Plain,
        }
    }

    /// Opens `path` for reading, unpacking on the way.
    pub fn open(self, path: &Path) -> Result<Box<dyn Read + Send>, GraphError> {
        let unpacked = File::open(path).and_then(|file| self.unpack(file));
        unpacked.map_err(GraphError::reading(path))
    }

    /// What is packed in `file`.
    pub fn unpack(self, file: File) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::Plain => Box::new(file),
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
        })
    }

    /// Wraps `file` so that what is written comes out packed; `finish` must be called at the end.
    pub(super) fn pack(self, file: File) -> std::io::Result<Packer> {
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok(match self {
            Compression::Plain => Packer::Plain(file),
            Compression::Gzip => {
                Packer::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default()))
            }
            Compression::Zstd => Packer::Zstd(zstd::stream::write::Encoder::new(file, 0)?),
        })
    }
}

/// A writer that packs.
pub(super) enum Packer {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Packer {
    /// Writes what is still held back and makes it durable.
    pub(super) fn finish(self) -> std::io::Result<()> {
        let buffered = match self {
            Packer::Plain(writer) => writer,
            Packer::Gzip(writer) => writer.finish()?,
            Packer::Zstd(writer) => writer.finish()?,
        };
        buffered.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Packer::Plain(writer) => writer,
            Packer::Gzip(writer) => writer,
            Packer::Zstd(writer) => writer,
        }
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_format_and_compression() {
        let kind = |name: &str| FileKind::of(Path::new(name));
        let tabs = |compression| Some(FileKind { format: Format::Tabs, compression });
        assert_eq!(kind("a/train.txt"), tabs(Compression::Plain));
        assert_eq!(kind("train.tsv.gz"), tabs(Compression::Gzip));
        assert_eq!(kind("x.y.TSV.zst"), tabs(Compression::Zstd));
        assert_eq!(kind("t.csv").map(|k| k.format), Some(Format::Commas));
        assert_eq!(kind("t.nt.gz").map(|k| k.format), Some(Format::Rdf(RdfFormat::NTriples)));
        assert_eq!(kind("t.ttl").map(|k| k.format), Some(Format::Rdf(RdfFormat::Turtle)));
        assert_eq!(kind("t.rdf").map(|k| k.format), Some(Format::Rdf(RdfFormat::RdfXml)));
        assert_eq!(kind("t.parquet").map(|k| k.format), Some(Format::Parquet));
        assert_eq!(kind("README"), None);
        assert_eq!(kind("t.gz"), None);
        assert_eq!(kind("t.docx"), None);
    }
}
