//! The systems of a study, as they are named on the command line.

use crate::arguments::Common;
use anyhow::{Context, ensure};
use ruleguider::ask::OpenOptions;
use ruleguider::judge::{Contender, DrawOptions};
use std::path::{Path, PathBuf};

/// Which systems, and which facts.
#[derive(clap::Args)]
pub struct Systems {
    /// Run directories, or files of predictions by other programs (JSON lines as `predict --file` writes them)
    #[arg(value_name = "SYSTEM", required = true)]
    systems: Vec<PathBuf>,
    /// Facts for each pair of systems
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    pub triples: u32,
    /// What the systems are called in the report [default: the names of their folders and files]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    names: Vec<String>,
    /// The true answer must be among a system's first N candidates [default: at any rank]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    within: Option<u32>,
}

impl Systems {
    /// The options for drawing a study.
    pub fn options(&self, common: &Common) -> anyhow::Result<DrawOptions> {
        let workers = common.device_for_many()?.workers();
        Ok(DrawOptions {
            triples: self.triples as usize,
            seed: common.seed,
            within: self.within.map(|within| within as usize),
            workers,
        })
    }

    /// Opens the systems.
    ///
    /// # Errors
    /// If one cannot be read, or they are fewer than `least`.
    pub fn open(&self, least: usize, common: &Common) -> anyhow::Result<Vec<Contender>> {
        let given = self.systems.len();
        ensure!(given >= least, "expected at least {least} systems, found {given}");
        ensure!(
            self.names.is_empty() || self.names.len() == given,
            "--names: expected {given} names for {given} systems, found {}",
            self.names.len()
        );
        let names = self.named()?;
        let device = common.device_for_many()?;
        let options = OpenOptions { device: Some(device), first: true, ..OpenOptions::DEFAULT };
        let mut contenders: Vec<Option<Contender>> = Vec::new();
        for (path, name) in self.systems.iter().zip(&names) {
            let opened = path.is_dir().then(|| anyhow::Ok(Contender::run(name, options.open(path)?)?));
            contenders.push(opened.transpose()?);
        }
        // Files have no labels and no graph of their own.
        let first = contenders.iter().flatten().find_map(Contender::model);
        let first = first.context("expected at least one run directory: it has the facts and the labels")?;
        let mut files = Vec::new();
        for (path, name) in self.systems.iter().zip(&names).filter(|(path, _)| !path.is_dir()) {
            files.push(Contender::file(name, path, first, self.within.map(|within| within as usize))?);
        }
        let mut files = files.into_iter();
        Ok(contenders.into_iter().filter_map(|run| run.or_else(|| files.next())).collect())
    }

    /// The names of the systems, all different.
    fn named(&self) -> anyhow::Result<Vec<String>> {
        let of_path = |path: &PathBuf| {
            let whole = path.canonicalize().with_context(|| format!("{}: cannot be read", path.display()))?;
            let name = whole.file_name().unwrap_or(whole.as_os_str());
            anyhow::Ok(Path::new(name).to_string_lossy().into_owned())
        };
        let names = match self.names.is_empty() {
            true => self.systems.iter().map(of_path).collect::<anyhow::Result<Vec<_>>>()?,
            false => self.names.clone(),
        };
        let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
        match twice {
            Some((_, name)) => {
                anyhow::bail!("two systems are called `{name}`; give them different names with --names")
            }
            None => Ok(names),
        }
    }
}
