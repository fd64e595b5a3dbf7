//! `serve` on bad days: requests that are too large, clients that are slow, silent or killed, too many questions, too
//! little time, and its end. Nothing makes it fall over.

use crate::served::{ASKED, Client, Server};
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

#[test]
fn what_is_too_large_is_refused_at_once() {
    let server = Server::start(&["demo"]);
    let began = Instant::now();
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
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(server.get("/readyz").status, 200);
}

/// Queries whose answers are more than the buffers between server and client hold.
fn flood() -> Value {
    let one = json!({"subject": "Ilse_Hagenthal", "relation": "cousin_of"});
    json!({"queries": vec![one; 40_000], "top": 1000})
}

/// A client that has sent queries and reads nothing yet.
fn slow_reader(server: &Server, queries: &Value) -> Client {
    let mut client = server.client();
    let body = queries.to_string();
    let head = format!(
        "POST /api/v1/demo/predict HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    client.send(head.as_bytes());
    client.send(body.as_bytes());
    client
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
    let server = Server::start(&["demo", "--timeout-s", "0.02"]);
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
