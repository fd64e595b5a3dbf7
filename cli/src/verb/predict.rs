//! `predict`: answers to a query, or to a file of them, each with its reason.

use crate::Outcome;
use crate::arguments::Common;
use crate::awaited::Awaited;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use anyhow::{Context, bail};
use rayon::prelude::*;
use ruleguider::ask::{HeldOut, HeldOutAnswer, Model, Naming, OpenOptions, Prediction};
use ruleguider::graph::{Compression, Query, SplitShares};
use ruleguider::progress::Progress;
use ruleguider::shown::Shown;
use ruleguider::walk::WIDEST_BEAM;
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Queries of a file that are answered before they are written: many at once share more of the work.
const BATCH: usize = 2048;
/// A line of queries is not longer than a line of facts may be.
const LONGEST_LINE: u64 = 16 << 20;

/// Arguments of `predict`.
#[derive(clap::Args)]
#[command(
    after_help = "Entities by id or label. The inverse of a relation is written ~RELATION: it asks for heads.
After its name stand the answer's probability (the share of such answers that turn out to be held-out facts) and its score.
An answer that the data has and the graph has not, because it was held out for validation or test, is marked.
With --file: one query a line, SUBJECT<TAB>RELATION, `-` for stdin; one JSON object a line comes out, with the key
`line` for the number of its query's line, and `error` where a name is not known. Exit code 1 if nothing is predicted.

Examples:
  ruleguider predict runs/demonstration Ilse_Hagenthal cousin_of
  ruleguider predict runs/demonstration \"Ilse Hagenthal (born 1926)\" '~sibling_of' --top 3 --json
  ruleguider predict runs/demonstration --file queries.tsv > answers.jsonl
  ruleguider predict runs/demonstration --on other_family.tsv Anna_Feld cousin_of"
)]
pub struct Predict {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The subject of the query
    #[arg(value_name = "SUBJECT", required_unless_present = "file")]
    subject: Option<String>,
    /// The relation; ~RELATION asks for heads
    #[arg(value_name = "RELATION", required_unless_present = "file")]
    relation: Option<String>,
    /// How many answers
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// A file of queries, one per line, subject, tab, relation; - for stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subject", "relation"])]
    file: Option<PathBuf>,
    /// Paths that the walker keeps while it searches: fewer are faster, and find less [default: as in the run]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=WIDEST_BEAM as i64))]
    beam: Option<u32>,
    #[command(flatten)]
    data: DataOfRun,
}

