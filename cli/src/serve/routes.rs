//! The routes; runs, health, metrics, and answers that a client already has.

use super::state::{Run, Shared, answered_by};
use super::{api, given, many, page};
use crate::http::{self, Problem, guard, wrong_method};
#[cfg(feature = "live")]
use crate::live::tokens::Role;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use ruleguider::run::Checksum;
use serde_json::{Value, json};
use std::sync::Arc;

/// The description of the routes; a test asks every one of them and compares.
const OPENAPI: &str = include_str!("openapi.json");

/// The header with the folder of the run that answered.
const RUN: &str = "ruleguider-run";
/// The header with the number of the last change that is in an answer.
const OVERLAY: &str = "ruleguider-change";

/// All routes.
pub fn router(shared: Arc<Shared>) -> Router {
    let of_a_run = Router::new()
        .route("/overview", get(api::overview))
        .route("/suggest", get(api::suggest))
        .route("/predict", get(api::predict).post(many::predict))
        .route("/explain", get(api::explain).post(given::explain))
        .route("/score", post(given::score))
        .route("/relations", get(given::relations))
        .route("/reasons", get(api::reasons))
        .route("/entity", get(api::entity))
        .route("/rules", get(api::rules))
        .route("/groundings", get(api::groundings))
        .route("/facts", get(api::facts))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), known_already));
    let all = page::routes(Router::new());
    #[cfg(feature = "live")]
    let all = all.nest("/api/v1/{run}/live", crate::live::routes::router());
    all.nest("/api/v1/{run}", of_a_run)
        .route("/api/v1/runs", get(runs))
        .route("/api/openapi.json", get(|| async { http::json_response(OPENAPI) }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared.frame), guard::guard))
        .with_state(shared)
}

/// A page for a browser that was sent to a wrong address, a problem for programs.
async fn nowhere(request: Request) -> Response {
    let accepts = request.headers().get(header::ACCEPT).and_then(|kinds| kinds.to_str().ok());
    match accepts.is_some_and(|kinds| kinds.contains("text/html")) {
        true => (StatusCode::NOT_FOUND, Html(page::NOWHERE)).into_response(),
        false => http::nowhere(&request, "; /api/openapi.json describes the API").into_response(),
    }
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    match shared.is_ready() {
        true => "ready\n".into_response(),
        false => {
            (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], "not ready\n").into_response()
        }
    }
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let own = [("runs", "Runs served.", shared.runs.len() as f64)];
    shared.frame.metrics_text(&own)
}

async fn runs(State(shared): State<Arc<Shared>>, _headers: HeaderMap) -> Result<Json<Value>, Problem> {
    #[cfg(feature = "live")]
    if let Some(live) = &shared.live {
        live.admit(&_headers, Role::Read)?;
    }
    let described: Vec<Value> = shared.runs.iter().map(|slot| described(&slot.now())).collect();
    Ok(Json(json!({"runs": described, "version": ruleguider::VERSION})))
}

fn described(run: &Run) -> Value {
    let (model, graph) = (&run.model, run.model.graph());
    // A run that was learnt but not evaluated has no figures but can still answer.
    let results = model.results().ok();
    let figures = results.map(|results| json!(results.report.figures));
    json!({
        "name": run.name, "live": run.overlay.is_some(), "dataset": results.map(|results| &results.dataset), "seed": model.seed(),
        "system": model.config().system, "entities": graph.entities(), "relations": graph.relations(),
        "facts": model.counts().facts, "learnt": model.counts().learnt, "kept_back": model.counts().kept_back, "rules": model.rules().len(), "figures": figures,
        "probabilities": model.why_no_probability().is_ok_and(|why| why.is_none()),
        "reliability": results.and_then(|results| results.calibration.as_ref()).map(|table| &table.bins),
        "probability_rough": model.why_rough().is_some(), "why_rough": model.why_rough(),
    })
}

/// An answer depends only on the run, the changes so far and the question, so a client that has it need not get it again. The ETag is weak,
/// since the last digits of a score depend on the questions in the same batch.
async fn known_already(
    State(shared): State<Arc<Shared>>,
    path: Result<Path<Vec<(String, String)>>, PathRejection>,
    request: Request,
    next: Next,
) -> Response {
    let path = match path {
        Ok(Path(path)) => path,
        Err(wrong) => return Problem::bad_request(wrong.body_text()).into_response(),
    };
    let name = path.first().map_or("", |(_, name)| name.as_str());
    #[cfg(feature = "live")]
    if let Some(live) = shared.live.as_ref().filter(|live| live.is_of(name)) {
        let ready = match live.admit(request.headers(), Role::Read) {
            Ok(_) => live.caught_up(shared.gate.timeout()).await,
            Err(refused) => Err(refused),
        };
        if let Err(problem) = ready {
            return problem.into_response();
        }
    }
    let Ok(run) = shared.run(name) else { return next.run(request).await };
    let sum = Checksum::of(&(&run.fingerprint, request.uri().to_string())).to_string();
    let tag = format!("W/\"{}\"", &sum[..sum.len().min(32)]);
    let sent = request.headers().get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let is_get = request.method() == Method::GET;
    let has = is_get
        && sent
            .is_some_and(|tags| tags.split(',').any(|one| one.trim().trim_start_matches("W/") == &tag[2..]));
    let mut response = match has {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => answered_by(Arc::clone(&run), next.run(request)).await,
    };
    let headers = response.headers_mut();
    // Which run and which change the answer was made from.
    let made_from = [
        (RUN, HeaderValue::from_bytes(run.folder.as_bytes()).ok()),
        (OVERLAY, run.overlay.map(HeaderValue::from)),
    ];
    for (name, value) in made_from {
        headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
    if !is_get {
        return response;
    }
    let Ok(tag) = HeaderValue::from_str(&tag) else { return response };
    let fresh = headers.get(header::CACHE_CONTROL).is_none();
    if fresh {
        headers.insert(header::ETAG, tag);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    response
}
