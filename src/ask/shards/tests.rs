//! Parts of all kinds over the demonstration graph, against one process.

use super::*;
use crate::ask::{AnswersAmong, HeldOutFacts, Learn};
use crate::progress::{Impatient, Silent};
use crate::reason::PathLimits;
use crate::rule::MiningBudget;
use crate::tensor::Device;
use std::fs;

/// A run that answers by rules, and a folder to work in.
fn model() -> (tempfile::TempDir, Model) {
    let folder = tempfile::tempdir().unwrap();
    let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
    let model = learn.set("system=rules").set("rules.samples=2000").run().unwrap();
    (folder, model)
}

/// The parts that `make` makes, the last first.
fn parts(folder: &Path, count: u64, make: impl Fn(Shard, &Path) -> ShardReport) -> Vec<PathBuf> {
    let one = |index| {
        let out = folder.join(format!("{index}-of-{count}.shard"));
        let made = make(Shard::new(index, count).unwrap(), &out);
        assert!(made.rows.is_some(), "{made}");
        let again = make(Shard::new(index, count).unwrap(), &out);
        assert_eq!(again.rows, None, "a part that is there was made again");
        out
    };
    (1..=count).rev().map(one).collect()
}

#[test]
fn answers_are_those_of_one_process() {
    let (folder, model) = model();
    let folder = folder.path();
    let names = model.names();
    let mut queries: Vec<String> = Vec::new();
    for fact in model.dataset().known.facts.iter().cycle().take(9000) {
        queries.push(format!("{}\t{}", names.entity(fact.head), names.relation(fact.relation)));
    }
    queries[17] = "nobody\tcousin_of".to_owned();
    queries.insert(40, String::new());
    let file = folder.join("queries.tsv");
    fs::write(&file, queries.join("\n")).unwrap();
    let mut whole = String::new();
    let mut input = QueryLines::open(&file).unwrap();
    loop {
        let lines = input.next_block().unwrap();
        if lines.is_empty() {
            break;
        }
        let block = model.answer_lines(&lines, (3, &AnswersAmong::default()), 2, 0, &Silent).unwrap();
        block.lines.iter().for_each(|(_, line)| whole.push_str(line));
    }
    assert_eq!(whole.lines().count(), 9000);
    for count in [1, 2, 3, 7, 16] {
        let make = |shard, out: &Path| {
            model.predict_shard(&file, (3, &AnswersAmong::default()), shard, 2, out, &Silent).unwrap()
        };
        let parts = parts(folder, count, make);
        let merged = merge(&parts, Some(&folder.join("answers.jsonl"))).unwrap();
        assert_eq!(fs::read_to_string(folder.join("answers.jsonl")).unwrap(), whole, "{count} parts");
        assert!(matches!(merged, Merged::Answers { queries: 9000, .. }));
    }
}

#[test]
fn figures_are_those_of_one_process() {
    let (folder, model) = model();
    let split = Split::Test;
    for (relations, side) in [(&[][..], crate::eval::Side::Both), (&[RelationId(1)], crate::eval::Side::Tail)]
    {
        let protocol = Protocol { side, ..Protocol::default() };
        let mut whole = model.evaluated(split, relations, protocol, &Silent).unwrap();
        assert!(whole.calibration.is_some());
        for count in [1, 2, 3, 7, 16] {
            let make = |shard, out: &Path| {
                model.evaluate_shard(split, relations, protocol, shard, out, &Silent).unwrap()
            };
            let parts = parts(folder.path(), count, make);
            let out = folder.path().join("figures.json");
            let Merged::Ranks(merged) = merge(&parts, Some(&out)).unwrap() else { panic!("they are ranks") };
            // Times differ between runs.
            whole.report.seconds = merged.report.seconds;
            let (ours, theirs) = (&mut whole.report.baseline, &merged.report.baseline);
            let (ours, theirs) = (ours.as_mut().unwrap(), theirs.as_ref().unwrap());
            (ours.popularity.seconds, ours.similar.seconds) =
                (theirs.popularity.seconds, theirs.similar.seconds);
            let text = |of: &crate::ask::Evaluated| serde_json::to_string_pretty(of).unwrap() + "\n";
            assert_eq!(fs::read_to_string(out).unwrap(), text(&whole), "{count} parts");
            assert_eq!(merged.to_string(), whole.to_string());
            parts.iter().for_each(|part| fs::remove_file(part).unwrap());
        }
    }
}

