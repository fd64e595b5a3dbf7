//! The program as a user runs it, for tests.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The program, quiet, with a folder of its own to work in.
pub struct Tool {
    pub folder: tempfile::TempDir,
}

impl Tool {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ruleguider"));
        command.current_dir(self.folder.path()).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// What it prints when all goes well.
    #[track_caller]
    pub fn done(&self, arguments: &[&str]) -> String {
        self.exits(arguments, 0)
    }

    #[track_caller]
    pub fn exits(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        String::from_utf8(output.stdout).expect("the program prints UTF-8")
    }

    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.done(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).expect("--json prints JSON")
    }

    /// The one line with which it refuses.
    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(&[arguments, &["--quiet"]].concat());
        let message = String::from_utf8(output.stderr).expect("the program complains in UTF-8");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        message.trim_end().to_owned()
    }

    /// A file of `facts` lines in the test's folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the test's folder can be written to");
        path
    }

    /// The demonstration, learnt by rules alone, as the folder `run` here; the report of it. It is learnt once for all
    /// tests, and each gets a copy of its own.
    pub fn demonstration(&self) -> Value {
        static LEARNT: OnceLock<(Tool, Value)> = OnceLock::new();
        let (learnt, report) = LEARNT.get_or_init(|| {
            let tool = Self::new();
            let report = tool.json(&["run", "--out", "run", "--set", "system=rules"]);
            (tool, report)
        });
        copy_folder(&learnt.path("run"), &self.path("run"));
        report.clone()
    }
}

/// Copies a folder with everything in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the test's folder can be written to");
    for entry in std::fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("a file to copy");
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy_folder(&path, &copy),
            false => {
                std::fs::copy(&path, &copy).expect("a file can be copied");
            }
        }
    }
}

/// `path` as text.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

/// The files of a run that learning left there, by name, without what tells of time.
pub fn learnt(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(run).expect("a run directory") {
        let path = entry.expect("a file of the run").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if ["tsv", "safetensors"].contains(&ending.as_str()) || name == "blend.json" {
            files.push((name, std::fs::read(&path).expect("a file of the run")));
        }
    }
    files.sort();
    files
}
