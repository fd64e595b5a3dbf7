//! Robustness of `serve`: requests that are too large, clients that are slow, silent or killed, too many questions, too
//! little time, and its end. Nothing makes it fall over.

use crate::served::{ASKED, Client, SERVE, Server};
use crate::tool::Tool;
use serde_json::{Value, json};
use std::io::{Read, Write};

#[test]
fn what_is_too_large_is_refused_at_once() {
    // Nothing is waited for: the server would do so for longer than a client of these tests.
    let server = Server::start(&["demo"]);
    let mut client = server.client();
    let head = format!(
        "POST /api/v1/demo/predict HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n",
        server.address
    );
    client.send(format!("{head}Content-Length: 1073741824\r\n\r\n{{").as_bytes());
    assert_eq!(client.reply(false).status, 413);
    // Without a length, it is seen when there is too much of it.
    let mut client = server.client();
    client.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes());
    let chunk = [b"100000\r\n".to_vec(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
    for _ in 0..16 {
        if client.stream.get_mut().write_all(&chunk).is_err() {
            break;
        }
    }
    assert!(matches!(client.refusal(), None | Some(413)));
    let mut client = server.client();
    let headers: String = (0..100_000).map(|i| format!("X-{i}: 1\r\n")).collect();
    client.send(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes());
    assert!(matches!(client.refusal(), None | Some(431)));
    let mut client = server.client();
    client.send(format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(70_000)).as_bytes());
    assert_eq!(client.reply(false).status, 414);
    let mut client = server.client();
    client.send(b"\x16\x03\x01 this is no HTTP\r\n\r\n");
    assert_eq!(client.reply(false).status, 400);
    assert_eq!(server.get("/readyz").status, 200);
}

/// Queries whose answers are more than the buffers between server and client hold.
fn flood() -> Value {
    let one = json!({"subject": "Ilse_Hagenthal", "relation": "cousin_of"});
    json!({"queries": vec![one; 40_000], "top": 1000})
}

/// The head of a request with `bytes` of queries.
fn head(server: &Server, run: &str, bytes: usize) -> String {
    format!(
        "POST /api/v1/{run}/predict HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n",
        server.address,
    )
}

/// A client that has sent queries and reads nothing yet.
fn slow_reader(server: &Server, queries: &Value) -> Client {
    let mut client = server.client();
    let body = queries.to_string();
    client.send(head(server, "demo", body.len()).as_bytes());
    client.send(body.as_bytes());
    client
}

/// The resident memory of the server, in MB.
fn resident(server: &Server) -> f64 {
    server.metric("ruleguider_resident_memory_bytes") / 1e6
}

#[test]
fn a_hub_is_answered_with_a_page_and_a_count() {
    const FACTS: usize = 20_000;
    let tool = Tool::new();
    let star: String = (0..FACTS).map(|i| format!("hub\thas\te{i}\ne{i}\tin\thub\n")).collect();
    tool.write("star.tsv", &star);
    tool.done(&["run", "star.tsv", "--quiet", "--out", "star", "--set", "system=rules", "--minutes", "0.05"]);
    let server = Server::spawn(tool.command(&SERVE).arg("star"), 0).0;
    let one = server.get("/api/v1/star/predict?subject=hub&relation=has&top=1");
    assert!(one.body.len() < 20_000, "{} bytes", one.body.len());
    let (known, held_out) = (&one.json()["known_total"], &one.json()["held_out_total"]);
    assert_eq!(known.as_u64().unwrap() + held_out.as_u64().unwrap(), FACTS as u64);
    assert_eq!(one.json()["known_ids"].as_array().unwrap().len(), 100);
    // A block of such answers, unread, takes little memory however many clients wait.
    let before = resident(&server);
    let body =
        json!({"queries": vec![json!({"subject": "hub", "relation": "has"}); 64], "top": 1}).to_string();
    let mut clients: Vec<Client> = (0..16).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(head(&server, "star", body.len()).as_bytes());
        client.send(body.as_bytes());
    }
    for client in &mut clients {
        client.stream.read_exact(&mut [0; 10]).unwrap();
    }
    let more = resident(&server) - before;
    assert!(more < 100.0, "{more} MB more");
}

