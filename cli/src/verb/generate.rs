//! `generate`: graphs with known rules, of any size.

use super::complete::share;
use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::{Data, Form, Reading};
use anyhow::ensure;
use ruleguider::generate::{self, Written};
use ruleguider::graph::{write_dataset, write_file};
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
    /// A copy of a data set in which some training facts are false
    Errors(ErrorsArguments),
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

/// Arguments of `generate errors`.
#[derive(clap::Args)]
#[command(
    after_help = "Replaces one end of some training facts by another entity that the relation has at that end, so that the fact \
is new. The other splits stay as they are. The false facts are listed in errors.tsv: `doubt --errors` measures how well they \
are found.\n\n\
    Example:\n  ruleguider generate errors data/umls --share 0.03 --out data/umls-errors"
)]
struct ErrorsArguments {
    /// A folder of splits, a file of triples, or a data file
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// The share of training facts to replace
    #[arg(long, value_name = "SHARE", default_value_t = 0.03, value_parser = share)]
    share: f64,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl ErrorsArguments {
    fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let data = Data {
            path: self.data.clone(),
            options: Reading { shares: None, split_time: None, form: Form::default() },
        };
        let with_errors = generate::with_errors(&data.read(common)?, self.share, common.seed);
        let generate::WithErrors { dataset, errors } = &with_errors;
        let occupied = std::fs::read_dir(&self.out).is_ok_and(|mut files| files.next().is_some());
        ensure!(!occupied, "{}: has files already; name another folder", self.out.display());
        write_dataset(&self.out, "tsv", dataset)?;
        write_file(&self.out.join("errors.tsv"), &dataset.names, errors)?;
        let (out, count) = (self.out.display(), errors.len());
        let summary =
            serde_json::json!({ "out": self.out, "errors": count, "train": dataset.known.facts.len() });
        match common.json {
            true => console::print_json(&summary)?,
            false => console::print(&format_args!(
                "{out}: {count} of {} training facts are false",
                dataset.known.facts.len()
            ))?,
        }
        Ok(Outcome::Done)
    }
}

impl Generate {
    /// Generates and writes.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        match &self.world {
            World::Family(arguments) => arguments.run(common),
            World::Errors(arguments) => arguments.run(common),
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
