//! `sweep`: searches settings by the validation split; the best as a configuration.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::{self, Data};
use anyhow::Context;
use ruleguider::config::Layer;
use ruleguider::report::sweep::page;
use ruleguider::sweep::{Search, Space, Sweep as Searching, SweepReport, Tuning, Workers, system};
use std::path::PathBuf;
use std::time::Instant;

/// The default number of trials.
const TRIALS: usize = 16;
/// The default number of trainings that share a GPU.
const ON_A_CARD: usize = 4;

/// Arguments of `sweep`.
#[derive(clap::Args)]
#[command(
    after_help = "Settings are chosen by the MRR on the validation split; the test split is not read. If interrupted or killed, \
run the same command again to resume. OUT holds trials/ (each a run directory), trials.tsv, trials.json, sweep.html and \
best.toml, for `run --config` and `reproduce --config`.

A space is a TOML file with the keys of a configuration, each with a list of values or with bounds:
  [walk]
  hops = [2, 3]
  learning_rate = { from = 0.0003, to = 0.003, scale = \"log\" }

Examples:
  ruleguider sweep data/umls ruleguider-complex --space paper --trials 32 --minutes 60 --out sweeps/umls
  ruleguider sweep data/wn18rr propagator --search halving --device cuda --at-once 4
  ruleguider sweep my_triples.tsv complex --space mine.toml --search grid --json | jq .best"
)]
pub struct Sweep {
    #[command(flatten)]
    data: Data,
    /// What to tune: a configuration of the data set (ruleguider-complex, propagator, …), a file, or for your own data
    /// walker, propagator, embedding, blend, rules, complex, conve, distmult, rotate
    #[arg(value_name = "SYSTEM")]
    system: String,
    /// The search space: paper, propagator, embedding, or a file [default: that of the system]
    #[arg(long, value_name = "NAME|FILE")]
    space: Option<String>,
    /// The maximum number of trials [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: Option<u32>,
    /// The time limit of the search, in minutes; training then ends with the best model so far [default: no limit]
    #[arg(long, value_name = "M", value_parser = super::run::minutes)]
    minutes: Option<f64>,
    /// The search method: grid, random, or halving, which stops the worse half early
    #[arg(long, value_name = "HOW", default_value = "random")]
    search: Search,
    /// How many trials are trained at once [default: one per thread; on a GPU 4]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=256))]
    at_once: Option<u16>,
    /// Train only this trial, counted from 1, for array jobs; the same command without --trial then writes the table. With
    /// halving, train it for its next rung; run the array once per rung
    #[arg(long, value_name = "N", conflicts_with_all = ["at_once"])]
    trial: Option<usize>,
    /// A setting for all trials, such as walk.epochs=10; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The folder of the search [default: sweeps/ and the names of data and system]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Sweep {
    /// Searches, and prints the table.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let console = Console::with_interrupt(common).within(Instant::now(), self.minutes);
        let device = common.device()?;
        let searching = self.searching(common, device.is_cuda())?;
        let dataset = searching.data.dataset();
        console.note(&format_args!(
            "{}: {} entities, {} relations, {} facts, {} valid; the test split is not read; {} at a time on {}; into {}",
            searching.data.name(),
            dataset.names.entities.len(),
            dataset.names.relations.len(),
            dataset.known.facts.len(),
            dataset.known.valid.len(),
            searching.workers.at_once,
            device,
            searching.out.display()
        ));
        // Every training opens its own device.
        drop(device);
        if let Some(number) = self.trial {
            return self.train(number, &searching, &console, common);
        }
        let report = searching.run(&console)?;
        let path = report.out.join("sweep.html");
        std::fs::write(&path, page(&report))
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        if !report.complete {
            console.note(&"interrupted; run the same command again to resume");
        }
        self.print(&report, common)?;
        Ok(if report.complete { Outcome::Done } else { Outcome::Interrupted })
    }

    /// Trains one trial and prints its result.
    fn train(
        &self,
        number: usize,
        searching: &Searching,
        console: &Console,
        common: &Common,
    ) -> anyhow::Result<Outcome> {
        let record = match searching.train(number, console) {
            Err(error) if error.is_interrupted() => {
                console.note(&"interrupted; run the same command again to resume");
                return Ok(Outcome::Interrupted);
            }
            ended => ended?,
        };
        match common.json {
            true => console::print_json(&record)?,
            false => console::print(&format_args!("trial {number}: {}", record.standing()))?,
        }
        Ok(Outcome::Done)
    }

    fn print(&self, report: &SweepReport, common: &Common) -> anyhow::Result<()> {
        if common.json { console::print_json(report) } else { console::print(report) }
    }

    fn searching(&self, common: &Common, cuda: bool) -> anyhow::Result<Searching> {
        let place = data::Place::of(&self.data.path, &self.data.options.form, common)?;
        let options = self.data.options.options(common);
        let data = Tuning::read(place.path(), &options)?;
        data::note_odd(&self.data.path, &data.dataset().findings, common);
        let set = Layer::from_pairs(self.set.iter().map(String::as_str))?;
        let base = system(&self.system, &data)?.with(&set)?;
        let space = match &self.space {
            Some(name) => name.as_str(),
            None => Space::of(base.system)?,
        };
        let space = Space::named(space, &base)?;
        let threads = rayon::current_num_threads();
        let trials = self.trials.map_or(TRIALS, |trials| trials as usize);
        let usual = if cuda { ON_A_CARD } else { threads };
        let at_once = self.at_once.map_or(usual, usize::from).clamp(1, trials);
        let system =
            self.system.rsplit('/').next().unwrap_or(&self.system).trim_end_matches(".toml").to_owned();
        let default = || PathBuf::from("sweeps").join(format!("{}-{system}", data.name()));
        Ok(Searching {
            out: self.out.clone().unwrap_or_else(default),
            data,
            system,
            base,
            space,
            search: self.search,
            trials,
            minutes: self.minutes,
            seed: common.seed,
            workers: Workers { at_once, threads, device: common.device },
        })
    }
}
