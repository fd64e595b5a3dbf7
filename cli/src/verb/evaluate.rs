//! `evaluate`: the ranking figures of a run.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use crate::protocol::{self, Ranking};
use anyhow::ensure;
use ruleguider::ask::{Model, OpenOptions, OtherGraph};
use ruleguider::eval::calibration::Reliability;
use ruleguider::eval::{Report, Split};
use ruleguider::graph::{Direction, RelationId, SplitShares};
use ruleguider::shown::Shown;
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
  ruleguider evaluate runs/demonstration --relation cousin_of --relation sibling_of
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
    /// Only facts of this relation; may be given several times [default: all relations]
    #[arg(long, value_name = "RELATION")]
    relation: Vec<String>,
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
    /// The relations that were asked for; empty for all.
    only: Vec<&'a str>,
    seed: u64,
    version: &'static str,
    /// The other graph, where that is not the run's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<&'a OtherGraph>,
}

impl Evaluate {
    /// The relations that are asked for.
    fn relations(&self, model: &Model) -> anyhow::Result<Vec<RelationId>> {
        let one = |name: &String| {
            let link = model.index().link(name)?;
            let turned = link.direction() == Direction::Inverse;
            ensure!(!turned, "--relation {name}: name the relation itself; --direction head asks for heads");
            Ok(model.relation(name)?)
        };
        self.relation.iter().map(one).collect()
    }

    /// Ranks and prints.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let console = Console::with_interrupt(common);
        let options = OpenOptions { device: Some(common.device()?), first: true, ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::default(), common)?;
        let split = Split::from(self.split);
        let relations = self.relations(&model)?;
        let report = match model.evaluate_relations(split, &relations, self.ranking.protocol(), &console) {
            Ok(report) => report,
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            Err(error) => return Err(error.into()),
        };
        let calibration = match model.reliability_of(split, &relations, &console) {
            Ok(calibration) => calibration,
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            Err(error) => return Err(error.into()),
        };
        if common.json {
            let (seed, version) = (model.seed(), ruleguider::VERSION);
            let calibration = &calibration;
            let only = relations.iter().map(|&relation| model.names().relation(relation)).collect();
            console::print_json(&Evaluated {
                report: &report,
                calibration,
                split,
                only,
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
            let only: Vec<&str> =
                relations.iter().map(|&relation| model.names().relation_label(relation)).collect();
            let only = if only.is_empty() { String::new() } else { format!(", only {}", only.join(", ")) };
            console::print(&format_args!("{filtered}{}, seed {seed}, version {version}:", Shown(only)))?;
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
