//! The universal propagator: milliseconds of one query over a graph that nothing was trained on.
//!
//! `cargo bench --bench universal -- [NAME …] [--device cpu|cuda] [--threads N] [--queries N] [--edges N]`
//! reads data sets from the folder that `RULEGUIDER_DATA` names and asks queries one at a time, each of its own
//! relation first and then of a relation that was asked before. `--edges N` keeps the first N facts only.

#![allow(clippy::print_stdout)]

use ruleguider::graph::{Direction, Graph, Query, ReadOptions, Triple, read};
use ruleguider::tensor::{Device, DeviceChoice};
use ruleguider::universal::{RelationGraph, Universal, UniversalReasoner};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let (mut names, mut threads, mut queries, mut edges) = (Vec::new(), 2, 30, usize::MAX);
    let mut choice = DeviceChoice::Cpu;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--threads" => threads = value()?.parse()?,
            "--queries" => queries = value()?.parse()?,
            "--edges" => edges = value()?.parse()?,
            "--device" => choice = if value()? == "cuda" { DeviceChoice::Cuda } else { DeviceChoice::Cpu },
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
        names = ["wn18rr-v1", "fb15k-237"].map(String::from).to_vec();
    }
    let device = Device::choose(choice, threads)?;
    println!("device: {device}");
    let root = std::env::var_os("RULEGUIDER_DATA").map_or_else(|| PathBuf::from("data"), PathBuf::from);
    for name in names {
        let folder = root.join(&name);
        if !folder.exists() {
            println!("{name}: skipped, {} is not there (RULEGUIDER_DATA names the folder)", folder.display());
            continue;
        }
        let dataset = read(&folder, &ReadOptions { incomplete: true, ..ReadOptions::default() })?;
        let facts = &dataset.known.facts[..edges.min(dataset.known.facts.len())];
        measure(&name, facts, dataset.names.relations.len(), queries, &device)?;
    }
    Ok(())
}

/// Times the parts of `queries` queries over `facts`.
fn measure(name: &str, facts: &[Triple], relations: usize, queries: usize, device: &Device) -> Outcome<()> {
    let entities = facts.iter().map(|fact| fact.head.0.max(fact.tail.0) as usize + 1).max().unwrap_or(0);
    let graph = Graph::new(entities, relations, facts);
    println!("{name}: {entities} entities, {relations} relations, {} facts", graph.facts());
    let clock = Instant::now();
    let links = RelationGraph::new(&graph);
    let seconds = clock.elapsed().as_secs_f64();
    let entries = links.heads.links.len() / 2 + links.pairs.links.len();
    println!("  relation graph: {:.1} ms, {entries} neighbours", 1e3 * seconds);
    let universal = Arc::new(Universal::shipped(device)?);
    let clock = Instant::now();
    let reasoner = UniversalReasoner::new(universal, &graph)?;
    println!("  relation graph and edge_index: {:.1} ms", 1e3 * clock.elapsed().as_secs_f64());
    let mut first = Vec::new();
    let mut again = Vec::new();
    let asked = |at: usize| {
        let direction = if at.is_multiple_of(2) { Direction::Forward } else { Direction::Inverse };
        Query::of(facts[at * 7919 % facts.len()], direction).0
    };
    reasoner.scores(&[asked(queries)])?;
    for at in 0..queries {
        for times in [&mut first, &mut again] {
            let clock = Instant::now();
            reasoner.scores(&[asked(at)])?;
            times.push(1e3 * clock.elapsed().as_secs_f64());
        }
    }
    for (what, times) in [("of a new relation (mostly)", &mut first), ("of a known relation", &mut again)] {
        times.sort_by(f64::total_cmp);
        println!(
            "  a query {what}: median {:.1} ms, worst {:.1}",
            times[times.len() / 2],
            times[times.len() - 1]
        );
    }
    Ok(())
}
