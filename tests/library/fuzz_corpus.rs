//! The fuzz targets over their committed corpus and some thousands of seeded mutations of it, on stable Rust.
//!
//! A short stand-in for the fuzzer that every run of the tests includes; `fuzz/README.md` tells how to run the
//! real one and how to add to the corpus.

#[path = "../../fuzz/targets.rs"]
mod targets;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;
use std::path::Path;

/// Which mutations each target sees: some thousands in every run of the tests, `FUZZ_MUTATIONS=from..to` where more are
/// wanted and there is no C++ compiler for the real fuzzer.
fn mutations() -> Range<u64> {
    let asked = std::env::var("FUZZ_MUTATIONS").ok();
    let numbers = asked.as_deref().and_then(|asked| asked.split_once(".."));
    numbers.map_or(0..1500, |(from, to)| from.parse().expect("a number")..to.parse().expect("a number"))
}

/// Bytes that mean something in one of the formats.
const TELLING: &[u8] = b"\t\n\r,\"'<>@#._:;()[]{}\\ \0\x80\xef\xff";

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a corpus file").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a corpus file")).collect()
}

fn below(random: &mut ChaCha8Rng, bound: usize) -> usize {
    ((u64::from(random.next_u32()) * bound as u64) >> 32) as usize
}

/// One to four small changes: a byte changed, put in or taken out, a piece doubled, cut off, or taken from another.
fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut ChaCha8Rng) {
    for _ in 0..=below(random, 4) {
        let at = below(random, input.len() + 1);
        let until = (at + 1 + below(random, 16)).min(input.len());
        match below(random, 8) {
            0 if at < input.len() => input[at] ^= 1 << below(random, 8),
            1 if at < input.len() => input[at] = TELLING[below(random, TELLING.len())],
            2 => input.insert(at, TELLING[below(random, TELLING.len())]),
            3 if at < until => drop(input.drain(at..until)),
            4 if at < until => {
                let piece = input[at..until].to_vec();
                input.splice(at..at, piece);
            }
            5 => input.truncate(at),
            6 if !input.is_empty() => input[0] = random.next_u32() as u8,
            _ => {
                let from = below(random, other.len() + 1);
                let to = (from + below(random, 32)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
}

fn run_over_corpus(target: &str) {
    let corpus = corpus(target);
    assert!(corpus.len() >= 5, "the corpus of {target} is missing");
    for input in &corpus {
        targets::run(target, input);
    }
    for mutation in mutations() {
        let mut random = ChaCha8Rng::seed_from_u64(mutation);
        let mut input = corpus[below(&mut random, corpus.len())].clone();
        let other = &corpus[below(&mut random, corpus.len())];
        mutate(&mut input, other, &mut random);
        let tried = std::panic::catch_unwind(|| targets::run(target, &input));
        assert!(tried.is_ok(), "{target}, mutation {mutation}: {:?}", String::from_utf8_lossy(&input));
    }
}

#[test]
fn tabs() {
    run_over_corpus("tabs");
}

#[test]
fn commas() {
    run_over_corpus("commas");
}

#[test]
fn rdf() {
    run_over_corpus("rdf");
}

#[test]
fn parquet() {
    run_over_corpus("parquet");
}

#[test]
fn folders() {
    run_over_corpus("folders");
}

#[test]
fn rules() {
    run_over_corpus("rules");
}

#[test]
fn weights() {
    run_over_corpus("weights");
}

#[test]
fn manifest() {
    run_over_corpus("manifest");
}

#[test]
fn config() {
    run_over_corpus("config");
}

#[test]
fn queries() {
    run_over_corpus("queries");
}

#[test]
fn sparql() {
    run_over_corpus("sparql");
}

#[test]
fn parts() {
    run_over_corpus("parts");
}

#[test]
fn every_target_has_a_corpus_and_a_fuzz_target() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).expect("fuzz/Cargo.toml");
    for (name, _) in targets::TARGETS {
        assert!(!corpus(name).is_empty());
        assert!(fuzz.join(format!("fuzz_targets/{name}.rs")).exists());
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in fuzz/Cargo.toml");
    }
}
