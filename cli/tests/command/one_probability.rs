//! A fact has one probability, wherever it is asked for: in `predict`, `explain` and `complete`, in parts, and by the server.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::served::{Server, encoded};
use crate::skip::{Need, skip};
use crate::tool::{Tool, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Head, relation and tail.
type Fact = [String; 3];

fn word(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The facts of a file of JSON lines with their probabilities as they are written.
fn facts(tool: &Tool, name: &str) -> BTreeMap<Fact, Value> {
    let file = std::fs::read_to_string(tool.path(name)).unwrap();
    let fact = |line: &str| {
        let fact: Value = serde_json::from_str(line).unwrap();
        (["head", "relation", "tail"].map(|key| word(&fact[key])), fact["probability"].clone())
    };
    file.lines().map(fact).collect()
}

/// The same number: the digits of a score may depend on the questions answered together with it from the seventh on.
#[track_caller]
fn same(one: &Value, other: &Value, fact: &Fact) {
    let [a, b] = [one, other].map(|value| value.as_f64().unwrap());
    assert!((a - b).abs() < 1e-6, "{fact:?}: {a} and {b}");
}

/// The probabilities that `score` and `explain --file` give these facts.
fn given<'a>(tool: &Tool, run: &str, facts: impl Iterator<Item = &'a Fact>) -> Vec<(Fact, Value)> {
    let list: String = facts.map(|fact| fact.join("\t") + "\n").collect();
    tool.write("given.tsv", &list);
    tool.done(&[
        "score",
        run,
        "--file",
        "given.tsv",
        "--threshold",
        "none",
        "--out",
        "scored.jsonl",
        "--quiet",
    ]);
    tool.done(&["explain", run, "--file", "given.tsv", "--reasons", "1", "--out", "why.jsonl", "--quiet"]);
    let rows = |name: &str| {
        let text = std::fs::read_to_string(tool.path(name)).unwrap();
        let row = |line: &str| {
            let row: Value = serde_json::from_str(line).unwrap();
            (["subject", "relation", "object"].map(|key| word(&row[key])), row["probability"].clone())
        };
        text.lines().map(row).collect::<Vec<_>>()
    };
    let all = [rows("scored.jsonl"), rows("why.jsonl")].concat();
    assert_eq!(all.len(), 2 * list.lines().count());
    all
}

/// Compares the probabilities of the facts that `complete` finds with those of every other way to ask, on the run `run` of
/// `tool`. Returns how many were compared.
fn compared(tool: &Tool, run: &str) -> usize {
    let complete = ["complete", run, "--top", "60", "--held-out", "show", "--quiet"];
    tool.done(&[&complete[..], &["--out", "all.jsonl"]].concat());
    let all = facts(tool, "all.jsonl");
    tool.done(&[&complete[..], &["--shard", "1-3/3", "--out", "part-{}.shard"]].concat());
    tool.done(&["merge", "part-2.shard", "part-1.shard", "part-3.shard", "--out", "merged.jsonl"]);
    assert_eq!(facts(tool, "merged.jsonl"), all);
    let queries: BTreeSet<String> =
        all.keys().map(|[head, relation, _]| format!("{head}\t{relation}\n")).collect();
    tool.write("queries.tsv", &queries.into_iter().collect::<String>());
    let mut predicted = BTreeMap::new();
    for line in tool.done(&["predict", run, "--file", "queries.tsv", "--top", "50", "--quiet"]).lines() {
        let result: Value = serde_json::from_str(line).unwrap();
        for answer in result["answers"].as_array().unwrap() {
            let fact = [&result["subject"], &result["relation"], &answer["entity"]].map(word);
            predicted.insert(fact, answer["probability"].clone());
        }
    }
    for (fact, probability) in &given(tool, run, all.keys()) {
        same(probability, &all[fact], fact);
    }
    // The regression that orders relations is fitted by every process, so one pair is asked.
    let (fact, probability) = all.iter().next().unwrap();
    let between = tool.json(&["predict", run, &fact[0], "?", &fact[2], "--top", "100"]);
    let own = between["answers"].as_array().unwrap().iter().find(|one| one["relation"] == *fact[1]).unwrap();
    same(&own["probability"], probability, fact);
    let server = Server::start(&[text(&tool.path(run))]);
    for (at, (fact, probability)) in all.iter().enumerate() {
        same(&predicted[fact], probability, fact);
        let [head, relation, tail] = fact;
        let named = |name: &str| {
            let [head, relation, tail] = [head, relation, tail].map(|part| encoded(part));
            format!("/api/v1/{name}?subject={head}&relation={relation}&object={tail}")
        };
        let why = server.json(&named(&format!("{run}/explain")));
        same(&why["answers"][0]["probability"], probability, fact);
        // A process for every fact would take long.
        if at % 20 == 0 {
            let why = tool.json(&["explain", run, head, relation, tail]);
            same(&why["answers"][0]["probability"], probability, fact);
            let asked =
                format!("/api/v1/{run}/predict?subject={}&relation={}", encoded(head), encoded(relation));
            let result = server.json(&asked);
            let answer =
                result["answers"].as_array().unwrap().iter().find(|answer| answer["entity"] == **tail);
            same(&answer.unwrap()["probability"], probability, fact);
        }
    }
    let relation = all.keys().next().unwrap()[1].clone();
    let listed =
        server.json(&format!("/api/v1/{run}/facts?relation={}&held_out=show&limit=1000", encoded(&relation)));
    let of_list = |fact: &Value| {
        (["head", "relation", "tail"].map(|key| word(&fact[key])), fact["probability"].clone())
    };
    let listed: BTreeMap<Fact, Value> = listed["items"].as_array().unwrap().iter().map(of_list).collect();
    for (fact, probability) in all.iter().filter(|(fact, _)| fact[1] == relation) {
        same(&listed[fact], probability, fact);
    }
    all.len()
}

#[test]
fn a_fact_has_one_probability_by_rules() {
    let tool = Tool::new();
    tool.demonstration();
    assert_eq!(compared(&tool, "run"), 60);
}

#[test]
fn a_fact_has_one_probability_by_a_blend() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "120", "--seed", "3", "--out", "family", "--quiet"]);
    let blend = ["--set", "system=blend", "--set", "embed.epochs=5", "--set", "rules.samples=1000"];
    tool.done(&[&["run", "family", "--out", "blend", "--quiet"], &blend[..]].concat());
    assert_eq!(compared(&tool, "blend"), 60);
}

