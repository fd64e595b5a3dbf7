//! Answers for other programs: RDF, Neo4j, KGX, GraphML.
//!
//! What is exported are JSON lines: missing facts of `complete`, scored facts, predictions, doubted facts. Their keys are a
//! contract, so nothing is asked again. They are read one by one; only names of entities that a list of nodes needs are remembered.

mod graphml;
mod tables;

use super::{
    AskError, DoubtedFact, Doubts, HeldOut, MissingFact, PathStep, Prediction, Reason, ScoredTriple, StepNote,
};
use crate::graph::{AnnotatedFact, Compression, RdfStyle, UsedFact, write_annotated};
use crate::run::RunError;
use serde::{Deserialize, Serialize};
use serde_json::StreamDeserializer;
use serde_json::de::IoRead;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// What answers are exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A file of RDF.
    Rdf(RdfStyle),
    /// A folder with `nodes.csv` and `relationships.csv`, for `neo4j-admin database import`.
    Neo4j,
    /// A folder with `nodes.tsv` and `edges.tsv`, as the Knowledge Graph Exchange has them.
    Kgx,
    /// A file with the facts and those that their reasons use, for drawing programs.
    Graphml,
}

/// The result of an export.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exported {
    /// How many facts were exported.
    pub facts: u64,
    /// How many objects have none: rows with an error, or predictions without an answer.
    pub without: u64,
    /// The file or folder.
    pub out: PathBuf,
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { facts, without, out } = self;
        write!(f, "{facts} facts exported, {without} rows without one: {}", out.display())
    }
}

/// A fact to export, with the labels of its ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExportedFact {
    pub fact: AnnotatedFact,
    pub subject_label: String,
    pub object_label: String,
    /// The entities of its path with their labels.
    pub path_labels: Vec<(String, String)>,
}

/// A line of any of the kinds that can be exported.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Missing(Box<MissingFact>),
    Predicted(Box<Prediction>),
    Scored(Box<ScoredTriple>),
    Doubted(Box<DoubtedFact>),
    Doubts(Box<Doubts>),
}

/// The path of a reason, as facts and as entities with labels.
fn facts_of_path(from: (&str, &str), path: &[PathStep]) -> (Vec<UsedFact>, Vec<(String, String)>) {
    let (mut facts, mut labels) = (Vec::new(), vec![(from.0.to_owned(), from.1.to_owned())]);
    let mut at = from.0;
    for step in path {
        let ends = if step.inverse { [&step.entity[..], at] } else { [at, &step.entity[..]] };
        let fact = [ends[0].to_owned(), step.relation.clone(), ends[1].to_owned()];
        facts.push(match step.note.clone() {
            Some(StepNote { confidence, source, time }) => UsedFact { fact, confidence, source, time },
            None => UsedFact { fact, ..UsedFact::default() },
        });
        labels.push((step.entity.clone(), step.label.clone()));
        at = &step.entity;
    }
    (facts, labels)
}

fn facts_of_reason(reason: &Reason) -> (Vec<UsedFact>, Vec<(String, String)>) {
    facts_of_path((&reason.from_id, &reason.from), &reason.path)
}

fn split_of(held_out: Option<HeldOut>) -> &'static str {
    held_out.map_or("", HeldOut::split)
}

impl MissingFact {
    /// The fact with what is known about it.
    pub(super) fn annotated(self) -> AnnotatedFact {
        AnnotatedFact {
            probability: self.probability.0,
            probability_rough: self.probability_rough,
            score: Some(self.score),
            rule: self.reason.rule.as_ref().map(|rule| rule.text.clone()),
            derived_from: facts_of_reason(&self.reason).0,
            held_out: split_of(self.held_out),
            reason: self.words,
            fact: [self.head, self.relation, self.tail],
            ..AnnotatedFact::default()
        }
    }
}

impl DoubtedFact {
    /// The fact with what supports it and what speaks against it.
    fn exported(self) -> ExportedFact {
        let fact = AnnotatedFact {
            fact: [self.subject, self.relation, self.object],
            reason: self.support,
            plausibility: Some(self.plausibility),
            counter_evidence: self.counter_evidence.into_iter().map(|one| one.words).collect(),
            ..AnnotatedFact::default()
        };
        let (subject_label, object_label) = (self.subject_label, self.object_label);
        ExportedFact { fact, subject_label, object_label, path_labels: Vec::new() }
    }
}

