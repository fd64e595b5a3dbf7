//! Facts and verdicts that are written while a run is served.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::served::browser::Browser;
use crate::served::{ASKED, Reply, SERVE, Server, runs};
use crate::skip::{Need, skip};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub const FACTS: &str = "/api/v1/demo/live/facts";
pub const VERDICTS: &str = "/api/v1/demo/live/verdicts";

/// A folder for a log, which goes with the test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn serve(&self) -> Server {
        Server::start(&["demo", "--live", &self.path("live.db")])
    }
}

pub fn send(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let kind = [("Content-Type", "application/json")];
    server.client().request(method, path, &[&kind[..], headers].concat(), body.as_bytes())
}

#[track_caller]
pub fn done(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

pub fn fact(subject: &str, relation: &str, object: &str) -> Value {
    json!({"subject": subject, "relation": relation, "object": object})
}

pub fn verdict(object: &str, verdict: &str, who: &str) -> String {
    let fact = json!({
        "subject": "Ilse_Hagenthal", "relation": "cousin_of", "object": object, "verdict": verdict, "who": who,
    });
    fact.to_string()
}

/// The answers to the usual question, by id.
pub fn answers(server: &Server) -> Vec<String> {
    let found = server.json(&format!("/api/v1/demo/predict?{ASKED}&top=100"));
    let name = |answer: &Value| answer["entity"].as_str().unwrap().to_owned();
    found["answers"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn facts_and_verdicts_are_in_the_next_answer_and_survive_the_server() {
    let folder = Folder::new();
    let mut server = folder.serve();
    let before = answers(&server);
    let (first, second) = (&before[0], &before[1]);
    assert_eq!(server.json("/api/v1/runs")["runs"][0]["live"], true);
    // A rejected answer is gone, an accepted one is a fact.
    done(&send(&server, "POST", VERDICTS, &[], &verdict(first, "reject", "ada")));
    done(&send(&server, "POST", VERDICTS, &[], &verdict(second, "accept", "ada")));
    let asked = format!("/api/v1/demo/predict?{ASKED}&top=100");
    let reply = server.get(&asked);
    assert_eq!(reply.header("ruleguider-change"), Some("2"));
    assert_eq!(reply.header("ruleguider-run"), Some("demo"));
    let found = reply.json();
    assert!(found["known_ids"].as_array().unwrap().contains(&json!(second)));
    let now = answers(&server);
    assert!(!now.contains(first) && !now.contains(second));
    // What a client has is fresh until something changes.
    let tag = reply.header("etag").unwrap().to_owned();
    let again = |tag: &str| server.client().request("GET", &asked, &[("If-None-Match", tag)], b"").status;
    assert_eq!(again(&tag), 304);
    // A second reviewer who disagrees ties the vote, and the answer is back.
    let reply = done(&send(&server, "POST", VERDICTS, &[], &verdict(first, "accept", "ben")));
    assert_eq!((&reply["sequence"], &reply["changed"]), (&json!(3), &json!(1)));
    assert_eq!(again(&tag), 200);
    assert!(answers(&server).contains(first));
    assert_eq!(server.json("/api/v1/demo/live")["disputed"], 1);
    let ben = done(&send(&server, "POST", VERDICTS, &[], &verdict(first, "undo", "ben")));
    assert_eq!(ben["changed"], 1);
    // New facts have new entities; a fact that is removed is gone.
    let added = [fact("Newborn", "sibling_of", "Ilse_Hagenthal"), fact("Newborn", "owns", "A dog")];
    let lines = added.iter().map(|fact| format!("{fact}\n")).collect::<String>();
    let key = [("Idempotency-Key", "one")];
    let reply = done(&send(&server, "POST", FACTS, &key, &lines));
    assert_eq!((&reply["changed"], &reply["new_relations"]), (&json!(2), &json!(["owns"])));
    assert_eq!(reply["new_entities"], json!(["Newborn", "A dog"]));
    assert_eq!(done(&send(&server, "POST", FACTS, &key, &lines)), reply, "a key is answered once");
    let known = server.json("/api/v1/demo/entity?id=Newborn");
    assert_eq!(known["facts"]["items"].as_array().unwrap().len(), 1, "{known}");
    let standing = server.json("/api/v1/demo/live");
    assert_eq!(
        (&standing["added"], &standing["waiting"], &standing["rejected"]),
        (&json!(3), &json!(1), &json!(1))
    );
    done(&send(&server, "DELETE", FACTS, &[], &added[0].to_string()));
    let gone = server.json("/api/v1/demo/entity?id=Ilse_Hagenthal&limit=1000").to_string();
    assert!(!gone.contains("Newborn"));
    // The feed has it in order, and the power cut changes nothing.
    let feed = server.json("/api/v1/demo/live/changes?after=0");
    let kinds: Vec<&str> =
        feed["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reject", "accept", "accept", "undo", "add", "add", "remove"]);
    let now = answers(&server);
    server.kill();
    drop(server);
    let server = folder.serve();
    assert_eq!((answers(&server), server.json("/api/v1/demo/live/changes?after=0")), (now, feed));
    // The queue has no fact that was decided, and files have a row a verdict.
    let queue = server.json("/api/v1/demo/live/queue?relation=cousin_of&limit=4");
    assert_eq!(queue["items"].as_array().unwrap().len(), 4);
    let tsv = server.get(&format!("{VERDICTS}?format=tsv")).text();
    assert_eq!(tsv.lines().count(), 3, "{tsv}");
    assert_eq!(server.json(VERDICTS)["items"].as_array().unwrap().len(), 2);
    let exported = runs().done(&["live", "export", &folder.path("live.db"), "--format", "tsv"]);
    assert_eq!(exported, tsv);
}

#[test]
fn what_is_wrong_is_refused_whole_and_said_clearly() {
    let folder = Folder::new();
    let server = folder.serve();
    let first = answers(&server)[0].clone();
    done(&send(&server, "POST", VERDICTS, &[], &verdict(&first, "reject", "ada")));
    let good = fact("Somebody", "cousin_of", "Ilse_Hagenthal").to_string();
    let rejected = fact("Ilse_Hagenthal", "cousin_of", &first).to_string();
    let json = "application/json";
    for (method, path, kind, body, status, message) in [
        (
            "POST",
            FACTS,
            json,
            format!("{good}\n{}", fact("", "cousin_of", "x")),
            400,
            "object 2: subject: is empty",
        ),
        (
            "POST",
            FACTS,
            json,
            format!("{good}\n{}", fact("a", "cousin_of", "x\u{1b}")),
            400,
            "object 2: object: has a control",
        ),
        ("POST", FACTS, json, format!("{good}\n{{\"subject\""), 400, "object 2 of the body"),
        ("POST", FACTS, json, good.replace('}', ",\"confidence\":2}"), 400, "confidence"),
        ("POST", FACTS, json, String::new(), 400, "empty"),
        ("POST", FACTS, json, fact(&"a".repeat(4097), "cousin_of", "x").to_string(), 400, "4097 bytes"),
        ("POST", FACTS, json, format!("{good}\n").repeat(100_001), 413, "more than 100000 objects"),
        ("POST", FACTS, json, format!("{good}\n{rejected}"), 409, "was rejected by reviewers"),
        ("POST", FACTS, "text/plain", good.clone(), 415, "application/json or application/x-ndjson"),
        ("DELETE", FACTS, json, good.clone(), 404, "is no fact"),
        ("POST", VERDICTS, json, verdict("Nobody_at_all", "accept", "ada"), 404, "Nobody_at_all"),
        ("POST", VERDICTS, json, verdict(&first, "maybe", "ada"), 400, "expected accept, reject, unsure"),
        ("POST", VERDICTS, json, verdict(&first, "accept", "a b"), 400, "who: expected letters"),
        (
            "POST",
            "/api/v1/demo/live/reload",
            json,
            "{\"run\":\"../odd\"}".to_owned(),
            400,
            "name of a folder",
        ),
        (
            "POST",
            "/api/v1/demo/live/reload",
            json,
            "{\"run\":\"none\"}".to_owned(),
            422,
            "nothing has changed",
        ),
        ("GET", "/api/v1/demo/live/queue?relation=none", json, String::new(), 404, "none"),
    ] {
        let reply = server.client().request(method, path, &[("Content-Type", kind)], body.as_bytes());
        assert_eq!(reply.status, status, "{method} {path} {body}: {}", reply.text());
        assert!(reply.json()["detail"].as_str().unwrap().contains(message), "{}", reply.text());
    }
    // A body that is too large is refused before it is sent.
    let mut client = server.client();
    let head = format!("POST {FACTS} HTTP/1.1\r\nHost: {}\r\nContent-Type: {json}\r\n", server.address);
    client.send(format!("{head}Content-Length: {}\r\n\r\n{{", (48 << 20) + 1).as_bytes());
    assert_eq!(client.reply(false).status, 413);
    let other = [("Origin", "https://evil.example")];
    assert_eq!(send(&server, "POST", FACTS, &other, &good).status, 403);
    let own = format!("http://{}", server.address);
    assert_eq!(
        send(&server, "POST", FACTS, &[("Origin", &own), ("Idempotency-Key", "k")], &good).status,
        200
    );
    assert_eq!(send(&server, "POST", FACTS, &[("Idempotency-Key", "k")], &rejected).status, 422);
    // Of everything that was refused, nothing was kept.
    let feed = server.json("/api/v1/demo/live/changes");
    assert_eq!(feed["last"], 2, "{feed}");
    // Without --live a run is read-only, and one file has one server.
    let reading = Server::start(&["demo"]);
    let reply = send(&reading, "POST", FACTS, &[], &good);
    assert_eq!(reply.status, 403);
    assert!(reply.text().contains("--live FILE"), "{}", reply.text());
    let path = folder.path("live.db");
    for (arguments, message) in [
        (&["serve", "demo", "--live", &path, "--bind", "127.0.0.1:0"][..], "another server is using it"),
        (&["serve", "demo", "odd", "--live", &path], "--live needs one RUN"),
        (&["serve", "demo", "--live", &path, "--bind", "0.0.0.0:0"], "needs --tokens"),
        (&["serve", "demo", "--live", "odd.tsv", "--bind", "127.0.0.1:0"], "is not a file of live facts"),
        (&["live", "export", "odd.tsv"], "is not a"),
        (&["run", "--update", "demo"], "--live FILE"),
    ] {
        let refused = runs().refused(arguments);
        assert!(refused.contains(message), "{refused}");
    }
    // Another program that holds the file delays writing; it loses nothing.
    let locked = rusqlite::Connection::open(&path).unwrap();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reply = send(&server, "POST", VERDICTS, &[], &verdict(&first, "accept", "ada"));
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
    locked.execute_batch("ROLLBACK").unwrap();
    done(&send(&server, "POST", VERDICTS, &[], &verdict(&first, "accept", "ada")));
}

#[test]
fn what_the_data_say_is_false_is_no_fact_before_a_reviewer_says_so() {
    let tool = crate::tool::Tool::new();
    let fact_and_back = |at: usize| {
        let (p, q) = (at % 15, at % 8);
        format!("p{p},knows,q{q},0\nq{q},known_by,p{p},0\n")
    };
    let facts: String = (0..60).map(fact_and_back).collect();
    tool.write("facts.csv", &format!("subject,relation,object,negative\n{facts}p1,knows,q2,1\n"));
    tool.done(&["run", "facts.csv", "--quiet", "--out", "demo", "--set", "system=rules"]);
    let live = tool.path("live.db");
    let (server, _) = Server::spawn(tool.command(&SERVE).args(["demo", "--live", live.to_str().unwrap()]), 0);
    let denied = fact("p1", "knows", "q2");
    let both = format!("{}\n{denied}", fact("p1", "knows", "q3"));
    let refused = |body: &str| {
        let reply = send(&server, "POST", FACTS, &[], body);
        assert_eq!(reply.status, 409, "{}", reply.text());
        assert!(reply.text().contains("is false by the data of the run"), "{}", reply.text());
        assert_eq!(reply.json()["type"], "urn:ruleguider:problem:known-false");
    };
    refused(&both);
    assert_eq!(server.json("/api/v1/demo/live")["sequence"], 0, "nothing of it was kept");
    // A person overrules the file, and it is as before when they take that back.
    let said =
        |verdict: &str| json!({"subject": "p1", "relation": "knows", "object": "q2", "verdict": verdict});
    done(&send(&server, "POST", VERDICTS, &[], &said("accept").to_string()));
    let known = || server.json("/api/v1/demo/predict?subject=p1&relation=knows")["known_ids"].to_string();
    assert!(known().contains("q2"), "{}", known());
    done(&send(&server, "POST", FACTS, &[], &denied.to_string()));
    done(&send(&server, "DELETE", FACTS, &[], &denied.to_string()));
    done(&send(&server, "POST", VERDICTS, &[], &said("undo").to_string()));
    refused(&denied.to_string());
    assert!(!known().contains("q2"), "{}", known());
}

#[cfg(unix)]
#[test]
fn a_hangup_reads_the_run_again_where_its_path_leads_now() {
    let folder = Folder::new();
    let current = folder.path("current");
    let lead_to = |name: &str| {
        let _ = std::fs::remove_file(&current);
        std::os::unix::fs::symlink(runs().path(name), &current).unwrap();
    };
    lead_to("demo");
    let server = Server::start(&[&current, "--live", &folder.path("live.db")]);
    let shown = || server.get("/api/v1/demo/overview").header("ruleguider-run").map(str::to_owned);
    let name = shown().expect("answers say which run they are from");
    assert_eq!(name, "demo");
    lead_to("reports");
    assert_eq!(shown(), Some(name), "nothing was said");
    let told = Command::new("kill").args(["-HUP", &server.process().to_string()]).status().unwrap();
    assert!(told.success());
    server.until("it answers by the other run", || shown().as_deref() == Some("reports"));
}

#[test]
fn a_token_allows_what_its_role_says() {
    let folder = Folder::new();
    let tokens = folder.path("tokens");
    let token = |name: &str, role: &str| {
        runs().done(&["live", "token", name, "--role", role, "--tokens", &tokens]).trim().to_owned()
    };
    let roles = [("rea", "read"), ("rev", "review"), ("wri", "write"), ("adm", "admin")];
    let given = roles.map(|(name, role)| token(name, role));
    let tool = runs();
    let mut command = tool.command(&SERVE);
    let (server, _) =
        Server::spawn(command.args(["demo", "--live", &folder.path("live.db"), "--tokens", &tokens]), 0);
    let asked = format!("/api/v1/demo/predict?{ASKED}");
    for path in [asked.as_str(), "/api/v1/runs", "/api/v1/demo/live", VERDICTS] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    let cousin = "Vera_Hagenthal";
    let body = fact("Ilse_Hagenthal", "cousin_of", cousin);
    let accepts =
        json!({"subject": "Ilse_Hagenthal", "relation": "cousin_of", "object": cousin, "verdict": "accept"});
    for (at, token) in given.iter().enumerate() {
        let bearer = format!("Bearer {token}");
        let as_them = [("Authorization", bearer.as_str())];
        let status =
            |method: &str, path: &str, body: &str| send(&server, method, path, &as_them, body).status;
        let allowed = |least: usize| if at >= least { 200 } else { 403 };
        assert_eq!(status("GET", &asked, ""), 200);
        assert_eq!(status("POST", VERDICTS, &accepts.to_string()), allowed(1));
        assert_eq!(status("POST", FACTS, &body.to_string()), allowed(2));
        assert_eq!(status("POST", "/api/v1/demo/live/reload", "{}"), allowed(3));
        if at == 1 {
            assert_eq!(
                status("POST", VERDICTS, &verdict(cousin, "reject", "rea")),
                400,
                "in nobody else's name"
            );
        }
    }
    let bearer = format!("Bearer {}", given[0]);
    let reply = server.client().request("GET", VERDICTS, &[("Authorization", &bearer)], b"");
    let who: Vec<Value> = reply.json()["items"][0]["verdicts"].as_array().unwrap().clone();
    assert_eq!(who.iter().map(|one| &one["who"]).collect::<Vec<_>>(), ["adm", "rev", "wri"]);
    assert_eq!(send(&server, "GET", &asked, &[("Authorization", "Bearer nonsense")], "").status, 401);
}

#[test]
fn nothing_that_was_answered_is_lost_by_power_cuts() {
    let folder = Folder::new();
    let mut answered = 0;
    for cut in 0..30_u64 {
        let mut server = folder.serve();
        let feed = server.json("/api/v1/demo/live");
        assert!(
            feed["sequence"].as_u64().unwrap() >= answered,
            "cut {cut}: {feed}, {answered} were answered"
        );
        let count = AtomicUsize::new(0);
        let address = server.address.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = crate::served::Client::to(&address);
                for number in 0.. {
                    let lines: String = (0..20)
                        .map(|at| format!("{}\n", fact(&format!("new {cut} {number} {at}"), "sibling_of", "Ilse_Hagenthal")))
                        .collect();
                    let head = format!(
                        "POST {FACTS} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                        lines.len()
                    );
                    client.send(&[head.as_bytes(), lines.as_bytes()].concat());
                    // The reply is not whole when the server is killed.
                    let whole = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.reply(false)));
                    match whole {
                        Ok(reply) if reply.status == 200 => count.fetch_add(20, Ordering::SeqCst),
                        _ => break,
                    };
                }
            });
            server
                .until("some facts are answered", || count.load(Ordering::SeqCst) > 20 * (cut as usize % 3));
            server.kill();
        });
        answered += count.into_inner() as u64;
        drop(server);
    }
    let server = folder.serve();
    let standing = server.json("/api/v1/demo/live");
    let kept = standing["sequence"].as_u64().unwrap();
    // What was not answered may be there or not, but never in part.
    assert!(
        kept >= answered && kept.is_multiple_of(20) && standing["added"] == kept,
        "{standing}, {answered} answered"
    );
}

