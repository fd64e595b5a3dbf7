//! Work in parts, as a user does it: `--shard` and `merge`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::tool::Tool;
use serde_json::Value;
use std::path::Path;

/// The parts that `verb` makes, and their names, the last first.
fn parts(tool: &Tool, verb: &[&str], name: &str, count: usize) -> Vec<String> {
    let one = |index: usize| {
        let (shard, out) = (format!("{index}/{count}"), format!("{name}-{index}-{count}.shard.zst"));
        tool.done(&[verb, &["--quiet", "--shard", &shard, "--out", &out]].concat());
        out
    };
    (1..=count).rev().map(one).collect()
}

/// The same by two processes, the first of which makes all but the last part.
fn parts_by_two(tool: &Tool, verb: &[&str], name: &str, count: usize) -> Vec<String> {
    let out = format!("{name}-{{}}-of-{count}.shard");
    for shard in [format!("1-{}/{count}", count - 1), format!("{count}/{count}")] {
        tool.done(&[verb, &["--quiet", "--shard", &shard, "--out", &out]].concat());
    }
    (1..=count).map(|index| out.replace("{}", &index.to_string())).collect()
}

fn merge(tool: &Tool, parts: &[String], more: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    tool.done(&[&["merge"], &parts[..], more].concat())
}

/// The figures of an evaluation, without how long it took.
fn without_seconds(text: &str) -> String {
    let mut figures: Value = serde_json::from_str(text).unwrap();
    assert!(figures.as_object_mut().unwrap().remove("seconds").is_some());
    for baseline in figures["baseline"].as_object_mut().unwrap().values_mut() {
        assert!(baseline.as_object_mut().unwrap().remove("seconds").is_some());
    }
    figures.to_string()
}

fn same(tool: &Tool, one: &str, other: &str) -> bool {
    std::fs::read(tool.path(one)).unwrap() == std::fs::read(tool.path(other)).unwrap()
}

#[test]
fn rules_mined_in_parts_are_those_of_one_process() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "80", "--out", "family", "--quiet"]);
    for (budget, types) in [(&["--samples", "2000"][..], "cyclic,acyclic,zero"), (&["--saturate"], "cyclic")]
    {
        let verb = [&["mine", "family", "--types", types][..], budget].concat();
        tool.done(&[&verb[..], &["--out", "whole.tsv.gz", "--quiet"]].concat());
        for count in [1, 3] {
            let parts = parts(&tool, &verb, "rules", count);
            let message = merge(&tool, &parts, &["--out", "merged.tsv.gz"]);
            assert!(message.contains("rules: ") && message.contains("merged.tsv.gz"), "{message}");
            assert!(same(&tool, "whole.tsv.gz", "merged.tsv.gz"), "{budget:?}, {count} parts");
            parts.iter().for_each(|part| std::fs::remove_file(tool.path(part)).unwrap());
        }
        let several = parts_by_two(&tool, &verb, "several", 4);
        merge(&tool, &several, &["--out", "merged.tsv.gz"]);
        assert!(same(&tool, "whole.tsv.gz", "merged.tsv.gz"), "{budget:?}");
        several.iter().for_each(|part| std::fs::remove_file(tool.path(part)).unwrap());
    }
    // From a data file, parts are the same to the last byte.
    tool.done(&["convert", "family", "family.rg", "--quiet"]);
    for (data, name) in [("family", "text"), ("family.rg", "mapped")] {
        let mine = ["mine", data, "--samples", "2000", "--types", "cyclic,zero"];
        merge(&tool, &parts(&tool, &mine, name, 3), &["--out", &format!("{name}.tsv")]);
    }
    assert!(same(&tool, "text.tsv", "mapped.tsv"));

    let refused = tool.refused(&["mine", "family", "--shard", "1/2", "--out", "rules.shard"]);
    assert!(refused.contains("give --samples N or --saturate"), "{refused}");
    let refused = tool.refused(&["mine", "family", "--samples", "9", "--shard", "1/2", "--out", "rules.tsv"]);
    assert!(refused.contains("ends in .shard"), "{refused}");
    let refused =
        tool.refused(&["mine", "family", "--samples", "9", "--shard", "1-2/2", "--out", "rules.shard"]);
    assert!(refused.contains("--out: expected a name with {} for the number of each part"), "{refused}");
    assert!(!tool.path("rules.shard").exists());
}

