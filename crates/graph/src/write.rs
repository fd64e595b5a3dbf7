//! Writes triples and data sets, in any of the formats that can be read. A file is written aside and renamed, so that
//! an existing file is always complete.

use super::format::{Compression, FileKind, Format, Out};
#[cfg(feature = "rdf")]
use super::read::RdfFormat;
use super::read::{
    GRAPH, LABELS, RELATION_LABELS, RELATION_PHRASES, TEST, TEST_WITH_UNSEEN, TRAIN, VALID, named_columns,
    part_of,
};
#[cfg(feature = "rdf")]
use super::read::{named_node, node, term};
use super::staged::Staged;
use super::{Dataset, GraphError, Names, Triple};
#[cfg(feature = "rdf")]
use oxrdf::{GraphName, QuadRef};
#[cfg(feature = "rdf")]
use oxrdfio::RdfSerializer;
#[cfg(feature = "parquet")]
use parquet::basic::ZstdLevel;
#[cfg(feature = "parquet")]
use parquet::data_type::{ByteArray, ByteArrayType};
#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;
#[cfg(feature = "parquet")]
use parquet::file::properties::WriterProperties;
#[cfg(feature = "parquet")]
use parquet::file::writer::SerializedFileWriter;
#[cfg(feature = "parquet")]
use parquet::schema::parser::parse_message_type;
use ruleguider_support::aside::{self, sweep_beside, write_aside};
use std::io;
use std::path::Path;
#[cfg(feature = "parquet")]
use std::sync::Arc;

#[cfg(feature = "parquet")]
/// Facts per row group of a Parquet file.
const ROW_GROUP: usize = 1 << 18;

/// Writes `facts` to `path`, in the format its ending names.
pub fn write_file(path: &Path, names: &Names, facts: &[Triple]) -> Result<(), GraphError> {
    let kind = FileKind::expect(path)?;
    check_names(path, kind.format, names, facts)?;
    let written = write_packed(path, |out| match kind.format {
        Format::Tabs => write_tabs(out, names, facts),
        Format::Commas => write_commas(out, names, facts),
        Format::Sif => write_sif(out, names, facts),
        #[cfg(feature = "rdf")]
        Format::Rdf(format) => write_rdf(out, format, names, facts),
        #[cfg(feature = "parquet")]
        Format::Parquet => write_parquet(out, names, facts).map_err(io::Error::other),
        #[cfg(not(all(feature = "rdf", feature = "parquet")))]
        Format::Rdf(_) | Format::Parquet => Err(io::ErrorKind::Unsupported.into()),
    });
    written.map_err(GraphError::writing(path))
}

/// Writes all splits of `dataset` into `folder`, each as `split.ENDING`, where `ending` is for example `tsv.gz`.
/// Files of an earlier data set, which would be read as part of this one, are removed. The folder has the earlier set or
/// this one, never a mixture ([`Staged`]).
pub fn write_dataset(folder: &Path, ending: &str, dataset: &Dataset) -> Result<(), GraphError> {
    let staged = Staged::within(folder)?;
    let write = |name: &str, facts: &[Triple]| {
        let path = staged.path().join(format!("{name}.{ending}"));
        write_file(&path, &dataset.names, facts).map_err(|error| staged.named(error))
    };
    let known = &dataset.known;
    if known.has_own_graph() {
        write(GRAPH, &known.facts)?;
    }
    write(TRAIN, &known.queries)?;
    write(VALID, &known.valid)?;
    write(TEST, &dataset.test)?;
    if !dataset.test_left_out.is_empty() {
        write(TEST_WITH_UNSEEN, &[&dataset.test[..], &dataset.test_left_out].concat())?;
    }
    let names = &dataset.names;
    let entities = names.labels.iter().map(|(id, label)| (id.0, names.entity(id), label));
    write_labels(staged.path(), LABELS, entities.collect()).map_err(|error| staged.named(error))?;
    let relations = names.relation_labels.iter().map(|(id, label)| (id.0, names.relation(id), label));
    write_labels(staged.path(), RELATION_LABELS, relations.collect()).map_err(|error| staged.named(error))?;
    let phrases = names.relation_phrases.iter().map(|(id, phrase)| (id.0, names.relation(id), phrase));
    write_labels(staged.path(), RELATION_PHRASES, phrases.collect()).map_err(|error| staged.named(error))?;
    staged.commit(|path| part_of(path).is_some())
}

