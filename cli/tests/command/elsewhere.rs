//! Answers on another graph than the one that was learnt from, as a user meets them: two families of the same rules.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::tool::Tool;
use serde_json::Value;
use std::collections::BTreeMap;

/// Two families, and a run over the first with `settings`.
fn learnt(settings: &[&str]) -> Tool {
    let tool = Tool::new();
    for (name, seed) in [("own", "1"), ("other", "2")] {
        tool.done(&["generate", "family", "--people", "150", "--seed", seed, "--out", name]);
    }
    let mut arguments = vec!["run", "own", "--config", "demonstration", "--out", "run", "--quiet"];
    for setting in settings.iter().chain(&["rules.samples=20000", "eval.examples=0"]) {
        arguments.extend(["--set", setting]);
    }
    tool.done(&arguments);
    tool
}

/// What it says on stderr while all goes well.
fn notes(tool: &Tool, arguments: &[&str]) -> String {
    let output = tool.run(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {message}");
    message
}

/// A person of the other family who has a cousin, and no namesake in the own one.
fn cousin(tool: &Tool) -> String {
    let [own, other] =
        ["own", "other"].map(|family| std::fs::read_to_string(tool.path(family).join("train.tsv")).unwrap());
    let cousins = other.lines().filter(|line| line.contains("\tcousin_of\t")).map(|line| line.split('\t'));
    let mut people = cousins.filter_map(|mut fields| fields.next());
    people.find(|person| !own.contains(person)).unwrap().to_owned()
}

fn mrr(report: &Value) -> f64 {
    report["mrr"].as_f64().unwrap()
}

#[test]
fn rules_answer_on_another_family_and_those_about_other_people_are_counted() {
    let tool = learnt(&["system=rules", "rules.types=[\"cyclic\",\"acyclic\"]"]);
    let there = tool.json(&["evaluate", "run", "--on", "other", "--direction", "both"]);
    assert!(mrr(&there) > 0.8, "{there}");
    let (on, rules) = (&there["on"], there["on"]["rules_left_out"].as_u64().unwrap());
    assert_eq!((&on["data"], &on["facts_left_out"]), (&"other".into(), &0.into()), "{on}");
    assert!(rules > 0, "rules about people of the own family: {on}");
    assert_eq!(there["queries"], tool.json(&["stats", "other"])["test"].as_u64().unwrap() * 2);
    let message = notes(&tool, &["evaluate", "run", "--on", "other"]);
    assert!(
        message.contains(&format!(
            "on other: {rules} rules left out, because they name entities that it does not have"
        )),
        "{message}"
    );

    let cousin = cousin(&tool);
    let prediction = tool.json(&["predict", "run", &cousin, "cousin_of", "--on", "other"]);
    let answer = &prediction["answers"][0];
    assert!(
        answer["probability"].is_number() && !answer["path"].as_array().unwrap().is_empty(),
        "{prediction}"
    );
    let object = answer["entity"].as_str().unwrap();
    let why = tool.json(&["explain", "run", &cousin, "cousin_of", object, "--on", "other"]);
    assert_eq!(why["rank"], 1);
    assert!(tool.refused(&["predict", "run", &cousin, "cousin_of"]).contains(&cousin), "unknown at home");
    let done =
        tool.json(&["complete", "run", "--on", "other", "--relation", "cousin_of", "--out", "missing.tsv"]);
    assert!(done["facts"].as_u64().unwrap() > 0, "{done}");
}

#[test]
fn a_run_that_learnt_its_validation_facts_does_not_know_those_of_another_family() {
    let rules = ["system=rules", "rules.types=[\"cyclic\"]", "rules.min_support=2"];
    let learnt = |learn_valid| learnt(&[&rules[..], &[learn_valid]].concat());
    let (never, always) = (learnt("data.learn_valid=never"), learnt("data.learn_valid=always"));
    assert!(
        always.refused(&["evaluate", "run", "--split", "valid"]).contains("has learnt its validation facts")
    );
    let there = |tool: &Tool| tool.json(&["evaluate", "run", "--on", "other", "--split", "valid"]);
    let (never, always) = (there(&never), there(&always));
    // The rules differ by what a tenth more facts tells; facts that are walked on would be answers no more.
    assert_eq!(never["queries"], always["queries"]);
    assert!((mrr(&never) - mrr(&always)).abs() < 0.05, "{never} {always}");
}

#[test]
fn a_blend_goes_on_without_its_embedding_model_and_says_so() {
    let tool = learnt(&[
        "system=blend",
        "blend.with_walker=false",
        "blend.with_propagator=true",
        "embed.epochs=2",
        "embed.dimension=16",
        "propagate.layers=3",
        "propagate.width=16",
        "propagate.epochs=1",
        "propagate.epoch_queries=2000",
        "propagate.validation_queries=20",
    ]);
    let there = tool.json(&["evaluate", "run", "--on", "other"]);
    assert!(mrr(&there) > 0.8, "{there}");
    assert_eq!(there["on"]["members_left_out"], serde_json::json!(["the embedding model"]));
    assert!(there["calibration"].is_null(), "fitted with the embedding model");
    let message = notes(&tool, &["predict", "run", &cousin(&tool), "cousin_of", "--on", "other"]);
    assert!(
        message.contains("the embedding model left out") && message.contains("no probabilities:"),
        "{message}"
    );
    let prediction = tool.json(&["predict", "run", &cousin(&tool), "cousin_of", "--on", "other"]);
    let object = prediction["answers"][0]["entity"].as_str().unwrap();
    let asked = ["explain", "run", &cousin(&tool), "cousin_of", object, "--on", "other"];
    let why = tool.json(&asked);
    assert!(why["embedding"].is_null(), "{why}");
    // Whether the reason is the reason.
    let fall = &why["rules"][0]["propagator"];
    assert!(
        fall["score"].is_number() && fall["without"].is_number() && fall["score"] != fall["without"],
        "{why}"
    );
    assert!(tool.done(&asked).contains("the propagator's score: "));
    assert!(prediction["answers"][0].get("propagator").is_none(), "it costs a propagation a path");
}

#[test]
fn a_walker_that_knows_relations_alone_walks_another_graph_and_others_do_not() {
    let walk = ["system=walker", "walk.soft_reward=false", "walk.epochs=1", "walk.pretrain_epochs=1"];
    let tool = learnt(&[&walk[..], &["walk.entity_embeddings=false"]].concat());
    let there = tool.json(&["evaluate", "run", "--on", "other"]);
    assert!(mrr(&there) > 0.2, "{there}");
    let by_name = learnt(&walk);
    let message = by_name.refused(&["evaluate", "run", "--on", "other"]);
    assert!(
        message.contains("the walker with entity embeddings, which only knows the entities of its own graph"),
        "{message}"
    );
}

#[test]
fn an_updated_graph_is_asked_whole_and_what_was_never_learnt_is_counted() {
    let tool = learnt(&["system=rules"]);
    let own = std::fs::read_to_string(tool.path("own/train.tsv")).unwrap();
    let person = own.split('\t').next().unwrap();
    let new = "Newborn\tsibling_of\tTwin\nNewborn\towns\tBall\nTwin\towns\tBall\n";
    tool.write("now.tsv", &format!("{own}{new}{person}\tparent_of\tNewborn\n"));
    let message = notes(&tool, &["predict", "run", person, "parent_of", "--on", "now.tsv"]);
    assert!(
        message.contains("on now: 2 facts left out, of 1 relation that the run has not learnt: `owns`"),
        "{message}"
    );
    let prediction = tool.json(&["predict", "run", person, "parent_of", "--on", "now.tsv"]);
    let has = |list: &Value, name: &str| list.as_array().unwrap().iter().any(|one| one == name);
    assert!(has(&prediction["known_ids"], "Newborn"), "nothing is held out: {prediction}");
    let answers: Vec<&Value> =
        prediction["answers"].as_array().unwrap().iter().map(|one| &one["entity"]).collect();
    assert!(answers.contains(&&"Twin".into()), "the sibling of a child: {prediction}");
    assert!(tool.refused(&["predict", "run", "Newborn", "owns", "--on", "now.tsv"]).contains("owns"));
    tool.write("strange.tsv", "a\tlikes\tb\nb\tlikes\tc\n");
    let message = tool.refused(&["predict", "run", "a", "likes", "--on", "strange.tsv"]);
    assert!(
        message.starts_with(
            "ruleguider: strange: has no fact of a relation that the run has learnt; it has `likes`"
        ),
        "{message}"
    );
}

#[test]
fn apply_leaves_out_rules_that_name_what_the_data_lacks() {
    let tool = learnt(&["system=rules", "rules.types=[\"cyclic\",\"acyclic\"]"]);
    let arguments = ["apply", "other", "--rules", "run/rules.tsv"];
    let message = notes(&tool, &arguments);
    assert!(
        message.contains("rules left out: they name entities or relations that the data does not have; the first is run/rules.tsv:"),
        "{message}"
    );
    assert!(mrr(&tool.json(&arguments)) > 0.8);
    tool.write("rules.tsv", "3\t2\t0.66\tlikes(X,Y) <= likes(Y,X)\n");
    let message = tool.refused(&["apply", "other", "--rules", "rules.tsv"]);
    assert!(
        message
            .contains("none of the rules fits this data; rules.tsv:1:10: the data has no relation `likes`"),
        "{message}"
    );
}

#[test]
fn a_blend_answers_relations_that_it_has_not_learnt_by_its_universal_member_alone() {
    let tool = learnt(&[
        "system=blend",
        "blend.with_walker=false",
        "blend.with_embedding=false",
        "blend.also=[\"universal\"]",
    ]);
    // In the other family, two relations have names that the run has never seen.
    for split in ["train.tsv", "valid.tsv", "test.tsv"] {
        let path = tool.path("other").join(split);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("\tcousin_of\t", "\tvetter\t").replace("\tsibling_of\t", "\tgeschwister\t");
        std::fs::write(path, text).unwrap();
    }
    std::fs::remove_file(tool.path("other/splits.sha256")).unwrap();
    let facts = |relation: &str| {
        let files = ["train.tsv", "valid.tsv", "test.tsv"].map(|split| tool.path("other").join(split));
        let text = files.map(|file| std::fs::read_to_string(file).unwrap()).concat();
        text.lines()
            .filter(|line| line.contains(&format!("\t{relation}\t")))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (cousins, uncles) = (facts("vetter"), facts("uncle_of"));
    let subject = cousins[0].split('\t').next().unwrap();

    let predict = ["predict", "run", subject, "vetter", "--on", "other"];
    let message = notes(&tool, &predict);
    let count = cousins.len() + facts("geschwister").len();
    assert!(
        message.contains(&format!("on other: 2 relations that the run has not learnt ({count} facts): `"))
            && message.contains("the universal propagator answers there alone, and probabilities are rough there: calibration was fitted to only 64 facts"),
        "{message}"
    );
    let member = |answer: &Value, member: &str| {
        answer["because"].as_array().unwrap().iter().any(|one| one["member"] == member)
    };
    let prediction = tool.json(&predict);
    let answer = &prediction["answers"][0];
    assert!(answer["probability"].is_number() && answer["probability_rough"] == true, "{prediction}");
    assert!(!answer["path"].as_array().unwrap().is_empty() && !member(answer, "rules"), "{prediction}");
    let object = answer["entity"].as_str().unwrap();
    let why = tool.json(&["explain", "run", subject, "vetter", object, "--on", "other"]);
    assert_eq!((&why["rank"], &why["probability"]), (&1.into(), &answer["probability"]));
    assert_eq!(why["probability_rough"], true);

    // Relations that were learnt are answered as on a graph without the new ones, by all members.
    let known = uncles[0].split('\t').next().unwrap();
    let there = tool.json(&["predict", "run", known, "uncle_of", "--on", "other"]);
    let first = &there["answers"][0];
    assert!(member(first, "rules"), "{there}");
    assert!(
        first["probability"].is_number() && first.get("probability_rough").is_none_or(|rough| rough == false)
    );
    let learnt_alone = |split: &str| {
        let text = std::fs::read_to_string(tool.path("other").join(split)).unwrap();
        let lines =
            text.lines().filter(|line| !line.contains("\tvetter\t") && !line.contains("\tgeschwister\t"));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    std::fs::create_dir(tool.path("part")).unwrap();
    for split in ["train.tsv", "valid.tsv", "test.tsv"] {
        tool.write(&format!("part/{split}"), &learnt_alone(split));
    }
    let part = tool.json(&["predict", "run", known, "uncle_of", "--on", "part"]);
    let scores = |prediction: &Value| {
        let answers = prediction["answers"].as_array().unwrap().clone();
        answers
            .into_iter()
            .map(|one| (one["entity"].to_string(), one["score"].as_f64().unwrap()))
            .collect::<BTreeMap<_, _>>()
    };
    let (part, there) = (scores(&part), scores(&there));
    assert!(part.keys().eq(there.keys()), "{part:?} {there:?}");
    // Sums are made in the order of the numbers of entities.
    assert!(part.iter().all(|(name, score)| (score - there[name]).abs() < 1e-3), "{part:?} {there:?}");

    let figures = tool.json(&["evaluate", "run", "--on", "other", "--direction", "both"]);
    assert_eq!(figures["queries"], tool.json(&["stats", "other"])["test"].as_u64().unwrap() * 2);
    assert_eq!(figures["on"]["facts_not_learnt"], count);
    assert!(mrr(&figures) > 0.6, "{figures}");
    let new = tool.json(&["evaluate", "run", "--on", "other", "--relation", "vetter", "--direction", "both"]);
    assert!(mrr(&new) > 0.4 && new["calibration"].is_null(), "{new}");
    let out = ["--out", "missing.tsv"];
    let done = tool.json(
        &[&["complete", "run", "--on", "other", "--relation", "vetter", "--top", "20"], &out[..]].concat(),
    );
    assert_eq!(done["facts"], 20, "{done}");
    tool.write("given.tsv", &format!("{}\n{}\n", cousins[0], uncles[0]));
    let scored = tool.done(&["score", "run", "--on", "other", "--file", "given.tsv", "--json", "--quiet"]);
    let rows: Vec<Value> = scored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["probability"].is_number()), "{scored}");
    assert_eq!((&rows[0]["probability_rough"], &rows[1]["probability_rough"]), (&true.into(), &Value::Null));

    // Of a graph without any relation of the run, too.
    tool.write(
        "strange.tsv",
        &(0..40).map(|at| format!("a{at}\tlikes\ta{}\n", (at * 7 + 1) % 40)).collect::<String>(),
    );
    let strange = tool.json(&["predict", "run", "a1", "likes", "--on", "strange.tsv"]);
    assert!(!strange["answers"].as_array().unwrap().is_empty(), "{strange}");
}

#[test]
fn an_instant_run_answers_a_graph_with_other_relations_and_its_probabilities_are_rough_there() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "own", "--quiet"]);
    tool.done(&["run", "own", "--instant", "--out", "run", "--quiet"]);
    // The same world with every relation renamed and every person called otherwise.
    tool.done(&["generate", "family", "--people", "90", "--seed", "3", "--out", "base", "--quiet"]);
    std::fs::create_dir(tool.path("other")).unwrap();
    for split in ["train.tsv", "valid.tsv", "test.tsv"] {
        let text = std::fs::read_to_string(tool.path("base").join(split)).unwrap();
        let renamed = text.lines().map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            format!("p-{}\trel-{}\tp-{}\n", fields[0], fields[1], fields[2])
        });
        std::fs::write(tool.path("other").join(split), renamed.collect::<String>()).unwrap();
    }
    let figures = tool.json(&["evaluate", "run", "--on", "other", "--direction", "both"]);
    assert!(figures["mrr"].as_f64().unwrap() > 0.3, "{}", figures["mrr"]);
    let head = std::fs::read_to_string(tool.path("other/test.tsv")).unwrap();
    let [subject, relation] = [0, 1].map(|at| head.lines().next().unwrap().split('\t').nth(at).unwrap());
    let prediction = tool.json(&["predict", "run", subject, relation, "--on", "other"]);
    assert_eq!(prediction["answers"][0]["probability_rough"], true, "{prediction}");
    assert!(prediction["answers"][0]["probability"].as_f64().unwrap() > 0.0, "{prediction}");
}

#[test]
fn an_instant_run_needs_no_splits_and_takes_weights_from_a_file() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "own", "--quiet"]);
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../weights/universal.safetensors");
    let whole = tool.json(&["run", "own", "--instant", "--out", "run", "--quiet"]);
    let given = tool.json(&["run", "own", "--instant", "--weights", shipped, "--out", "given", "--quiet"]);
    assert_eq!(whole["mrr"], given["mrr"]);
    let message = tool.refused(&["ask", "own", "any", "uncle_of", "--weights", "nothing.safetensors"]);
    assert!(message.contains("nothing.safetensors"), "{message}");
    for missing in ["valid.tsv", "test.tsv"] {
        std::fs::remove_file(tool.path("own").join(missing)).unwrap();
        let _ = std::fs::remove_file(tool.path("own/splits.sha256"));
        let refused = tool.refused(&["run", "own", "--out", "learnt", "--minutes", "0.1"]);
        assert!(refused.contains("expected a file valid.txt"), "{refused}");
        let figures = tool.json(&["run", "own", "--instant", "--out", missing, "--quiet"]);
        assert!(figures["queries"].as_u64().unwrap() > 20, "{figures}");
    }
}
