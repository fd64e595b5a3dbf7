//! `run`, `evaluate`, `predict`, `explain` and `report` on the demonstration graph, as a user runs them.

use crate::tool::{Tool, learnt, text};
use serde_json::Value;
use std::io::{BufRead, Write};

/// Settings that make the demonstration run quick enough for tests.
const QUICK: [&str; 2] = ["--set", "system=rules"];

/// All stages, small: what they learn in that time is little, but they learn it from end to end.
const WHOLE: [&str; 16] = [
    "--set",
    "embed.epochs=10",
    "--set",
    "embed.evaluate_every=5",
    "--set",
    "walk.epochs=2",
    "--set",
    "walk.validate_every=1",
    "--set",
    "walk.rollouts=4",
    "--set",
    "walk.beam=16",
    // With a constant step size a training can be made longer later.
    "--set",
    "walk.final_rate=1.0",
    "--config",
    "demonstration",
];

#[test]
fn a_run_learns_ranks_and_explains() {
    let tool = Tool::new();
    let report = tool.demonstration();
    assert!(report["hits@1"].as_f64().unwrap() >= 0.85, "{report}");
    for key in ["queries", "left_out", "hits@3", "hits@5", "hits@10", "mrr", "mean_rank", "seconds"] {
        assert!(report[key].is_number(), "{key}");
    }
    assert_eq!((&report["direction"], &report["ties"]), (&Value::from("tail"), &Value::from("realistic")));
    assert!(report["stages"]["rules"]["seconds"].is_number());
    assert!(report.get("rule_share").is_some());
    let examples = report["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let words = example["words"].as_str().unwrap();
        assert!(words.contains(": ") && words.contains("this held in "), "{words}");
    }
    let files = [
        "run.json",
        "config.toml",
        "stages.json",
        "rules.tsv",
        "calibration.json",
        "results.json",
        "metrics.jsonl",
    ];
    for file in files {
        assert!(tool.path("run").join(file).is_file(), "{file}");
    }
    let config = std::fs::read_to_string(tool.path("run/config.toml")).unwrap();
    assert!(config.contains("[rules]") && config.contains("threshold"), "{config}");
}

#[test]
fn a_propagator_that_starts_from_the_universal_weights_begins_where_they_stand() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "150", "--out", "set", "--quiet"]);
    let mrr = |out: &str, settings: &[&str]| {
        let mut arguments = vec!["run", "set", "--out", out, "--quiet"];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        tool.json(&arguments)["mrr"].as_f64().unwrap()
    };
    let universal = mrr("universal", &["system=universal"]);
    // One step, so short that it changes next to nothing.
    let hardly = [
        "system=propagator",
        "propagate.width=32",
        "propagate.hidden=64",
        "propagate.layers=6",
        "propagate.networks=1",
        "propagate.epochs=1",
        "propagate.epoch_queries=16",
        "propagate.learning_rate=1e-7",
    ];
    let started = mrr("started", &[&hardly[..], &["propagate.start=universal"]].concat());
    let random = mrr("random", &[&hardly[..], &["propagate.start=random"]].concat());
    assert!(started > 0.8 * universal && started > 2.0 * random, "{started} {universal} {random}");
    let message = tool.refused(&[
        "run",
        "set",
        "--out",
        "x",
        "--set",
        "system=propagator",
        "--set",
        "propagate.start=universal",
        "--set",
        "propagate.width=16",
    ]);
    assert!(
        message.contains("propagate.width") && message.contains("32, as the universal weights have"),
        "{message}"
    );
}

#[test]
fn a_falling_step_that_cannot_fall_longer_is_said() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    let trained = |epochs: &str, rate: &str| {
        let (epochs, rate) = (format!("walk.epochs={epochs}"), format!("walk.final_rate={rate}"));
        let more = ["--set", &epochs, "--set", &rate];
        let output = tool.run(&[&["run", "data", "--out", "run"], &WHOLE[..], &more].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{message}");
        message
    };
    let (again, why) = ("running it again from the beginning", "cannot be extended");
    assert!(!trained("2", "0.5").contains(again));
    let message = trained("3", "0.5");
    assert!(message.contains(again) && message.contains(why), "{message}");
    // A step that does not fall says nothing of the kind.
    assert!(!trained("3", "1.0").contains(why));
}

