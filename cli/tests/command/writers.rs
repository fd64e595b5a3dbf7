//! Writers that are killed, and writers at the same place at the same time: what is there afterwards is whole.

use crate::tool::Tool;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The visible files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("the folder is there").map_while(Result::ok);
    let named = entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    named
        .filter(|(name, _)| !name.starts_with('.'))
        .map(|(name, path)| (name, std::fs::read(path).expect("a file can be read")))
        .collect()
}

/// Two sets that differ in every file, and what converting each gives.
fn two_sets(tool: &Tool) -> [BTreeMap<String, Vec<u8>>; 2] {
    [("1", "tsv"), ("2", "csv")].map(|(seed, ending)| {
        tool.done(&["generate", "family", "--people", "400", "--seed", seed, "--out", seed, "--quiet"]);
        let alone = format!("alone-{seed}");
        tool.done(&["convert", seed, &alone, "--to", ending, "--quiet"]);
        files(&tool.path(&alone))
    })
}

fn convert(tool: &Tool, set: &str, ending: &str) -> Child {
    let mut command = tool.command(&["convert", set, "out", "--force", "--to", ending, "--quiet"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

#[test]
fn two_conversions_into_one_folder_leave_one_of_them() {
    let tool = Tool::new();
    let sets = two_sets(&tool);
    for _ in 0..6 {
        let both = [convert(&tool, "1", "tsv"), convert(&tool, "2", "csv")];
        let ended = both.map(|child| child.wait_with_output().unwrap());
        assert!(ended.iter().any(|output| output.status.success()));
        for output in ended.iter().filter(|output| !output.status.success()) {
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(message.contains("another process is writing to this folder"), "{message}");
            assert_eq!(output.status.code(), Some(2));
        }
        let left = files(&tool.path("out"));
        assert!(sets.contains(&left), "{:?}", left.keys());
    }
}

#[test]
fn a_conversion_that_is_killed_leaves_no_mixture() {
    let tool = Tool::new();
    let sets = two_sets(&tool);
    let (mut whole, mut refused) = (0, 0);
    for moment in 0..40 {
        tool.done(&["convert", "1", "out", "--force", "--to", "tsv", "--quiet"]);
        let mut child = convert(&tool, "2", "csv");
        std::thread::sleep(Duration::from_millis(10 + 2 * moment));
        child.kill().unwrap();
        child.wait().unwrap();
        if sets.contains(&files(&tool.path("out"))) {
            whole += 1;
        } else {
            tool.refused(&["stats", "out"]);
            refused += 1;
        }
    }
    assert_eq!(whole + refused, 40);
    tool.done(&["convert", "2", "out", "--force", "--to", "csv", "--quiet"]);
    let hidden = std::fs::read_dir(tool.path("out")).unwrap().count();
    assert_eq!(hidden, sets[1].len(), "what killed processes left is removed");
}

#[test]
fn worlds_that_are_generated_at_once_are_not_mixed() {
    let tool = Tool::new();
    let worlds: Vec<_> = ["1", "2", "3"]
        .map(|seed| {
            tool.done(&["generate", "family", "--people", "200", "--seed", seed, "--out", seed, "--quiet"]);
            files(&tool.path(seed))
        })
        .into();
    for round in 0..6 {
        let out = format!("out{round}");
        let children = ["1", "2", "3"].map(|seed| {
            let arguments = [
                "generate", "family", "--people", "200", "--seed", seed, "--out", &out, "--force", "--quiet",
            ];
            tool.command(&arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts")
        });
        let ended = children.map(|mut child| child.wait().unwrap().success());
        assert!(ended.contains(&true));
        assert!(worlds.contains(&files(&tool.path(&out))));
    }
}

#[test]
fn a_file_that_is_written_again_sweeps_what_killed_writers_left() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "50", "--out", "set", "--quiet"]);
    tool.write(".out.csv.4711.partial", "half");
    tool.write(".other.csv.4711.partial", "of another file");
    tool.done(&["convert", "set/train.tsv", "out.csv", "--quiet"]);
    assert!(!tool.path(".out.csv.4711.partial").exists());
    assert!(tool.path(".other.csv.4711.partial").exists());
}
