//! `POST predict`: many queries, one JSON object per line, streamed as they are answered. The reader sets the pace:
//! the next queries are answered once the previous lines are sent.

use super::api::{at_most, directed};
use super::state::{Run, Shared};
use crate::http::{Deadline, Problem, failed, guard, read_json};
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use ruleguider::graph::Query;
use serde::Deserialize;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;

/// The largest body that is read.
pub const LARGEST: usize = 8 << 20;
/// Queries that are answered before their lines are sent.
const BLOCK: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many {
    queries: VecDeque<One>,
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

/// Answers many queries.
pub async fn predict(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let run = Arc::clone(shared.run(&run)?);
    let place = shared.gate.enter()?;
    let Many { queries, top } = shared.gate.in_time(read_json(request, LARGEST)).await?;
    let (top, id) = (at_most(top, 10, "top")?, guard::request_id());
    let lines = stream::unfold((queries, place), move |(mut left, place)| {
        let (shared, run, id) = (Arc::clone(&shared), Arc::clone(&run), id.clone());
        async move {
            let block: Vec<One> = left.drain(..left.len().min(BLOCK)).collect();
            if block.is_empty() {
                return None;
            }
            let lines = answered(&shared, run, block, top).await.unwrap_or_else(|problem| {
                // The response head is already sent, so the last line reports the error.
                left.clear();
                let said =
                    json!({"error": problem.detail(), "status": problem.status().as_u16(), "request_id": id});
                Bytes::from(format!("{said}\n"))
            });
            Some((Ok::<_, std::convert::Infallible>(lines), (left, place)))
        }
    });
    let kind = HeaderValue::from_static("application/x-ndjson");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(lines)).into_response())
}

/// The lines of a block of queries.
async fn answered(shared: &Shared, run: Arc<Run>, block: Vec<One>, top: usize) -> Result<Bytes, Problem> {
    let gate = Arc::clone(&shared.gate);
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
            let written = match asked {
                Ok(_) => serde_json::to_writer(&mut lines, &*answers.next().ok_or_else(failed)?),
                Err(error) => serde_json::to_writer(
                    &mut lines,
                    &json!({
                        "subject": one.subject, "relation": one.relation, "inverse": one.inverse,
                        "error": error.to_string(), "answers": [], "known": [], "known_ids": [],
                    }),
                ),
            };
            written.map_err(|_| failed())?;
            lines.push(b'\n');
        }
        Ok(Bytes::from(lines))
    };
    shared.gate.run_inside(work).await
}
