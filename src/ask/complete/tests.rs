//! Completing the demonstration graph, with interruptions.

use super::*;
use crate::ask::Learn;
use crate::tensor::Device;
use std::fmt::Display;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Interrupts the work once it has advanced a number of times.
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

fn options(top: Option<usize>) -> CompleteOptions {
    CompleteOptions {
        links: Vec::new(),
        top,
        min_probability: Some(0.1),
        held_out: HeldOutFacts::Show,
        subjects: AnswersAmong::default(),
        objects: AnswersAmong::default(),
        paths: PathLimits::default(),
        workers: 2,
    }
}

#[test]
fn the_file_is_the_same_however_often_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    let file = |name: &str| folder.path().join(name);
    for top in [None, Some(25)] {
        let wanted = options(top);
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
        let text = |name: &str| fs::read_to_string(file(name)).unwrap();
        assert_eq!(text("interrupted.tsv"), text("whole.tsv"));
        assert_eq!(text("other.tsv"), text("whole.tsv"));
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn blocks_that_were_damaged_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    let file = |name: &str| folder.path().join(name);
    let wanted = options(None);
    model.complete_in_blocks(&wanted, CUT, &file("whole.jsonl"), &Silent).unwrap();
    let whole = fs::read_to_string(file("whole.jsonl")).unwrap();
    let damages: [fn(&str) -> String; 3] =
        [|_| String::new(), |text| text[..text.len() / 2].to_owned(), |text| text.replace("0.", "0.0")];
    for damage in damages {
        let stops = StopsAfter { advances: 6, seen: AtomicUsize::new(0) };
        assert!(
            model.complete_in_blocks(&wanted, CUT, &file("c.jsonl"), &stops).unwrap_err().is_interrupted()
        );
        let mut damaged = 0;
        for entry in fs::read_dir(file("c.jsonl.blocks")).unwrap().map(Result::unwrap) {
            if entry.file_name().to_string_lossy().starts_with("block-") {
                let text = fs::read_to_string(entry.path()).unwrap();
                fs::write(entry.path(), damage(&text)).unwrap();
                damaged += 1;
            }
        }
        assert!(damaged > 1);
        model.complete_in_blocks(&wanted, CUT, &file("c.jsonl"), &Silent).unwrap();
        assert!(fs::read_to_string(file("c.jsonl")).unwrap() == whole);
    }
}

#[test]
fn one_process_completes_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    let out = folder.path().join("c.tsv");
    let _other = claim_file(&out).unwrap().unwrap();
    let refused = model.complete_in_blocks(&options(Some(5)), CUT, &out, &Silent).unwrap_err().to_string();
    assert!(refused.ends_with("c.tsv: another process is completing into this file"), "{refused}");
}

#[test]
fn parts_make_the_file_that_one_process_writes() {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    let file = |name: &str| folder.path().join(name);
    for (top, counts) in [(None, &[1, 2, 3, 7, 16][..]), (Some(25), &[3])] {
        let options = options(top);
        for ending in ["tsv", "jsonl"] {
            model.complete_in_blocks(&options, CUT, &file(&format!("whole.{ending}")), &Silent).unwrap();
        }
        for &count in counts {
            let parts: Vec<PathBuf> = (1..=count)
                .rev()
                .map(|index| {
                    let (shard, out) = (Shard::new(index, count).unwrap(), file(&format!("{index}.shard")));
                    // With smaller blocks than usual, so that every part has some.
                    let header = model.facts_header(&options, shard).unwrap();
                    let work = Work { options: &options, cut: CUT, shard };
                    let rows = model.complete_part_in_blocks(work, &header, &out, &Silent).unwrap();
                    assert!(rows > 0 && crate::shard::is_complete(&out, &header), "{shard}");
                    out
                })
                .collect();
            for ending in ["tsv", "jsonl"] {
                crate::ask::merge(&parts, Some(&file(&format!("merged.{ending}")))).unwrap();
                let text = |name: &str| fs::read_to_string(file(&format!("{name}.{ending}"))).unwrap();
                assert_eq!(text("merged"), text("whole"), "{count} parts, {top:?}");
            }
        }
    }
}

/// A watch that says from the first moment that time is up, or never.
struct Watch(bool);

impl Progress for Watch {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}
    fn time_is_up(&self) -> bool {
        self.0
    }
}

#[test]
fn a_list_that_ran_out_of_time_says_so_and_is_completed_by_asking_again() {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    let [part, whole] =
        [true, false].map(|is_up| model.missing_facts(&options(None), &Watch(is_up)).unwrap());
    assert!(0 < part.asked && part.asked < part.subjects, "{} of {}", part.asked, part.subjects);
    assert_eq!((whole.asked, part.subjects), (whole.subjects, whole.subjects));
    assert!(!part.facts.is_empty() && part.facts.len() < whole.facts.len());
    assert!(part.facts.iter().all(|fact| whole.facts.contains(fact)));
}

#[test]
fn facts_about_some_entities_are_those_of_all_about_them() {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    let out = folder.path().join("facts.tsv");
    let complete = |wanted: &CompleteOptions| {
        let made = model.complete_in_blocks(wanted, CUT, &out, &Silent).unwrap();
        let text = fs::read_to_string(&out).unwrap();
        (made.queries, text.lines().map(str::to_owned).collect::<Vec<String>>())
    };
    let wanted = CompleteOptions { min_probability: None, ..options(None) };
    let (queries, all) = complete(&wanted);
    let (header, rows) = all.split_first().unwrap();
    let column = |row: &str, at: usize| row.split('\t').nth(at).unwrap().to_owned();
    // The entities of every other fact, at either end.
    let some =
        |at: usize| rows.iter().step_by(2).take(40).map(|row| column(row, at)).collect::<Vec<String>>();
    let [heads, tails] = [some(0), some(2)];
    let among = |names: &[String]| {
        let file = folder.path().join("wanted.txt");
        fs::write(&file, names.join("\n")).unwrap();
        model.answers_among(file.to_str(), None).unwrap()
    };
    let narrower = CompleteOptions { subjects: among(&heads), objects: among(&tails), ..wanted.clone() };
    let (fewer, found) = complete(&narrower);
    let is_wanted = |row: &&String| heads.contains(&column(row, 0)) && tails.contains(&column(row, 2));
    let of_all: Vec<String> = rows.iter().filter(is_wanted).cloned().collect();
    assert_eq!(found[0], *header);
    assert!(!of_all.is_empty() && fewer < queries, "{fewer} of {queries}");
    // A query lists its best answers, and of fewer entities more are among them.
    assert!(of_all.iter().all(|row| found.contains(row)));
    assert!(found[1..].iter().all(|row| is_wanted(&row)));
}
