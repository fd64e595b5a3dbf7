//! `serve` as programs meet it: what it answers and what it refuses. A real server on a free port, a client that speaks
//! HTTP by hand.

use crate::served::{ASKED, ODD, Server, encoded, long, runs};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Complaints about `value`, which should be as `schema` says.
pub fn complaints(value: &Value, schema: &Value, document: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = document.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("no {name}"));
        return complaints(value, schema, document, place);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|schema| complaints(value, schema, document, place).is_empty());
        return if fits { Vec::new() } else { vec![format!("{place}: {value} is none of {any:?}")] };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |wanted: &Value| wanted == kind || (wanted == "number" && kind == "integer");
    let typed = match &schema["type"] {
        Value::Array(several) => several.iter().any(is),
        one => is(one),
    };
    if !typed {
        return vec![format!("{place}: expected {}, found {value}", schema["type"])];
    }
    let mut found = Vec::new();
    if let Some(names) = schema["enum"].as_array()
        && !names.contains(value)
    {
        found.push(format!("{place}: {value} is none of {names:?}"));
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(complaints(item, &schema["items"], document, &format!("{place}[{i}]")));
    }
    let Some((object, properties)) = value.as_object().zip(schema["properties"].as_object()) else {
        return found;
    };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            found.push(format!("{place}: lacks {name}"));
        }
    }
    for (name, item) in object {
        match properties.get(name) {
            Some(schema) => found.extend(complaints(item, schema, document, &format!("{place}.{name}"))),
            None => found.push(format!("{place}: {name} is not in the document")),
        }
    }
    found
}

