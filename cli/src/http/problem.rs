//! Errors as `application/problem+json` (RFC 9457): what is wrong, the remedy, and the request id.

use super::guard;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ruleguider::ask::AskError;
use serde::Serialize;

/// Why a request is not answered.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    /// The last part of the problem's type: one word for programs.
    kind: &'static str,
    detail: String,
    suggestions: Vec<String>,
}

/// The document that is sent.
#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    suggestions: &'a [String],
    request_id: String,
}

impl Problem {
    /// A problem with this status.
    pub fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self { status, kind, detail: detail.into(), suggestions: Vec::new() }
    }

    /// The request is wrong.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    /// An unknown name; `suggestions` are similar ones.
    pub fn unknown(detail: impl Into<String>, suggestions: Vec<String>) -> Self {
        Self { suggestions, ..Self::new(StatusCode::NOT_FOUND, "unknown-name", detail) }
    }

    /// The server is overloaded.
    pub fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "the server has too many requests; try again soon")
    }

    /// The work took too long and was stopped.
    pub fn timeout(seconds: f64) -> Self {
        let detail =
            format!("stopped after {seconds} s; ask for less, or start the server with a larger --timeout-s");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail)
    }

    /// What is wrong, in a sentence.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Name { message, suggestions } => Self::unknown(message, suggestions),
            AskError::Cannot(message) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "cannot", message),
            other => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", other.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, kind, detail, suggestions } = &self;
        let document = Document {
            r#type: format!("urn:ruleguider:problem:{kind}"),
            title: status.canonical_reason().unwrap_or(kind),
            status: status.as_u16(),
            detail,
            suggestions,
            request_id: guard::request_id(),
        };
        let mut response = (*status, Json(document)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if *status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
