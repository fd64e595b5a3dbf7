//! Writes predicted facts, each with its probability and its reason, as a stream.
//!
//! Memory is bounded: no more than a row group of a Parquet file is held. A file is written aside and renamed.

#[cfg(feature = "rdf")]
use super::format::Out;
use super::format::{FileKind, Format};
use super::read::RdfFormat;
#[cfg(feature = "rdf")]
use super::read::{named_node, node, term};
use super::table::{Cell, CellKind, TableColumn, check_names, table};
use super::write::write_packed;
use super::{GraphError, Names};
#[cfg(feature = "rdf")]
use oxrdf::{GraphName, QuadRef};
#[cfg(feature = "rdf")]
use oxrdfio::RdfSerializer;
use std::io;
use std::path::Path;

/// The columns, in formats that have them.
const COLUMNS: [TableColumn; 8] = [
    TableColumn::new("head", CellKind::Text),
    TableColumn::new("relation", CellKind::Text),
    TableColumn::new("tail", CellKind::Text),
    TableColumn::new("probability", CellKind::Number),
    TableColumn::required("score", CellKind::Number),
    TableColumn::new("held_out", CellKind::Text),
    TableColumn::new("reason", CellKind::Text),
    TableColumn::required("probability_rough", CellKind::Truth),
];
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
    /// Whether the probability is rough: calibrated on too little.
    pub rough: bool,
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
    check_names(path, kind_of(path)?, names)
}

/// The kind of the file at `path`. Of the RDF formats, only those that allow comment lines are accepted.
fn kind_of(path: &Path) -> Result<FileKind, GraphError> {
    let lines = [RdfFormat::NTriples, RdfFormat::NQuads, RdfFormat::Turtle, RdfFormat::TriG];
    let fits = |kind: &FileKind| match kind.format {
        Format::Rdf(format) => lines.contains(&format),
        format => format != Format::Sif,
    };
    FileKind::expect_built(path)?;
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
    #[cfg_attr(not(feature = "rdf"), allow(unused_mut))]
    let mut counted = facts.inspect(|fact| count += u64::from(fact.is_ok()));
    let written = write_packed(path, |out| match kind.format {
        #[cfg(feature = "rdf")]
        Format::Rdf(_) => triples(out, &mut counted),
        #[cfg(not(feature = "rdf"))]
        Format::Rdf(_) => Err(io::ErrorKind::Unsupported.into()),
        _ => table(out, kind.format, &COLUMNS, &mut counted.map(|fact| fact.map(cells))),
    });
    written.map_err(GraphError::writing(path))?;
    Ok(count)
}

/// A stream of facts.
#[cfg(feature = "rdf")]
type Facts<'a> = &'a mut dyn Iterator<Item = io::Result<PredictedFact>>;

/// A fact as a row of a table.
fn cells(fact: PredictedFact) -> Vec<Cell> {
    let PredictedFact { head, relation, tail, probability, rough, score, held_out, reason } = fact;
    let mut cells: Vec<Cell> = [head, relation, tail].map(Cell::Text).into();
    cells.extend([probability.into(), Cell::Number(score), Cell::text(held_out)]);
    cells.extend([Cell::Text(reason), Cell::Truth(rough)]);
    cells
}

#[cfg(feature = "rdf")]
/// N-Triples, which is also valid Turtle, TriG and N-Quads. The other columns become a comment before each fact.
fn triples(out: Out<'_>, facts: Facts<'_>) -> io::Result<()> {
    for fact in facts {
        let fact = fact?;
        let about = if fact.rough { "~" } else { "" };
        let likely =
            fact.probability.map_or_else(String::new, |share| format!("probability {about}{share}, "));
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
            rough: false,
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
        let reported = |name: &str| {
            let path = folder.path().join(name);
            write_predicted(&path, &mut facts().into_iter().map(Ok)).unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        let lines = [
            "head\trelation\ttail\tprobability\tscore\theld_out\treason\tprobability_rough",
            "ada\tparent_of\tben\t0.75\t-0.5\ttest\tada —spouse_of→ cleo\tfalse",
            "ada\tparent_of\tcleo\t\t-0.5\t\tada —spouse_of→ cleo\tfalse",
        ];
        assert_eq!(reported("facts.tsv").lines().collect::<Vec<&str>>(), lines);
        let triples = reported("facts.nt");
        let comments: Vec<&str> = triples.lines().step_by(2).collect();
        let [likely, unknown] = comments[..] else { panic!("{triples}") };
        assert_eq!(likely, "# probability 0.75, score -0.5, held out for test: ada —spouse_of→ cleo");
        assert_eq!(unknown, "# score -0.5: ada —spouse_of→ cleo");
    }

    #[test]
    fn what_cannot_be_written_is_said_before() {
        let names = Names { entities: ["a\tb"].into_iter().collect(), ..Names::default() };
        let reported =
            |name: &str| check_predicted(Path::new(name), &names).map_err(|error| error.to_string());
        assert!(reported("facts.tsv").unwrap_err().contains("names without tabs"));
        assert!(reported("facts.csv").is_ok());
        for name in ["facts.rdf", "facts.docx", "facts"] {
            assert!(reported(name).unwrap_err().contains("one of the extensions .tsv"), "{name}");
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