#[test]
fn what_is_done_is_not_done_again() {
    let tool = Tool::new();
    let first = tool.demonstration();
    let second = tool.json(&[&["run", "--out", "run"], &QUICK[..]].concat());
    assert_eq!(first["stages"]["rules"]["skipped"], false);
    assert_eq!(second["stages"]["rules"]["skipped"], true);
    assert_eq!(first["mrr"], second["mrr"]);
    // Another setting of a stage does that stage again.
    let third = tool.json(&[&["run", "--out", "run", "--set", "rules.min_support=3"], &QUICK[..]].concat());
    assert_eq!(third["stages"]["rules"]["skipped"], false);
}

#[test]
fn an_own_graph_is_ranked_at_both_ends_beside_what_needs_no_model() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "80", "--out", "data", "--quiet"]);
    let run = ["run", "data", "--out", "run", "--minutes", "0.1", "--set", "system=rules"];
    let report = tool.json(&run);
    assert_eq!(report["direction"], "both");
    let queries = |of: &Value| of["queries"].as_u64().unwrap();
    assert_eq!(queries(&report["tails"]), queries(&report["heads"]));
    assert_eq!(queries(&report), 2 * queries(&report["tails"]));
    let again = tool.json(&["evaluate", "run"]);
    assert_eq!((&again["mrr"], &again["tails"]), (&report["mrr"], &report["tails"]));
    for name in ["popularity", "similar"] {
        let baseline = &again["baseline"][name];
        assert_eq!(queries(baseline), queries(&again), "{name}");
        assert!(baseline["mrr"].as_f64() < again["mrr"].as_f64() && baseline["relations"].is_array());
        assert_eq!(baseline["mrr"], report["baseline"][name]["mrr"]);
    }
    let tails = tool.json(&["evaluate", "run", "--direction", "tail"]);
    assert_eq!((&tails["mrr"], &tails["tails"]), (&report["tails"]["mrr"], &Value::Null));
    let message = tool.done(&["evaluate", "run"]);
    for row in ["\ntails ", "\nheads ", "\nby popularity ", "\nas similar "] {
        assert!(message.contains(row), "{message}");
    }
}

#[test]
fn a_stage_that_is_cut_says_so_and_the_others_have_their_time() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "80", "--out", "data", "--quiet"]);
    let run = ["run", "data", "--out", "run", "--minutes", "0.1"];
    let alone =
        ["--set", "system=embedding", "--set", "embed.epochs=1000000", "--set", "embed.patience=1000000"];
    let report = tool.json(&[&run[..], &alone].concat());
    assert_eq!(report["stages"]["embeddings"]["cut"], "out of time", "{report}");
    let calibration = &report["stages"]["calibration"];
    assert!(calibration["cut"].is_null() && report["calibration"]["ece"].is_number(), "{report}");
    // Whoever resumes it is told the same.
    let report = tool.json(&[&run[..], &alone].concat());
    assert_eq!(report["stages"]["embeddings"]["skipped"], true);
    assert_eq!(report["stages"]["embeddings"]["cut"], "out of time");
}

#[test]
fn a_run_can_be_evaluated_every_way() {
    let tool = Tool::new();
    let report = tool.demonstration();
    let again = tool.json(&["evaluate", "run"]);
    assert_eq!((&again["mrr"], &again["queries"]), (&report["mrr"], &report["queries"]));
    let both = tool.json(&["evaluate", "run", "--direction", "both", "--ties", "pessimistic"]);
    assert_eq!(both["queries"].as_u64().unwrap(), 2 * report["queries"].as_u64().unwrap());
    assert_eq!(both["ties"], "pessimistic");
    let valid = tool.json(&["evaluate", "run", "--split", "valid"]);
    assert_eq!(valid["split"], "valid");
    assert!(valid["relations"].as_array().unwrap().len() > 3);
    assert!(tool.done(&["evaluate", "run"]).contains("to many"));
    // Facts that were learnt cannot be ranked.
    tool.json(&[&["run", "--out", "learnt", "--set", "data.learn_valid=always"], &QUICK[..]].concat());
    let message = tool.refused(&["evaluate", "learnt", "--split", "valid"]);
    assert!(message.contains("has learnt its validation facts"), "{message}");
}

