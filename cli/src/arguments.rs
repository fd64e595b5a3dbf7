//! The arguments as typed: options that mean the same for every verb, and the verbs.

use crate::verb;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use ruleguider::tensor::{Device, DeviceChoice, TensorError};

/// Answers over knowledge graphs, with their reasons.
#[derive(Parser)]
#[command(
    name = "ruleguider",
    version,
    about = "Answers over knowledge graphs, with their reasons",
    max_term_width = 110,
    arg_required_else_help = true
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// Options that mean the same everywhere.
    #[command(flatten)]
    pub common: Common,
}

/// Options that mean the same for every verb.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Worker threads [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Random seed; the same seed gives the same result, unless a time limit ends the work early
    #[arg(long, global = true, default_value_t = 1)]
    pub seed: u64,
    /// The device; `auto` uses CUDA if there is a driver and a GPU
    #[arg(long, global = true, value_parser = devices(), default_value = "auto")]
    pub device: DeviceChoice,
    /// Print results as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress on stderr
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

impl Common {
    /// The requested device, with the requested number of threads.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn device(&self) -> Result<Device, TensorError> {
        self.device_on(rayon::current_num_threads())
    }

    /// The requested device, for jobs whose threads each compute on their own.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn device_for_many(&self) -> Result<Device, TensorError> {
        self.device_on(1)
    }

    fn device_on(&self, threads: usize) -> Result<Device, TensorError> {
        Device::choose(self.device, threads)
    }
}

/// Parses one of the library's values by its name. Each is given as its name, what the help says of it, and itself.
pub fn one_of<T, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = values.map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).map(move |given| {
        let named = values.iter().find(|(name, ..)| *name == given);
        named.expect("a possible value is one of these").2
    })
}

fn devices() -> impl TypedValueParser<Value = DeviceChoice> {
    one_of([
        ("cpu", "The CPU", DeviceChoice::Cpu),
        ("cuda", "An NVIDIA GPU", DeviceChoice::Cuda),
        ("auto", "CUDA if there is a GPU, else the CPU", DeviceChoice::Auto),
    ])
}

/// One variant per verb; each verb's own arguments are in its file. Its help begins with an example that works once
/// `ruleguider run` has learnt the demonstration; a test runs them.
#[derive(Subcommand)]
pub enum Verb {
    /// Learn from a graph: all stages, then the figures and a few explained answers
    #[command(before_help = "Example: ruleguider run")]
    Run(verb::run::Run),
    /// Answer a query straight from a graph, with nothing trained
    #[command(before_help = "Example: ruleguider ask runs/demonstration/data.rg Ilse_Hagenthal cousin_of")]
    Ask(verb::ask::Ask),
    /// Count the entities, facts, splits and degrees of a data set
    #[command(before_help = "Example: ruleguider stats runs/demonstration/data.rg")]
    Stats(verb::stats::Stats),
    /// Generate a graph with known rules
    #[command(before_help = "Example: ruleguider generate family --people 60 --out family")]
    Generate(verb::generate::Generate),
    /// Convert triples between formats
    #[command(before_help = "Example: ruleguider convert runs/demonstration/data.rg demonstration.csv")]
    Convert(verb::convert::Convert),
    /// Mine rules; Ctrl-C keeps the rules found so far
    #[command(
        before_help = "Example: ruleguider mine runs/demonstration/data.rg --seconds 2 --out rules.tsv"
    )]
    Mine(verb::mine::Mine),
    /// Rank by rules alone, and evaluate
    #[command(before_help = "Example: ruleguider apply runs/demonstration/data.rg --rules rules.tsv")]
    Apply(verb::apply::Apply),
    /// Train and evaluate an embedding model
    #[command(
        before_help = "Example: ruleguider embed runs/demonstration/data.rg --model distmult --set epochs=2 --out distmult.safetensors"
    )]
    Embed(verb::embed::Embed),
    /// Rank the true answers of a run's test split and print the figures
    #[command(before_help = "Example: ruleguider evaluate runs/demonstration")]
    Evaluate(verb::evaluate::Evaluate),
    /// Answer a query, or a file of them, each answer with its reason
    #[command(before_help = "Example: ruleguider predict runs/demonstration Ilse_Hagenthal cousin_of")]
    Predict(verb::predict::Predict),
    /// Explain why a fact is predicted, or why not
    #[command(
        before_help = "Example: ruleguider explain runs/demonstration Ilse_Hagenthal cousin_of Vera_Hagenthal"
    )]
    Explain(verb::explain::Explain),
    /// Write the missing facts, best first, each with its probability and reason
    #[command(
        before_help = "Example: ruleguider complete runs/demonstration --relation cousin_of --top 10 --out missing.tsv"
    )]
    Complete(verb::complete::Complete),
    /// Score given facts: probability, ranks, best reason, and whether they are true
    #[command(
        before_help = "Example: ruleguider convert runs/demonstration/data.rg held && ruleguider score runs/demonstration --file held/test.tsv"
    )]
    Score(verb::score::Score),
    /// Find facts of the graph that the rest speaks against
    #[command(before_help = "Example: ruleguider doubt runs/demonstration --top 5")]
    Doubt(verb::doubt::Doubt),
    /// Export answers with their reasons: RDF, Neo4j, KGX, GraphML
    #[command(
        before_help = "Example: ruleguider complete runs/demonstration --top 10 --out facts.jsonl && ruleguider export facts.jsonl --to rdf --out facts.ttl"
    )]
    Export(verb::export::Export),
    /// Merge the parts that mine, predict, evaluate, complete and score write with --shard
    #[command(
        before_help = "Example: ruleguider mine runs/demonstration/data.rg --shard 1-2/2 --samples 1000 --out {}.shard && ruleguider merge 1.shard 2.shard --out rules.tsv"
    )]
    Merge(verb::merge::Merge),
    /// Run rows of the paper's tables and compare with the published figures
    #[command(before_help = "Example: ruleguider reproduce --list")]
    Reproduce(verb::reproduce::Reproduce),
    /// Tune settings on the validation split and write the best configuration
    #[command(
        before_help = "Example: ruleguider sweep runs/demonstration/data.rg complex --trials 2 --minutes 0.1 --out sweeps/demonstration"
    )]
    Sweep(verb::sweep::Sweep),
    /// Train the universal propagator on several graphs, or rank graphs that it never saw
    #[command(before_help = "Example: ruleguider pretrain configs/universal.toml --data data --minutes 0")]
    Pretrain(verb::pretrain::Pretrain),
    /// Write an HTML page about runs: tables, curves, answers with their paths
    #[command(before_help = "Example: ruleguider report runs/demonstration --out page")]
    Report(verb::report::Report),
    #[cfg(feature = "serve")]
    /// Serve runs over HTTP: an API and a web page
    #[command(before_help = "Example: ruleguider serve runs/demonstration")]
    Serve(verb::serve::Serve),
    #[cfg(feature = "live")]
    /// Make tokens for `serve --live`, and print the verdicts that were given there
    #[command(before_help = "Example: ruleguider live token ada --role review --tokens tokens")]
    Live(verb::live::Live),
    #[cfg(feature = "study")]
    /// Run a blind study in which people compare the paths of two systems
    #[command(before_help = "Example: ruleguider judge measure runs/demonstration --triples 50")]
    Judge(verb::judge::Judge),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions(verb::manual::Completions),
    /// Write manual pages
    #[command(hide = true)]
    Manual(verb::manual::Manual),
}
