//! `manual` and `completions`: files for an installation, generated from the arguments.

use crate::arguments::{Arguments, Common};
use crate::{Outcome, console};
use anyhow::Context;
use clap::CommandFactory;
use std::path::PathBuf;

/// Arguments of `manual`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ruleguider manual --out man && man man/ruleguider.1")]
pub struct Manual {
    /// The folder for the pages
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Manual {
    /// Writes a page for the program and one for each verb.
    pub fn run(&self, _common: &Common) -> anyhow::Result<Outcome> {
        let place = || format!("{}: cannot be written", self.out.display());
        std::fs::create_dir_all(&self.out).with_context(place)?;
        clap_mangen::generate_to(Arguments::command(), &self.out).with_context(place)?;
        let pages = std::fs::read_dir(&self.out).with_context(place)?.count();
        console::print(&format_args!("{}: {pages} pages", self.out.display()))?;
        Ok(Outcome::Done)
    }
}

/// Arguments of `completions`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ruleguider completions bash > /etc/bash_completion.d/ruleguider")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl Completions {
    /// Prints the completions.
    pub fn run(&self, _common: &Common) -> anyhow::Result<Outcome> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "ruleguider", &mut text);
        console::print(&String::from_utf8_lossy(&text).trim_end())?;
        Ok(Outcome::Done)
    }
}
