//! Completing the demonstration graph, with interruptions.

use super::*;
use crate::ask::Learn;
use crate::progress::Silent;
use crate::tensor::Device;
use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Someone who stops the work once it has advanced so many times.
struct StopsAfter {
    advances: usize,
    seen: AtomicUsize,
}

impl Progress for StopsAfter {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {
        self.seen.fetch_add(1, Ordering::Relaxed);
    }
    fn end(&self, _summary: &dyn Display) {}
    fn interrupted(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= self.advances
    }
}

const CUT: Cut = Cut { batch: 50, block: 100 };

fn options(top: Option<usize>, shard: &str) -> CompleteOptions {
    let shard = shard.parse().unwrap();
    CompleteOptions { links: Vec::new(), top, min_probability: Some(0.3), shard, workers: 2 }
}

#[test]
fn the_file_is_the_same_however_often_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    let file = |name: &str| folder.path().join(name);
    for top in [None, Some(25)] {
        let wanted = options(top, "1/1");
        let whole = model.complete_in_blocks(&wanted, CUT, &file("whole.tsv"), &Silent).unwrap();
        assert!(whole.queries > 1000 && whole.facts >= 25, "{whole}");
        // Another cut: the same facts in the same order.
        let other = Cut { batch: 70, block: 700 };
        model.complete_in_blocks(&wanted, other, &file("other.tsv"), &Silent).unwrap();
        let out = file("interrupted.tsv");
        let mut sittings = 1;
        loop {
            let stops = StopsAfter { advances: 12, seen: AtomicUsize::new(0) };
            match model.complete_in_blocks(&wanted, CUT, &out, &stops) {
                Ok(_) => break,
                Err(error) => assert!(error.is_interrupted(), "{error}"),
            }
            assert!(!out.exists(), "half a file would pass for a whole one");
            sittings += 1;
            assert!(sittings < 100, "it does not go on");
        }
        assert!(sittings > 2);
        let text = |name: &str| std::fs::read_to_string(file(name)).unwrap();
        assert_eq!(text("interrupted.tsv"), text("whole.tsv"));
        assert_eq!(text("other.tsv"), text("whole.tsv"));
        std::fs::remove_file(&out).unwrap();
    }
}

#[test]
fn shards_divide_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    let lines = |shard: &str, name: &str| {
        let out = folder.path().join(name);
        let done = model.complete_in_blocks(&options(None, shard), CUT, &out, &Silent).unwrap();
        let text = std::fs::read_to_string(out).unwrap();
        (done.queries, text.lines().skip(1).map(str::to_owned).collect::<Vec<String>>())
    };
    let (all, mut whole) = lines("1/1", "whole.tsv");
    let parts = [lines("1/3", "1.tsv"), lines("2/3", "2.tsv"), lines("3/3", "3.tsv")];
    assert_eq!(parts.iter().map(|part| part.0).sum::<u64>(), all);
    assert!(parts.iter().all(|part| !part.1.is_empty()));
    let mut together: Vec<String> = parts.into_iter().flat_map(|part| part.1).collect();
    whole.sort();
    together.sort();
    assert_eq!(together, whole);
    for wrong in ["0/2", "3/2", "1", "a/b", "1/0"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}
