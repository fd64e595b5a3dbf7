//! What an answer's score came from, as a user meets it: in JSON, as text, and measured.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::tool::Tool;
use serde_json::Value;

/// A run of rules and a small embedding model, with given weights, over the demonstration graph.
fn blended(tool: &Tool, settings: &[&str]) {
    let shared = [
        "system=blend",
        "blend.with_walker=false",
        "rules.samples=4000",
        "rules.longer=false",
        "embed.dimension=16",
        "embed.epochs=6",
        "embed.evaluate_every=3",
    ];
    let mut arguments = vec!["run", "--out", "run", "--quiet"];
    arguments.extend(shared.iter().chain(settings).flat_map(|setting| ["--set", setting]));
    tool.done(&arguments);
}

fn share(part: &Value) -> f64 {
    part["share"].as_f64().unwrap()
}

/// Checks that the shares add up: those of members to the score, those of evidence to its member.
fn check(scored: &Value, score: f64) {
    let because = scored["because"].as_array().unwrap();
    let sum = scored["typical"].as_f64().unwrap() + because.iter().map(share).sum::<f64>();
    assert!((sum - score).abs() < 1e-9, "{sum} {score}: {scored}");
    for member in because {
        let Some(evidence) = member["evidence"].as_array() else { continue };
        let sum: f64 = evidence.iter().map(share).sum();
        assert!((sum - share(member)).abs() < 1e-9, "{member}");
    }
}

#[test]
fn a_score_is_the_sum_of_what_it_came_from() {
    let tool = Tool::new();
    blended(&tool, &["blend.fit=false", "blend.rules=0.5", "blend.embedding=0.5"]);
    let asked = ["run", "Ilse_Hagenthal", "cousin_of"];
    let prediction = tool.json(&[&["predict"][..], &asked].concat());
    let answers = prediction["answers"].as_array().unwrap();
    assert!(!answers.is_empty());
    for answer in answers {
        check(answer, answer["score"].as_f64().unwrap());
    }
    let first = answers[0]["entity"].as_str().unwrap();
    let explain = [&["explain"][..], &asked, &[first]].concat();
    let why = tool.json(&explain);
    check(&why, answers[0]["score"].as_f64().unwrap());
    let member = |name: &str| {
        let all = why["because"].as_array().unwrap();
        all.iter().find(|member| member["member"] == name).unwrap_or_else(|| panic!("{name}: {why}"))
    };
    let cases: Vec<&Value> = member("embedding")["evidence"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["case"].is_object())
        .collect();
    assert!(!cases.is_empty(), "{why}");
    let rules = member("rules")["evidence"].as_array().unwrap();
    assert!(rules[0]["rule"]["text"].is_string() && rules[0]["paths"].as_u64() >= Some(1), "{why}");
    assert!(
        member("rules")["words"].as_str().unwrap().contains(" was right in ")
            || member("rules")["words"].as_str().unwrap().contains("together")
    );
    let message = tool.done(&explain);
    assert!(
        message.contains("came from (a typical candidate has") && message.contains("embedding  "),
        "{message}"
    );
    assert!(tool.done(&[&["predict"][..], &asked].concat()).contains("because: "));
    tool.done(&["complete", "run", "--relation", "cousin_of", "--top", "5", "--out", "missing.jsonl"]);
    let text = std::fs::read_to_string(tool.path("missing.jsonl")).unwrap();
    for line in text.lines() {
        let fact: Value = serde_json::from_str(line).unwrap();
        check(&fact, fact["score"].as_f64().unwrap());
    }
}

#[test]
fn answers_that_have_to_be_explained_are_ranked_without_the_embedding_model() {
    let tool = Tool::new();
    blended(&tool, &["blend.explained=true"]);
    let recipe: Value =
        serde_json::from_str(&std::fs::read_to_string(tool.path("run/blend.json")).unwrap()).unwrap();
    assert_eq!(recipe["general"]["embedding"], 0.0);
    assert_eq!(recipe["general_head"]["embedding"], 0.0);
    assert!(recipe["adds"]["embedding"].is_number(), "what it costs is known: {recipe}");
    let prediction = tool.json(&["predict", "run", "Ilse_Hagenthal", "cousin_of"]);
    for answer in prediction["answers"].as_array().unwrap() {
        let members = answer["because"].as_array().unwrap();
        assert!(members.iter().all(|member| member["member"] != "embedding"), "{answer}");
    }
}

