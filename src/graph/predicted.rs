//! Writes predicted facts, each with its probability and its reason, as a stream.
//!
//! Memory is bounded: no more than a row group of a Parquet file is held. A file is written aside and renamed.

use super::format::{FileKind, Format, Out};
use super::read::{named_node, node, term};
use super::write::write_packed;
use super::{GraphError, Names};
use oxrdf::{GraphName, QuadRef};
use oxrdfio::{RdfFormat, RdfSerializer};
use parquet::basic::ZstdLevel;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Facts per row group of a Parquet file.
const ROW_GROUP: usize = 1 << 16;
/// The column names, in formats that have them.
const COLUMNS: [&str; 7] = ["head", "relation", "tail", "probability", "score", "held_out", "reason"];
/// The endings of the formats that predicted facts can be written in.
const ENDINGS: &str = ".tsv, .txt, .csv, .parquet, .nt, .ttl, .nq, .trig, .jsonl, each also with .gz or .zst";

/// A predicted fact.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedFact {
    /// Where the relation starts.
    pub head: String,
    /// The relation.
    pub relation: String,
    /// Where it ends.
    pub tail: String,
    /// Its probability, if known.
    pub probability: Option<f64>,
    /// Its score.
    pub score: f64,
    /// The split that holds it out; empty if the data does not have it.
    pub held_out: &'static str,
    /// Why, in one line.
    pub reason: String,
}

/// Checks, before the work starts, that facts with these names can be written to `path`.
///
/// # Errors
/// If the ending is unknown, or names cannot be written to such a file.
pub fn check_predicted(path: &Path, names: &Names) -> Result<(), GraphError> {
    let kind = kind_of(path)?;
    let breaks = |name: &&str| name.contains(['\t', '\n', '\r']);
    let entities = (0..names.entities.len() as u32).map(|id| names.entities.name(id));
    let relations = (0..names.relations.len() as u32).map(|id| names.relations.name(id));
    let culprit = entities.chain(relations).find(breaks).filter(|_| kind.format == Format::Tabs);
    match culprit {
        Some(name) => {
            let expected = "names without tabs or line breaks (or the extension .csv)";
            Err(GraphError::file(path, expected, format!("{name:?}")))
        }
        None => Ok(()),
    }
}

/// The kind of the file at `path`. Of the RDF formats, only those that allow comment lines are accepted.
fn kind_of(path: &Path) -> Result<FileKind, GraphError> {
    let lines = [RdfFormat::NTriples, RdfFormat::NQuads, RdfFormat::Turtle, RdfFormat::TriG];
    let fits = |kind: &FileKind| !matches!(kind.format, Format::Rdf(format) if !lines.contains(&format));
    FileKind::of(path).filter(fits).ok_or_else(|| {
        let found = path.extension().map_or("no extension".into(), |ending| ending.to_string_lossy());
        GraphError::file(path, format!("one of the extensions {ENDINGS}"), found)
    })
}

/// Writes `facts` to `path` in their order, in the format its ending names. Returns how many there were.
///
/// # Errors
/// If the file cannot be written, or the iterator fails.
pub fn write_predicted(
    path: &Path,
    facts: &mut dyn Iterator<Item = io::Result<PredictedFact>>,
) -> Result<u64, GraphError> {
    let kind = kind_of(path)?;
    let mut count = 0;
    let mut counted = facts.inspect(|fact| count += u64::from(fact.is_ok()));
    let written = write_packed(path, |out| match kind.format {
        Format::Tabs => tabs(out, &mut counted),
        Format::Commas => commas(out, &mut counted),
        Format::Rdf(_) => triples(out, &mut counted),
        Format::Parquet => columns(out, &mut counted),
    });
    written.map_err(GraphError::writing(path))?;
    Ok(count)
}

/// A stream of facts.
type Facts<'a> = &'a mut dyn Iterator<Item = io::Result<PredictedFact>>;

fn probability_text(probability: Option<f64>) -> String {
    probability.map_or_else(String::new, |probability| probability.to_string())
}

fn tabs(out: Out<'_>, facts: Facts<'_>) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join("\t"))?;
    for fact in facts {
        let PredictedFact { head, relation, tail, probability, score, held_out, reason } = fact?;
        let (likely, reason) = (probability_text(probability), reason.replace(['\t', '\n', '\r'], " "));
        writeln!(out, "{head}\t{relation}\t{tail}\t{likely}\t{score}\t{held_out}\t{reason}")?;
    }
    Ok(())
}

fn commas(out: Out<'_>, facts: Facts<'_>) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    for fact in facts {
        let PredictedFact { head, relation, tail, probability, score, held_out, reason } = fact?;
        let (likely, score) = (probability_text(probability), score.to_string());
        writer.write_record([&*head, &relation, &tail, &likely, &score, held_out, &reason])?;
    }
    writer.flush()
}

/// N-Triples, which is also valid Turtle, TriG and N-Quads. The other columns become a comment before each fact.
fn triples(out: Out<'_>, facts: Facts<'_>) -> io::Result<()> {
    for fact in facts {
        let fact = fact?;
        let likely = fact.probability.map_or_else(String::new, |share| format!("probability {share}, "));
        let reason = fact.reason.replace(['\n', '\r'], " ");
        let aside = if fact.held_out.is_empty() {
            String::new()
        } else {
            format!(", held out for {}", fact.held_out)
        };
        writeln!(out, "# {likely}score {}{aside}: {reason}", fact.score)?;
        let (subject, object) = (node(&fact.head), term(&fact.tail));
        let (predicate, graph) = (named_node(&fact.relation), GraphName::DefaultGraph);
        let mut serializer = RdfSerializer::from_format(RdfFormat::NTriples).for_writer(&mut *out);
        serializer.serialize_quad(QuadRef::new(&subject, &predicate, &object, &graph))?;
        serializer.finish()?;
    }
    Ok(())
}

