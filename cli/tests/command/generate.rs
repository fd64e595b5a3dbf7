//! `ruleguider generate`, as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn generate(out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ruleguider"));
    command.args(["generate", "family", "--out"]).arg(out).args(more).output().expect("the program starts")
}

#[test]
fn one_seed_gives_identical_files_and_a_summary_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let first = generate(&one, &["--people", "500", "--seed", "7", "--threads", "1", "--json"]);
    assert!(first.status.success());
    assert!(generate(&two, &["--people", "500", "--seed", "7", "--threads", "2"]).status.success());
    let summary: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    for (key, file) in [
        ("train", "train.tsv"),
        ("valid", "valid.tsv"),
        ("test", "test.tsv"),
        ("people", "entity_labels.tsv"),
        ("planted_rules", "planted_rules.tsv"),
    ] {
        let text = fs::read_to_string(one.join(file)).unwrap();
        assert_eq!(text, fs::read_to_string(two.join(file)).unwrap(), "{file}");
        assert_eq!(summary[key], text.lines().count(), "{file}");
    }
}

#[test]
fn mistakes_end_with_code_2_and_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    for (arguments, printed) in [
        (vec!["--quiet"], "unless overwriting is forced"),
        (vec!["--quiet", "--people", "12"], "at least 50 people"),
    ] {
        let output = generate(folder.path(), &arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(message.lines().count() == 1 && message.contains(printed), "{message}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
