//! The programs of `examples/` are run as they stand, each in a folder of its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot run its example fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An example that `cargo test` has built.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    own.parent().and_then(Path::parent).expect("target/debug/deps").join("examples").join(name)
}

/// Runs an example; what it printed.
fn run(name: &str, arguments: &[&str]) -> String {
    let built = example(name);
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

#[test]
fn a_member_of_your_own() {
    let said = run("own_member", &[]);
    assert!(said.contains("test MRR 0.") && said.lines().count() > 1, "{said}");
}

#[test]
fn an_embedding_model_of_your_own() {
    let said = run("own_embedding", &[]);
    assert!(said.contains("test MRR 0.9"), "{said}");
}

/// They are read at a glance.
#[test]
fn examples_are_short() {
    let folders =
        ["examples", "cli/examples"].map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let paths = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let programs: Vec<PathBuf> =
        paths.map(|entry| entry.unwrap().path()).filter(|path| is_rust(path)).collect();
    assert!(programs.len() >= 11, "{programs:?}");
    for program in programs {
        let lines = std::fs::read_to_string(&program).unwrap().lines().count();
        assert!(lines < 80, "{}: {lines} lines", program.display());
    }
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

#[test]
fn judge_given_facts() {
    let said = run("score", &[]);
    assert!(said.matches("probability").count() == 2 && said.contains("Nobody"), "{said}");
}

#[test]
fn add_facts_to_a_model() {
    let said = run("edits", &[]);
    let lists: Vec<&str> = said.lines().filter_map(|line| line.split_once(": ")).map(|line| line.1).collect();
    assert_eq!(lists[0], lists[2], "{said}");
    assert!(lists[1].contains('"'), "{said}");
}

#[test]
fn a_server_of_your_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(example("serve"));
    let mut server =
        command.args(["0", "1"]).current_dir(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    let host = address.trim().trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /Ilse_Hagenthal/cousin_of HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answered = String::new();
    stream.read_to_string(&mut answered).unwrap();
    assert!(answered.starts_with("HTTP/1.1 200 OK") && answered.contains("\"probability\""), "{answered}");
    assert!(server.wait().unwrap().success());
}