#[test]
fn every_route_answers_as_the_document_says() {
    let server = Server::start(&["demo", "odd"]);
    let document = server.json("/api/openapi.json");
    let rule = server.json("/api/v1/demo/rules?head=cousin_of&limit=1")["rules"]["items"][0]["text"].clone();
    let rule = encoded(rule.as_str().unwrap());
    let asked = [
        ("/api/v1/{run}/overview", "questions=2&relations=3".to_owned()),
        ("/api/v1/{run}/suggest", "q=ilse&kind=entity&limit=3".to_owned()),
        ("/api/v1/{run}/predict", format!("{ASKED}&inverse=false&top=5&held_out=hide")),
        ("/api/v1/{run}/explain", format!("{ASKED}&object=Vera_Hagenthal&inverse=true")),
        ("/api/v1/{run}/reasons", format!("{ASKED}&object=Vera_Hagenthal&inverse=false&after=1&limit=3")),
        ("/api/v1/{run}/relations", "subject=Ilse_Hagenthal&object=Vera_Hagenthal&top=5".to_owned()),
        (
            "/api/v1/{run}/entity",
            "id=Ilse_Hagenthal&relation=sibling_of&inverse=true&after=0&limit=5".to_owned(),
        ),
        ("/api/v1/{run}/rules", "head=cousin_of&min_confidence=0.1&after=1&limit=3".to_owned()),
        (
            "/api/v1/{run}/groundings",
            format!("rule={rule}&subject=Ilse_Hagenthal&inverse=false&after=1&limit=3"),
        ),
        (
            "/api/v1/{run}/facts",
            "relation=cousin_of&inverse=false&min_probability=0.1&held_out=show&after=1&limit=3".to_owned(),
        ),
        ("/api/v1/runs", String::new()),
        ("/api/openapi.json", String::new()),
        ("/healthz", String::new()),
        ("/readyz", String::new()),
        ("/metrics", String::new()),
    ];
    // Those under /live are asked in `live_routes.rs`.
    let reading = document["paths"].as_object().unwrap().keys().map(String::as_str);
    let documented: BTreeSet<&str> = reading.filter(|path| !path.contains("/live")).collect();
    let fact = json!({"subject": "Ilse_Hagenthal", "relation": "cousin_of", "object": "Vera_Hagenthal"});
    let unknown = json!({"subject": "Nobody", "relation": "cousin_of", "object": "Vera_Hagenthal"});
    let posted = [
        ("/api/v1/{run}/score", json!({"facts": [fact, unknown], "threshold": "auto"})),
        ("/api/v1/{run}/explain", json!({"facts": [fact, unknown], "reasons": 2})),
    ];
    let all = asked.iter().map(|(path, _)| *path).chain(posted.iter().map(|(path, _)| *path));
    assert_eq!(documented, all.collect(), "every route is asked");
    for (path, body) in posted {
        let reply = server.client().post(&path.replace("{run}", "demo"), &body);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        let described =
            &document["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]["schema"];
        let result = reply.json();
        assert_eq!(complaints(&result, described, &document, path), [""; 0]);
        let rows = result["facts"].as_array().or(result["reasons"].as_array()).unwrap();
        assert!(
            rows[0]["because"].is_array()
                && rows[0]["path"].is_array()
                && rows.last().unwrap()["error"].is_string(),
            "{result}"
        );
        let many: Vec<Value> = vec![fact.clone(); 1001];
        let refused = server.client().post(&path.replace("{run}", "demo"), &json!({"facts": many}));
        assert_eq!(refused.status, 413, "{path}");
        let refused =
            server.client().post(&path.replace("{run}", "demo"), &json!({"facts": [], "nonsense": 1}));
        assert_eq!(refused.status, 400, "{path}");
    }
    for (path, query) in asked {
        let operation = &document["paths"][path]["get"];
        let reply = server.get(&format!("{}?{query}", path.replace("{run}", "demo")));
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        let content = operation["responses"]["200"]["content"].as_object().unwrap();
        let (kind, described) = content.iter().next().unwrap();
        assert!(reply.header("content-type").unwrap().starts_with(kind.as_str()), "{path}: {reply:?}");
        if kind == "application/json" {
            assert_eq!(complaints(&reply.json(), &described["schema"], &document, path), [""; 0]);
        }
        if !path.contains("{run}") {
            continue;
        }
        let headers = &operation["responses"]["200"]["headers"];
        assert_eq!(reply.header("ruleguider-run"), Some("demo"), "{path}");
        assert!(headers["ruleguider-run"].is_object() && headers["ruleguider-change"].is_object(), "{path}");
        // The document names every parameter that is taken, and no other.
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let named: BTreeSet<&str> =
            parameters.filter(|one| one["in"] == "query").map(|one| one["name"].as_str().unwrap()).collect();
        let refused = server.get(&format!("{}?{query}&nonsense=1", path.replace("{run}", "demo")));
        assert_eq!(refused.status, 400, "{path}");
        let result = refused.json();
        assert_eq!(
            complaints(&result, &json!({"$ref": "#/components/schemas/Problem"}), &document, path),
            [""; 0]
        );
        let taken: BTreeSet<&str> =
            result["detail"].as_str().unwrap().split('`').skip(3).step_by(2).collect();
        assert_eq!(named, taken, "{path}: {result}");
    }
}

#[test]
fn held_out_answers_are_hidden_and_others_take_their_places() {
    let server = Server::start(&["demo"]);
    let asked = |subject: &Value, more: &str| -> Vec<Value> {
        let subject = encoded(subject.as_str().unwrap());
        let path = format!("/api/v1/demo/predict?subject={subject}&relation=cousin_of{more}");
        server.json(&path)["answers"].as_array().unwrap().clone()
    };
    let is_new = |one: &&Value| one["held_out"].is_null();
    // Somebody with a cousin who was held out and is among the first ten.
    let found = server.json("/api/v1/demo/facts?relation=cousin_of&held_out=only&limit=100");
    let heads = found["items"].as_array().unwrap().iter().map(|item| &item["head"]);
    let subject = { heads }.find(|head| asked(head, "&top=10").iter().filter(is_new).count() < 10);
    let subject = subject.expect("somebody has");
    let all = asked(subject, "&top=1000");
    let new: Vec<&Value> = all.iter().filter(is_new).collect();
    let many = new.len().min(10);
    let entities = |found: &[&Value]| found.iter().map(|one| one["entity"].clone()).collect::<Vec<_>>();
    let hidden = asked(subject, "&top=10&held_out=hide");
    assert_eq!(entities(&hidden.iter().collect::<Vec<_>>()), entities(&new[..many]));
}

#[test]
fn answers_are_those_of_the_command_line() {
    let server = Server::start(&["demo"]);
    let predicted = runs().json(&["predict", "demo", "Ilse_Hagenthal", "cousin_of", "--top", "7"]);
    assert_eq!(server.json(&format!("/api/v1/demo/predict?{ASKED}&top=7")), predicted);
    let object = predicted["answers"][0]["entity"].as_str().unwrap();
    let explained = runs().json(&["explain", "demo", "Ilse_Hagenthal", "cousin_of", object]);
    assert_eq!(server.json(&format!("/api/v1/demo/explain?{ASKED}&object={object}")), explained);
    // All rules of an explanation, page by page; without one of them the answer is not better.
    let total = explained["rules_total"].as_u64().unwrap();
    assert!(total > 5 && explained["rules"].as_array().unwrap().len() == 5, "{total}");
    let (mut all, mut after) = (Vec::new(), Some(0));
    while let Some(from) = after {
        let page = server.json(&format!("/api/v1/demo/reasons?{ASKED}&object={object}&after={from}&limit=3"));
        assert_eq!(page["total"].as_u64(), Some(total));
        all.extend(page["items"].as_array().unwrap().clone());
        after = page["next"].as_u64();
    }
    assert_eq!(all.len() as u64, total);
    assert_eq!(json!(all[..5]), explained["rules"]);
    let shown = ["explain", "demo", "Ilse_Hagenthal", "cousin_of", object, "--rules", "1000"];
    assert_eq!(runs().json(&shown)["rules"], json!(all));
    let score = predicted["answers"][0]["score"].as_f64().unwrap();
    for rule in &all {
        let without = &rule["without"];
        assert!(without["score"].as_f64().unwrap() < score + 1e-9, "{without}");
        assert!(without["rank"].as_u64() >= Some(1) && without["probability"].is_number(), "{without}");
    }
    assert!(all[0]["without"]["score"].as_f64().unwrap() < score);
    // Heads are asked for in two ways.
    let inverse = server.json("/api/v1/demo/predict?subject=Ilse_Hagenthal&relation=sibling_of&inverse=true");
    assert_eq!(inverse, server.json("/api/v1/demo/predict?subject=Ilse_Hagenthal&relation=~sibling_of"));
    assert_eq!(inverse["inverse"], true);
    // Every grounding of a rule ends in what the rule is asked for, and the first is the one that explains.
    let rule = &explained["rules"][0];
    let query =
        format!("rule={}&subject=Ilse_Hagenthal&object={object}", encoded(rule["text"].as_str().unwrap()));
    let grounded = server.json(&format!("/api/v1/demo/groundings?{query}&limit=1000"));
    let paths = grounded["paths"].as_array().unwrap();
    assert_eq!(paths[0], rule["path"]);
    assert!(
        paths.iter().all(|path| path.as_array().unwrap().last().unwrap()["entity"] == object),
        "{grounded}"
    );
    assert_eq!(paths.iter().map(Value::to_string).collect::<BTreeSet<_>>().len(), paths.len(), "each once");
    assert!(paths.len() > 1 && grounded["next"].is_null() && grounded["more"] == false, "{grounded}");
    let (mut joined, mut after) = (Vec::new(), Some(0));
    while let Some(from) = after {
        let page = server.json(&format!("/api/v1/demo/groundings?{query}&after={from}&limit=1"));
        joined.extend(page["paths"].as_array().unwrap().clone());
        after = page["next"].as_u64();
        assert_eq!(page["more"], after.is_some());
    }
    assert_eq!(&joined, paths);
    // The missing facts are those of `complete`.
    runs().done(&[
        "complete",
        "demo",
        "--relation",
        "cousin_of",
        "--top",
        "20",
        "--quiet",
        "--out",
        "missing.jsonl",
    ]);
    let written = std::fs::read_to_string(runs().path("missing.jsonl")).unwrap();
    let written: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let facts = server.json("/api/v1/demo/facts?relation=cousin_of&limit=20");
    assert_eq!(facts["items"], json!(written));
    assert_eq!(facts["asked"], facts["subjects"]);
    // The new ones and the held-out ones are all of them; new ones are what is asked for by default.
    let list =
        |held_out: &str| server.json(&format!("/api/v1/demo/facts?relation=cousin_of{held_out}&limit=1000"));
    let [new, usual, only, all] = ["&held_out=hide", "", "&held_out=only", "&held_out=show"].map(list);
    assert_eq!(new, usual);
    let (new_total, only_total) = (new["total"].as_u64().unwrap(), only["total"].as_u64().unwrap());
    assert!(new_total > 0 && only_total > 0, "{new_total} {only_total}");
    assert_eq!(all["total"].as_u64(), Some(new_total + only_total));
    let held =
        |list: &Value| list["items"].as_array().unwrap().iter().all(|fact| !fact["held_out"].is_null());
    assert!(held(&only) && !held(&all));
    assert!(new["items"].as_array().unwrap().iter().all(|fact| fact["held_out"].is_null()));
}

#[test]
fn pages_of_a_list_join() {
    let server = Server::start(&["demo"]);
    let (mut seen, mut after) = (Vec::new(), 0);
    let total = loop {
        let page = server.json(&format!("/api/v1/demo/entity?id=Ilse_Hagenthal&after={after}&limit=4"));
        seen.extend(page["facts"]["items"].as_array().unwrap().clone());
        match page["facts"]["next"].as_u64() {
            Some(next) => after = next,
            None => break page["facts"]["total"].as_u64().unwrap(),
        }
    };
    let whole = server.json("/api/v1/demo/entity?id=Ilse_Hagenthal&limit=1000");
    assert_eq!(whole["facts"]["items"], json!(seen));
    assert_eq!(seen.len() as u64, total);
    let counted: u64 =
        whole["links"].as_array().unwrap().iter().map(|link| link["facts"].as_u64().unwrap()).sum();
    assert_eq!(counted, total);
}

#[test]
fn many_queries_are_answered_line_by_line() {
    let server = Server::start(&["demo"]);
    let queries =
        [("Ilse_Hagenthal", "cousin_of"), ("nobody at all", "cousin_of"), ("Ilse_Hagenthal", "~sibling_of")];
    let queries: Vec<Value> =
        queries.iter().map(|(subject, relation)| json!({"subject": subject, "relation": relation})).collect();
    let reply = server.client().post("/api/v1/demo/predict", &json!({"queries": queries, "top": 3}));
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")));
    let lines: Vec<Value> = reply.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], server.json(&format!("/api/v1/demo/predict?{ASKED}&top=3")));
    assert!(
        lines[1]["error"].as_str().unwrap().contains("does not have an entity `nobody at all`"),
        "{}",
        lines[1]
    );
    assert_eq!(lines[2]["inverse"], true);
    let empty = server.client().post("/api/v1/demo/predict", &json!({"queries": []}));
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    for (body, kind, status) in [
        ("{", "application/json", 400),
        ("{}", "text/plain", 415),
        ("{\"queries\":1}", "application/json", 400),
    ] {
        let reply = server.client().request(
            "POST",
            "/api/v1/demo/predict",
            &[("Content-Type", kind)],
            body.as_bytes(),
        );
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (status, Some("application/problem+json")),
            "{body}"
        );
    }
}

