//! Loading ten million facts: seconds, facts a second and peak memory, beside Polars and DuckDB.
//!
//! `benches/load.sh` sets the peers up and runs this; `cargo bench --bench load` alone measures the library.
//! Every measurement is a process of its own, so that its peak memory is its own; the best of several rounds
//! counts, and the contestants take turns in each round. One such process by itself:
//! `cargo bench --bench load -- --child folder DATA` (or `read FILE`, `index FILE`). A run is opened by
//! `cargo bench --bench load -- --open RUN`.

use ruleguider::ask::Model;
use ruleguider::generate;
use ruleguider::graph::{self, Graph, ReadOptions};
use ruleguider::progress::Silent;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// A family with ten million facts in `train`.
const PEOPLE: u64 = 1_033_500;
const SEED: u64 = 1;
const ROUNDS: usize = 3;

type Anything = Box<dyn std::error::Error>;

fn main() -> Result<(), Anything> {
    // Cargo adds `--bench` of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--open", run] => return open(Path::new(run)),
        ["--child", job, path] => return measure(job, Path::new(path)),
        _ => return Err("expected no argument, --child JOB PATH, or --open RUN".into()),
    }
    let people = std::env::var("LOAD_PEOPLE").ok().map_or(Ok(PEOPLE), |people| people.parse())?;
    let data = data_folder();
    let [ordered, shuffled] = prepare(&data, people)?;
    let python = std::env::var_os("LOAD_PEERS_PYTHON").map(PathBuf::from);
    report("in the order of the families, as generated", &ordered, python.as_deref())?;
    report("the same lines in random order", &shuffled, python.as_deref())?;
    report_rdf(&as_rdf(&ordered)?)
}

/// The facts of a file of lines as N-Triples, once, with two literals about every entity: a label and a number.
fn as_rdf(lines: &Path) -> Result<PathBuf, Anything> {
    let path = lines.with_file_name("literals.nt");
    if path.exists() {
        return Ok(path);
    }
    let begun = path.with_extension("part");
    let text = std::fs::read_to_string(lines)?;
    let mut out = BufWriter::new(std::fs::File::create(&begun)?);
    let mut described = HashSet::new();
    let iri = |name: &str| format!("<http://example.org/family/{}>", name.replace(' ', "_"));
    for line in text.lines() {
        let names: Vec<&str> = line.split('\t').collect();
        let [head, relation, tail] = names[..] else { return Err("expected three names a line".into()) };
        writeln!(out, "{} {} {} .", iri(head), iri(relation), iri(tail))?;
        for name in [head, tail] {
            if described.insert(name) {
                let year = 1500 + described.len() % 500;
                writeln!(out, "{} <http://www.w3.org/2000/01/rdf-schema#label> \"{name}\"@en .", iri(name))?;
                writeln!(out, "{} {} \"{year}\"^^<{INTEGER}> .", iri(name), iri("born"))?;
            }
        }
    }
    out.flush()?;
    std::fs::rename(begun, &path)?;
    Ok(path)
}

const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";

/// Reads N-Triples on one thread and on two, and prints the table.
fn report_rdf(path: &Path) -> Result<(), Anything> {
    let triples = BufReader::new(std::fs::File::open(path)?).lines().count() as f64;
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nN-Triples with literals: {triples} triples, best of {ROUNDS}")?;
    writeln!(out, "| | seconds | million triples/s | CPU seconds |\n|---|---|---|---|")?;
    for threads in ["1", "2"] {
        let mut command = ours(path, "read", threads)?;
        let mut best = run(&mut command)?;
        for _ in 1..ROUNDS {
            let again = run(&mut command)?;
            best = if again.seconds < best.seconds { again } else { best };
        }
        let Figures { seconds, cpu_seconds, .. } = best;
        let each = triples / seconds / 1e6;
        writeln!(out, "| ruleguider, {threads} threads | {seconds:.2} | {each:.2} | {cpu_seconds:.2} |")?;
    }
    Ok(())
}

/// `target/bench-data`, wherever cargo was told to put `target`.
fn data_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    target.join("bench-data")
}

/// Generates the file once, and the same lines shuffled.
fn prepare(data: &Path, people: u64) -> Result<[PathBuf; 2], Anything> {
    let folder = data.join(format!("family-{people}"));
    let ordered = folder.join("train.tsv");
    if !ordered.exists() {
        std::fs::create_dir_all(data)?;
        generate::write(people, SEED, &folder, false, &Silent)?;
    }
    let shuffled = folder.join("shuffled.tsv");
    if !shuffled.exists() {
        let text = std::fs::read_to_string(&ordered)?;
        let mut lines: Vec<&str> = text.lines().collect();
        // Any fixed order without locality will do: a linear congruential generator draws the places.
        let mut state = SEED;
        for i in (1..lines.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            lines.swap(i, ((u128::from(state) * (i as u128 + 1)) >> 64) as usize);
        }
        let aside = folder.join("shuffled.partial");
        let mut out = BufWriter::new(std::fs::File::create(&aside)?);
        for line in lines {
            writeln!(out, "{line}")?;
        }
        out.into_inner()?.sync_all()?;
        std::fs::rename(aside, &shuffled)?;
    }
    Ok([ordered, shuffled])
}

/// What one process measured.
#[derive(Clone, Copy)]
struct Figures {
    seconds: f64,
    facts: u64,
    entities: u64,
    name_bytes: u64,
    peak_bytes: u64,
    /// Of all threads; on a busy machine it says more than the clock.
    cpu_seconds: f64,
}

