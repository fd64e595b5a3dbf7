//! What data say beside their facts, as a user meets it: types, confidences, times, negatives, and what is wrong with them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::served::{Server, encoded, reports, runs};
use crate::tool::{Tool, copy_folder, text};
use serde_json::Value;
use std::collections::BTreeSet;

const GROUP: &str = "G0016 APT29";
const QUICK: [&str; 5] = ["--set", "system=rules", "--set", "rules.samples=500", "--quiet"];

/// The run over reports about groups, software and techniques, each with its type.
fn typed() -> Tool {
    let tool = Tool::new();
    copy_folder(&runs().path("reports"), &tool.path("run"));
    tool
}

/// Learns `table` by rules, with further arguments, into the folder `out`.
#[track_caller]
fn learnt(tool: &Tool, table: &str, out: &str, more: &[&str]) {
    tool.done(&[&["run", table, "--out", out][..], &QUICK, more].concat());
}

fn entities(prediction: &Value) -> Vec<String> {
    let answers = prediction["answers"].as_array().unwrap();
    answers.iter().map(|answer| answer["entity"].as_str().unwrap().to_owned()).collect()
}

/// What `predict` answers, if anything.
#[track_caller]
fn answers(tool: &Tool, run: &str, more: &[&str]) -> Vec<String> {
    let asked = [&["predict", run, GROUP, "performs", "--top", "50", "--json"][..], more].concat();
    let output = tool.run(&asked);
    let message = String::from_utf8_lossy(&output.stderr);
    let prediction: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{message}"));
    assert_eq!(output.status.code(), Some(i32::from(entities(&prediction).is_empty())), "{message}");
    entities(&prediction)
}

#[test]
fn answers_are_chosen_by_their_type_or_from_a_file() {
    let tool = typed();
    let all = answers(&tool, "run", &[]);
    assert!(all.len() > 1, "{all:?}");
    tool.write("wanted.txt", &format!("{}\n\n", all[1]));
    for (chosen, expected) in [
        (&["--among", "Technique"][..], &all[..]),
        (&["--among", "Software"], &[]),
        (&["--among", "wanted.txt"], &all[1..2]),
        (&["--not-among", "Technique"], &[]),
        (&["--among", "wanted.txt", "--not-among", "Technique"], &[]),
    ] {
        assert_eq!(answers(&tool, "run", chosen), expected, "{chosen:?}");
    }
    // Many queries at once choose them in the same way.
    tool.write("queries.tsv", &format!("{GROUP}\tperforms\n"));
    let lines = tool.done(&["predict", "run", "--file", "queries.tsv", "--among", "wanted.txt", "--quiet"]);
    assert_eq!(entities(&serde_json::from_str(&lines).unwrap()), all[1..2]);
    let wrong = tool.refused(&["predict", "run", GROUP, "performs", "--among", "Tecnique"]);
    assert!(
        wrong.contains("expected a type or a file of entities, found Tecnique; 3 types are known: ")
            && ["Group", "Software", "Technique"].iter().all(|of| wrong.contains(of)),
        "{wrong}"
    );
    tool.write("unknown.txt", "T1566 Phishing\nnobody at all\n");
    let wrong = tool.refused(&["predict", "run", GROUP, "performs", "--not-among", "unknown.txt"]);
    assert!(wrong.contains("unknown.txt:2: "), "{wrong}");
}

#[test]
fn the_server_chooses_answers_by_type_and_reads_no_files() {
    let server = Server::start(&["reports"]);
    let ask = |more: &str| {
        let subject = encoded(GROUP);
        server.get(&format!("/api/v1/reports/predict?subject={subject}&relation=performs&top=50{more}"))
    };
    let all = entities(&ask("").json());
    assert!(!all.is_empty());
    assert_eq!(entities(&ask("&among=Technique").json()), all);
    assert_eq!(entities(&ask("&not_among=Technique").json()), Vec::<String>::new());
    let file = encoded(text(&runs().path("reports.csv")));
    for unknown in ["Tecnique", &file] {
        let refused = ask(&format!("&among={unknown}"));
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(refused.text().contains("expected a type, found"), "{}", refused.text());
    }
}

