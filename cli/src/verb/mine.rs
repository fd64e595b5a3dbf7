//! `mine`: finds rules.

use crate::arguments::{Common, one_of};
use crate::console::{self, Console};
use crate::data::Data;
use crate::part::Share;
use crate::{Outcome, usage};
use anyhow::{Context, ensure};
use clap::builder::TypedValueParser;
use ruleguider::ask::mine_shard;
use ruleguider::config::MOST_SAMPLES;
use ruleguider::graph::{Dataset, Names, RelationId, check_writable};
use ruleguider::rule::{self, ApplyOptions, Confidence, Keep, MineOptions, Mined, MiningBudget, RuleType};
use ruleguider::run::Mining;
use ruleguider::shard::check_name;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `mine`.
#[derive(clap::Args)]
#[command(
    after_help = "Rules are written in AnyBURL's format: predicted, correct, correct / predicted, rule. They are \
    ordered by the smoothed confidence, correct / (predicted + P) with P from --unseen, the highest first. A \
    confidence with an exponent (1.5e-1) marks counts that were estimated from a sample; all others are exact. \
    Ctrl-C keeps the rules found so far.\n\n\
    With --shard, several processes or machines share the counting: each writes a part (FILE ends in .shard), and `merge` \
    combines them. A complete part is not computed again. Convert large data to a data file first (`ruleguider convert \
    DATA data.rg`): parts then map it into memory instead of parsing text.\n\n\
    Examples:\n  ruleguider mine data/wn18rr --seconds 10 --out rules.tsv\n  \
    ruleguider mine data/fb15k-237 --seconds 100 --types cyclic,acyclic,zero --out rules.tsv --json\n  \
    ruleguider mine data/nell-995 --samples 100000 --heads concept:athleteplaysforteam --out rules.tsv\n  \
    ruleguider mine data/fb15k-237 --saturate --shard 3/16 --out parts/rules-3.shard"
)]
pub struct Mine {
    #[command(flatten)]
    data: Data,
    /// Where to write the rules (.gz and .zst are compressed)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Stop after this many seconds, or when everything has been counted
    #[arg(long, value_name = "S", default_value_t = 10.0, conflicts_with = "samples")]
    seconds: f64,
    /// Count the bodies that this many random walks nominate, without a time limit: same seed, same rules
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_SAMPLES))]
    samples: Option<u64>,
    /// Mine until everything has been counted, without a time limit: same seed, same rules
    #[arg(long, conflicts_with_all = ["samples", "seconds"])]
    saturate: bool,
    /// Count part I of N, or parts I to J (I-J/N) with {} for their numbers in FILE; needs --samples or --saturate, since
    /// a time limit is not repeatable
    #[arg(long, value_name = "I/N", conflicts_with = "seconds")]
    shard: Option<Share>,
    /// The types of rules to look for
    #[arg(long, value_name = "TYPES", value_parser = rule_types(), value_delimiter = ',', default_value = "cyclic")]
    types: Vec<RuleType>,
    /// The longest body of a cyclic rule [default: 3, and longer if time is left and longer bodies rank the
    /// validation split better]
    #[arg(long, value_name = "N")]
    max_length: Option<usize>,
    /// The longest body of a rule with constants
    #[arg(long, value_name = "N", default_value_t = MineOptions::default().max_acyclic_length)]
    max_acyclic_length: usize,
    /// The fewest correct predictions of a rule
    #[arg(long, value_name = "N", default_value_t = MineOptions::default().min_support)]
    min_support: u64,
    /// The lowest smoothed confidence of a rule
    #[arg(long, value_name = "C", default_value_t = MineOptions::default().min_confidence)]
    min_confidence: f64,
    /// The smoothing constant of the confidence, correct / (predicted + P)
    #[arg(long, value_name = "P", default_value_t = MineOptions::default().unseen)]
    unseen: f64,
    /// Let different variables of a rule bind the same entity
    #[arg(long)]
    no_object_identity: bool,
    /// Only rules for these relations
    #[arg(long, value_name = "RELATION", value_delimiter = ',')]
    heads: Vec<String>,
    /// The most rules with constants kept per relation and constant (per kind, with `--keep both`)
    #[arg(long, value_name = "N", default_value_t = MineOptions::default().max_bodies)]
    max_bodies: usize,
    /// Which of these rules are kept
    #[arg(long, value_parser = kept(), default_value = "both")]
    keep: Keep,
    /// Which predictions of a rule count in its confidence
    #[arg(long, value_parser = counted(), default_value = "standard", conflicts_with = "shard")]
    confidence: Confidence,
    /// Also learn from the validation facts, for final figures on the test split, as published for NELL-995. Do not use
    /// such rules for tuning on the validation split
    #[arg(long)]
    learn_valid: bool,
    /// Estimate the counts of bodies with more groundings than this from a sample
    #[arg(long, value_name = "N", default_value_t = MineOptions::default().max_groundings)]
    max_groundings: u64,
}

fn rule_types() -> impl TypedValueParser<Value = RuleType> {
    one_of([
        ("cyclic", "h(X,Y) <= b(X,A), c(A,Y)", RuleType::Cyclic),
        ("acyclic", "h(X,c) <= b(X,d) and h(X,c) <= b(X,A)", RuleType::Acyclic),
        ("zero", "h(X,c) <=", RuleType::Zero),
    ])
}

