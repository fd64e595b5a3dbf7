//! What is fuzzed: one function a target, from bytes to nothing. A panic is a finding.
//!
//! The fuzz targets and the ordinary test `tests/library/fuzz_corpus.rs` both include this file. Besides not
//! panicking, every target checks what must hold of any input: an error names the file and fits on a line; what
//! was read can be written and reads back as the same facts.

use ruleguider::ask::{NameIndex, merge};
use ruleguider::config::{Config, Layer};
use ruleguider::embed::{Embedding, ModelKind};
use ruleguider::graph::{
    DataFile, Dataset, EntityId, Graph, GraphError, Known, Names, ReadOptions, SplitShares, Triple, read,
    read_file, write_file,
};
use ruleguider::rule::{MineOptions, RuleFile, RuleShardSettings, write_lines};
use ruleguider::run::{Manifest, RunDirectory, Stages};
use ruleguider::shard::{Header, ShardKind, write_part};
use ruleguider::tensor::{Archive, Device};
use ruleguider::walk::Walker;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// A target: its name and what it does with any bytes.
type Target = (&'static str, fn(&[u8]));

/// Every target; each has a folder in `fuzz/corpus` and a file in `fuzz/fuzz_targets`.
pub const TARGETS: [Target; 12] = [
    ("tabs", tabs),
    ("commas", commas),
    ("rdf", rdf),
    ("parquet", parquet),
    ("folders", folders),
    ("sparql", sparql),
    ("rules", rules),
    ("weights", weights),
    ("manifest", manifest),
    ("config", config),
    ("queries", queries),
    ("parts", parts),
];

/// Runs the target called `name` on `data`.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS.iter().find(|target| target.0 == name).expect("a target of that name");
    target(data);
}

/// The same for the fuzzer, which takes every panic for a finding: those that the library catches are none.
/// All work is done on the thread that asks: handing it to another takes longer than most of it.
#[allow(dead_code)]
pub fn fuzz(name: &str, data: &[u8]) {
    static BEGIN: std::sync::Once = std::sync::Once::new();
    BEGIN.call_once(|| {
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        alone.build_global().expect("nobody has made the threads yet");
        let finding = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !ruleguider::graph::panic_is_caught() {
                finding(panic);
            }
        }));
    });
    run(name, data);
}

/// Files of tabs. The first byte chooses the ending; `packed` means that the rest is packed properly, otherwise the rest is
/// the file as it is.
fn tabs(data: &[u8]) {
    const ENDINGS: [(&str, bool); 7] = [
        ("tsv", false),
        ("txt.gz", false),
        ("tsv.zst", false),
        ("txt.gz", true),
        ("tsv.zst", true),
        ("tsv.bz2", false),
        ("sif", false),
    ];
    read_and_write_back(data, &ENDINGS, "csv");
}

/// Files of commas; the first byte as for [`tabs`].
fn commas(data: &[u8]) {
    const ENDINGS: [(&str, bool); 5] =
        [("csv", false), ("csv.gz", false), ("csv.zst", false), ("csv.gz", true), ("csv.zst", true)];
    read_and_write_back(data, &ENDINGS, "csv");
}

/// The RDF formats; the first byte as for [`tabs`].
fn rdf(data: &[u8]) {
    const ENDINGS: [(&str, bool); 8] = [
        ("nt", false),
        ("ttl", false),
        ("nq", false),
        ("trig", false),
        ("rdf", false),
        ("n3", false),
        ("ttl.gz", false),
        ("nt.zst", true),
    ];
    read_and_write_back(data, &ENDINGS, "nt");
}

/// Parquet; the first byte as for [`tabs`].
fn parquet(data: &[u8]) {
    const ENDINGS: [(&str, bool); 3] = [("parquet", false), ("parquet.gz", false), ("parquet.zst", true)];
    read_and_write_back(data, &ENDINGS, "parquet");
}

/// Answers of SPARQL endpoints: HTTP with a page of statements or rows.
fn sparql(data: &[u8]) {
    if let Err(said) = ruleguider::graph::sparql::read_answer(data) {
        assert!(!said.is_empty(), "an error says why");
    }
}

