//! Writes triples and data sets, in any of the formats that can be read. A file is written aside and renamed, so that
//! an existing file is always complete.

use super::format::{Compression, FileKind, Format, Out};
#[cfg(feature = "rdf")]
use super::read::RdfFormat;
use super::read::{
    GRAPH, LABELS, NEGATIVES, RELATION_LABELS, RELATION_PHRASES, SCHEMA, TEST, TEST_NEGATIVES,
    TEST_WITH_UNSEEN, TRAIN, TYPES, VALID, VALID_NEGATIVES, begins_like_header, part_of,
};
#[cfg(feature = "rdf")]
use super::read::{named_node, node, term};
use super::staged::Staged;
use super::{Dataset, Direction, EntityId, GraphError, Names, Notes, RelationId, Triple, TypeId};
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
    write_noted(path, names, facts, &Notes::default())
}

/// Writes the facts of `dataset` to `path`, with what is said about them where the format [can hold it](lost_in).
///
/// # Errors
/// As [`write_file`].
pub fn write_undivided(path: &Path, dataset: &Dataset) -> Result<(), GraphError> {
    write_noted(path, &dataset.names, &dataset.known.facts, &dataset.known.notes)
}

/// The same with what is said about the facts, in the formats that [can hold it](holds_notes).
fn write_noted(path: &Path, names: &Names, facts: &[Triple], notes: &Notes) -> Result<(), GraphError> {
    let kind = FileKind::expect(path)?;
    check_names(path, kind.format, names, facts)?;
    let columns = NoteColumns::of(notes);
    let written = write_packed(path, |out| match kind.format {
        Format::Tabs if columns.any() => columns.write_tabs(out, names, facts),
        Format::Commas if columns.any() => columns.write_commas(out, names, facts),
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
    let write = |name: &str, facts: &[Triple], notes: &Notes| {
        let path = staged.path().join(format!("{name}.{ending}"));
        write_noted(&path, &dataset.names, facts, notes).map_err(|error| staged.named(error))
    };
    let known = &dataset.known;
    if known.has_own_graph() {
        write(GRAPH, &known.facts, &known.notes)?;
    }
    write(TRAIN, &known.queries, &known.notes)?;
    write(VALID, &known.valid, &known.notes)?;
    write(TEST, &dataset.test, &dataset.test_notes)?;
    if !dataset.test_left_out.is_empty() {
        let with_unseen = [&dataset.test[..], &dataset.test_left_out].concat();
        write(TEST_WITH_UNSEEN, &with_unseen, &dataset.test_notes)?;
    }
    let negatives = [
        (NEGATIVES, &known.negatives),
        (VALID_NEGATIVES, &known.valid_negatives),
        (TEST_NEGATIVES, &dataset.test_negatives),
    ];
    for (name, facts) in negatives.into_iter().filter(|(_, facts)| !facts.is_empty()) {
        write(name, facts, &Notes::default())?;
    }
    write_types(staged.path(), &dataset.names).map_err(|error| staged.named(error))?;
    let names = &dataset.names;
    let entities = names.labels.iter().map(|(id, label)| (id.0, names.entity(id), label));
    write_labels(staged.path(), LABELS, entities.collect()).map_err(|error| staged.named(error))?;
    let relations = names.relation_labels.iter().map(|(id, label)| (id.0, names.relation(id), label));
    write_labels(staged.path(), RELATION_LABELS, relations.collect()).map_err(|error| staged.named(error))?;
    let phrases = names.relation_phrases.iter().map(|(id, phrase)| (id.0, names.relation(id), phrase));
    write_labels(staged.path(), RELATION_PHRASES, phrases.collect()).map_err(|error| staged.named(error))?;
    staged.commit(|path| part_of(path).is_some())
}

/// What a folder or file in the format of `ending` does not keep of `dataset`, in words; `None` if nothing is lost. A
/// single file has facts alone, and what is said about them.
pub fn lost_in(ending: &Path, dataset: &Dataset, is_folder: bool) -> Option<String> {
    let names = &dataset.names;
    let notes = dataset.known.notes.len() + dataset.test_notes.len();
    let negatives = [&dataset.known.negatives, &dataset.known.valid_negatives, &dataset.test_negatives];
    let negatives: usize = negatives.iter().map(|split| split.len()).sum();
    let holds_notes = holds_notes(ending);
    // What the names themselves say is in them still.
    let is_said = |id: EntityId, of: TypeId| {
        names.entity(id).strip_prefix(names.types.name(of)).is_some_and(|rest| rest.starts_with(':'))
    };
    let types = names.types.iter().filter(|&(id, of)| !is_said(id, of)).count();
    let is_short =
        |id: EntityId, label: &str| names.prefixes.shorten(names.entity(id)).as_deref() == Some(label);
    let labels = names.labels.iter().filter(|&(id, label)| !is_short(id, label)).count();
    let lost = [
        (notes, "notes of facts (confidence, source, time)", holds_notes),
        (negatives, "facts known to be false", is_folder),
        (types, "types of entities", is_folder),
        (labels, "labels", is_folder),
        (names.attributes.len(), "attributes", false),
    ];
    let words: Vec<String> = lost
        .into_iter()
        .filter(|(count, _, is_kept)| *count > 0 && !is_kept)
        .map(|(count, what, _)| format!("{count} {what}"))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Whether files in this format have columns for what is said about facts.
fn holds_notes(path: &Path) -> bool {
    FileKind::of(path).is_some_and(|kind| matches!(kind.format, Format::Tabs | Format::Commas))
}

/// The columns of a table beside those of the facts: of what is said about any of them.
struct NoteColumns<'a> {
    notes: &'a Notes,
    columns: Vec<&'static str>,
}

impl<'a> NoteColumns<'a> {
    fn of(notes: &'a Notes) -> Self {
        let all = [
            ("confidence", notes.has_confidence()),
            ("source", notes.has_source()),
            ("time", notes.has_time()),
        ];
        Self { notes, columns: all.into_iter().filter_map(|(name, has)| has.then_some(name)).collect() }
    }

    fn any(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The names of the columns, beginning with those of the facts.
    fn header(&self) -> Vec<&'static str> {
        ["head", "relation", "tail"].into_iter().chain(self.columns.iter().copied()).collect()
    }

    fn row(&self, names: &Names, fact: Triple) -> Vec<String> {
        let note = self.notes.of(fact);
        let beside = self.columns.iter().map(|&column| match column {
            "confidence" => note.confidence.map_or_else(String::new, |confidence| confidence.to_string()),
            "source" => note.source.unwrap_or_default().to_owned(),
            _ => note.time.unwrap_or_default().to_owned(),
        });
        words(names, fact).into_iter().map(str::to_owned).chain(beside).collect()
    }

    fn write_tabs(&self, out: Out<'_>, names: &Names, facts: &[Triple]) -> io::Result<()> {
        writeln!(out, "{}", self.header().join("\t"))?;
        facts.iter().try_for_each(|&fact| {
            // A source is a text of any kind; what would end the column becomes a space.
            let row = self
                .row(names, fact)
                .iter()
                .map(|cell| cell.replace(['\t', '\n', '\r'], " "))
                .collect::<Vec<_>>();
            writeln!(out, "{}", row.join("\t"))
        })
    }

    fn write_commas(&self, out: Out<'_>, names: &Names, facts: &[Triple]) -> io::Result<()> {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(self.header())?;
        facts.iter().try_for_each(|&fact| writer.write_record(self.row(names, fact)))?;
        writer.flush()
    }
}

/// Writes the types of entities, and what is declared about types and relations; no files if there is nothing.
fn write_types(folder: &Path, names: &Names) -> Result<(), GraphError> {
    let types = &names.types;
    let is_clean = |text: &str| !text.contains(['\t', '\n', '\r']) && !text.is_empty();
    let write = |part: &str, rows: Vec<[&str; 3]>, width: usize| {
        let rows: Vec<[&str; 3]> =
            rows.into_iter().filter(|row| row[..width].iter().all(|text| is_clean(text))).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let path = folder.join(format!("{part}.tsv"));
        let written = write_packed(&path, |out| {
            rows.iter().try_for_each(|row| writeln!(out, "{}", row[..width].join("\t")))
        });
        written.map_err(GraphError::writing(&path))
    };
    // A type with a bar in its name would be read as two.
    let of = types.iter().map(|(entity, of)| [names.entity(entity), types.name(of), ""]);
    write(TYPES, of.filter(|row| !row[1].contains('|')).collect(), 2)?;
    let mut schema = Vec::new();
    for id in 0..names.relations.len() as u32 {
        let relation = RelationId(id);
        for (word, side) in [("domain", Direction::Forward), ("range", Direction::Inverse)] {
            schema.extend(
                types.declared(relation, side).map(|of| [names.relation(relation), word, types.name(of)]),
            );
        }
    }
    for id in (0..types.len() as u32).map(TypeId) {
        schema.extend(types.parents(id).map(|parent| [types.name(id), "subclass_of", types.name(parent)]));
    }
    write(SCHEMA, schema, 3)
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
    if facts.first().is_some_and(|&fact| begins_like_header(words(names, fact), facts)) {
        writeln!(out, "head\trelation\ttail")?;
    }
    facts.iter().try_for_each(|&fact| {
        let [head, relation, tail] = words(names, fact);
        writeln!(out, "{head}\t{relation}\t{tail}")
    })
}

fn write_sif(out: Out<'_>, names: &Names, facts: &[Triple]) -> io::Result<()> {
    if facts.first().is_some_and(|&fact| begins_like_header(words(names, fact), facts)) {
        writeln!(out, "source\tinteraction\ttarget")?;
    }
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
    fn what_is_said_beside_facts_is_written_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::create_dir(&from).unwrap();
        for (name, text) in [
            ("train.csv", "head,relation,tail,confidence,source\nage,knows,sex,0.5,\"a, b\"\nb,knows,c,,\n"),
            ("valid.csv", "head,relation,tail\nc,knows,age\n"),
            ("test.csv", "head,relation,tail,time\nb,knows,age,2020\n"),
            ("negatives.tsv", "b\tknows\tb\n"),
            ("types.tsv", "b\tPerson\nb\tAuthor\n"),
            ("schema.tsv", "knows\tdomain\tPerson\nAuthor\tsubclass_of\tPerson\n"),
        ] {
            std::fs::write(from.join(name), text).unwrap();
        }
        let options = ReadOptions::default();
        let dataset = read(&from, &options).unwrap();
        for ending in ["tsv", "csv.gz"] {
            write_dataset(&to, ending, &dataset).unwrap();
            let again = read(&to, &options).unwrap();
            assert_eq!((&again.known.facts, &again.test), (&dataset.known.facts, &dataset.test), "{ending}");
            assert_eq!((&again.known.notes, &again.test_notes), (&dataset.known.notes, &dataset.test_notes));
            assert_eq!(again.known.negatives, dataset.known.negatives);
            let (ours, theirs) = (&again.names.types, &dataset.names.types);
            assert_eq!((ours.typed(), ours.declarations()), (theirs.typed(), theirs.declarations()));
            assert_eq!(ours.kinds(ours.find("Person").unwrap()).len(), 2);
            assert_eq!(lost_in(Path::new(&format!("x.{ending}")), &dataset, true), None);
        }
        let lost = lost_in(Path::new("x.sif"), &dataset, true).unwrap();
        assert_eq!(lost, "2 notes of facts (confidence, source, time)");
        let lost = lost_in(Path::new("x.tsv"), &dataset, false).unwrap();
        assert!(lost.contains("1 facts known to be false, 2 types of entities"), "{lost}");
        // A first fact that could be taken for a header is not, however many follow.
        let many: String = (0..20).map(|id| format!("e{}\tr\te{}\n", id % 5, id % 7)).collect();
        let path = folder.path().join("many.tsv");
        std::fs::write(&path, format!("head\trelation\ttail\ndrug\teffect\tdisease\n{many}")).unwrap();
        let (names, facts, _) = crate::read_file(&path, &options).unwrap();
        for back in ["back.tsv", "back.sif", "back.csv"] {
            let back = folder.path().join(back);
            write_file(&back, &names, &facts).unwrap();
            assert_eq!(crate::read_file(&back, &options).unwrap().1.len(), 21);
        }
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
