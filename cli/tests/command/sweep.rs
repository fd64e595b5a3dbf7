//! `sweep` as a user runs it: killed, interrupted, with a test split that is none, and what comes of it used.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::tool::Tool;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SPACE: &str =
    "[embed]\nlearning_rate = { from = 0.001, to = 0.1, scale = \"log\" }\nbatch = [16, 64]\n";
const SMALL: [&str; 12] = [
    "--space",
    "space.toml",
    "--set",
    "embed.dimension=8",
    "--set",
    "embed.epochs=8",
    "--set",
    "embed.evaluate_every=1",
    "--set",
    "embed.patience=100",
    "--trials",
    "4",
];

/// A folder with a family and a space.
fn prepared() -> Tool {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "data/umls", "--quiet"]);
    tool.write("space.toml", SPACE);
    tool
}

/// The arguments of a search into `out` with `more`.
fn searching<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", "data/umls", "complex", "--device", "cpu", "--out", out][..], &SMALL, more].concat()
}

fn table(tool: &Tool, out: &str) -> String {
    std::fs::read_to_string(tool.path(out).join("trials.tsv")).unwrap()
}

/// Waits until a folder or a file with content is there.
#[track_caller]
fn awaited(path: &Path) {
    let began = Instant::now();
    while !path.metadata().is_ok_and(|found| found.is_dir() || found.len() > 0) {
        assert!(began.elapsed() < Duration::from_secs(60), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn killed_it_goes_on_to_the_same_table() {
    let tool = prepared();
    let halving = ["--search", "halving", "--at-once", "2"];
    tool.done(&[&searching("whole", &halving)[..], &["--quiet"]].concat());
    for (at, moment) in
        ["trials/0001/checkpoints", "trials/0003/run.json", "trials/0002/trial.json"].iter().enumerate()
    {
        let mut killed = tool.command(&searching("killed", &halving));
        let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        awaited(&tool.path("killed").join(moment));
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert!(at > 0 || !tool.path("killed/best.toml").exists(), "it was killed before its end");
    }
    let report = tool.json(&[&searching("killed", &halving)[..], &["--quiet"]].concat());
    assert_eq!(report["complete"], true);
    assert_eq!(table(&tool, "killed"), table(&tool, "whole"));
    let best = |out: &str| std::fs::read_to_string(tool.path(out).join("best.toml")).unwrap();
    assert_eq!(best("killed"), best("whole"));
    // Done once more, nothing is done.
    let again = tool.json(&[&searching("killed", &halving)[..], &["--quiet"]].concat());
    assert_eq!(again, report);
}

#[test]
fn a_trial_that_ended_before_its_record_was_written_has_its_epochs() {
    let tool = prepared();
    tool.done(&[&searching("whole", &[])[..], &["--quiet"]].concat());
    let before = table(&tool, "whole");
    std::fs::remove_file(tool.path("whole/trials/0002/trial.json")).unwrap();
    tool.done(&[&searching("whole", &[])[..], &["--quiet"]].concat());
    assert_eq!(table(&tool, "whole"), before);
}

#[test]
fn a_record_that_was_changed_is_made_again() {
    let tool = prepared();
    tool.done(&[&searching("whole", &[])[..], &["--quiet"]].concat());
    let before = table(&tool, "whole");
    let path = tool.path("whole/trials/0002/trial.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mrr = text.lines().rfind(|line| line.contains("\"mrr\"")).unwrap();
    std::fs::write(&path, text.replace(mrr, "    \"mrr\": 0.9999,")).unwrap();
    tool.done(&[&searching("whole", &[])[..], &["--quiet"]].concat());
    assert_eq!(table(&tool, "whole"), before);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("0.9999"));
    // One that is as it was written is not made again: it tells how long that took.
    let kept = std::fs::read(&path).unwrap();
    tool.done(&[&searching("whole", &[])[..], &["--quiet"]].concat());
    assert_eq!(std::fs::read(&path).unwrap(), kept);
}

#[cfg(unix)]
#[test]
fn interrupted_it_keeps_everything() {
    let tool = prepared();
    let mut long = searching("out", &["--json"]);
    long.extend(["--set", "embed.epochs=100000"]);
    let child = tool.command(&long).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Before its first figures, a training has nothing to keep.
    awaited(&tool.path("out/trials/0001/metrics.jsonl"));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("interrupted; run the same command again to resume"), "{message}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["complete"], &report["best"]), (&false.into(), &serde_json::Value::Null));
    assert!(tool.path("out/sweep.html").exists() && tool.path("out/trials/0001/checkpoints").exists());
    // Two searches do not work in one folder.
    let lock = std::fs::File::open(tool.path("out/lock")).unwrap();
    lock.try_lock().unwrap();
    assert!(tool.refused(&long).contains("out: another run is using this folder"));
}

#[test]
fn what_the_test_split_holds_changes_nothing() {
    let tool = prepared();
    tool.done(&[&searching("one", &["--at-once", "1"])[..], &["--quiet"]].concat());
    let file = std::fs::read_dir(tool.path("data/umls")).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("test."));
    let file = file.unwrap();
    std::fs::write(&file, "this is\u{0} no triple\n").unwrap();
    tool.done(&[&searching("two", &["--at-once", "3"])[..], &["--quiet"]].concat());
    assert_eq!(table(&tool, "one"), table(&tool, "two"));
    // And the search that saw the file goes on as if nothing had happened.
    tool.done(&[&searching("one", &["--at-once", "1"])[..], &["--quiet"]].concat());
    // Whatever ranks the test split does complain.
    assert!(tool.refused(&["stats", "data/umls"]).contains("test"));
}

