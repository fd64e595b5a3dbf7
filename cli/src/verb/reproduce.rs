//! `reproduce`: rows of the paper's tables, ours beside the published.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use anyhow::ensure;
use ruleguider::ask::OpenOptions;
use ruleguider::eval::{Protocol, Side, Split, Ties};
use ruleguider::graph::ReadOptions;
use ruleguider::report::reproduce::{Row, RowResult, keep, rows, write_tables};
use ruleguider::report::tables::tables;
use ruleguider::run::Source;
use ruleguider::{Error, Learn};
use std::path::PathBuf;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
#[command(
    after_help = "Without SYSTEM, all systems of the data set are run; without DATASET, all data sets. Finished runs are not \
repeated; if interrupted, run the same command again to resume. Results are written to \
results/<dataset>-<system>.json and results/tables.md.

Examples:
  ruleguider reproduce wn18rr ruleguider-complex --data-root data
  ruleguider reproduce wn18rr --seeds 1,2,3 --device cuda
  ruleguider reproduce umls propagator --config sweeps/umls-propagator/best.toml
  ruleguider reproduce --list"
)]
pub struct Reproduce {
    /// A data set: wn18rr, nell-995, fb15k-237, umls, kinship; wn18rr-v1, fb237-v1, nell-v1 (tested on unseen entities)
    #[arg(value_name = "DATASET")]
    dataset: Option<String>,
    /// A system: ruleguider-complex, minerva, complex, blend, …
    #[arg(value_name = "SYSTEM")]
    system: Option<String>,
    /// The folder that holds the data sets
    #[arg(long, value_name = "DIR", env = "RULEGUIDER_DATA", default_value = "data")]
    data_root: PathBuf,
    /// The folder for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// The folder for runs
    #[arg(long, value_name = "DIR", default_value = "runs/reproduce")]
    runs: PathBuf,
    /// Seeds, one run for each [default: --seed]
    #[arg(long, value_name = "S,…", value_delimiter = ',')]
    seeds: Vec<u64>,
    /// A setting for all rows, such as walk.epochs=3; recorded in the results
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A settings file instead of the row's own, such as best.toml of a `sweep`; needs DATASET and SYSTEM
    #[arg(long, value_name = "FILE", requires = "system")]
    config: Option<String>,
    /// The time limit of a row, in minutes; training then ends with the best model so far [default: no limit]
    #[arg(long, value_name = "M", value_parser = super::run::minutes)]
    minutes: Option<f64>,
    /// Only list the rows
    #[arg(long)]
    list: bool,
    /// Only rebuild the tables from the saved results
    #[arg(long, conflicts_with = "list")]
    tables: bool,
}

/// Prints results, as tables or as JSON.
fn print_results(results: &[RowResult], common: &Common) -> anyhow::Result<Outcome> {
    if common.json { console::print_json(&results) } else { console::print(&tables(results).trim_end()) }?;
    Ok(Outcome::Done)
}

impl Reproduce {
    /// Runs the rows and prints their table.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let rows = rows(self.dataset.as_deref(), self.system.as_deref())?;
        if self.list {
            let list = || {
                rows.iter()
                    .try_for_each(|row| console::print(&format_args!("{} {}", row.dataset, row.system)))
            };
            if common.json { console::print_json(&rows) } else { list() }?;
            return Ok(Outcome::Done);
        }
        if self.tables {
            return print_results(&write_tables(&self.results)?, common);
        }
        let console = Console::with_interrupt(common);
        let seeds = if self.seeds.is_empty() { vec![common.seed] } else { self.seeds.clone() };
        for name in rows.iter().flat_map(|row| [Some(row.dataset.clone()), row.on()]).flatten() {
            let path = self.folder(&name);
            ensure!(
                path.is_dir(),
                "{}: no such data set; set --data-root to the folder with the data sets",
                path.display()
            );
        }
        let mut done = Vec::new();
        for row in &rows {
            for &seed in &seeds {
                console.note(&format_args!("{} {}, seed {seed}", row.dataset, row.system));
                match self.reproduce(row, seed, common, &console) {
                    Ok(result) => {
                        keep(&self.results, &result)?;
                        done.push(result);
                    }
                    Err(error) if error.is_interrupted() => {
                        console.note(&"interrupted; run the same command again to resume");
                        return Ok(Outcome::Interrupted);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        print_results(&done, common)
    }

    /// The folder of a data set: in the root, or in its folder of inductive data sets.
    fn folder(&self, dataset: &str) -> PathBuf {
        let among_inductive = self.data_root.join("inductive").join(dataset);
        if among_inductive.is_dir() { among_inductive } else { self.data_root.join(dataset) }
    }

    fn reproduce(
        &self,
        row: &Row,
        seed: u64,
        common: &Common,
        console: &Console,
    ) -> Result<RowResult, Error> {
        let Row { dataset, system } = row;
        let learn = Learn::new(self.folder(dataset))
            .config(self.config.clone().unwrap_or_else(|| format!("{dataset}/{system}")))
            .out(self.runs.join(format!("{dataset}-{system}-{seed}")))
            .siblings(&self.runs)
            .seed(seed)
            .device(common.device()?);
        let learn = self.minutes.into_iter().fold(learn, Learn::minutes);
        let model = self.set.iter().fold(learn, Learn::set).prepare()?.run(console)?;
        let config = model.config().to_toml();
        let mut result = RowResult::new(row, model.results()?, config, model.device().to_string());
        let set: String = self.set.iter().map(|set| format!(" --set {set}")).collect();
        let minutes = self.minutes.map_or(String::new(), |minutes| format!(" --minutes {minutes}"));
        let config = self.config.as_ref().map_or(String::new(), |file| format!(" --config {file}"));
        result.command =
            Some(format!("ruleguider reproduce {dataset} {system} --seed {seed}{config}{minutes}{set}"));
        // The model is evaluated on another graph, if the row says so.
        let model = match row.on() {
            None => model,
            Some(other) => {
                let (device, run) = (Some(model.device().clone()), model.directory().path().to_owned());
                let on = Some(Source::of(&self.folder(&other), &ReadOptions::default())?);
                drop(model);
                let model = OpenOptions { device, on, first: true, ..OpenOptions::DEFAULT }.open(run)?;
                result = result.asked_on(model.evaluate(Split::Test, Protocol::default(), console)?);
                model
            }
        };
        let figures = |split, protocol| model.evaluate(split, protocol, console).map(|report| report.figures);
        let protocol = Protocol::default();
        let as_published = figures(Split::Test, Protocol { ties: Ties::Published, ..protocol })?;
        result.mrr_published_ties = Some(as_published.mrr);
        result.both = Some(figures(Split::Test, Protocol { side: Side::Both, ..protocol })?);
        if !model.valid_is_learnt() {
            result.valid = Some(figures(Split::Valid, protocol)?);
            result.valid_as_published = Some(figures(Split::ValidAsPublished, protocol)?);
        }
        if let Some([apart, filtered]) = model.evaluate_trained_valid(protocol, console)? {
            result.valid_taught = Some(apart.figures);
            result.valid_taught_as_published = Some(filtered.figures);
        }
        Ok(result)
    }
}
