//! `run`: all stages, then the ranking, then a few explained answers.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::{self, Reading};
use anyhow::bail;
use ruleguider::ask::answer::HeldOut;
use ruleguider::ask::{RunReport, run};
use ruleguider::config::{self, Config, Layer};
use ruleguider::graph::Dataset;
use ruleguider::plan::{GraphSize, Plan, Resources, Stage, choose};
use ruleguider::run::{Manifest, RunSpec, Source};
use ruleguider::tensor::Device;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How long to learn from a graph that nobody has tuned for.
const MINUTES: f64 = 10.0;

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|&minutes: &f64| minutes > 0.0 && minutes.is_finite());
    minutes.ok_or_else(|| "expected a number of minutes above 0".to_owned())
}

/// Arguments of `run`.
#[derive(clap::Args)]
#[command(
    after_help = "Without DATA: the built-in demonstration graph, a minute on two cores. Interrupted or killed, the
same command goes on from where it was.

Examples:
  ruleguider run
  ruleguider run my_triples.tsv --minutes 5
  ruleguider run data/wn18rr --set rules.seconds=100 --out runs/wn18rr
  ruleguider run data/wn18rr --config my.toml --json | jq .mrr"
)]
pub struct Run {
    /// A folder with train, valid, test (and optionally graph, entity_labels.tsv), or one file of triples
    #[arg(value_name = "DATA")]
    data: Option<PathBuf>,
    /// A TOML file of settings, or the name of a configuration that comes with the program
    #[arg(long, value_name = "FILE|NAME")]
    config: Option<String>,
    /// The run directory [default: runs/ and the name of the data]
    #[arg(long, value_name = "RUN")]
    out: Option<PathBuf>,
    /// A setting, such as rules.threshold=0.05; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// How long to learn from DATA, and rank, without --config [default: 10]
    #[arg(long, value_name = "M", conflicts_with = "config", requires = "data", value_parser = minutes)]
    minutes: Option<f64>,
    /// Write event files for TensorBoard into RUN/tensorboard
    #[arg(long)]
    tensorboard: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Run {
    /// Runs, prints the figures and the answers.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let began = Instant::now();
        let Reading { shares, header } = self.reading;
        if self.data.is_none() && (shares.is_some() || header.is_some()) {
            bail!("--split and --header say how DATA is read; expected DATA as well");
        }
        let console = Console::with_interrupt(common);
        // Settings first: a misspelt one should not cost the reading of a large graph.
        let set = Layer::from_pairs(self.set.iter().map(String::as_str))?;
        let named = match (&self.config, &self.data) {
            (Some(name), _) => Some(config::named(name, &Config::default())?),
            (None, None) => Some(config::named("demonstration", &Config::default())?),
            (None, Some(_)) => None,
        };
        named.as_ref().unwrap_or(&Config::default()).with(&set)?;
        let (source, dataset) = self.read(common)?;
        let device = common.device()?;
        let out = self.out.clone().unwrap_or_else(|| self.default_out(&source));
        console.note(&Beginning { source: &source, dataset: &dataset, out: &out });
        let (config, budget) = match named {
            Some(config) => (config.with(&set)?, None),
            None => {
                let plan = self.plan(&dataset, &device, &out).with(&set)?;
                console.note(&plan);
                let budget = plan.budget(began);
                (plan.config, Some(budget))
            }
        };
        let spec = RunSpec {
            source,
            out,
            config,
            seed: common.seed,
            device,
            tensorboard: self.tensorboard,
            name: self.config_name(),
            siblings: None,
            budget,
        };
        let report = match run(&spec, &dataset, &console) {
            Ok(report) => report,
            Err(error) if error.is_interrupted() => {
                console.note(&"interrupted; the same command goes on from here");
                return Ok(Outcome::Interrupted);
            }
            Err(error) => return Err(error.into()),
        };
        if common.json {
            console::print_json(&report)?;
        } else {
            console::print(&Ending { report: &report, out: &spec.out })?;
        }
        Ok(Outcome::Done)
    }

    /// What suits a graph that nobody has tuned for.
    fn plan(&self, dataset: &Dataset, device: &Device, out: &Path) -> Plan {
        let shape = GraphSize::of(&dataset.graph(), &dataset.known, dataset.test.len());
        let (minutes, cuda) = (self.minutes.unwrap_or(MINUTES), device.is_cuda());
        // A run goes on with the networks it was begun with, on however many threads it goes on.
        let begun =
            Manifest::resources_of(out).filter(|begun| (begun.minutes, begun.cuda) == (minutes, cuda));
        let resources = Resources { minutes, threads: rayon::current_num_threads(), cuda };
        choose(&shape, &begun.unwrap_or(resources))
    }

    fn read(&self, common: &Common) -> anyhow::Result<(Source, Dataset)> {
        let Some(path) = &self.data else {
            return Ok((Source::Demonstration, ruleguider::generate::demonstration()));
        };
        let data = data::Data { path: path.clone(), options: self.reading.clone() };
        let source = Source::of(path, &self.reading.options(common))?;
        Ok((source, data.read(common)?))
    }

    /// The last part of the configuration's name: `ruleguider-complex`.
    fn config_name(&self) -> Option<String> {
        let stem = self.config.as_deref().map(Path::new).and_then(Path::file_stem)?;
        Some(stem.to_string_lossy().into_owned())
    }

    fn default_out(&self, source: &Source) -> PathBuf {
        let data = source.name();
        match self.config_name() {
            Some(config) => Path::new("runs").join(format!("{data}-{config}")),
            None => Path::new("runs").join(data),
        }
    }
}

/// What is said before anything is done.
struct Beginning<'a> {
    source: &'a Source,
    dataset: &'a Dataset,
    out: &'a Path,
}

impl fmt::Display for Beginning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dataset { names, known, test, .. } = self.dataset;
        write!(
            f,
            "{}: {} entities, {} relations, {} facts; {} training queries, {} valid, {} test; into {}",
            self.source.name(),
            names.entities.len(),
            names.relations.len(),
            known.facts.len(),
            known.queries.len(),
            known.valid.len(),
            test.len(),
            self.out.display()
        )
    }
}

/// The figures and the answers, for a person.
struct Ending<'a> {
    report: &'a RunReport,
    out: &'a Path,
}

impl fmt::Display for Ending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunReport { report, stages, examples, seed, version, .. } = self.report;
        for (name, stage) in Stage::ALL.iter().filter_map(|stage| stages.get_key_value(stage.name())) {
            let memory = stage.peak_memory_mb.map_or(String::new(), |mb| format!(", {mb:.0} MB"));
            let before = if stage.skipped { ", done before" } else { "" };
            writeln!(f, "{name}: {:.1} s{memory}{before}", stage.seconds)?;
        }
        writeln!(f, "\nTest split, filtered, seed {seed}, version {version}:\n{report}")?;
        if !examples.is_empty() {
            writeln!(f, "Answers to test queries, with their reasons:")?;
        }
        for example in examples {
            let verdict = match example.split() {
                Some(HeldOut::Test) => "true".to_owned(),
                Some(split) => format!("true, put aside for {}", split.purpose()),
                None => "not in the data".to_owned(),
            };
            writeln!(f, "  {}  [{verdict}]", example.words)?;
        }
        write!(f, "\nAsk it: ruleguider predict {} SUBJECT RELATION", self.out.display())
    }
}
