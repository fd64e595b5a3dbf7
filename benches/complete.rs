//! Completing a graph beside ranking the same queries.
//!
//! `cargo bench --bench complete -- RUN… [--top N] [--min-probability P] [--rounds N] [--threads N]` opens every run, ranks
//! all queries that `complete` asks (scores, facts of the graph left out, the ten best of each) and completes the graph into
//! a temporary file. Ranking makes no probabilities, no reasons and no file. The best of some rounds counts, since the two
//! take turns.

#![allow(clippy::print_stdout)]

use rayon::prelude::*;
use ruleguider::Model;
use ruleguider::ask::{CompleteOptions, HeldOutFacts, OpenOptions};
use ruleguider::eval::calibration::TOP;
use ruleguider::graph::{Link, Query, RelationId, sensible_queries};
use ruleguider::progress::Silent;
use ruleguider::tensor::{Device, DeviceChoice};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Options {
    runs: Vec<PathBuf>,
    complete: CompleteOptions,
    rounds: usize,
    threads: usize,
}

fn main() -> Outcome<()> {
    let options = options()?;
    println!("| run | queries | ranking | completing | ratio | facts |");
    println!("|---|---|---|---|---|---|");
    for run in &options.runs {
        let device = Device::choose(DeviceChoice::Cpu, options.threads)?;
        let model = OpenOptions { device: Some(device), ..OpenOptions::DEFAULT }.open(run)?;
        let (mut ranking, mut completing, mut facts) = (f64::INFINITY, f64::INFINITY, 0);
        let links = (0..model.graph().relations() as u32).map(|id| Link::forward(RelationId(id)));
        let queries: Vec<Query> = sensible_queries(model.graph(), &links.collect::<Vec<_>>()).collect();
        for _ in 0..options.rounds {
            ranking = ranking.min(rank(&model, &queries)?);
            let folder = tempfile::tempdir()?;
            let mut asked = options.complete.clone();
            asked.min_probability = asked.min_probability.or(model.usual_probability(asked.top)?);
            let done = model.complete(&asked, &folder.path().join("missing.tsv"), &Silent)?;
            (completing, facts) = (completing.min(done.seconds), done.facts);
        }
        println!(
            "| {} | {} | {ranking:.2} s | {completing:.2} s | {:.2} | {facts} |",
            run.display(),
            queries.len(),
            completing / ranking
        );
    }
    Ok(())
}

/// The seconds in which the ten best new answers of each query are found.
fn rank(model: &Model, queries: &[Query]) -> Outcome<f64> {
    let began = Instant::now();
    let reasoner = model.reasoner().reasoner();
    let graph = model.graph();
    let mut ranked = 0;
    for batch in queries.chunks(reasoner.batch().max(1)) {
        let answers = reasoner.answer(batch)?;
        let new = |(row, query): (usize, &Query)| {
            let facts = graph.targets(query.subject, query.link);
            let best = answers.best(row, TOP + facts.len());
            best.iter().filter(|one| facts.binary_search(&one.entity).is_err()).take(TOP).count()
        };
        ranked += batch.par_iter().enumerate().map(|(row, query)| new((row, query))).sum::<usize>();
    }
    assert!(queries.is_empty() || ranked > 0, "nothing was ranked");
    Ok(began.elapsed().as_secs_f64())
}

fn options() -> Outcome<Options> {
    let held_out = HeldOutFacts::Show;
    let complete = CompleteOptions {
        links: Vec::new(),
        top: None,
        min_probability: None,
        held_out,
        workers: 1,
        subjects: Default::default(),
        objects: Default::default(),
        paths: Default::default(),
    };
    let mut options = Options { runs: Vec::new(), complete, rounds: 3, threads: 2 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--top" => options.complete.top = Some(value()?.parse()?),
            "--min-probability" => options.complete.min_probability = Some(value()?.parse()?),
            "--rounds" => options.rounds = value()?.parse()?,
            "--threads" => options.threads = value()?.parse()?,
            run => options.runs.push(PathBuf::from(run)),
        }
    }
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    options.complete.workers = options.threads;
    Ok(options)
}
