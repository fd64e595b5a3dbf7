//! `POST predict`: many queries, one JSON object per line, streamed as they are answered. The reader sets the pace:
//! the next queries are answered once the previous lines are sent.
//!
//! A request costs memory twice: its queries for as long as it is answered, and the lines of a block until they are sent.
//! Both are charged to the server's budgets, and a request enters the server only when its body is complete.

use super::api::{at_most, directed};
use super::state::{Run, Shared};
use crate::http::{
    AtMost, Bounded, Deadline, LARGEST_RESPONSE, Problem, failed, guard, read_json, too_large,
};
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use ruleguider::graph::Query;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// The largest body that is read.
pub const LARGEST: usize = 8 << 20;
/// The most queries of a request.
const MOST_QUERIES: usize = 50_000;
/// The most queries that are answered before their lines are sent.
const BLOCK: usize = 64;
/// The most answers to them, as far as one query has no more: with many answers to each, fewer queries are a block.
const BLOCK_ANSWERS: usize = 1024;
/// What is reserved for the lines of a block while they are made: about as much as they have.
const BLOCK_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many {
    queries: AtMost<One, MOST_QUERIES>,
    top: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    subject: String,
    relation: String,
    #[serde(default)]
    inverse: bool,
}

impl One {
    /// What it takes in memory.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.subject.capacity() + self.relation.capacity()
    }
}

/// Answers many queries.
pub async fn predict(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let run = shared.run(&run)?;
    let Many { queries, top } = read_json(&shared.gate, request, LARGEST).await?;
    let (top, id) = (at_most(top, 10, "top")?, guard::request_id());
    let queries = VecDeque::from(queries.all("queries")?);
    let held = (shared.gate.charge_body(queries.iter().map(One::bytes).sum())?, shared.gate.enter()?);
    let most = (BLOCK_ANSWERS / top).clamp(1, BLOCK);
    let lines = stream::unfold((queries, held), move |(mut left, held)| {
        let (shared, run, id) = (Arc::clone(&shared), Arc::clone(&run), id.clone());
        async move {
            let block: Vec<One> = left.drain(..left.len().min(most)).collect();
            if block.is_empty() {
                return None;
            }
            let lines = answered(&shared, run, block, top).await.unwrap_or_else(|problem| {
                // The response head is already sent, so the last line reports the error.
                left.clear();
                let message =
                    json!({"error": problem.detail(), "status": problem.status().as_u16(), "request_id": id});
                Bytes::from(format!("{message}\n"))
            });
            Some((Ok::<_, std::convert::Infallible>(lines), (left, held)))
        }
    });
    let kind = HeaderValue::from_static("application/x-ndjson");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(lines)).into_response())
}

/// The lines of a block of queries.
async fn answered(shared: &Shared, run: Arc<Run>, block: Vec<One>, top: usize) -> Result<Bytes, Problem> {
    let gate = Arc::clone(&shared.gate);
    let reserved = gate.reserve(BLOCK_BYTES).await?;
    let work = move |deadline: &Deadline| {
        let query = |one: &One| {
            let Query { subject, link } = run.model.query(&one.subject, &one.relation)?;
            Ok(Query { subject, link: directed(link, one.inverse) })
        };
        let asked: Vec<Result<Query, ruleguider::ask::AskError>> = block.iter().map(query).collect();
        let queries: Vec<Query> = asked.iter().filter_map(|query| query.as_ref().ok().copied()).collect();
        let answers =
            run.model.predict_many(&queries, top, 1, 0, deadline).map_err(|error| gate.problem(error))?;
        let (mut lines, mut answers) = (Vec::new(), answers.into_iter());
        for (asked, one) in asked.iter().zip(&block) {
            match asked {
                Ok(_) => write_line(&mut lines, &*answers.next().ok_or_else(failed)?)?,
                Err(error) => write_line(&mut lines, &unanswered(one, error))?,
            }
        }
        gate.charged(lines, reserved)
    };
    shared.gate.run_inside(work).await
}

/// Adds `line` to `lines`, as long as they are not too large together.
fn write_line(lines: &mut Vec<u8>, line: &impl Serialize) -> Result<(), Problem> {
    let written = serde_json::to_writer(Bounded { bytes: lines, most: LARGEST_RESPONSE }, line);
    written.map_err(|error| if error.is_io() { too_large() } else { failed() })?;
    lines.push(b'\n');
    Ok(())
}

/// The line of a query that means nothing in the graph.
fn unanswered(one: &One, error: &ruleguider::ask::AskError) -> Value {
    json!({
        "subject": one.subject, "relation": one.relation, "inverse": one.inverse, "error": error.to_string(),
        "answers": [], "known": [], "known_ids": [], "known_total": 0,
    })
}
