//! Keeps the arrows between the modules of the library, keeps it from printing and exiting, and keeps two modules from
//! calling different types by the same name.
//!
//! What stands in crates of its own is kept by their manifests; [`CRATES`] says what those may name. Within a crate the law
//! stands in [`LAW`]. A file is read as tokens (comments and texts left out), and every path that starts at the crate's
//! root, whether by `crate::` or by enough `super::`, must lead into an allowed module.
//!
//! Files have a place in one tree, wherever their crate is: `crates/graph/src/ids.rs` is `graph/ids.rs`, its
//! `generate/dice.rs` is `generate/dice.rs`, and `lib.rs` of a crate is `mod.rs`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates below the facade, each with those of ours that it may name.
const CRATES: [(&str, &[&str]); 4] =
    [("support", &[]), ("tensor", &["support"]), ("graph", &["support"]), ("rule", &["graph", "support"])];

/// Modules of the crate `graph` that know the rest of it, which does not know them.
const BESIDE_GRAPH: [&str; 2] = ["generate", "shard"];

/// What a module may know.
struct Module {
    name: &'static str,
    knows: &'static [&'static str],
}

/// A module may always use itself and what is [`ANYBODYS`]. `train` uses `eval` to stop training by its figures. `walk` takes
/// rules and soft rewards through traits of its own and knows neither `rule` nor `embed`. Tests of any module may use
/// `generate`, which is made for them.
const LAW: &[Module] = &[
    Module { name: "support", knows: &[] },
    Module { name: "graph", knows: &[] },
    Module { name: "generate", knows: &["graph"] },
    Module { name: "tensor", knows: &[] },
    Module { name: "shard", knows: &["graph"] },
    Module { name: "eval", knows: &["graph", "shard"] },
    Module { name: "rule", knows: &[] },
    Module { name: "train", knows: &["graph", "tensor", "eval"] },
    // Documentation alone; its programs are tests.
    Module { name: "tutorial", knows: &[] },
    Module { name: "embed", knows: &["graph", "tensor", "eval", "train"] },
    Module { name: "walk", knows: &["graph", "tensor", "eval", "train"] },
    Module { name: "propagate", knows: &["graph", "tensor", "eval", "train"] },
    Module { name: "universal", knows: &["graph", "tensor", "eval", "train", "propagate"] },
    Module { name: "config", knows: &["rule", "embed", "walk", "propagate", "eval"] },
    Module { name: "cost", knows: &["config", "graph", "rule", "embed", "walk", "propagate", "eval"] },
    Module {
        name: "plan",
        knows: &["run", "cost", "config", "graph", "rule", "embed", "walk", "propagate", "eval"],
    },
    Module {
        name: "reason",
        knows: &["config", "graph", "tensor", "rule", "train", "embed", "walk", "propagate", "eval"],
    },
    Module {
        name: "run",
        knows: &[
            "config",
            "cost",
            "reason",
            "generate",
            "graph",
            "tensor",
            "rule",
            "embed",
            "walk",
            "propagate",
            "universal",
            "train",
            "eval",
        ],
    },
    Module {
        name: "ask",
        knows: &[
            "run", "config", "plan", "reason", "graph", "tensor", "rule", "train", "embed", "walk", "eval",
            "shard",
        ],
    },
    Module { name: "sweep", knows: &["run", "config", "plan", "embed", "graph", "tensor", "eval"] },
    Module { name: "judge", knows: &["ask", "run", "reason", "graph", "rule"] },
    Module {
        name: "report",
        knows: &[
            "judge", "sweep", "ask", "run", "config", "plan", "reason", "graph", "rule", "embed", "eval",
        ],
    },
];

/// What every module may use of the crate's root.
const ANYBODYS: [&str; 9] =
    ["aside", "fnv", "memory", "progress", "settings", "shown", "skip", "suggest", "VERSION"];

/// Macros that print.
const PRINTING: [&str; 5] = ["println", "print", "eprintln", "eprint", "dbg"];

/// Crates that only the module of tensors may name.
const TENSOR_CRATES: [&str; 3] = ["cudarc", "gemm_common", "gemm_f32"];

#[derive(Debug, PartialEq)]
struct Token {
    line: usize,
    text: String,
}

