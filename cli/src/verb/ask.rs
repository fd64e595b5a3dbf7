//! `ask`: answers straight from a graph, with nothing trained.

use super::predict::{print_answers, say_why_not};
use crate::Outcome;
use crate::arguments::Common;
use crate::console::Console;
use crate::data::{Data, Form, Reading, Weights, instant_model};
use ruleguider::graph::SplitShares;
use std::path::PathBuf;

/// Arguments of `ask`.
#[derive(clap::Args)]
#[command(
    after_help = "No run is made and nothing is trained: a propagator that was trained on other graphs answers over yours, \
with the paths behind each answer. All facts of DATA are used, those of valid and test included. Probabilities are rough: they \
are fitted to a few facts that are taken away and asked for; `run --instant` calibrates on more. Exit code 1 if nothing is predicted.

Examples:
  ruleguider ask attack.tsv APT29 uses
  ruleguider ask attack.tsv T1566 '~uses' --top 5
  ruleguider ask data/wn18rr 06845599 _member_of_domain_usage --json"
)]
pub struct Ask {
    /// A folder of splits, a file of triples, or a data file; - for stdin
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// The subject of the query
    #[arg(value_name = "SUBJECT")]
    subject: String,
    /// The relation; ~RELATION asks for heads
    #[arg(value_name = "RELATION")]
    relation: String,
    /// How many answers
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Answer with entities of this type, or of this file of entities, one a line
    #[arg(long, value_name = "TYPE|FILE")]
    among: Option<String>,
    /// Do not answer with entities of this type, or of this file
    #[arg(long, value_name = "TYPE|FILE")]
    not_among: Option<String>,
    /// Reasons as paths and clauses instead of sentences
    #[arg(long)]
    clauses: bool,
    #[command(flatten)]
    weights: Weights,
    #[command(flatten)]
    form: Form,
}

impl Ask {
    /// Answers and prints.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let options = Reading { shares: Some(SplitShares::WHOLE), split_time: None, form: self.form.clone() };
        let data = Data { path: self.data.clone(), options };
        let Some((_folder, model)) =
            instant_model(&data, &self.weights, common, &Console::with_interrupt(common))?
        else {
            return Ok(Outcome::Interrupted);
        };
        say_why_not(&model, common)?;
        let shown = (self.top as usize, self.clauses);
        let among = model.answers_among(self.among.as_deref(), self.not_among.as_deref())?;
        print_answers(&model, (&self.subject, &self.relation), shown, &among, common)
    }
}
