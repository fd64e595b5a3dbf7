//! `ruleguider mine` and `ruleguider apply`, as a user runs them.

use serde_json::Value;
use std::collections::HashMap;
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
fn a_confidence_counts_all_predictions_or_those_about_the_known() {
    let folder = tempfile::tempdir().unwrap();
    let data = family(folder.path(), "200");
    let out = |name: &str| folder.path().join(name);
    let mine = |confidence: &str, threads: &str| {
        let base = ["mine", data.to_str().unwrap(), "--samples", "5000", "--types", "cyclic,acyclic"];
        let given = ["--confidence", confidence, "--threads", threads];
        ruleguider(&base).args(given).arg("--out").arg(out(confidence)).output().unwrap()
    };
    let counts = |confidence: &str| -> HashMap<String, [u64; 2]> {
        let text = fs::read_to_string(out(confidence)).unwrap();
        let rule = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            (fields[3].to_owned(), [fields[0].parse().unwrap(), fields[1].parse().unwrap()])
        };
        text.lines().map(rule).collect()
    };
    assert!(mine("standard", "2").status.success() && mine("pca", "1").status.success());
    let (standard, pca, once) = (counts("standard"), counts("pca"), fs::read(out("pca")).unwrap());
    assert_eq!(standard.len(), pca.len());
    assert!(standard.iter().all(|(rule, [all, correct])| pca[rule][0] <= *all && pca[rule][1] == *correct));
    assert!(standard.iter().any(|(rule, [all, _])| pca[rule][0] < *all));
    assert!(
        mine("pca", "2").status.success() && fs::read(out("pca")).unwrap() == once,
        "whatever the threads"
    );
    let chosen = mine("validation", "2");
    let printed = String::from_utf8_lossy(&chosen.stderr);
    assert!(
        printed.contains("with standard confidence") && printed.contains("with PCA confidence"),
        "{printed}"
    );
    let better = if printed.contains("PCA it is") { pca } else { standard };
    assert_eq!(counts("validation"), better);
    let learnt = ["--samples", "9", "--out", "x.tsv", "--confidence", "validation", "--learn-valid"];
    let refused = ruleguider(&["mine", data.to_str().unwrap()]).args(learnt).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give standard or pca"));
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
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["family", "rules.tsv"]);
}

#[test]
fn mistakes_end_with_code_2_and_one_line_that_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let data = family(folder.path(), "100");
    let data = data.to_str().unwrap();
    let bad = folder.path().join("bad.tsv");
    fs::write(&bad, "3\t2\t0.6\tnobody(X,Y) <= nothing(X,Y)\n").unwrap();
    let out = folder.path().join("rules.tsv");
    let empty = folder.path().join("empty.tsv");
    fs::write(&empty, "").unwrap();
    let in_file = format!("{}/rules.tsv", bad.display());
    let (bad, out, empty) = (bad.to_str().unwrap(), out.to_str().unwrap(), empty.to_str().unwrap());
    for (arguments, printed) in [
        (vec!["apply", data, "--rules", bad], "bad.tsv:1:9: the data has no relation `nobody`"),
        (vec!["apply", data, "--rules", "none.tsv"], "none.tsv: cannot read the rules"),
        (vec!["mine", data, "--out", out, "--heads", "nobody"], "--heads: the data has no relation `nobody`"),
        (
            vec!["mine", data, "--out", out, "--max-length", "0"],
            "`max_length`: expected a whole number from 1 to 22, found 0",
        ),
        (
            vec!["mine", data, "--out", out, "--min-confidence", "2"],
            "`min_confidence`: expected a number from 0 to 1, found 2",
        ),
        (vec!["mine", data, "--out", &in_file, "--seconds", "600"], "bad.tsv/rules.tsv: cannot be written"),
        (
            vec!["apply", data, "--rules", bad, "--top", "0"],
            "`top`: expected a whole number, 1 or more, found 0",
        ),
        (
            vec!["apply", data, "--rules", bad, "--unseen", "nan"],
            "`unseen`: expected a finite number, 0 or more, found NaN",
        ),
        (
            vec!["apply", data, "--rules", bad, "--split", "valid", "--learn-valid"],
            "drop one of the two options",
        ),
        (
            vec!["apply", data, "--rules", empty, "--predictions", &in_file],
            "bad.tsv/rules.tsv: cannot be written",
        ),
        (vec!["convert", data, data, "--force"], "is the input; choose another output"),
    ] {
        let output = run(&[&arguments[..], &["--quiet"]].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.lines().count() == 1 && message.contains(printed), "{message}");
    }
}

