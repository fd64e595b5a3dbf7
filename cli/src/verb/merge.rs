//! `merge`: merges the parts of a job.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use ruleguider::ask::{self, Merged};
use std::path::PathBuf;

/// Arguments of `merge`.
#[derive(clap::Args)]
#[command(
    after_help = "The parts are those that mine, predict --file, evaluate and complete make with --shard i/n, all n of them
in any order; what they are, their headers say. What comes out is what one process would have given, byte for byte; of an
evaluation the figures are printed as evaluate prints them, with the seconds of all parts. A part that is missing,
damaged, or of another seed, version, data or settings is named, and nothing is written.

Examples:
  ruleguider merge rules-*.shard --out rules.tsv
  ruleguider merge missing-*.shard.zst --out missing.parquet
  ruleguider merge ranks-*.shard --json | jq .mrr"
)]
pub struct Merge {
    /// All parts, in any order
    #[arg(value_name = "PART", required = true)]
    parts: Vec<PathBuf>,
    /// The file that they make; of an evaluation, its JSON
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
