//! `evaluate`: the ranking figures of a run.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use crate::protocol::{self, Ranking};
use ruleguider::ask::{OpenOptions, OtherGraph};
use ruleguider::eval::calibration::Reliability;
use ruleguider::eval::{Report, Split};
use ruleguider::graph::SplitShares;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `evaluate`.
#[derive(clap::Args)]
#[command(
    after_help = "Filtered ranking: all other true answers are removed. Tail queries and realistic ties (the mean of
the tied ranks) give the figures that compare.

Examples:
  ruleguider evaluate runs/demonstration
  ruleguider evaluate runs/wn18rr --direction both --ties pessimistic
  ruleguider evaluate runs/wn18rr --split valid --json | jq .mrr
  ruleguider evaluate runs/wn18rr-v1 --on data/wn18rr-v1-ind --direction both"
)]
pub struct Evaluate {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// What to rank
    #[arg(long, value_enum, default_value_t = protocol::Split::Test)]
    split: protocol::Split,
    #[command(flatten)]
    ranking: Ranking,
    #[command(flatten)]
    data: DataOfRun,
}

#[derive(Serialize)]
struct Evaluated<'a> {
    #[serde(flatten)]
    report: &'a Report,
    calibration: &'a Option<Reliability>,
    split: Split,
    seed: u64,
    version: &'static str,
    /// The other graph, where that is not the run's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<&'a OtherGraph>,
}

impl Evaluate {
    /// Ranks and prints.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let console = Console::with_interrupt(common);
        let options = OpenOptions { device: Some(common.device()?), ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::default(), common)?;
        let split = Split::from(self.split);
        let report = match model.evaluate(split, self.ranking.protocol(), &console) {
            Ok(report) => report,
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            Err(error) => return Err(error.into()),
        };
        let calibration = match model.reliability(split, &console) {
            Ok(calibration) => calibration,
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            Err(error) => return Err(error.into()),
        };
        if common.json {
            let (seed, version) = (model.seed(), ruleguider::VERSION);
            let calibration = &calibration;
            console::print_json(&Evaluated {
                report: &report,
                calibration,
                split,
                seed,
                version,
                on: model.on(),
            })?;
        } else {
            let filtered = match self.split {
                protocol::Split::Test => "Test split, filtered",
                protocol::Split::Valid => "Validation split, filtered without test answers",
            };
            let (seed, version) = (model.seed(), ruleguider::VERSION);
            let filtered = match model.on() {
                Some(on) => format!("{filtered}, on {}", on.data),
                None => filtered.to_owned(),
            };
            console::print(&format_args!("{filtered}, seed {seed}, version {version}:"))?;
            console::print(&report.to_string().trim_end())?;
            match (&calibration, model.why_no_probability()?) {
                (Some(calibration), _) => {
                    let fitted = match self.split {
                        protocol::Split::Test => "",
                        protocol::Split::Valid => " (they were fitted to this split)",
                    };
                    console::print(&format_args!("\n{}{fitted}", calibration.to_string().trim_end()))?;
                }
                (None, Some(why)) => console::print(&format_args!("\n{why}"))?,
                (None, None) => {}
            }
        }
        Ok(Outcome::Done)
    }
}
