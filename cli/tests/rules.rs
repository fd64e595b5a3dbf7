//! `ruleguider mine` and `ruleguider apply`, as a user runs them.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn ruleguider(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ruleguider"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    ruleguider(arguments).output().expect("the program starts")
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON on stdout")
}

fn family(folder: &Path, people: &str) -> PathBuf {
    let data = folder.join("family");
    let out = data.to_str().expect("temporary folders have plain names");
    assert!(run(&["generate", "family", "--people", people, "--out", out, "--quiet"]).status.success());
    data
}

#[test]
fn rules_are_mined_and_applied_and_every_key_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let data = family(folder.path(), "400");
    let (data, rules) = (data.to_str().unwrap(), folder.path().join("rules.tsv.gz"));
    let rules = rules.to_str().unwrap();
    let types = "cyclic,acyclic,zero";
    let mine = ["mine", data, "--samples", "20000", "--types", types, "--out", rules, "--json", "--quiet"];
    let mined = json(&run(&mine));
    let by_type = |key: &str| mined["rules_by_type"][key].as_u64().unwrap();
    let all = by_type("cyclic") + by_type("acyclic") + by_type("zero");
    assert_eq!(mined["rules"], all);
    assert!(by_type("cyclic") > 20 && by_type("acyclic") > 20 && by_type("zero") > 0, "{mined}");
    assert!(mined["seconds"].is_f64() && mined["cpu_seconds"].is_f64() && mined["peak_memory_mb"].is_f64());

    let predictions = folder.path().join("predictions.txt");
    let mut mrr = Vec::new();
    for aggregate in ["maxplus", "max", "noisy-or"] {
        let mut arguments =
            vec!["apply", data, "--rules", rules, "--aggregate", aggregate, "--json", "--quiet"];
        arguments.extend(["--predictions", predictions.to_str().unwrap(), "--direction", "both"]);
        let report = json(&run(&arguments));
        for key in ["queries", "left_out", "hits@1", "hits@3", "hits@5", "hits@10", "mean_rank", "seconds"] {
            assert!(report[key].is_number(), "{key} in {report}");
        }
        assert_eq!((&report["direction"], &report["ties"]), (&"both".into(), &"realistic".into()));
        mrr.push(report["mrr"].as_f64().unwrap());
        let triples = fs::read_to_string(Path::new(data).join("test.tsv")).unwrap().lines().count();
        assert_eq!(fs::read_to_string(&predictions).unwrap().lines().count(), 3 * triples);
    }
    assert!(mrr.iter().all(|&mrr| mrr > 0.4), "{mrr:?}");
}

#[test]
fn the_same_samples_and_seed_give_the_same_file_whatever_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let data = family(folder.path(), "300");
    let mine = |name: &str, threads: &str| {
        let out = folder.path().join(name);
        let base =
            ["mine", data.to_str().unwrap(), "--samples", "5000", "--quiet", "--types", "cyclic,acyclic"];
        let output = ruleguider(&base).args(["--threads", threads, "--out"]).arg(&out).output().unwrap();
        assert!(output.status.success());
        fs::read_to_string(out).unwrap()
    };
    assert_eq!(mine("one.tsv", "1"), mine("two.tsv", "2"));
}

#[test]
fn an_interrupted_miner_leaves_a_complete_file_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let data = family(folder.path(), "3000");
    let out = folder.path().join("rules.tsv");
    let mut command = ruleguider(&["mine", data.to_str().unwrap(), "--seconds", "600", "--max-length", "12"]);
    let child = command.args(["--json", "--out"]).arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    // Bodies of twelve links keep it busy for longer than anyone waits, so the signal always finds it at work;
    // its first line of progress says that the handler is set.
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut String::new()).unwrap();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let rest = std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = fs::read_to_string(&out).unwrap();
    assert_eq!(summary["rules"], text.lines().count());
    assert!(!text.is_empty() && text.ends_with('\n'));
    let applied =
        run(&["apply", data.to_str().unwrap(), "--rules", out.to_str().unwrap(), "--quiet", "--json"]);
    assert!(json(&applied)["mrr"].as_f64().unwrap() > 0.0);
    assert!(!folder.path().join("rules.tsv.partial").exists());
}

#[test]
fn mistakes_end_with_code_2_and_one_line_that_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let data = family(folder.path(), "100");
    let data = data.to_str().unwrap();
    let bad = folder.path().join("bad.tsv");
    fs::write(&bad, "3\t2\t0.6\tnobody(X,Y) <= nothing(X,Y)\n").unwrap();
    let out = folder.path().join("rules.tsv");
    let (bad, out) = (bad.to_str().unwrap(), out.to_str().unwrap());
    for (arguments, said) in [
        (vec!["apply", data, "--rules", bad], "bad.tsv:1:9: the data has no relation `nobody`"),
        (vec!["apply", data, "--rules", "none.tsv"], "none.tsv: cannot read the rules"),
        (vec!["mine", data, "--out", out, "--heads", "nobody"], "--heads: the data has no relation `nobody`"),
        (vec!["mine", data, "--out", out, "--max-length", "0"], "max-length: give a length from 1"),
        (vec!["mine", data, "--out", "no/such/folder/rules.tsv", "--seconds", "1"], "cannot write"),
    ] {
        let output = run(&[&arguments[..], &["--quiet"]].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.lines().count() == 1 && message.contains(said), "{message}");
    }
}
