//! `judge`: blind judgement of paths by people, from drawing a study to its report.

mod measure;
mod prepare;
mod report;
mod serve;
mod systems;

use crate::Outcome;
use crate::arguments::Common;
use clap::Subcommand;

/// Arguments of `judge`.
#[derive(clap::Args)]
#[command(
    after_help = "A study has three steps: `prepare` draws it from the validation split, `serve` gives every judge a link, and `report` \
prints the result of the votes. `measure` computes figures about paths without judges.

Examples:
  ruleguider judge prepare runs/ours runs/theirs --triples 300 --seed 1 --out study.db
  ruleguider judge serve study.db --judges 3
  ruleguider judge report study.db"
)]
pub struct Judge {
    #[command(subcommand)]
    step: Step,
}

/// The steps of a study.
#[derive(Subcommand)]
enum Step {
    /// Draw a study: facts that both systems explain, each with both paths
    #[command(
        before_help = "Example: ruleguider judge prepare runs/demonstration runs/rules --triples 20 --out study.db"
    )]
    Prepare(prepare::Prepare),
    /// Serve the page on which judges vote, blind, and print a link for each judge
    #[command(before_help = "Example: ruleguider judge serve study.db --judges 3")]
    Serve(serve::Serve),
    /// Print the result of the votes: the paper's table, intervals, agreement
    #[command(before_help = "Example: ruleguider judge report study.db")]
    Report(report::Report),
    /// Measure the paths of systems without judges: rules followed, length, support
    #[command(before_help = "Example: ruleguider judge measure runs/demonstration --triples 50")]
    Measure(measure::Measure),
}

impl Judge {
    /// Does what was asked for.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        match &self.step {
            Step::Prepare(step) => step.run(common),
            Step::Serve(step) => step.run(common),
            Step::Report(step) => step.run(common),
            Step::Measure(step) => step.run(common),
        }
    }
}
