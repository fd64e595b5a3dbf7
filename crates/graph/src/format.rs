//! The format and compression of a file, recognised by its ending.

use super::GraphError;
use super::read::RdfFormat;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use zstd::zstd_safe::CParameter;

/// The destination of a file's text.
pub(super) type Out<'a> = &'a mut (dyn Write + Send);

/// The format of triples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `head<TAB>relation<TAB>tail`
    Tabs,
    /// `head,relation,tail`, quoted where needed, with a header or without
    Commas,
    /// `node relation node …`, separated by tabs or spaces, as Cytoscape writes it
    Sif,
    /// One of the RDF family.
    Rdf(RdfFormat),
    /// Columns, recognised by name or order.
    Parquet,
}

impl Format {
    /// A description of a file in this format, for messages.
    pub(super) fn words(self) -> &'static str {
        match self {
            Format::Tabs => "a TSV file",
            Format::Commas => "a CSV file",
            Format::Sif => "a SIF file",
            Format::Rdf(_) => "an RDF file",
            Format::Parquet => "a Parquet file",
        }
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    Plain,
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
    /// `.bz2`
    Bzip2,
}

/// The supported endings, for messages and help.
pub const ENDINGS: &str = ".txt, .tsv, .csv, .sif, .nt, .ttl, .nq, .trig, .rdf, .owl, .n3, .parquet, each also with .gz, .zst or .bz2";

/// What a file's ending says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// The format of the triples.
    pub format: Format,
    /// How the file is compressed.
    pub compression: Compression,
}

impl FileKind {
    /// What the ending of `path` says, if it is one of [`ENDINGS`].
    pub fn of(path: &Path) -> Option<Self> {
        let compression = Compression::of(path);
        let stem = match compression {
            Compression::Plain => path.file_name()?,
            Compression::Gzip | Compression::Zstd | Compression::Bzip2 => path.file_stem()?,
        };
        let format = match Path::new(stem).extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" | "tsv" => Format::Tabs,
            "csv" => Format::Commas,
            "sif" => Format::Sif,
            "parquet" => Format::Parquet,
            "owl" => Format::Rdf(RdfFormat::RdfXml),
            other => Format::Rdf(RdfFormat::from_extension(other)?),
        };
        Some(Self { format, compression })
    }

    /// The kind of files that end in `ending`: `tsv`, `csv.gz`, `nt.zst`.
    ///
    /// # Errors
    /// If there is no such kind; the message names the supported ones.
    pub fn named(ending: &str) -> Result<Self, String> {
        let found = Self::of(Path::new(&format!("data.{}", ending.trim_start_matches('.'))));
        found.ok_or_else(|| format!("expected one of the extensions {ENDINGS}, found {ending}"))
    }

    /// The ending that [`named`](Self::named) reads.
    pub fn ending(self) -> String {
        let format = match self.format {
            Format::Tabs => "tsv",
            Format::Commas => "csv",
            Format::Sif => "sif",
            Format::Rdf(format) => format.file_extension(),
            Format::Parquet => "parquet",
        };
        let packed = match self.compression {
            Compression::Plain => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
            Compression::Bzip2 => ".bz2",
        };
        format!("{format}{packed}")
    }

    /// Whether this program was built with the feature that such files need.
    fn is_built(self) -> bool {
        match self.format {
            Format::Rdf(_) => cfg!(feature = "rdf"),
            Format::Parquet => cfg!(feature = "parquet"),
            Format::Tabs | Format::Commas | Format::Sif => true,
        }
    }

    /// The error that this program was built without a format.
    pub(super) fn not_built(path: &Path, format: Format) -> GraphError {
        let found = format!("{}, which this program was built without", format.words());
        GraphError::file(path, "a TSV or CSV file, or a program with more features", found)
    }

    /// An error if the ending of `path` is that of a format that this program was built without.
    pub(super) fn expect_built(path: &Path) -> Result<(), GraphError> {
        match Self::of(path).filter(|kind| !kind.is_built()) {
            Some(kind) => Err(Self::not_built(path, kind.format)),
            None => Ok(()),
        }
    }

    /// Like [`of`](Self::of), with an error that names the endings.
    pub fn expect(path: &Path) -> Result<Self, GraphError> {
        Self::expect_built(path)?;
        Self::of(path).ok_or_else(|| {
            let found = match path.extension() {
                Some(ending) => format!(".{}", ending.to_string_lossy()),
                None => "no extension".to_owned(),
            };
            GraphError::file(path, format!("one of the extensions {ENDINGS}"), found)
        })
    }
}

