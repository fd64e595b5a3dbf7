//! What all servers of the program share: a socket, connections limited in number and by timeouts ([`connection`]),
//! access checks ([`guard`]), work with limits and deadlines ([`work`]), memory with a limit ([`budget`], [`at_most`]), uniform errors
//! ([`problem`]), files of a page ([`files`]), counters ([`metrics`]) and a graceful shutdown ([`stop`]).

mod at_most;
mod budget;
mod connection;
pub mod files;
pub mod guard;
mod metrics;
mod problem;
mod stop;
mod work;

pub use at_most::AtMost;
pub use budget::{Bounded, Charge};
pub use problem::Problem;
pub use work::{Deadline, Gate, LARGEST_RESPONSE, Limits, failed, too_large};

use crate::system;
use anyhow::Context;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use metrics::Metrics;
use serde::de::DeserializeOwned;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How often freed memory is returned to the system. Batches are large and differ in size, so fragmentation would
/// otherwise grow for hours.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(10);

/// What all requests of a server share.
pub struct Frame {
    /// Admits work.
    pub gate: Arc<Gate>,
    /// Counters.
    pub metrics: Metrics,
    /// Hosts by which the server may be addressed, besides its addresses and `localhost`.
    pub hosts: Vec<String>,
    /// The other site whose pages may send requests, if any.
    pub cors: Option<String>,
    /// Whether the server is shutting down and refuses new requests.
    pub draining: AtomicBool,
}

impl Frame {
    /// The state of a server before it starts.
    pub fn new(gate: &Arc<Gate>, hosts: Vec<String>, cors: Option<String>) -> Self {
        let draining = AtomicBool::new(false);
        Self { gate: Arc::clone(gate), metrics: Metrics::new(), hosts, cors, draining }
    }

    /// Its counters, and gauges of its own, as Prometheus reads them.
    pub fn metrics_text(&self, own: &[(&str, &str, f64)]) -> Response {
        let text = self.metrics.text(&self.gate, own);
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
    }
}

/// A socket at `address`.
///
/// # Errors
/// If it is in use, or is not an address of this machine.
pub fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .with_context(|| format!("{address}: cannot listen on this address; choose another with --bind"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves `router` at `listener` until told to stop, and finishes open requests. `meanwhile` runs on its own thread.
///
/// # Errors
/// If the system refuses threads or signals.
pub fn serve(
    listener: TcpListener,
    frame: &Arc<Frame>,
    router: Router,
    threads: usize,
    meanwhile: impl FnOnce() + Send + 'static,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.clamp(1, 4))
        .enable_all()
        .build()
        .context("starting the server threads")?;
    let served = runtime.block_on(async {
        let stop = stop::requested()?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::task::spawn_blocking(meanwhile);
        tokio::spawn(give_back());
        connection::serve(listener, router, frame, stop, frame.gate.timeout()).await;
        Ok(())
    });
    // Nothing waits for work that is still running.
    runtime.shutdown_background();
    served
}

/// Returns freed memory to the system periodically.
async fn give_back() {
    let mut moments = tokio::time::interval(GIVE_BACK_EVERY);
    loop {
        moments.tick().await;
        // Not on the I/O threads: it takes some milliseconds.
        let _ = tokio::task::spawn_blocking(system::give_back_memory).await;
    }
}

/// A document as JSON.
pub fn json_response(bytes: impl Into<Body>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], bytes.into()).into_response()
}

/// The body of `request`, which is JSON and has at most `largest` bytes. While it arrives, it is charged to the budget of
/// `gate` for bodies, and it has to be complete before the time is up. A caller enters the gate afterwards: a body that
/// never ends takes nobody's place.
///
/// # Errors
/// If it is something else, too large or too slow, or the bodies of others take too much memory already.
pub async fn read_json<T: DeserializeOwned>(
    gate: &Gate,
    request: Request,
    largest: usize,
) -> Result<T, Problem> {
    let (body, _charge) = read_bytes(gate, request, &["application/json"], largest).await?;
    serde_json::from_slice(&body).map_err(|wrong| Problem::bad_request(format!("the body: {wrong}")))
}

/// The body of `request`, which has one of these content types; otherwise as [`read_json`].
///
/// # Errors
/// As [`read_json`].
pub async fn read_bytes(
    gate: &Gate,
    request: Request,
    kinds: &[&str],
    largest: usize,
) -> Result<(Vec<u8>, Charge), Problem> {
    let sent = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !sent.is_some_and(|sent| kinds.iter().any(|kind| sent.starts_with(kind))) {
        let detail = format!("expected a body with the content type {}", kinds.join(" or "));
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail));
    }
    gate.in_time(read_body(gate, request, largest)).await
}

async fn read_body(gate: &Gate, request: Request, largest: usize) -> Result<(Vec<u8>, Charge), Problem> {
    let too_large = || {
        let detail = format!("the body is larger than {largest} bytes; send it in several requests");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    };
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > largest as u64) {
        return Err(too_large());
    }
    let (mut body, mut charge) = (Vec::new(), gate.charge_body(0)?);
    let mut pieces = request.into_body().into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece =
            piece.map_err(|wrong| Problem::bad_request(format!("the body cannot be read: {wrong}")))?;
        if body.len() + piece.len() > largest {
            return Err(too_large());
        }
        // What was only announced takes no memory, so it is charged as it arrives.
        charge = gate.recharge_body(charge, body.len() + piece.len())?;
        if body.capacity() < body.len() + piece.len() {
            // Not twice as much, as a vector takes: that would be charged to nobody.
            body.reserve_exact(piece.len() + body.len() / 8);
        }
        body.extend_from_slice(&piece);
    }
    Ok((body, charge))
}

/// There is nothing at this address; `remedy` says what exists.
pub fn nowhere(request: &Request, remedy: &str) -> Problem {
    let detail = format!("there is nothing at {}{remedy}", request.uri().path());
    Problem::new(StatusCode::NOT_FOUND, "no-route", detail)
}

/// The address exists but does not support the method.
pub async fn wrong_method(request: Request) -> Problem {
    let detail = format!("{} does not support {}", request.uri().path(), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", detail)
}
