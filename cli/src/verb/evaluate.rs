//! `evaluate`: the ranking figures of a run.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use crate::part::Share;
use crate::protocol::{self, Extent, Ranking};
use anyhow::ensure;
use ruleguider::ask::{EvaluateOptions, Evaluated, Model, OpenOptions, ScoreOptions, Threshold};
use ruleguider::eval::Split;
use ruleguider::graph::{Direction, RelationId, SplitShares};
use std::path::{Path, PathBuf};

/// How many queries' answers are checked for faithful reasons by default.
const QUERIES: u32 = 100;

/// Arguments of `evaluate`.
#[derive(clap::Args)]
#[command(
    after_help = "Filtered ranking: all other true answers are removed. A run of one's own graph is ranked in both \
directions, a built-in configuration for tails, as published figures are. Realistic ties are the mean of the tied ranks. \
The rows *by popularity* and *as similar* need no model: a model that is not above them is worth nothing.

Examples:
  ruleguider evaluate runs/demonstration
  ruleguider evaluate runs/wn18rr --direction both --ties pessimistic
  ruleguider evaluate runs/demonstration --relation cousin_of --relation sibling_of
  ruleguider evaluate runs/wn18rr --split valid --json | jq .mrr
  ruleguider evaluate runs/demonstration --strata
  ruleguider evaluate runs/hetionet --candidates typed
  ruleguider evaluate runs/demonstration --faithfulness --queries 50
  ruleguider evaluate runs/wn18rr-v1 --on data/wn18rr-v1-ind --direction both
  ruleguider evaluate runs/codex-m --classify
  ruleguider evaluate runs/codex-m --predict-relations
  ruleguider evaluate runs/wn18rr --shard 1/4 --out ranks-1.shard"
)]
pub struct Evaluate {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The split to rank
    #[arg(long, value_parser = protocol::splits(), default_value = "test")]
    split: Split,
    /// Only facts of this relation; may be given several times [default: all relations]
    #[arg(long, value_name = "RELATION")]
    relation: Vec<String>,
    /// Also check whether the reasons shown are the cause of the best answers: take their facts out and ask again
    #[arg(long, conflicts_with = "shard")]
    faithfulness: bool,
    /// How many queries of the test split to check the reasons of [default: 100]
    #[arg(long, value_name = "N", requires = "faithfulness", value_parser = clap::value_parser!(u32).range(1..))]
    queries: Option<u32>,
    /// Also figures by situation: how far the answer is from the subject, whether the graph has it with this relation, how
    /// many edges the subject has, and how many rules predict the answer
    #[arg(long, conflicts_with = "shard")]
    strata: bool,
    /// Rank part I of N of the queries, or parts I to J (I-J/N), and write it to --out; `merge` combines all N parts
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<Share>,
    /// The file for the part; its name ends in .shard, and {} in it is the number of the part
    #[arg(long, value_name = "FILE", requires = "shard")]
    out: Option<PathBuf>,
    /// Triple classification: tell the facts of the split from as many false ones, which are drawn from the entities that
    /// the graph shows at each side of a relation
    #[arg(long, conflicts_with_all = ["shard", "relation", "strata"])]
    classify: bool,
    /// Rank the relation of each fact among all relations instead: hits and MRR of relation prediction
    #[arg(long, conflicts_with_all = ["shard", "relation", "classify", "strata"])]
    predict_relations: bool,
    /// Also rank among the entities whose types fit the relation asked for, beside the ranking among all: all, typed
    #[arg(long, value_name = "WHICH", default_value = "all", value_parser = ["all", "typed"], conflicts_with = "shard")]
    candidates: String,
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
        let device = if self.classify || self.predict_relations {
            common.device_for_many()?
        } else {
            common.device()?
        };
        let options = OpenOptions { device: Some(device), first: true, ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::default(), common)?;
        if self.classify {
            let options = ScoreOptions {
                threshold: Threshold::Auto,
                workers: model.device().workers(),
                ..ScoreOptions::default()
            };
            let figures = match model.classify(self.split, &options, &console) {
                Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
                figures => figures?,
            };
            if common.json { console::print_json(&figures) } else { console::print(&figures) }?;
            return Ok(Outcome::Done);
        }
        if self.predict_relations {
            let workers = model.device().workers();
            let figures = match model.evaluate_relation_prediction(self.split, workers, &console) {
                Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
                figures => figures?,
            };
            if common.json { console::print_json(&figures) } else { console::print(&figures) }?;
            return Ok(Outcome::Done);
        }
        let (split, relations) = (self.split, self.relations(&model)?);
        let protocol = self.extent.of(self.ranking.protocol(model.config().eval.direction));
        if let (Some(share), Some(out)) = (self.shard, &self.out) {
            let make =
                |shard, out: &Path| model.evaluate_shard(split, &relations, protocol, shard, out, &console);
            return share.each(out, common, make);
        }
        let faithfulness = || match self.faithfulness {
            true => model.faithfulness(self.queries.unwrap_or(QUERIES) as usize, &console),
            false => Ok(None),
        };
        let typed = || match self.candidates == "typed" {
            true => model.evaluated_among_types(split, &relations, protocol, &console).map(Some),
            false => Ok(None),
        };
        let options =
            EvaluateOptions { relations: relations.clone(), strata: self.strata, calibration: true };
        let evaluated = model.evaluate_each(split, protocol, &options, &console);
        let evaluated = evaluated.and_then(|(evaluated, _)| {
            Ok(Evaluated { typed: typed()?, faithfulness: faithfulness()?, ..evaluated })
        });
        let evaluated = match evaluated {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            evaluated => evaluated?,
        };
        if common.json { console::print_json(&evaluated) } else { console::print(&evaluated) }?;
        Ok(Outcome::Done)
    }
}
