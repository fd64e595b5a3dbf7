//! The propagator: milliseconds of a training step and of a query, with what they are made of, and bytes moved.
//!
//! `cargo bench --bench propagate -- [wn18rr] [fb15k-237] [--device cpu|cuda] [--threads N] [--steps N] [key=value …]`
//! times the settings of the speed table, 16 queries a step on FB15k-237 and 32 on WN18RR, six layers of width 32.
//!
//! `… -- --train SECONDS NAME [key=value …]` trains for about so long (the number of steps is chosen by a few that are
//! timed first) and ranks the test split in both directions; `--train settings` takes epochs from the settings instead. Settings are those of `propagate::PropagateSettings`. With
//! `--ask N,…` it ranks again with these frontiers, by the same weights; with
//! `--save FILE` it keeps the weights, with `--on OTHER` it answers the test split of another data set with the same relations, over that one's facts.
//!
//! The floor is the time in which the device copies as many bytes as a step has to touch at least, at the speed of a
//! large copy: what stays in a cache can go below it.

#![allow(clippy::print_stdout)]

use ruleguider::eval::{Protocol, Reasoner, Side, Split, Unseen, evaluate_split};
use ruleguider::graph::{Dataset, Direction, Graph, Known, Query, ReadOptions, Triple, read};
use ruleguider::progress::{Metric, Progress, Silent};
use ruleguider::propagate::{
    FrontierBound, PropagateSettings, PropagateTask, Propagator, Removal, TrainedPropagator, linked_share,
    train,
};
use ruleguider::tensor::{Device, DeviceChoice, Reach, ReachQuery};
use std::error::Error;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Options {
    names: Vec<String>,
    device: Device,
    steps: usize,
    training: Option<Length>,
    set: Vec<(String, String)>,
    seed: u64,
    on: Option<String>,
    save: Option<PathBuf>,
    /// The frontiers to ask with after training.
    asked: Vec<usize>,
}

/// How long to train.
#[derive(Clone, Copy)]
enum Length {
    Seconds(f64),
    Settings,
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
        let dataset = read(&folder, &ReadOptions::default())?;
        let settings = settings(name, &options.set)?;
        match options.training {
            Some(length) => learn(name, &dataset, settings, length, &options)?,
            None => measure(name, &dataset, settings, &options)?,
        }
    }
    Ok(())
}

fn options() -> Outcome<Options> {
    let (mut names, mut choice, mut threads, mut steps) = (Vec::new(), DeviceChoice::Cpu, 2, 24);
    let (mut training, mut set, mut seed, mut on, mut save) = (None, Vec::new(), 1, None, None);
    let mut asked = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--device" => choice = value()?.parse()?,
            "--threads" => threads = value()?.parse()?,
            "--steps" => steps = value()?.parse()?,
            "--train" => {
                training = Some(match value()?.as_str() {
                    "settings" => Length::Settings,
                    seconds => Length::Seconds(seconds.parse()?),
                });
            }
            "--seed" => seed = value()?.parse()?,
            "--on" => on = Some(value()?),
            "--ask" => asked = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--save" => save = Some(PathBuf::from(value()?)),
            word => match word.split_once('=') {
                Some((key, value)) => set.push((key.to_owned(), value.to_owned())),
                None => names.push(word.to_owned()),
            },
        }
    }
    if names.is_empty() {
        names = ["wn18rr", "fb15k-237"].map(String::from).to_vec();
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    Ok(Options {
        names,
        device: Device::choose(choice, threads)?,
        steps,
        training,
        set,
        seed,
        on,
        save,
        asked,
    })
}

fn data() -> PathBuf {
    std::env::var_os("RULEGUIDER_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
}

/// The settings of the speed table, changed as asked.
fn settings(name: &str, set: &[(String, String)]) -> Outcome<PropagateSettings> {
    let batch = if name == "wn18rr" { 32 } else { 16 };
    let mut fields = serde_json::to_value(PropagateSettings { batch, ..PropagateSettings::default() })?;
    for (key, value) in set {
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.as_str().into());
        let field = fields.get_mut(key).ok_or_else(|| format!("there is no setting `{key}`"))?;
        *field = value;
    }
    Ok(serde_json::from_value(fields)?)
}

/// A training without looks at the validation split; what is hidden from a query is decided by it all the same.
fn steps_alone(
    dataset: &Dataset,
    settings: &PropagateSettings,
    steps: usize,
    device: &Device,
) -> Outcome<(TrainedPropagator, f64)> {
    let share = linked_share(&dataset.graph(), &dataset.known.valid);
    let removal = match settings.removal {
        Removal::Auto if share.is_some_and(|share| share < 0.01) => Removal::Pair,
        Removal::Auto => Removal::Fact,
        other => other,
    };
    let settings =
        PropagateSettings { removal, epochs: 3, epoch_queries: steps * settings.batch, ..settings.clone() };
    let known = Known { valid: Default::default(), ..dataset.known.clone() };
    let size = (dataset.names.entities.len(), dataset.names.relations.len());
    let task = PropagateTask {
        known: &known,
        size,
        settings: &settings,
        seed: 1,
        device,
        folder: None,
        warm: None,
        initial: None,
    };
    let made = train(task, &Silent)?;
    let times = made.summary.history[1..].iter().filter_map(|metric| metric.figures["step_ms"].as_f64());
    let best = times.fold(f64::INFINITY, f64::min);
    Ok((made, best))
}

