//! Labels of relations, as a user meets them: shown in paths, rules and reports, taken in queries, kept by `convert`.

use crate::tool::Tool;
use std::fs;

/// A generated family whose relations have labels.
fn family(tool: &Tool) {
    tool.done(&["generate", "family", "--people", "120", "--seed", "1", "--out", "family", "--quiet"]);
    let train = fs::read_to_string(tool.path("family/train.tsv")).expect("it was generated");
    let mut relations: Vec<&str> =
        train.lines().map(|line| line.split('\t').nth(1).expect("a fact has three names")).collect();
    relations.sort_unstable();
    relations.dedup();
    let labels: String =
        relations.iter().map(|relation| format!("{relation}\tis <{relation}> here\n")).collect();
    fs::write(tool.path("family/relation_labels.tsv"), labels).expect("the folder can be written to");
}

#[test]
fn relations_are_read_by_their_labels_and_scripts_keep_the_names() {
    let tool = Tool::new();
    family(&tool);
    let rules = ["--set", "system=rules", "--set", "rules.samples=20000"];
    tool.done(
        &[&["run", "family", "--out", "run", "--config", "demonstration", "--quiet"], &rules[..]].concat(),
    );
    let test = fs::read_to_string(tool.path("family/test.tsv")).unwrap();
    // The first test query whose best answer has a path.
    let found = test.lines().find_map(|line| {
        let [subject, relation, _] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
        let output = tool.run(&["predict", "run", subject, relation, "--top", "1", "--json"]);
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let step = result["answers"][0]["path"][0].clone();
        step.is_object().then(|| (subject.to_owned(), relation.to_owned(), result))
    });
    let (subject, relation, result) = found.expect("rules answer some test query by a path");
    let answer = &result["answers"][0];
    assert_eq!(result["relation"], relation.as_str());
    for step in answer["path"].as_array().unwrap() {
        let name = step["relation"].as_str().unwrap();
        assert!(!name.contains('<'), "{name}");
        assert_eq!(step["relation_label"], format!("is <{name}> here"));
    }
    assert!(!answer["rule"]["text"].as_str().unwrap().contains(" here("), "{answer}");
    assert!(answer["rule"]["label"].as_str().unwrap().contains(" here("), "{answer}");

    // A label is taken for its relation, and is what a person reads.
    let label = format!("is <{relation}> here");
    let text = tool.done(&["predict", "run", &subject, &label, "--top", "1", "--quiet"]);
    assert!(text.lines().next().unwrap().contains(&format!(" {label} ?")), "{text}");
    let hop = format!("is <{}> here", answer["path"][0]["relation"].as_str().unwrap());
    assert!(text.lines().nth(2).unwrap().contains(&hop), "{text}");
    let object = answer["entity"].as_str().unwrap();
    let text = tool.done(&["explain", "run", &subject, &relation, object, "--quiet"]);
    assert!(text.contains(&format!(", then X {label} Y")), "{text}");
    let text = tool.done(&["explain", "run", &subject, &relation, object, "--clauses", "--quiet"]);
    assert!(text.contains(&format!("—{label}→ ")) && text.contains("> here("), "{text}");
    tool.done(&["report", "run", "--out", "page", "--quiet"]);
    let page = fs::read_to_string(tool.path("page/index.html")).unwrap();
    assert!(page.contains("&gt; here→</span>") || page.contains("←is &lt;"), "the page shows paths by names");
}

#[test]
fn phrases_make_the_sentences_and_clauses_are_there_on_demand() {
    let tool = Tool::new();
    family(&tool);
    tool.write(
        "family/relation_phrases.tsv",
        "cousin_of\t{s} and {o} are cousins\nparent_of\t{s} brought up {o}\t{o} grew up with {s}\n",
    );
    tool.done(&["run", "family", "--out", "run", "--quiet", "--set", "system=rules"]);
    let rules = fs::read_to_string(tool.path("run/rules.tsv")).unwrap();
    assert!(rules.contains("parent_of("), "rules keep their names");
    let test = fs::read_to_string(tool.path("family/test.txt"))
        .or_else(|_| fs::read_to_string(tool.path("family/test.tsv")))
        .unwrap();
    let cousin = test.lines().find(|line| line.contains("\tcousin_of\t")).unwrap();
    let subject = cousin.split('\t').next().unwrap();
    let text = tool.done(&["predict", "run", subject, "cousin_of", "--quiet"]);
    assert!(text.lines().next().unwrap().ends_with(" and ? are cousins"), "{text}");
    let json = tool.json(&["predict", "run", subject, "parent_of"]);
    let all = json["answers"].to_string()
        + &tool.json(&["predict", "run", subject, "cousin_of"])["answers"].to_string();
    assert!(all.contains(" grew up with ") || all.contains(" brought up "), "{all}");
    assert!(all.contains("this held in "), "{all}");
    assert!(
        !text.contains("—")
            && tool.done(&["predict", "run", subject, "cousin_of", "--clauses", "--quiet"]).contains("—")
    );
    // The counts give the confidence.
    let rule = &json["answers"][0]["rule"];
    if let (Some(confidence), Some(correct)) = (rule["confidence"].as_f64(), rule["correct"].as_f64()) {
        assert_eq!(confidence, correct / rule["predicted"].as_f64().unwrap());
    }
    tool.write("family/relation_phrases.tsv", "cousin_of\t{s} is a cousin\n");
    let message = tool.refused(&["run", "family", "--out", "other", "--set", "system=rules"]);
    assert!(message.contains("relation_phrases.tsv:1") && message.contains("{o}"), "{message}");
}

#[test]
fn convert_keeps_the_labels() {
    let tool = Tool::new();
    family(&tool);
    tool.done(&["convert", "family", "other", "--to", "csv", "--quiet"]);
    for file in ["entity_labels.tsv", "relation_labels.tsv"] {
        let lines = |folder: &str| {
            let text = fs::read_to_string(tool.path(folder).join(file)).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines("other"), lines("family"), "{file}");
    }
}