#[test]
fn trials_may_be_trained_one_by_one() {
    let tool = prepared();
    tool.done(&[&searching("whole", &[])[..], &["--quiet"]].concat());
    for number in ["3", "1", "4", "2"] {
        let record = tool.json(&[&searching("apart", &["--trial", number])[..], &["--quiet"]].concat());
        assert!(record["finished"]["mrr"].is_number(), "{record}");
    }
    assert!(!tool.path("apart/trials.tsv").exists());
    tool.done(&[&searching("apart", &[])[..], &["--quiet"]].concat());
    assert_eq!(table(&tool, "apart"), table(&tool, "whole"));
    let message = tool.refused(&searching("apart", &["--trial", "5"]));
    assert!(message.ends_with("there is no trial 5; this search has 1 to 4"), "{message}");
}

#[test]
fn the_best_is_what_run_and_reproduce_take() {
    let tool = prepared();
    let report = tool.json(&[&searching("out", &[])[..], &["--quiet"]].concat());
    let best = &report["best"];
    let config = best["config"].as_str().unwrap();
    assert_eq!(config, "out/best.toml");
    for key in
        ["dataset", "system", "space", "search", "seed", "version", "trials", "mattered", "rungs", "complete"]
    {
        assert!(!report[key].is_null(), "{key}");
    }
    let first = &report["trials"][0];
    assert_eq!(
        (&first["trial"], &first["mrr"], &first["state"]),
        (&best["trial"], &best["mrr"], &"finished".into())
    );
    // Learnt as `run` learns it, the validation figure is the one that it was chosen by.
    let arguments = ["run", "data/umls", "--config", config, "--out", "run", "--device", "cpu", "--quiet"];
    assert_eq!(tool.json(&arguments)["system"], "embedding");
    let valid = tool.json(&["evaluate", "run", "--split", "valid", "--quiet", "--device", "cpu"]);
    assert_eq!(valid["mrr"], best["mrr"]);
    let asked = [
        "reproduce",
        "umls",
        "complex",
        "--config",
        config,
        "--data-root",
        "data",
        "--device",
        "cpu",
        "--quiet",
    ];
    let rows = tool.json(&asked);
    assert_eq!(rows[0]["valid"]["mrr"], best["mrr"]);
    assert!(rows[0]["command"].as_str().unwrap().contains("--config out/best.toml"), "{rows}");
    // A trial is a run that can be asked.
    let run = first["run"].as_str().unwrap();
    assert_eq!(tool.json(&["evaluate", run, "--split", "valid", "--quiet"])["mrr"], best["mrr"]);
    let page = std::fs::read_to_string(tool.path("out/sweep.html")).unwrap();
    assert_eq!(page.matches("<polyline").count(), 4);
}

#[test]
fn what_cannot_be_searched_is_refused_in_one_line() {
    let tool = prepared();
    for (more, message) in [
        (&["--space", "papr"][..], "papr: no such file, and no space of that name; did you mean `paper`?"),
        (&["--set", "embed.epoch=3"], "unknown setting `embed.epoch`; did you mean `embed.epochs`?"),
        (&["--search", "gird"], "unknown search `gird`; use grid, random or halving"),
    ] {
        let said_now = tool.refused(&[&["sweep", "data/umls", "complex"], more].concat());
        assert!(said_now.contains(message), "{said_now}");
    }
    let message = tool.refused(&["sweep", "data/umls", "propagatr"]);
    assert!(message.contains("no system of that name for umls; did you mean `propagator`?"), "{message}");
    let message = tool.refused(&["sweep", "data/umls", "rules-cyclic"]);
    assert!(
        message.contains("this system has no space of its own; name one: embedding, paper, propagator"),
        "{message}"
    );
    tool.write("space.toml", "[embed]\nlearning_rat = [1]\n");
    let message = tool.refused(&searching("out", &[]));
    assert!(
        message.contains(
            "space.toml:2: unknown setting `embed.learning_rat`; did you mean `embed.learning_rate`?"
        ),
        "{message}"
    );
    std::fs::create_dir(tool.path("other")).unwrap();
    tool.write("other/thesis.tex", "");
    tool.write("space.toml", SPACE);
    assert!(tool.refused(&searching("other", &[])).contains("other: holds files but no search"));
}
