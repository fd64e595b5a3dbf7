//! Scores given facts, as a stream: [`Model::score`] and [`Model::score_file`].
//!
//! A list is read in blocks, which are scored one after the other. Where the result is a file, a finished block is on
//! disk before the next begins: an interrupted call resumes there, no more than a block is in memory, and parts of the
//! work together give the same file to the last byte.

use super::classify::{Classification, Tally};
use super::list::{GivenTriple, TRIPLES, given_triple, triple};
use super::row::ScoredTriple;
use super::verdict::{Verdicts, features};
use super::view::{BOTH_ENDS, End, View};
use crate::aside::claim_file;
use crate::ask::complete::{Blocks, is_json_lines};
use crate::ask::{Answer, AskError, Model, ShardReport};
use crate::graph::{
    Adjacency, NamedRow, NamedRows, Triple, check_table, check_writable, write_packed, write_table,
};
use crate::progress::Progress;
use crate::run::{Checksum, RunError};
use crate::shard::{Part, Parts, Shard, ShardError, ShardKind, write_part};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Facts of a block: the fewest and the most.
const BLOCK: [usize; 2] = [2048, 16384];
/// A block that takes facts out of the graph makes the rest of it anew, so in a large graph, blocks have at least one in so
/// many of its facts.
const FACTS_EACH: usize = 128;

/// From when on a fact is taken to be true.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Threshold {
    /// By a threshold for every relation, fitted on the validation split, if there is one that was not learnt; else no
    /// verdict.
    #[default]
    Usual,
    /// The same, and an error if there is none.
    Auto,
    /// From this probability on.
    Probability(f64),
    /// No verdict.
    Never,
}

/// How to score.
#[derive(Clone, Debug, Default)]
pub struct ScoreOptions {
    /// From when on a fact is taken to be true.
    pub threshold: Threshold,
    /// A file of false facts that thresholds are fitted with; drawn ones by default.
    pub negatives: Option<PathBuf>,
    /// How many threads answer batches in parallel; 0 for one.
    pub workers: usize,
}

/// The result of scoring a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoredFile {
    /// How many rows were scored.
    pub facts: u64,
    /// How many rows have an error.
    pub errors: u64,
    /// The figures of the rows that have labels.
    pub classification: Option<Classification>,
    /// How long it took, not counting earlier invocations.
    pub seconds: f64,
    /// The file with the scores.
    pub out: PathBuf,
}

impl fmt::Display for ScoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { facts, errors, classification, seconds, out } = self;
        write!(f, "{facts} facts scored, {errors} rows with an error, in {seconds:.1} s: {}", out.display())?;
        match classification {
            Some(figures) => write!(f, "\n{figures}"),
            None => Ok(()),
        }
    }
}

/// What scores given facts.
pub(super) struct Scorer<'a> {
    model: &'a Model,
    view: View<'a>,
    /// All facts of the data.
    truth: Adjacency,
    verdicts: Option<Verdicts>,
    threshold: Option<f64>,
    /// Whether rows have reasons.
    reasons: bool,
    workers: usize,
}

impl<'a> Scorer<'a> {
    pub(super) fn new(
        model: &'a Model,
        options: &ScoreOptions,
        reasons: bool,
        progress: &dyn Progress,
    ) -> Result<Self, AskError> {
        let workers = options.workers.max(1);
        let (mut verdicts, mut threshold) = (None, None);
        match options.threshold {
            Threshold::Never => {}
            Threshold::Probability(least) => {
                if let Some(why) = model.why_no_probability()? {
                    return Err(AskError::Cannot(format!("a threshold cannot be used; {why}")));
                }
                threshold = Some(least);
            }
            Threshold::Usual if model.expect_valid_unlearnt().is_err() => {}
            Threshold::Usual => verdicts = model.verdicts(options.negatives.as_deref(), workers, progress)?,
            Threshold::Auto => {
                verdicts = model.verdicts(options.negatives.as_deref(), workers, progress)?;
                if verdicts.is_none() {
                    let message = "thresholds cannot be fitted: there are no validation facts that are not in the graph";
                    return Err(AskError::Cannot(message.to_owned()));
                }
            }
        }
        let truth = model.dataset.answers();
        let view = View { decomposes: reasons, ..View::whole(model)? };
        Ok(Self { model, view, truth, verdicts, threshold, reasons, workers })
    }

    /// The rows of `facts`, in their order.
    pub(super) fn facts(
        &self,
        facts: &[Triple],
        progress: &dyn Progress,
    ) -> Result<Vec<ScoredTriple>, AskError> {
        self.view.each(facts, BOTH_ENDS, &self.truth, self.workers, progress, |view, fact, known, ends| {
            self.row(view, fact, known, ends)
        })
    }

