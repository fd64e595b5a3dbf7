//! Given facts, as a user meets them on the demonstration graph: `score`, `explain --file`, `predict RUN A '?' B`, `doubt`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::tool::Tool;
use serde_json::Value;

/// The test facts of the demonstration graph, as lines of three fields.
fn test_facts(tool: &Tool) -> Vec<String> {
    tool.done(&["convert", "run/data.rg", "splits", "--quiet"]);
    let text = std::fs::read_to_string(tool.path("splits/test.tsv")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn given_facts_are_scored_and_unknown_names_are_rows() {
    let tool = Tool::new();
    tool.demonstration();
    let facts = test_facts(&tool);
    tool.write("list.tsv", &format!("{}\t1\nIlse_Hagenthall\tcousin_of\tVera_Hagenthal\t-1\n", facts[0]));
    let printed = tool.done(&["score", "run", "--file", "list.tsv", "--quiet"]);
    assert!(printed.starts_with("subject\trelation\tobject\tprobability\t"), "{printed}");
    assert_eq!(printed.lines().count(), 3);
    let rows = json_lines(&tool.done(&["score", "run", "--file", "list.tsv", "--json", "--quiet"]));
    let fields: Vec<&str> = facts[0].split('\t').collect();
    assert_eq!([&rows[0]["subject"], &rows[0]["relation"], &rows[0]["object"]], fields[..]);
    assert!(
        rows[0]["true"].is_boolean() && rows[0]["path"].is_array() && rows[0]["because"].is_array(),
        "{}",
        rows[0]
    );
    assert!(rows[0]["rank_tail"].as_f64() >= Some(1.0) && rows[0]["rank_head"].as_f64() >= Some(1.0));
    assert!(rows[1]["error"].as_str().unwrap().contains("did you mean"));
    assert!(rows[1]["suggestions"].as_array().unwrap().contains(&"Ilse_Hagenthal".into()));
    let shares = rows[0]["because"].as_array().unwrap().iter().map(|part| part["share"].as_f64().unwrap());
    let sum = rows[0]["typical"].as_f64().unwrap() + shares.sum::<f64>();
    assert!((sum - rows[0]["score"].as_f64().unwrap()).abs() < 1e-9, "{}", rows[0]);
    // As predict gives it.
    let predicted = tool.json(&["predict", "run", fields[0], fields[1], "--top", "1000"]);
    let answers = predicted["answers"].as_array().unwrap();
    let own =
        answers.iter().find(|answer| answer["entity"] == fields[2]).expect("a test fact follows from rules");
    for key in ["probability", "path", "rule", "sentence", "typical", "because"] {
        assert_eq!(own[key], rows[0][key], "{key}");
    }
    let explained = tool.json(&["explain", "run", fields[0], fields[1], fields[2]]);
    assert_eq!(explained["answers"][0]["probability"], rows[0]["probability"]);
    // A verdict by probability.
    let by_probability = ["score", "run", "--file", "list.tsv", "--json", "--threshold", "1", "--quiet"];
    assert_eq!(json_lines(&tool.done(&by_probability))[0]["true"], false);
    let message = tool.refused(&["score", "run", "--file", "list.tsv", "--threshold", "2"]);
    assert!(message.contains("expected auto, none or a number from 0 to 1"), "{message}");
    let message = tool.refused(&["score", "run", "--file", "nothing.tsv"]);
    assert!(message.contains("nothing.tsv"), "{message}");
}

/// Stdin and named pipes, in every format that lines have; a row is answered before the next one is sent.
#[cfg(unix)]
#[test]
fn facts_that_come_through_a_pipe_are_scored() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let tool = Tool::new();
    tool.demonstration();
    let facts = test_facts(&tool)[..20].join("\n") + "\n";
    tool.write("list.tsv", &facts);
    let from_file = tool.done(&["score", "run", "--file", "list.tsv", "--json", "--quiet"]);
    // As a shell gives it for `<(cat list.tsv)`.
    let shell = |words: &str| {
        let program = env!("CARGO_BIN_EXE_ruleguider");
        let text = format!("'{program}' {words}");
        let out = std::process::Command::new("bash").args(["-c", &text]).current_dir(tool.path(".")).output();
        let out = out.unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(shell("score run --file <(cat list.tsv) --json --quiet"), from_file);
    assert_eq!(shell("score run --file - --json --quiet < <(tr '\\t' , < list.tsv)"), from_file);
    shell("score run --file <(cat list.tsv) --out piped.jsonl --quiet");
    assert_eq!(std::fs::read_to_string(tool.path("piped.jsonl")).unwrap(), from_file);
    let explained = tool.done(&["explain", "run", "--file", "list.tsv", "--json", "--quiet"]);
    assert_eq!(shell("explain run --file - --json --quiet < list.tsv"), explained);
    let message = tool.refused(&["score", "run", "--file", "-", "--shard", "1/2", "--out", "one.shard"]);
    assert!(message.contains("found a pipe"), "{message}");

    let mut child = tool.command(&["score", "run", "--file", "-", "--json", "--quiet"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut send = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for (fact, expected) in facts.lines().zip(from_file.lines()).take(3) {
        writeln!(send, "{fact}").unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), expected);
    }
    drop(send);
    assert!(answers.next().is_none() && child.wait().unwrap().success());
}

#[test]
fn a_graph_without_a_run_is_scored_at_once() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "family", "--quiet"]);
    let text = std::fs::read_to_string(tool.path("family/test.tsv")).unwrap();
    tool.write("list.tsv", text.lines().next().unwrap());
    let rows =
        json_lines(&tool.done(&["score", "family", "--instant", "--file", "list.tsv", "--json", "--quiet"]));
    // All facts are in the graph, so this one was taken out to be asked.
    assert_eq!((&rows[0]["known"], &rows[0]["true"]), (&true.into(), &Value::Null));
    assert!(rows[0]["rank_tail"].as_f64() >= Some(1.0));
}