#[test]
fn what_is_wrong_is_said_with_what_may_be_meant() {
    let server = Server::start(&["demo", "odd"]);
    let refused = |path: &str, status: u16, part: &str| {
        let reply = server.get(path);
        let result = reply.json();
        assert_eq!(
            (reply.status, result["status"].as_u64()),
            (status, Some(u64::from(status))),
            "{path}: {result}"
        );
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
        assert_eq!(result["request_id"].as_str(), reply.header("x-request-id"));
        assert!(result["detail"].as_str().unwrap().contains(part), "{path}: {result}");
        result["suggestions"].clone()
    };
    let meant = refused(
        "/api/v1/demo/predict?subject=Ilse_Hagentahl&relation=cousin_of",
        404,
        "does not have an entity",
    );
    assert!(meant.as_array().unwrap().contains(&json!("Ilse_Hagenthal")), "{meant}");
    let meant = refused(
        "/api/v1/demo/explain?subject=Ilse_Hagenthal&relation=cousin&object=x",
        404,
        "a relation `cousin`",
    );
    assert!(meant.as_array().unwrap().contains(&json!("cousin_of")), "{meant}");
    assert_eq!(
        refused("/api/v1/dmo/predict?subject=a&relation=b", 404, "no run `dmo`"),
        json!(["demo", "odd"])
    );
    refused("/api/v1/demo/predict?subject=Ilse_Hagenthal", 400, "the parameter `relation` is missing");
    refused(&format!("/api/v1/demo/predict?{ASKED}&top=1001"), 400, "top: expected 1 to 1000, found 1001");
    refused(&format!("/api/v1/demo/predict?{ASKED}&top=0"), 400, "expected 1 to 1000");
    refused(&format!("/api/v1/demo/predict?{ASKED}&top=-1"), 400, "top: expected a whole number");
    refused(&format!("/api/v1/demo/predict?{ASKED}&top=abc"), 400, "top: expected a whole number");
    refused(&format!("/api/v1/demo/predict?{ASKED}&nonsense=1"), 400, "there is no parameter `nonsense`");
    refused(
        "/api/v1/demo/groundings?rule=nonsense&subject=Ilse_Hagenthal",
        404,
        "is not a rule over this graph",
    );
    refused("/api/v1/demo/nothing", 404, "there is nothing at /api/v1/demo/nothing");
    // A browser that was sent to a wrong address gets a page for people.
    let headers = [("Accept", "text/html,application/xhtml+xml")];
    let page = server.client().request("GET", "/some/path", &headers, b"");
    assert_eq!((page.status, page.header("content-type")), (404, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("There is nothing at this address") && page.text().contains("href=\"/\""));
    for path in [
        "/../../etc/passwd",
        "/app/../../Cargo.toml",
        "/app/..%2f..%2fCargo.toml",
        "/api/v1/..%2f..%2fdemo/rules?head=x",
    ] {
        refused(path, 404, "");
    }
    let reply = server.client().request("DELETE", "/api/v1/demo/predict", &[], b"");
    assert_eq!((reply.status, reply.header("content-type")), (405, Some("application/problem+json")));
}

#[test]
fn names_of_any_kind_travel_unharmed() {
    let server = Server::start(&["odd", "demo"]);
    let long = long();
    for (name, other) in [(ODD, "Über 😀"), (&*long, ODD)] {
        let entity = server.json(&format!("/api/v1/odd/entity?id={}", encoded(name)));
        assert_eq!(entity["id"].as_str().unwrap(), name);
        let known = entity["facts"]["items"].as_array().unwrap();
        assert!(known.iter().any(|fact| fact["entity"].as_str().unwrap() == other), "{known:?}");
        let asked = format!("subject={}&relation={}", encoded(name), encoded("<b>knows</b>"));
        let predicted = server.json(&format!("/api/v1/odd/predict?{asked}"));
        assert_eq!(predicted["answers"][0]["entity"].as_str().unwrap(), other);
    }
    let found = server.json(&format!("/api/v1/odd/suggest?q={}", encoded("a/b \"c\" <SCR")));
    assert_eq!(found["items"][0]["id"], ODD);
    assert_eq!(server.json("/api/v1/runs")["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn who_has_an_answer_is_not_sent_it_again() {
    let server = Server::start(&["demo"]);
    let path = format!("/api/v1/demo/predict?{ASKED}");
    let tag = server.get(&path).header("etag").unwrap().to_owned();
    let again = server.client().request("GET", &path, &[("If-None-Match", &tag)], b"");
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag.as_str())));
    // Proxies make weak tags of strong ones, and clients may have several answers.
    let opaque = tag.strip_prefix("W/").expect("the last digits of scores may differ");
    for has in [opaque.to_owned(), format!("\"x\", {opaque}"), format!("\"x\",{tag}")] {
        assert_eq!(
            server.client().request("GET", &path, &[("If-None-Match", &has)], b"").status,
            304,
            "{has}"
        );
    }
    let other = format!("{path}&top=3");
    let other = server.client().request("GET", &other, &[("If-None-Match", &tag)], b"");
    assert_eq!(other.status, 200);
    assert_ne!(other.header("etag"), Some(tag.as_str()));
    // Another server of the same run gives the same tag; of another run, another one.
    assert_eq!(Server::start(&["demo"]).get(&path).header("etag"), Some(tag.as_str()));
    assert!(server.get("/api/v1/demo/predict?subject=x&relation=y").header("etag").is_none());
    let script = server.get("/app/main.js");
    let tag = script.header("etag").unwrap();
    assert_eq!(server.client().request("GET", "/app/main.js", &[("If-None-Match", tag)], b"").status, 304);
}