#[test]
fn a_run_is_asked_in_parts() {
    let tool = Tool::new();
    tool.done(&["run", "--out", "run", "--set", "system=rules", "--set", "rules.samples=2000", "--quiet"]);
    tool.write("queries.tsv", "Ilse_Hagenthal\tcousin_of\nnobody\tcousin_of\n\nIlse_Hagenthal\t~parent_of\n");
    let verb = ["predict", "run", "--file", "queries.tsv", "--top", "3"];
    let whole = tool.done(&[&verb[..], &["--quiet"]].concat());
    let answers = parts(&tool, &verb, "answers", 2);
    merge(&tool, &answers, &["--out", "answers.jsonl"]);
    assert_eq!(std::fs::read_to_string(tool.path("answers.jsonl")).unwrap(), whole);
    merge(&tool, &parts_by_two(&tool, &verb, "answers", 3), &["--out", "answers.jsonl"]);
    assert_eq!(std::fs::read_to_string(tool.path("answers.jsonl")).unwrap(), whole);

    let verb = ["evaluate", "run", "--direction", "both"];
    let whole = tool.done(&[&verb[..], &["--json", "--quiet"]].concat());
    let ranks = parts(&tool, &verb, "ranks", 3);
    let merged = merge(&tool, &ranks, &["--json"]);
    assert_eq!(without_seconds(&merged), without_seconds(&whole));
    let merged = merge(&tool, &parts_by_two(&tool, &verb, "ranks", 4), &["--json"]);
    assert_eq!(without_seconds(&merged), without_seconds(&whole));
    let table = merge(&tool, &ranks, &[]);
    assert!(table.starts_with("Test split, filtered, seed 1, version"), "{table}");

    let verb = ["complete", "run", "--min-probability", "0.2"];
    tool.done(&[&verb[..], &["--out", "whole.parquet", "--quiet"]].concat());
    let facts = parts(&tool, &verb, "facts", 2);
    merge(&tool, &facts, &["--out", "merged.parquet"]);
    assert!(same(&tool, "whole.parquet", "merged.parquet"));
    merge(&tool, &parts_by_two(&tool, &verb, "facts", 3), &["--out", "merged.parquet"]);
    assert!(same(&tool, "whole.parquet", "merged.parquet"));

    // What is there is not made again; what does not fit is named.
    let again =
        tool.done(&["complete", "run", "--min-probability", "0.2", "--shard", "1/2", "--out", &facts[1]]);
    assert!(again.contains("part 1/2 of the facts already exists"), "{again}");
    let refused = tool.refused(&["merge", &facts[0], "--out", "less.tsv"]);
    assert!(refused.contains("of 2 parts 1/2 is missing"), "{refused}");
    let refused = tool.refused(&["merge", &facts[0], &answers[1], "--out", "mixed.tsv"]);
    assert!(refused.contains("holds answers, but facts in"), "{refused}");
    let refused = tool.refused(&["merge", &facts[0], &facts[1]]);
    assert!(refused.contains("merging parts of facts needs an output file; name one"), "{refused}");
    let refused = tool.refused(&["merge", "queries.tsv", "--out", "mixed.tsv"]);
    assert!(refused.contains("queries.tsv: is not a part"), "{refused}");
    assert!(!tool.path("less.tsv").exists() && !tool.path("mixed.tsv").exists());
    let refused = tool.refused(&["predict", "run", "--file", "-", "--shard", "1/2", "--out", "a.shard"]);
    assert!(refused.contains("expected a file that every part can read"), "{refused}");
}

#[test]
fn queries_with_a_bounded_frontier_are_asked_in_parts() {
    let tool = Tool::new();
    let few = ["layers=3", "width=8", "hidden=8", "epochs=1", "epoch_queries=64", "frontier=20"];
    let few: Vec<String> = few.iter().map(|setting| format!("propagate.{setting}")).collect();
    let run = ["run", "--out", "run", "--quiet", "--device", "cpu", "--set", "system=propagator"];
    let set = few.iter().flat_map(|setting| ["--set", setting]);
    tool.done(&run.into_iter().chain(set).collect::<Vec<_>>());
    tool.write("queries.tsv", "Ilse_Hagenthal\tlives_in\nIlse_Hagenthal\taunt_of\n");
    let verb = ["predict", "run", "--file", "queries.tsv", "--top", "3"];
    let whole = tool.done(&[&verb[..], &["--quiet"]].concat());
    merge(&tool, &parts(&tool, &verb, "answers", 2), &["--out", "answers.jsonl"]);
    assert_eq!(std::fs::read_to_string(tool.path("answers.jsonl")).unwrap(), whole);
    let verb = ["evaluate", "run", "--direction", "both"];
    let whole = tool.done(&[&verb[..], &["--json", "--quiet"]].concat());
    let merged = merge(&tool, &parts(&tool, &verb, "ranks", 3), &["--json"]);
    assert_eq!(without_seconds(&merged), without_seconds(&whole));
}

#[test]
#[cfg(unix)]
fn the_tasks_of_the_slurm_example_give_what_one_process_gives() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "family", "--quiet"]);
    let program = Path::new(env!("CARGO_BIN_EXE_ruleguider")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/slurm/here.sh");
    let run = || {
        let output = std::process::Command::new("bash")
            .arg(script)
            .current_dir(tool.folder.path())
            .env("PATH", &path)
            .envs([("DATA", "family"), ("OUT", "out"), ("PARTS", "3"), ("SAMPLES", "1000")])
            .env("SETTINGS", "system=rules")
            .output()
            .expect("bash starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        String::from_utf8(output.stdout).unwrap()
    };
    run();
    tool.done(&["mine", "family", "--samples", "1000", "--out", "whole.tsv.zst", "--quiet"]);
    assert!(same(&tool, "whole.tsv.zst", "out/rules.tsv.zst"));
    tool.done(&["mine", "family", "--samples", "1000", "--out", "whole.tsv", "--quiet"]);
    assert!(same(&tool, "whole.tsv", "out/run/rules.tsv"), "the run has the rules of the parts");
    tool.done(&["complete", "out/run", "--out", "whole.tsv", "--quiet"]);
    assert!(same(&tool, "whole.tsv", "out/missing.tsv"));
    // Submitted again, as after a failed task, it makes what is missing.
    std::fs::remove_file(tool.path("out/parts/rules-2-of-3.shard.zst")).unwrap();
    let message = run();
    assert_eq!(message.matches("already exists").count(), 5, "{message}");
    assert!(same(&tool, "whole.tsv.zst", "out/rules.tsv.zst"));
}
