//! `generate`: graphs with known rules, of any size.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use ruleguider::generate::{self, Written};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Arguments of `generate`.
#[derive(clap::Args)]
pub struct Generate {
    /// What to generate.
    #[command(subcommand)]
    world: World,
}

/// The kinds of graph that can be generated.
#[derive(clap::Subcommand)]
enum World {
    /// People over several generations, their relatives and where they live
    Family(FamilyArguments),
}

/// Arguments of `generate family`.
#[derive(clap::Args)]
#[command(
    after_help = "Writes train.tsv, valid.tsv, test.tsv, entity_labels.tsv, and planted_rules.tsv with the \
    planted rules and how often each holds. The same seed gives the same files on every machine.\n\n\
    Example:\n  ruleguider generate family --people 1000 --seed 7 --out data/family"
)]
struct FamilyArguments {
    /// How many people, 50 or more; each gives about a dozen facts
    #[arg(long, value_name = "N", default_value_t = 360)]
    people: u64,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write into a folder that already has files, replacing those with the same names
    #[arg(long)]
    force: bool,
}

impl Generate {
    /// Generates and writes.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        match &self.world {
            World::Family(arguments) => arguments.run(common),
        }
    }
}

impl FamilyArguments {
    fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let began = Instant::now();
        let console = Console::with_interrupt(common);
        let written = generate::write(self.people, common.seed, &self.out, self.force, &console)?;
        let Some(written) = written else {
            console.note(&"interrupted: nothing was written");
            return Ok(Outcome::Interrupted);
        };
        let summary = Summary::new(&written, common.seed, &self.out, began.elapsed().as_secs_f64());
        if common.json { console::print_json(&summary) } else { console::print(&summary) }?;
        Ok(Outcome::Done)
    }
}

/// The summary of what was written.
#[derive(Serialize)]
struct Summary<'a> {
    out: &'a Path,
    people: u64,
    seed: u64,
    facts: u64,
    train: u64,
    valid: u64,
    test: u64,
    left_out: u64,
    planted_rules: usize,
    seconds: f64,
}

impl<'a> Summary<'a> {
    fn new(written: &Written, seed: u64, out: &'a Path, seconds: f64) -> Self {
        let &Written { people, train, valid, test, left_out, ref rules } = written;
        let facts = train + valid + test;
        Self { out, people, seed, facts, train, valid, test, left_out, planted_rules: rules.len(), seconds }
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { people, seed, facts, train, valid, test, left_out, planted_rules, .. } = self;
        writeln!(f, "{}: a family of {people} people, seed {seed}", self.out.display())?;
        writeln!(
            f,
            "  {facts} facts: {train} train, {valid} valid, {test} test; {left_out} more are true and left out"
        )?;
        write!(f, "  {planted_rules} planted rules with their counts in planted_rules.tsv")
    }
}
