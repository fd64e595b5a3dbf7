//! The universal propagator: milliseconds of one query over a graph that nothing was trained on.
//!
//! `cargo bench --bench universal -- [NAME …] [--people N] [--device cpu|cuda] [--threads N] [--queries N] [--edges N]
//! [--frontier all|N,…] [--rank N]`
//! reads data sets from the folder that `RULEGUIDER_DATA` names, or generates a family of so many people, and asks
//! queries one at a time, each of its own relation first and then of a relation that was asked before. `--edges N` keeps
//! the first N facts only. With `--frontier` it does so with each of several frontiers, and says how many messages a query
//! sends and how many states it updates. `--rank N` ranks N test triples in both directions, too.

#![allow(clippy::print_stdout)]

use ruleguider::eval::{Protocol, Side, Truth, evaluate};
use ruleguider::generate;
use ruleguider::graph::{Adjacency, Dataset, Direction, EntityId, Graph, Query, ReadOptions, Triple, read};
use ruleguider::progress::Silent;
use ruleguider::propagate::{FrontierBound, PathNetwork};
use ruleguider::tensor::{Device, DeviceChoice};
use ruleguider::universal::{RelationGraph, Universal, UniversalReasoner};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Answers of a query whose reasons are looked for.
const EXPLAINED: usize = 3;

struct Options {
    device: Device,
    queries: usize,
    edges: usize,
    ranked: usize,
    frontiers: Vec<FrontierBound>,
}

fn main() -> Outcome<()> {
    let (mut names, mut threads, mut queries, mut edges, mut ranked) = (Vec::new(), 2, 30, usize::MAX, 0);
    let (mut choice, mut frontiers, mut people) = (DeviceChoice::Cpu, vec![FrontierBound::All], Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--threads" => threads = value()?.parse()?,
            "--queries" => queries = value()?.parse()?,
            "--edges" => edges = value()?.parse()?,
            "--rank" => ranked = value()?.parse()?,
            "--people" => people.push(value()?.parse()?),
            "--device" => choice = if value()? == "cuda" { DeviceChoice::Cuda } else { DeviceChoice::Cpu },
            "--frontier" => {
                frontiers = value()?.split(',').map(frontier).collect::<Result<_, _>>()?;
            }
            _ => names.push(argument),
        }
    }
    if names.is_empty() && people.is_empty() {
        names = ["wn18rr-v1", "fb15k-237"].map(String::from).to_vec();
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let options = Options { device: Device::choose(choice, threads)?, queries, edges, ranked, frontiers };
    println!("device: {}", options.device);
    let root = std::env::var_os("RULEGUIDER_DATA").map_or_else(|| PathBuf::from("data"), PathBuf::from);
    for name in names {
        let folder = root.join(&name);
        if !folder.exists() {
            println!("{name}: skipped, {} is not there (RULEGUIDER_DATA names the folder)", folder.display());
            continue;
        }
        let folder = if folder.join("facts.tsv.gz").exists() { folder.join("facts.tsv.gz") } else { folder };
        let dataset = read(&folder, &ReadOptions { incomplete: true, ..ReadOptions::default() })?;
        measure(&name, &dataset, &options)?;
    }
    for people in people {
        measure(&format!("a family of {people} people"), &generate::family(people, 1).dataset, &options)?;
    }
    Ok(())
}

fn frontier(text: &str) -> Result<FrontierBound, std::num::ParseIntError> {
    Ok(match text {
        "all" => FrontierBound::All,
        most => FrontierBound::Most(most.parse()?),
    })
}

/// Seconds that this process has computed; only Linux tells it.
fn cpu_seconds() -> f64 {
    let ticks = |text: String| -> Option<f64> {
        let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
        Some(fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?)
    };
    std::fs::read_to_string("/proc/self/stat").ok().and_then(ticks).map_or(f64::NAN, |ticks| ticks / 100.0)
}