#[test]
fn a_run_answers_and_explains() {
    let tool = Tool::new();
    let report = tool.demonstration();
    let example = &report["examples"][0];
    let (subject, relation) = (example["subject"].as_str().unwrap(), example["relation"].as_str().unwrap());
    let prediction = tool.json(&["predict", "run", subject, relation, "--top", "3"]);
    let answer = &prediction["answers"][0];
    for key in ["entity", "label", "score", "path", "rule"] {
        assert_eq!(answer[key], example["answer"][key], "{key}");
    }
    let step = &answer["path"][0];
    assert!(step["relation"].is_string() && step["inverse"].is_boolean() && step["entity"].is_string());
    for key in ["text", "confidence", "correct", "predicted"] {
        assert!(!answer["rule"][key].is_null(), "{key}");
    }
    let object = answer["entity"].as_str().unwrap();
    let explanation = tool.json(&["explain", "run", subject, relation, object]);
    assert_eq!((&explanation["rank"], &explanation["known"]), (&Value::from(1), &Value::from(false)));
    assert_eq!(explanation["answers"][0]["path"], answer["path"]);
    assert!(!explanation["rules"].as_array().unwrap().is_empty());
    assert!(tool.done(&["explain", "run", subject, relation, object]).contains("predicted at rank 1"));
    // The place is that in the list that is shown; what is not in the list is not predicted.
    let everything = tool.json(&["predict", "run", subject, relation, "--top", "4000000000"]);
    let listed: Vec<&Value> =
        everything["answers"].as_array().unwrap().iter().map(|answer| &answer["entity"]).collect();
    assert!(listed.len() > 50);
    let others = ["man", "woman", "Ilse_Hagenthal"].map(Value::from);
    let asked: Vec<Value> = listed.iter().step_by(20).map(|&entity| entity.clone()).chain(others).collect();
    for entity in &asked {
        let place = listed.iter().position(|other| *other == entity);
        let arguments = ["explain", "run", subject, relation, entity.as_str().unwrap(), "--json"];
        let message = tool.exits(&arguments, i32::from(place.is_none()));
        let explanation: Value = serde_json::from_str(&message).unwrap();
        assert_eq!(explanation["rank"].as_u64(), place.map(|place| place as u64 + 1), "{entity}");
        assert_eq!(explanation["answers"].as_array().unwrap().is_empty(), place.is_none(), "{entity}");
    }
    // An unsupported fact: the message says so, with exit code 1.
    let nothing = tool.exits(&["explain", "run", subject, "gender", subject], 1);
    assert!(nothing.contains("not predicted"), "{nothing}");
    // Heads by the inverse relation.
    let heads = tool.json(&["predict", "run", object, &format!("~{relation}")]);
    assert_eq!(heads["inverse"], true);
}

