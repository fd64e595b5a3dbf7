//! The guide is true: every command in `docs/` is run, and what it prints is what the guide shows.
//!
//! A block that begins with ```` ```console ```` holds commands (`$ ruleguider …`) and what they print on stdout, from
//! top to bottom in one folder for each page. Seconds and megabytes may differ; a line `…` stands for any lines. In a
//! block that begins with ```` ```console like ```` all numbers and names in results may differ: training depends on
//! the processor in the last digits. `GUIDE=write cargo test guide` writes what is printed into the guide.

use crate::skip::{Need, skip};
use crate::tool::{Tool, copy_folder};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

struct Command {
    text: String,
    shown: Vec<String>,
    exact: bool,
    /// The lines of the page at which the shown output begins and ends.
    from: usize,
    to: usize,
}

fn commands(page: &str) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut block = None;
    for (at, line) in page.lines().enumerate() {
        match (block, line) {
            (None, "```console") => block = Some(true),
            (None, "```console like") => block = Some(false),
            (Some(_), "```") => block = None,
            (Some(exact), line) => match line.strip_prefix("$ ") {
                Some(text) => {
                    let (from, to) = (at + 1, at + 1);
                    found.push(Command { text: text.to_owned(), shown: Vec::new(), exact, from, to });
                }
                None => {
                    let last = found.last_mut().expect("a block begins with a command");
                    last.shown.push(line.to_owned());
                    last.to = at + 1;
                }
            },
            (None, _) => {}
        }
    }
    found
}

/// The line without what a clock or the system's memory decides; without any number if it need not be exact.
fn comparable(line: &str, exact: bool) -> String {
    let mut words: Vec<String> = Vec::new();
    let all: Vec<&str> = line.split_whitespace().collect();
    for (at, word) in all.iter().enumerate() {
        let unit = all.get(at + 1).map(|next| next.trim_end_matches([',', ';', ')', ':']));
        let measured = matches!(unit, Some("s" | "MB" | "min")) || word.ends_with("/s");
        let number = word.chars().any(|character| character.is_ascii_digit());
        let keyed = at > 0 && (all[at - 1].contains("seconds") || all[at - 1].contains("memory"));
        match number && (measured || keyed || !exact) {
            true => words.push("#".to_owned()),
            false => words.push((*word).to_owned()),
        }
    }
    words.join(" ")
}

fn matches(shown: &[String], printed: &[String], exact: bool) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..], exact))
        }
        Some((line, rest)) => match printed.split_first() {
            Some((first, others)) => {
                comparable(line, exact) == comparable(first, exact) && matches(rest, others, exact)
            }
            None => false,
        },
    }
}

