//! Applied to every request: an id, access checks, response headers for browsers, and metrics.
//!
//! `tower-http` has layers for ids, for headers of one fixed value and for sharing with other origins, which would be half
//! of this file. What decides is not among them: which hosts may be asked for, refused with the problem document of this
//! server. One middleware also gives the order, which a stack of layers would have to be arranged for: the id exists
//! before the refusal that names it, and refusals have the headers and are counted.

use super::Frame;
use super::problem::Problem;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

tokio::task_local! {
    /// The id of the request that this task answers.
    static REQUEST: String;
}

/// What a page of this server may load: its own files, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The id of the current request; `-` outside of one.
pub fn request_id() -> String {
    REQUEST.try_with(Clone::clone).unwrap_or_else(|_| "-".to_owned())
}

/// An id that no other request to this server has.
fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    format!("{now:x}-{:x}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The middleware of all routes.
pub async fn guard(State(frame): State<Arc<Frame>>, request: Request, next: Next) -> Response {
    let (began, id) = (Instant::now(), new_id());
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut response = REQUEST.scope(id.clone(), admitted(&frame, request, next)).await;
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert("x-request-id", id);
    }
    share(&frame, origin, headers);
    frame.metrics.count(&route, response.status().as_u16(), began.elapsed());
    response
}

async fn admitted(frame: &Frame, request: Request, next: Next) -> Response {
    if let Err(problem) = check_host(frame, &request) {
        return problem.into_response();
    }
    // A CORS preflight request.
    if request.method() == Method::OPTIONS && frame.cors.is_some() {
        return StatusCode::NO_CONTENT.into_response();
    }
    next.run(request).await
}

/// Adds CORS headers for the one other site whose pages may read answers, if configured.
fn share(frame: &Frame, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
    let Some(cors) = &frame.cors else { return };
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = origin.filter(|origin| origin.as_bytes() == cors.as_bytes()) else { return };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let fixed = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, idempotency-key, if-none-match"),
        (
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            "etag, x-request-id, retry-after, ruleguider-change, ruleguider-run",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Protects against DNS rebinding. A page on another site can make its own name resolve to this server, but the
/// browser then sends that name as host. So host names must be known; addresses are fine.
fn check_host(frame: &Frame, request: &Request) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let (Some(host), None) = (first, second) else {
        return Err(Problem::bad_request("expected one Host header"));
    };
    let host = host.to_str().unwrap_or_default();
    let name = without_port(host);
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let known = |known: &String| known.eq_ignore_ascii_case(name);
    if address || name.eq_ignore_ascii_case("localhost") || frame.hosts.iter().any(known) {
        return Ok(());
    }
    let detail =
        format!("the host name `{name}` is not allowed; start the server with --host {name} to allow it");
    Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "wrong-host", detail))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::without_port;

    #[test]
    fn a_host_is_known_without_its_port() {
        for (host, name) in [
            ("localhost", "localhost"),
            ("localhost:7878", "localhost"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("evil.example:80", "evil.example"),
            ("127.0.0.1.evil.example", "127.0.0.1.evil.example"),
        ] {
            assert_eq!(without_port(host), name);
        }
    }
}
