//! `evaluate`: the ranking figures of a run.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use crate::part::Share;
use crate::protocol::{self, Extent, Ranking};
use anyhow::ensure;
use ruleguider::ask::{Model, OpenOptions};
use ruleguider::eval::Split;
use ruleguider::graph::{Direction, RelationId, SplitShares};
use std::path::{Path, PathBuf};

/// Arguments of `evaluate`.
#[derive(clap::Args)]
#[command(
    after_help = "Filtered ranking: all other true answers are removed. The defaults, tail queries and realistic ties (the \
mean of the tied ranks), give comparable figures.

Examples:
  ruleguider evaluate runs/demonstration
  ruleguider evaluate runs/wn18rr --direction both --ties pessimistic
  ruleguider evaluate runs/demonstration --relation cousin_of --relation sibling_of
  ruleguider evaluate runs/wn18rr --split valid --json | jq .mrr
  ruleguider evaluate runs/wn18rr-v1 --on data/wn18rr-v1-ind --direction both
  ruleguider evaluate runs/wn18rr --shard 1/4 --out ranks-1.shard"
)]
pub struct Evaluate {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The split to rank
    #[arg(long, value_enum, default_value_t = protocol::Split::Test)]
    split: protocol::Split,
    /// Only facts of this relation; may be given several times [default: all relations]
    #[arg(long, value_name = "RELATION")]
    relation: Vec<String>,
    /// Rank part I of N of the queries, or parts I to J (I-J/N), and write it to --out; `merge` combines all N parts
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<Share>,
    /// The file for the part; its name ends in .shard, and {} in it is the number of the part
    #[arg(long, value_name = "FILE", requires = "shard")]
    out: Option<PathBuf>,
    #[command(flatten)]
    ranking: Ranking,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    data: DataOfRun,
}

impl Evaluate {
    /// The requested relations.
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
        let (split, relations) = (Split::from(self.split), self.relations(&model)?);
        let protocol = self.extent.of(self.ranking.protocol());
        if let (Some(share), Some(out)) = (self.shard, &self.out) {
            let make =
                |shard, out: &Path| model.evaluate_shard(split, &relations, protocol, shard, out, &console);
            return share.each(out, common, make);
        }
        let evaluated = match model.evaluated(split, &relations, protocol, &console) {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            evaluated => evaluated?,
        };
        if common.json { console::print_json(&evaluated) } else { console::print(&evaluated) }?;
        Ok(Outcome::Done)
    }
}