/// Identifiers, `::`, and single other characters; no comments, no texts, no characters in quotes.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let (mut at, mut line, mut tokens) = (0, 1, Vec::new());
    let starts = |at: usize, text: &str| text.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    while at < chars.len() {
        let begin = at;
        if let Some(end) = end_of_comment(&chars, at).or_else(|| end_of_text(&chars, at)) {
            at = end;
        } else if chars[at].is_alphanumeric() || chars[at] == '_' {
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
            tokens.push(Token { line, text: chars[begin..at].iter().collect() });
        } else if starts(at, "::") {
            at += 2;
            tokens.push(Token { line, text: "::".to_owned() });
        } else {
            at += 1;
            if !chars[begin].is_whitespace() {
                tokens.push(Token { line, text: chars[begin].to_string() });
            }
        }
        line += chars[begin..at].iter().filter(|&&c| c == '\n').count();
    }
    tokens
}

fn end_of_comment(chars: &[char], at: usize) -> Option<usize> {
    match chars.get(at..at + 2)? {
        ['/', '/'] => Some(chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |n| at + n)),
        ['/', '*'] => {
            let (mut depth, mut at) = (1, at + 2);
            while depth > 0 && at < chars.len() {
                match chars.get(at..at + 2) {
                    Some(['/', '*']) => (depth, at) = (depth + 1, at + 2),
                    Some(['*', '/']) => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
            }
            Some(at)
        }
        _ => None,
    }
}

/// The end of the text, raw text or quoted character that begins at `at`; `None` if none does.
fn end_of_text(chars: &[char], at: usize) -> Option<usize> {
    let after_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if chars[at] == 'r' && !after_word {
        let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
        if chars.get(at + 1 + hashes) == Some(&'"') {
            let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let body = at + 2 + hashes;
            let end = (body..chars.len()).find(|&i| chars[i..].starts_with(&close));
            return Some(end.map_or(chars.len(), |end| end + close.len()));
        }
    }
    let quote = chars[at];
    let is_character = chars.get(at + 1) == Some(&'\\') || chars.get(at + 2) == Some(&'\'');
    if quote != '"' && !(quote == '\'' && is_character) {
        return None;
    }
    let mut at = at + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    Some(at + 1)
}

