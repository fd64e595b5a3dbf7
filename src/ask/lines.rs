//! Files of queries, one per line, and the JSON lines that answer them.

use super::{AnswersAmong, AskError, Model, Prediction};
use crate::graph::{Compression, Query};
use crate::progress::Progress;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Queries that are answered before their answers are written: larger blocks share more of the work.
const BLOCK: usize = 2048;
/// The longest line of a query file, the same limit as for a line of facts.
const LONGEST_LINE: u64 = 16 << 20;

/// The lines of a file of queries.
pub struct QueryLines<'a> {
    name: PathBuf,
    input: BufReader<Box<dyn Read + 'a>>,
    /// Whether the sender may wait for an answer before the next query.
    interactive: bool,
    /// How many were read, including empty ones.
    read: u64,
}

/// A line with its number, counted from 1, without its line ending.
pub struct QueryLine {
    number: u64,
    text: Vec<u8>,
}

/// The answers to some lines.
pub struct AnsweredLines {
    /// For each line its number, and one line of JSON.
    pub lines: Vec<(u64, String)>,
    /// How many could not be parsed, or have an unknown name.
    pub unknown: u64,
    /// Whether anything at all was predicted.
    pub answered: bool,
}

impl<'a> QueryLines<'a> {
    /// The lines of the file at `path`, compressed or not.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, AskError> {
        Ok(Self::of(path, Compression::of(path).open(path)?, false))
    }

    /// The lines of `input`, which is called `name` in messages. If the input is `interactive`, a block does not
    /// wait for more lines.
    pub fn of(name: &Path, input: Box<dyn Read + 'a>, interactive: bool) -> Self {
        Self { name: name.to_owned(), input: BufReader::with_capacity(1 << 16, input), interactive, read: 0 }
    }

    /// The next lines without empty ones: up to 2048; for interactive input at least one, and then as many as are
    /// available without waiting. Empty at the end.
    ///
    /// # Errors
    /// If the input cannot be read, or a line is too long.
    pub fn next_block(&mut self) -> Result<Vec<QueryLine>, AskError> {
        let mut lines = Vec::new();
        let more_is_there = |input: &BufReader<_>| !self.interactive || input.buffer().contains(&b'\n');
        while lines.is_empty() || (lines.len() < BLOCK && more_is_there(&self.input)) {
            let mut line = Vec::new();
            let (file, number) = (self.name.display(), self.read + 1);
            let mut limited = (&mut self.input).take(LONGEST_LINE + 1);
            let read = limited.read_until(b'\n', &mut line).map_err(|error| {
                AskError::Cannot(format!("{file}: cannot be read after line {}: {error}", self.read))
            })?;
            if read == 0 {
                break;
            }
            if line.len() as u64 > LONGEST_LINE {
                let expected = "expected SUBJECT<TAB>RELATION, found a line of more than 16 MB";
                return Err(AskError::Cannot(format!("{file}:{number}: {expected}")));
            }
            let mark = "\u{feff}".as_bytes();
            let text = if self.read == 0 { line.strip_prefix(mark).unwrap_or(&line) } else { &line };
            self.read += 1;
            let end = text.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
            if end > 0 {
                lines.push(QueryLine { number, text: text[..end].to_vec() });
            }
        }
        Ok(lines)
    }
}

impl Model {
    /// One JSON line for each of `lines`, by `workers` threads; `before` lines were answered earlier.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts. A malformed line is answered with an error message.
    pub fn answer_lines(
        &self,
        lines: &[QueryLine],
        (top, among): (usize, &AnswersAmong),
        workers: usize,
        before: u64,
        progress: &dyn Progress,
    ) -> Result<AnsweredLines, AskError> {
        let index = self.index();
        let asked: Vec<Result<Query, String>> =
            lines.par_iter().map(|line| index.query(&line.text)).collect();
        let queries: Vec<Query> = asked.iter().filter_map(|query| query.as_ref().ok().copied()).collect();
        let answers = self.predict_many_among(&queries, (top, among), workers, before, progress)?;
        let unknown = (lines.len() - queries.len()) as u64;
        let answered = answers.iter().any(|prediction| !prediction.answers.is_empty());
        let mut answers = answers.into_iter();
        let message: Vec<Result<Arc<Prediction>, String>> =
            asked.into_iter().map(|query| query.map(|_| answers.next().expect("one a query"))).collect();
        let lines =
            lines.par_iter().zip(message).map(|(line, message)| (line.number, json_line(line, message)));
        Ok(AnsweredLines { lines: lines.collect(), unknown, answered })
    }
}

/// The JSON for a line of the file: its answers, or why there are none.
fn json_line(line: &QueryLine, message: Result<Arc<Prediction>, String>) -> String {
    #[derive(Serialize)]
    struct Row<'a> {
        line: u64,
        #[serde(flatten)]
        prediction: &'a Prediction,
    }
    let text = match message {
        Ok(prediction) => serde_json::to_string(&Row { line: line.number, prediction: &prediction }),
        Err(error) => {
            let text = String::from_utf8_lossy(&line.text);
            let (subject, relation) = text.split_once('\t').unwrap_or((&text, ""));
            // As typed: for an unknown name it is not clear whether a mark means the inverse.
            let message = json!({
                "line": line.number, "subject": subject, "relation": relation, "inverse": false, "error": error,
                "answers": [], "known": [], "known_ids": [], "known_total": 0,
            });
            serde_json::to_string(&message)
        }
    };
    text.expect("plain data") + "\n"
}
