//! The server for judges: a page, a judge's standing, votes, and undoing the last vote.
//!
//! A judge is identified by the token of their link, which the page sends with every request. The token is the part of
//! the address after `#`, which browsers do not send to servers. The study is blind: of an item, only labels, left and
//! right, and the number of the screen are sent. The systems' names, scores and rules stay here.

use super::page;
use super::store::{Outcome, Shown, Standing, Store};
use crate::http::{self, Frame, Gate, Limits, Problem, guard, json_response, read_json, wrong_method};
use crate::token;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use ruleguider::ask::PathStep;
use ruleguider::judge::Choice;
use serde::{Deserialize, Serialize};
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The largest body of a vote.
const LARGEST: usize = 4096;
/// The most requests that wait for the single writer.
const WAITING: usize = 256;
/// The most bytes of requests and responses in memory at once.
const IN_FLIGHT: usize = 64 << 20;
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest plausible time that a judge looks at a screen: a week.
const LONGEST: f64 = 7.0 * 86_400.0;

struct Shared {
    store: Arc<Mutex<Store>>,
    frame: Arc<Frame>,
}

/// A vote as the page sends it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    at: usize,
    choice: Choice,
    seconds: f64,
}

/// Which vote to undo.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Undo {
    at: usize,
}

/// A judge's standing, as sent to the page.
#[derive(Serialize)]
struct Seen {
    done: usize,
    total: usize,
    can_undo: bool,
    item: Option<Item>,
}

#[derive(Serialize)]
struct Item {
    at: usize,
    head: String,
    relation: String,
    tail: String,
    left: Vec<Step>,
    right: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    relation: String,
    inverse: bool,
    label: String,
}

impl Seen {
    fn new(standing: Standing) -> Self {
        let Standing { done, total, can_undo, next } = standing;
        Self { done, total, can_undo, item: next.map(|shown| Item::new(done, shown)) }
    }
}

impl Item {
    fn new(at: usize, shown: Shown) -> Self {
        let step = |step: PathStep| Step {
            relation: step.relation_shown().to_owned(),
            inverse: step.inverse,
            label: step.label,
        };
        let Shown { fact: [head, relation, tail], paths: [left, right] } = shown;
        let steps = |path: Vec<PathStep>| path.into_iter().map(step).collect();
        Self { at, head, relation, tail, left: steps(left), right: steps(right) }
    }
}

/// Serves the study in `store` at `listener` until it is told to stop; `hosts` are names by which it is addressed.
///
/// # Errors
/// If the system refuses threads or signals.
pub fn serve(listener: TcpListener, store: Store, hosts: Vec<String>) -> anyhow::Result<()> {
    let limits = Limits { waiting: WAITING, running: 1, timeout: TIMEOUT, in_flight: IN_FLIGHT };
    let gate = Arc::new(Gate::new(limits));
    let frame = Arc::new(Frame::new(&gate, hosts, None));
    let shared = Arc::new(Shared { store: Arc::new(Mutex::new(store)), frame: Arc::clone(&frame) });
    http::serve(listener, &frame, router(shared), 2, || {})
}

fn router(shared: Arc<Shared>) -> Router {
    page::routes(Router::new())
        .route("/api/v1/judge", get(standing))
        .route("/api/v1/judge/vote", post(vote))
        .route("/api/v1/judge/undo", post(undo))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route(
            "/metrics",
            get(|State(shared): State<Arc<Shared>>| async move { shared.frame.metrics_text(&[]) }),
        )
        .fallback(
            |request: Request| async move { http::nowhere(&request, "; the links of judges lead to /") },
        )
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared.frame), guard::guard))
        .with_state(shared)
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    match shared.frame.draining.load(Ordering::Relaxed) {
        false => "ready\n".into_response(),
        true => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response(),
    }
}

async fn standing(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<Response, Problem> {
    shared.work(&headers, |_, _| Ok(Outcome::Kept)).await
}

async fn vote(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let Sent { at, choice, seconds } = read_json(&shared.frame.gate, request, LARGEST).await?;
    expect_screen(at)?;
    if !(0.0..=LONGEST).contains(&seconds) {
        return Err(Problem::bad_request(format!("seconds: expected 0 to {LONGEST}, found {seconds}")));
    }
    shared.work(&headers, move |store, judge| store.vote(judge, at, choice, seconds)).await
}

async fn undo(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let Undo { at } = read_json(&shared.frame.gate, request, LARGEST).await?;
    expect_screen(at)?;
    shared.work(&headers, move |store, judge| store.undo(judge, at)).await
}

impl Shared {
    /// Applies `change` for the judge whose token is in `headers` and returns the judge's standing after it, with
    /// status 409 if the judge was on another screen, perhaps in another window.
    async fn work(
        &self,
        headers: &HeaderMap,
        change: impl FnOnce(&mut Store, usize) -> anyhow::Result<Outcome> + Send + 'static,
    ) -> Result<Response, Problem> {
        let (store, sum) = (Arc::clone(&self.store), token_sum(headers)?);
        let work = move |_: &http::Deadline| {
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            let judge = store.judge(&sum).map_err(unkept)?.ok_or_else(stranger)?;
            let outcome = change(&mut store, judge).map_err(unkept)?;
            Ok((outcome, store.standing(judge).map_err(unkept)?))
        };
        let (outcome, standing) = self.frame.gate.run(work).await?;
        let mut response = json_response(self.frame.gate.json(&Seen::new(standing))?);
        if outcome == Outcome::Elsewhere {
            *response.status_mut() = StatusCode::CONFLICT;
        }
        response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
        Ok(response)
    }
}

/// The checksum of the token in a request.
fn token_sum(headers: &HeaderMap) -> Result<String, Problem> {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = sent.and_then(|value| value.split_once(' ')).ok_or_else(stranger)?;
    // The name of a scheme may be written in any case (RFC 9110).
    if scheme.eq_ignore_ascii_case("bearer") { Ok(token::sum(token)) } else { Err(stranger()) }
}

/// Refuses numbers of screens that no study has, and no database either.
fn expect_screen(at: usize) -> Result<(), Problem> {
    match u32::try_from(at) {
        Ok(_) => Ok(()),
        Err(_) => Err(Problem::bad_request(format!("at: expected the number of a screen, found {at}"))),
    }
}

fn stranger() -> Problem {
    let detail = "this is not the link of a judge; ask whoever runs the study for yours";
    Problem::new(StatusCode::UNAUTHORIZED, "no-judge", detail)
}

/// The study cannot be read or written: a full disk, most likely.
fn unkept(error: anyhow::Error) -> Problem {
    let detail = format!("not saved: {error:#}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "not-kept", detail)
}
