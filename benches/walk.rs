//! The walker at the published settings: milliseconds a batch with their breakdown, beside the products alone,
//! and milliseconds a query of beam search.
//!
//! `cargo bench --bench walk -- [wn18rr] [nell-995] [fb15k-237] [--device cpu|cuda] [--threads N] [--batches N]`
//!
//! Rules are all paths of one and two links under every relation and the soft reward is a ComplEx of random
//! weights: what they cost is what real ones cost. Data sets that are not there are skipped, saying so.

#![allow(clippy::print_stdout)]

use rayon::prelude::*;
use ruleguider::graph::{Direction, EntityId, Graph, Link, Query, ReadOptions, RelationId, read};
use ruleguider::tensor::{Activation, Device, DeviceChoice, Initial, Parameters, Tape, Tensor};
use ruleguider::walk::{
    BatchPart, HopSize, PathTable, Phase, SoftRewardError, Teacher, Timing, WalkConfig, Walker,
};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Options {
    names: Vec<String>,
    device: Device,
    batches: usize,
}

fn main() -> Outcome<()> {
    let options = options()?;
    println!("device: {}", options.device);
    for name in &options.names {
        let folder = data().join(name);
        if !folder.is_dir() {
            println!("{name}: skipped, {} is not there (RULEGUIDER_DATA names the folder)", folder.display());
            continue;
        }
        measure(name, &options)?;
    }
    Ok(())
}

fn options() -> Outcome<Options> {
    let (mut names, mut choice, mut threads, mut batches) = (Vec::new(), DeviceChoice::Cpu, 2, 12);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--device" => choice = value()?.parse()?,
            "--threads" => threads = value()?.parse()?,
            "--batches" => batches = value()?.parse()?,
            name => names.push(name.to_string()),
        }
    }
    if names.is_empty() {
        names = ["wn18rr", "nell-995", "fb15k-237"].map(String::from).to_vec();
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    Ok(Options { names, device: Device::choose(choice, threads)?, batches })
}