fn measure(name: &str, dataset: &Dataset, settings: PropagateSettings, options: &Options) -> Outcome<()> {
    let device = &options.device;
    let copy = device.copy_seconds(1 << 28, 8)? / f64::from(1 << 28);
    let (made, step) = steps_alone(dataset, &settings, options.steps, device)?;
    let propagator = made.propagator;
    let memory = device.peak_bytes() as f64 / f64::from(1 << 20);
    println!("\n{name}: {} values learnt, {} queries a step", propagator.parameters(), settings.batch);
    let sides = [Direction::Forward, Direction::Inverse];
    let both = |triple: &Triple| sides.map(|side| Query::of(*triple, side).0);
    let queries: Vec<Query> = dataset.test.iter().flat_map(both).take(256 + 64 * options.steps).collect();
    let work = Work::new(&propagator, &queries[..settings.batch], settings.width)?;
    println!(
        "training: {step:.2} ms a step, {:.2} ms a query, {memory:.0} MiB of tensors; {:.2} GB touched, {:.0} GB/s, {:.2} of the floor {:.2} ms",
        step / settings.batch as f64,
        work.training / 1e9,
        work.training / step / 1e6,
        step / (1e3 * copy * work.training),
        1e3 * copy * work.training,
    );
    println!("  rows by layer: {:?}, edges into them: {:?}", work.rows, work.edges);
    for part in propagator.step_parts(&queries[..settings.batch])? {
        println!("  {:28} {:8.3} ms", part.0, 1e3 * part.1);
    }
    // The first batches ask the system for memory of all sizes that they need; they are not timed.
    let (mut begun, mut asked) = (Instant::now(), 0);
    for (index, batch) in queries.chunks(propagator.batch()).enumerate() {
        if index == 4 {
            (begun, asked) = (Instant::now(), 0);
        }
        propagator.answer(batch)?;
        asked += batch.len();
        if begun.elapsed().as_secs_f64() > 20.0 {
            break;
        }
    }
    let query = 1e3 * begun.elapsed().as_secs_f64() / asked as f64;
    let moved = work.ranking / settings.batch as f64;
    println!(
        "ranking: {query:.3} ms a query, over {asked}; {:.3} GB a query, {:.0} GB/s, {:.2} of the floor {:.3} ms",
        moved / 1e9,
        moved / query / 1e6,
        query / (1e3 * copy * moved),
        1e3 * copy * moved
    );
    Ok(())
}

/// What a batch has to touch.
struct Work {
    rows: Vec<usize>,
    edges: Vec<usize>,
    /// Bytes forward and backward, and forward alone.
    training: f64,
    ranking: f64,
}

impl Work {
    fn new(propagator: &Propagator, queries: &[Query], width: usize) -> Outcome<Work> {
        let layers = propagator.settings().layers;
        let asks: Vec<ReachQuery> =
            queries.iter().map(|query| ReachQuery { start: query.subject.0, without: None }).collect();
        let reach = Reach::new(propagator.edge_index(), &asks, layers)?;
        let rows: Vec<usize> = (0..=layers).map(|layer| reach.rows(layer)).collect();
        let edges: Vec<usize> = (0..=layers).map(|layer| reach.edges(layer)).collect();
        let row = (4 * width) as f64;
        let (mut forward, mut backward) = (0.0, 0.0);
        for layer in 1..=layers {
            let (rows, edges) = (rows[layer] as f64, edges[layer] as f64);
            // An edge: the other's state, its place, kind and number; a row: aggregates, their mix, sum and state.
            forward += edges * (row + 12.0) + rows * row * (4.0 + 4.0 + 3.0 + 3.0 + 3.0);
            // An edge: two factors and two masks of its end; a row: the derivatives of all that, and of a piece twice.
            backward += edges * (2.0 * row + 24.0) + rows * row * (3.0 + 3.0 + 4.0 + 4.0 + 4.0 + 4.0);
        }
        Ok(Work { rows, edges, training: forward + backward, ranking: forward })
    }
}

/// Prints what a training records.
struct Printing;

impl Progress for Printing {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
    fn record(&self, metric: &Metric) {
        let figure =
            |name: &str| metric.figures.get(name).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
        println!(
            "  epoch {} after {:.0} s: loss {:.3}, {:.2} ms a step, validation MRR {:.2}",
            metric.step,
            metric.seconds,
            figure("loss"),
            figure("step_ms"),
            100.0 * figure("valid_mrr")
        );
    }
}

