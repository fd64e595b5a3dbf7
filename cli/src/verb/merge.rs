//! `merge`: merges the parts of a job.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use ruleguider::ask::{self, Merged};
use std::path::PathBuf;

/// Arguments of `merge`.
#[derive(clap::Args)]
#[command(
    after_help = "Give all n parts that mine, predict --file, evaluate, complete or score wrote with --shard i/n, in any order; their \
headers say what they are. The result is byte for byte that of a single process. For an evaluation, the figures are \
printed as by evaluate, with the seconds of all parts. If a part is missing, damaged, or made with another seed, version, \
data or settings, the error names it and nothing is written.

Examples:
  ruleguider merge rules-*.shard --out rules.tsv
  ruleguider merge missing-*.shard.zst --out missing.parquet
  ruleguider merge ranks-*.shard --json | jq .mrr"
)]
pub struct Merge {
    /// All parts, in any order
    #[arg(value_name = "PART", required = true)]
    parts: Vec<PathBuf>,
    /// The file to write the result to; for an evaluation, its JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Merge {
    /// Merges and prints a summary.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let merged = ask::merge(&self.parts, self.out.as_deref())?;
        match (&merged, common.json) {
            // As `evaluate` prints it.
            (Merged::Ranks(evaluated), true) => console::print_json(evaluated),
            (_, true) => console::print_json(&merged),
            (_, false) => console::print(&merged),
        }?;
        Ok(Outcome::Done)
    }
}
