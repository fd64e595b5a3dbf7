//! The routes for changes as the OpenAPI document describes them, what reviewers agree on, and a disk that is full.

use crate::live::{FACTS, Folder, VERDICTS, answers, done, fact, send, verdict};
use crate::serve::complaints;
use crate::served::{SERVE, Server, runs};
use crate::skip::{Need, skip};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn every_live_route_answers_as_the_document_says() {
    let folder = Folder::new();
    let server = folder.serve();
    let document = server.json("/api/openapi.json");
    let new = fact("Newborn", "sibling_of", "Ilse_Hagenthal");
    let cousins = answers(&server);
    let live = |route: &str| format!("/api/v1/{{run}}/live{route}");
    let asked = [
        ("POST", live("/facts"), "", new.to_string()),
        ("DELETE", live("/facts"), "", new.to_string()),
        ("POST", live("/verdicts"), "", verdict(&cousins[0], "accept", "ada")),
        ("POST", live("/verdicts"), "", verdict(&cousins[0], "reject", "ben")),
        ("POST", live("/verdicts"), "", verdict(&cousins[1], "accept", "ada")),
        ("POST", live("/verdicts"), "", verdict(&cousins[1], "accept", "ben")),
        ("GET", live(""), "", String::new()),
        ("GET", live("/changes"), "after=0&limit=5", String::new()),
        ("GET", live("/verdicts"), "format=json", String::new()),
        ("GET", live("/queue"), "relation=cousin_of&limit=5", String::new()),
        ("GET", live("/queue"), "limit=5", String::new()),
        ("GET", live("/agreement"), "", String::new()),
        ("POST", live("/reload"), "", "{\"run\": \"demo\"}".to_owned()),
        ("GET", live("/agreement"), "", String::new()),
    ];
    let mut described = BTreeSet::new();
    for (path, methods) in
        document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.contains("/live"))
    {
        described
            .extend(methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())));
    }
    let all = asked.iter().map(|(method, path, ..)| ((*method).to_owned(), path.clone()));
    assert_eq!(described, all.collect(), "every route is asked");
    for (method, path, query, body) in asked {
        let operation = &document["paths"][path.as_str()][method.to_lowercase()];
        let place = path.replace("{run}", "demo");
        let reply = send(&server, method, &format!("{place}?{query}"), &[], &body);
        assert_eq!(reply.status, 200, "{method} {path}: {}", reply.text());
        let content = &operation["responses"]["200"]["content"]["application/json"];
        assert_eq!(complaints(&reply.json(), &content["schema"], &document, &path), [""; 0]);
        if query.is_empty() {
            continue;
        }
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let named: BTreeSet<&str> =
            parameters.filter(|one| one["in"] == "query").map(|one| one["name"].as_str().unwrap()).collect();
        let refused = server.get(&format!("{place}?{query}&nonsense=1"));
        let said = refused.json();
        let problem = json!({"$ref": "#/components/schemas/Problem"});
        assert_eq!((refused.status, complaints(&said, &problem, &document, &path)), (400, Vec::new()));
        let taken: BTreeSet<&str> = said["detail"].as_str().unwrap().split('`').skip(3).step_by(2).collect();
        // One parameter is not listed as \"one of\".
        assert!(named == taken || (named.len() == 1 && named.is_subset(&taken)), "{path}: {said}");
    }
}

#[test]
fn a_queue_has_all_relations_and_agreement_is_counted() {
    let folder = Folder::new();
    let server = folder.serve();
    let queue = server.json("/api/v1/demo/live/queue?limit=60");
    let items = queue["items"].as_array().unwrap();
    let relations: BTreeSet<&str> =
        items.iter().map(|item| item["fact"]["relation"].as_str().unwrap()).collect();
    assert!(items.len() == 60 && relations.len() > 1, "{relations:?}");
    assert_eq!(queue["asked"], queue["subjects"]);
    // Ada and Ben decide the first ten, alike but for three.
    let decided: Vec<Value> = items.iter().take(10).map(|item| item["fact"].clone()).collect();
    for (who, against) in [("ada", 0), ("ben", 3)] {
        let line = |(at, fact): (usize, &Value)| {
            let verdict = if (at < 5) == (at < against) { "reject" } else { "accept" };
            let [subject, relation, object] = ["head", "relation", "tail"].map(|key| &fact[key]);
            json!({"subject": subject, "relation": relation, "object": object, "verdict": verdict, "who": who})
                .to_string()
        };
        let lines: Vec<String> = decided.iter().enumerate().map(line).collect();
        done(&send(&server, "POST", VERDICTS, &[], &lines.join("\n")));
    }
    let agreed = server.json("/api/v1/demo/live/agreement");
    let pair = &agreed["pairs"][0];
    assert_eq!((&pair["facts"], &pair["agree"]), (&json!(10), &json!(7)), "{agreed}");
    assert_eq!((&agreed["decided"], &agreed["compared"]), (&json!(7), &json!(7)), "{agreed}");
    assert_eq!(agreed["reviewers"][0], json!({"who": "ada", "accept": 5, "reject": 5, "unsure": 0}));
    let in_bins: u64 =
        agreed["bins"].as_array().unwrap().iter().map(|bin| bin["facts"].as_u64().unwrap()).sum();
    assert_eq!(in_bins, 7, "{agreed}");
    // What is settled is not asked again, whoever asks; what is disputed is left to a third reviewer.
    let left = server.json("/api/v1/demo/live/queue?limit=1000");
    assert_eq!(queue["open"].as_u64().unwrap() - left["open"].as_u64().unwrap(), 7);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_nothing_is_half_written() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("small")).unwrap();
    let small = folder.path("small");
    let mount =
        format!("mount -t tmpfs -o size=512k none {small} && head -c 200000 /dev/zero > {small}/filler");
    let alone = ["--user", "--map-root-user", "--mount", "sh", "-c"];
    let tried = Command::new("unshare").args(alone).arg(&mount).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return skip(Need::System, "a small disk cannot be made here");
    }
    let program = env!("CARGO_BIN_EXE_ruleguider");
    let serve = format!("{mount} && exec {program} {} demo --live {small}/live.db", SERVE.join(" "));
    let mut command = Command::new("unshare");
    let (server, _) = Server::spawn(command.args(alone).arg(serve).current_dir(runs().folder.path()), 0);
    let lines = |from: usize| -> String {
        (from..from + 100)
            .map(|at| format!("{}\n", fact(&format!("new {at}"), "sibling_of", "Ilse_Hagenthal")))
            .collect()
    };
    let mut written = 0;
    let refused = loop {
        let reply = send(&server, "POST", FACTS, &[], &lines(written));
        match reply.status {
            200 if written < 100_000 => written += 100,
            _ => break reply,
        }
    };
    assert_eq!(refused.status, 507, "after {written} facts: {}", refused.text());
    assert!(written > 0 && refused.text().contains("the disk is full"), "{}", refused.text());
    let standing = server.json("/api/v1/demo/live");
    assert_eq!(standing["sequence"], written, "{standing}");
    // With room again, the same request is written.
    std::fs::remove_file(format!("/proc/{}/root{small}/filler", server.process())).unwrap();
    let reply = done(&send(&server, "POST", FACTS, &[], &lines(written)));
    assert_eq!(reply["sequence"], written + 100);
}
