//! `score`: given facts, each with its probability, its ranks, its best reason and a verdict.

use super::predict::say_why_not;
use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::{DataOfRun, Instant, List, is_stream, stream};
use crate::part::Share;
use anyhow::ensure;
use ruleguider::ask::{Model, OpenOptions, ScoreOptions, ScoredTriple, Threshold};
use ruleguider::graph::{SplitShares, header_line, table_line};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Arguments of `score`.
#[derive(clap::Args)]
#[command(
    after_help = "TRIPLES has a fact in each row: subject, relation, object, and optionally a label (1 or -1, true or false). \
TSV, CSV, JSON lines or Parquet by its extension, of stdin or another pipe by its first line. Columns by name (subject or \
head, relation or predicate, object or tail, label) or in this order. An unknown name gives a row with an error and suggestions. The rows have the order of \
TRIPLES: the probability as `predict` gives it, ranks in both directions (filtered, ties at their mean), and the best reason. \
A fact of the graph is asked with itself taken out. `true` is by a threshold for each relation, fitted on the \
validation facts and false ones, drawn from the entities that the graph shows at each side of the relation or given by \
--negatives. With labels, accuracy, F1, AUC and average precision are printed.

Examples:
  ruleguider score runs/demonstration --file candidates.tsv
  ruleguider score runs/demonstration --file candidates.tsv --out scored.parquet
  ruleguider score runs/codex-s --file labelled.tsv --negatives valid_negatives.tsv --out scored.jsonl
  ruleguider score runs/demonstration --file candidates.tsv --shard 1/4 --out scored-1.shard
  zcat candidates.tsv.gz | ruleguider score runs/demonstration --file - --json
  ruleguider score attack.tsv --instant --file candidates.tsv"
)]
pub struct Score {
    /// A run directory; with --instant a data set
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The facts to score; - for stdin
    #[arg(long, value_name = "TRIPLES")]
    file: PathBuf,
    /// The file to write the scores to: .tsv, .csv, .jsonl or .parquet [default: stdout, as TSV, or JSON lines with --json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// From when on a fact is `true`: `auto` fits a threshold for each relation, a number is a probability, `none` gives
    /// no verdict [default: auto if the run has validation facts that it has not learnt]
    #[arg(long, value_name = "auto|P|none", value_parser = threshold)]
    threshold: Option<Threshold>,
    /// A file of false facts to fit the thresholds with [default: drawn ones]
    #[arg(long, value_name = "FILE")]
    negatives: Option<PathBuf>,
    /// Score part I of N, or parts I to J (I-J/N) with {} for their numbers in FILE; FILE ends in .shard, and `merge`
    /// combines all N parts
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<Share>,
    #[command(flatten)]
    instant: Instant,
    #[command(flatten)]
    data: DataOfRun,
}

fn threshold(text: &str) -> Result<Threshold, String> {
    match text {
        "auto" => Ok(Threshold::Auto),
        "none" => Ok(Threshold::Never),
        _ => f64::from_str(text)
            .ok()
            .filter(|share| (0.0..=1.0).contains(share))
            .map(Threshold::Probability)
            .ok_or_else(|| format!("expected auto, none or a number from 0 to 1, found {text}")),
    }
}

impl Score {
    /// Scores and prints the rows, or a summary.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let device = common.device_for_many()?;
        let workers = device.workers();
        let console = Console::with_interrupt(common);
        let opened = match self.instant.open(&self.run, common, &console)? {
            Some(made) => Some(made),
            None if self.instant.is_wanted() => return Ok(Outcome::Interrupted),
            None => None,
        };
        let model = match &opened {
            Some((_, model)) => model,
            None => {
                let options = OpenOptions { device: Some(device), ..OpenOptions::DEFAULT };
                &self.data.open(&self.run, options, SplitShares::WHOLE, common)?
            }
        };
        say_why_not(model, common)?;
        ensure!(
            !(self.negatives.is_some()
                && matches!(self.threshold, Some(Threshold::Never | Threshold::Probability(_)))),
            "--negatives: only --threshold auto fits thresholds"
        );
        let options = ScoreOptions {
            threshold: self.threshold.clone().unwrap_or_default(),
            negatives: self.negatives.clone(),
            workers,
        };
        match (&self.out, self.shard) {
            (Some(out), Some(share)) => {
                ensure!(
                    !is_stream(&self.file),
                    "--shard: expected a file that every part can read, found a pipe"
                );
                let make = |shard, out: &Path| model.score_shard(&self.file, &options, shard, out, &console);
                share.each(out, common, make)
            }
            (Some(out), None) => {
                let list = List::of(&self.file, common)?;
                let scored = match model.score_file(list.path(), &options, out, &console) {
                    Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
                    scored => scored?,
                };
                if common.json { console::print_json(&scored) } else { console::print(&scored) }?;
                Ok(outcome(scored.facts))
            }
            (None, _) => self.to_stdout(model, &options, &console, common),
        }
    }

    fn to_stdout(
        &self,
        model: &Model,
        options: &ScoreOptions,
        console: &Console,
        common: &Common,
    ) -> anyhow::Result<Outcome> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let (mut facts, mut failed) = (0, None);
        // Printed with the first rows: if the list cannot be read, nothing is.
        let mut header = (!common.json).then(|| header_line(&ScoredTriple::COLUMNS));
        let mut write = |rows: &[ScoredTriple]| {
            if let Some(header) = header.take() {
                writeln!(out, "{header}")?;
            }
            for row in rows {
                facts += u64::from(row.error.is_none());
                match common.json {
                    true => serde_json::to_writer(&mut out, row).map_err(io::Error::from)?,
                    false => out.write_all(table_line(&row.clone().cells()).as_bytes())?,
                }
                out.write_all(b"\n")?;
            }
            // Flushed, so that readers get the rows at once and a later kill loses none.
            out.flush()
        };
        let take = |rows: &[ScoredTriple]| {
            write(rows).map_err(|error| {
                let message = io::Error::new(error.kind(), "stdout");
                failed = Some(error);
                message
            })
        };
        let scored = match is_stream(&self.file) {
            true => {
                let name = if self.file == Path::new("-") { Path::new("stdin") } else { &self.file };
                let input = Box::new(stream(&self.file, console));
                model.score_stream((name, input), options, console, take)
            }
            false => model.score_rows(&self.file, options, console, take),
        };
        if let Some(error) = failed {
            return Err(console::stdout_fails(error));
        }
        match scored {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            scored => {
                if let Some(figures) = scored? {
                    console.note(&figures);
                }
            }
        }
        Ok(outcome(facts))
    }
}

fn outcome(facts: u64) -> Outcome {
    if facts == 0 { Outcome::Negative } else { Outcome::Done }
}