#[test]
fn what_all_requests_take_in_memory_is_bounded() {
    let mut server = Server::start(&["demo", "--in-flight-mb", "32"]);
    let before = resident(&server);
    let tiny = r#"{"subject":"","relation":""},"#;
    // As many tiny queries as are let in, and then as many as a body holds.
    for queries in [50_000, (8 << 20) / tiny.len() - 10] {
        let body = format!("{{\"queries\":[{}]}}", tiny.repeat(queries).trim_end_matches(','));
        let mut clients: Vec<Client> = (0..24).map(|_| server.client()).collect();
        std::thread::scope(|scope| {
            for client in &mut clients {
                let (head, body) = (head(&server, "demo", body.len()), &body);
                scope.spawn(move || {
                    client.send(head.as_bytes());
                    client.send(body.as_bytes());
                });
            }
        });
        assert!(server.is_running());
        let more = resident(&server) - before;
        assert!(more < 120.0, "{more} MB more");
        assert!(server.metric("ruleguider_request_bytes") <= f64::from(16 << 20));
        drop(clients);
        server.until("all have gone", || server.metric("ruleguider_request_bytes") == 0.0);
    }
    assert_eq!(server.get(&format!("/api/v1/demo/predict?{ASKED}")).status, 200);
}

#[test]
fn bodies_that_never_end_take_nobodys_place() {
    let server = Server::start(&["demo", "--waiting", "2", "--timeout-s", "15"]);
    let mut stalled: Vec<Client> = (0..32).map(|_| server.client()).collect();
    for client in &mut stalled {
        client.send(head(&server, "demo", 100).as_bytes());
        client.send(b"{\"q");
    }
    server.until("they are read", || server.metric("ruleguider_request_bytes") >= 96.0);
    assert_eq!(server.get(&format!("/api/v1/demo/predict?{ASKED}")).status, 200);
    // They are not waited for any longer than other work.
    assert_eq!(stalled[0].reply(false).status, 504);
}

#[test]
fn a_body_that_breaks_off_is_not_called_too_large() {
    let server = Server::start(&["demo"]);
    let mut client = server.client();
    client.send(
        b"POST /api/v1/demo/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    );
    let reply = client.reply(false);
    assert_eq!(reply.status, 400, "{}", reply.text());
}

#[test]
fn idle_and_slow_clients_hold_up_nobody() {
    let mut server = Server::start(&["demo"]);
    let half_open: Vec<Client> = (0..100)
        .map(|_| {
            let mut client = server.client();
            client.send(b"GET /api/v1/runs HTTP/1.1\r\nHost: local");
            client
        })
        .collect();
    let slow: Vec<Client> = (0..8).map(|_| slow_reader(&server, &flood())).collect();
    server.until("the slow ones have places", || server.metric("ruleguider_work_waiting") >= 8.0);
    server.until("none of them holds a worker", || server.metric("ruleguider_work_running") == 0.0);
    assert_eq!(server.get(&format!("/api/v1/demo/predict?{ASKED}")).status, 200);
    // Clients that are killed leave nothing behind.
    drop((half_open, slow));
    server.until("all have gone", || {
        server.metric("ruleguider_work_waiting") == 0.0 && server.metric("ruleguider_connections") == 1.0
    });
    assert!(server.is_running());
}

#[test]
fn more_questions_than_places_are_told_to_come_back() {
    let server = Server::start(&["demo", "--waiting", "1"]);
    let slow = slow_reader(&server, &flood());
    server.until("the place is taken", || server.metric("ruleguider_work_waiting") == 1.0);
    let refused = server.get(&format!("/api/v1/demo/predict?{ASKED}"));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(refused.json()["type"], "urn:ruleguider:problem:busy");
    assert!(server.metric("ruleguider_work_refused_total") >= 1.0);
    drop(slow);
    server.until("there is a place again", || {
        server.get(&format!("/api/v1/demo/predict?{ASKED}")).status == 200
    });
}

#[test]
fn work_that_takes_too_long_is_stopped() {
    // Less than a look at all subjects takes on any machine.
    let server = Server::start(&["demo", "--timeout-s", "0.01"]);
    let reply = server.get("/api/v1/demo/facts?relation=cousin_of");
    assert_eq!(reply.status, 504, "{}", reply.text());
    assert!(reply.json()["detail"].as_str().unwrap().contains("--timeout-s"));
    server.until("the work has ended", || server.metric("ruleguider_work_running") == 0.0);
}

#[test]
fn it_ends_what_was_begun_and_then_itself() {
    let mut server = Server::start(&["demo"]);
    let one = json!({"subject": "Ilse_Hagenthal", "relation": "cousin_of"});
    let mut client = slow_reader(&server, &json!({"queries": vec![one; 300], "top": 100}));
    server.until("it is at work", || server.metric("ruleguider_work_waiting") == 1.0);
    server.terminate();
    server.until("nobody is let in", || std::net::TcpStream::connect(&server.address).is_err());
    let reply = client.reply(false);
    assert_eq!((reply.status, reply.text().lines().count()), (200, 300));
    assert_eq!(server.wait(), Some(0));
}