fn data() -> PathBuf {
    std::env::var_os("RULEGUIDER_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
}

fn settings(name: &str) -> WalkConfig {
    match name {
        "nell-995" => WalkConfig::nell_995(),
        "fb15k-237" => WalkConfig::fb15k_237(),
        _ => WalkConfig::wn18rr(),
    }
}

fn measure(name: &str, options: &Options) -> Outcome<()> {
    let dataset = read(&data().join(name), &ReadOptions::default())?;
    let graph = dataset.graph();
    let config = settings(name);
    let begun = Instant::now();
    let mut walker = Walker::new(&config, &graph, &dataset.known, &options.device, 1)?;
    println!(
        "\n{name}: {} numbers, ready after {:.2} s",
        walker.parameter_count(),
        begun.elapsed().as_secs_f64()
    );
    let (rules, soft) = (rules(&graph, config.hops), RandomComplex::new(&graph));
    let soft = |facts: &[(EntityId, Link, EntityId)]| Ok::<_, SoftRewardError>(soft.plausibility(facts));
    let teacher = Teacher { rules: &rules, soft: Some(&soft) };
    let mut timing = Timing::new(&mut walker, &dataset.known, teacher);
    for (phase, words) in [(Phase::Pretrain, "pre-training"), (Phase::Joint, "joint training")] {
        timing.run(phase, 3)?;
        let batch = timing.run(phase, options.batches)?;
        let watched = timing.watched(phase)?;
        println!("{words}: {:.2} ms a batch of {} × {}", 1e3 * batch, config.batch, config.rollouts);
        let parts = BatchPart::ALL.iter().zip(watched.seconds);
        let parts: Vec<String> = parts.map(|(phase, time)| format!("{phase:?} {:.2}", 1e3 * time)).collect();
        println!("  one batch by phase, ms: {}", parts.join(", "));
        for (hop, size) in watched.hops.iter().enumerate() {
            let HopSize { states, histories, heads, candidates } = size;
            println!(
                "  hop {}: {states} states, {histories} histories, {heads} heads, {candidates} candidates",
                hop + 1
            );
        }
        if phase == Phase::Joint {
            let (floor, operations) = floor(&options.device, &config, &graph, &watched.hops)?;
            println!(
                "  products alone: {:.2} ms, {:.1} GFLOP; a batch is {:.2} of that",
                1e3 * floor,
                operations / 1e9,
                batch / floor
            );
        }
    }
    search(&walker, &dataset.test, &config)?;
    println!("memory on the device: {} MB", options.device.peak_bytes() >> 20);
    Ok(())
}

/// Beam search over test queries, as the evaluation asks them.
fn search(walker: &Walker, test: &[ruleguider::graph::Triple], config: &WalkConfig) -> Outcome<()> {
    use ruleguider::eval::Reasoner;
    let count = (4 * walker.batch()).min(test.len());
    let queries: Vec<Query> =
        (0..count).map(|index| Query::of(test[index * test.len() / count], Direction::Forward).0).collect();
    walker.answers(&queries[..walker.batch().min(count)])?;
    let begun = Instant::now();
    let (mut states, mut candidates) = (0, 0);
    for batch in queries.chunks(walker.batch()) {
        let (_, work) = walker.answers_counted(batch)?;
        states += work.states;
        candidates += work.candidates;
    }
    println!(
        "beam search: {:.3} ms a query, beam {}, {} queries at once; {} states and {} candidates a query",
        1e3 * begun.elapsed().as_secs_f64() / count as f64,
        config.beam,
        walker.batch(),
        states / count,
        candidates / count
    );
    Ok(())
}

/// Seconds and operations of the matrix products of one batch with hops of these sizes, and nothing else.
fn floor(device: &Device, config: &WalkConfig, graph: &Graph, hops: &[HopSize]) -> Outcome<(f64, f64)> {
    let (width, history) = (config.dimension, config.history);
    let mut products: Vec<[usize; 3]> = Vec::new();
    let mut before = HopSize::default();
    for size in hops {
        for (rows, parents) in [(size.states, before.states), (size.histories, before.histories)] {
            products.push([rows, width, 4 * history]);
            products.extend(vec![[rows, history, 4 * history]; config.layers - 1]);
            products.extend(vec![[parents, history, 4 * history]; config.layers]);
        }
        products.push([size.states, 3 * width + history, width]);
        products.push([size.states, width, width]);
        products.push([size.heads, width + history, width]);
        products.push([size.heads, width, width]);
        products.push([size.heads, width, graph.links()]);
        before = *size;
    }
    products.retain(|product| product[0] > 0);
    let operations: f64 =
        products.iter().map(|[rows, inner, columns]| 6.0 * (rows * inner * columns) as f64).sum();
    let mut parameters = Parameters::new(device, 1);
    let mut pairs = Vec::new();
    for (index, &[rows, inner, columns]) in products.iter().enumerate() {
        let weight = parameters.dense(&index.to_string(), inner, columns, Initial::Uniform(0.1))?;
        pairs.push((Tensor::zeros(device, rows, inner)?, weight));
    }
    let run = |times: usize| -> Outcome<f64> {
        device.synchronise()?;
        let begun = Instant::now();
        // Once forward; backward has two products of the same size.
        for _ in 0..3 * times {
            let mut tape = Tape::inference(&parameters);
            for (input, weight) in &pairs {
                let (input, weight) = (tape.constant(input.clone())?, tape.parameter(*weight));
                tape.linear(&[input], weight, None, Activation::Identity, 0.0)?;
            }
        }
        device.synchronise()?;
        Ok(begun.elapsed().as_secs_f64() / times as f64)
    };
    run(1)?;
    Ok((run(3)?, operations))
}

fn rules(graph: &Graph, hops: usize) -> PathTable {
    let links: Vec<Link> = (Link::RESERVED as u32..graph.links() as u32).map(Link).collect();
    let heads = (0..graph.relations() as u32).map(|relation| Link::forward(RelationId(relation)));
    let rules = heads.flat_map(|head| {
        let second = links.iter().take(40);
        let pairs =
            links.iter().take(40).flat_map(move |&first| second.clone().map(move |&last| vec![first, last]));
        let bodies = links.iter().map(|&link| vec![link]).chain(pairs);
        bodies.map(move |body| (head, body, 0.2f32))
    });
    PathTable::new(hops, rules)
}

/// Embeddings of the width of ComplEx; only their cost counts.
struct RandomComplex {
    entities: Vec<f32>,
    links: Vec<f32>,
}

const HALF: usize = 200;

fn row(table: &[f32], index: usize) -> &[f32] {
    &table[index * 2 * HALF..(index + 1) * 2 * HALF]
}

impl RandomComplex {
    fn new(graph: &Graph) -> Self {
        let values = |count: usize| -> Vec<f32> {
            (0..count * 2 * HALF)
                .map(|index| ((index * 2_654_435_761) % 1000) as f32 / 5000.0 - 0.1)
                .collect()
        };
        Self { entities: values(graph.entities()), links: values(graph.links()) }
    }

    fn plausibility(&self, facts: &[(EntityId, Link, EntityId)]) -> Vec<f32> {
        let score = |(subject, link, object): &(EntityId, Link, EntityId)| {
            let (s, q) = (row(&self.entities, subject.index()), row(&self.links, link.index()));
            let o = row(&self.entities, object.index());
            let part = |k: usize| {
                let (real, imaginary) =
                    (s[k] * q[k] - s[HALF + k] * q[HALF + k], s[k] * q[HALF + k] + s[HALF + k] * q[k]);
                real * o[k] + imaginary * o[HALF + k]
            };
            1.0 / (1.0 + (-(0..HALF).map(part).sum::<f32>()).exp())
        };
        facts.par_iter().with_min_len(128).map(score).collect()
    }
}
