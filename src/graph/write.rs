//! Writes triples and data sets, in any of the formats that can be read. A file is written aside and renamed, so
//! that one which is there is whole.

use super::format::{FileKind, Format, Packer};
use super::read::{named_node, node, term};
use super::{Compression, Dataset, GraphError, Names, Triple};
use oxrdf::{GraphName, QuadRef};
use oxrdfio::{RdfFormat, RdfSerializer};
use parquet::basic::ZstdLevel;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Facts that stand together in a Parquet file.
const ROW_GROUP: usize = 1 << 18;

/// Writes `facts` to `path`, in the format its ending names.
pub fn write_file(path: &Path, names: &Names, facts: &[Triple]) -> Result<(), GraphError> {
    let kind = FileKind::expect(path)?;
    check_names(path, kind.format, names, facts)?;
    write_aside(path, kind.compression, |out| match kind.format {
        Format::Tabs => write_tabs(out, names, facts),
        Format::Commas => write_commas(out, names, facts),
        Format::Rdf(format) => write_rdf(out, format, names, facts),
        Format::Parquet => write_parquet(out, names, facts).map_err(io::Error::other),
    })
}

/// Writes all splits of `dataset` into `folder`, each as `split.ENDING`, `ending` being such as `tsv.gz`.
pub fn write_dataset(folder: &Path, ending: &str, dataset: &Dataset) -> Result<(), GraphError> {
    std::fs::create_dir_all(folder).map_err(GraphError::writing(folder))?;
    let write = |name: &str, facts: &[Triple]| {
        write_file(&folder.join(format!("{name}.{ending}")), &dataset.names, facts)
    };
    let known = &dataset.known;
    if known.has_own_graph() {
        write("graph", &known.facts)?;
    }
    write("train", &known.queries)?;
    write("valid", &known.valid)?;
    write("test", &dataset.test)?;
    if !dataset.test_left_out.is_empty() {
        write("test_with_unseen", &[&dataset.test[..], &dataset.test_left_out].concat())?;
    }
    if dataset.names.labels.is_empty() { Ok(()) } else { write_labels(folder, &dataset.names) }
}

fn write_labels(folder: &Path, names: &Names) -> Result<(), GraphError> {
    let mut labels: Vec<_> = names.labels.iter().collect();
    labels.sort_unstable();
    write_aside(&folder.join("entity_labels.tsv"), Compression::Plain, |out| {
        labels.iter().try_for_each(|(id, label)| writeln!(out, "{}\t{label}", names.entity(**id)))
    })
}

/// A name with a tab or a line break cannot stand in a file of tabs: refused before anything is written.
fn check_names(path: &Path, format: Format, names: &Names, facts: &[Triple]) -> Result<(), GraphError> {
    let breaks = |name: &str| name.contains(['\t', '\n', '\r']);
    let culprit =
        facts.iter().flat_map(|&fact| words(names, fact)).find(|name| format == Format::Tabs && breaks(name));
    match culprit {
        Some(name) => Err(GraphError::file(
            path,
            "names without tabs or line breaks (or .csv as the ending)",
            format!("{name:?}"),
        )),
        None => Ok(()),
    }
}

/// The names of a fact's head, relation and tail.
fn words(names: &Names, fact: Triple) -> [&str; 3] {
    [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)]
}

fn write_tabs(out: &mut Packer, names: &Names, facts: &[Triple]) -> io::Result<()> {
    facts.iter().try_for_each(|&fact| {
        let [head, relation, tail] = words(names, fact);
        writeln!(out, "{head}\t{relation}\t{tail}")
    })
}

fn write_commas(out: &mut Packer, names: &Names, facts: &[Triple]) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(["head", "relation", "tail"])?;
    for &fact in facts {
        writer.write_record(words(names, fact))?;
    }
    writer.flush()
}

fn write_rdf(out: &mut Packer, format: RdfFormat, names: &Names, facts: &[Triple]) -> io::Result<()> {
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

/// Three columns of text, packed by zstd; what reads Parquet reads it.
fn write_parquet(out: &mut Packer, names: &Names, facts: &[Triple]) -> Result<(), ParquetError> {
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

/// Lets `fill` write a file beside `path`, then puts it in its place: nobody ever sees half of it.
fn write_aside(
    path: &Path,
    compression: Compression,
    fill: impl FnOnce(&mut Packer) -> io::Result<()>,
) -> Result<(), GraphError> {
    let aside = beside(path);
    let written = File::create(&aside).and_then(|file| {
        let mut packer = compression.pack(file)?;
        fill(&mut packer)?;
        packer.finish()?;
        std::fs::rename(&aside, path)
    });
    written.map_err(|error| {
        // The half-written file is of no use to anyone; if it cannot be removed either, the first error tells more.
        let _ = std::fs::remove_file(&aside);
        GraphError::writing(path)(error)
    })
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.partial", std::process::id()))
}