    fn row(
        &self,
        view: &View<'_>,
        fact: Triple,
        known: bool,
        ends: &[End; 2],
    ) -> Result<ScoredTriple, AskError> {
        let (model, names) = (self.model, self.model.names());
        let [tail, head] = ends;
        let row = features(&view.graph, ends);
        let plausibility = self.verdicts.as_ref().map(|verdicts| verdicts.plausibility(&row));
        let by_probability = || Some(tail.probability.0? >= self.threshold?);
        let is_true = match &self.verdicts {
            Some(verdicts) => Some(verdicts.is_true(fact.relation, &row)),
            None => by_probability(),
        };
        let reason = if self.reasons { best_reason(view, ends)? } else { None };
        let (typical, because) = model.decomposition_of(tail);
        Ok(ScoredTriple {
            line: 0,
            subject: names.entity(fact.head).to_owned(),
            relation: names.relation(fact.relation).to_owned(),
            object: names.entity(fact.tail).to_owned(),
            probability: tail.probability,
            probability_rough: model.is_rough(tail.query.link, tail.probability),
            score: tail.candidate.as_ref().map(|candidate| candidate.score),
            rank_tail: Some(tail.rank),
            rank_head: Some(head.rank),
            plausibility,
            is_true,
            known,
            held_out: model.held_out(tail.query, tail.object),
            known_false: model.is_denied(tail.query, tail.object),
            known_false_source: model.source_of_denial(tail.query, tail.object),
            label: None,
            words: reason.as_ref().map_or_else(String::new, |one| one.reason_in_words()),
            reason: reason.map(|answer| answer.reason).unwrap_or_default(),
            typical,
            because,
            error: None,
            suggestions: Vec::new(),
        })
    }

    /// The rows of a block of a list.
    fn block(&self, block: &[NamedRow], progress: &dyn Progress) -> Result<Vec<ScoredTriple>, AskError> {
        let index = self.model.index();
        let given: Vec<GivenTriple> = block.par_iter().map(|row| given_triple(row, index)).collect();
        let facts: Vec<Triple> = given.iter().filter_map(|given| given.ids.as_ref().ok().copied()).collect();
        let mut scored = self.facts(&facts, progress)?.into_iter();
        let row = |(row, given): (&NamedRow, GivenTriple)| {
            let GivenTriple { typed, label, ids } = given;
            match ids {
                Ok(_) => {
                    ScoredTriple { line: row.number, label, ..scored.next().expect("as many rows as facts") }
                }
                Err(error) => unknown(row.number, typed, label, &error),
            }
        };
        Ok(block.iter().zip(given).map(row).collect())
    }
}

/// The best reason for the object, or else for the subject.
pub(super) fn best_reason(view: &View<'_>, ends: &[End; 2]) -> Result<Option<Answer>, AskError> {
    for end in ends {
        let Some(candidate) = &end.candidate else { continue };
        if let Some(reasoned) = view.reasoner.reasons(end.query, candidate, 1)?.first() {
            return Ok(Some(view.model.named(end.query, reasoned, end.probability)));
        }
    }
    Ok(None)
}

/// A row that names something unknown, or is malformed.
fn unknown(line: u64, typed: [String; 3], label: Option<bool>, error: &AskError) -> ScoredTriple {
    let [subject, relation, object] = typed;
    let suggestions = match error {
        AskError::Name { suggestions, .. } => suggestions.clone(),
        _ => Vec::new(),
    };
    let error = Some(error.to_string());
    ScoredTriple { line, subject, relation, object, label, error, suggestions, ..ScoredTriple::default() }
}

/// What the scores of a file depend on beside the run.
#[derive(Serialize, Deserialize)]
struct ScoreSettings {
    list: Checksum,
    threshold: Threshold,
    negatives: Option<Checksum>,
    beam: usize,
}

