//! The arguments as typed: options that mean the same for every verb, and the verbs.

use crate::verb;
use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand, ValueEnum};
use ruleguider::tensor::{self, Device, TensorError};
use std::ops::Deref;

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
    Run(Later<verb::run::Run>),
    /// Count the entities, facts, splits and degrees of a data set
    Stats(Later<verb::stats::Stats>),
    /// Generate a graph with known rules
    Generate(verb::generate::Generate),
    /// Convert triples between formats
    Convert(Later<verb::convert::Convert>),
    /// Mine rules; Ctrl-C keeps the rules found so far
    Mine(Later<verb::mine::Mine>),
    /// Rank by rules alone, and evaluate
    Apply(Later<verb::apply::Apply>),
    /// Train and evaluate an embedding model
    Embed(Later<verb::embed::Embed>),
    /// Rank the true answers of a run's test split and print the figures
    Evaluate(Later<verb::evaluate::Evaluate>),
    /// Answer a query, or a file of them, each answer with its reason
    Predict(Later<verb::predict::Predict>),
    /// Explain why a fact is predicted, or why not
    Explain(Later<verb::explain::Explain>),
    /// Write the missing facts, best first, each with its probability and reason
    Complete(Later<verb::complete::Complete>),
    /// Merge the parts that mine, predict, evaluate and complete write with --shard
    Merge(Later<verb::merge::Merge>),
    /// Run rows of the paper's tables and compare with the published figures
    Reproduce(Later<verb::reproduce::Reproduce>),
    /// Tune settings on the validation split and write the best configuration
    Sweep(Later<verb::sweep::Sweep>),
    /// Write an HTML page about runs: tables, curves, answers with their paths
    Report(Later<verb::report::Report>),
    /// Serve runs over HTTP: an API and a web page
    Serve(Later<verb::serve::Serve>),
    /// Run a blind study in which people compare the paths of two systems
    Judge(verb::judge::Judge),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions(Later<verb::manual::Completions>),
    /// Write manual pages
    #[command(hide = true)]
    Manual(Later<verb::manual::Manual>),
}

/// The arguments of a verb, described to clap only once the verb is asked for: a process needs one verb out of many.
/// Not for a verb with verbs below it, which completions of `help` have to know.
pub struct Later<T>(T);

impl<T: Args> Later<T> {
    /// Adds the arguments to a command that is already named and described.
    fn added(command: Command) -> Command {
        let [about, in_full] =
            [command.get_about(), command.get_long_about()].map(|about| Resettable::from(about.cloned()));
        // What the type says about itself is for readers of the code.
        T::augment_args(command).about(about).long_about(in_full)
    }
}

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(Self::added)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Args> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
