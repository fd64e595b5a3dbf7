//! Writes predicted facts, each with its probability and its reason, as a stream.
//!
//! Memory is bounded: no more than a row group of a Parquet file is held. A file is written aside and renamed.

use super::format::{FileKind, Format};
use super::table::{Cell, CellKind, TableColumn, check_names, table};
use super::write::write_packed;
use super::{GraphError, Names, is_annotated};
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

/// The kind of the file at `path`. Of the RDF formats, only those that take annotated facts are accepted.
fn kind_of(path: &Path) -> Result<FileKind, GraphError> {
    let fits = |kind: &FileKind| match kind.format {
        Format::Rdf(_) => is_annotated(path),
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
/// If the ending is that of RDF, which [`write_annotated`](super::write_annotated) writes, the file cannot be written, or
/// the iterator fails.
pub fn write_predicted(
    path: &Path,
    facts: &mut dyn Iterator<Item = io::Result<PredictedFact>>,
) -> Result<u64, GraphError> {
    let kind = kind_of(path)?;
    if is_annotated(path) {
        return Err(GraphError::file(path, "the extension of a table", "that of RDF"));
    }
    let mut count = 0;
    let counted = facts.inspect(|fact| count += u64::from(fact.is_ok()));
    let mut rows = counted.map(|fact| fact.map(cells));
    let written = write_packed(path, |out| table(out, kind.format, &COLUMNS, &mut rows));
    written.map_err(GraphError::writing(path))?;
    Ok(count)
}

/// A fact as a row of a table.
fn cells(fact: PredictedFact) -> Vec<Cell> {
    let PredictedFact { head, relation, tail, probability, rough, score, held_out, reason } = fact;
    let mut cells: Vec<Cell> = [head, relation, tail].map(Cell::Text).into();
    cells.extend([probability.into(), Cell::Number(score), Cell::text(held_out)]);
    cells.extend([Cell::Text(reason), Cell::Truth(rough)]);
    cells
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
        for ending in ["csv", "csv.gz", "parquet"] {
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
