//! `judge report`: the result of the votes on a study.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::judge::Store;
use ruleguider::judge::Judgement;
use ruleguider::report::judgement::{JudgementReport, disagreements, write_votes};
use ruleguider::run::write_whole;
use std::path::PathBuf;

/// Arguments of `judge report`.
#[derive(clap::Args)]
#[command(
    after_help = "The majority of the judges decides an item. `both` and `neither` count as a draw, and an item without a majority (1-1-1) \
is dropped, as in the paper, whose figures are shown for comparison. The report can be made while judges are voting. \
--page and --votes name the systems: do not show them to judges who are not done. Exit code 1 if there is no vote yet.

Examples:
  ruleguider judge report study.db
  ruleguider judge report study.db --json --votes votes.csv --page disagreements.html"
)]
pub struct Report {
    /// A study
    #[arg(value_name = "STUDY")]
    study: PathBuf,
    /// Votes that an item needs to count [default: one from every judge who has voted]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    needed: Option<u32>,
    /// Write the votes to this CSV file, one per line
    #[arg(long, value_name = "FILE")]
    votes: Option<PathBuf>,
    /// Write the items on which judges disagree to this HTML file
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

impl Report {
    /// Reads the votes and prints the result.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let store = Store::open(&self.study)?;
        let (study, votes) = (store.study()?, store.votes()?);
        let needed = self.needed.map(|needed| needed as usize);
        let report = JudgementReport::new(Judgement::new(&study, &votes, needed));
        if let Some(path) = &self.votes {
            write_whole(path, |out| write_votes(&study, &votes, out))?;
        }
        if let Some(path) = &self.page {
            let page = disagreements(&study, &votes, &report);
            write_whole(path, |out| out.write_all(page.as_bytes()))?;
        }
        if common.json { console::print_json(&report) } else { console::print(&report) }?;
        if votes.is_empty() {
            Console::new(common)
                .note(&"nobody has voted yet; `ruleguider judge serve` gives judges their links");
            return Ok(Outcome::Negative);
        }
        Ok(Outcome::Done)
    }
}
