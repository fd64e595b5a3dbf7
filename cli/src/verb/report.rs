//! `report`: one HTML page about one or several runs.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use anyhow::Context;
use ruleguider::ask::{AskError, EvaluateOptions, OpenOptions};
use ruleguider::eval::{Protocol, Split, Stratum};
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
  ruleguider report runs/wn18rr runs/fb15k-237 --out report
  ruleguider report runs/demonstration --strata --out report"
)]
pub struct Report {
    /// Run directories
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The folder for index.html
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Rank the test split once more and add the figures by situation: how far the answer is, whether it was seen with
    /// the relation, how much is known of the subject, how many rules predict it
    #[arg(long)]
    strata: bool,
}

impl Report {
    /// Reads the runs and writes the page.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let options = OpenOptions { device: Some(common.device()?), first: true, ..OpenOptions::DEFAULT };
        let mut shown: Vec<ReportedRun> = self
            .runs
            .iter()
            .map(|run| {
                let model = options.open(run)?;
                let (report, metrics) = (model.results()?.clone(), model.metrics()?);
                Ok(ReportedRun { model, report, metrics })
            })
            .collect::<anyhow::Result<_>>()?;
        if self.strata {
            let console = Console::with_interrupt(common);
            for run in &mut shown {
                match by_situation(run, &console) {
                    Ok(strata) => run.report.report.strata = strata,
                    Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
                    Err(error) => return Err(error.into()),
                }
            }
        }
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

/// The figures of a run by situation, on the queries of its report; none if it has ranked none.
fn by_situation(run: &ReportedRun, progress: &Console) -> Result<Option<Vec<Stratum>>, AskError> {
    let report = &run.report.report;
    if report.figures.queries == 0 {
        return Ok(None);
    }
    let side = report.direction;
    // A run that ranked a sample is asked for the same one.
    let most =
        report.sampled_from.map(|_| (report.figures.queries + report.left_out) / side.directions().len());
    let all = run.model.config().eval.all;
    let protocol = Protocol { side, ties: report.ties, all, most, ..Protocol::default() };
    let options = EvaluateOptions { relations: Vec::new(), strata: true, calibration: false };
    Ok(run.model.evaluate_each(Split::Test, protocol, &options, progress)?.0.report.strata)
}