#[test]
fn a_fact_has_one_probability_where_every_entity_has_a_score() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--seed", "5", "--out", "family", "--quiet"]);
    tool.done(&["run", "family", "--instant", "--out", "instant", "--quiet"]);
    assert_eq!(compared(&tool, "instant"), 60);
    let alone = ["run", "family", "--instant", "--set", "system=universal", "--out", "alone", "--quiet"];
    tool.done(&alone);
    assert_eq!(compared(&tool, "alone"), 60);
}

#[test]
fn a_fact_has_one_probability_on_a_graph_that_is_no_family() {
    let data = std::env::var_os("RULEGUIDER_DATA").map(PathBuf::from);
    let data = data.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"));
    let umls = data.join("umls");
    if !umls.is_dir() {
        return skip(Need::Data, format_args!("{} is not there", umls.display()));
    }
    let tool = Tool::new();
    let settings = ["system=blend", "blend.with_walker=false", "blend.with_propagator=false"];
    let small = ["rules.samples=1000", "embed.epochs=3", "embed.dimension=16"];
    let mut arguments = vec!["run", text(&umls), "--out", "umls", "--quiet"];
    arguments.extend(settings.iter().chain(&small).flat_map(|setting| ["--set", setting]));
    tool.done(&arguments);
    assert_eq!(compared(&tool, "umls"), 60);
}

#[test]
fn what_was_held_out_is_counted_as_proof_and_is_no_news() {
    let tool = Tool::new();
    tool.demonstration();
    let complete = |which: &str| {
        let out = format!("{which}.jsonl");
        let summary =
            tool.json(&["complete", "run", "--min-probability", "0.2", "--held-out", which, "--out", &out]);
        let text = std::fs::read_to_string(tool.path(&out)).unwrap();
        let facts: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(summary["facts"], facts.len());
        (summary, facts)
    };
    let [(hide, new), (show, all), (only, found)] = ["hide", "show", "only"].map(complete);
    let by = |facts: &[Value], split: &str| facts.iter().filter(|fact| fact["held_out"] == split).count();
    assert!(new.iter().all(|fact| fact["held_out"].is_null()) && !new.is_empty());
    assert!(found.iter().all(|fact| !fact["held_out"].is_null()) && by(&found, "valid") > 0);
    let is_new = |fact: &&Value| fact["held_out"].is_null();
    assert_eq!(all.iter().filter(is_new).collect::<Vec<_>>(), new.iter().collect::<Vec<_>>());
    assert_eq!(all.iter().filter(|fact| !is_new(fact)).collect::<Vec<_>>(), found.iter().collect::<Vec<_>>());
    for summary in [&hide, &show, &only] {
        assert_eq!(summary["recovered"], by(&found, "test"), "{summary}");
        assert!(summary["recovered"].as_u64() < summary["hidden"].as_u64(), "{summary}");
    }
    let message = tool.done(&["complete", "run", "--top", "5", "--out", "five.tsv"]);
    assert!(message.contains("\nrecovered ") && message.contains(" facts hidden from it"), "{message}");
    assert_eq!(std::fs::read_to_string(tool.path("five.tsv")).unwrap().lines().count(), 6);
    // The default is to hide, by parts too.
    tool.done(&["complete", "run", "--top", "5", "--shard", "1-2/2", "--out", "five-{}.shard"]);
    let merged = tool.done(&["merge", "five-1.shard", "five-2.shard", "--out", "merged.tsv"]);
    assert_eq!(
        std::fs::read(tool.path("merged.tsv")).unwrap(),
        std::fs::read(tool.path("five.tsv")).unwrap()
    );
    let recovered = |message: &str| message.lines().last().map(str::to_owned);
    assert_eq!(recovered(&merged), recovered(&message));
    let refused = tool.refused(&["complete", "run", "--held-out", "maybe", "--out", "x.tsv"]);
    assert!(refused.contains("expected hide, show or only, found maybe"), "{refused}");
}
