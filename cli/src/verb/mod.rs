//! One file per verb. A verb reads its arguments, calls the library and prints; it decides nothing.

pub mod apply;
pub mod complete;
pub mod convert;
pub mod embed;
pub mod evaluate;
pub mod explain;
pub mod generate;
pub mod judge;
pub mod manual;
pub mod merge;
pub mod mine;
pub mod predict;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod serve;
pub mod stats;
pub mod sweep;

use crate::Outcome;
use crate::arguments::{Arguments, Verb};
use crate::system;
use anyhow::{Context, bail};

/// Runs the requested verb, on the requested number of threads.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    start_threads(arguments.common.threads.map(usize::from))?;
    let common = &arguments.common;
    match &arguments.verb {
        Verb::Run(verb) => verb.run(common),
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
        Verb::Reproduce(verb) => verb.run(common),
        Verb::Sweep(verb) => verb.run(common),
        Verb::Report(verb) => verb.run(common),
        Verb::Serve(verb) => verb.run(common),
        Verb::Judge(verb) => verb.run(common),
        Verb::Completions(verb) => verb.run(common),
        Verb::Manual(verb) => verb.run(common),
    }
}

/// Starts the worker threads: as many as requested, else one per core, or fewer if the system does not allow
/// more.
fn start_threads(asked: Option<usize>) -> anyhow::Result<()> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let from_outside =
        || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok().filter(|&threads| threads > 0);
    let wanted = asked.or_else(from_outside).unwrap_or_else(cores);
    let threads = system::startable_threads(wanted);
    if threads < wanted && asked.is_some() {
        bail!(
            "--threads {wanted}: only {threads} can be started (a limit of memory or processes); give fewer"
        );
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1));
    // If no other thread can be started, the current one does the work.
    let pool = if threads == 0 { pool.use_current_thread() } else { pool };
    pool.build_global().context("starting the worker threads")
}