#[test]
fn labels_give_the_figures_of_triple_classification() {
    let tool = Tool::new();
    tool.demonstration();
    let figures = tool.json(&["evaluate", "run", "--classify", "--quiet"]);
    assert!(figures["accuracy"].as_f64() > Some(0.85) && figures["auc"].as_f64() > Some(0.9), "{figures}");
    let facts: Vec<String> = test_facts(&tool).iter().map(|fact| format!("{fact}\ttrue")).collect();
    tool.write("labelled.csv", &facts.join("\n").replace('\t', ","));
    let scored = tool.json(&["score", "run", "--file", "labelled.csv", "--out", "scored.tsv", "--quiet"]);
    assert_eq!(scored["facts"].as_u64(), Some(facts.len() as u64));
    assert_eq!(scored["classification"]["recall"], figures["recall"]);
    let message = tool.done(&["evaluate", "run", "--classify", "--quiet"]);
    assert!(message.contains("labelled facts") && message.contains("average precision"), "{message}");
}

#[test]
fn the_relations_between_two_entities_are_ranked() {
    let tool = Tool::new();
    tool.demonstration();
    let facts = test_facts(&tool);
    let fields: Vec<&str> = facts[0].split('\t').collect();
    let prediction = tool.json(&["predict", "run", fields[0], "?", fields[2]]);
    let answers = prediction["answers"].as_array().unwrap();
    assert!(answers.iter().any(|answer| answer["relation"] == fields[1]), "{prediction}");
    assert!(answers[0]["plausibility"].as_f64() >= answers[1]["plausibility"].as_f64());
    let message = tool.done(&["predict", "run", fields[0], "?", fields[2], "--top", "1"]);
    assert!(message.contains(" —?→ ") && message.contains("  1  "), "{message}");
    let figures = tool.json(&["evaluate", "run", "--predict-relations", "--quiet"]);
    assert!(figures["mrr"].as_f64() > Some(0.6), "{figures}");
    assert!(figures["hits@1"].as_f64() <= figures["hits@10"].as_f64());
    let message = tool.refused(&["predict", "run", fields[0], "?"]);
    assert!(message.contains("expected OBJECT"), "{message}");
    let message = tool.refused(&["predict", "run", fields[0], fields[1], fields[2]]);
    assert!(message.contains("`explain` asks about one fact"), "{message}");
}