#[test]
fn the_facts_of_the_reasons_are_what_the_answers_depend_on() {
    let tool = Tool::new();
    tool.demonstration();
    let asked = ["evaluate", "run", "--faithfulness", "--queries", "30"];
    let measured = tool.json(&asked)["faithfulness"].clone();
    let value = |key: &str| {
        let estimate = &measured[key];
        let [value, low, high] = ["value", "low", "high"].map(|end| estimate[end].as_f64().unwrap());
        assert!(low <= value && value <= high, "{key}: {estimate}");
        value
    };
    assert!(measured["answers"].as_u64().unwrap() > 10, "{measured}");
    // So many rules predict each of these facts that others stand in for those shown, and the score falls little. But
    // most answers lose their place by it, and by as many other facts none does.
    assert!(value("deletion") > value("deletion_random") + 0.03, "{measured}");
    assert!(value("kept_place") < 0.5 && value("kept_place_random") > 0.9, "{measured}");
    assert!((0.0..=1.0).contains(&value("sufficiency")));
    assert_eq!(
        measured["members"]["rules"]["deletion"], measured["deletion"],
        "rules are all that answers here"
    );
    assert_eq!(tool.json(&asked)["faithfulness"], measured, "the same each time");
    assert!(tool.done(&asked).contains("without these facts"));
    let refused = tool.refused(&["evaluate", "run", "--queries", "30"]);
    assert!(refused.contains("--faithfulness"), "{refused}");
}

#[test]
fn reasons_keep_to_the_paths_that_are_asked_for() {
    let tool = Tool::new();
    tool.demonstration();
    let asked = ["predict", "run", "Ilse_Hagenthal", "cousin_of"];
    let relations = |path: &Value| {
        let hops = path.as_array().unwrap().iter();
        hops.map(|hop| hop["relation"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    let paths = |limits: &[&str]| {
        let found = tool.json(&[&asked[..], limits].concat());
        let answers = found["answers"].as_array().unwrap();
        answers.iter().map(|answer| relations(&answer["path"])).collect::<Vec<_>>()
    };
    let all = paths(&[]);
    assert!(all.iter().any(|path| path.len() > 2), "{all:?}");
    let used = all[0][0].clone();
    let without = paths(&["--without", &used]);
    assert!(!without.is_empty() && without.iter().all(|path| !path.contains(&used)), "{without:?}");
    let short = paths(&["--max-hops", "2"]);
    assert!(!short.is_empty() && short.iter().all(|path| path.len() <= 2), "{short:?}");
    let two = ["--through", "aunt_of", "--through", "sibling_of"];
    let through = paths(&two);
    let both = |hop: &String| hop == "aunt_of" || hop == "sibling_of";
    assert!(!through.is_empty() && through.iter().all(|path| path.iter().all(both)), "{through:?}");
    // An entity on the way of the first answer.
    let found = tool.json(&asked);
    let first = &found["answers"][0];
    let (entity, between) = (first["entity"].as_str().unwrap(), first["path"][0]["entity"].as_str().unwrap());
    let passing = tool.json(&[&asked[..], &["--through", between]].concat());
    let passes =
        |answer: &Value| answer["path"].as_array().unwrap().iter().any(|hop| hop["entity"] == between);
    let answers = passing["answers"].as_array().unwrap();
    assert!(!answers.is_empty() && answers.iter().all(passes), "{passing}");
    let why = ["explain", "run", "Ilse_Hagenthal", "cousin_of", entity, "--without", between];
    let explained = tool.json(&why);
    assert_eq!(explained["score"], first["score"], "the answer stays what it is");
    for reason in
        explained["answers"].as_array().unwrap().iter().chain(explained["rules"].as_array().unwrap())
    {
        assert!(!passes(reason), "{reason}");
    }
    let complete = ["complete", "run", "--relation", "cousin_of", "--out", "missing.jsonl"];
    tool.done(&[&complete[..], &["--top", "20", "--held-out", "show"], &two].concat());
    let text = std::fs::read_to_string(tool.path("missing.jsonl")).unwrap();
    assert!(text.lines().count() > 5);
    for line in text.lines() {
        let fact: Value = serde_json::from_str(line).unwrap();
        assert!(relations(&fact["path"]).iter().all(both), "{fact}");
    }
    let refused = tool.refused(&[&asked[..], &["--through", "Nobody at all"]].concat());
    assert!(refused.contains("expected a relation, a type, an entity or a file of entities"), "{refused}");
}