impl Predict {
    /// Answers and prints.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        // Of many queries every thread answers its own; a single one is shared among all threads.
        let device = if self.file.is_some() { common.device_for_many()? } else { common.device()? };
        let beam = self.beam.map(|beam| beam as usize);
        let options = OpenOptions { device: Some(device), beam, ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::WHOLE, common)?;
        say_why_not(&model, common)?;
        match (&self.file, &self.subject, &self.relation) {
            (Some(file), _, _) => self.many(file, &model, common),
            (None, Some(subject), Some(relation)) => {
                let query = model.query(subject, relation)?;
                if let Some(other) = model.index().other_meaning(relation) {
                    Console::new(common).note(&other);
                }
                self.one(query, &model, common)
            }
            _ => bail!("expected SUBJECT and RELATION, or --file"),
        }
    }

    fn one(&self, query: Query, model: &Model, common: &Common) -> anyhow::Result<Outcome> {
        let prediction = model.predict_query(query, self.top as usize)?;
        if let Some(hint) = &prediction.hint {
            Console::new(common).note(hint);
        }
        if common.json {
            console::print_json(&prediction)?;
        } else {
            let (naming, connected) = (model.naming(), model.has_facts(query.subject));
            let subject = naming.of(query.subject, model.names());
            let relation = query.link.relation();
            let relation = relation.map_or("", |relation| model.names().relation_label(relation));
            console::print(&Answered { prediction: &prediction, subject, relation, naming, connected })?;
        }
        Ok(if prediction.answers.is_empty() { Outcome::Negative } else { Outcome::Done })
    }

    fn many(&self, file: &Path, model: &Model, common: &Common) -> anyhow::Result<Outcome> {
        let console = Console::with_interrupt(common);
        // A card is one worker, however many threads there are.
        let card = model.device().is_cuda();
        let workers = if card { 1 } else { rayon::current_num_threads() };
        let mut input = Lines::of(file, &console)?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        console.begin("predicting", "queries", None);
        let (mut done, mut unknown, mut answered) = (0u64, 0u64, false);
        let mut interrupted;
        loop {
            let lines = input.next_block()?;
            // The end of a pipe may be that of the one who wrote to it, stopped as well.
            interrupted = console.interrupted();
            if lines.is_empty() || interrupted {
                break;
            }
            let asked: Vec<Result<Query, String>> =
                lines.par_iter().map(|line| model.index().query(&line.text)).collect();
            let queries: Vec<Query> = asked.iter().filter_map(|query| query.as_ref().ok().copied()).collect();
            let top = self.top as usize;
            let answers = match model.predict_many(&queries, top, workers, done, &console) {
                Err(error) if error.is_interrupted() => {
                    interrupted = true;
                    break;
                }
                answers => answers?,
            };
            unknown += (lines.len() - queries.len()) as u64;
            answered |= answers.iter().any(|prediction| !prediction.answers.is_empty());
            let mut answers = answers.into_iter();
            let said: Vec<Result<Arc<Prediction>, String>> =
                asked.into_iter().map(|query| query.map(|_| answers.next().expect("one a query"))).collect();
            let texts: Vec<String> =
                lines.par_iter().zip(said).map(|(line, said)| json_line(line, said)).collect();
            let written = texts.iter().try_for_each(|text| out.write_all(text.as_bytes()));
            // Flushed, so that readers get the answers at once and a later kill loses none.
            written.and_then(|()| out.flush()).map_err(console::stdout_fails)?;
            done += lines.len() as u64;
            console.advance(done, &"");
        }
        console.end(&format_args!(
            "{done} queries, {unknown} that could not be read or have a name that is not known"
        ));
        Ok(match (interrupted, answered) {
            (true, _) => Outcome::Interrupted,
            (false, true) => Outcome::Done,
            (false, false) => Outcome::Negative,
        })
    }
}

/// Says why answers have no probability, if they have none.
pub fn say_why_not(model: &Model, common: &Common) -> anyhow::Result<()> {
    if let Some(why) = model.why_no_probability()? {
        Console::new(common).note(&why);
    }
    Ok(())
}

/// What a line of the file gets: its answers, or why there are none.
fn json_line(line: &Line, said: Result<Arc<Prediction>, String>) -> String {
    #[derive(Serialize)]
    struct Row<'a> {
        line: u64,
        #[serde(flatten)]
        prediction: &'a Prediction,
    }
    let text = match said {
        Ok(prediction) => serde_json::to_string(&Row { line: line.number, prediction: &prediction }),
        Err(error) => {
            let text = String::from_utf8_lossy(&line.text);
            let (subject, relation) = text.split_once('\t').unwrap_or((&text, ""));
            // As typed: what the mark of an inverse belongs to is not known.
            let said = json!({
                "line": line.number, "subject": subject, "relation": relation, "inverse": false, "error": error,
                "answers": [], "known": [], "known_ids": [],
            });
            serde_json::to_string(&said)
        }
    };
    text.expect("plain data") + "\n"
}

/// The lines of a file of queries, or of stdin.
struct Lines<'a> {
    file: &'a Path,
    input: BufReader<Box<dyn Read + 'a>>,
    /// Whether there may be someone who waits for an answer before asking on.
    asked_by_someone: bool,
    /// How many were read, empty ones and all.
    read: u64,
}

/// A line with its number, counted from 1, and without its end.
struct Line {
    number: u64,
    text: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn of(file: &'a Path, console: &'a Console) -> anyhow::Result<Self> {
        let asked_by_someone = file == Path::new("-");
        let input: Box<dyn Read> = if asked_by_someone {
            Box::new(Awaited::stdin(console))
        } else {
            Compression::of(file).open(file)?
        };
        Ok(Self { file, input: BufReader::with_capacity(1 << 16, input), asked_by_someone, read: 0 })
    }