impl Model {
    /// Scores facts given by name, in their order: subject, relation, object. An unknown name gives a row with an error.
    ///
    /// # Errors
    /// If the options do not fit the run, the reasoner fails, or the user interrupts.
    pub fn score(
        &self,
        facts: &[[String; 3]],
        options: &ScoreOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<ScoredTriple>, AskError> {
        let scorer = Scorer::new(self, options, true, progress)?;
        let index = self.index();
        let mut rows = Vec::with_capacity(facts.len());
        progress.begin("scoring", "facts", Some(facts.len() as u64));
        for block in facts.chunks(self.given_block()) {
            let ids: Vec<Result<Triple, AskError>> =
                block.par_iter().map(|typed| triple(typed, index)).collect();
            let known: Vec<Triple> = ids.iter().filter_map(|fact| fact.as_ref().ok().copied()).collect();
            let mut scored = scorer.facts(&known, progress)?.into_iter();
            for (typed, fact) in block.iter().zip(ids) {
                let line = rows.len() as u64 + 1;
                rows.push(match fact {
                    Ok(_) => ScoredTriple { line, ..scored.next().expect("as many rows as facts") },
                    Err(error) => unknown(line, typed.clone(), None, &error),
                });
            }
            progress.advance(rows.len() as u64, &"");
        }
        progress.end(&format_args!("{} facts", rows.len()));
        Ok(rows)
    }

    /// Scores the facts of a list and hands each block of rows to `take`; returns the figures of labelled rows.
    ///
    /// # Errors
    /// If the list cannot be read, the options do not fit the run, the reasoner or `take` fails, or the user interrupts.
    pub fn score_rows(
        &self,
        list: &Path,
        options: &ScoreOptions,
        progress: &dyn Progress,
        take: impl FnMut(&[ScoredTriple]) -> io::Result<()>,
    ) -> Result<Option<Classification>, AskError> {
        self.score_each(NamedRows::open(list, TRIPLES)?, options, progress, take)
    }

    /// The same for what comes through `input`, called `name` in messages: TSV, CSV or JSON lines by its first line. Rows
    /// are scored as they come.
    ///
    /// # Errors
    /// Those of [`score_rows`](Self::score_rows).
    pub fn score_stream(
        &self,
        (name, input): (&Path, Box<dyn Read + '_>),
        options: &ScoreOptions,
        progress: &dyn Progress,
        take: impl FnMut(&[ScoredTriple]) -> io::Result<()>,
    ) -> Result<Option<Classification>, AskError> {
        self.score_each(NamedRows::of(name, input, TRIPLES)?, options, progress, take)
    }

    fn score_each(
        &self,
        mut rows: NamedRows<'_>,
        options: &ScoreOptions,
        progress: &dyn Progress,
        mut take: impl FnMut(&[ScoredTriple]) -> io::Result<()>,
    ) -> Result<Option<Classification>, AskError> {
        let scorer = Scorer::new(self, options, true, progress)?;
        let (mut tally, mut done) = (Tally::default(), 0);
        progress.begin("scoring", "facts", None);
        loop {
            let block = rows.next_block(self.given_block())?;
            // A stream ends, too, when the user interrupts.
            if progress.interrupted() {
                return Err(RunError::Interrupted.into());
            }
            if block.is_empty() {
                break;
            }
            let scored = scorer.block(&block, progress)?;
            scored.iter().for_each(|row| tally.add(row));
            take(&scored).map_err(RunError::writing(Path::new("stdout")))?;
            done += block.len() as u64;
            progress.advance(done, &"");
        }
        progress.end(&format_args!("{done} facts"));
        Ok(tally.figures())
    }

    /// Scores the facts of a list into the file `out`, in the order of the list and in the format that the extension
    /// names; `.jsonl` has all fields. If interrupted, the same call resumes.
    ///
    /// # Errors
    /// If the options do not fit the run, a file cannot be read or written, the reasoner fails, or the user interrupts.
    pub fn score_file(
        &self,
        list: &Path,
        options: &ScoreOptions,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<ScoredFile, AskError> {
        let began = Instant::now();
        check_scores(out, self)?;
        let (_claim, blocks, numbers) = self.score_blocks(list, options, Shard::WHOLE, out, progress)?;
        let mut rows = numbers.iter().flat_map(|&number| blocks.rows::<ScoredTriple>(number));
        let written = write_scores(out, &mut rows, began)?;
        blocks.remove()?;
        progress.end(&written);
        Ok(written)
    }

    /// Scores `shard`'s part of a list, into the file `out`. If interrupted, the same call resumes.
    ///
    /// # Errors
    /// Those of [`score_file`](Self::score_file).
    pub fn score_shard(
        &self,
        list: &Path,
        options: &ScoreOptions,
        shard: Shard,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<ShardReport, AskError> {
        let header = self.shard_header(ShardKind::Scores, shard, &self.score_settings(list, options)?)?;
        crate::ask::shards::unless_there(&header, out, || {
            let (_claim, blocks, numbers) = self.score_blocks(list, options, shard, out, progress)?;
            let mut rows = numbers.iter().flat_map(|&number| blocks.rows::<ScoredTriple>(number));
            let written = write_part(out, &header, |out| rows.try_for_each(|row| out.row(&row?)))?;
            blocks.remove()?;
            progress.end(&format_args!("{written} facts"));
            Ok(written)
        })
    }

    /// How many given facts are asked at a time, and are in memory.
    pub(super) fn given_block(&self) -> usize {
        (self.graph().facts() / FACTS_EACH).clamp(BLOCK[0], BLOCK[1])
    }

    fn score_settings(&self, list: &Path, options: &ScoreOptions) -> Result<ScoreSettings, AskError> {
        Ok(ScoreSettings {
            list: Checksum::of_file(list)?,
            threshold: options.threshold.clone(),
            negatives: options.negatives.as_deref().map(Checksum::of_file).transpose()?,
            beam: self.config().walk.beam,
        })
    }

    /// Scores the unfinished blocks of a shard; returns the numbers of all of its blocks.
    fn score_blocks(
        &self,
        list: &Path,
        options: &ScoreOptions,
        shard: Shard,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<(crate::aside::Claim, Blocks, Vec<u64>), AskError> {
        check_writable(out)?;
        let mut rows = NamedRows::open(list, TRIPLES)?;
        let claim = claim_file(out).map_err(RunError::writing(out))?.ok_or_else(|| {
            AskError::Cannot(format!("{}: another process is scoring into this file", out.display()))
        })?;
        let settings = self.score_settings(list, options)?;
        let inputs = Checksum::of(&(crate::VERSION, self.given_block(), self.sum()?, settings, shard));
        let blocks = Blocks::of_kind(ShardKind::Scores, out, &inputs)?;
        // Only fitted once there is a block to score.
        let mut scorer = None;
        let (mut numbers, mut done) = (Vec::new(), 0);
        for number in 0.. {
            let block = rows.next_block(self.given_block())?;
            if block.is_empty() {
                break;
            }
            done += block.len() as u64;
            if !shard.has(number) {
                continue;
            }
            numbers.push(number);
            if blocks.has::<ScoredTriple>(number) {
                continue;
            }
            if scorer.is_none() {
                scorer = Some(Scorer::new(self, options, true, progress)?);
                progress.begin("scoring", "facts", None);
            }
            let Some(scorer) = &scorer else { break };
            let scored = match scorer.block(&block, progress) {
                Err(error) if error.is_interrupted() => {
                    progress.end(&"interrupted; run the same command again to resume");
                    return Err(error);
                }
                scored => scored?,
            };
            blocks.write_rows(number, &scored)?;
            progress.advance(done, &"");
        }
        Ok((claim, blocks, numbers))
    }
}

fn check_scores(out: &Path, model: &Model) -> Result<(), AskError> {
    if !is_json_lines(out) {
        check_table(out, model.names())?;
    }
    Ok(())
}

/// Writes scored facts in the format that the extension of `out` names.
fn write_scores(
    out: &Path,
    rows: &mut dyn Iterator<Item = io::Result<ScoredTriple>>,
    began: Instant,
) -> Result<ScoredFile, AskError> {
    let (mut tally, mut facts, mut errors) = (Tally::default(), 0, 0);
    let mut seen = rows.inspect(|row| {
        if let Ok(row) = row {
            tally.add(row);
            facts += u64::from(row.error.is_none());
            errors += u64::from(row.error.is_some());
        }
    });
    if is_json_lines(out) {
        let written = write_packed(out, |file| {
            for row in &mut seen {
                serde_json::to_writer(&mut *file, &row?)?;
                file.write_all(b"\n")?;
            }
            Ok(())
        });
        written.map_err(RunError::writing(out))?;
    } else {
        let mut cells = seen.map(|row| row.map(ScoredTriple::cells));
        write_table(out, &ScoredTriple::COLUMNS, &mut cells)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(ScoredFile { facts, errors, classification: tally.figures(), seconds, out: out.to_owned() })
}

/// Merges parts of scores into the file `out`.
pub(in crate::ask) fn merge_scores(parts: Parts, out: &Path, began: Instant) -> Result<ScoredFile, AskError> {
    let sources = parts.into_parts().into_iter().map(Part::rows::<ScoredTriple>).collect();
    let mut failed: Option<ShardError> = None;
    let merged = crate::shard::Merge::new(sources, |row: &ScoredTriple| row.line);
    let mut rows = crate::ask::shards::kept_error(merged, &mut failed);
    let written = write_scores(out, &mut rows, began);
    drop(rows);
    match failed {
        Some(error) => Err(error.into()),
        None => written,
    }
}
