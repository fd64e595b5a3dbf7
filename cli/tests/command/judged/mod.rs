//! A study of two systems over the demonstration graph, and judges who come to its server.

use crate::served::{Client, Reply, Server};
use crate::tool::Tool;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// What the systems are called: words that stand nowhere else.
pub const NAMES: [&str; 2] = ["Zebrafinch", "Quokkamoth"];

/// Two runs over the demonstration graph, learnt once: one with rules of up to three links, one with up to two.
pub fn systems() -> &'static Tool {
    static SYSTEMS: OnceLock<Tool> = OnceLock::new();
    SYSTEMS.get_or_init(|| {
        let tool = Tool::new();
        let learn = ["run", "--quiet", "--set", "system=rules", "--set", "rules.samples=20000"];
        tool.done(&[&learn[..], &["--out", "longlegs", "--set", "rules.min_support=5"]].concat());
        tool.done(&[&learn[..], &["--out", "shortlegs", "--set", "rules.max_length=2"]].concat());
        tool
    })
}

/// Draws a study of `triples` facts into the file `name`; what is said of it.
pub fn prepare(name: &str, triples: usize, more: &[&str]) -> Value {
    let (triples, names) = (triples.to_string(), NAMES.join(","));
    let prepare =
        ["judge", "prepare", "longlegs", "shortlegs", "--quiet", "--triples", &triples, "--out", name];
    systems().json(&[&prepare[..], &["--names", &names], more].concat())
}

/// Serves the study `name` to `judges`, with their tokens.
pub fn serve(name: &str, judges: usize, new: usize) -> (Server, Vec<String>) {
    let count = judges.to_string();
    let arguments = ["judge", "serve", name, "--judges", &count, "--bind", "127.0.0.1:0", "--quiet"];
    let (server, message) = Server::spawn(&mut systems().command(&arguments), new.max(1));
    let token = |line: &String| line.split_once('#').map(|(_, token)| token.to_owned());
    let tokens: Vec<String> = message.iter().filter_map(token).collect();
    assert_eq!(tokens.len(), new, "{message:?}");
    (server, tokens)
}

/// A judge at the API.
pub struct Judge {
    pub client: Client,
    token: String,
}

impl Judge {
    pub fn new(server: &Server, token: &str) -> Self {
        Self { client: server.client(), token: token.to_owned() }
    }

    pub fn request(&mut self, method: &str, route: &str, body: &Value) -> Reply {
        let token = format!("Bearer {}", self.token);
        let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.client.request(method, &format!("/api/v1/judge{route}"), &headers, body.as_bytes())
    }

    pub fn standing(&mut self) -> Reply {
        self.request("GET", "", &Value::Null)
    }

    pub fn vote(&mut self, at: usize, choice: &str) -> Reply {
        self.request("POST", "/vote", &json!({"at": at, "choice": choice, "seconds": 1.5}))
    }

    pub fn undo(&mut self, at: usize) -> Reply {
        self.request("POST", "/undo", &json!({"at": at}))
    }
}