#[test]
fn misspelt_names_have_suggestions() {
    let tool = Tool::new();
    let report = tool.demonstration();
    let subject = report["examples"][0]["subject"].as_str().unwrap();
    let misspelt = subject.replacen(' ', "  ", 1);
    let message = tool.refused(&["predict", "run", &misspelt, "uncle_of"]);
    assert!(message.contains("did you mean") && message.contains(subject), "{message}");
    let message = tool.refused(&["predict", "run", subject, "weight"]);
    assert!(message.contains("its relations are cousin_of, "), "{message}");
    let output = tool.run(&["predict", "run", subject, "uncle_of", "--beam", "5000"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("'--beam <N>': 5000 is not in 1..=4096"), "{message}");
    // The other end may be meant.
    let output = tool.run(&["predict", "run", "woman", "gender"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("never its head") && message.contains("did you mean `~gender`?"), "{message}");
    let message = tool.refused(&["predict", "run", subject, "uncel_of"]);
    assert!(message.contains("the graph does not have a relation `uncel_of`; did you mean"), "{message}");
}

#[test]
fn a_file_of_queries_becomes_json_lines() {
    let tool = Tool::new();
    let report = tool.demonstration();
    let subject = report["examples"][0]["subject"].as_str().unwrap();
    let queries = format!(
        "{subject}\tuncle_of\n\nNobody At All\tuncle_of\r\n{subject}\t~parent_of\nno tab\n{subject}\tuncle_of\t3\n"
    );
    tool.write("queries.tsv", &queries);
    let out = tool.done(&["predict", "run", "--file", "queries.tsv", "--top", "2"]);
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[0]["answers"].as_array().unwrap().len() <= 2);
    assert!(lines[1]["error"].as_str().unwrap().contains("does not have"));
    assert_eq!(
        (&lines[2]["relation"], &lines[2]["inverse"]),
        (&Value::from("parent_of"), &Value::from(true))
    );
    assert!(lines[3]["error"].as_str().unwrap().contains("expected SUBJECT<TAB>RELATION"));
    assert!(lines[4]["error"].as_str().unwrap().contains("expected 2 fields, SUBJECT<TAB>RELATION, found 3"));
    for line in &lines {
        assert!(
            line["inverse"].is_boolean() && line["known"].is_array() && line["known_ids"].is_array(),
            "{line}"
        );
    }
    // A line of other bytes does not cost the others their answers, a mark at the beginning is no part of a name, and
    // the file may be packed.
    let odd = [
        b"\xef\xbb\xbf",
        subject.as_bytes(),
        b"\tuncle_of\n\xff\tuncle_of\n",
        subject.as_bytes(),
        b"\tuncle_of",
    ];
    std::fs::write(tool.path("odd.tsv"), odd.concat()).unwrap();
    let packed = std::process::Command::new("gzip").arg(tool.path("odd.tsv")).status().unwrap();
    assert!(packed.success());
    let out = tool.done(&["predict", "run", "--file", "odd.tsv.gz", "--top", "2"]);
    let odd: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers = |line: &Value| (line["subject"].clone(), line["answers"].clone(), line["known"].clone());
    assert_eq!((odd.len(), answers(&odd[0]), answers(&odd[2])), (3, answers(&lines[0]), answers(&lines[0])));
    assert_eq!((&odd[0]["line"], &odd[2]["line"]), (&Value::from(1), &Value::from(3)));
    assert!(odd[1]["error"].as_str().unwrap().contains("expected UTF-8"));
    // Where nothing is predicted for any line, the exit code says so.
    tool.write("strangers.tsv", "Nobody At All\tuncle_of\n");
    tool.exits(&["predict", "run", "--file", "strangers.tsv"], 1);
}

#[test]
fn answers_come_as_soon_as_questions_do() {
    let tool = Tool::new();
    let report = tool.demonstration();
    let subject = report["examples"][0]["subject"].as_str().unwrap();
    let mut asked = tool
        .command(&["predict", "run", "--file", "-", "--quiet"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut questions, answers) = (asked.stdin.take().unwrap(), asked.stdout.take().unwrap());
    let mut answers = std::io::BufReader::new(answers).lines();
    for relation in ["uncle_of", "~parent_of", "spouse_of"] {
        writeln!(questions, "{subject}\t{relation}").unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["relation"], relation.trim_start_matches('~'));
    }
    drop(questions);
    assert!(asked.wait().unwrap().code().is_some_and(|code| code < 2));
}

/// The lines of a file of facts.
fn facts(tool: &Tool, name: &str) -> Vec<[String; 3]> {
    let text = std::fs::read_to_string(tool.path(name)).expect("a file of facts");
    let fact = |line: &str| {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        fields.try_into().expect("three fields")
    };
    text.lines().map(fact).collect()
}

#[test]
fn facts_that_were_put_aside_are_no_discoveries() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "120", "--out", "data", "--quiet"]);
    let aside = ["valid", "test"].map(|split| facts(&tool, &format!("data/{split}.tsv")));
    let expected = |head: &Value, relation: &Value, tail: &Value| {
        let fact = [head, relation, tail].map(|name| name.as_str().unwrap().to_owned());
        let [valid, test] = aside.each_ref().map(|facts| facts.contains(&fact));
        if test {
            Value::from("test")
        } else if valid {
            Value::from("valid")
        } else {
            Value::Null
        }
    };
    // Of more examples than are looked at for a few, and none of them called new if any split has it.
    let report =
        tool.json(&[&["run", "data", "--out", "run", "--set", "eval.examples=500"], &QUICK[..]].concat());
    let examples = report["examples"].as_array().unwrap();
    assert!(examples.len() > 50);
    for example in examples {
        let answer = &example["answer"];
        let split = expected(&answer["from_id"], &example["relation"], &answer["entity"]);
        assert_eq!(answer["held_out"], split, "{example}");
        assert_eq!(example["true_in_test"], split == "test");
    }
    let asked: String =
        aside.concat().iter().map(|[head, relation, _]| format!("{head}\t{relation}\n")).collect();
    tool.write("queries.tsv", &asked);
    let out = tool.done(&["predict", "run", "--file", "queries.tsv", "--quiet"]);
    let (mut valid, mut new) = (None, 0);
    for line in out.lines() {
        let prediction: Value = serde_json::from_str(line).unwrap();
        for answer in prediction["answers"].as_array().unwrap() {
            let split = expected(&prediction["subject"], &prediction["relation"], &answer["entity"]);
            assert_eq!(answer["held_out"], split, "{answer}");
            new += usize::from(split.is_null());
            if split == "valid" {
                valid = Some(
                    [&prediction["subject"], &prediction["relation"], &answer["entity"]].map(Value::clone),
                );
            }
        }
    }
    assert!(new > 0);
    let fact = valid.expect("a fact of the validation split among the answers");
    let [subject, relation, object] = fact.each_ref().map(|name| name.as_str().unwrap());
    let marked = "[in your data, held out for validation]";
    let text = tool.done(&["predict", "run", subject, relation]);
    assert!(text.contains(marked), "{text}");
    let explain = ["explain", "run", subject, relation, object];
    assert_eq!(tool.json(&explain)["held_out"], "valid");
    assert!(tool.done(&explain).lines().next().unwrap().ends_with(marked));
    // The same fact asked for from its other end.
    let heads = tool.json(&["explain", "run", object, &format!("~{relation}"), subject]);
    assert_eq!(heads["held_out"], "valid");
}

