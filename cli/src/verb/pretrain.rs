//! `pretrain`: makes the weights of the universal propagator, or says how well some answer over graphs they never saw.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use ruleguider::universal::{Overlap, PretrainReport, PretrainSettings, PretrainTask, overlap, pretrain};
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `pretrain`.
#[derive(clap::Args)]
#[command(
    after_help = "CONFIG is a TOML file with the graphs to train on, their shares of the time, and the graphs to rank; \
configs/universal.toml is the one that the built-in weights are made with. A checkpoint is written beside the weights every minute.

Examples:
  ruleguider pretrain configs/universal.toml --data data --out universal.safetensors --device cuda
  ruleguider pretrain configs/universal.toml --data data --out universal.safetensors --resume --minutes 10
  ruleguider pretrain configs/universal.toml --data data --minutes 0
  ruleguider pretrain configs/universal.toml --data data --overlap data/codex-s"
)]
pub struct Pretrain {
    /// The settings: graphs, shares, learning rate
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
    /// The folder that the paths of the graphs are relative to
    #[arg(long, value_name = "DIR", env = "RULEGUIDER_DATA", default_value = "data")]
    data: PathBuf,
    /// Minutes of training now, of those that CONFIG plans in total; 0 only ranks [default: all that are left]
    #[arg(long, value_name = "M", value_parser = minutes)]
    minutes: Option<f64>,
    /// Weights to begin with, or to rank [default: random ones; for ranking, the built-in ones]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    weights: Option<PathBuf>,
    /// The file to write the weights to
    #[arg(long, value_name = "FILE", required_unless_present_any = ["minutes", "overlap"])]
    out: Option<PathBuf>,
    /// Go on from the checkpoint beside the weights
    #[arg(long, requires = "out")]
    resume: bool,
    /// Train nothing: count which test facts of DATA stand in the graphs that CONFIG trains on
    #[arg(long, value_name = "DATA", conflicts_with_all = ["minutes", "weights", "out", "resume"])]
    overlap: Option<PathBuf>,
}

/// Minutes, 0 or more.
fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes.is_finite() && minutes >= 0.0 => Ok(minutes),
        _ => Err("expected a number of minutes, 0 or more".to_owned()),
    }
}

impl Pretrain {
    /// Trains, ranks and prints the figures.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let settings = PretrainSettings::read(&self.config)?;
        if let Some(asked) = &self.overlap {
            let found = overlap(&settings, &self.data, asked)?;
            if common.json {
                console::print_json(&found)
            } else {
                console::print(&overlap_table(&found).trim_end())
            }?;
            return Ok(Outcome::Done);
        }
        let console = Console::with_interrupt(common)
            .within(Instant::now(), Some(self.minutes.unwrap_or(settings.minutes)));
        let device = common.device()?;
        let task = PretrainTask {
            settings: &settings,
            data: &self.data,
            minutes: self.minutes,
            weights: self.weights.as_deref(),
            out: self.out.as_deref(),
            resume: self.resume,
            seed: common.seed,
            device: &device,
        };
        let report = pretrain(task, &console)?;
        if common.json { console::print_json(&report) } else { console::print(&table(&report).trim_end()) }?;
        Ok(if report.interrupted { Outcome::Interrupted } else { Outcome::Done })
    }
}

/// What was seen in training, as lines.
fn overlap_table(found: &Overlap) -> String {
    let line = |graph: &str, seen: usize, linked: usize| {
        let share = |count: usize| 100.0 * count as f64 / found.facts.max(1) as f64;
        format!(
            "{graph:32} {seen:7} seen ({:.1} %)  {linked:7} linked ({:.1} %)\n",
            share(seen),
            share(linked)
        )
    };
    let mut text = format!("{}: {} facts\n", found.graph, found.facts);
    for one in &found.by_graph {
        text += &line(&one.graph, one.seen, one.linked);
    }
    text + &line("any of them", found.seen, found.linked)
}

/// The figures as lines.
fn table(report: &PretrainReport) -> String {
    let mut text = String::new();
    if report.steps > 0 {
        text += &format!("{} steps in {:.1} minutes\n", report.steps, report.minutes);
    }
    for one in &report.ranked {
        let figures = &one.figures;
        text += &format!(
            "{:32} MRR {:5.1}  hits@1 {:5.1}  hits@10 {:5.1}  {} queries\n",
            one.graph,
            100.0 * figures.mrr,
            100.0 * figures.hits_at_1,
            100.0 * figures.hits_at_10,
            figures.queries
        );
    }
    if !report.ranked.is_empty() {
        let mean = report.ranked.iter().map(|one| one.figures.mrr).sum::<f64>() / report.ranked.len() as f64;
        text += &format!("{:32} MRR {:5.1}\n", "mean", 100.0 * mean);
    }
    text
}