/// The settings with as many steps as take about so long, in five epochs.
fn for_seconds(
    name: &str,
    dataset: &Dataset,
    settings: PropagateSettings,
    seconds: f64,
    device: &Device,
) -> Outcome<PropagateSettings> {
    let (_, step) = steps_alone(dataset, &settings, 12, device)?;
    let looks = 5;
    let steps = (1e3 * seconds / step) as usize;
    let examples = 2 * dataset.known.queries.len();
    let epoch_queries = (steps / looks).max(1) * settings.batch;
    println!(
        "\n{name}: {step:.2} ms a step, so {steps} steps, {:.2} passes",
        (steps * settings.batch) as f64 / examples as f64
    );
    Ok(PropagateSettings { epochs: looks, epoch_queries, validate_every: 1, ..settings })
}

fn learn(
    name: &str,
    dataset: &Dataset,
    settings: PropagateSettings,
    length: Length,
    options: &Options,
) -> Outcome<()> {
    let device = &options.device;
    let settings = match length {
        Length::Seconds(seconds) => for_seconds(name, dataset, settings, seconds, device)?,
        Length::Settings => settings,
    };
    let size = (dataset.names.entities.len(), dataset.names.relations.len());
    // A data set with a graph of its own hands its validation split over to be learnt from: nothing is chosen by it.
    let mut known = dataset.known.for_test();
    if dataset.known.has_own_graph() {
        known.valid = Default::default();
    }
    let task = PropagateTask {
        known: &known,
        size,
        settings: &settings,
        seed: options.seed,
        device,
        folder: None,
        warm: None,
        initial: None,
    };
    let begun = Instant::now();
    let made = train(task, &Printing)?;
    let trained = begun.elapsed().as_secs_f64();
    if let Some(path) = &options.save {
        made.propagator.save(path, &dataset.names)?;
    }
    let other = match &options.on {
        Some(name) => Some(read(&data().join(name), &ReadOptions::default())?),
        None => None,
    };
    let hides_all_links = made.hides_all_links;
    let asked = other.as_ref().unwrap_or(dataset);
    let graph = asked.graph_of(&asked.known.for_test());
    let propagator = match &other {
        Some(other) => {
            // Relations may have other numbers there: the file goes by their names.
            let path = std::env::temp_dir().join(format!("propagator_{}.safetensors", std::process::id()));
            made.propagator.save(&path, &dataset.names)?;
            let there = Propagator::load(&path, &other.names, &graph, device);
            std::fs::remove_file(&path)?;
            there?
        }
        None => made.propagator.on(&graph)?,
    };
    let unseen = if asked.known.has_own_graph() { Unseen::LeaveOut } else { Unseen::Keep };
    let protocol = Protocol { side: Side::Both, unseen, ..Protocol::default() };
    let begun = Instant::now();
    let tail = Protocol { side: Side::Tail, ..protocol };
    let both = evaluate_split(&propagator, asked, Split::Test, &graph, protocol, &Silent)?;
    let ranking = begun.elapsed().as_secs_f64();
    let tail = evaluate_split(&propagator, asked, Split::Test, &graph, tail, &Silent)?;
    println!(
        "TEST {name}: both {:.2} / {:.2} / {:.2} (MRR, H@1, H@10), tail {:.2}; trained {trained:.0} s with looks, ranked {} queries in {ranking:.1} s; hides all links: {}; {:.0} MiB; seed {}; {}",
        100.0 * both.figures.mrr,
        100.0 * both.figures.hits_at_1,
        100.0 * both.figures.hits_at_10,
        100.0 * tail.figures.mrr,
        both.figures.queries,
        hides_all_links,
        device.peak_bytes() as f64 / f64::from(1 << 20),
        options.seed,
        serde_json::to_string(&settings)?
    );
    ask_bounded(propagator, asked, &graph, protocol, &options.asked)
}

/// Ranks the test split by the same weights with other frontiers, and counts what a query takes.
fn ask_bounded(
    mut propagator: Propagator,
    dataset: &Dataset,
    graph: &Graph,
    protocol: Protocol,
    frontiers: &[usize],
) -> Outcome<()> {
    for &most in frontiers {
        propagator = propagator.with_frontier(FrontierBound::Most(most))?;
        let begun = Instant::now();
        let both = evaluate_split(&propagator, dataset, Split::Test, graph, protocol, &Silent)?;
        let ranking = 1e3 * begun.elapsed().as_secs_f64() / both.figures.queries as f64;
        let step = dataset.test.len().div_ceil(100).max(1);
        let sides = [Direction::Forward, Direction::Inverse];
        let queries =
            dataset.test.iter().step_by(step).flat_map(|triple| sides.map(|side| Query::of(*triple, side).0));
        let (mut sums, mut count) = ([0; 2], 0);
        for query in queries {
            let work = propagator.work(query)?.unwrap_or_default();
            sums = [sums[0] + work[0], sums[1] + work[1]];
            count += 1;
        }
        println!(
            "  frontier {most}: both {:.2} / {:.2} / {:.2}; {} messages and {} updates a query, {ranking:.2} ms",
            100.0 * both.figures.mrr,
            100.0 * both.figures.hits_at_1,
            100.0 * both.figures.hits_at_10,
            sums[0] / count,
            sums[1] / count,
        );
    }
    Ok(())
}
