//! `ruleguider <verb>`: parses the arguments, runs the verb, turns its outcome into an exit code.
//!
//! The program itself is `main.rs`; the Python package calls the same command from here. Data goes to stdout,
//! progress and errors to stderr. Exit codes: 0 done; 1 a negative answer; 2 the user's mistake, in one line;
//! 130 interrupted, state saved.

mod arguments;
mod awaited;
mod console;
mod data;
#[cfg(feature = "rdf")]
mod endpoint;
#[cfg(feature = "serve")]
mod http;
#[cfg(feature = "study")]
mod judge;
#[cfg(feature = "live")]
mod live;
mod on_path;
mod part;
mod protocol;
#[cfg(feature = "serve")]
mod serve;
mod system;
#[cfg(any(feature = "live", feature = "study"))]
mod token;
mod usage;
mod verb;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::{self, Write};

pub use system::Allocator;

/// No arguments: print help, and exit with an error.
const HELP_INSTEAD: ErrorKind = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

/// How a verb ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It did what was asked.
    Done,
    /// It did, and the answer is no: nothing found, nothing predicted.
    Negative,
    /// The user stopped it; finished work is kept.
    Interrupted,
}

/// As [`run`], also where the system gives the program very little stack.
pub fn run_with_enough_stack(arguments: &[OsString]) -> u8 {
    let ended = system::with_enough_stack(|| run(arguments));
    ended.unwrap_or_else(|| {
        // A closed stderr is no reason for another exit code.
        let _ =
            writeln!(io::stderr(), "ruleguider: the stack is too small; raise the limit with `ulimit -s`");
        2
    })
}

/// Does what `arguments` say and returns the exit code. The first argument is the name of the program.
pub fn run(arguments: &[OsString]) -> u8 {
    system::prepare();
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !ruleguider::graph::panic_is_caught() {
            show(panic);
        }
    }));
    let arguments = match arguments::Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        // Help and the version are results.
        Err(asked) if !asked.use_stderr() || asked.kind() == HELP_INSTEAD => return help(&asked),
        Err(mistake) => {
            console::complain(&anyhow::anyhow!(in_one_line(&mistake, arguments)));
            return 2;
        }
    };
    match verb::run(&arguments).and_then(|outcome| console::flush().map(|()| outcome)) {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Negative) => 1,
        Ok(Outcome::Interrupted) => 130,
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            console::complain(&error);
            2
        }
    }
}

/// Prints help or the version.
fn help(asked: &clap::Error) -> u8 {
    match asked.print().map_err(console::stdout_fails).and_then(|()| console::flush()) {
        Err(error) if !is_broken_pipe(&error) => {
            console::complain(&error);
            2
        }
        _ => u8::try_from(asked.exit_code()).unwrap_or(2),
    }
}

/// clap's error message in one line, without the usage that it adds.
fn in_one_line(mistake: &clap::Error, arguments: &[OsString]) -> String {
    let message = mistake.render().to_string();
    let before_usage = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    let lines = message.lines().map(str::trim).take_while(before_usage);
    // clap takes a negative number for an option; its tip on escaping it does not help here.
    let helpful = lines.filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"));
    let words: Vec<&str> = helpful.map(|line| line.trim_start_matches("error: ")).collect();
    let misspelt = mistake.kind() == ErrorKind::InvalidSubcommand;
    let known = |verb: &String| !misspelt && arguments::Arguments::command().find_subcommand(verb).is_some();
    let mut typed = arguments.iter().skip(1).filter_map(|typed| typed.clone().into_string().ok());
    let verb = typed.find(known).map_or(String::new(), |verb| verb + " ");
    format!("{}; see ruleguider {verb}--help", words.join(" ").replace(" tip: ", "; "))
}

/// A closed pipe (`| head`) is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
