//! `stats`: what a data set holds.

use crate::Outcome;
use crate::arguments::Common;
use std::path::PathBuf;

/// Arguments of `stats`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ruleguider stats data/wn18rr --json")]
pub struct Stats {
    /// A folder of splits, or one file of triples
    data: PathBuf,
}

impl Stats {
    /// Reads and counts.
    pub fn run(&self, _common: &Common) -> anyhow::Result<Outcome> {
        anyhow::bail!("{}: reading is not built yet", self.data.display())
    }
}