/// Folders: tables of nodes and edges as KGX, Neo4j and PrimeKG have them, and splits with types, schemas, labels and
/// negatives. Up to the first byte 0x1e there is a choice of columns, or nothing; then, separated by that byte, files,
/// each with its name on a line of its own.
fn folders(data: &[u8]) {
    const FILES: [&str; 21] = [
        "nodes.tsv",
        "edges.tsv",
        "nodes.csv",
        "edges.csv",
        "relationships.csv",
        "kg.csv",
        "train.tsv",
        "valid.tsv",
        "test.tsv",
        "graph.tsv",
        "negatives.tsv",
        "test_negatives.csv",
        "types.tsv",
        "schema.tsv",
        "entity_labels.tsv",
        "relation_labels.tsv",
        "relation_phrases.tsv",
        "splits.sha256",
        "numeric_triples.tsv",
        "entity_to_id.tsv",
        "relation_to_id.tsv",
    ];
    let folder = FOLDER.with(|folder| folder.path().join("set"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("a temporary folder");
    let mut pieces = data.split(|&byte| byte == 0x1e);
    let columns = pieces.next().and_then(|first| std::str::from_utf8(first).ok()?.parse().ok());
    for piece in pieces {
        let end = piece.iter().position(|&byte| byte == b'\n').unwrap_or(piece.len());
        if let Some(name) = FILES.iter().find(|name| name.as_bytes() == &piece[..end]) {
            std::fs::write(folder.join(name), &piece[(end + 1).min(piece.len())..])
                .expect("a temporary file");
        }
    }
    let options =
        ReadOptions { columns, incomplete: true, shares: SplitShares::WHOLE, ..ReadOptions::default() };
    match read(&folder, &options) {
        Err(error) => {
            let printed = error.to_string();
            assert!(printed.starts_with(&folder.display().to_string()), "no place in {printed}");
            assert!(!printed.contains('\n'), "several lines: {printed}");
        }
        Ok(dataset) => {
            let again = read(&folder, &options).expect("what was read once reads again");
            let facts = |dataset: &Dataset| named(&dataset.names, &dataset.known.facts);
            assert_eq!(facts(&dataset), facts(&again), "read twice");
            let file = folder.join("back.rg");
            DataFile::write(&file, &dataset, None).expect("a temporary file");
            let back = DataFile::open(&file).expect("what was written reads").dataset;
            assert_eq!(facts(&dataset), facts(&back), "written and read back");
            assert_eq!(dataset.known.negatives, back.known.negatives);
            assert!(dataset.names.types.iter().eq(back.names.types.iter()));
        }
    }
}

/// Rule files over names that hold everything the notation uses itself.
fn rules(data: &[u8]) {
    static NAMES: LazyLock<Names> = LazyLock::new(|| {
        let entities = [
            "a",
            "b",
            "c(d,e)",
            "f, g(X,Y)",
            "h) <= i(",
            "é,",
            "<= ",
            "A",
            "\"A\"",
            "\"B\"",
            "j\tk",
            "j\\tk",
        ];
        let relations = ["r", "s", "/film/film.x", "t(u", "v, w(X", "x <= y", "z\nz"];
        named_so(&entities, &relations)
    });
    let (text, names) = (String::from_utf8_lossy(data), &*NAMES);
    match RuleFile::parse(&text, Path::new("rules.tsv"), names) {
        Err(error) => {
            let message = error.to_string();
            let mut numbers = message.strip_prefix("rules.tsv:").expect("the file").splitn(3, ':');
            let mut number =
                || numbers.next().and_then(|n| n.parse::<usize>().ok()).expect("line and column");
            let (line, column) = (number(), number());
            let length = text.lines().nth(line - 1).expect("a line of the text").chars().count();
            assert!((1..=length + 1).contains(&column), "{message}");
        }
        Ok(file) => {
            let mut written = Vec::new();
            write_lines(&mut written, &file.rules, names).expect("writing into memory");
            let written = String::from_utf8(written).expect("names are text");
            let back =
                RuleFile::parse(&written, Path::new("rules.tsv"), names).expect("what was written reads");
            assert_eq!(file.rules, back.rules, "written and read back");
        }
    }
}

/// Files of weights, as an archive, as an embedding model or as a walker. A file of our own that was changed is refused
/// for its checksum; files made elsewhere have none.
fn weights(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let path = put("weights.safetensors", bytes);
    let printed = match choice % 3 {
        0 => Archive::read(&path).map(|archive| check_archive(&archive)).err().map(|error| error.to_string()),
        1 => {
            let names = named_so(&["a", "b", "c"], &["r"]);
            let loaded = Embedding::load(&path, &names, ModelKind::DistMult, device());
            loaded.err().map(|error| error.to_string())
        }
        _ => {
            let facts: Vec<Triple> = (0..4).map(|i| Triple::new(i, 0, (i + 1) % 4)).collect();
            let graph = Arc::new(Graph::new(4, 1, &facts));
            let known = Known {
                facts: facts.clone().into(),
                queries: facts.into(),
                valid: [].into(),
                ..Known::default()
            };
            Walker::read(&path, &graph, &known, device()).err().map(|error| error.to_string())
        }
    };
    assert!(printed.is_none_or(|printed| !printed.is_empty()));
}

fn device() -> &'static Device {
    static DEVICE: LazyLock<Device> = LazyLock::new(|| Device::cpu(1).expect("a processor"));
    &DEVICE
}

fn named_so(entities: &[&str], relations: &[&str]) -> Names {
    Names {
        entities: entities.iter().copied().collect(),
        relations: relations.iter().copied().collect(),
        ..Names::default()
    }
}

/// What was read can be written, and reads back as the same.
fn check_archive(archive: &Archive) {
    let path = FOLDER.with(|folder| folder.path().join("back.safetensors"));
    archive.write(&path).expect("what was read can be written");
    let back = Archive::read(&path).expect("what was written reads");
    for name in archive.names() {
        assert_eq!(archive.shape(name), back.shape(name));
    }
    assert!(archive.names().eq(back.names()));
}

/// `run.json`, or `stages.json`, by the first byte.
fn manifest(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let (manifest, stages) = if choice % 2 == 0 { (bytes, &b"{}"[..]) } else { (&b"{}"[..], bytes) };
    let folder = put("run.json", manifest).parent().expect("a folder").to_owned();
    put("stages.json", stages);
    let directory = RunDirectory::look_at(&folder).expect("run.json is there");
    match Manifest::read(&directory) {
        Err(error) => assert!(error.to_string().starts_with(&folder.display().to_string()), "{error}"),
        Ok(manifest) => {
            manifest.write(&directory).expect("it can be written");
            assert_eq!(Manifest::read(&directory).expect("what was written reads"), manifest);
        }
    }
    if let Ok(stages) = Stages::of(&directory) {
        stages.records().keys().for_each(|stage| drop(stages.expect_whole(stage)));
    }
}

/// Settings, as a file or as `--set key=value`, by the first byte.
fn config(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    let config = match choice % 2 {
        0 => Config::from_toml(&text, "config.toml"),
        _ => Layer::from_pairs(text.lines())
            .map_err(Into::into)
            .and_then(|layer| Config::default().with(&layer)),
    };
    match config {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(config) => {
            let written = config.to_toml();
            let back = Config::from_toml(&written, "config.toml").expect("what was written reads");
            assert_eq!(back.to_toml(), written);
        }
    }
}

/// Lines of a file of queries.
fn queries(data: &[u8]) {
    const ENTITIES: [&str; 7] = ["ada", "ben", "Ben", "p1", "~x", "ü", "tab\ted"];
    static INDEX: LazyLock<NameIndex> = LazyLock::new(|| {
        let relations = ["parent_of", "~parent_of", "/film/genre", "/music/genre", "_of^-1", "R⁻¹"];
        let mut names = named_so(&ENTITIES, &relations);
        for (id, label) in [(0, "Ada"), (1, "Same"), (2, "same"), (3, "İ")] {
            names.labels.insert(EntityId(id), label.to_owned());
        }
        NameIndex::new(&Arc::new(names))
    });
    let index = &*INDEX;
    for line in data.split(|&byte| byte == b'\n') {
        match index.query(line) {
            Ok(query) => assert!(query.subject.index() < ENTITIES.len()),
            Err(printed) => assert!(!printed.is_empty() && printed.len() < 4000, "{printed}"),
        }
    }
}

/// Parts of a work, to be merged, and data files. The first byte chooses: a whole file as it is, or the rows of
/// a part of some kind, which get a header and a checksum that fit, because files with a wrong one are refused at once.
fn parts(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let path = match choice % 6 {
        0 => sealed(ShardKind::Rules, bytes),
        1 => sealed(ShardKind::Answers, bytes),
        2 => sealed(ShardKind::Ranks, bytes),
        3 => sealed(ShardKind::Facts, bytes),
        4 => put("1.shard", bytes),
        _ => {
            let printed = DataFile::open(&put("data.rg", bytes)).err().expect("a checksum").to_string();
            assert!(printed.contains("data.rg"), "{printed}");
            return;
        }
    };
    let out = path.with_file_name("merged.tsv");
    if let Err(error) = merge(std::slice::from_ref(&path), Some(&out)) {
        let printed = error.to_string();
        assert!(!printed.is_empty() && !printed.contains('\n'), "{printed}");
    }
}

/// A part of this kind with the lines of `bytes` that are JSON for rows.
fn sealed(kind: ShardKind, bytes: &[u8]) -> PathBuf {
    let settings = match kind {
        ShardKind::Rules => {
            let relations = ["r", "s"].map(str::to_owned).to_vec();
            json!(RuleShardSettings { options: MineOptions::default(), relations })
        }
        ShardKind::Answers | ShardKind::Scores => json!({}),
        ShardKind::Ranks => json!({
            "about": { "on": null, "only": [], "seed": 1, "split": "test", "version": "0" },
            "labels": [],
            "no_probability": null,
            "protocol": { "all": false, "side": "both", "ties": "realistic", "unseen": "keep" },
            "calibrated": true,
            "relations": ["r", "s"],
        }),
        ShardKind::Facts => json!({ "links": [3], "queries": 1, "top": 2, "beam": 1 }),
    };
    let header = Header::new(kind, "1/1".parse().expect("a part"), 1, "sum".to_owned(), &settings);
    let path = FOLDER.with(|folder| folder.path().join("1.shard"));
    let rows =
        bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    write_part(&path, &header, |out| rows.into_iter().try_for_each(|row| out.row(&row)))
        .expect("a temporary file");
    path
}

thread_local! {
    /// Where files are put: one folder a thread, for its whole life. In memory, if `TMPDIR` is.
    static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a temporary folder");
}

/// Puts a file called `name` there.
fn put(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.with(|folder| folder.path().join(name));
    std::fs::write(&path, bytes).expect("a temporary file");
    path
}

fn read_and_write_back(data: &[u8], endings: &[(&str, bool)], write_as: &str) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let (ending, packed) = endings[usize::from(choice) % endings.len()];
    let path = match packed {
        true => put(&format!("input.{ending}"), &pack(ending, bytes)),
        false => put(&format!("input.{ending}"), bytes),
    };
    match read_file(&path, &ReadOptions::default()) {
        Err(error) => check_message(&path, &error),
        Ok((names, facts, _)) => {
            let read = named(&names, &facts);
            let again = read_file(&path, &ReadOptions::default()).expect("what was read once reads again");
            assert_eq!(read, named(&again.0, &again.1), "read twice");
            let back = FOLDER.with(|folder| folder.path().join(format!("back.{write_as}")));
            check_back(&back, &names, &facts, &read);
        }
    }
}

