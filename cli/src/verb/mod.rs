//! One file per verb. A verb reads its arguments, calls the library and prints; it decides nothing.

pub mod apply;
pub mod ask;
pub mod complete;
pub mod convert;
pub mod doubt;
pub mod embed;
pub mod evaluate;
pub mod explain;
pub mod export;
pub mod generate;
#[cfg(feature = "study")]
pub mod judge;
#[cfg(feature = "live")]
pub mod live;
pub mod manual;
pub mod merge;
pub mod mine;
pub mod predict;
pub mod pretrain;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod score;
#[cfg(feature = "serve")]
pub mod serve;
pub mod stats;
pub mod sweep;

use crate::Outcome;
use crate::arguments::{Arguments, Verb};
use crate::system;
use anyhow::{Context, bail};

/// Runs the requested verb, on the requested number of threads.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let common = &arguments.common;
    let asked = common.threads.map(usize::from);
    match &arguments.verb {
        // Mining gives out all its work from this thread, which would only wait for a single other one.
        Verb::Mine(_) if wanted_threads(asked) == 1 => use_this_thread()?,
        // Merging is serial.
        Verb::Merge(_) => use_this_thread()?,
        _ => start_threads(asked)?,
    }
    match &arguments.verb {
        Verb::Run(verb) => verb.run(common),
        Verb::Ask(verb) => verb.run(common),
        Verb::Stats(verb) => verb.run(common),
        Verb::Generate(verb) => verb.run(common),
        Verb::Convert(verb) => verb.run(common),
        Verb::Mine(verb) => verb.run(common),
        Verb::Apply(verb) => verb.run(common),
        Verb::Embed(verb) => verb.run(common),
        Verb::Evaluate(verb) => verb.run(common),
        Verb::Predict(verb) => verb.run(common),
        Verb::Explain(verb) => verb.run(common),
        Verb::Complete(verb) => verb.run(common),
        Verb::Merge(verb) => verb.run(common),
        Verb::Export(verb) => verb.run(common),
        Verb::Doubt(verb) => verb.run(common),
        Verb::Score(verb) => verb.run(common),
        Verb::Reproduce(verb) => verb.run(common),
        Verb::Sweep(verb) => verb.run(common),
        Verb::Pretrain(verb) => verb.run(common),
        Verb::Report(verb) => verb.run(common),
        #[cfg(feature = "serve")]
        Verb::Serve(verb) => verb.run(common),
        #[cfg(feature = "live")]
        Verb::Live(verb) => verb.run(common),
        #[cfg(feature = "study")]
        Verb::Judge(verb) => verb.run(common),
        Verb::Completions(verb) => verb.run(common),
        Verb::Manual(verb) => verb.run(common),
    }
}

/// How many worker threads to start: as many as requested, else one per core.
fn wanted_threads(asked: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let from_outside =
        || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok().filter(|&threads| threads > 0);
    asked.or_else(from_outside).unwrap_or_else(cores)
}

/// Starts as many worker threads as wanted, or fewer if the system does not allow more.
fn start_threads(asked: Option<usize>) -> anyhow::Result<()> {
    let wanted = wanted_threads(asked);
    let threads = system::startable_threads(wanted);
    if threads < wanted && asked.is_some() {
        bail!(
            "--threads {wanted}: only {threads} can be started (a limit of memory or processes); give fewer"
        );
    }
    if threads == 0 {
        // No other thread can be started.
        return use_this_thread();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().context("starting the worker threads")
}

/// Lets the current thread do all the work.
fn use_this_thread() -> anyhow::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().context("preparing to work in one thread")
}