#[test]
fn reasons_of_a_list_are_rows() {
    let tool = Tool::new();
    tool.demonstration();
    let facts = test_facts(&tool);
    tool.write("pairs.tsv", &format!("{}\n{}\nnobody\tcousin_of\tno one\n", facts[0], facts[1]));
    let rows = json_lines(&tool.done(&["explain", "run", "--file", "pairs.tsv", "--json", "--quiet"]));
    let lines: Vec<u64> = rows.iter().map(|row| row["line"].as_u64().unwrap()).collect();
    assert!(lines.is_sorted() && lines.first() == Some(&1) && lines.last() == Some(&3), "{lines:?}");
    assert!(rows.last().unwrap()["error"].is_string());
    let fields: Vec<&str> = facts[0].split('\t').collect();
    let explained = tool.json(&["explain", "run", fields[0], fields[1], fields[2]]);
    let own: Vec<&Value> = rows.iter().filter(|row| row["line"] == 1).collect();
    let reasons = explained["answers"].as_array().unwrap();
    assert_eq!(own.len(), reasons.len());
    for (row, reason) in own.iter().zip(reasons) {
        assert_eq!((&row["path"], &row["rule"]), (&reason["path"], &reason["rule"]));
        assert_eq!(row["probability"], reason["probability"]);
    }
    let written =
        tool.json(&["explain", "run", "--file", "pairs.tsv", "--out", "reasons.parquet", "--quiet"]);
    assert_eq!((written["facts"].as_u64(), written["errors"].as_u64()), (Some(2), Some(1)));
    assert_eq!(written["reasons"].as_u64(), Some(rows.len() as u64 - 1));
    tool.done(&["explain", "run", "--file", "pairs.tsv", "--out", "reasons.tsv", "--quiet"]);
    let text = std::fs::read_to_string(tool.path("reasons.tsv")).unwrap();
    assert_eq!(text.lines().count(), rows.len() + 1);
}

#[test]
fn planted_errors_are_doubted_first() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "200", "--out", "family", "--quiet"]);
    let made = tool.json(&["generate", "errors", "family", "--share", "0.03", "--out", "wrong", "--quiet"]);
    let errors = made["errors"].as_u64().unwrap();
    assert!(errors > 20, "{made}");
    let learn =
        ["run", "wrong", "--out", "run", "--set", "system=rules", "--set", "rules.samples=3000", "--quiet"];
    tool.done(&learn);
    let doubts = tool.json(&["doubt", "run", "--errors", "wrong/errors.tsv", "--top", "60", "--quiet"]);
    let figures = &doubts["figures"];
    assert_eq!(figures["errors"].as_u64(), Some(errors));
    let precision = figures["doubt"]["precision_first_percent"].as_f64().unwrap();
    let average = figures["doubt"]["average_precision"].as_f64().unwrap();
    let random = figures["random"].as_f64().unwrap();
    assert!(precision > 0.5 && average > 10.0 * random, "{figures}");
    let facts = doubts["facts"].as_array().unwrap();
    assert_eq!(facts.len(), 60);
    assert!(
        facts.windows(2).all(|pair| pair[0]["plausibility"].as_f64() <= pair[1]["plausibility"].as_f64())
    );
    assert!(facts.iter().any(|fact| !fact["counter_evidence"].as_array().unwrap().is_empty()), "{doubts}");
    tool.done(&["doubt", "run", "--out", "doubtful.csv", "--top", "5", "--quiet"]);
    let text = std::fs::read_to_string(tool.path("doubtful.csv")).unwrap();
    assert!(text.starts_with("subject,relation,object,plausibility,") && text.lines().count() == 6, "{text}");
    // For other programs, with what speaks against each.
    tool.done(&["doubt", "run", "--out", "doubtful.jsonl", "--top", "60", "--quiet"]);
    let rows = json_lines(&std::fs::read_to_string(tool.path("doubtful.jsonl")).unwrap());
    assert_eq!(serde_json::to_value(&rows).unwrap(), doubts["facts"]);
    assert_eq!(tool.json(&["export", "doubtful.jsonl", "--to", "rdf", "--out", "doubtful.ttl"])["facts"], 60);
    let text = std::fs::read_to_string(tool.path("doubtful.ttl")).unwrap();
    assert_eq!(text.matches("<urn:x-ruleguider:plausibility>").count(), 60);
    let against: usize = rows.iter().map(|row| row["counter_evidence"].as_array().unwrap().len()).sum();
    assert_eq!(text.matches("<urn:x-ruleguider:counterEvidence>").count(), against);
    // A part of what is read is kept back to check.
    assert!(against > 0 && tool.json(&["stats", "doubtful.ttl"])["facts"].as_u64() >= Some(50));
    for (to, out) in [("neo4j", "neo4j"), ("kgx", "kgx"), ("graphml", "doubtful.graphml")] {
        assert_eq!(tool.json(&["export", "doubtful.jsonl", "--to", to, "--out", out])["facts"], 60, "{to}");
    }
    let message = tool.refused(&["generate", "errors", "family", "--out", "wrong"]);
    assert!(message.contains("has files already"), "{message}");
}

