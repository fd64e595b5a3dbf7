//! `judge`: a study is drawn, served blind, judged, and what the votes come to is reported; nothing confirmed is lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::judged::{Judge, NAMES, prepare, serve, systems};
use crate::served::Reply;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CHOICES: [&str; 4] = ["left", "right", "both", "neither"];

/// A table of a study as JSON, read as anybody with SQLite would.
fn table(study: &str, query: &str) -> Vec<Vec<String>> {
    let connection = rusqlite::Connection::open(systems().path(study)).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    let columns = statement.column_count();
    let cell = |row: &rusqlite::Row<'_>, at: usize| -> rusqlite::Result<String> {
        Ok(match row.get_ref(at)? {
            rusqlite::types::ValueRef::Integer(number) => number.to_string(),
            rusqlite::types::ValueRef::Real(number) => number.to_string(),
            other => other.as_str().unwrap_or_default().to_owned(),
        })
    };
    let rows = statement.query_map([], |row| (0..columns).map(|at| cell(row, at)).collect()).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn the_same_seed_draws_the_same_study_and_what_is_left_out_is_counted() {
    let result = prepare("one.db", 25, &["--seed", "4"]);
    let pair = &result["pairs"][0];
    assert_eq!((&result["items"], &pair["items"]), (&json!(25), &json!(25)));
    let count = |key: &str| pair[key].as_u64().unwrap();
    assert_eq!(count("looked_at"), count("items") + count("identical") + count("unanswered"));
    assert!(count("identical") > 0, "{result}");
    prepare("again.db", 25, &["--seed", "4"]);
    let bytes = |name: &str| std::fs::read(systems().path(name)).unwrap();
    assert_eq!(bytes("one.db"), bytes("again.db"));
    prepare("other.db", 25, &["--seed", "5"]);
    assert_ne!(bytes("one.db"), bytes("other.db"));
    // Every fact is of the validation split, every path leads from its head to its tail, and no two are the same.
    let items = table("one.db", "SELECT head, relation, tail, first_path, second_path FROM items");
    for item in &items {
        assert_ne!(item[3], item[4]);
        for path in [&item[3], &item[4]] {
            let steps: Vec<Value> = serde_json::from_str(path).unwrap();
            assert_eq!(steps.last().unwrap()["entity"], item[2].as_str());
            let keys: BTreeSet<&String> =
                steps.iter().flat_map(|step| step.as_object().unwrap().keys()).collect();
            assert!(!keys.iter().any(|key| key.contains("score")), "{keys:?}");
        }
        let why = systems().json(&["explain", "longlegs", &item[0], &item[1], &item[2]]);
        assert_eq!(why["held_out"], "valid");
        let ways = why["answers"].as_array().unwrap();
        let first: Vec<Value> = serde_json::from_str(&item[3]).unwrap();
        let walked = |way: &Value| {
            let steps = way["path"].as_array().unwrap().iter();
            steps.map(|step| step["entity"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(walked(&ways[0]), first.iter().map(|step| step["entity"].clone()).collect::<Vec<_>>());
    }
    let distinct: BTreeSet<&[String]> = items.iter().map(|item| &item[..3]).collect();
    assert_eq!(distinct.len(), 25);
}

#[test]
fn predictions_of_other_programs_are_judged_like_a_run() {
    let valid = valid();
    std::fs::create_dir_all(systems().path("broken")).unwrap();
    let queries: String = valid.iter().map(|[head, relation, _]| format!("{head}\t{relation}\n")).collect();
    systems().write("queries.tsv", &queries);
    let lines =
        systems().done(&["predict", "shortlegs", "--file", "queries.tsv", "--top", "1000", "--quiet"]);
    systems().write("foreign.jsonl", &lines);
    let arguments =
        ["judge", "prepare", "longlegs", "foreign.jsonl", "--quiet", "--triples", "25", "--seed", "4"];
    let names = NAMES.join(",");
    systems().done(&[&arguments[..], &["--names", &names, "--out", "foreign.db"]].concat());
    prepare("runs.db", 25, &["--seed", "4"]);
    let items = "SELECT * FROM items";
    assert_eq!(table("foreign.db", items), table("runs.db", items));
    // What cannot be shown is refused with its place.
    let [head, relation, tail] = &valid[0];
    let line = |path: Value| {
        let answer = json!({"entity": tail, "path": path});
        json!({"subject": head, "relation": relation, "answers": [answer]}).to_string()
    };
    let step = |entity: &str| json!({"relation": relation, "inverse": false, "entity": entity});
    for (text, complaint) in [
        ("{}".to_owned(), "foreign.jsonl:2: expected a prediction"),
        (line(json!([step(tail)])), "foreign.jsonl:2: the path to"),
        (
            line(json!([step("Nobody_Known")])),
            "foreign.jsonl:2: the data does not have an entity `Nobody_Known`",
        ),
    ] {
        systems().write("broken/foreign.jsonl", &format!("\n{text}\n"));
        let message =
            systems().refused(&["judge", "prepare", "longlegs", "broken/foreign.jsonl", "--out", "no.db"]);
        assert!(message.contains(complaint), "{message}");
        assert!(!systems().path("no.db").exists());
    }
}

/// The validation split of the demonstration, by name.
fn valid() -> Vec<[String; 3]> {
    let dataset = ruleguider::generate::demonstration();
    let name = |fact: &ruleguider::graph::Triple| {
        let names = &dataset.names;
        [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)].map(str::to_owned)
    };
    dataset.known.valid.iter().map(name).collect()
}

#[test]
fn three_systems_are_judged_in_pairs_and_measured_on_the_same_facts() {
    let names = "A,B,C";
    systems().write("empty.jsonl", "");
    let three =
        ["judge", "prepare", "longlegs", "shortlegs", "empty.jsonl", "--names", names, "--triples", "5"];
    let result = systems().json(&[&three[..], &["--out", "three.db", "--quiet"]].concat());
    let pairs: Vec<(&Value, &Value)> =
        result["pairs"].as_array().unwrap().iter().map(|pair| (&pair["systems"], &pair["items"])).collect();
    let expected = [(json!([0, 1]), json!(5)), (json!([0, 2]), json!(0)), (json!([1, 2]), json!(0))];
    assert_eq!(pairs, expected.each_ref().map(|(systems, items)| (systems, items)));
    let measure = ["judge", "measure", "longlegs", "shortlegs", "--triples", "50", "--quiet"];
    let figures = systems().json(&measure);
    let [long, short] = [&figures[0], &figures[1]];
    assert_eq!(
        (&long["paths"], &short["paths"], &long["looked_at"]),
        (&json!(50), &json!(50), &short["looked_at"])
    );
    assert!(short["lengths"].as_array().unwrap().len() <= 2, "{figures}");
    assert_eq!(long["rule_share"], 1.0, "whoever answers by rules follows one");
    assert!(systems().done(&measure).contains("| follow a mined rule | 100.0 % |"));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    for (arguments, complaint) in [
        (&["longlegs"][..], "expected at least 2 systems, found 1"),
        (&["longlegs", "longlegs"][..], "two systems are called `longlegs`"),
        (&["longlegs", "nowhere"][..], "nowhere: cannot be read"),
        (&["longlegs", "shortlegs", "--names", "one"][..], "expected 2 names for 2 systems, found 1"),
        (&["empty.jsonl", "empty.jsonl", "--names", "a,b"][..], "at least one run directory"),
    ] {
        systems().write("empty.jsonl", "");
        let message = systems().refused(&[&["judge", "prepare", "--out", "no.db"], arguments].concat());
        assert!(message.contains(complaint), "{message}");
    }
    prepare("there.db", 2, &[]);
    let again = ["judge", "prepare", "longlegs", "shortlegs", "--out", "there.db"];
    assert!(systems().refused(&again).contains("already exists and may hold votes"));
    assert!(systems().refused(&["judge", "serve", "nowhere.db"]).contains("there is no such study"));
    systems().write("text.db", "no study");
    assert!(systems().refused(&["judge", "report", "text.db"]).contains("is not a study"));
    let none = systems().run(&["judge", "report", "there.db", "--quiet"]);
    assert_eq!(none.status.code(), Some(1), "nobody has voted");
    let alone = ["judge", "prepare", "longlegs", "empty.jsonl", "--out", "no.db", "--quiet"];
    systems().exits(&alone, 1);
    assert!(!systems().path("no.db").exists(), "there is nothing to judge");
}

/// Everything of an answer that a browser gets.
fn all_bytes(reply: &Reply) -> String {
    let headers: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    headers + &reply.text()
}

#[test]
fn nothing_that_is_sent_tells_whose_path_it_is() {
    prepare("blind.db", 20, &["--seed", "2"]);
    let (server, tokens) = serve("blind.db", 2, 2);
    let mut files = Vec::new();
    let scripts = ["/app/judge.js", "/app/dom.js", "/app/api.js", "/app/draw.js"];
    for file in ["/", "/judge.css", "/style.css", "/base.css", "/icon.svg"].into_iter().chain(scripts) {
        let reply = server.get(file);
        assert_eq!(reply.status, 200, "{file}");
        files.push(all_bytes(&reply));
    }
    let mut sent = Vec::new();
    let mut judge = Judge::new(&server, &tokens[0]);
    let mut reply = judge.standing();
    let mut shown: Vec<Value> = Vec::new();
    for at in 0.. {
        sent.push(all_bytes(&reply));
        let standing = reply.json();
        let keys: Vec<&String> = standing.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["can_undo", "done", "item", "total"]);
        let Some(item) = standing["item"].as_object() else { break };
        assert_eq!(item.keys().collect::<Vec<_>>(), ["at", "head", "left", "relation", "right", "tail"]);
        for step in item["left"].as_array().unwrap().iter().chain(item["right"].as_array().unwrap()) {
            let keys: Vec<&String> = step.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["inverse", "label", "relation"]);
        }
        shown.push(standing["item"].clone());
        sent.push(all_bytes(&judge.vote(at + 7, "left")));
        reply = judge.vote(at, CHOICES[at % 4]);
        assert_eq!(reply.status, 200);
    }
    assert_eq!(shown.len(), 21);
    sent.push(all_bytes(&judge.undo(3)));
    sent.push(all_bytes(&server.get("/api/v1/nothing")));
    sent.push(all_bytes(&server.get("/metrics")));
    // The files are the same for every study; what is sent of this one has no word for a system or its opinion either.
    let names = [NAMES[0], NAMES[1], "longlegs", "shortlegs"];
    let opinions = ["confidence", "probability", "score", "system", "rule", "\"first", "\"second"];
    let holds = |bytes: &String, word: &str| bytes.to_lowercase().contains(&word.to_lowercase());
    for word in names {
        assert!(!files.iter().chain(&sent).any(|bytes| holds(bytes, word)), "{word} is sent");
    }
    for word in opinions {
        let found = sent.iter().find(|bytes| holds(&bytes.replace("ruleguider", ""), word));
        assert!(found.is_none(), "{word} in {found:?}");
    }
    // With the systems the other way round, judges see the same facts with the same two paths, whose sides and order are
    // drawn anew: what is shown depends on which system is which by a coin alone.
    let names = format!("{},{}", NAMES[1], NAMES[0]);
    let swapped =
        ["judge", "prepare", "shortlegs", "longlegs", "--seed", "2", "--triples", "20", "--names", &names];
    systems().done(&[&swapped[..], &["--out", "swapped.db", "--quiet"]].concat());
    let (server, tokens) = serve("swapped.db", 1, 1);
    let mut judge = Judge::new(&server, &tokens[0]);
    // A fact with its paths, whatever their sides.
    let facts = |items: &[Value]| -> BTreeSet<String> {
        let paths = |item: &Value| BTreeSet::from([item["left"].to_string(), item["right"].to_string()]);
        items.iter().map(|item| format!("{} {} {:?}", item["head"], item["tail"], paths(item))).collect()
    };
    let mut again = Vec::new();
    for at in 0..shown.len() {
        again.push(judge.standing().json()["item"].clone());
        judge.vote(at, "both");
    }
    assert_eq!(facts(&again), facts(&shown));
    let length = |path: &Value| path.as_array().unwrap().len();
    let coins: BTreeSet<bool> =
        shown.iter().map(|item| length(&item["left"]) > length(&item["right"])).collect();
    assert_eq!(coins.len(), 2, "the longer path is on either side");
}

