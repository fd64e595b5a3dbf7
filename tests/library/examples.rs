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
    let message = run("ask", &[]);
    assert!(message.contains("test MRR 0.98") && message.contains("rules that predict it"), "{message}");
}

#[test]
fn mine_rules_and_apply_them() {
    let message = run("rules", &[]);
    assert!(message.contains(" <= ") && message.contains("MRR"), "{message}");
}

#[test]
fn stop_and_go_on() {
    let message = run("stop", &[]);
    assert!(
        message.contains("stopped; what is finished stays") && message.contains("test MRR 0.6"),
        "{message}"
    );
}

#[test]
fn answers_at_once() {
    let message = run("instant", &[]);
    assert!(message.lines().count() > 1 && message.contains('←') | message.contains("—"), "{message}");
}

#[test]
fn parts_of_a_job() {
    let message = run("shards", &[]);
    assert!(message.contains("one part and four give the same file: true"), "{message}");
}