impl Compression {
    /// What the ending of `path` says.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            Some("bz2") => Compression::Bzip2,
            _ => Compression::Plain,
        }
    }

    /// Opens `path` for reading, decompressing on the fly.
    pub fn open(self, path: &Path) -> Result<Box<dyn Read + Send>, GraphError> {
        let unpacked = File::open(path).and_then(|file| self.unpack(file));
        unpacked.map_err(GraphError::reading(path))
    }

    /// The decompressed content of `file`.
    pub fn unpack(self, file: File) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::Plain => Box::new(file),
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
            Compression::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(file)),
        })
    }

    /// Lets `fill` write to `out`, compressing on the fly.
    pub(super) fn pack(
        self,
        out: Out<'_>,
        fill: impl FnOnce(Out<'_>) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        match self {
            Compression::Plain => fill(out),
            Compression::Gzip => {
                let mut packer = flate2::write::GzEncoder::new(out, flate2::Compression::default());
                fill(&mut packer)?;
                packer.finish().map(drop)
            }
            Compression::Bzip2 => {
                let mut packer = bzip2::write::BzEncoder::new(out, bzip2::Compression::default());
                fill(&mut packer)?;
                packer.finish().map(drop)
            }
            Compression::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(out, 0)?;
                let mut packer = ZstdPacker { encoder, held: Some(Vec::new()) };
                fill(&mut packer)?;
                packer.finish()
            }
        }
    }
}

/// Up to so many bytes, zstd works with smaller tables.
const LITTLE: usize = 1 << 18;
/// The logarithm of their entries. With more, clearing them takes longer than compressing a few kilobytes.
const LITTLE_TABLE: u32 = 12;

/// Compresses by zstd. A little text is held back until its length is known: with it, zstd does not prepare nearly a
/// megabyte of tables for a few kilobytes.
struct ZstdPacker<'a> {
    encoder: zstd::stream::write::Encoder<'static, Out<'a>>,
    /// The text so far, unless it was too long to be held.
    held: Option<Vec<u8>>,
}

impl ZstdPacker<'_> {
    fn finish(mut self) -> std::io::Result<()> {
        if let Some(held) = self.held {
            // Level 1 has the smallest tables; of a few kilobytes it leaves hardly more than the default level.
            self.encoder.set_parameter(CParameter::CompressionLevel(1))?;
            self.encoder.set_parameter(CParameter::HashLog(LITTLE_TABLE))?;
            self.encoder.set_pledged_src_size(Some(held.len() as u64))?;
            self.encoder.write_all(&held)?;
        }
        self.encoder.finish().map(drop)
    }
}

impl Write for ZstdPacker<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.held.take() {
            Some(mut held) if held.len() + bytes.len() <= LITTLE => {
                held.extend_from_slice(bytes);
                self.held = Some(held);
                return Ok(bytes.len());
            }
            Some(held) => self.encoder.write_all(&held)?,
            None => {}
        }
        self.encoder.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if let Some(held) = self.held.take() {
            self.encoder.write_all(&held)?;
        }
        self.encoder.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bzip2_packs_is_unpacked_stream_after_stream() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.bz2");
        let mut file = File::create(&path).unwrap();
        for text in [b"one\n".as_slice(), b"two\n"] {
            Compression::Bzip2.pack(&mut file, |out| out.write_all(text)).unwrap();
        }
        let mut read = String::new();
        Compression::Bzip2.open(&path).unwrap().read_to_string(&mut read).unwrap();
        // Dumps are packed in pieces by several processes.
        assert_eq!(read, "one\ntwo\n");
    }

    #[test]
    fn what_zstd_packs_is_unpacked_whatever_its_length_and_its_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.zst");
        for length in [0, 1, LITTLE - 1, LITTLE, LITTLE + 1, 3 * LITTLE] {
            let text: Vec<u8> = (0..length).map(|at| (at / 7) as u8).collect();
            for (piece, flushed) in [(LITTLE / 3, false), (LITTLE / 3, true), (usize::MAX, false)] {
                let mut file = File::create(&path).unwrap();
                let fill = |out: Out<'_>| {
                    text.chunks(piece).try_for_each(|piece| {
                        out.write_all(piece)?;
                        if flushed { out.flush() } else { Ok(()) }
                    })
                };
                Compression::Zstd.pack(&mut file, fill).unwrap();
                let mut read = Vec::new();
                Compression::Zstd.open(&path).unwrap().read_to_end(&mut read).unwrap();
                assert!(read == text, "{length} bytes, {piece} at a time");
            }
        }
    }

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
        assert_eq!(kind("network.sif.bz2").map(|k| k.format), Some(Format::Sif));
        for ending in ["tsv", "csv.gz", "nt.zst", "ttl", "parquet", "nt.bz2", "sif"] {
            assert_eq!(FileKind::named(ending).unwrap().ending(), ending);
        }
        assert!(FileKind::named("docx").unwrap_err().contains("expected one of the extensions .txt"));
        // Only what this program was built with is read and written; the error says what is missing.
        for (ending, is_built) in [
            ("tsv", true),
            ("csv.gz", true),
            ("ttl", cfg!(feature = "rdf")),
            ("parquet", cfg!(feature = "parquet")),
        ] {
            let expected = FileKind::expect(Path::new(&format!("facts.{ending}")));
            assert_eq!(expected.is_ok(), is_built, "{ending}");
            assert!(expected.err().is_none_or(|error| error.to_string().contains("was built without")));
        }
        assert_eq!(kind("README"), None);
        assert_eq!(kind("t.gz"), None);
        assert_eq!(kind("t.docx"), None);
    }
}
