//! The reasons for the facts of a list: a row a reason.

use super::list::{GivenTriple, TRIPLES, given_triple, triple};
use super::view::{End, View};
use crate::ask::answer::is_false;
use crate::ask::complete::is_json_lines;
use crate::ask::{AskError, Contribution, Model, Probability, Reason};
use crate::graph::{
    Adjacency, Cell, CellKind, Direction, NamedRows, TableColumn, Triple, check_table, check_writable,
    write_packed, write_table,
};
use crate::progress::Progress;
use crate::run::RunError;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A reason for a given fact. The names of the fields are a contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReasonRow {
    /// The place of the fact in the list, from 1.
    pub line: u64,
    /// The subject by id, or as typed if it is not known.
    pub subject: String,
    /// The relation.
    pub relation: String,
    /// The object.
    pub object: String,
    /// The calibrated probability of the object, as [`Model::predict`] gives it.
    pub probability: Probability,
    /// Whether the probability is rough: calibrated on too little.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probability_rough: bool,
    /// The score of the object; absent if nothing supports it.
    pub score: Option<f64>,
    /// The rank of the object among all entities, without all other facts of the data.
    pub rank: Option<f64>,
    /// Whether the graph has the fact: then it was asked with itself taken out.
    pub known: bool,
    /// Which reason it is, from 1; 0 if there is none.
    pub place: u64,
    /// The reason; without path, rule and sentence if there is none.
    #[serde(flatten)]
    pub reason: Reason,
    /// The score of a typical candidate of the query; only beside the first reason of a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// What the score came from: with `typical`, the shares add up to it; only beside the first reason of a fact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Contribution>,
    /// The reason in one line.
    pub words: String,
    /// What is wrong with the row of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Names that may have been meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

impl ReasonRow {
    /// The columns of a table of reasons.
    pub const COLUMNS: [TableColumn; 13] = [
        TableColumn::required("line", CellKind::Count),
        TableColumn::new("subject", CellKind::Text),
        TableColumn::new("relation", CellKind::Text),
        TableColumn::new("object", CellKind::Text),
        TableColumn::new("probability", CellKind::Number),
        TableColumn::new("rank", CellKind::Number),
        TableColumn::new("known", CellKind::Truth),
        TableColumn::required("place", CellKind::Count),
        TableColumn::new("rule", CellKind::Text),
        TableColumn::new("confidence", CellKind::Number),
        TableColumn::new("reason", CellKind::Text),
        TableColumn::new("error", CellKind::Text),
        TableColumn::required("probability_rough", CellKind::Truth),
    ];

    /// It as a row of that table.
    pub fn cells(self) -> Vec<Cell> {
        let rule = self.reason.rule;
        vec![
            Cell::Count(self.line),
            Cell::Text(self.subject),
            Cell::Text(self.relation),
            Cell::Text(self.object),
            self.probability.0.into(),
            self.rank.into(),
            Cell::Truth(self.known),
            Cell::Count(self.place),
            Cell::text(rule.as_ref().map_or("", |rule| &rule.text)),
            rule.map(|rule| rule.confidence).into(),
            Cell::Text(self.words),
            Cell::Text(self.error.unwrap_or_default()),
            Cell::Truth(self.probability_rough),
        ]
    }
}

/// The result of explaining a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExplainedFile {
    /// How many facts were explained.
    pub facts: u64,
    /// How many reasons they have.
    pub reasons: u64,
    /// How many rows have an error.
    pub errors: u64,
    /// The file with the reasons, if it is one.
    pub out: Option<PathBuf>,
}

impl fmt::Display for ExplainedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { facts, reasons, errors, out } = self;
        write!(f, "{reasons} reasons for {facts} facts, {errors} rows with an error")?;
        match out {
            Some(out) => write!(f, ": {}", out.display()),
            None => Ok(()),
        }
    }
}

impl ExplainedFile {
    fn add(&mut self, row: &ReasonRow) {
        self.facts += u64::from(row.error.is_none() && row.place <= 1);
        self.reasons += u64::from(row.place > 0);
        self.errors += u64::from(row.error.is_some());
    }
}

