//! What is fuzzed: one function a target, from bytes to nothing. A panic is a finding.
//!
//! The fuzz targets and the ordinary test `tests/fuzz_corpus.rs` both include this file. Besides not
//! panicking, every target checks what must hold of any input: an error names the file and fits on a line; what
//! was read can be written and reads back as the same facts.

use ruleguider::graph::{GraphError, Names, ReadOptions, Triple, read_file, write_file};
use ruleguider::rule::{RuleFile, write_lines};
use std::io::Write;
use std::path::Path;

/// A target: its name and what it does with any bytes.
type Target = (&'static str, fn(&[u8]));

/// Every target; each has a folder in `fuzz/corpus` and a file in `fuzz/fuzz_targets`.
pub const TARGETS: [Target; 4] = [("triples", triples), ("rdf", rdf), ("parquet", parquet), ("rules", rules)];

/// Runs the target called `name` on `data`.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS.iter().find(|target| target.0 == name).expect("a target of that name");
    target(data);
}

/// Files of tabs and commas. The first byte chooses the ending; `packed` means that the rest is packed
/// properly, otherwise the rest is the file as it is.
fn triples(data: &[u8]) {
    const ENDINGS: [(&str, bool); 10] = [
        ("tsv", false),
        ("csv", false),
        ("txt.gz", false),
        ("tsv.zst", false),
        ("csv.gz", false),
        ("csv.zst", false),
        ("txt.gz", true),
        ("tsv.zst", true),
        ("csv.gz", true),
        ("csv.zst", true),
    ];
    read_and_write_back(data, &ENDINGS, "csv");
}

/// The RDF formats; the first byte as for [`triples`].
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

/// Parquet; the first byte as for [`triples`].
fn parquet(data: &[u8]) {
    const ENDINGS: [(&str, bool); 3] = [("parquet", false), ("parquet.gz", false), ("parquet.zst", true)];
    read_and_write_back(data, &ENDINGS, "parquet");
}

/// Rule files over names that hold everything the notation uses itself.
fn rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let names = Names {
        entities: ["a", "b", "c(d,e)", "f, g(X,Y)", "h) <= i(", "é,", "<= ", "A", "\"A\"", "\"B\""]
            .into_iter()
            .collect(),
        relations: ["r", "s", "/film/film.x", "t(u", "v, w(X", "x <= y"].into_iter().collect(),
        ..Names::default()
    };
    match RuleFile::parse(&text, Path::new("rules.tsv"), &names) {
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
            write_lines(&mut written, &file.rules, &names).expect("writing into memory");
            let written = String::from_utf8(written).expect("names are text");
            let back =
                RuleFile::parse(&written, Path::new("rules.tsv"), &names).expect("what was written reads");
            assert_eq!(file.rules, back.rules, "written and read back");
        }
    }
}

fn read_and_write_back(data: &[u8], endings: &[(&str, bool)], write_as: &str) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let (ending, packed) = endings[usize::from(choice) % endings.len()];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(format!("input.{ending}"));
    let content = if packed { pack(ending, bytes) } else { bytes.to_vec() };
    std::fs::write(&path, content).expect("a temporary file");
    match read_file(&path, &ReadOptions::default()) {
        Err(error) => check_message(&path, &error),
        Ok((names, facts, _)) => {
            let read = named(&names, &facts);
            let again = read_file(&path, &ReadOptions::default()).expect("what was read once reads again");
            assert_eq!(read, named(&again.0, &again.1), "read twice");
            let back = folder.path().join(format!("back.{write_as}"));
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
