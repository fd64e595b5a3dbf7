//! The arguments as typed: options that mean the same for every verb, and the verbs.

use crate::verb;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Answers over knowledge graphs that come with their reasons.
#[derive(Parser)]
#[command(name = "ruleguider", version, about, max_term_width = 110, arg_required_else_help = true)]
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
    /// Seed of every random choice: same seed, same result
    #[arg(long, global = true, default_value_t = 1)]
    pub seed: u64,
    /// Where tensors live; `auto` takes CUDA if a driver and a device are there
    #[arg(long, global = true, value_enum, default_value_t = DeviceChoice::Auto)]
    pub device: DeviceChoice,
    /// Print results as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress on stderr
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// Where tensors live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// The processor's cores.
    Cpu,
    /// An NVIDIA card.
    Cuda,
    /// CUDA if there is one, else the processor.
    Auto,
}

/// One variant a verb; each verb's own arguments stand in its file.
#[derive(Subcommand)]
pub enum Verb {
    /// Rank by rules alone, and evaluate
    Apply(verb::apply::Apply),
    /// Convert triples between formats
    Convert(verb::convert::Convert),
    /// Generate a graph with known rules
    Generate(verb::generate::Generate),
    /// Find rules; anytime: Ctrl-C keeps what was found
    Mine(verb::mine::Mine),
    /// Count what a data set holds: entities, facts, splits, degrees
    Stats(verb::stats::Stats),
}