/// What explains given facts.
struct Explainer<'a> {
    view: View<'a>,
    /// All facts of the data.
    truth: Adjacency,
    /// The most reasons for a fact.
    most: usize,
    workers: usize,
}

impl Model {
    /// The best reasons for each of `facts`, given by name; at most `most` each. A fact without a reason, or with an
    /// unknown name, is one row.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn explain_many(
        &self,
        facts: &[[String; 3]],
        most: usize,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<ReasonRow>, AskError> {
        let index = self.index();
        let explainer = self.explainer(most, workers)?;
        let mut rows = Vec::new();
        progress.begin("explaining", "facts", Some(facts.len() as u64));
        let mut done = 0;
        for block in facts.chunks(self.explained_block()) {
            let given = block.par_iter().map(|typed| (typed.clone(), triple(typed, index))).collect();
            let lines = (1..).map(|place| (done + place) as u64);
            rows.extend(explainer.rows(lines, given, progress)?);
            done += block.len();
            progress.advance(done as u64, &"");
        }
        progress.end(&format_args!("{} reasons", rows.len()));
        Ok(rows)
    }

    /// The reasons for the facts of a list, a block at a time, handed to `take`.
    ///
    /// # Errors
    /// If the list cannot be read, the reasoner or `take` fails, or the user interrupts.
    pub fn explain_rows(
        &self,
        list: &Path,
        most: usize,
        workers: usize,
        progress: &dyn Progress,
        mut take: impl FnMut(&[ReasonRow]) -> io::Result<()>,
    ) -> Result<ExplainedFile, AskError> {
        let mut explained = ExplainedFile::default();
        let mut blocks = NamedRows::open(list, TRIPLES)?;
        let explainer = self.explainer(most, workers)?;
        progress.begin("explaining", "facts", None);
        loop {
            let Some(rows) = explainer.next_block(&mut blocks, progress)? else { break };
            rows.iter().for_each(|row| explained.add(row));
            take(&rows).map_err(RunError::writing(Path::new("stdout")))?;
            progress.advance(explained.facts + explained.errors, &"");
        }
        progress.end(&explained);
        Ok(explained)
    }

    /// Writes the reasons for the facts of a list to `out`, in the format that the extension names; `.jsonl` has all
    /// fields.
    ///
    /// # Errors
    /// If a file cannot be read or written, the reasoner fails, or the user interrupts.
    pub fn explain_file(
        &self,
        list: &Path,
        most: usize,
        workers: usize,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<ExplainedFile, AskError> {
        if !is_json_lines(out) {
            check_table(out, self.names())?;
        }
        check_writable(out)?;
        let mut blocks = NamedRows::open(list, TRIPLES)?;
        let explainer = self.explainer(most, workers)?;
        let mut explained = ExplainedFile { out: Some(out.to_owned()), ..ExplainedFile::default() };
        let mut failed = None;
        progress.begin("explaining", "facts", None);
        let mut rows = std::iter::from_fn(|| match explainer.next_block(&mut blocks, progress) {
            Ok(None) => None,
            Ok(Some(rows)) => {
                rows.iter().for_each(|row| explained.add(row));
                progress.advance(explained.facts + explained.errors, &"");
                Some(rows.into_iter().map(Ok).collect::<Vec<io::Result<ReasonRow>>>())
            }
            Err(error) => {
                let message = io::Error::other(error.to_string());
                failed = Some(error);
                Some(vec![Err(message)])
            }
        })
        .flatten();
        let written = match is_json_lines(out) {
            true => write_packed(out, |file| {
                for row in &mut rows {
                    serde_json::to_writer(&mut *file, &row?)?;
                    file.write_all(b"\n")?;
                }
                Ok(())
            })
            .map_err(|error| AskError::from(RunError::writing(out)(error))),
            false => {
                let mut cells = (&mut rows).map(|row| row.map(ReasonRow::cells));
                write_table(out, &ReasonRow::COLUMNS, &mut cells).map(drop).map_err(AskError::from)
            }
        };
        drop(rows);
        match failed {
            Some(error) => return Err(error),
            None => written?,
        }
        progress.end(&explained);
        Ok(explained)
    }

    /// How many facts are explained at a time: fewer than are scored, as each has several rows.
    fn explained_block(&self) -> usize {
        self.given_block() / 2
    }

    fn explainer(&self, most: usize, workers: usize) -> Result<Explainer<'_>, AskError> {
        let view = View { embedding: None, decomposes: true, ..View::whole(self)? };
        Ok(Explainer { view, truth: self.dataset.answers(), most, workers: workers.max(1) })
    }
}

