//! The workflows of the repository: actions are pinned to commits, scripts exist, nothing runs for hours.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn workflows() -> Vec<(PathBuf, String)> {
    let folder =
        fs::read_dir(root().join(".github/workflows")).expect("the folder is part of the repository");
    let paths = folder.map(|entry| entry.expect("the folder can be listed").path());
    paths.map(|path| (path.clone(), fs::read_to_string(path).expect("a workflow is text"))).collect()
}

/// An action with the commit that it is pinned to, and its version for readers.
fn is_pinned(action: &str) -> bool {
    let Some((name, rest)) = action.split_once('@') else { return false };
    let Some((commit, version)) = rest.split_once(" # v") else { return false };
    name.contains('/')
        && commit.len() == 40
        && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
        && version.starts_with(|first: char| first.is_ascii_digit())
}

#[test]
fn actions_are_pinned_to_commits() {
    let mut seen = 0;
    for (path, text) in workflows() {
        for action in
            text.lines().filter_map(|line| line.trim_start_matches([' ', '-']).strip_prefix("uses: "))
        {
            assert!(is_pinned(action), "{}: {action}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen} actions");
    assert!(!is_pinned("actions/checkout@v4 # v4.2.2"));
}

#[test]
fn every_job_has_a_limit_and_every_script_exists() {
    for (path, text) in workflows() {
        let count = |word: &str| text.matches(word).count();
        assert_eq!(count("runs-on:"), count("timeout-minutes:"), "{}", path.display());
        for word in text.split_whitespace().filter(|word| word.starts_with("release/")) {
            assert!(root().join(word).is_file(), "{}: there is no {word}", path.display());
        }
    }
}
