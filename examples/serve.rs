//! A server of your own around a model: one route, threads, JSON. `ruleguider serve` is the large one.
//!
//!     cargo run --release --example serve
//!     curl 'http://127.0.0.1:7979/Ilse_Hagenthal/cousin_of'

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::{Learn, Model};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Answers `GET /SUBJECT/RELATION`.
fn answer(model: &Model, stream: &TcpStream) -> Result<(), Box<dyn Error>> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().ok_or("no request")??;
    let path = request.split(' ').nth(1).unwrap_or_default();
    let asked = path.trim_start_matches('/').split_once('/').unwrap_or_default();
    let (status, body) = match model.predict(asked.0, asked.1, 5) {
        Ok(prediction) => ("200 OK", serde_json::to_string(&prediction)?),
        Err(error) if error.is_mistake() => ("404 Not Found", serde_json::to_string(&error.to_string())?),
        Err(error) => return Err(error.into()),
    };
    // What remains of the request is read, or closing would reset the connection.
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let mut stream = stream;
    let head =
        format!("Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close", body.len());
    Ok(write!(stream, "HTTP/1.1 {status}\r\n{head}\r\n\r\n{body}")?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let model = Learn::demonstration().set("system=rules").out("runs/rules").run()?;
    // Another port, and a number of requests after which it ends, for tests.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let port = arguments.first().map_or("7979", String::as_str);
    let requests = arguments.get(1).map_or(Ok(usize::MAX), |number| number.parse())?;
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    println!("http://{}/", listener.local_addr()?);
    // A model is asked from many threads at once.
    std::thread::scope(|threads| {
        for stream in listener.incoming().take(requests).flatten() {
            let model = &model;
            threads.spawn(move || answer(model, &stream).unwrap_or_else(|error| println!("{error}")));
        }
    });
    Ok(())
}