#[test]
fn a_judge_is_known_by_their_link_alone_and_sees_their_own_votes_alone() {
    prepare("tokens.db", 20, &[]);
    let (mut server, tokens) = serve("tokens.db", 2, 2);
    let everything = std::fs::read(systems().path("tokens.db")).unwrap();
    let kept = |token: &str| everything.windows(token.len()).any(|bytes| bytes == token.as_bytes());
    assert!(!tokens.iter().any(|token| kept(token)), "only a sum is kept");
    let mut one = Judge::new(&server, &tokens[0]);
    let mut two = Judge::new(&server, &tokens[1]);
    assert_eq!(one.vote(0, "left").json()["done"], 1);
    assert_eq!(two.standing().json()["done"], 0);
    // A second vote on the same screen, and one before its turn, change nothing.
    let again = one.vote(0, "right");
    assert_eq!((again.status, &again.json()["done"]), (409, &json!(1)));
    assert_eq!(one.vote(5, "right").status, 409);
    for wrong in [Judge::new(&server, "guess"), Judge::new(&server, "")] {
        assert_eq!({ wrong }.standing().status, 401);
    }
    assert_eq!(server.get("/api/v1/judge").status, 401);
    for (body, status) in [
        (json!({"at": 1, "choice": "top", "seconds": 1}), 400),
        (json!({"at": 1, "choice": "left"}), 400),
        (json!({"at": 1, "choice": "left", "seconds": -1.0}), 400),
        (json!({"at": 1, "choice": "left", "seconds": 1, "judge": 2}), 400),
        (json!({"at": 1, "choice": "left", "seconds": 9_223_372_036_854_775_808_u64}), 400),
        (json!({"at": 1, "choice": "left", "seconds": 1e300}), 400),
        (json!({"at": 9_223_372_036_854_775_808_u64, "choice": "left", "seconds": 1}), 400),
        (json!({"at": 1, "choice": "x".repeat(9000), "seconds": 1}), 413),
    ] {
        assert_eq!(one.request("POST", "/vote", &body).status, status, "{body}");
    }
    assert_eq!(one.undo(0).json()["done"], 0);
    assert_eq!(one.undo(0).status, 409);
    // Another server for the same study is refused; the next one knows the old links and prints those of new judges.
    let second = ["judge", "serve", "tokens.db", "--bind", "127.0.0.1:0"];
    assert!(systems().refused(&second).contains("another server is using this study"));
    server.terminate();
    assert_eq!(server.wait(), Some(0));
    let (mut server, more) = serve("tokens.db", 3, 1);
    assert_eq!(Judge::new(&server, &tokens[1]).standing().status, 200);
    assert_eq!(Judge::new(&server, &more[0]).standing().json()["total"], 21);
    server.terminate();
    server.wait();
    let renewing = ["judge", "serve", "tokens.db", "--renew", "2", "--bind", "127.0.0.1:0", "--quiet"];
    let (server, message) = crate::served::Server::spawn(&mut systems().command(&renewing), 1);
    let link = message[0].split_once('#').unwrap().1.to_owned();
    assert_eq!(Judge::new(&server, &tokens[1]).standing().status, 401);
    assert_eq!(Judge::new(&server, &link).standing().json()["done"], 0);
}

