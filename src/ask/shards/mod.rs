//! Parts of long jobs: mining, answering, ranking, completing; and one [`merge`] for all of them.
//!
//! A part is cut where one process cuts its work too (prefixes, blocks of queries, batches), so that all parts together
//! give what one process gives, to the last digit. A complete part is not computed again.

mod merge;
mod ranks;
#[cfg(test)]
mod tests;

pub(super) use merge::kept_error;
pub use merge::{Merged, merge};

use super::complete::{CompleteOptions, HeldOutFacts, breaking_name};
use super::{AnswersAmong, AskError, Model, QueryLines};
use crate::eval::{Protocol, Split};
use crate::graph::{Dataset, Names, RelationId, check_writable};
use crate::progress::Progress;
use crate::rule::{self, MineOptions, RuleShardSettings, write_rule_shard};
use crate::run::{Checksum, RunError, Stages};
use crate::shard::{Header, RowWriter, Shard, ShardKind, check_name, is_complete, write_part};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The report on a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardReport {
    /// What its rows are.
    pub kind: ShardKind,
    /// Which part it is.
    pub shard: Shard,
    /// How many rows it has; absent if it already existed.
    pub rows: Option<u64>,
    /// How long it took.
    pub seconds: f64,
    /// Where it is.
    pub out: PathBuf,
}

impl fmt::Display for ShardReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, shard, rows, seconds, out } = self;
        let out = out.display();
        match rows {
            Some(rows) => write!(f, "part {shard} of the {kind}: {rows} rows in {seconds:.1} s: {out}"),
            None => write!(f, "part {shard} of the {kind} already exists: {out}"),
        }
    }
}

/// The inputs of answers beside the run.
#[derive(Serialize, Deserialize)]
struct AnswerSettings {
    queries: Checksum,
    top: usize,
    beam: usize,
    /// Which entities may be answers; absent if all may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    among: Option<Checksum>,
}

/// The inputs of missing facts beside the run.
#[derive(Serialize, Deserialize)]
struct FactSettings {
    links: Vec<u32>,
    queries: u64,
    top: Option<usize>,
    min_probability: Option<f64>,
    held_out: HeldOutFacts,
    hidden: u64,
    /// Which entities may be subjects and objects of facts; absent if all may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<[Option<Checksum>; 2]>,
    beam: usize,
    /// A name that a tab-separated file cannot hold, if there is one.
    breaking: Option<String>,
}

