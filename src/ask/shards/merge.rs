//! Merges parts of any kind.

use super::FactSettings;
use super::ranks::merge_ranks;
use crate::ask::AskError;
use crate::ask::complete::{Completed, Counted, Kept, check_facts, write_facts};
use crate::ask::evaluated::Evaluated;
use crate::ask::given::{ScoredFile, merge_scores};
use crate::graph::{Names, check_writable, write_packed};
use crate::rule::{RuleCounts, merge_rule_shards};
use crate::run::RunError;
use crate::shard::{Merge, Part, Parts, ShardError, ShardKind};
use serde::Serialize;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The result of merging parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Merged {
    /// A rule file.
    Rules {
        /// How many rules it has.
        rules: usize,
        /// How many of each rule type.
        rules_by_type: RuleCounts,
        /// Where it is.
        out: PathBuf,
    },
    /// Answers to a file of queries.
    Answers {
        /// How many queries there are.
        queries: u64,
        /// Where the answers are.
        out: PathBuf,
    },
    /// The figures of a split.
    Ranks(Box<Evaluated>),
    /// Missing facts.
    Facts(Completed),
    /// Scores of given facts.
    Scores(ScoredFile),
}

impl fmt::Display for Merged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Merged::Rules { rules, rules_by_type: RuleCounts { cyclic, acyclic, zero }, out } => {
                write!(f, "{rules} rules: {cyclic} cyclic, {acyclic} acyclic, {zero} zero: {}", out.display())
            }
            Merged::Answers { queries, out } => write!(f, "answers to {queries} queries: {}", out.display()),
            Merged::Ranks(evaluated) => evaluated.fmt(f),
            Merged::Facts(completed) => completed.fmt(f),
            Merged::Scores(scored) => scored.fmt(f),
        }
    }
}

/// Merges all parts of one job, given in any order: into the file `out`, or for ranks into figures. The result is what
/// one process would have given.
///
/// # Errors
/// If a part is missing, damaged, or of another job, seed, version, data or settings; if an output file is needed but
/// not given, or cannot be written.
pub fn merge(parts: &[PathBuf], out: Option<&Path>) -> Result<Merged, AskError> {
    let began = Instant::now();
    let parts = Parts::open(parts)?;
    let kind = parts.header().kind;
    let file = || {
        let named = out.ok_or_else(|| {
            AskError::Cannot(format!("merging parts of {kind} needs an output file; name one"))
        })?;
        check_writable(named)?;
        Ok::<&Path, AskError>(named)
    };
    match kind {
        ShardKind::Rules => {
            let out = file()?;
            let rules_by_type = merge_rule_shards(parts, out)?;
            Ok(Merged::Rules { rules: rules_by_type.all(), rules_by_type, out: out.to_owned() })
        }
        ShardKind::Answers => {
            let out = file()?;
            Ok(Merged::Answers { queries: merge_answers(parts, out)?, out: out.to_owned() })
        }
        ShardKind::Ranks => {
            let evaluated = merge_ranks(parts)?;
            if let Some(out) = out {
                check_writable(out)?;
                let text = serde_json::to_vec_pretty(&evaluated).expect("figures are plain data");
                let written =
                    write_packed(out, |file| file.write_all(&text).and_then(|()| file.write_all(b"\n")));
                written.map_err(RunError::writing(out))?;
            }
            Ok(Merged::Ranks(Box::new(evaluated)))
        }
        ShardKind::Scores => Ok(Merged::Scores(merge_scores(parts, file()?, began)?)),
        ShardKind::Facts => {
            let out = file()?;
            let settings: FactSettings = parts.header().settings(parts.path())?;
            let entities = settings.breaking.iter().map(String::as_str).collect();
            check_facts(out, &Names { entities, ..Names::default() })?;
            let FactSettings { top, held_out, hidden, queries, .. } = settings;
            let (kept, mut found) = (Kept { held_out, most: top.unwrap_or(usize::MAX) }, Counted::default());
            let facts = merge_facts(parts, kept, &mut found, out)?;
            let (recovered, seconds) = (found.of(hidden), began.elapsed().as_secs_f64());
            let (tied, out) = (found.tied.count, out.to_owned());
            Ok(Merged::Facts(Completed { facts, recovered, tied, held_out, queries, seconds, out }))
        }
    }
}

fn merge_answers(parts: Parts, out: &Path) -> Result<u64, AskError> {
    let sources = parts.into_parts().into_iter().map(Part::rows::<(u64, String)>).collect();
    let mut queries = 0;
    let mut failed = None;
    let written = write_packed(out, |file| {
        for row in kept_error(Merge::new(sources, |row: &(u64, String)| row.0), &mut failed) {
            file.write_all(row?.1.as_bytes())?;
            queries += 1;
        }
        Ok(())
    });
    match failed {
        Some(error) => Err(error.into()),
        None => written.map_err(RunError::writing(out)).map(|()| queries).map_err(AskError::from),
    }
}

fn merge_facts(parts: Parts, kept: Kept, found: &mut Counted, out: &Path) -> Result<u64, AskError> {
    let sources = parts.into_parts().into_iter().map(Part::rows).collect();
    let mut failed = None;
    let merge = Merge::new(sources, |row: &crate::ask::complete::RankedFact| row.0);
    let written = write_facts(out, &mut kept.shown(kept_error(merge, &mut failed), found));
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(written?),
    }
}

/// Adapts `rows` for a writer that only accepts I/O errors; the original error is stored in `failed`.
pub(in crate::ask) fn kept_error<T>(
    rows: impl Iterator<Item = Result<T, ShardError>>,
    failed: &mut Option<ShardError>,
) -> impl Iterator<Item = io::Result<T>> {
    rows.map(|row| {
        row.map_err(|error| {
            let message = io::Error::other(error.to_string());
            *failed = Some(error);
            message
        })
    })
}