#[test]
fn a_confirmed_vote_survives_a_kill_at_any_moment() {
    prepare("killed.db", 20, &[]);
    let (mut server, tokens) = serve("killed.db", 1, 1);
    let mut confirmed: Vec<&str> = Vec::new();
    for round in 0..5 {
        let mut judge = Judge::new(&server, &tokens[0]);
        for _ in 0..3 {
            let choice = CHOICES[confirmed.len() % 4];
            assert_eq!(judge.vote(confirmed.len(), choice).status, 200);
            confirmed.push(choice);
        }
        // One more is on its way when the power goes; it may or may not be kept.
        let body = json!({"at": confirmed.len(), "choice": "both", "seconds": 1}).to_string();
        let head = format!(
            "POST /api/v1/judge/vote HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            server.address,
            tokens[0],
            body.len()
        );
        judge.client.send(head.as_bytes());
        std::thread::sleep(std::time::Duration::from_micros(700 * round));
        server.kill();
        server = serve("killed.db", 1, 0).0;
        let done = Judge::new(&server, &tokens[0]).standing().json()["done"].as_u64().unwrap() as usize;
        assert!(done == confirmed.len() || done == confirmed.len() + 1, "{done} of {}", confirmed.len());
        if done > confirmed.len() {
            confirmed.push("both");
        }
    }
    let kept = table("killed.db", "SELECT choice FROM votes ORDER BY position");
    assert_eq!(kept.concat(), confirmed);
}

