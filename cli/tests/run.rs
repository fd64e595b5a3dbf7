//! `run`, `evaluate`, `predict`, `explain` and `report` on the demonstration graph, as a user runs them.

mod tool;

use serde_json::Value;
use tool::{Tool, learnt, text};

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

fn demonstration(tool: &Tool) -> Value {
    tool.json(&[&["run", "--out", "run"], &QUICK[..]].concat())
}

#[test]
fn a_run_learns_ranks_and_explains() {
    let tool = Tool::new();
    let report = demonstration(&tool);
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
        assert!(words.contains('⇒') && words.contains("rule confidence"), "{words}");
    }
    for file in ["run.json", "config.toml", "stages.json", "rules.tsv", "results.json", "metrics.jsonl"] {
        assert!(tool.path("run").join(file).is_file(), "{file}");
    }
    let config = std::fs::read_to_string(tool.path("run/config.toml")).unwrap();
    assert!(config.contains("[rules]") && config.contains("threshold"), "{config}");
}

#[test]
fn what_is_done_is_not_done_again() {
    let tool = Tool::new();
    let first = demonstration(&tool);
    let second = demonstration(&tool);
    assert_eq!(first["stages"]["rules"]["skipped"], false);
    assert_eq!(second["stages"]["rules"]["skipped"], true);
    assert_eq!(first["mrr"], second["mrr"]);
    // Another setting of a stage does that stage again.
    let third = tool.json(&[&["run", "--out", "run", "--set", "rules.min_support=3"], &QUICK[..]].concat());
    assert_eq!(third["stages"]["rules"]["skipped"], false);
}

#[test]
fn a_run_can_be_evaluated_every_way() {
    let tool = Tool::new();
    let report = demonstration(&tool);
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
    let said = tool.refused(&["evaluate", "learnt", "--split", "valid"]);
    assert!(said.contains("has learnt its validation facts"), "{said}");
}

#[test]
fn a_run_answers_and_explains() {
    let tool = Tool::new();
    let report = demonstration(&tool);
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
    assert!(tool.done(&["explain", "run", subject, relation, object]).contains("predicted in place 1"));
    // A fact that nothing speaks for: said, with exit code 1.
    let nothing = tool.exits(&["explain", "run", subject, "gender", subject], 1);
    assert!(nothing.contains("not predicted"), "{nothing}");
    // Heads by the inverse relation.
    let heads = tool.json(&["predict", "run", object, &format!("~{relation}")]);
    assert_eq!(heads["inverse"], true);
}

#[test]
fn misspelt_names_have_suggestions() {
    let tool = Tool::new();
    let report = demonstration(&tool);
    let subject = report["examples"][0]["subject"].as_str().unwrap();
    let misspelt = subject.replacen(' ', "  ", 1);
    let said = tool.refused(&["predict", "run", &misspelt, "uncle_of"]);
    assert!(said.contains("did you mean") && said.contains(subject), "{said}");
    let said = tool.refused(&["predict", "run", subject, "uncel_of"]);
    assert!(said.contains("the graph has never seen a relation `uncel_of`; did you mean"), "{said}");
}

#[test]
fn a_file_of_queries_becomes_json_lines() {
    let tool = Tool::new();
    let report = demonstration(&tool);
    let subject = report["examples"][0]["subject"].as_str().unwrap();
    let queries =
        format!("{subject}\tuncle_of\n\nNobody At All\tuncle_of\r\n{subject}\t~parent_of\nno tab\n");
    tool.write("queries.tsv", &queries);
    let out = tool.done(&["predict", "run", "--file", "queries.tsv", "--top", "2"]);
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0]["answers"].as_array().unwrap().len() <= 2);
    assert!(lines[1]["error"].as_str().unwrap().contains("never seen"));
    assert_eq!(
        (&lines[2]["relation"], &lines[2]["inverse"]),
        (&Value::from("parent_of"), &Value::from(true))
    );
    assert!(lines[3]["error"].as_str().unwrap().contains("expected SUBJECT<TAB>RELATION"));
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
    assert_eq!(one.lines().nth(2), one.lines().nth(4));
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
    // More epochs go on from where training was.
    let more = tool.json(&[&arguments[..], &["--set", "walk.epochs=3"]].concat());
    assert_eq!(more["stages"]["pretraining"]["skipped"], true);
    assert_eq!(more["stages"]["training"]["figures"]["epochs"], 3);
    tool.done(&["report", "run", "--out", "page"]);
    let page = std::fs::read_to_string(tool.path("page/index.html")).unwrap();
    assert!(
        page.contains("training: on the validation split") && page.contains("Share of top answers"),
        "curves and shares"
    );
}

#[test]
fn a_report_is_one_page_that_needs_nothing_else() {
    let tool = Tool::new();
    demonstration(&tool);
    tool.done(&["report", "run", "--out", "page"]);
    let page = std::fs::read_to_string(tool.path("page/index.html")).unwrap();
    assert_eq!(std::fs::read_dir(tool.path("page")).unwrap().count(), 1);
    for foreign in ["http:", "https:", "<script", "url(", "@import", "src="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for tag in ["table", "svg", "ol", "li", "div", "figure", "section", "span", "p"] {
        let open = page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    assert!(page.contains("Rules sorted by accuracy"));
    assert_eq!(page.matches("class=\"path\"").count(), 20);
}