#[test]
fn the_examples_of_the_help_work() {
    let tool = Tool::new();
    tool.done(&[&["run", "--quiet"], &QUICK[..]].concat());
    tool.write("queries.tsv", "Ilse_Hagenthal\tcousin_of\n");
    tool.write("pairs.tsv", "Ilse_Hagenthal\tcousin_of\tVera_Hagenthal\n");
    let other =
        [["Otto", "parent_of", "Anna_Feld"], ["Otto", "parent_of", "Bert"], ["Carl", "cousin_of", "Bert"]];
    tool.write("other_family.tsv", &other.map(|fact| fact.join("\t") + "\n").concat());
    let program = env!("CARGO_BIN_EXE_ruleguider");
    for verb in ["predict", "explain"] {
        let help = tool.done(&[verb, "-h"]);
        let examples: Vec<&str> =
            help.lines().filter_map(|line| line.trim_start().strip_prefix("ruleguider ")).collect();
        assert!(examples.len() > 1, "{help}");
        for example in examples {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("{program} {example}")])
                .current_dir(tool.folder.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn own_triples_in_one_command() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "120", "--out", "data", "--quiet"]);
    let facts = std::fs::read_to_string(tool.path("data/train.tsv")).unwrap();
    let path = tool.write("my_triples.tsv", &facts);
    let report = tool.json(&[&["run", text(&path)], &QUICK[..]].concat());
    assert_eq!(report["dataset"], "my_triples");
    assert!(report["mrr"].as_f64().unwrap() > 0.2, "{report}");
    let subject = facts.split('\t').next().unwrap();
    tool.run(&["predict", "runs/my_triples", subject, "cousin_of"]);
    // The same from anywhere: the run remembers where its data is.
    let output = tool.command(&["evaluate", text(&tool.path("runs/my_triples")), "--json"]);
    let output = { output }.current_dir("/").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn nothing_is_learnt_from_the_test_split() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "120", "--out", "one", "--quiet"]);
    tool.done(&["generate", "family", "--people", "120", "--out", "two", "--quiet"]);
    // The same questions with answers that are wrong: every tail moved on by one line.
    let test = std::fs::read_to_string(tool.path("one/test.tsv")).unwrap();
    let rows: Vec<Vec<&str>> = test.lines().map(|line| line.split('\t').collect()).collect();
    let wrong: String = (0..rows.len())
        .map(|at| format!("{}\t{}\t{}\n", rows[at][0], rows[at][1], rows[(at + 1) % rows.len()][2]))
        .collect();
    assert_ne!(test, wrong);
    tool.write("two/test.tsv", &wrong);
    std::fs::remove_file(tool.path("two/splits.sha256")).unwrap();
    for data in ["one", "two"] {
        let out = format!("run-{data}");
        let wanted = ["--set", "system=blend", "--set", "walk.side=both"];
        tool.done(&[&["run", data, "--quiet", "--out", &out], &wanted[..], &WHOLE[..]].concat());
    }
    let (one, two) = (learnt(&tool.path("run-one")), learnt(&tool.path("run-two")));
    let names: Vec<&str> = one.iter().map(|(name, _)| name.as_str()).collect();
    let expected =
        ["blend.json", "embedding.safetensors", "pretrained.safetensors", "rules.tsv", "walker.safetensors"];
    assert_eq!(names, expected);
    for (one, two) in one.iter().zip(&two) {
        assert!(one == two, "the stage that made {} has looked at the test split", one.0);
    }
}