impl Explainer<'_> {
    /// The reasons of the next block of a list; `None` at its end.
    fn next_block(
        &self,
        list: &mut NamedRows<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<ReasonRow>>, AskError> {
        let block = list.next_block(self.view.model.explained_block())?;
        if block.is_empty() {
            return Ok(None);
        }
        let index = self.view.model.index();
        let read = |row| {
            let GivenTriple { typed, ids, .. } = given_triple(row, index);
            (typed, ids)
        };
        let given = block.par_iter().map(read).collect();
        self.rows(block.iter().map(|row| row.number), given, progress).map(Some)
    }

    fn rows(
        &self,
        lines: impl Iterator<Item = u64>,
        given: Vec<([String; 3], Result<Triple, AskError>)>,
        progress: &dyn Progress,
    ) -> Result<Vec<ReasonRow>, AskError> {
        let facts: Vec<Triple> = given.iter().filter_map(|(_, fact)| fact.as_ref().ok().copied()).collect();
        let mut reasons = self.of_facts(&facts, progress)?.into_iter();
        let mut rows = Vec::new();
        for (line, (typed, fact)) in lines.zip(given) {
            match fact {
                Ok(_) => {
                    let own = reasons.next().unwrap_or_default();
                    rows.extend(own.into_iter().map(|row| ReasonRow { line, ..row }));
                }
                Err(error) => {
                    let [subject, relation, object] = typed;
                    let message = Some(error.to_string());
                    let suggestions = match error {
                        AskError::Name { suggestions, .. } => suggestions,
                        _ => Vec::new(),
                    };
                    let row = ReasonRow { line, subject, relation, object, ..ReasonRow::default() };
                    rows.push(ReasonRow { error: message, suggestions, ..row });
                }
            }
        }
        Ok(rows)
    }

    /// The rows of each fact.
    fn of_facts(&self, facts: &[Triple], progress: &dyn Progress) -> Result<Vec<Vec<ReasonRow>>, AskError> {
        let to_tail = [Direction::Forward];
        self.view.each(facts, to_tail, &self.truth, self.workers, progress, |view, fact, known, [tail]| {
            self.of_fact(view, fact, known, tail)
        })
    }

    fn of_fact(
        &self,
        view: &View<'_>,
        fact: Triple,
        known: bool,
        tail: &End,
    ) -> Result<Vec<ReasonRow>, AskError> {
        let (model, names) = (view.model, view.model.names());
        let (typical, because) = model.decomposition_of(tail);
        let bare = ReasonRow {
            subject: names.entity(fact.head).to_owned(),
            relation: names.relation(fact.relation).to_owned(),
            object: names.entity(fact.tail).to_owned(),
            probability: tail.probability,
            probability_rough: model.is_rough(tail.query.link, tail.probability),
            score: tail.candidate.as_ref().map(|candidate| candidate.score),
            rank: Some(tail.rank),
            known,
            ..ReasonRow::default()
        };
        let reasons = match &tail.candidate {
            Some(candidate) => view.reasoner.reasons(tail.query, candidate, self.most)?,
            None => Vec::new(),
        };
        if reasons.is_empty() {
            return Ok(vec![ReasonRow { typical, because, ..bare }]);
        }
        let row = |(place, reasoned)| {
            let answer = model.named(tail.query, reasoned, tail.probability);
            let words = answer.reason_in_words();
            ReasonRow { place, reason: answer.reason, words, ..bare.clone() }
        };
        let mut rows: Vec<ReasonRow> = (1..).zip(&reasons).map(row).collect();
        (rows[0].typical, rows[0].because) = (typical, because);
        Ok(rows)
    }
}