/// Writes labels, each with an id and a name, in the order of the ids; no file if there are no labels.
fn write_labels(folder: &Path, file: &str, mut labels: Vec<(u32, &str, &str)>) -> Result<(), GraphError> {
    if labels.is_empty() {
        return Ok(());
    }
    labels.sort_unstable();
    let path = folder.join(format!("{file}.tsv"));
    let written = write_packed(&path, |out| {
        labels.iter().try_for_each(|(_, name, label)| writeln!(out, "{name}\t{label}"))
    });
    written.map_err(GraphError::writing(&path))
}

/// Refuses, before anything is written, names with a tab or a line break, which a TSV file cannot hold.
fn check_names(path: &Path, format: Format, names: &Names, facts: &[Triple]) -> Result<(), GraphError> {
    let breaks = |name: &str| name.contains(['\t', '\n', '\r']);
    let culprit = facts
        .iter()
        .flat_map(|&fact| words(names, fact))
        .find(|name| matches!(format, Format::Tabs | Format::Sif) && breaks(name));
    match culprit {
        Some(name) => Err(GraphError::file(
            path,
            "names without tabs or line breaks (or the extension .csv)",
            format!("{name:?}"),
        )),
        None => Ok(()),
    }
}

/// The names of a fact's head, relation and tail.
fn words(names: &Names, fact: Triple) -> [&str; 3] {
    [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)]
}

fn write_tabs(out: Out<'_>, names: &Names, facts: &[Triple]) -> io::Result<()> {
    // A first fact that looks like a header is preceded by a real header.
    if facts.first().is_some_and(|&fact| named_columns(words(names, fact)).is_some()) {
        writeln!(out, "head\trelation\ttail")?;
    }
    facts.iter().try_for_each(|&fact| {
        let [head, relation, tail] = words(names, fact);
        writeln!(out, "{head}\t{relation}\t{tail}")
    })
}

fn write_sif(out: Out<'_>, names: &Names, facts: &[Triple]) -> io::Result<()> {
    facts.iter().try_for_each(|&fact| {
        let [head, relation, tail] = words(names, fact);
        writeln!(out, "{head}\t{relation}\t{tail}")
    })
}

fn write_commas(out: Out<'_>, names: &Names, facts: &[Triple]) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(["head", "relation", "tail"])?;
    for &fact in facts {
        writer.write_record(words(names, fact))?;
    }
    writer.flush()
}

#[cfg(feature = "rdf")]
fn write_rdf(out: Out<'_>, format: RdfFormat, names: &Names, facts: &[Triple]) -> io::Result<()> {
    let mut serializer = RdfSerializer::from_format(format).for_writer(out);
    for fact in facts {
        let subject = node(names.entity(fact.head));
        let predicate = named_node(names.relation(fact.relation));
        let object = term(names.entity(fact.tail));
        let graph = GraphName::DefaultGraph;
        serializer.serialize_quad(QuadRef::new(&subject, &predicate, &object, &graph))?;
    }
    serializer.finish()?;
    Ok(())
}