#[test]
fn all_stages_from_end_to_end() {
    let tool = Tool::new();
    let arguments = [&["run", "--out", "run", "--tensorboard"], &WHOLE[..]].concat();
    let report = tool.json(&arguments);
    assert!(report["mrr"].as_f64().unwrap() > 0.1, "{report}");
    assert!((0.0..=1.0).contains(&report["rule_share"].as_f64().unwrap()));
    let stages = ["embeddings", "rules", "pretraining", "training"];
    for stage in stages {
        assert!(report["stages"][stage]["seconds"].is_number(), "{stage}");
    }
    let metrics = std::fs::read_to_string(tool.path("run/metrics.jsonl")).unwrap();
    for stage in ["embeddings", "pretraining", "training"] {
        assert!(metrics.contains(&format!("\"stage\":\"{stage}\"")), "{stage}: {metrics}");
    }
    assert_eq!(metrics.matches("valid_mrr").count(), 4, "{metrics}");
    assert_eq!(std::fs::read_dir(tool.path("run/tensorboard")).unwrap().count(), 1);
    // A path that was walked has the scores of both agents at every hop.
    let example = &report["examples"][0];
    assert!(example["answer"]["path"][0]["relation_score"].as_f64().unwrap() <= 0.0, "{example}");
    let subject = example["subject"].as_str().unwrap();
    let prediction = tool.json(&["predict", "run", subject, example["relation"].as_str().unwrap()]);
    assert_eq!(prediction["answers"][0]["entity"], example["answer"]["entity"]);
    // Many queries, some of them twice: in the order of the file, the same for any number of threads.
    let relation = example["relation"].as_str().unwrap();
    let queries: String = ["cousin_of", "~uncle_of", relation, "sibling_of", relation]
        .iter()
        .cycle()
        .take(300)
        .map(|relation| format!("{subject}\t{relation}\n"))
        .collect();
    tool.write("queries.tsv", &queries);
    let file = ["predict", "run", "--quiet", "--file", "queries.tsv"];
    let [one, two] = ["1", "2"].map(|threads| tool.done(&[&file[..], &["--threads", threads]].concat()));
    assert!(one == two && one.lines().count() == 300);
    let third: Value = serde_json::from_str(one.lines().nth(2).unwrap()).unwrap();
    assert_eq!(third["answers"][0]["entity"], prediction["answers"][0]["entity"]);
    let fifth: Value = serde_json::from_str(one.lines().nth(4).unwrap()).unwrap();
    assert_eq!((&third["subject"], &third["answers"]), (&fifth["subject"], &fifth["answers"]));
    assert_eq!((&third["line"], &fifth["line"]), (&Value::from(3), &Value::from(5)));
    // Every answer has a reason, and a rule stands beside a path only if its entities are different.
    for line in one.lines() {
        let prediction: Value = serde_json::from_str(line).unwrap();
        for answer in prediction["answers"].as_array().unwrap() {
            let path = answer["path"].as_array().unwrap();
            assert!(!path.is_empty(), "{answer}");
            let mut visited: Vec<&str> = path.iter().map(|step| step["entity"].as_str().unwrap()).collect();
            visited.push(answer["from_id"].as_str().unwrap());
            visited.sort_unstable();
            visited.dedup();
            assert!(answer["rule"].is_null() || visited.len() == path.len() + 1, "{answer}");
        }
    }
    let narrow = tool.done(&[&file[..], &["--beam", "1"]].concat());
    assert!(narrow.len() < one.len(), "fewer paths find less");
    let again = tool.json(&arguments);
    for stage in stages {
        assert_eq!(again["stages"][stage]["skipped"], true, "{stage}");
    }
    assert_eq!(again["mrr"], report["mrr"]);
    // With the embedding model's opinion they are the same answers by the same paths, in another order.
    let ask = ["predict", "run", subject, relation, "--top", "100"];
    let walked = tool.json(&ask);
    let rescored = ["--set", "system=blend", "--set", "blend.with_rules=false"];
    let both = tool.json(&[&arguments[..], &rescored].concat());
    assert_eq!(both["stages"]["training"]["skipped"], true);
    assert_eq!(both["stages"]["blending"]["figures"]["rules"], 0.0);
    let ways = |prediction: &Value| {
        let answers = prediction["answers"].as_array().unwrap().iter();
        let mut ways: Vec<String> = answers.map(|one| format!("{} {}", one["entity"], one["path"])).collect();
        ways.sort();
        ways
    };
    assert!(ways(&walked).len() > 1);
    assert_eq!(ways(&tool.json(&ask)), ways(&walked));
    each_voice_of_a_blend_can_be_left_out(&tool, &arguments, &ask);
    // More epochs go on from where training was.
    let more = tool.json(&[&arguments[..], &["--set", "walk.epochs=3"]].concat());
    assert_eq!(more["stages"]["pretraining"]["skipped"], true);
    assert_eq!(more["stages"]["training"]["figures"]["epochs"], 3);
    tool.done(&["report", "run", "--out", "page"]);
    let page = std::fs::read_to_string(tool.path("page/index.html")).unwrap();
    assert!(
        page.contains("training: on the validation split")
            && page.contains("Share of the walker's top answers"),
        "curves and shares"
    );
}