fn columns(out: Out<'_>, facts: Facts<'_>) -> io::Result<()> {
    let schema = "message facts {
        REQUIRED BYTE_ARRAY head (STRING);
        REQUIRED BYTE_ARRAY relation (STRING);
        REQUIRED BYTE_ARRAY tail (STRING);
        OPTIONAL DOUBLE probability;
        REQUIRED DOUBLE score;
        REQUIRED BYTE_ARRAY held_out (STRING);
        REQUIRED BYTE_ARRAY reason (STRING);
    }";
    let packing = parquet::basic::Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(packing).build();
    let schema = Arc::new(parse_message_type(schema).map_err(io::Error::other)?);
    let mut writer =
        SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(io::Error::other)?;
    loop {
        let group: io::Result<Vec<PredictedFact>> = facts.take(ROW_GROUP).collect();
        let group = group?;
        if group.is_empty() {
            break;
        }
        row_group(&mut writer, &group).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}

/// A group of rows, column by column in the order of the schema.
fn row_group(
    writer: &mut SerializedFileWriter<Out<'_>>,
    facts: &[PredictedFact],
) -> Result<(), ParquetError> {
    let text = |of: fn(&PredictedFact) -> &str| -> Vec<ByteArray> {
        facts.iter().map(|fact| ByteArray::from(of(fact))).collect()
    };
    let probabilities: Vec<f64> = facts.iter().filter_map(|fact| fact.probability).collect();
    let present: Vec<i16> = facts.iter().map(|fact| i16::from(fact.probability.is_some())).collect();
    let scores: Vec<f64> = facts.iter().map(|fact| fact.score).collect();
    let mut group = writer.next_row_group()?;
    for place in 0..COLUMNS.len() {
        let mut column = group.next_column()?.expect("the schema has as many columns");
        match place {
            0 => column.typed::<ByteArrayType>().write_batch(&text(|fact| &fact.head), None, None)?,
            1 => column.typed::<ByteArrayType>().write_batch(&text(|fact| &fact.relation), None, None)?,
            2 => column.typed::<ByteArrayType>().write_batch(&text(|fact| &fact.tail), None, None)?,
            3 => column.typed::<DoubleType>().write_batch(&probabilities, Some(&present), None)?,
            4 => column.typed::<DoubleType>().write_batch(&scores, None, None)?,
            5 => column.typed::<ByteArrayType>().write_batch(&text(|fact| fact.held_out), None, None)?,
            _ => column.typed::<ByteArrayType>().write_batch(&text(|fact| &fact.reason), None, None)?,
        };
        column.close()?;
    }
    group.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{ReadOptions, read_file};
    use super::*;

    fn facts() -> Vec<PredictedFact> {
        let fact = |tail: &str, probability| PredictedFact {
            head: "ada".to_owned(),
            relation: "parent_of".to_owned(),
            tail: tail.to_owned(),
            probability,
            score: -0.5,
            held_out: if tail == "ben" { "test" } else { "" },
            reason: "ada —spouse_of→ cleo".to_owned(),
        };
        vec![fact("ben", Some(0.75)), fact("cleo", None)]
    }

    #[test]
    fn every_format_holds_the_facts_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        for ending in ["csv", "csv.gz", "parquet", "nt", "ttl.zst", "nq", "trig"] {
            let path = folder.path().join(format!("facts.{ending}"));
            let written = write_predicted(&path, &mut facts().into_iter().map(Ok)).unwrap();
            assert_eq!(written, 2);
            let (names, read, _) = read_file(&path, &ReadOptions::default()).unwrap();
            let tails: Vec<&str> = read.iter().map(|fact| names.entity(fact.tail)).collect();
            assert_eq!(tails, ["ben", "cleo"], "{ending}");
        }
    }

    #[test]
    fn text_says_how_likely_and_why() {
        let folder = tempfile::tempdir().unwrap();
        let said = |name: &str| {
            let path = folder.path().join(name);
            write_predicted(&path, &mut facts().into_iter().map(Ok)).unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        let lines = [
            "head\trelation\ttail\tprobability\tscore\theld_out\treason",
            "ada\tparent_of\tben\t0.75\t-0.5\ttest\tada —spouse_of→ cleo",
            "ada\tparent_of\tcleo\t\t-0.5\t\tada —spouse_of→ cleo",
        ];
        assert_eq!(said("facts.tsv").lines().collect::<Vec<&str>>(), lines);
        let triples = said("facts.nt");
        let comments: Vec<&str> = triples.lines().step_by(2).collect();
        let [likely, unknown] = comments[..] else { panic!("{triples}") };
        assert_eq!(likely, "# probability 0.75, score -0.5, held out for test: ada —spouse_of→ cleo");
        assert_eq!(unknown, "# score -0.5: ada —spouse_of→ cleo");
    }

    #[test]
    fn what_cannot_be_written_is_said_before() {
        let names = Names { entities: ["a\tb"].into_iter().collect(), ..Names::default() };
        let said = |name: &str| check_predicted(Path::new(name), &names).map_err(|error| error.to_string());
        assert!(said("facts.tsv").unwrap_err().contains("names without tabs"));
        assert!(said("facts.csv").is_ok());
        for name in ["facts.rdf", "facts.docx", "facts"] {
            assert!(said(name).unwrap_err().contains("one of the extensions .tsv"), "{name}");
        }
    }

    #[test]
    fn a_fact_that_cannot_be_had_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("facts.csv");
        let mut broken = facts().into_iter().map(Ok).chain([Err(io::ErrorKind::UnexpectedEof.into())]);
        assert!(write_predicted(&path, &mut broken).is_err());
        assert!(!path.exists());
    }
}