#[cfg(feature = "parquet")]
/// Three text columns, compressed with zstd, that any Parquet reader can read.
fn write_parquet(out: Out<'_>, names: &Names, facts: &[Triple]) -> Result<(), ParquetError> {
    let schema = "message facts {
        REQUIRED BYTE_ARRAY head (STRING);
        REQUIRED BYTE_ARRAY relation (STRING);
        REQUIRED BYTE_ARRAY tail (STRING);
    }";
    let packing = parquet::basic::Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(packing).build();
    let schema = Arc::new(parse_message_type(schema)?);
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    for part in facts.chunks(ROW_GROUP) {
        let mut group = writer.next_row_group()?;
        for place in 0..3 {
            let name = |&fact: &Triple| ByteArray::from(words(names, fact)[place]);
            let values: Vec<ByteArray> = part.iter().map(name).collect();
            let mut column = group.next_column()?.expect("the schema has three columns");
            column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

/// Writes the file `path` with `fill`, completely or not at all; compressed if its name ends in `.gz` or `.zst`. What
/// killed processes left beside it is removed.
///
/// # Errors
/// If that fails. Nothing partial remains then, and the previous file at `path` is untouched.
pub fn write_packed(path: &Path, fill: impl FnOnce(Out<'_>) -> io::Result<()>) -> io::Result<()> {
    sweep_beside(path);
    write_aside(path, |out| Compression::of(path).pack(out, fill))
}

/// Checks that a file can be written at `path` before the work whose result it will hold, and creates missing parent
/// folders.
///
/// # Errors
/// If it cannot.
pub fn check_writable(path: &Path) -> Result<(), GraphError> {
    aside::check(path).map_err(GraphError::writing(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, read};

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_fails_half_way_leaves_the_old_one_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["text.txt", "text.gz", "text.zst"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "old").unwrap();
            let failed = write_packed(&path, |out| {
                out.write_all(b"half")?;
                Err(io::ErrorKind::StorageFull.into())
            });
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
        }
        assert_eq!(names_in(folder.path()), ["text.gz", "text.txt", "text.zst"]);
    }

    #[test]
    fn labels_of_entities_and_relations_are_written_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::create_dir(&from).unwrap();
        for (name, text) in [
            ("train.tsv", "Q1\tP22\tQ2\nQ2\tP25\tQ3\n"),
            ("valid.tsv", "Q1\tP25\tQ3\n"),
            ("test.tsv", "Q3\tP22\tQ1\n"),
            ("entity_labels.tsv", "Q1\tAda\nQ3\tBen\n"),
            ("relation_labels.tsv", "P22\tfather\nP25\tmother\n"),
            (
                "relation_phrases.tsv",
                "P22\t{s}'s father is {o}\nP25\t{s} is a child of {o}\t{o} is the mother of {s}\n",
            ),
        ] {
            std::fs::write(from.join(name), text).unwrap();
        }
        let options = ReadOptions::default();
        let dataset = read(&from, &options).unwrap();
        write_dataset(&to, "csv.gz", &dataset).unwrap();
        for file in ["entity_labels.tsv", "relation_labels.tsv", "relation_phrases.tsv"] {
            let text = |folder: &Path| std::fs::read_to_string(folder.join(file)).unwrap();
            assert_eq!(text(&to), text(&from), "{file}");
        }
        let again = read(&to, &options).unwrap();
        assert_eq!(again.names.relation_labels, dataset.names.relation_labels);
        assert_eq!(again.names.relation_labels.len(), 2);
        // A data set without labels leaves no labels of an earlier one behind.
        let bare = Names {
            labels: Default::default(),
            relation_labels: Default::default(),
            relation_phrases: Default::default(),
            ..(*dataset.names).clone()
        };
        write_dataset(&to, "csv.gz", &Dataset { names: Arc::new(bare), ..dataset }).unwrap();
        assert_eq!(names_in(&to), ["splits.sha256", "test.csv.gz", "train.csv.gz", "valid.csv.gz"]);
    }

    #[test]
    fn a_place_is_tried_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        check_writable(&folder.path().join("new/folders/rules.tsv")).unwrap();
        assert!(names_in(&folder.path().join("new/folders")).is_empty());
        std::fs::write(folder.path().join("file"), "old").unwrap();
        check_writable(&folder.path().join("file")).unwrap();
        assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"old");
        for taken in ["file/rules.tsv", "new"] {
            let reported = check_writable(&folder.path().join(taken)).unwrap_err().to_string();
            assert!(reported.ends_with(&format!("{taken}: cannot be written")), "{reported}");
        }
    }
}