/// `arguments` make a run whose stages are done, `ask` asks it.
fn each_voice_of_a_blend_can_be_left_out(tool: &Tool, arguments: &[&str], ask: &[&str]) {
    let blend = |without: &[&str]| {
        let left_out: Vec<String> = without.iter().map(|who| format!("blend.with_{who}=false")).collect();
        let set = left_out.iter().flat_map(|pair| ["--set", pair.as_str()]);
        let set: Vec<&str> = ["--set", "system=blend"].into_iter().chain(set).collect();
        let report = tool.json(&[arguments, &set].concat());
        let prediction = tool.json(ask);
        let answers = prediction["answers"].as_array().expect("a list of answers").clone();
        assert!(!answers.is_empty() && answers.iter().all(|answer| !answer["path"].is_null()), "{without:?}");
        (report, answers)
    };
    let (alone, by_rules) = blend(&["walker", "embedding"]);
    assert!(alone["stages"]["training"].is_null() && alone["stages"]["embeddings"].is_null(), "{alone}");
    assert!(
        alone["stages"]["blending"]["figures"]["rules"].as_f64().is_some_and(|rules| rules > 0.0),
        "{alone}"
    );
    assert!(by_rules.iter().all(|answer| !answer["rule"].is_null()));
    let (unwalked, ordered) = blend(&["walker"]);
    assert_eq!(unwalked["stages"]["blending"]["figures"]["walker"], 0.0);
    assert_eq!(unwalked["stages"]["embeddings"]["skipped"], true);
    let message = tool.refused(&[ask, &["--beam", "2"]].concat());
    assert!(message.ends_with("this run has no walker, so there is no beam to set"), "{message}");
    // An embedding model orders what rules predict, and adds nothing.
    assert!(ordered.iter().all(|answer| !answer["rule"].is_null()), "{ordered:?}");
    let (walked, _) = blend(&["embedding"]);
    assert_eq!(walked["stages"]["blending"]["figures"]["embedding"], 0.0);
    assert_eq!(walked["stages"]["training"]["skipped"], true);
    let none =
        ["--set", "system=blend", "--set", "blend.with_rules=false", "--set", "blend.with_walker=false"];
    let message = tool.refused(&[arguments, &none].concat());
    assert!(
        message.contains("`blend.with_walker`: expected true where `blend.with_rules` is false"),
        "{message}"
    );
}