/// Makes the part that `header` describes unless it exists; `make` returns how many rows it wrote.
pub(super) fn unless_there(
    header: &Header,
    out: &Path,
    make: impl FnOnce() -> Result<u64, AskError>,
) -> Result<ShardReport, AskError> {
    let began = Instant::now();
    check_name(out)?;
    let rows = match is_complete(out, header) {
        true => None,
        false => {
            check_writable(out)?;
            Some(make()?)
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    Ok(ShardReport { kind: header.kind, shard: header.shard, rows, seconds, out: out.to_owned() })
}

fn rules_header(names: &Names, data: String, options: &MineOptions, shard: Shard) -> Header {
    let relations = names.relations.iter().map(str::to_owned).collect();
    let settings = RuleShardSettings { options: options.clone(), relations };
    Header::new(ShardKind::Rules, shard, options.seed, data, &settings)
}

/// Mines `shard`'s part of the rules in the graph of `dataset`, into the file `out`.
///
/// # Errors
/// If the options are invalid or depend on the clock, the file cannot be written, or the user interrupts: an incomplete
/// part is useless.
pub fn mine_shard(
    dataset: &Dataset,
    options: &MineOptions,
    shard: Shard,
    out: &Path,
    progress: &dyn Progress,
) -> Result<ShardReport, AskError> {
    let names = &dataset.names;
    if dataset.known.notes.has_confidence() {
        return Err(AskError::Cannot(
            "the data have confidences, by which rules are weighed as a whole; mine without --shard"
                .to_owned(),
        ));
    }
    let data = Checksum::of_known(names, &dataset.known).to_string();
    let header = rules_header(names, data, options, shard);
    unless_there(&header, out, || {
        let mined = rule::mine_shard(&dataset.graph(), options, shard, progress)?;
        if mined.mined.interrupted {
            return Err(RunError::Interrupted.into());
        }
        Ok(write_rule_shard(out, &header, &mined, names)?)
    })
}

impl Model {
    /// The checksum of everything that answers depend on: the data and what was learnt from it.
    pub(super) fn sum(&self) -> Result<Checksum, AskError> {
        let stages = Stages::of(self.directory())?;
        let made: Vec<_> = stages.records().values().map(|record| (&record.inputs, &record.files)).collect();
        Ok(Checksum::of(&(Checksum::of_dataset(self.dataset(), self.checksum()), made)))
    }

    pub(super) fn shard_header(
        &self,
        kind: ShardKind,
        shard: Shard,
        settings: &impl Serialize,
    ) -> Result<Header, AskError> {
        Ok(Header::new(kind, shard, self.seed(), self.sum()?.to_string(), settings))
    }

    /// Answers `shard`'s part of the queries of a file, by `workers` threads, into the file `out`.
    ///
    /// # Errors
    /// If a file cannot be read or written, the reasoner fails, or the user interrupts.
    pub fn predict_shard(
        &self,
        queries: &Path,
        (top, among): (usize, &AnswersAmong),
        shard: Shard,
        workers: usize,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<ShardReport, AskError> {
        let settings = AnswerSettings {
            queries: Checksum::of_file(queries)?,
            top,
            beam: self.config().walk.beam,
            among: among.checksum(),
        };
        let header = self.shard_header(ShardKind::Answers, shard, &settings)?;
        unless_there(&header, out, || {
            let mut input = QueryLines::open(queries)?;
            let mut answered = Vec::new();
            progress.begin("predicting", "queries", None);
            for number in 0.. {
                let lines = input.next_block()?;
                if lines.is_empty() {
                    break;
                }
                if shard.has(number) {
                    let before = answered.len() as u64;
                    answered
                        .extend(self.answer_lines(&lines, (top, among), workers, before, progress)?.lines);
                }
            }
            progress.end(&format_args!("{} queries", answered.len()));
            let write = |out: &mut RowWriter<'_>| answered.iter().try_for_each(|line| out.row(line));
            Ok(write_part(out, &header, write)?)
        })
    }

    /// Ranks `shard`'s part of the true answers of a split, into the file `out`; otherwise as
    /// [`evaluated`](Self::evaluated).
    ///
    /// # Errors
    /// If the split has been learnt, the file cannot be written, the reasoner fails, or the user interrupts.
    pub fn evaluate_shard(
        &self,
        split: Split,
        relations: &[RelationId],
        protocol: Protocol,
        shard: Shard,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<ShardReport, AskError> {
        if split != Split::Test {
            self.expect_valid_unlearnt()?;
        }
        let settings = self.rank_settings(split, relations, protocol)?;
        let header = self.shard_header(ShardKind::Ranks, shard, &settings)?;
        unless_there(&header, out, || {
            let rows = self.rank_rows(split, relations, protocol, shard, progress)?;
            let write = |out: &mut RowWriter<'_>| rows.iter().try_for_each(|row| out.row(row));
            Ok(write_part(out, &header, write)?)
        })
    }

    /// The header of a part of the completion.
    pub(super) fn facts_header(&self, options: &CompleteOptions, shard: Shard) -> Result<Header, AskError> {
        let links = self.links_of(options);
        let settings = FactSettings {
            links: links.iter().map(|link| link.0).collect(),
            queries: self.count_asked(options, &links),
            top: options.top,
            min_probability: options.min_probability,
            held_out: options.held_out,
            hidden: self.hidden(&links),
            ends: options.ends(),
            beam: self.config().walk.beam,
            breaking: breaking_name(self.names()),
        };
        self.shard_header(ShardKind::Facts, shard, &settings)
    }

    /// Completes `shard`'s part of the graph, into the file `out`. If interrupted, the same call resumes.
    ///
    /// # Errors
    /// If the options do not fit the run, the reasoner fails, a file cannot be written, or the user interrupts.
    pub fn complete_shard(
        &self,
        options: &CompleteOptions,
        shard: Shard,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<ShardReport, AskError> {
        let header = self.facts_header(options, shard)?;
        unless_there(&header, out, || self.complete_part(options, shard, &header, out, progress))
    }
}
