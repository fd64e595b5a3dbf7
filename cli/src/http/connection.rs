//! Connections: accepted, limited in number and by timeouts, and shut down gracefully.
//!
//! A client that does not send its request, or does not read its answer, loses its connection; it blocks no
//! worker meanwhile.
//!
//! `axum::serve` accepts connections, too, but takes no limit on their number, on the time and size of a request's head
//! or on an answer that nobody reads, and its graceful shutdown waits for as long as clients like. These limits are why
//! this module drives hyper itself; `tower-http` has layers for requests, and all of them begin after the head.

use super::Frame;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;

/// Connections at once; the next ones wait in the system's queue.
const CONNECTIONS: usize = 4096;
/// How long a client may take to send the head of its request, or keep a connection idle.
const HEAD: Duration = Duration::from_secs(30);
/// How long a client may go without reading a byte of its answer.
const STALLED: Duration = Duration::from_secs(30);
/// The most headers of a request.
const HEADERS: usize = 64;
/// The largest head of a request, in bytes.
const HEAD_BYTES: usize = 128 << 10;
/// The end of the year 9998 in seconds since 1970: later ones have no date in HTTP.
const YEAR_9999: u64 = 253_370_764_800;
/// How long to wait after the system refuses a connection.
const REFUSED: Duration = Duration::from_millis(50);

/// Serves `router` at `listener` until `stop` resolves; then finishes open requests, for at most `drain`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    frame: &Arc<Frame>,
    stop: impl Future<Output = ()>,
    drain: Duration,
) {
    let (places, graceful) = (Arc::new(Semaphore::new(CONNECTIONS)), GracefulShutdown::new());
    let mut stop = std::pin::pin!(stop);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = accepted else {
            // Most likely too many files are open; some will be closed soon.
            tokio::time::sleep(REFUSED).await;
            continue;
        };
        let connection = connection(stream, router.clone());
        let connection = graceful.watch(connection);
        let frame = Arc::clone(frame);
        frame.metrics.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            // A client that disconnects is not an error.
            let _ = connection.await;
            frame.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
    drop(listener);
    frame.draining.store(true, Ordering::Relaxed);
    let _ = tokio::time::timeout(drain, graceful.shutdown()).await;
}

fn connection(
    stream: TcpStream,
    router: Router,
) -> http1::Connection<TokioIo<Patient>, TowerToHyperService<Router>> {
    // Answers are written in one piece, so batching small writes gains nothing.
    let _ = stream.set_nodelay(true);
    http1::Builder::new()
        .auto_date_header(has_http_date(SystemTime::now()))
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEADERS)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Patient { stream, stalled: None }), TowerToHyperService::new(router))
}

/// Whether the header `Date` can express `now`; a clock that was never set may be before 1970.
fn has_http_date(now: SystemTime) -> bool {
    now.duration_since(UNIX_EPOCH).is_ok_and(|since| since.as_secs() < YEAR_9999)
}

/// A stream whose writes fail once the peer has read nothing for too long.
struct Patient {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn waited<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALLED)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.waited(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.waited(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_http_cannot_express_are_left_out() {
        assert!(has_http_date(SystemTime::now()));
        assert!(!has_http_date(UNIX_EPOCH - Duration::from_secs(1)));
        assert!(!has_http_date(UNIX_EPOCH + Duration::from_secs(300_000_000_000)));
    }
}