impl Line {
    fn facts(self) -> Vec<ExportedFact> {
        match self {
            Line::Missing(fact) => {
                let (_, path_labels) = facts_of_reason(&fact.reason);
                let (subject_label, object_label) = (fact.head_label.clone(), fact.tail_label.clone());
                vec![ExportedFact { fact: fact.annotated(), subject_label, object_label, path_labels }]
            }
            Line::Predicted(prediction) => {
                let Prediction { subject, relation, inverse, answers, .. } = *prediction;
                let fact = |answer: super::Answer| {
                    let reason = &answer.reason;
                    let (derived_from, path_labels) = facts_of_reason(reason);
                    let own = { path_labels.iter() }.find(|(id, _)| *id == subject);
                    let subject_label = own.map_or_else(|| subject.clone(), |(_, label)| label.clone());
                    let mut ends =
                        [(subject.clone(), subject_label), (answer.entity.clone(), answer.label.clone())];
                    if inverse {
                        ends.swap(0, 1);
                    }
                    let [(head, subject_label), (tail, object_label)] = ends;
                    let fact = AnnotatedFact {
                        fact: [head, relation.clone(), tail],
                        probability: answer.probability.0,
                        probability_rough: answer.probability_rough,
                        score: Some(answer.score),
                        rule: reason.rule.as_ref().map(|rule| rule.text.clone()),
                        reason: reason.to_string(),
                        derived_from,
                        held_out: split_of(answer.held_out),
                        ..AnnotatedFact::default()
                    };
                    ExportedFact { fact, subject_label, object_label, path_labels }
                };
                answers.into_iter().map(fact).collect()
            }
            Line::Scored(row) if row.error.is_some() => Vec::new(),
            Line::Scored(row) => {
                let reason = &row.reason;
                let (derived_from, path_labels) = facts_of_reason(reason);
                let label = |id: &String| {
                    let own = path_labels.iter().find(|one| one.0 == *id);
                    own.map_or_else(|| id.clone(), |(_, label)| label.clone())
                };
                let (subject_label, object_label) = (label(&row.subject), label(&row.object));
                let fact = AnnotatedFact {
                    fact: [row.subject, row.relation, row.object],
                    probability: row.probability.0,
                    probability_rough: row.probability_rough,
                    score: row.score,
                    rule: reason.rule.as_ref().map(|rule| rule.text.clone()),
                    reason: row.words,
                    derived_from,
                    held_out: split_of(row.held_out),
                    plausibility: row.plausibility,
                    ..AnnotatedFact::default()
                };
                vec![ExportedFact { fact, subject_label, object_label, path_labels }]
            }
            Line::Doubted(fact) => vec![fact.exported()],
            Line::Doubts(doubts) => doubts.facts.into_iter().map(DoubtedFact::exported).collect(),
        }
    }
}

/// The facts of a file of JSON objects, one after another.
struct Lines {
    name: PathBuf,
    objects: Objects,
    /// How many objects were read.
    number: u64,
    without: u64,
    waiting: std::vec::IntoIter<ExportedFact>,
    failed: Option<AskError>,
}

type Objects = StreamDeserializer<'static, IoRead<BufReader<Box<dyn Read + Send>>>, Line>;

impl Lines {
    fn open(path: &Path) -> Result<Self, AskError> {
        let input = BufReader::with_capacity(1 << 16, Compression::of(path).open(path)?);
        Ok(Self {
            name: path.to_owned(),
            objects: serde_json::Deserializer::from_reader(input).into_iter(),
            number: 0,
            without: 0,
            waiting: Vec::new().into_iter(),
            failed: None,
        })
    }

    /// The facts of the next object; `None` at the end.
    fn next_object(&mut self) -> Result<Option<Vec<ExportedFact>>, AskError> {
        let Some(object) = self.objects.next() else { return Ok(None) };
        self.number += 1;
        let object = object.map_err(|error| {
            let why = match error.is_data() {
                true => String::new(),
                false => format!(" ({error})"),
            };
            let (name, number) = (self.name.display(), self.number);
            AskError::Cannot(format!(
                "{name}: object {number}: expected JSON of `complete`, `score`, `predict` or `doubt`, found something else{why}"
            ))
        })?;
        let facts = object.facts();
        self.without += u64::from(facts.is_empty());
        Ok(Some(facts))
    }
}

impl Iterator for Lines {
    type Item = io::Result<ExportedFact>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(fact) = self.waiting.next() {
                return Some(Ok(fact));
            }
            match self.next_object() {
                Ok(None) => return None,
                Ok(Some(facts)) => self.waiting = facts.into_iter(),
                Err(error) => {
                    let message = io::Error::other(error.to_string());
                    self.failed = Some(error);
                    return Some(Err(message));
                }
            }
        }
    }
}

/// Exports the JSON lines of `complete`, `score`, `predict` or `doubt` to `out`.
///
/// # Errors
/// If an object is of no such kind, or a file cannot be read or written.
pub fn export(lines: &Path, format: ExportFormat, out: &Path) -> Result<Exported, AskError> {
    let mut read = Lines::open(lines)?;
    let written: Result<u64, AskError> = match format {
        ExportFormat::Rdf(style) => {
            let mut facts = (&mut read).map(|fact| fact.map(|fact| fact.fact));
            write_annotated(out, style, &mut facts).map_err(AskError::from)
        }
        ExportFormat::Neo4j => tables::write_neo4j(out, &mut read).map_err(|error| cannot_write(out, error)),
        ExportFormat::Kgx => tables::write_kgx(out, &mut read).map_err(|error| cannot_write(out, error)),
        ExportFormat::Graphml => graphml::write(out, &mut read).map_err(|error| cannot_write(out, error)),
    };
    match read.failed.take() {
        Some(error) => Err(error),
        None => Ok(Exported { facts: written?, without: read.without, out: out.to_owned() }),
    }
}

fn cannot_write(out: &Path, error: io::Error) -> AskError {
    AskError::Run(RunError::writing(out)(error))
}