fn pack(ending: &str, bytes: &[u8]) -> Vec<u8> {
    if ending.ends_with("zst") {
        return zstd::encode_all(bytes, 1).expect("packing into memory");
    }
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).expect("packing into memory");
    packer.finish().expect("packing into memory")
}

fn check_message(path: &Path, error: &GraphError) {
    let message = error.to_string();
    let name = path.display().to_string();
    let after = message.strip_prefix(&name).unwrap_or_else(|| panic!("no file in {message}"));
    let line =
        after.strip_prefix(':').and_then(|rest| rest.split(':').next()).and_then(|n| n.parse::<u64>().ok());
    assert!(line.is_some_and(|line| line > 0) || after.starts_with(": "), "no line in {message}");
    assert!(!message.contains('\n'), "several lines: {message}");
}

fn check_back(back: &Path, names: &Names, facts: &[Triple], read: &[[String; 3]]) {
    write_file(back, names, facts).expect("this format can hold every name");
    let (names, facts, _) = read_file(back, &ReadOptions::default()).expect("what was written reads");
    assert_eq!(read, named(&names, &facts), "written and read back");
}

fn named(names: &Names, facts: &[Triple]) -> Vec<[String; 3]> {
    let words = |t: &Triple| [names.entity(t.head), names.relation(t.relation), names.entity(t.tail)];
    facts.iter().map(|triple| words(triple).map(str::to_owned)).collect()
}