fn kept() -> impl TypedValueParser<Value = Keep> {
    one_of([
        ("both", "As many as `adding` keeps, and as many as `confident` keeps", Keep::Both),
        ("adding", "Those that explain most facts that the others do not", Keep::Adding),
        ("confident", "The most confident", Keep::Confident),
    ])
}

fn counted() -> impl TypedValueParser<Value = Confidence> {
    one_of([
        ("standard", "All", Confidence::Standard),
        ("pca", "Those about entities that have a known fact of the relation", Confidence::Pca),
        ("validation", "Whichever ranks the validation split better", Confidence::Validation),
    ])
}

impl Mine {
    /// Mines and writes.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let began = Instant::now();
        let repeatable = self.samples.is_some() || self.saturate;
        ensure!(
            self.shard.is_none() || repeatable,
            "--shard: give --samples N or --saturate; a time limit is not repeatable"
        );
        ensure!(
            self.confidence != Confidence::Validation || !self.learn_valid,
            "--confidence validation: cannot be used if the validation split is learnt; give standard or pca"
        );
        if let Some(share) = self.shard {
            share.check(&self.out)?;
            check_name(&self.out)?;
        }
        let (dataset, options) = self.read(common)?;
        if let Some(share) = self.shard {
            let console = Console::with_interrupt(common);
            return share
                .each(&self.out, common, |shard, out| mine_shard(&dataset, &options, shard, out, &console));
        }
        check_writable(&self.out)?;
        let graph = dataset.graph();
        let console = Console::with_interrupt(common);
        let apply =
            ApplyOptions { unseen: self.unseen, distinct: options.distinct, ..ApplyOptions::default() };
        let mining = Mining {
            graph: &graph,
            known: &dataset.known,
            options: &options,
            apply: &apply,
            judged_by: (!self.learn_valid).then_some(&dataset.known),
            longer: self.max_length.is_none(),
            confidence: self.confidence,
        };
        let (mined, _) = mining.mine(&console)?;
        rule::write_rules(&self.out, &mined.rules, &dataset.names)?;
        let summary = Summary::new(&mined, began.elapsed().as_secs_f64());
        if common.json { console::print_json(&summary) } else { console::print(&summary) }?;
        Ok(if mined.interrupted { Outcome::Interrupted } else { Outcome::Done })
    }

    /// The data and what to mine in it.
    fn read(&self, common: &Common) -> anyhow::Result<(Dataset, MineOptions)> {
        let mut dataset = self.data.read(common)?;
        if self.learn_valid {
            dataset.known = dataset.known.with_valid_learnt();
        }
        let options = self.options(common, &dataset.names)?;
        options.check()?;
        Ok((dataset, options))
    }

    fn options(&self, common: &Common, names: &Names) -> anyhow::Result<MineOptions> {
        let relation = |name: &String| {
            let id = names.relations.get(name);
            id.map(RelationId).with_context(|| format!("--heads: the data has no relation `{name}`"))
        };
        let heads = self.heads.iter().map(relation).collect::<anyhow::Result<_>>()?;
        Ok(MineOptions {
            types: self.types.clone(),
            max_length: self.max_length.unwrap_or(MineOptions::default().max_length),
            min_length: 1,
            max_acyclic_length: self.max_acyclic_length,
            budget: match (self.samples, self.saturate) {
                (Some(samples), _) => MiningBudget::Samples(samples),
                (None, true) => MiningBudget::Saturation,
                (None, false) => MiningBudget::Seconds(self.seconds),
            },
            seed: common.seed,
            min_support: self.min_support,
            min_confidence: self.min_confidence,
            unseen: self.unseen,
            distinct: !self.no_object_identity,
            heads,
            max_bodies: self.max_bodies,
            keep: self.keep,
            max_groundings: self.max_groundings,
        })
    }
}

/// The summary of what was found.
#[derive(Serialize)]
struct Summary {
    rules: usize,
    rules_by_type: ByType,
    sampled: usize,
    saturation: f64,
    seconds: f64,
    cpu_seconds: Option<f64>,
    peak_memory_mb: Option<f64>,
}

#[derive(Serialize)]
struct ByType {
    cyclic: usize,
    acyclic: usize,
    zero: usize,
}

impl Summary {
    fn new(mined: &Mined, seconds: f64) -> Self {
        let [cyclic, acyclic, zero] =
            [RuleType::Cyclic, RuleType::Acyclic, RuleType::Zero].map(|of| mined.by_type(of));
        Self {
            rules: mined.rules.len(),
            rules_by_type: ByType { cyclic, acyclic, zero },
            sampled: mined.rules.iter().filter(|scored| scored.counts.sampled).count(),
            saturation: mined.saturation,
            seconds,
            cpu_seconds: usage::cpu_seconds(),
            peak_memory_mb: usage::peak_memory_mb(),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ByType { cyclic, acyclic, zero } = self.rules_by_type;
        write!(f, "{} rules: {cyclic} cyclic, {acyclic} acyclic, {zero} zero", self.rules)?;
        write!(f, "; {:.1} % of the nominated bodies are counted", 100.0 * self.saturation)?;
        if self.sampled > 0 {
            write!(f, "; {} counts are estimates", self.sampled)?;
        }
        write!(f, "; {:.1} s", self.seconds)
    }
}
