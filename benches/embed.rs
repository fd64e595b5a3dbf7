//! Seconds of a training epoch of ComplEx on the CPU, against all entities of a graph as large as WN18RR.
//!
//! `cargo bench --bench embed` times some hundred steps of the trainer itself and scales them to an epoch. With
//! `PEER_PYTHON` set to a Python that has PyTorch, `benches/peers/embed_torch.py` takes the same steps on the
//! same queries right after, and the ratio is printed. Settings: binary loss against all entities, batch 512,
//! dimension 200, dropout 0.3, dense Adam.

#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use rand::{Rng, SeedableRng};
use ruleguider::embed::{Settings, Size, Stop, Task, train};
use ruleguider::graph::{Array, Graph, Known, Link, Triple};
use ruleguider::progress::Silent;
use ruleguider::tensor::Device;
use std::io::Write;
use std::sync::Arc;

const SIZE: Size = Size { entities: 40_943, relations: 11 };
const FACTS: usize = 86_835;
/// As many facts as make about twenty steps.
const TIMED_FACTS: usize = 5_200;
const EPOCHS: usize = 2;

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let facts = facts(FACTS);
    let steps_of_all = queries(&facts).div_ceil(512);
    let facts = &facts[..TIMED_FACTS];
    let steps = queries(facts).div_ceil(512);
    let settings = Settings { epochs: EPOCHS, dropout_table: 0.0, ..Settings::default() };
    let facts: Array<Triple> = facts.into();
    let known =
        Known { facts: facts.clone(), queries: facts.clone(), valid: Array::default(), ..Known::default() };
    let device = Device::cpu(threads).expect("threads can be started");
    let task = Task {
        known: &known,
        size: SIZE,
        settings: &settings,
        stop: Stop::After(EPOCHS),
        seed: 1,
        device: &device,
        folder: None,
        warm: None,
    };
    let ours = train(task, &Silent).expect("training works").summary;
    let step = ours.epoch_seconds / steps as f64;
    println!(
        "ruleguider: {:.1} ms a step, {:.1} s an epoch of {steps_of_all} steps, {:.0} MiB of tensors, {threads} threads",
        1e3 * step,
        step * steps_of_all as f64,
        ours.device_memory_mb
    );
    let Ok(python) = std::env::var("PEER_PYTHON") else {
        println!("PyTorch: not timed; set PEER_PYTHON to a Python that has it");
        return;
    };
    let theirs = peer(&python, &facts, threads);
    println!(
        "PyTorch: {:.1} ms a step, {:.1} s an epoch; ruleguider is {:.2} times as fast",
        1e3 * theirs,
        theirs * steps_of_all as f64,
        theirs / step
    );
}

/// Random facts with the sizes of WN18RR; tails are skewed, as they are there.
fn facts(count: usize) -> Vec<Triple> {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(18);
    let mut draw = |below: usize| (random.next_u64() % below as u64) as u32;
    (0..count)
        .map(|_| {
            let below = 1 + draw(SIZE.entities) as usize;
            Triple::new(draw(SIZE.entities), draw(SIZE.relations), draw(below))
        })
        .collect()
}

/// How many distinct queries facts make, in both directions.
fn queries(facts: &[Triple]) -> usize {
    let graph = Arc::new(Graph::new(SIZE.entities, SIZE.relations, facts));
    (0..Link::count(SIZE.relations) as u32).map(|link| graph.pairs(Link(link)).sources.len()).sum()
}

/// Seconds a step of the same training in PyTorch.
fn peer(python: &str, facts: &[Triple], threads: usize) -> f64 {
    let path = std::env::temp_dir().join(format!("embed_peer_{}.tsv", std::process::id()));
    let mut file = std::fs::File::create(&path).expect("a temporary file can be written");
    for Triple { head, relation, tail } in facts {
        writeln!(file, "{}\t{}\t{}", head.0, relation.0, tail.0).expect("a temporary file can be written");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/embed_torch.py");
    let [entities, relations, epochs, threads] =
        [SIZE.entities, SIZE.relations, EPOCHS, threads].map(|number| number.to_string());
    let output = std::process::Command::new(python)
        .arg(script)
        .arg(&path)
        .args([entities, relations, epochs, threads])
        .output()
        .expect("PEER_PYTHON can be started");
    std::fs::remove_file(&path).expect("the file was made above");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}