/// Runs a command of the guide as a shell would, with this program first on the path.
fn printed_by(tool: &Tool, text: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_ruleguider"));
    let folder = program.parent().expect("a program is in a folder");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = std::process::Command::new("sh")
        .args(["-c", text])
        .current_dir(tool.folder.path())
        .env("PATH", path)
        .env_remove("RULEGUIDER_DATA")
        .output()
        .expect("a shell");
    let message = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(1), "`{text}` failed: {message}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// With what most pages begin. It is run once, and each page goes on from a copy of what it left.
const LEARN: &str = "ruleguider run --set system=rules --quiet > report.txt";

/// What a command of a page prints; `first` of its page it begins in an empty folder.
fn printed_on_page(tool: &Tool, text: &str, first: bool) -> Vec<String> {
    static LEARNT: OnceLock<(Tool, Vec<String>)> = OnceLock::new();
    if !first || text != LEARN {
        return printed_by(tool, text);
    }
    let (learnt, printed) = LEARNT.get_or_init(|| {
        let tool = Tool::new();
        let printed = printed_by(&tool, text);
        (tool, printed)
    });
    copy_folder(learnt.folder.path(), tool.folder.path());
    printed.clone()
}

fn check(path: &Path) {
    check_in(&Tool::new(), path);
}

/// A page whose folder has something already.
fn check_in(tool: &Tool, path: &Path) {
    let page = std::fs::read_to_string(path).expect("a page of the guide");
    let write = std::env::var("GUIDE").is_ok_and(|wish| wish == "write");
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let mut moved = 0isize;
    for (at, command) in commands(&page).into_iter().enumerate() {
        let printed = printed_on_page(tool, &command.text, at == 0);
        if matches(&command.shown, &printed, command.exact) {
            continue;
        }
        let place = format!("{}:{}", path.display(), command.from);
        assert!(write, "{place}: `{}` prints\n{}", command.text, printed.join("\n"));
        let from = (command.from as isize + moved) as usize;
        let to = (command.to as isize + moved) as usize;
        moved += printed.len() as isize - (to - from) as isize;
        lines.splice(from..to, printed);
    }
    if write {
        std::fs::write(path, lines.join("\n") + "\n").expect("a writable page");
    }
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

macro_rules! pages {
    ($($test:ident: $file:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            check(&page($file));
        })*

        #[test]
        fn every_page_with_commands_is_checked() {
            let mut pages: Vec<String> = std::fs::read_dir(page(""))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .filter(|name| name.ends_with(".md"))
                .filter(|name| !commands(&std::fs::read_to_string(page(name)).unwrap()).is_empty())
                .collect();
            pages.sort();
            let mut checked = [&[$($file),*][..], &TUTORIALS].concat();
            checked.sort_unstable();
            assert_eq!(pages, checked);
        }
    };
}

/// Pages on graphs that are not part of the repository.
const TUTORIALS: [&str; 4] =
    ["tutorial-drugs.md", "tutorial-packages.md", "tutorial-study.md", "tutorial-threats.md"];

/// Checks a tutorial in a folder that has these files of the benchmark graphs, under the names that the page uses.
fn tutorial(name: &str, files: &[(&str, &str)]) {
    let data = std::env::var_os("RULEGUIDER_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    let tool = Tool::new();
    for (file, called) in files {
        let from = data.join(file);
        if !from.exists() {
            return skip(Need::Data, format!("{} is not there", from.display()));
        }
        match from.is_dir() {
            true => copy_folder(&from, &tool.path(called)),
            false => drop(std::fs::copy(&from, tool.path(called)).expect("a file of a benchmark graph")),
        }
    }
    check_in(&tool, &page(name));
}

const ATTACK: (&str, &str) = ("mitre-attack/facts.tsv.gz", "attack.tsv.gz");

#[test]
fn tutorial_threats() {
    tutorial("tutorial-threats.md", &[ATTACK]);
}

#[test]
fn tutorial_study() {
    tutorial("tutorial-study.md", &[ATTACK]);
}

#[test]
fn tutorial_drugs() {
    let genes = ("human-genes-go/facts.tsv.gz", "genes.tsv.gz");
    tutorial("tutorial-drugs.md", &[("hetionet-part", "hetionet"), genes]);
}

#[test]
fn tutorial_packages() {
    let listed = std::process::Command::new("apt-cache").args(["show", "ruby-sinatra"]).output();
    if !listed.is_ok_and(|output| output.status.success()) {
        return skip(Need::System, "apt does not know the package ruby-sinatra");
    }
    let tool = Tool::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/debian.py");
    std::fs::copy(script, tool.path("debian.py")).expect("a script of the repository");
    check_in(&tool, &page("tutorial-packages.md"));
}

pages! {
    ask: "ask.md",
    complete: "complete.md",
    convert: "convert.md",
    embed: "embed.md",
    evaluate: "evaluate.md",
    explain: "explain.md",
    from_anyburl: "from-anyburl.md",
    from_pyclause: "from-pyclause.md",
    from_pykeen: "from-pykeen.md",
    generate: "generate.md",
    guide: "guide.md",
    how_good: "how-good.md",
    judge: "judge.md",
    mine_and_apply: "mine-and-apply.md",
    predict: "predict.md",
    probabilities: "probabilities.md",
    report: "report.md",
    reproduce: "reproduce.md",
    run: "run.md",
    start: "start.md",
    stats: "stats.md",
    sweep: "sweep.md",
}