    /// The next lines, empty ones left out; of stdin as many as are there without waiting for more, and at least one. None
    /// at the end.
    fn next_block(&mut self) -> anyhow::Result<Vec<Line>> {
        let mut lines = Vec::new();
        let more_is_there = |input: &BufReader<_>| !self.asked_by_someone || input.buffer().contains(&b'\n');
        while lines.is_empty() || (lines.len() < BATCH && more_is_there(&self.input)) {
            let mut line = Vec::new();
            let place = || format!("{}: cannot be read after line {}", self.file.display(), self.read);
            let mut limited = (&mut self.input).take(LONGEST_LINE + 1);
            if limited.read_until(b'\n', &mut line).with_context(place)? == 0 {
                break;
            }
            if line.len() as u64 > LONGEST_LINE {
                let (file, number) = (self.file.display(), self.read + 1);
                bail!("{file}:{number}: expected SUBJECT<TAB>RELATION, found a line of more than 16 MB");
            }
            let text = if self.read == 0 {
                line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line)
            } else {
                &line
            };
            self.read += 1;
            let end = text.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
            if end > 0 {
                lines.push(Line { number: self.read, text: text[..end].to_vec() });
            }
        }
        Ok(lines)
    }
}

/// The answers for a person.
struct Answered<'a> {
    prediction: &'a Prediction,
    subject: String,
    relation: &'a str,
    naming: &'a Naming,
    /// Whether the graph has any fact about the subject.
    connected: bool,
}

impl fmt::Display for Answered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { naming, .. } = self;
        let Prediction { inverse, answers, known, held_out, .. } = self.prediction;
        let (subject, relation) = (Shown(&self.subject), Shown(&self.relation));
        match inverse {
            false => write!(f, "{subject} —{relation}→ ?")?,
            true => write!(f, "? —{relation}→ {subject}")?,
        }
        match (answers.is_empty(), self.connected) {
            (true, true) => write!(f, "\n  nothing is predicted: no learnt path or rule leads from here")?,
            (true, false) => write!(f, "\n  nothing is predicted: the graph has no fact about {subject}")?,
            (false, _) => {}
        }
        let named: Vec<String> =
            answers.iter().map(|answer| Shown(answer.name(naming)).to_string()).collect();
        let width = named.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(40);
        for (place, (answer, name)) in answers.iter().zip(named).enumerate() {
            let (place, score, reason) = (place + 1, answer.score, Shown(answer.reason_in_words(naming)));
            let likely = answer.probability.0.map_or_else(String::new, |share| format!("{share:5.3}  "));
            write!(f, "\n{place:3}  {name:width$}  {likely}{score:8.4}  {reason}{}", aside(answer.held_out))?;
        }
        let known = counted(known);
        if !known.is_empty() {
            let more =
                if known.len() > 10 { format!(" and {} more", known.len() - 10) } else { String::new() };
            write!(f, "\n  known already: {}{more}", Shown(known[..known.len().min(10)].join(", ")))?;
        }
        let shown = |answer: &&HeldOutAnswer| !answers.iter().any(|other| other.entity == answer.entity);
        let aside: Vec<String> = held_out
            .iter()
            .filter(shown)
            .map(|answer| {
                format!("{} ({})", naming.name(&answer.label, &answer.entity), answer.held_out.purpose())
            })
            .collect();
        if !aside.is_empty() {
            let more =
                if aside.len() > 10 { format!(" and {} more", aside.len() - 10) } else { String::new() };
            write!(
                f,
                "\n  in your data, held out: {}{more}",
                Shown(aside[..aside.len().min(10)].join(", "))
            )?;
        }
        Ok(())
    }
}

/// What is said of an answer that is no discovery: the data has it.
pub fn aside(held_out: Option<HeldOut>) -> String {
    held_out.map_or_else(String::new, |split| format!("   [in your data, held out for {}]", split.purpose()))
}

/// Labels in their order, each once, with how many there are of it if that is not one.
fn counted(labels: &[String]) -> Vec<String> {
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for label in labels {
        match seen.iter_mut().find(|(other, _)| other == label) {
            Some((_, count)) => *count += 1,
            None => seen.push((label, 1)),
        }
    }
    let said = |(label, count): (&str, usize)| match count {
        1 => label.to_owned(),
        _ => format!("{label} (×{count})"),
    };
    seen.into_iter().map(said).collect()
}