#[test]
fn a_blend_ranks_a_fact_of_the_graph_and_nothing_without_a_reason() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--seed", "1", "--out", "family", "--quiet"]);
    // The test split is facts of the graph.
    let train = std::fs::read_to_string(tool.path("family/train.tsv")).unwrap();
    let asked: Vec<&str> = train.lines().step_by(7).collect();
    tool.write("family/test.tsv", &(asked.join("\n") + "\n"));
    std::fs::remove_file(tool.path("family/splits.sha256")).unwrap();
    let ranked = |out: &str, set: &[&str]| {
        let run = ["run", "family", "--minutes", "1", "--out", out];
        let alone = ["blend.with_walker=false", "blend.with_propagator=false", "blend.also=[]"];
        let set = alone.iter().chain(set).flat_map(|&pair| ["--set", pair]);
        tool.json(&run.into_iter().chain(set).collect::<Vec<&str>>())["mrr"].as_f64().unwrap()
    };
    let alone = ["system=rules", "rules.top=5"];
    let blend = ["system=blend", "blend.with_embedding=false", "rules.top=5"];
    let [by_rules, by_blend] = [ranked("rules", &alone), ranked("blend", &blend)];
    // Signals about a candidate do not hold against a fact that it is stated already.
    assert!(by_rules > 0.5 && by_blend > by_rules - 0.1, "{by_rules} {by_blend}");
    // Where there are no rules nothing is answered, however plausible it may be.
    let nothing = ranked("nothing", &["rules.min_support=100000", "embed.epochs=3"]);
    assert!(nothing < 0.05, "{nothing}");
}

#[test]
fn a_report_is_one_page_that_needs_nothing_else() {
    let tool = Tool::new();
    tool.demonstration();
    tool.done(&["report", "run", "--out", "page"]);
    let page = std::fs::read_to_string(tool.path("page/index.html")).unwrap();
    assert_eq!(std::fs::read_dir(tool.path("page")).unwrap().count(), 1);
    // Its one script is in it; the namespace of SVG is a name, not an address.
    assert_eq!([page.matches("<script").count(), page.matches("<script type=\"module\">").count()], [1, 1]);
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    for foreign in ["http:", "https:", "url(", "@import", "src=", "import "] {
        assert!(!addresses.contains(foreign), "{foreign}");
    }
    for tag in ["table", "svg", "ol", "li", "div", "figure", "section", "span", "p"] {
        let open = page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    assert!(page.contains("Rules sorted by accuracy"));
    assert_eq!(page.matches("class=\"path\"").count(), 5);
}
