//! `report`: one HTML page about one or several runs.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use anyhow::Context;
use ruleguider::ask::OpenOptions;
use ruleguider::report::page::{ReportedRun, page};
use ruleguider::run::write_whole;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `report`.
#[derive(clap::Args)]
#[command(
    after_help = "The page is self-contained: it needs no network and no scripts. Published figures are shown for comparison \
if the run's configuration is a row of the paper's tables.

Examples:
  ruleguider report runs/demonstration --out report
  ruleguider report runs/wn18rr runs/fb15k-237 --out report"
)]
pub struct Report {
    /// Run directories
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The folder for index.html
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Report {
    /// Reads the runs and writes the page.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let options = OpenOptions { device: Some(common.device()?), first: true, ..OpenOptions::DEFAULT };
        let shown: Vec<ReportedRun> = self
            .runs
            .iter()
            .map(|run| {
                let model = options.open(run)?;
                let (report, metrics) = (model.results()?.clone(), model.metrics()?);
                Ok(ReportedRun { model, report, metrics })
            })
            .collect::<anyhow::Result<_>>()?;
        let html = page(&shown)?;
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("{}: cannot be written", self.out.display()))?;
        let path = self.out.join("index.html");
        write_whole(&path, |out| out.write_all(html.as_bytes()))?;
        if common.json {
            console::print_json(&json!({"page": path, "runs": self.runs.len(), "bytes": html.len()}))?;
        } else {
            console::print(&path.display())?;
        }
        Ok(Outcome::Done)
    }
}