/// The names that a path may begin with after `tokens[at]`, which is `::`: one, or those of a `{…}` group,
/// each with what follows it.
fn next_names(tokens: &[Token], at: usize) -> Vec<(usize, &str)> {
    if tokens.get(at + 1).is_none_or(|token| token.text != "{") {
        return tokens.get(at + 1).map(|token| (at + 1, token.text.as_str())).into_iter().collect();
    }
    let (mut depth, mut expected, mut names) = (0, false, Vec::new());
    for (place, token) in tokens.iter().enumerate().skip(at + 1) {
        match token.text.as_str() {
            "{" => (depth, expected) = (depth + 1, depth == 0),
            "}" => depth -= 1,
            "," => expected = depth == 1,
            name if expected => {
                names.push((place, name));
                expected = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// How deep in its crate the module of a file is: `eval/mod.rs` and `eval.rs` are 1, `eval/split.rs` is 2, and
/// `graph/split.rs`, whose crate is `graph`, is 1.
fn depth(file: &Path) -> usize {
    let parts = file.components().count() - usize::from(is_crate(&module_of(file)));
    if file.file_name().is_some_and(|name| name == "mod.rs") { parts - 1 } else { parts }
}

fn is_crate(module: &str) -> bool {
    CRATES.iter().any(|(name, _)| *name == module)
}

/// The crate of a module; `None` for the facade.
fn crate_of(module: &str) -> Option<&str> {
    let home = if BESIDE_GRAPH.contains(&module) { "graph" } else { module };
    is_crate(home).then_some(home)
}

/// Where the file at a place of the tree lies.
fn lies(file: &Path) -> String {
    match crate_of(&module_of(file)) {
        None => format!("src/{}", file.display()),
        Some(home) => {
            let rest = file.strip_prefix(home).unwrap_or(file).display().to_string();
            format!("crates/{home}/src/{}", if rest == "mod.rs" { "lib.rs" } else { &rest })
        }
    }
}

/// Every breach of the law in the text of `file`, a place in the tree.
fn breaches(file: &Path, source: &str) -> Vec<String> {
    let module = module_of(file);
    let Some(Module { name, knows }) = LAW.iter().find(|entry| entry.name == module) else {
        return vec![format!("{}: the law has no module {module}", lies(file))];
    };
    let home = crate_of(name);
    let tokens = tokens(source);
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    let mut blame = |at: usize, what: String| {
        found.push(format!("{}:{}: {what}", lies(file), tokens[at].line));
    };
    // The modules written inside the file, each by the depth of braces at which it ends.
    let (mut braces, mut inner) = (0, Vec::new());
    for at in 0..tokens.len() {
        match text(at) {
            "{" => {
                if at > 1 && text(at - 2) == "mod" {
                    inner.push(braces);
                }
                braces += 1;
            }
            "}" => {
                braces -= 1;
                inner.pop_if(|opened_at| *opened_at == braces);
            }
            word if PRINTING.contains(&word) && text(at + 1) == "!" && !is_test(file, &tokens, at) => {
                blame(at, format!("the library does not print, but has {word}!"));
            }
            "process" if text(at + 1) == "::" => {
                for (place, called) in next_names(&tokens, at + 1) {
                    if ["exit", "abort"].contains(&called) {
                        blame(place, format!("the library does not exit, but has process::{called}"));
                    }
                }
            }
            word if TENSOR_CRATES.contains(&word) && *name != "tensor" && text(at + 1) == "::" => {
                blame(at, format!("only tensor may name {word}"));
            }
            "crate" | "super" if text(at + 1) == "::" => {
                let supers =
                    (0..).take_while(|i| text(at + 2 * i) == "super" && text(at + 2 * i + 1) == "::");
                let supers = supers.count();
                let to_root = text(at) == "crate" || supers == depth(file) + inner.len();
                let is_first = at == 0 || text(at - 1) != "::";
                if !(to_root && is_first) {
                    continue;
                }
                for (place, other) in next_names(&tokens, at + 2 * supers.max(1) - 1) {
                    let generated = other == "generate" && is_test(file, &tokens, at);
                    // In a crate of its own, a name at the root is its own unless it is another module.
                    let own = match home {
                        None => ANYBODYS.contains(&other),
                        Some("graph") => !BESIDE_GRAPH.contains(&other),
                        Some(_) => true,
                    };
                    if !(own || other == *name || knows.contains(&other) || generated) {
                        blame(place, format!("{name} may not know {other}"));
                    }
                }
            }
            // Otherwise a path could go round the law.
            word if home.is_none() && word.starts_with("ruleguider_") && text(at + 1) == "::" => {
                blame(at, format!("the facade's modules write crate:: where this has {word}::"));
            }
            _ => {}
        }
    }
    found
}

/// Whether a token belongs to a test: tests may print what they skip, and use generated graphs.
fn is_test(file: &Path, tokens: &[Token], at: usize) -> bool {
    let marked =
        |window: &[Token]| window[0].text == "cfg" && window[1].text == "(" && window[2].text == "test";
    let in_tests = file.with_extension("").components().any(|part| part.as_os_str() == "tests");
    in_tests || tokens[..at].windows(3).any(marked)
}

/// The names of the types that the text of a file declares `pub`, each with its line; those of tests are left out.
fn public_types(file: &Path, source: &str) -> Vec<(String, usize)> {
    let tokens = tokens(source);
    let declared = |at: usize| {
        let [public, kind, name] = tokens.get(at..at + 3)? else { return None };
        let is_type =
            public.text == "pub" && ["struct", "enum", "union", "trait", "type"].contains(&&*kind.text);
        (is_type && !is_test(file, &tokens, at)).then(|| (name.text.clone(), name.line))
    };
    (0..tokens.len()).filter_map(declared).collect()
}

/// Whether other crates can come to the module of a file through modules alone: `pub mod` all the way down.
fn is_public_module(file: &Path, files: &[(PathBuf, String)]) -> bool {
    let own = if file.ends_with("mod.rs") { file.parent().unwrap_or(file) } else { file };
    let (Some(name), Some(parent)) = (own.file_stem(), own.parent()) else { return true };
    if parent == Path::new("") {
        return true;
    }
    let homes = [parent.join("mod.rs"), parent.with_extension("rs")];
    files.iter().filter(|(other, _)| homes.contains(other)).any(|(other, source)| {
        let declared = |three: &[Token]| {
            three[0].text == "pub" && three[1].text == "mod" && name.to_str() == Some(&three[2].text)
        };
        tokens(source).windows(3).any(declared) && is_public_module(other, files)
    })
}

/// The names in the `pub use` lines of a text.
fn handed_on(source: &str) -> Vec<String> {
    let (tokens, mut names) = (tokens(source), Vec::new());
    for at in 1..tokens.len() {
        if tokens[at - 1].text == "pub" && tokens[at].text == "use" {
            let line = tokens[at..].iter().take_while(|token| token.text != ";");
            names.extend(line.map(|token| token.text.clone()));
        }
    }
    names
}

/// Every name by which other crates can call a type of each of two modules, with both places.
fn shared_names(files: &[(PathBuf, String)]) -> Vec<String> {
    let mut exported: HashSet<(String, String)> = HashSet::new();
    for (file, source) in files {
        exported.extend(handed_on(source).into_iter().map(|name| (module_of(file), name)));
    }
    let mut first: HashMap<String, (String, String)> = HashMap::new();
    let mut found = Vec::new();
    for (file, source) in files {
        let (module, reached) = (module_of(file), is_public_module(file, files));
        for (name, line) in public_types(file, source) {
            let place = format!("{}:{line}", lies(file));
            if !reached && !exported.contains(&(module.clone(), name.clone())) {
                continue;
            }
            match first.get(&name) {
                Some((other, before)) if *other != module => {
                    found.push(format!("{place}: {name} is already a public type of {other}, {before}"));
                }
                Some(_) => {}
                None => {
                    first.insert(name, (module.clone(), place));
                }
            }
        }
    }
    found
}

/// The module of a file, a place in the tree.
fn module_of(file: &Path) -> String {
    let first = file.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    first.unwrap_or_default().trim_end_matches(".rs").to_owned()
}

/// Every file of the library, by its place in the tree, with its text, in the order of the places.
fn library() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for home in std::iter::once(None).chain(CRATES.iter().map(|(name, _)| Some(*name))) {
        let src = home.map_or(root.to_owned(), |name| root.join("crates").join(name)).join("src");
        let mut paths = Vec::new();
        sources(&src, &mut paths);
        assert!(paths.len() > 5, "{} was not found", src.display());
        for path in paths {
            let text = fs::read_to_string(&path).expect("sources can be read");
            let below = path.strip_prefix(&src).expect("it was found there");
            files.push((home.map_or(below.to_owned(), |name| place(name, below)), text));
        }
    }
    files.sort();
    files
}

/// The place in the tree of a file of the crate `home`.
fn place(home: &str, below: &Path) -> PathBuf {
    let beside = home == "graph" && BESIDE_GRAPH.iter().any(|name| below.starts_with(name));
    match below {
        _ if beside => below.to_owned(),
        _ if below == Path::new("lib.rs") => Path::new(home).join("mod.rs"),
        _ => Path::new(home).join(below),
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("sources can be read") {
        let path = entry.expect("sources can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_modules_keep_the_law() {
    let files = library().into_iter().filter(|(file, _)| file != Path::new("lib.rs"));
    let found: Vec<String> = files.flat_map(|(file, text)| breaches(&file, &text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_crate_names_those_below_it_alone() {
    for (name, allowed) in CRATES {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("a crate has a manifest");
        let (dependencies, _) = text
            .split_once("[dev-dependencies]")
            .unwrap_or(text.split_once("[lints]").expect("it has lints"));
        let named = dependencies.lines().filter_map(|line| line.strip_prefix("ruleguider-"));
        let named: Vec<&str> = named.filter_map(|rest| rest.split(['.', ' ']).next()).collect();
        assert_eq!(named, allowed, "{}", manifest.display());
    }
}

#[test]
fn one_public_name_means_one_thing() {
    let found = shared_names(&library());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_name_that_two_modules_share_is_found() {
    let file = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let files = [
        file("graph/mod.rs", "mod a; mod b; pub use a::{Stage, Step}; pub use b::Shape;"),
        file("graph/a.rs", "pub struct Stage; pub(super) enum Step {} // pub struct Shape;"),
        file("graph/b.rs", "pub trait Stage {} #[cfg(test)] mod tests { pub struct Answer; }"),
        file("rule/mod.rs", "struct Stage; pub enum Step {}\npub struct Shape<T>(T); pub enum Answer {}"),
        file("walk/mod.rs", "mod inner; pub mod open;"),
        file("walk/inner.rs", "pub struct Stage; pub enum Step {}"),
        file("walk/open/mod.rs", "mod deep;"),
        file("walk/open/deep.rs", "pub struct Step;"),
    ];
    assert_eq!(shared_names(&files), Vec::<String>::new());
    for (path, text, said) in [
        (
            "eval/mod.rs",
            "\n/// A step.\npub enum Step {}",
            "src/eval/mod.rs:3: Step is already a public type of rule",
        ),
        (
            "walk/open/a.rs",
            "pub type Answer = u8;",
            "src/walk/open/a.rs:1: Answer is already a public type of rule",
        ),
    ] {
        let mut files = files.to_vec();
        files[6].1 = "mod deep; pub mod a;".to_owned();
        files.push(file(path, text));
        assert_eq!(
            shared_names(&files),
            [format!("{said}, crates/rule/src/lib.rs:{}", 1 + usize::from(said.contains("Answer")))]
        );
    }
}

fn check(file: &str, source: &str) -> Vec<String> {
    breaches(Path::new(file), source)
}

#[test]
fn what_the_law_allows_passes() {
    for (file, source) in [
        ("rule/mine/walk.rs", "use ruleguider_graph::{Graph, Link};\nuse crate::count::count;"),
        ("eval/apply.rs", "use crate::graph::{Answers, Reasoner};\nuse crate::progress::Progress;"),
        ("generate/mod.rs", "use crate::{Graph, ids::Link};"),
        ("eval/read/mod.rs", "use super::super::graph::Triple; // crate::walk\nfn walk() {}"),
        ("eval/a.rs", "/* crate::rule */ const A: &str = \"crate::walk println!()\"; const B: char = '\"';"),
        ("eval/b.rs", "fn f<'a>(x: &'a str) { let r = r#\"crate::eval \"quoted\" \"#; }"),
        ("walk/tests/d.rs", "use crate::generate::family; fn skip() { eprintln!(); }"),
        (
            "graph/c.rs",
            "#[cfg(test)] mod tests { use super::super::Triple; use crate::generate::family; fn t() { eprintln!(); } }",
        ),
        ("eval/mod.rs", "pub(in crate::eval) fn f() { rule::x(); }"),
        ("walk/mod.rs", "use crate::{train::TrainingPlan, graph::{self, Graph}, tensor};"),
        ("tensor/cuda.rs", "use cudarc::driver::CudaContext;"),
    ] {
        assert_eq!(check(file, source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn planted_breaches_are_found() {
    for (file, source, said) in [
        ("eval/mod.rs", "use crate::rule::Rule;", "src/eval/mod.rs:1: eval may not know rule"),
        (
            "eval/a.rs",
            "\n\nuse crate::{\n  progress,\n  walk::Beam};",
            "src/eval/a.rs:5: eval may not know walk",
        ),
        (
            "graph/mod.rs",
            "use crate::generate::family;",
            "crates/graph/src/lib.rs:1: graph may not know generate",
        ),
        (
            "graph/read/a.rs",
            "use super::super::shard::Part;",
            "crates/graph/src/read/a.rs:1: graph may not know shard",
        ),
        (
            "shard/a.rs",
            "use super::super::{Graph, generate};",
            "crates/graph/src/shard/a.rs:1: shard may not know generate",
        ),
        (
            "eval/a.rs",
            "use ruleguider_rule::Rule;",
            "src/eval/a.rs:1: the facade's modules write crate:: where this has ruleguider_rule::",
        ),
        ("eval/a.rs", "fn f() { crate::embed::train() }", "src/eval/a.rs:1: eval may not know embed"),
        ("walk/a.rs", "use crate::generate::family;", "src/walk/a.rs:1: walk may not know generate"),
        ("walk/a.rs", "use crate::rule::Rule;", "src/walk/a.rs:1: walk may not know rule"),
        ("walk/a.rs", "use crate::{embed::Embedding};", "src/walk/a.rs:1: walk may not know embed"),
        ("train/a.rs", "use crate::walk::Walker;", "src/train/a.rs:1: train may not know walk"),
        ("eval/mod.rs", "use super::walk::Walker;", "src/eval/mod.rs:1: eval may not know walk"),
        (
            "rule/a.rs",
            "fn f() { println!(\"x\") }",
            "crates/rule/src/a.rs:1: the library does not print, but has println!",
        ),
        (
            "rule/a.rs",
            "fn f() { std::process::exit(1) }",
            "crates/rule/src/a.rs:1: the library does not exit, but has process::exit",
        ),
        (
            "rule/a.rs",
            "use std::process::{Command, exit};",
            "crates/rule/src/a.rs:1: the library does not exit, but has process::exit",
        ),
        ("walk/a.rs", "use cudarc::driver::*;", "src/walk/a.rs:1: only tensor may name cudarc"),
        ("helpers/mod.rs", "", "src/helpers/mod.rs: the law has no module helpers"),
    ] {
        assert_eq!(check(file, source), [said], "{source}");
    }
}
