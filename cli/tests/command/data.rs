//! Data as it comes: too little to divide, without some splits, through a pipe, with endings that say nothing.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::tool::Tool;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

const PEOPLE: &str = "ada\tknows\tben\nben\tknows\tada\nada\tborn_in\tulm\nben\tborn_in\tulm\n";

/// Runs the program in the tool's folder with `input` on stdin.
fn fed(tool: &Tool, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = tool
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `predict` says, whether it finds anything or not.
fn asked(tool: &Tool, run: &str, subject: &str, relation: &str) -> Value {
    let output = tool.run(&["predict", run, subject, relation, "--json"]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn stats_count_whatever_can_be_read() {
    let tool = Tool::new();
    fs::write(tool.path("one.tsv"), "a\tis\ta\n").unwrap();
    let one = tool.json(&["stats", "one.tsv"]);
    assert_eq!(
        (&one["entities"], &one["train"], &one["valid"], &one["test"]),
        (&1.into(), &1.into(), &0.into(), &0.into())
    );
    fs::create_dir(tool.path("only")).unwrap();
    fs::write(tool.path("only/train.tsv"), PEOPLE).unwrap();
    let only = tool.json(&["stats", "only"]);
    assert_eq!((&only["entities"], &only["facts"], &only["test"]), (&3.into(), &4.into(), &0.into()));
    let knows = &only["relation_table"][0];
    let (relation, symmetric) = (knows["relation"].as_str().unwrap(), knows["symmetric"].as_f64().unwrap());
    assert_eq!((relation, symmetric, &knows["functional"]), ("knows", 1.0, &true.into()));
    let born = &only["relation_table"][1];
    assert_eq!(
        (&born["subjects"], &born["objects"], &born["inverse_functional"]),
        (&2.into(), &1.into(), &false.into())
    );
    fs::write(tool.path("only/valid.tsv"), "").unwrap();
    let message = tool.done(&["stats", "only"]);
    assert!(
        message.contains("symmetric: 100 % of its facts") && message.contains("none; needed for learning"),
        "{message}"
    );
    assert!(message.lines().all(|line| line.chars().count() <= 80), "{message}");
}

#[test]
fn a_table_of_relations_keeps_within_a_terminal() {
    let tool = Tool::new();
    let long = "http://example.org/a/very/long/name/of/a/relation/that/does/not/fit/anywhere/";
    let facts: String = (0..50).map(|n| format!("e{n}\t{long}{}\te{}\n", n % 10, n + 1)).collect::<String>()
        + "e1\tback\te0\n";
    fs::write(tool.path("long.tsv"), facts).unwrap();
    let message = tool.done(&["stats", "long.tsv", "--relations", "4"]);
    assert!(message.contains("7 more relations: --relations N shows more, --json has all"), "{message}");
    assert!(message.lines().all(|line| line.chars().count() <= 80), "{message}");
    assert_eq!(tool.json(&["stats", "long.tsv"])["relation_table"].as_array().unwrap().len(), 11);
}

#[test]
fn data_comes_through_a_pipe_in_any_format() {
    let tool = Tool::new();
    let tabs = json(&fed(&tool, &["stats", "-", "--json"], PEOPLE.as_bytes()));
    assert_eq!((&tabs["entities"], &tabs["relations"]), (&3.into(), &2.into()));
    let commas = PEOPLE.replace('\t', ",");
    let counted = json(&fed(&tool, &["stats", "-", "--format", "csv", "--json"], commas.as_bytes()));
    assert_eq!(counted["relation_table"], tabs["relation_table"]);
    let output = fed(&tool, &["convert", "-", "people.parquet", "--quiet"], PEOPLE.as_bytes());
    assert!(output.status.success());
    let packed = fs::read(tool.path("people.parquet")).unwrap();
    let counted = json(&fed(&tool, &["stats", "-", "--format", "parquet", "--json"], &packed));
    assert_eq!(counted["relation_table"], tabs["relation_table"]);
    let broken = fed(&tool, &["stats", "-"], b"a\tr\tb\nbroken\n");
    let message = String::from_utf8(broken.stderr).unwrap();
    assert!(message.contains("stdin:2: expected 3 tab-separated fields, found 1"), "{message}");
    assert_eq!(broken.status.code(), Some(2));
    let nothing = fed(&tool, &["stats", "-"], b"");
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("stdin: expected triples, found nothing"));
}

/// A named pipe that another thread writes `text` into, once.
#[cfg(unix)]
fn pipe(tool: &Tool, name: &str, text: &'static str) -> std::thread::JoinHandle<()> {
    let path = tool.path(name);
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo is there");
    assert!(made.success());
    std::thread::spawn(move || fs::write(path, text).expect("someone reads"))
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_read_once_and_its_run_is_asked_afterwards() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "set", "--quiet"]);
    let text: &'static str = fs::read_to_string(tool.path("set/train.tsv")).unwrap().leak();
    let writer = pipe(&tool, "facts", text);
    let quick = ["--set", "system=rules", "--set", "rules.samples=300", "--quiet"];
    tool.done(&[&["run", "facts", "--format", "tsv", "--out", "run"], &quick[..]].concat());
    writer.join().unwrap();
    tool.done(&["evaluate", "run", "--quiet"]);
    // Without --format, its ending tells, and else it is TSV like stdin.
    let writer = pipe(&tool, "other", text);
    tool.done(&["stats", "other"]);
    writer.join().unwrap();
    // Where data is opened by its place again, a pipe is refused instead of waited for.
    let message = tool.refused(&["evaluate", "run", "--on", "other"]);
    assert!(message.contains("other: expected a file or a folder"), "{message}");
}