/// Head and tail of the facts in a file of JSON lines.
fn ends(tool: &Tool, name: &str) -> BTreeSet<(String, String)> {
    let lines = std::fs::read_to_string(tool.path(name)).unwrap();
    let facts = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let name = |fact: &Value, end: &str| fact[end].as_str().unwrap().to_owned();
    facts.map(|fact| (name(&fact, "head"), name(&fact, "tail"))).collect()
}

#[test]
fn missing_facts_are_chosen_by_their_ends() {
    let tool = typed();
    let completed = |out: &str, more: &[&str]| {
        let asked = ["complete", "run", "--relation", "performs", "--top", "100", "--quiet", "--out", out];
        let output = tool.run(&[&asked[..], more, &["--json"]].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (report["queries"].as_u64().unwrap(), ends(&tool, out))
    };
    let (every_query, all) = completed("all.jsonl", &[]);
    let (head, tail) = all.first().unwrap().clone();
    tool.write("group.txt", &head);
    tool.write("technique.txt", &tail);
    let that = |wanted: &dyn Fn(&(String, String)) -> bool| -> BTreeSet<(String, String)> {
        all.iter().filter(|ends| wanted(ends)).cloned().collect()
    };
    let some = completed("some.jsonl", &["--subjects", "group.txt"]);
    assert_eq!(some, (1, that(&|ends| ends.0 == head)), "only the group is asked");
    let some = completed("some.jsonl", &["--objects", "technique.txt"]);
    assert_eq!(some, (every_query, that(&|ends| ends.1 == tail)));
    let one = completed("one.jsonl", &["--subjects", "group.txt", "--objects", "technique.txt"]);
    assert_eq!(one, (1, BTreeSet::from([(head, tail)])));
    let types = completed("types.jsonl", &["--subjects", "Group", "--objects", "Technique"]);
    assert_eq!(types, (every_query, all.clone()));
    assert_eq!(completed("none.jsonl", &["--objects", "Software"]).1, BTreeSet::new());
}

#[test]
fn equally_probable_facts_are_counted_and_said() {
    let tool = Tool::new();
    let known = |i: usize| if !i.is_multiple_of(3) { format!("x{i}\tknows\ty{i}\n") } else { String::new() };
    let facts: String = (0..90).map(|i| format!("x{i}\tlikes\ty{i}\n") + &known(i)).collect();
    tool.write("likes.tsv", &facts);
    learnt(&tool, "likes.tsv", "run", &[]);
    let asked = ["complete", "run", "--relation", "knows", "--top", "100", "--out", "facts.jsonl", "--quiet"];
    let message = tool.done(&asked);
    assert!(
        message.contains("\nthe first 30 are equally probable, in the order of their scores"),
        "{message}"
    );
    assert_eq!(tool.json(&asked)["tied"], 30);
    let lines = std::fs::read_to_string(tool.path("facts.jsonl")).unwrap();
    let facts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let number = |fact: &Value, of: &str| fact[of].as_f64().unwrap();
    assert!(facts.iter().all(|fact| number(fact, "probability") == number(&facts[0], "probability")));
    assert!(facts.is_sorted_by(|a, b| number(a, "score") >= number(b, "score")));
}

#[test]
fn figures_by_confidence_and_among_types_stand_beside_the_usual_ones() {
    let tool = typed();
    let figures = tool.json(&["evaluate", "run", "--candidates", "typed", "--quiet"]);
    let typed = &figures["typed"];
    assert_eq!((&typed["mean_candidates"], &typed["of_other_types"]), (&6.0.into(), &0.into()));
    assert_eq!(typed["queries"], figures["queries"]);
    assert!(typed["mrr"].as_f64() >= figures["mrr"].as_f64(), "{figures}");
    assert!(figures.get("by_confidence").is_none(), "all facts are certain");
    let all_ends = tool.json(&["evaluate", "run", "--quiet"]);
    assert!(all_ends.get("typed").is_none() && all_ends["mrr"] == figures["mrr"]);

    let table = reports();
    let sure = |(at, row): (usize, &str)| match at {
        0 => format!("{row},confidence\n"),
        _ => format!("{row},{}\n", if at % 3 == 0 { "0.25" } else { "1" }),
    };
    tool.write("sure.csv", &table.lines().enumerate().map(sure).collect::<String>());
    learnt(&tool, "sure.csv", "sure", &[]);
    let figures = tool.json(&["evaluate", "sure", "--quiet"]);
    let weighed = &figures["by_confidence"];
    assert_eq!(weighed["queries"], figures["queries"]);
    assert!(weighed["mrr"].is_f64() && weighed["mrr"] != figures["mrr"], "{figures}");
    let message = tool.done(&["evaluate", "sure", "--quiet"]);
    assert!(message.contains("confidence"), "{message}");
    let wrong = tool.refused(&["evaluate", "run", "--candidates", "kinds"]);
    assert!(wrong.contains("typed"), "{wrong}");
}

#[test]
fn strict_types_leave_out_what_no_other_entity_of_the_type_answers() {
    let tool = Tool::new();
    tool.write("reports.csv", &reports());
    learnt(&tool, "reports.csv", "plain", &["--set", "types.mode=off"]);
    let all = answers(&tool, "plain", &[]);
    let first = &all[0];
    // It is the only one of its type, so that no other entity of the type is an answer.
    let retired =
        reports().replace(&format!(",{first},Group,Technique,"), &format!(",{first},Group,Retired,"));
    let retired =
        retired.replace(&format!(",{first},Software,Technique,"), &format!(",{first},Software,Retired,"));
    tool.write("retired.csv", &retired);
    for (mode, expected) in [("off", &all[..]), ("strict", &all[1..])] {
        learnt(&tool, "retired.csv", mode, &["--set", &format!("types.mode={mode}")]);
        let found: BTreeSet<String> = answers(&tool, mode, &[]).into_iter().collect();
        assert_eq!(found, expected.iter().cloned().collect(), "{mode}");
    }
    let wrong = tool.refused(&["run", "reports.csv", "--out", "no", "--set", "types.mode=hard"]);
    assert!(wrong.contains("types.mode") && wrong.contains("strict"), "{wrong}");
}

#[test]
fn facts_of_a_day_and_later_are_held_out() {
    let tool = Tool::new();
    let table = reports();
    tool.write("reports.csv", &table);
    learnt(&tool, "reports.csv", "run", &["--split-time", "2022-01-02"]);
    let sizes = tool.json(&["stats", "reports.csv", "--split-time", "2022-01-02"]);
    let sizes = ["train", "valid", "test"].map(|split| sizes[split].as_u64().unwrap());
    assert!(sizes.iter().all(|&count| count > 0), "{sizes:?}");
    assert_eq!(tool.json(&["evaluate", "run", "--quiet"])["queries"], 2 * sizes[2]);
    // A fact that is stated twice holds since the first time.
    tool.done(&["convert", "reports.csv", "splits", "--split-time", "2022-01-02", "--quiet"]);
    let test = std::fs::read_dir(tool.path("splits")).unwrap().map(|file| file.unwrap().path());
    let test = test.into_iter().find(|path| text(path).contains("/test.")).unwrap();
    let test = std::fs::read_to_string(test).unwrap();
    assert!(test.lines().count() as u64 >= sizes[2] && !test.contains("2021-01") && test.contains("2022-01"));
}

#[test]
fn a_run_says_what_it_understood_before_it_learns() {
    let tool = Tool::new();
    tool.write("reports.csv", &reports());
    let output = tool.run(&[
        "run",
        "reports.csv",
        "--out",
        "run",
        "--set",
        "system=rules",
        "--set",
        "rules.samples=500",
    ]);
    let message = String::from_utf8(output.stderr).unwrap();
    let place = |words: &str| message.find(words).unwrap_or_else(|| panic!("{words}: {message}"));
    let said = place("source is publications, time is date. 24 of 24 entities have a type: 12 Group");
    assert!(said < place("mining"), "{message}");
    assert!(tool.done(&["stats", "reports.csv"]).contains("12 Group, 6 Software, 6 Technique"));
}

#[test]
fn questions_may_abbreviate_names_as_the_file_does() {
    let tool = Tool::new();
    let people = "@prefix kin: <http://example.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
                  kin:ada kin:parent_of kin:ben ; rdfs:label \"Ada\" . kin:ben kin:parent_of kin:cleo .\n\
                  kin:ada kin:sibling_of kin:dan . kin:dan kin:parent_of kin:eve .\n";
    tool.write("kin.ttl", people);
    let known = |subject: &str, relation: &str| {
        tool.json(&["ask", "kin.ttl", subject, relation, "--quiet"])["known_ids"].clone()
    };
    for (subject, relation) in [
        ("kin:ada", "kin:parent_of"),
        ("Ada", "kin:parent_of"),
        ("http://example.org/ada", "http://example.org/parent_of"),
    ] {
        assert_eq!(known(subject, relation), serde_json::json!(["http://example.org/ben"]), "{subject}");
    }
    assert_eq!(known("kin:eve", "~kin:parent_of"), serde_json::json!(["http://example.org/dan"]));
    assert!(tool.done(&["ask", "kin.ttl", "kin:ada", "kin:parent_of", "--quiet"]).contains("kin:ben"));
}

#[test]
fn a_fact_that_is_also_false_is_refused_or_settled() {
    let tool = Tool::new();
    tool.write("both.csv", "subject,relation,object,negative\na,r,b,false\nb,r,c,false\na,r,b,true\n");
    for (settled, facts) in [("drop", 1), ("facts", 2), ("negatives", 1)] {
        let counted = tool.json(&["stats", "both.csv", "--conflicts", settled]);
        assert_eq!(counted["facts"], facts, "{settled}");
        assert!(counted["understood"].to_string().contains("also known to be false"), "{settled}: {counted}");
    }
}

#[test]
fn what_is_wrong_with_a_table_is_said_with_its_place() {
    let header = "subject,relation,object,confidence\n";
    let cases: [(&str, &str, &[&str], &str); 8] = [
        (
            "high.csv",
            "a,r,b,0.5\nb,r,c,1.5\n",
            &[],
            "high.csv:3: expected a confidence above 0 and at most 1, found 1.5",
        ),
        ("zero.csv", "a,r,b,0\n", &[], "zero.csv:2: expected a confidence above 0 and at most 1, found 0"),
        (
            "word.csv",
            "a,r,b,sure\n",
            &[],
            "word.csv:2: expected a confidence above 0 and at most 1, found sure",
        ),
        (
            "column.csv",
            "a,r,b,1\n",
            &["--columns", "subject=subject,object=thing"],
            "column.csv:1: expected a column thing, as chosen for the object, found subject, relation, object, confidence",
        ),
        (
            "part.csv",
            "a,r,b,1\n",
            &["--columns", "verb=relation"],
            "expected one of the parts subject, relation, object, confidence, source, negative, time",
        ),
        (
            "day.csv",
            "a,r,b,1\n",
            &["--split-time", "soon"],
            "expected a date such as 2023-01-01, or a number; found soon",
        ),
        (
            "later.csv",
            "a,r,b,1\n",
            &["--split-time", "2031"],
            "later.csv: expected facts between known names from 2031 on, found none",
        ),
        ("settle.csv", "a,r,b,1\n", &["--conflicts", "ignore"], "'--conflicts <error|drop|facts|negatives>'"),
    ];
    let tool = Tool::new();
    for (name, rows, options, expected) in cases {
        tool.write(name, &format!("{header}{rows}"));
        let message = tool.refused(&[&["stats", name][..], options].concat());
        assert!(message.contains(expected), "{message}");
    }
    tool.write("both.csv", "subject,relation,object,negative\na,r,b,false\nb,r,c,0\na,r,b,true\n");
    let message = tool.refused(&["stats", "both.csv"]);
    assert!(
        message.contains("both.csv:4: ") && message.ends_with("stated as a fact in both.csv:2"),
        "{message}"
    );
}