#[test]
fn the_report_says_what_the_votes_come_to() {
    prepare("told.db", 20, &["--seed", "3"]);
    let (server, tokens) = serve("told.db", 3, 3);
    let mut pressed: Vec<BTreeMap<String, &str>> = Vec::new();
    for (number, token) in tokens.iter().enumerate() {
        let mut judge = Judge::new(&server, token);
        let mut own = BTreeMap::new();
        for at in 0..21 {
            let item = judge.standing().json()["item"].clone();
            let fact = format!("{} {} {}", item["head"], item["relation"], item["tail"]);
            // The third judge likes nothing but the left side; to the others everything is a draw, in one way or the other.
            let choice = if number == 2 { "left" } else { CHOICES[2 + (fact.len() + number) % 2] };
            assert_eq!(judge.vote(at, choice).status, 200);
            own.entry(fact).or_insert(choice);
        }
        pressed.push(own);
    }
    let report =
        systems().json(&["judge", "report", "told.db", "--votes", "votes.csv", "--page", "page.html"]);
    let pair = &report["pairs"][0];
    assert_eq!((&report["votes"], &report["needed"], &pair["open"]), (&json!(63), &json!(3), &json!(0)));
    // Two say draw, one says left: a draw everywhere.
    assert_eq!(
        (&pair["draw"]["count"], &pair["counted"], &pair["dropped"]),
        (&json!(20), &json!(20), &json!(0))
    );
    let (both, neither) =
        pressed[..2].iter().flat_map(BTreeMap::values).fold((0, 0), |(both, neither), choice| {
            if *choice == "both" { (both + 1, neither) } else { (both, neither + 1) }
        });
    assert_eq!((&pair["votes"][2], &pair["votes"][3]), (&json!(both), &json!(neither)));
    assert_eq!(report["left"]["share"], 1.0);
    assert_eq!(report["seconds"]["median"], 1.5);
    assert_eq!(report["published"]["first_better"], 63.08);
    assert_eq!(pair["agreement"]["complete"], 20);
    let text = systems().done(&["judge", "report", "told.db"]);
    for message in [
        "100.00 [83.89, 100.00]",
        "63.08",
        "36.92",
        "Krippendorff",
        "Fleiss",
        "judge 3: 21 votes, left 21 of 21",
    ] {
        assert!(text.contains(message), "{message} is not in {text}");
    }
    let votes = std::fs::read_to_string(systems().path("votes.csv")).unwrap();
    assert_eq!(votes.lines().count(), 64);
    assert!(votes.starts_with(
        "judge,position,item,repeat,head,relation,tail,left,right,choice,for,seconds,time_ms\n"
    ));
    let page = std::fs::read_to_string(systems().path("page.html")).unwrap();
    assert_eq!(page.matches("<li>").count(), 20, "all are disputed by the third judge");
    assert!(page.contains(NAMES[0]) && page.contains("class=\"path\""));
    // With more votes needed than there are judges, everything is open.
    let open = systems().json(&["judge", "report", "told.db", "--needed", "4"]);
    assert_eq!((&open["pairs"][0]["open"], &open["pairs"][0]["draw"]["share"]), (&json!(20), &Value::Null));
}
