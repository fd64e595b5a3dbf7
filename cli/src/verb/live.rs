//! `live`: tokens for people who work on a served run, and their verdicts as files.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use crate::live::log::Log;
use crate::live::state::State;
use crate::live::tokens::{Role, Tokens};
use crate::live::written::{Form, verdicts};
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `live`.
#[derive(clap::Args)]
#[command(
    after_help = "`ruleguider serve RUN --live FILE` makes FILE; `ruleguider run --update RUN --live FILE` learns from it.

Examples:
  ruleguider live token ada --role review --tokens tokens
  ruleguider serve runs/demonstration --live live.db --tokens tokens
  ruleguider live export live.db --format tsv"
)]
pub struct Live {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Make a token for a person or a program and print it; the file keeps its checksum
    #[command(before_help = "Example: ruleguider live token ben --role write --tokens tokens")]
    Token(Token),
    /// Print the verdicts that count, each with its reviewer and time
    #[command(before_help = "Example: ruleguider live export live.db --format tsv")]
    Export(Export),
}

/// Arguments of `live token`.
#[derive(clap::Args)]
struct Token {
    /// Whose it is: the name of their verdicts
    #[arg(value_name = "NAME")]
    name: String,
    /// What it allows: asking, also verdicts, also facts, also loading another run
    #[arg(long, value_enum)]
    role: Role,
    /// The file of tokens; made if there is none
    #[arg(long, value_name = "FILE")]
    tokens: PathBuf,
}

/// Arguments of `live export`.
#[derive(clap::Args)]
struct Export {
    /// The file of `serve --live`, which may be in use
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The format
    #[arg(long, value_enum, default_value = "tsv")]
    format: Form,
}

impl Live {
    /// Does what was asked for.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        match &self.step {
            Step::Token(Token { name, role, tokens }) => {
                let token = Tokens::add(tokens, name, *role)?;
                match common.json {
                    true => console::print_json(&json!({"name": name, "role": role.name(), "token": token}))?,
                    false => console::print(&token)?,
                }
            }
            Step::Export(Export { file, format }) => {
                let text = verdicts(&state(file)?, *format);
                console::print(&text.trim_end())?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// What follows from the log at `path`.
pub fn state(path: &Path) -> anyhow::Result<State> {
    let (log, mut state) = (Log::look_at(path)?, State::default());
    log.each(0, usize::MAX, |event| state.apply(event))?;
    Ok(state)
}