#[test]
fn only_its_own_page_may_ask_unless_told() {
    let server = Server::start(&["demo"]);
    let host = |host: &str| server.client().request("GET", "/api/v1/runs", &[("Host", host)], b"").status;
    for good in ["localhost", "localhost:1", "127.0.0.1", "[::1]:7878", "192.168.1.7"] {
        assert_eq!(host(good), 200, "{good}");
    }
    for bad in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
        assert_eq!(host(bad), 421, "{bad}");
    }
    let mut client = server.client();
    client.send(b"GET /healthz HTTP/1.1\r\n\r\n");
    assert_eq!(client.reply(false).status, 400);
    let page = server.get("/");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let origin = ("Origin", "https://notebook.example");
    let silent = server.client().request("GET", "/api/v1/runs", &[origin], b"");
    assert_eq!(silent.header("access-control-allow-origin"), None);
    let told = Server::start(&["demo", "--cors", "https://notebook.example", "--host", "graphs.example"]);
    let shared = told.client().request("GET", "/api/v1/runs", &[origin, ("Host", "graphs.example")], b"");
    assert_eq!(
        (shared.status, shared.header("access-control-allow-origin")),
        (200, Some("https://notebook.example"))
    );
    assert_eq!(told.client().request("OPTIONS", "/api/v1/demo/predict", &[origin], b"").status, 204);
    let other = told.client().request("GET", "/api/v1/runs", &[("Origin", "https://evil.example")], b"");
    assert_eq!(other.header("access-control-allow-origin"), None);
    let refused = runs().refused(&["serve", "demo", "--bind", &server.address]);
    assert!(refused.contains("cannot listen on this address; choose another with --bind"), "{refused}");
}

#[test]
fn threads_get_the_answers_that_one_gets() {
    let server = Server::start(&["demo"]);
    let people = server.json("/api/v1/demo/suggest?q=a&limit=30");
    let paths: Vec<String> = people["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            format!(
                "/api/v1/demo/predict?subject={}&relation=cousin_of",
                encoded(one["id"].as_str().unwrap())
            )
        })
        .collect();
    let alone: Vec<Value> = paths.iter().map(|path| server.json(path)).collect();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (paths, alone, server) = (&paths, &alone, &server);
            scope.spawn(move || {
                let mut client = server.client();
                for i in 0..2 * paths.len() {
                    let place = (i * 7 + thread) % paths.len();
                    assert_eq!(client.get(&paths[place]).json(), alone[place]);
                }
            });
        }
    });
}
