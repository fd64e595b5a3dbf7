//! Probabilities, and `complete`, as a user meets them on the demonstration graph.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::tool::Tool;
use serde_json::Value;
use std::collections::HashSet;

/// The facts of a file of JSON lines.
fn facts(tool: &Tool, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(tool.path(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn probability(fact: &Value) -> f64 {
    fact["probability"].as_f64().unwrap()
}

#[test]
fn answers_have_probabilities_that_can_be_trusted() {
    let tool = Tool::new();
    let report = tool.demonstration();
    let calibration = &report["calibration"];
    assert!(calibration["ece"].as_f64().unwrap() < 0.03, "{calibration}");
    assert_eq!(calibration["bins"].as_array().unwrap().len(), 10);
    assert_eq!(tool.json(&["evaluate", "run"])["calibration"], *calibration);
    let message = tool.done(&["evaluate", "run"]);
    assert!(
        message.contains("expected calibration error 0.0") && message.contains("0.9 to 1.0"),
        "{message}"
    );
    let prediction = tool.json(&["predict", "run", "Ilse_Hagenthal", "cousin_of"]);
    let answers = prediction["answers"].as_array().unwrap();
    assert!(answers.iter().all(|answer| (0.0..=1.0).contains(&probability(answer))), "{prediction}");
    assert!(answers.windows(2).all(|pair| probability(&pair[0]) >= probability(&pair[1])));
    let first = answers[0]["entity"].as_str().unwrap();
    let explanation = tool.json(&["explain", "run", "Ilse_Hagenthal", "cousin_of", first]);
    assert_eq!(explanation["answers"][0]["probability"], answers[0]["probability"]);
    assert!(
        tool.done(&["explain", "run", "Ilse_Hagenthal", "cousin_of", first]).contains(", probability 0.")
    );
    tool.done(&["report", "run", "--out", "page"]);
    let page = std::fs::read_to_string(tool.path("page/index.html")).unwrap();
    assert!(page.contains("<h3>Probabilities</h3>") && page.contains("Expected calibration error 0.0"));
}

#[test]
fn a_run_without_probabilities_says_so() {
    let tool = Tool::new();
    let rules = ["run", "--out", "run", "--set", "system=rules", "--set", "rules.samples=1000", "--quiet"];
    tool.done(&[&rules[..], &["--set", "data.learn_valid=always"]].concat());
    let output = tool.run(&["predict", "run", "Ilse_Hagenthal", "cousin_of", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("no probabilities: this run has learnt its validation facts"), "{message}");
    let prediction: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(prediction["answers"][0]["probability"].is_null());
    assert!(tool.json(&["evaluate", "run"])["calibration"].is_null());
    let message = tool.refused(&["complete", "run", "--min-probability", "0.5", "--out", "missing.tsv"]);
    assert!(message.contains("this run has learnt its validation facts"), "{message}");
    tool.done(&["complete", "run", "--top", "5", "--out", "missing.jsonl"]);
    assert!(facts(&tool, "missing.jsonl").iter().all(|fact| fact["probability"].is_null()));
    // A file that is not what was written is not trusted.
    tool.write("run/calibration.json", "null ");
    let message = tool.refused(&["predict", "run", "Ilse_Hagenthal", "cousin_of"]);
    assert!(
        message.contains("calibration.json: is missing or has changed since it was written"),
        "{message}"
    );
}

/// How many facts of the test split are among the first so many of `facts`. Those of the validation split are left out:
/// probabilities were fitted to them.
fn of_test(facts: &[&Value], first: usize) -> usize {
    let judged = facts.iter().filter(|fact| fact["held_out"] != "valid");
    judged.take(first).filter(|fact| fact["held_out"] == "test").count()
}

#[test]
fn across_queries_a_probability_says_more_than_a_score() {
    let tool = Tool::new();
    for samples in ["rules.samples=500", "rules.samples=0"] {
        tool.json(&["run", "--out", "run", "--set", "system=rules", "--set", samples]);
        tool.done(&["complete", "run", "--top", "100000", "--held-out", "show", "--out", "all.jsonl"]);
        let all = facts(&tool, "all.jsonl");
        let by_probability: Vec<&Value> = all.iter().collect();
        let mut by_score = by_probability.clone();
        by_score.sort_by(|a, b| b["score"].as_f64().unwrap().total_cmp(&a["score"].as_f64().unwrap()));
        let [likely, high] = [&by_probability, &by_score].map(|facts| of_test(facts, 200));
        assert!(likely > high + 4, "{samples}: {likely} by probability, {high} by score");
        // They are shares: of those that are said to be likely, as many are true.
        let message: Vec<&Value> =
            all.iter().filter(|fact| fact["held_out"] != "valid" && probability(fact) >= 0.5).collect();
        let expected: f64 = message.iter().map(|fact| probability(fact)).sum();
        let found = of_test(&message, usize::MAX) as f64;
        assert!(
            (expected - found).abs() < 0.15 * found,
            "{samples}: {expected} of {} expected, {found}",
            message.len()
        );
    }
}

#[test]
fn where_the_validation_split_is_learnt_there_is_nothing_to_calibrate_on() {
    let tool = Tool::new();
    let learnt = ["run", "--out", "run", "--set", "system=rules", "--set", "data.learn_valid=always"];
    assert!(tool.json(&learnt)["calibration"].is_null());
    let message = tool.done(&["evaluate", "run"]);
    assert!(message.contains("no probabilities: this run has learnt its validation facts"), "{message}");
}

#[test]
fn missing_facts_come_best_first_and_the_same_however_the_work_is_cut() {
    let tool = Tool::new();
    tool.demonstration();
    let complete = |more: &[&str]| tool.json(&[&["complete", "run", "--held-out", "show"], more].concat());
    let summary = complete(&["--min-probability", "0.2", "--out", "all.jsonl"]);
    let all = facts(&tool, "all.jsonl");
    assert!(all.len() > 100, "{summary}");
    assert_eq!(summary["facts"].as_u64().unwrap(), all.len() as u64);
    assert!(!tool.path("all.jsonl.blocks").exists());
    assert!(all.windows(2).all(|pair| probability(&pair[0]) >= probability(&pair[1])));
    assert!(all.iter().all(|fact| probability(fact) >= 0.2 && fact["words"].is_string()));
    let key = |fact: &Value| [&fact["head"], &fact["relation"], &fact["tail"]].map(Value::to_string);
    assert_eq!(all.iter().map(key).collect::<HashSet<_>>().len(), all.len(), "each once");
    // What was held out is marked; the first are mostly true.
    let aside = all[..100].iter().filter(|fact| !fact["held_out"].is_null()).count();
    assert!(aside > 50, "{aside}");
    // One thread, or the best of all, or a part: the same facts.
    complete(&["--min-probability", "0.2", "--out", "one.jsonl", "--threads", "1"]);
    assert_eq!(facts(&tool, "one.jsonl"), all);
    complete(&["--top", "40", "--out", "top.jsonl"]);
    assert_eq!(facts(&tool, "top.jsonl"), all[..40]);
    // Of one relation, asked from the other end.
    complete(&["--relation", "~cousin_of", "--min-probability", "0.2", "--out", "cousins.jsonl"]);
    let cousins = facts(&tool, "cousins.jsonl");
    assert!(!cousins.is_empty() && cousins.iter().all(|fact| fact["relation"] == "cousin_of"));
}

#[test]
fn missing_facts_are_written_in_the_format_of_the_ending() {
    let tool = Tool::new();
    tool.demonstration();
    let mut counts = HashSet::new();
    for ending in ["tsv", "csv.gz", "parquet", "nt", "jsonl.zst"] {
        let out = format!("missing.{ending}");
        let summary = tool.json(&["complete", "run", "--top", "30", "--out", &out]);
        counts.insert(summary["facts"].as_u64().unwrap());
        assert!(tool.path(&out).is_file());
    }
    assert_eq!(counts, HashSet::from([30]));
    let text = std::fs::read_to_string(tool.path("missing.tsv")).unwrap();
    assert_eq!(text.lines().count(), 31);
    assert!(
        text.starts_with("head\trelation\ttail\tprobability\tscore\theld_out\treason\tprobability_rough\n"),
        "{text}"
    );
    let message = tool.refused(&["complete", "run", "--out", "missing.docx"]);
    assert!(message.contains("one of the extensions .tsv"), "{message}");
    let message = tool.refused(&["complete", "run", "--shard", "3/2", "--out", "missing.shard"]);
    assert!(message.contains("expected i/n with i from 1 to n"), "{message}");
    let message = tool.refused(&["complete", "run", "--min-probability", "2", "--out", "missing.tsv"]);
    assert!(message.contains("expected a number from 0 to 1"), "{message}");
    let message = tool.refused(&["complete", "run", "--relation", "cousin", "--out", "missing.tsv"]);
    assert!(message.contains("cousin_of"), "{message}");
}
