//! One file a verb. A verb reads its arguments, calls the library and prints; it decides nothing.

pub mod apply;
pub mod complete;
pub mod convert;
pub mod embed;
pub mod evaluate;
pub mod explain;
pub mod generate;
pub mod manual;
pub mod mine;
pub mod predict;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod stats;

use crate::Outcome;
use crate::arguments::{Arguments, Verb};
use anyhow::Context;

/// Runs the verb that was asked for, on as many threads as were asked for.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if let Some(threads) = arguments.common.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(usize::from(threads))
            .build_global()
            .context("starting the worker threads")?;
    }
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
        Verb::Reproduce(verb) => verb.run(common),
        Verb::Report(verb) => verb.run(common),
        Verb::Completions(verb) => verb.run(common),
        Verb::Manual(verb) => verb.run(common),
    }
}