#[test]
fn a_run_that_learnt_the_verdicts_takes_over_without_a_dropped_request() {
    let folder = Folder::new();
    let tool = crate::tool::Tool::new();
    tool.demonstration();
    let log = folder.path("live.db");
    let (server, _) = Server::spawn(tool.command(&SERVE).args(["run", "--live", &log]), 0);
    let asked = format!("/api/v1/run/predict?{ASKED}&top=5");
    let first = server.json(&asked)["answers"][0]["entity"].as_str().unwrap().to_owned();
    let facts = "/api/v1/run/live/facts";
    done(&send(&server, "POST", facts, &[], &fact("Newborn", "owns", "A dog").to_string()));
    done(&send(&server, "POST", "/api/v1/run/live/verdicts", &[], &verdict(&first, "reject", "ada")));
    let report =
        tool.json(&["run", "--update", "run", "--live", &log, "--out", "next", "--set", "system=rules"]);
    assert_eq!(report["update"]["facts_added"], 1, "{}", report["update"]);
    assert_eq!(report["update"]["relations_added"], 1);
    let (stop, failed, asked_of) =
        (AtomicBool::new(false), AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.client();
                while !stop.load(Ordering::Relaxed) {
                    if client.get(&asked).status != 200 {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    asked_of.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let count = || asked_of.load(Ordering::Relaxed);
        for name in ["next", "run", "next"] {
            // Only a swap during which someone is answered says anything.
            for attempt in 0.. {
                assert!(attempt < 50, "nobody is answered while {name} takes over");
                let (reload, before) = (json!({ "run": name }).to_string(), count());
                let reply = send(&server, "POST", "/api/v1/run/live/reload", &[], &reload);
                assert_eq!(
                    (reply.status, reply.json()["run"].clone()),
                    (200, json!(name)),
                    "{}",
                    reply.text()
                );
                if count() > before {
                    break;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(asked_of.load(Ordering::Relaxed) > 0);
    assert_eq!(failed.load(Ordering::Relaxed), 0);
    let standing = server.json("/api/v1/run/live");
    assert_eq!((&standing["run"], &standing["waiting"]), (&json!("next"), &json!(0)), "{standing}");
    let reply = server.get(&format!("/api/v1/run/predict?{ASKED}&top=100"));
    assert_eq!(reply.header("ruleguider-run"), Some("next"), "the URL has the name that was served first");
    let found = reply.json();
    assert!(found["answers"].as_array().unwrap().iter().all(|answer| answer["entity"] != json!(first)));
    assert_eq!(server.json("/api/v1/run/entity?id=Newborn")["facts"]["items"].as_array().unwrap().len(), 1);
}

#[test]
fn the_python_client_does_what_the_api_does() {
    let folder = Folder::new();
    let server = folder.serve();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/live_client.py");
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/ruleguider/client.py");
    let address = format!("http://{}", server.address);
    let run = Command::new("python3").args([script, client, &address]).output();
    let Ok(run) = run else { return skip(Need::System, "there is no python3") };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn two_reviewers_in_two_windows_see_each_other() {
    let folder = Folder::new();
    let server = folder.serve();
    let Some(browser) = Browser::start() else { return skip(Need::Chromium, "there is no chromedriver") };
    let page = format!("http://{}/?run=demo&view=ask&{ASKED}", server.address);
    browser.go(&page);
    browser.wait("document.querySelector('.answer button.reject') !== null");
    browser.click(".answer button.reject");
    browser.wait("document.querySelector('.answer button.reject').getAttribute('aria-pressed') === 'true'");
    let first = server.json(VERDICTS)["items"][0].clone();
    assert_eq!((&first["outcome"], &first["verdicts"][0]["who"]), (&json!("rejected"), &json!("local")));
    // Another reviewer decides elsewhere; this window shows it without being asked.
    let object = first["object"].as_str().unwrap();
    done(&send(&server, "POST", VERDICTS, &[], &verdict(object, "accept", "ben")));
    browser.wait("document.querySelector('.answer .others').textContent.includes('ben accepts')");
    browser.click(".answer button.unsure");
    browser.wait("document.querySelector('.answer button.unsure').getAttribute('aria-pressed') === 'true'");
    browser.go(&format!("http://{}/?run=demo&view=reviewed", server.address));
    browser.wait("document.querySelector('#reviewer') !== null");
    browser.wait("document.querySelector('.answer .others').textContent.includes('ben accepts')");
    browser.click(".answer button.unsure");
    browser.wait("document.querySelector('.answer button.unsure').getAttribute('aria-pressed') === 'false'");
    server.until("the verdict is taken back", || {
        server.json(VERDICTS)["items"][0]["verdicts"].as_array().unwrap().len() == 1
    });
}

#[test]
fn questions_that_come_at_once_after_a_reload_are_answered() {
    let folder = Folder::new();
    let server = folder.serve();
    let queries = json!({"queries": vec![json!({"subject": "Ilse_Hagenthal", "relation": "cousin_of"}); 20]});
    let (body, reload) = (queries.to_string(), "/api/v1/demo/live/reload");
    for _ in 0..30 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let asked = || send(&server, "POST", "/api/v1/demo/predict", &[], &body);
                scope.spawn(move || assert_eq!(asked().status, 200));
            }
            done(&send(&server, "POST", reload, &[], "{}"));
        });
    }
}

#[test]
fn the_client_of_the_examples_adds_asks_and_rejects() {
    let folder = Folder::new();
    let server = folder.serve();
    let own = std::env::current_exe().unwrap();
    let built = own.parent().and_then(std::path::Path::parent).unwrap().join("examples/live_client");
    let output = Command::new(&built).arg(&server.address).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "added; new: [\"Newborn\"]");
    let rejected = lines[1].split(':').next().unwrap();
    assert!(lines[2].starts_with("now first: ") && !lines[2].contains(rejected), "{said}");
    assert!(lines[3].starts_with("1 \"add\"") && lines[4].starts_with("2 \"reject\""), "{said}");
}