/// A data set with a graph of its own: `dan` is only in the validation split, `eve` in no graph at all.
fn with_own_graph(folder: &Path) -> PathBuf {
    let data = folder.join("own");
    fs::create_dir(&data).expect("the folder of the test can be written to");
    for (name, text) in [
        ("graph.tsv", "ann\tknows\tbob\nann\tlikes\tbob\nbob\tknows\tcat\nbob\tlikes\tcat\n"),
        ("train.tsv", "ann\tlikes\tbob\n"),
        ("valid.tsv", "cat\tknows\tdan\n"),
        ("test.tsv", "cat\tlikes\tdan\n"),
        ("test_with_unseen.tsv", "cat\tlikes\tdan\neve\tlikes\tann\n"),
    ] {
        fs::write(data.join(name), text).expect("the folder of the test can be written to");
    }
    data
}

#[test]
fn a_graph_of_its_own_hands_the_validation_facts_over_for_the_test_split() {
    let folder = tempfile::tempdir().unwrap();
    let data = with_own_graph(folder.path());
    let rules = folder.path().join("rules.tsv");
    fs::write(&rules, "2\t2\t1.0\tlikes(X,Y) <= knows(X,Y)\n").unwrap();
    let apply = |more: &[&str]| {
        let mut command = ruleguider(&["apply", data.to_str().unwrap(), "--json", "--direction", "both"]);
        command.arg("--rules").arg(&rules).args(more).output().unwrap()
    };
    let output = apply(&[]);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("1 test facts with an entity that is not in the graph"), "{printed}");
    let report = json(&output);
    assert_eq!((&report["hits@1"], &report["left_out"]), (&1.0.into(), &2.into()), "{report}");
    let report = json(&apply(&["--split", "valid", "--quiet"]));
    assert_eq!((&report["queries"], &report["left_out"]), (&2.into(), &0.into()), "{report}");
}

#[test]
fn entities_called_like_variables_stand_in_rules_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("blood.tsv");
    let facts = (0..60).map(|i| {
        let group = ["A", "B", "O"][i % 3];
        format!("p{i}\tgroup\t{group}\np{i}\tgives_to\t{group}\np{i}\tknows\tp{}\n", (i + 3) % 60)
    });
    fs::write(&data, facts.collect::<String>()).unwrap();
    let (data, rules) = (data.to_str().unwrap(), folder.path().join("new/folder/rules.tsv"));
    let rules = rules.to_str().unwrap();
    let types = ["--types", "acyclic,zero", "--max-acyclic-length", "2", "--samples", "2000"];
    let mined = json(&run(&[&["mine", data, "--out", rules, "--json", "--quiet"], &types[..]].concat()));
    assert!(mined["rules"].as_u64().unwrap() > 10, "{mined}");
    assert!(fs::read_to_string(rules).unwrap().contains("group(X,\"A\") <= gives_to(X,\"A\")"));
    let report = json(&run(&["apply", data, "--rules", rules, "--json", "--quiet"]));
    assert!(report["mrr"].as_f64().unwrap() > 0.5, "{report}");
    let out = folder.path().join("run");
    let arguments = ["run", data, "--out", out.to_str().unwrap(), "--set", "system=rules", "--quiet"];
    let output = run(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