#[cfg(unix)]
#[test]
fn what_a_shell_substitutes_is_learnt_from() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "set", "--quiet"]);
    let program = env!("CARGO_BIN_EXE_ruleguider");
    let line = format!(
        "{program} run <(cat set/train.tsv) --out run --set system=rules --set rules.samples=300 --quiet"
    );
    let done =
        std::process::Command::new("bash").args(["-c", &line]).current_dir(tool.folder.path()).output();
    let Ok(done) = done else {
        return crate::skip::skip(crate::skip::Need::System, "there is no bash");
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    tool.done(&["evaluate", "run", "--quiet"]);
}

#[cfg(unix)]
#[test]
fn someone_who_waits_for_a_pipe_can_be_stopped() {
    let tool = Tool::new();
    let made = std::process::Command::new("mkfifo").arg(tool.path("silent")).status();
    assert!(made.expect("mkfifo is there").success());
    for arguments in [&["stats", "silent"][..], &["run", "silent", "--out", "run", "--quiet"]] {
        let mut child = tool
            .command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(std::time::Duration::from_millis(700));
        let killed = std::process::Command::new("kill").arg(child.id().to_string()).status();
        assert!(killed.expect("kill is there").success());
        let began = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(began.elapsed().as_secs() < 20, "{arguments:?} does not end");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_format_is_named_where_endings_do_not_tell() {
    let tool = Tool::new();
    fs::write(tool.path("people.dat"), PEOPLE.replace('\t', ",")).unwrap();
    assert!(tool.refused(&["stats", "people.dat"]).contains("expected one of the extensions"));
    assert_eq!(tool.json(&["stats", "people.dat", "--format", "csv"])["entities"], 3);
    assert!(
        tool.refused(&["stats", "people.dat", "--format", "docx"]).contains("expected one of the extensions")
    );
    fs::create_dir(tool.path("splits")).unwrap();
    fs::write(tool.path("splits/train"), PEOPLE).unwrap();
    assert_eq!(tool.json(&["stats", "splits", "--format", "tsv"])["facts"], 4);
}

#[test]
fn a_run_over_a_pipe_is_asked_over_its_own_copy() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "family"]);
    let facts = fs::read(tool.path("family/train.tsv")).unwrap();
    let run = ["run", "-", "--set", "system=rules", "--set", "rules.samples=2000", "--quiet"];
    let output = fed(&tool, &run, &facts);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let people = String::from_utf8(facts.clone()).unwrap();
    let subject =
        people.lines().find(|line| line.contains("\tsibling_of\t")).unwrap().split('\t').next().unwrap();
    let answers = asked(&tool, "runs/stdin", subject, "sibling_of");
    let has = |key: &str| answers[key].as_array().is_some_and(|found| !found.is_empty());
    assert!(has("known") || has("held_out"), "{answers}");
    // The same once more goes on, something else is refused.
    assert!(fed(&tool, &run, &facts).status.success());
    let other = fed(&tool, &run, &facts[..facts.len() / 2]);
    assert_eq!(other.status.code(), Some(2));
    assert!(asked(&tool, "runs/stdin", subject, "sibling_of")["answers"].is_array());
}

#[test]
fn figures_of_single_relations_and_hints_about_directions() {
    let tool = Tool::new();
    tool.done(&["run", "--set", "system=rules", "--set", "rules.samples=5000"]);
    let of = |more: &[&str]| tool.json(&[&["evaluate", "runs/demonstration"], more].concat());
    let all = of(&[]);
    let cousins = of(&["--relation", "cousin_of"]);
    let row = all["relations"].as_array().unwrap().iter().find(|row| row["relation"] == "cousin_of").unwrap();
    assert_eq!((&cousins["queries"], &cousins["mrr"]), (&row["queries"], &row["mrr"]));
    assert_eq!(cousins["only"], serde_json::json!(["cousin_of"]));
    assert!(
        tool.refused(&["evaluate", "runs/demonstration", "--relation", "~cousin_of"])
            .contains("--direction head")
    );
    let woman = asked(&tool, "runs/demonstration", "woman", "gender");
    let hint = woman["hint"].as_str().unwrap();
    assert!(
        hint.contains("woman is the tail of `gender`") && hint.contains("did you mean `~gender`?"),
        "{hint}"
    );
    let turned = asked(&tool, "runs/demonstration", "woman", "~gender");
    assert!(turned.get("hint").is_none(), "that is how it is meant");
}