/// Times the parts of queries over the facts of a data set.
fn measure(name: &str, dataset: &Dataset, options: &Options) -> Outcome<()> {
    let facts = &dataset.known.facts[..options.edges.min(dataset.known.facts.len())];
    let entities = facts.iter().map(|fact| fact.head.0.max(fact.tail.0) as usize + 1).max().unwrap_or(0);
    let entities = if options.ranked > 0 { dataset.names.entities.len() } else { entities };
    let graph = Graph::new(entities, dataset.names.relations.len(), facts);
    println!("{name}: {entities} entities, {} relations, {} facts", graph.relations(), graph.facts());
    let clock = Instant::now();
    let links = RelationGraph::new(&graph);
    let seconds = clock.elapsed().as_secs_f64();
    let entries = links.heads.links.len() / 2 + links.pairs.links.len();
    println!("  relation graph: {:.1} ms, {entries} neighbours", 1e3 * seconds);
    let universal = Arc::new(Universal::shipped(&options.device)?);
    let clock = Instant::now();
    let mut reasoner = UniversalReasoner::new(universal, &graph)?;
    println!("  relation graph and edge_index: {:.1} ms", 1e3 * clock.elapsed().as_secs_f64());
    for &frontier in &options.frontiers {
        println!("  frontier {frontier:?}");
        reasoner = reasoner.with_frontier(frontier);
        time(&reasoner, facts, options.queries)?;
        if options.ranked > 0 {
            rank(&reasoner, dataset, &graph, options.ranked)?;
        }
    }
    Ok(())
}

fn time(reasoner: &UniversalReasoner, facts: &[Triple], queries: usize) -> Outcome<()> {
    let asked = |at: usize| {
        let direction = if at.is_multiple_of(2) { Direction::Forward } else { Direction::Inverse };
        Query::of(facts[at * 7919 % facts.len()], direction).0
    };
    reasoner.scores(&[asked(queries)])?;
    let [mut first, mut again, mut reasons] = [const { Vec::new() }; 3];
    let mut best = Vec::new();
    for at in 0..queries {
        for times in [&mut first, &mut again] {
            let clock = Instant::now();
            let scores = reasoner.scores(&[asked(at)])?;
            times.push(1e3 * clock.elapsed().as_secs_f64());
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.select_nth_unstable_by(EXPLAINED, |&a, &b| scores[b].total_cmp(&scores[a]));
            best = order[..EXPLAINED].to_vec();
        }
        let clock = Instant::now();
        for &entity in &best {
            reasoner.paths(asked(at), EntityId(entity as u32), 3)?;
        }
        reasons.push(1e3 * clock.elapsed().as_secs_f64());
    }
    let rows = [
        ("of a new relation (mostly)", &mut first),
        ("of a known relation", &mut again),
        ("more for the paths to its three best answers", &mut reasons),
    ];
    for (what, times) in rows {
        times.sort_by(f64::total_cmp);
        println!(
            "  a query {what}: median {:.1} ms, worst {:.1}",
            times[times.len() / 2],
            times[times.len() - 1]
        );
    }
    let before = cpu_seconds();
    for at in 0..queries {
        reasoner.scores(&[asked(at)])?;
    }
    let seconds = (cpu_seconds() - before) / queries as f64;
    println!("  computing, on all threads together: {:.1} ms a query", 1e3 * seconds);
    let mut sums = [0; 2];
    for at in 0..queries {
        let Some(work) = reasoner.work(asked(at))? else { return Ok(()) };
        sums = [sums[0] + work[0], sums[1] + work[1]];
    }
    println!("  {} messages and {} updates a query", sums[0] / queries, sums[1] / queries);
    Ok(())
}

fn rank(reasoner: &UniversalReasoner, dataset: &Dataset, graph: &Graph, count: usize) -> Outcome<()> {
    let known = &dataset.known;
    let answers = Adjacency::new(graph.entities(), &[&known.facts, &known.valid, &dataset.test]);
    let step = dataset.test.len().div_ceil(count).max(1);
    let asked: Vec<Triple> = dataset.test.iter().step_by(step).copied().collect();
    let protocol = Protocol { side: Side::Both, ..Protocol::default() };
    let figures =
        evaluate(reasoner, &asked, Truth { graph, answers: &answers }, protocol, &Silent)?.figures();
    println!(
        "  {} test triples, both directions: MRR {:.1}, H@1 {:.1}, H@10 {:.1}",
        asked.len(),
        100.0 * figures.mrr,
        100.0 * figures.hits_at_1,
        100.0 * figures.hits_at_10
    );
    Ok(())
}