/// Does `job` on `path` in this process and prints the figures: `read` a file as names and ids, `index` it too,
/// or read a whole `folder` of splits, clean and index it.
fn measure(job: &str, path: &Path) -> Result<(), Anything> {
    let began = Instant::now();
    let options = ReadOptions::default();
    let (names, facts, graph) = if job == "folder" {
        let dataset = graph::read(path, &options)?;
        let graph = dataset.graph();
        (
            dataset.names,
            dataset.known.facts.len() + dataset.known.valid.len() + dataset.test.len(),
            Some(graph),
        )
    } else {
        let (names, facts, _) = graph::read_file(path, &options)?;
        let index = || Arc::new(Graph::new(names.entities.len(), names.relations.len(), &facts));
        let graph = (job == "index").then(index);
        (Arc::new(names), facts.len(), graph)
    };
    let seconds = began.elapsed().as_secs_f64();
    let name_bytes: usize = names.entities.iter().chain(names.relations.iter()).map(str::len).sum();
    let peak = peak_bytes()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{seconds} {facts} {} {name_bytes} {peak} {}", names.entities.len(), cpu_seconds()?)?;
    drop(graph);
    Ok(())
}

/// Opens a run, and says how long that takes and the most memory that it has.
fn open(run: &Path) -> Result<(), Anything> {
    let began = Instant::now();
    let model = Model::open(run)?;
    let seconds = began.elapsed().as_secs_f64();
    let (peak, counts) = (peak_bytes()?, model.counts());
    let mut out = std::io::stdout().lock();
    writeln!(out, "{seconds:.3} s, {:.0} MB at its peak: {counts}", peak as f64 / 1e6)?;
    Ok(())
}

/// The CPU time of this process so far, of all its threads, as Linux counts it.
fn cpu_seconds() -> Result<f64, Anything> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // After the name of the program, which may have spaces; hundredths of a second.
    let after = stat.rsplit_once(") ").ok_or("no name in /proc/self/stat")?.1;
    let ticks: Vec<f64> = after.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// The most memory this process has had, as Linux counts it.
fn peak_bytes() -> Result<u64, Anything> {
    Ok(ruleguider::memory::peak_bytes().ok_or("no VmHWM in /proc/self/status")?)
}

/// One row of the table: how to start the process.
struct Contestant {
    name: &'static str,
    command: Command,
}

/// A process that does `job` on `path`.
fn ours(path: &Path, job: &str, threads: &str) -> Result<Command, Anything> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", job]).arg(path).env("RAYON_NUM_THREADS", threads);
    Ok(command)
}

fn contestants(path: &Path, python: Option<&Path>) -> Result<Vec<Contestant>, Anything> {
    let mut all = vec![
        Contestant { name: "ruleguider, 1 thread", command: ours(path, "read", "1")? },
        Contestant { name: "ruleguider, 2 threads", command: ours(path, "read", "2")? },
        Contestant { name: "ruleguider, 2 threads, with all indexes", command: ours(path, "index", "2")? },
    ];
    for (name, script) in [
        ("polars, 2 threads", "benches/peers/load_polars.py"),
        ("duckdb, 2 threads", "benches/peers/load_duckdb.py"),
    ] {
        let Some(python) = python else { continue };
        let mut command = Command::new(python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script)).arg(path);
        command.env("POLARS_MAX_THREADS", "2");
        all.push(Contestant { name, command });
    }
    Ok(all)
}

/// Runs everyone on `path` and prints the table.
fn report(title: &str, path: &Path, python: Option<&Path>) -> Result<(), Anything> {
    let mut contestants = contestants(path, python)?;
    let mut best: Vec<Option<Figures>> = vec![None; contestants.len()];
    for _ in 0..ROUNDS {
        for (contestant, best) in contestants.iter_mut().zip(&mut best) {
            let figures = run(&mut contestant.command).map_err(|e| format!("{}: {e}", contestant.name))?;
            if best.is_none_or(|before| figures.seconds < before.seconds) {
                *best = Some(figures);
            }
        }
    }
    let best: Vec<Figures> = best.into_iter().flatten().collect();
    let ours = best[1];
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{title}: {} facts, {} entities, best of {ROUNDS}", ours.facts, ours.entities)?;
    writeln!(out, "| | seconds | million facts/s | × ours | peak, bytes a fact | without the names |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for (contestant, figures) in contestants.iter().zip(&best) {
        assert_eq!((figures.facts, figures.entities), (ours.facts, ours.entities), "{}", contestant.name);
        let per_fact = |bytes: u64| bytes as f64 / figures.facts as f64;
        writeln!(
            out,
            "| {} | {:.2} | {:.1} | {:.2} | {:.1} | {:.1} |",
            contestant.name,
            figures.seconds,
            figures.facts as f64 / figures.seconds / 1e6,
            figures.seconds / ours.seconds,
            per_fact(figures.peak_bytes),
            per_fact(figures.peak_bytes - ours.name_bytes),
        )?;
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<Figures, Anything> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    let fields: Vec<&str> = text.split_whitespace().collect();
    // The peers count no CPU seconds.
    let (figures, cpu) = fields.split_at(fields.len().min(5));
    let [seconds, facts, entities, name_bytes, peak_bytes] = figures[..] else {
        return Err(format!("expected five figures, found {text}").into());
    };
    Ok(Figures {
        seconds: seconds.parse()?,
        facts: facts.parse()?,
        entities: entities.parse()?,
        name_bytes: name_bytes.parse()?,
        peak_bytes: peak_bytes.parse()?,
        cpu_seconds: cpu.first().map_or(Ok(0.0), |seconds| seconds.parse())?,
    })
}
