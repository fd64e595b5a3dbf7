//! The arguments as typed: options that mean the same for every verb, and the verbs.

use crate::verb;
use clap::{Args, Parser, Subcommand, ValueEnum};
use ruleguider::tensor::{self, Device, TensorError};

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
    #[arg(long, global = true, value_enum, default_value_t = DeviceChoice::Auto)]
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
        Device::choose(self.device_choice(), threads)
    }

    /// The requested device, as the library's type.
    pub fn device_choice(&self) -> tensor::DeviceChoice {
        match self.device {
            DeviceChoice::Cpu => tensor::DeviceChoice::Cpu,
            DeviceChoice::Cuda => tensor::DeviceChoice::Cuda,
            DeviceChoice::Auto => tensor::DeviceChoice::Auto,
        }
    }
}

/// The device of its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// CUDA if there is a GPU, else the CPU.
    Auto,
}

/// One variant per verb; each verb's own arguments are in its file.
#[derive(Subcommand)]
pub enum Verb {
    /// Learn from a graph: all stages, then the figures and a few explained answers
    Run(verb::run::Run),
    /// Count the entities, facts, splits and degrees of a data set
    Stats(verb::stats::Stats),
    /// Generate a graph with known rules
    Generate(verb::generate::Generate),
    /// Convert triples between formats
    Convert(verb::convert::Convert),
    /// Mine rules; Ctrl-C keeps the rules found so far
    Mine(verb::mine::Mine),
    /// Rank by rules alone, and evaluate
    Apply(verb::apply::Apply),
    /// Train and evaluate an embedding model
    Embed(verb::embed::Embed),
    /// Rank the true answers of a run's test split and print the figures
    Evaluate(verb::evaluate::Evaluate),
    /// Answer a query, or a file of them, each answer with its reason
    Predict(verb::predict::Predict),
    /// Explain why a fact is predicted, or why not
    Explain(verb::explain::Explain),
    /// Write the missing facts, best first, each with its probability and reason
    Complete(verb::complete::Complete),
    /// Merge the parts that mine, predict, evaluate and complete write with --shard
    Merge(verb::merge::Merge),
    /// Run rows of the paper's tables and compare with the published figures
    Reproduce(verb::reproduce::Reproduce),
    /// Tune settings on the validation split and write the best configuration
    Sweep(verb::sweep::Sweep),
    /// Write an HTML page about runs: tables, curves, answers with their paths
    Report(verb::report::Report),
    /// Serve runs over HTTP: an API and a web page
    Serve(verb::serve::Serve),
    /// Run a blind study in which people compare the paths of two systems
    Judge(verb::judge::Judge),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions(verb::manual::Completions),
    /// Write manual pages
    #[command(hide = true)]
    Manual(verb::manual::Manual),
}