#[test]
fn answers_of_all_kinds_are_exported() {
    let tool = Tool::new();
    tool.demonstration();
    tool.done(&["complete", "run", "--top", "30", "--out", "missing.jsonl", "--quiet"]);
    tool.write("list.tsv", &test_facts(&tool)[..10].join("\n"));
    tool.done(&["score", "run", "--file", "list.tsv", "--out", "scored.jsonl", "--quiet"]);
    let predicted = tool.json(&["predict", "run", "Ilse_Hagenthal", "~parent_of", "--top", "2"]);
    let asked = tool.done(&["predict", "run", "Ilse_Hagenthal", "~parent_of", "--top", "2", "--json"]);
    tool.write("answers.json", &asked);
    for (answers, count) in [("missing.jsonl", 30), ("scored.jsonl", 10)] {
        for style in ["plain", "star", "reified"] {
            let out = format!("{style}.nt");
            let export = ["export", answers, "--to", "rdf", "--rdf", style, "--out", &out];
            assert_eq!(tool.json(&export)["facts"], count, "{answers}");
        }
        for (to, out) in [("neo4j", "neo4j"), ("kgx", "kgx"), ("graphml", "reasons.graphml")] {
            assert_eq!(
                tool.json(&["export", answers, "--to", to, "--out", out])["facts"],
                count,
                "{answers}"
            );
        }
    }
    // Plain RDF is data again.
    let facts: usize = tool.json(&["stats", "plain.nt"])["facts"].as_u64().unwrap().try_into().unwrap();
    assert_eq!(facts, 10);
    // An inverse question gives facts in the relation's own direction.
    tool.done(&["export", "answers.json", "--to", "kgx", "--out", "heads"]);
    let edges = std::fs::read_to_string(tool.path("heads/edges.tsv")).unwrap();
    let first: Vec<&str> = edges.lines().nth(1).unwrap().split('\t').collect();
    assert_eq!(first[1], predicted["answers"][0]["entity"]);
    assert_eq!(first[2..4], ["parent_of", "Ilse_Hagenthal"]);
    let message = tool.refused(&["export", "list.tsv", "--to", "rdf", "--out", "facts.nt"]);
    assert!(message.contains("list.tsv: object 1: expected JSON of"), "{message}");
    let message = tool.refused(&["export", "missing.jsonl", "--to", "rdf", "--out", "facts.tsv"]);
    assert!(message.contains("one of the extensions .nt"), "{message}");
}