#[test]
fn facts_are_those_of_one_process() {
    let (folder, model) = model();
    let folder = folder.path();
    let held_out = HeldOutFacts::Hide;
    let options = CompleteOptions {
        links: Vec::new(),
        top: None,
        min_probability: Some(0.2),
        held_out,
        workers: 2,
        subjects: AnswersAmong::default(),
        objects: AnswersAmong::default(),
        paths: PathLimits::default(),
    };
    model.complete(&options, &folder.join("whole.tsv"), &Silent).unwrap();
    let make = |shard, out: &Path| model.complete_shard(&options, shard, out, &Silent).unwrap();
    let parts = parts(folder, 3, make);
    merge(&parts, Some(&folder.join("merged.tsv"))).unwrap();
    assert_eq!(fs::read(folder.join("merged.tsv")).unwrap(), fs::read(folder.join("whole.tsv")).unwrap());
    // Parts with other settings do not match and are replaced.
    let likelier = CompleteOptions { min_probability: Some(0.5), ..options.clone() };
    let other = model.complete_shard(&likelier, "2/3".parse().unwrap(), &parts[1], &Silent).unwrap();
    assert!(other.rows.is_some());
    let refused = merge(&parts, Some(&folder.join("mixed.tsv"))).unwrap_err().to_string();
    assert!(refused.contains("was made with min_probability = 0.5, but 0.2 in"), "{refused}");
    assert!(!folder.join("mixed.tsv").exists());
    let refused = merge(&parts[1..], Some(&folder.join("mixed.tsv"))).unwrap_err().to_string();
    assert!(refused.contains("0.2") || refused.contains("3/3 is missing"), "{refused}");
    let nowhere = merge(&parts[..1], None).unwrap_err().to_string();
    assert!(nowhere.contains("1/3, 2/3 are missing"), "{nowhere}");
}

#[test]
fn half_a_part_of_mining_is_no_part_and_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = crate::generate::demonstration();
    let out = folder.path().join("1.shard");
    let options = MineOptions { budget: MiningBudget::Samples(500), ..MineOptions::default() };
    let (shard, other) = ("1/2".parse().unwrap(), "2/2".parse().unwrap());
    let stopped = mine_shard(&dataset, &options, shard, &out, &Impatient).unwrap_err();
    assert!(stopped.is_interrupted() && !out.exists());
    let made = mine_shard(&dataset, &options, shard, &out, &Silent).unwrap();
    assert!(made.rows.is_some_and(|rows| rows > 0));
    let whole = fs::read(&out).unwrap();
    // A truncated part is made again; a complete one is kept, even if the user interrupts.
    fs::write(&out, &whole[..whole.len() / 2]).unwrap();
    assert!(mine_shard(&dataset, &options, shard, &out, &Silent).unwrap().rows.is_some());
    assert_eq!(fs::read(&out).unwrap(), whole);
    assert_eq!(mine_shard(&dataset, &options, shard, &out, &Impatient).unwrap().rows, None);
    // Another seed, other data.
    let second = folder.path().join("2.shard");
    let refusal = |dataset: &Dataset, options: &MineOptions| {
        mine_shard(dataset, options, other, &second, &Silent).unwrap();
        merge(&[out.clone(), second.clone()], Some(&folder.path().join("rules.tsv"))).unwrap_err().to_string()
    };
    let seed = refusal(&dataset, &MineOptions { seed: 2, ..options.clone() });
    assert!(seed.contains("2.shard: was made with seed 2, but 1 in"), "{seed}");
    let mut less = dataset.clone();
    less.known = less.known.with_valid_learnt();
    let data = refusal(&less, &options);
    assert!(data.contains("2.shard: was made from data with checksum"), "{data}");
    assert!(!folder.path().join("rules.tsv").exists());
    let name = mine_shard(&dataset, &options, shard, &folder.path().join("rules.tsv"), &Silent).unwrap_err();
    assert!(name.to_string().contains("ends in .shard"), "{name}");
}
