//! A client of `ruleguider serve RUN --live FILE`: adds a fact, asks, rejects an answer, and reads what was said.
//! HTTP over a socket; any HTTP library does as well.
//!
//!     cargo run -p ruleguider-cli --example live_client -- 127.0.0.1:7878

#![allow(clippy::print_stdout, reason = "a program prints")]

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

struct Client {
    address: String,
    run: String,
}

impl Client {
    /// Sends a request, with a body if it is not null, and reads the reply.
    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} /api/v1/{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            self.address,
            text.len()
        )?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let (head, body) = reply.split_once("\r\n\r\n").context("no reply")?;
        // The server says what is wrong in `detail`.
        ensure!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {body}");
        Ok(serde_json::from_str(body)?)
    }

    fn get(&self, path: &str) -> Result<Value> {
        self.call("GET", &format!("{}/{path}", self.run), &Value::Null)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call("POST", &format!("{}/{path}", self.run), body)
    }
}

fn main() -> Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7878".to_owned());
    let mut client = Client { address, run: String::new() };
    let runs = client.call("GET", "runs", &Value::Null)?;
    client.run = runs["runs"][0]["name"].as_str().context("nothing is served")?.to_owned();

    // The reply lists names that the graph does not have, so that a misspelling is seen.
    let fact = json!({"subject": "Newborn", "relation": "sibling_of", "object": "Ilse_Hagenthal"});
    let added = client.post("live/facts", &fact)?;
    println!("added; new: {}", added["new_entities"]);

    // It is in the next answer.
    let question = json!({"subject": "Newborn", "relation": "cousin_of"});
    let asked = client.get("predict?subject=Newborn&relation=cousin_of&top=3")?;
    let best = asked["answers"][0]["entity"].as_str().context("no answer")?;
    println!("{best}: {}", asked["answers"][0]["probability"]);

    // What is rejected is never predicted again.
    let mut verdict = question;
    for (key, value) in
        [("object", best), ("verdict", "reject"), ("who", "ada"), ("note", "see the registry")]
    {
        verdict[key] = value.into();
    }
    client.post("live/verdicts", &verdict)?;
    let again = client.get("predict?subject=Newborn&relation=cousin_of&top=3")?;
    println!("now first: {}", again["answers"][0]["entity"]);
    for change in client.get("live/changes")?["items"].as_array().into_iter().flatten() {
        println!("{} {} {}", change["seq"], change["kind"], change["fact"]);
    }
    Ok(())
}
