//! Files that unpack or expand to far more than they are, machines with little memory, full disks behind stdout: each ends
//! in one clear line and exit code 2, and takes no more memory than what was read deserves.
#![cfg(unix)]

use crate::tool::{Tool, text};
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs the program in a shell that has set `limit` before, such as `ulimit -v 300000`.
fn limited(tool: &Tool, limit: &str, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_ruleguider");
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{limit}; exec \"$0\" \"$@\""), program]).args(arguments);
    command.current_dir(tool.folder.path()).output().expect("bash is everywhere")
}

/// What is said by the one line of a program that ends with exit code 2 for want of nothing but good input.
#[track_caller]
fn refused(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    message.trim_end().to_owned()
}

/// A file that unpacks to `begin` and then to `piece` so many times.
fn packed(tool: &Tool, name: &str, begin: &[u8], piece: &[u8], times: usize) -> PathBuf {
    let path = tool.path(name);
    let file = std::fs::File::create(&path).expect("a file of the test");
    let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packer.write_all(begin).expect("packing");
    let many = piece.repeat((1 << 16) / piece.len());
    for _ in 0..times.div_ceil(many.len() / piece.len()) {
        packer.write_all(&many).expect("packing");
    }
    packer.finish().expect("packing");
    path
}

#[test]
fn entities_that_expand_without_end_are_refused() {
    let tool = Tool::new();
    let mut bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE rdf:RDF [\n<!ENTITY a0 \"lol\">\n".to_owned();
    for i in 1..=10 {
        bomb += &format!("<!ENTITY a{i} \"{}\">\n", format!("&a{};", i - 1).repeat(10));
    }
    bomb += "]>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:p=\"http://p/\">\n\
             <rdf:Description rdf:about=\"http://x\"><p:y>&a10;</p:y></rdf:Description></rdf:RDF>\n";
    let path = tool.write("bomb.rdf", &bomb);
    let message = refused(&limited(&tool, "ulimit -v 300000", &["stats", text(&path), "--threads", "2"]));
    assert!(message.contains("bomb.rdf:10: expected entities that do not expand to much more"), "{message}");
    // Entities as vocabularies use them stay what they are.
    let unused = |line: &&str| !(2..=10).any(|i| line.starts_with(&format!("<!ENTITY a{i} ")));
    let small: Vec<&str> = bomb.lines().filter(unused).collect();
    let path = tool.write("small.rdf", &small.join("\n").replace("&a10;", "&a1;"));
    tool.done(&["convert", text(&path), "small.tsv", "--quiet"]);
    let converted = std::fs::read_to_string(tool.path("small.tsv")).unwrap();
    assert_eq!(converted, format!("http://x\thttp://p/y\t\"{}\"\n", "lol".repeat(10)));
}

#[test]
fn memory_is_bounded_by_what_is_read() {
    let tool = Tool::new();
    let large = 300 << 20;
    for (name, begin, piece, expected) in [
        (
            "line.tsv.gz",
            &b""[..],
            &b"x"[..],
            "line.tsv.gz:1: expected a line of 3 tab-separated fields, found a line of more than 16 MB",
        ),
        (
            "nul.tsv.gz",
            b"a\tr\tb\n",
            b"\0",
            "nul.tsv.gz:2: expected a line of 3 tab-separated fields, found a line of more than 16 MB",
        ),
        (
            "quote.csv.gz",
            b"a,r,b\nc,r,\"",
            b"d\n",
            "quote.csv.gz:2: expected a record of at most 16 MB (a quote left open?), found more",
        ),
        ("commas.csv.gz", b"", b",", "commas.csv.gz:1: expected a record of at most 16 MB"),
        (
            "zeros.parquet.gz",
            b"",
            b"\0",
            "zeros.parquet.gz: expected a Parquet file, found an error: it does not begin with the Parquet magic bytes",
        ),
        ("text.nt.gz", b"<http://a> <http://r> \"", b"x", "text.nt.gz:1: expected"),
        ("text.ttl.gz", b"<http://a> <http://r> \"\"\"", b"x", "text.ttl.gz:1: expected"),
        (
            "text.rdf.gz",
            b"<?xml version=\"1.0\"?><!--",
            b"x",
            "text.rdf.gz:1: expected a statement of at most 16 MB, found more",
        ),
    ] {
        let path = packed(&tool, name, begin, piece, large / piece.len());
        let output =
            limited(&tool, "ulimit -v 350000", &["convert", text(&path), "out.tsv", "--threads", "2"]);
        let message = refused(&output);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_decoder_that_gives_up_says_nothing_of_its_own() {
    let tool = Tool::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/parquet/negative_length");
    // The first byte is the fuzzer's own.
    std::fs::write(tool.path("bad.parquet"), &std::fs::read(corpus).unwrap()[1..]).unwrap();
    let message = tool.refused(&["stats", "bad.parquet"]);
    assert!(
        message.contains("bad.parquet: expected a Parquet file, found an error: its pages contradict"),
        "{message}"
    );
}

#[test]
fn copies_are_removed_while_reading() {
    let tool = Tool::new();
    let path = packed(&tool, "copies.tsv.gz", b"a\tr\tb\n", b"c\tr\td\n", 40_000_000);
    let arguments = ["convert", text(&path), "out.tsv", "--threads", "2"];
    let output = limited(&tool, "ulimit -v 400000", &arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(message.contains("duplicate lines left out"), "{message}");
    assert_eq!(std::fs::read_to_string(tool.path("out.tsv")).unwrap(), "a\tr\tb\nc\tr\td\n");
}

/// What the program itself takes, unoptimised, in kilobytes: with less the system cannot even begin it.
const PROGRAM: usize = 50_000;

#[test]
fn little_memory_is_said() {
    let tool = Tool::new();
    let mut refusals = 0;
    for kilobytes in [20_000, 30_000, 40_000, 60_000, 70_000, 80_000, 90_000, 100_000, 120_000] {
        let out = format!("run{kilobytes}");
        let arguments = ["run", "--quiet", "--out", &out, "--set", "system=rules"];
        let output = limited(&tool, &format!("ulimit -v {kilobytes}"), &arguments);
        // Where not even the C library, or the program itself, finds room, it has not begun.
        let small = kilobytes < PROGRAM && !String::from_utf8_lossy(&output.stderr).contains("ruleguider: ");
        if output.status.code() == Some(127) || small {
            continue;
        }
        if !output.status.success() {
            let message = refused(&output);
            let short = message.starts_with("ruleguider: out of memory: ") && message.contains("(ulimit -v)");
            assert!(short || message.contains("threads could not be started"), "{message}");
            refusals += 1;
        }
    }
    assert!(refusals > 0, "there is no limit too small");
    // A table that cannot be had is named by its size.
    let many: String = (0..60_000).map(|i| format!("e{i}\tr\te{}\n", (i * 7) % 60_000)).collect();
    let path = tool.write("many.tsv", &many);
    let arguments =
        ["embed", text(&path), "--model", "complex", "--set", "dimension=2000", "--out", "w", "--quiet"];
    let message = refused(&limited(&tool, "ulimit -v 700000", &arguments));
    assert!(
        message.starts_with("ruleguider: out of memory: ") && message.contains(" MB more were needed"),
        "{message}"
    );
}

#[test]
fn threads_that_cannot_be_started_are_said() {
    let tool = Tool::new();
    let arguments = ["run", "--quiet", "--out", "run", "--set", "system=rules", "--threads", "1000"];
    let message = refused(&limited(&tool, "ulimit -v 300000", &arguments));
    assert!(message.contains("--threads 1000: only") && message.contains("can be started"), "{message}");
}

#[test]
fn a_file_that_may_not_grow_is_said_like_a_full_disk() {
    let tool = Tool::new();
    let arguments = ["generate", "family", "--people", "2000", "--out", "data", "--quiet"];
    let message = refused(&limited(&tool, "ulimit -f 16", &arguments));
    assert!(message.contains("cannot be written: File too large"), "{message}");
    let left: Vec<_> = std::fs::read_dir(tool.path("data")).map_or_else(|_| Vec::new(), Iterator::collect);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_full_disk_behind_stdout_is_said() {
    let tool = Tool::new();
    let path = tool
        .write("facts.tsv", &(0..60).map(|i| format!("a{}\tr\tb{}\n", i % 12, i % 7)).collect::<String>());
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["mine", "--help"],
        &["stats", text(&path), "--quiet"],
        &["stats", text(&path), "--quiet", "--json"],
        &["completions", "bash"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full is everywhere");
        let output = tool.command(arguments).stdout(full).output().unwrap();
        let message = refused(&output);
        assert!(
            message.starts_with("ruleguider: stdout: cannot be written: No space left"),
            "{arguments:?}: {message}"
        );
    }
}

/// A graph of so many relations with three facts each.
fn many_relations(tool: &Tool, relations: u64) -> PathBuf {
    let fact = |i: u64| format!("e{}\tr{}\te{}\n", i * 7919 % 5003, i % relations, i * 104_729 % 5003);
    tool.write("relations.tsv", &(0..3 * relations).map(fact).collect::<String>())
}

/// Waits for the end of a child that should come soon; how it ended.
#[track_caller]
fn ends_within(mut child: std::process::Child, seconds: u64) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        if let Some(status) = child.try_wait().expect("a child can be asked") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
    panic!("it did not hear the clock");
}

// What does not hear the clock takes many minutes here, so that no machine is too slow for these bounds.
#[test]
fn many_relations_hear_the_clock() {
    let tool = Tool::new();
    let path = many_relations(&tool, 200_000);
    let types = ["--types", "cyclic,acyclic,zero", "--max-acyclic-length", "2"];
    let arguments =
        [&["mine", text(&path), "--seconds", "1", "--out", "rules.tsv", "--quiet"][..], &types].concat();
    let child = tool.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
    assert_eq!(ends_within(child, 60), Some(0));
    let arguments = [&["mine", text(&path), "--seconds", "900", "--out", "rules.tsv"][..], &types].concat();
    let child = tool.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("kill is everywhere").success());
    assert_eq!(ends_within(child, 60), Some(130));
}

/// A hub with 300,000 neighbours beside a chain of 100,000: in both, nearly all entities are answers equally often.
fn star_and_chain(tool: &Tool) -> PathBuf {
    let star = (0..300_000).map(|leaf| format!("hub\thas\tleaf{leaf}\n"));
    let chain = (0..100_000).map(|at| format!("c{at}\tnext\tc{}\n", at + 1));
    tool.write("star.tsv", &star.chain(chain).collect::<String>())
}

/// The mean rank of the held-out links of the chain, in both directions. No rule predicts them, so before an entity are those
/// that are an answer in the graph, and it is tied with all others.
fn mean_rank_by_counting(tool: &Tool) -> f64 {
    let facts = |split: &str| {
        std::fs::read_to_string(tool.path(&format!("splits/{split}.tsv"))).expect("a split that was written")
    };
    let ends = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        [fields[0].to_owned(), fields[2].to_owned()]
    };
    let train = facts("train");
    let links: Vec<[String; 2]> = train.lines().filter(|line| line.contains("\tnext\t")).map(ends).collect();
    let entities = 300_000 + 1 + 100_001;
    let mut ranks = Vec::new();
    for way in [0, 1] {
        let answers: HashSet<&str> = links.iter().map(|link| link[1 - way].as_str()).collect();
        for line in facts("test").lines() {
            let subject = &ends(line)[way];
            let above = answers.len() - usize::from(answers.contains(subject.as_str()));
            ranks.push(1.0 + above as f64 + (entities - 1 - above) as f64 / 2.0);
        }
    }
    ranks.iter().sum::<f64>() / ranks.len() as f64
}

#[test]
fn a_star_keeps_to_its_minutes_and_is_ranked_without_listing_it_for_every_query() {
    let tool = Tool::new();
    let path = star_and_chain(&tool);
    let arguments =
        ["run", text(&path), "--minutes", "0.1", "--set", "system=rules", "--out", "run", "--quiet"];
    let child = tool.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
    assert_eq!(ends_within(child, 120), Some(0));
    tool.done(&["convert", "run/data.rg", "splits", "--quiet"]);
    let arguments =
        ["apply", "splits", "--rules", "run/rules.tsv", "--direction", "both", "--json", "--quiet"];
    let ranked = std::fs::File::create(tool.path("ranked.json")).unwrap();
    let child = tool.command(&arguments).stdout(ranked).spawn().unwrap();
    assert_eq!(ends_within(child, 60), Some(0));
    let ranked: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(tool.path("ranked.json")).unwrap()).unwrap();
    let (found, expected) = (ranked["mean_rank"].as_f64().unwrap(), mean_rank_by_counting(&tool));
    assert!((found - expected).abs() < 1e-6 * expected, "{found} {expected}");
    // A run's own figures: also those of its probabilities.
    let mut evaluating = tool.command(&["evaluate", "run", "--direction", "both", "--quiet"]);
    assert_eq!(ends_within(evaluating.stdout(Stdio::null()).spawn().unwrap(), 60), Some(0));
}

#[test]
fn a_run_over_many_relations_keeps_to_its_minutes() {
    let tool = Tool::new();
    let path = many_relations(&tool, 100_000);
    let arguments = ["run", text(&path), "--minutes", "0.1", "--out", "run", "--quiet"];
    let child = tool.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
    assert_eq!(ends_within(child, 120), Some(0));
}

#[test]
fn someone_who_waits_for_queries_can_be_interrupted() {
    use std::io::{BufRead, BufReader};
    let tool = Tool::new();
    tool.demonstration();
    let mut command = tool.command(&["predict", "run", "--file", "-", "--quiet"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"Ilse_Hagenthal\tcousin_of\n").unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(answers.next().unwrap().unwrap().starts_with("{\"line\":1,"));
    // Stdin stays open: nothing more comes, and nothing ends.
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("kill is everywhere").success());
    assert_eq!(ends_within(child, 30), Some(130));
    drop(stdin);
}

#[cfg(unix)]
#[test]
fn a_small_stack_is_enough() {
    let tool = Tool::new();
    // With even less, the system itself may have to end it before it can say anything; it works or says why not.
    for arguments in
        [&["generate", "family", "--people", "60", "--out", "little", "--force"][..], &["--help"]]
    {
        let output = limited(&tool, "ulimit -s 32", arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        let is_refused =
            output.status.code() == Some(2) && message.lines().count() == 1 && message.contains("stack");
        assert!(output.status.success() || is_refused, "{:?}: {message}", output.status);
    }
    for kilobytes in [64, 128, 1024] {
        let limit = format!("ulimit -s {kilobytes}");
        let output = limited(
            &tool,
            &limit,
            &["generate", "family", "--people", "60", "--out", "set", "--force", "--quiet"],
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{kilobytes} kB: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let output = limited(&tool, &limit, &["stats", "set"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{kilobytes} kB: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
