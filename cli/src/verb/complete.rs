//! `complete`: the missing facts of a run's graph, best first over all subjects.

use super::predict::say_why_not;
use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use crate::on_path::OnPath;
use crate::part::Share;
use ruleguider::ask::{CompleteOptions, HeldOutFacts, OpenOptions};
use ruleguider::graph::{Link, SplitShares};
use std::path::{Path, PathBuf};

/// Arguments of `complete`.
#[derive(clap::Args)]
#[command(
    after_help = "A relation is asked of the entities that resemble those that have it. Facts are sorted best first: by probability if \
the run has probabilities, else by score. Facts of your data that were held out for validation or test are not new: they \
are left out, and it is said how many of the test facts were found; --held-out show adds them, --held-out only writes \
nothing else. The extension of FILE sets the format: .tsv, .csv, .parquet, .nt (and other \
RDF; probability and reason are comments), .jsonl (all fields), each also with .gz or .zst. \
If interrupted or killed, run the same command again to resume.

Examples:
  ruleguider complete runs/demonstration --out missing.tsv
  ruleguider complete runs/demonstration --relation cousin_of --relation '~parent_of' --top 1000 --out missing.jsonl
  ruleguider complete runs/hetionet --relation CtD --subjects Compound --objects Disease --out treatments.tsv
  ruleguider complete runs/hetionet --relation CtD --through Gene --without CrC --out by_genes.tsv
  ruleguider complete runs/demonstration --held-out only --out found_again.tsv
  ruleguider complete runs/demonstration --min-probability 0.9 --shard 1/4 --out missing-1.shard"
)]
pub struct Complete {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Only facts of this relation; may be given several times. ~RELATION asks for heads [default: all relations]
    #[arg(long, value_name = "RELATION")]
    relation: Vec<String>,
    /// Only facts about subjects of this type, or of this file of entities, one a line
    #[arg(long, value_name = "TYPE|FILE")]
    subjects: Option<String>,
    /// Only facts about objects of this type, or of this file
    #[arg(long, value_name = "TYPE|FILE")]
    objects: Option<String>,
    /// Only the N best facts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    top: Option<u64>,
    /// Only facts with at least this probability [default: 0.1, without --top]
    #[arg(long, value_name = "P", value_parser = share)]
    min_probability: Option<f64>,
    /// Facts of the data that were held out: hide, show, only
    #[arg(long, value_name = "WHICH", default_value = "hide")]
    held_out: HeldOutFacts,
    /// Compute part I of N, or parts I to J (I-J/N) with {} for their numbers in FILE; FILE ends in .shard, and `merge`
    /// combines all N parts
    #[arg(long, value_name = "I/N")]
    shard: Option<Share>,
    /// The file to write the facts to
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    on_path: OnPath,
    #[command(flatten)]
    data: DataOfRun,
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("expected a number from 0 to 1, found {text}"))
}

impl Complete {
    /// Completes and prints a summary.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let device = common.device_for_many()?;
        let workers = device.workers();
        let options = OpenOptions { device: Some(device), ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::WHOLE, common)?;
        let console = Console::with_interrupt(common);
        say_why_not(&model, common)?;
        let links: Result<Vec<Link>, _> = self.relation.iter().map(|name| model.index().link(name)).collect();
        let top = self.top.map(|top| usize::try_from(top).unwrap_or(usize::MAX));
        let usual = model.usual_probability(top)?;
        let (min_probability, held_out) = (self.min_probability.or(usual), self.held_out);
        let among = |given: &Option<String>| model.answers_among(given.as_deref(), None);
        let (subjects, objects) = (among(&self.subjects)?, among(&self.objects)?);
        let paths = self.on_path.limits(&model)?;
        let options = CompleteOptions {
            links: links?,
            top,
            min_probability,
            held_out,
            subjects,
            objects,
            paths,
            workers,
        };
        if let Some(share) = self.shard {
            let make = |shard, out: &Path| model.complete_shard(&options, shard, out, &console);
            return share.each(&self.out, common, make);
        }
        let completed = match model.complete(&options, &self.out, &console) {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            completed => completed?,
        };
        if common.json { console::print_json(&completed) } else { console::print(&completed) }?;
        Ok(if completed.facts == 0 { Outcome::Negative } else { Outcome::Done })
    }
}
