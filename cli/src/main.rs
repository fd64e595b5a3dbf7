//! `ruleguider <verb>`: parses the arguments, runs the verb, turns its outcome into an exit code.
//!
//! Data goes to stdout, progress and errors to stderr. Exit codes: 0 done; 1 a negative answer; 2 the user's
//! mistake, in one line; 130 interrupted, state saved.

mod arguments;
mod console;
mod data;
mod protocol;
mod usage;
mod verb;

use clap::Parser;
use std::process::ExitCode;

/// How a verb that did not fail came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)]
enum Outcome {
    /// It did what was asked.
    Done,
    /// It did, and the answer is no: nothing found, nothing predicted.
    Negative,
    /// The user stopped it; what it had is kept.
    Interrupted,
}

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    match verb::run(&arguments) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Negative) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            console::complain(&error);
            ExitCode::from(2)
        }
    }
}

/// A reader that has seen enough (`| head`) is no reason to complain.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
