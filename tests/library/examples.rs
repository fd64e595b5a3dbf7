//! The programs of `examples/` are run as they stand, each in a folder of its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot run its example fails")]

use std::path::Path;
use std::process::Command;

/// Runs an example that `cargo test` has built; what it printed.
fn run(name: &str, arguments: &[&str]) -> String {
    let own = std::env::current_exe().expect("a test has a path");
    let built = own.parent().and_then(Path::parent).expect("target/debug/deps").join("examples").join(name);
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(&built).args(arguments).current_dir(folder.path()).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn learn_and_ask() {
    let said = run("ask", &[]);
    assert!(said.contains("test MRR 0.98") && said.contains("rules that predict it"), "{said}");
}

#[test]
fn mine_rules_and_apply_them() {
    let said = run("rules", &[]);
    assert!(said.contains(" <= ") && said.contains("MRR"), "{said}");
}

#[test]
fn stop_and_go_on() {
    let said = run("stop", &[]);
    assert!(said.contains("stopped; what is finished stays") && said.contains("test MRR 0.6"), "{said}");
}

#[test]
fn answers_at_once() {
    let said = run("instant", &[]);
    assert!(said.lines().count() > 1 && said.contains('←') | said.contains("—"), "{said}");
}

#[test]
fn parts_of_a_job() {
    let said = run("shards", &[]);
    assert!(said.contains("one part and four give the same file: true"), "{said}");
}
