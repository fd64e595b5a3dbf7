//! `apply`: ranks by rules alone.

use crate::Outcome;
use crate::arguments::{Common, one_of};
use crate::console::{self, Console};
use crate::data::{Data, Form, Reading};
use crate::protocol::{Ranking, splits};
use anyhow::ensure;
use clap::builder::TypedValueParser;
use ruleguider::ask::{AppliedRules, AskError};
use ruleguider::eval::{Side, Split};
use ruleguider::graph::{SplitShares, Time, check_writable};
use ruleguider::rule::{Aggregate, ApplyOptions, RuleFile};
use std::path::PathBuf;

/// Arguments of `apply`.
#[derive(clap::Args)]
#[command(after_help = "Rules are read in AnyBURL's format, plain or compressed (.gz, .zst).\n\n\
    Examples:\n  ruleguider apply data/wn18rr --rules rules.tsv\n  \
    ruleguider apply data/fb15k-237 --rules rules.tsv --aggregate maxplus --direction both --json\n  \
    ruleguider apply data/wn18rr --rules rules.tsv --predictions predictions.txt")]
pub struct Apply {
    /// A folder with train, valid, test (and optionally graph), or one file of triples; - for stdin
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// How to divide a single file into train, valid and test; give the same --split as to `mine`
    #[arg(long, value_name = "TRAIN,VALID,TEST")]
    shares: Option<SplitShares>,
    /// Hold out the facts of this day and later, by the time that a column gives
    #[arg(long, value_name = "DATE", conflicts_with = "shares")]
    split_time: Option<Time>,
    #[command(flatten)]
    form: Form,
    /// The rules to apply
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// The split to evaluate
    #[arg(long, value_parser = splits(), default_value = "test")]
    split: Split,
    /// How the confidences of the rules that predict an entity are combined into its score
    #[arg(long, value_parser = aggregates(), default_value = "noisy-or")]
    aggregate: Aggregate,
    /// How many of the best rules noisy-or combines
    #[arg(long, value_name = "N", default_value_t = ApplyOptions::default().noisy_or_rules)]
    noisy_or_rules: usize,
    /// How many answers of a query are ranked; all others are tied for the last rank
    #[arg(long, value_name = "K", default_value_t = ApplyOptions::default().top)]
    top: usize,
    /// Do not break ties by how often an entity is an answer of the relation in the graph
    #[arg(long)]
    no_frequency: bool,
    /// The smoothing constant of the confidence, correct / (predicted + P)
    #[arg(long, value_name = "P", default_value_t = ApplyOptions::default().unseen)]
    unseen: f64,
    /// Factor for the confidence of a rule with an open end, h(X,c) <= b(X,A)
    #[arg(long, value_name = "W", default_value_t = ApplyOptions::default().open_weight)]
    open_weight: f64,
    /// Factor for the confidence of a zero rule, h(X,c) <=
    #[arg(long, value_name = "W", default_value_t = ApplyOptions::default().zero_weight)]
    zero_weight: f64,
    /// Factor for the confidence of a cyclic rule, for every link of its body beyond the third
    #[arg(long, value_name = "W", default_value_t = ApplyOptions::default().long_weight)]
    long_weight: f64,
    /// Let different variables of a rule bind the same entity
    #[arg(long)]
    no_object_identity: bool,
    /// Also use the validation facts to answer test queries; the default for data with its own graph file
    #[arg(long)]
    learn_valid: bool,
    /// Write the best answers for both ends of every triple, in AnyBURL's format
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    #[command(flatten)]
    ranking: Ranking,
}

fn aggregates() -> impl TypedValueParser<Value = Aggregate> {
    one_of([
        ("maxplus", "The best rule; ties are broken by the second best, and so on", Aggregate::MaxPlus),
        ("max", "The best rule alone", Aggregate::Max),
        ("noisy-or", "One minus the product of (1 - confidence) over the best rules", Aggregate::NoisyOr),
    ])
}

impl Apply {
    /// Applies and evaluates.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        ensure!(
            !(self.learn_valid && self.split == Split::Valid),
            "--learn-valid --split valid: known facts cannot be evaluated; drop one of the two options"
        );
        let options = self.options();
        options.check()?;
        let dataset = self.data().read(common)?;
        let console = Console::with_interrupt(common);
        let file = RuleFile::read(&self.rules, &dataset.names)?;
        if file.reflexive > 0 {
            let path = self.rules.display();
            console.note(&format_args!("{path}: {} reflexive rules skipped", file.reflexive));
        }
        if let Some(first) = &file.first_unknown {
            let (path, unknown) = (self.rules.display(), file.unknown);
            ensure!(!file.rules.is_empty(), "none of the rules fits this data; {first}");
            console.note(&format_args!(
                "{path}: {unknown} rules left out: they name entities or relations that the data does not have; the first is {first}"
            ));
        }
        if file.rules.is_empty() {
            let path = self.rules.display();
            console
                .note(&format_args!("{path}: no rules; entities are ranked by how often they are answers"));
        }
        if let Some(path) = &self.predictions {
            check_writable(path)?;
        }
        let applied = AppliedRules::new(&dataset, file.rules, options, self.split, self.learn_valid)?;
        let work = || -> anyhow::Result<Result<(), AskError>> {
            let report = match applied.evaluate(self.ranking.protocol(Side::Tail), &console) {
                Ok(report) => report,
                Err(error) => return Ok(Err(error)),
            };
            // Printed before the predictions are written, in case the disk is full.
            if common.json { console::print_json(&report) } else { console::print(&report) }?;
            Ok(self.predictions.as_ref().map_or(Ok(()), |path| applied.write_predictions(path, &console)))
        };
        match work()? {
            Err(error) if error.is_interrupted() => Ok(Outcome::Interrupted),
            done => Ok(done.map(|()| Outcome::Done)?),
        }
    }

    fn data(&self) -> Data {
        let options = Reading { shares: self.shares, split_time: self.split_time, form: self.form.clone() };
        Data { path: self.data.clone(), options }
    }

    fn options(&self) -> ApplyOptions {
        ApplyOptions {
            aggregate: self.aggregate,
            noisy_or_rules: self.noisy_or_rules,
            top: self.top,
            unseen: self.unseen,
            open_weight: self.open_weight,
            zero_weight: self.zero_weight,
            long_weight: self.long_weight,
            distinct: !self.no_object_identity,
            by_frequency: !self.no_frequency,
        }
    }
}
