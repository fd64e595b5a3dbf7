//! `ruleguider serve`: an HTTP API over runs, and a page that uses it.
//!
//! A request passes [`connection`] (bounded in number and patience), [`guard`] (who may ask), [`routes`] and its handler
//! in [`api`] or [`many`], which has a worker ask the model ([`work`], [`batch`]). Nothing is written to a run; what is
//! about the model is the library's.

mod api;
mod batch;
mod connection;
mod guard;
mod many;
mod metrics;
mod page;
mod problem;
mod routes;
mod state;
mod work;

use anyhow::Context;
use ruleguider::ask::Model;
use state::{Run, Shared};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How a server is run.
pub struct Options {
    /// Other sites whose pages may ask.
    pub cors: Option<String>,
    /// Names by which the server may be addressed.
    pub hosts: Vec<String>,
    /// How long a question may take.
    pub timeout: Duration,
    /// Questions that are in the server at once.
    pub waiting: usize,
    /// Questions that are worked on at once.
    pub workers: usize,
}

/// A socket at `address`.
///
/// # Errors
/// If it is taken, or not of this machine.
pub fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .with_context(|| format!("{address}: cannot be listened at; --bind names another address"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves `models` at `listener` until it is told to stop, and ends what was begun.
///
/// # Errors
/// If the system refuses threads or signals.
pub fn serve(
    listener: TcpListener,
    models: Vec<(String, Arc<Model>)>,
    options: Options,
) -> anyhow::Result<()> {
    let runs: Vec<Arc<Run>> = models
        .into_iter()
        .map(|(name, model)| Ok(Arc::new(Run::new(name, model)?)))
        .collect::<anyhow::Result<_>>()?;
    let gate = work::Gate::new(options.waiting, options.workers, options.timeout);
    let shared = Arc::new(Shared {
        runs,
        gate: Arc::new(gate),
        metrics: metrics::Metrics::new(),
        hosts: options.hosts,
        cors: options.cors,
        warm: AtomicBool::new(false),
        draining: AtomicBool::new(false),
        workers: options.workers,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.workers.clamp(1, 4))
        .enable_all()
        .build()
        .context("starting the threads of the server")?;
    let served = runtime.block_on(async {
        let stop = stopped()?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let warming = Arc::clone(&shared);
        tokio::task::spawn_blocking(move || warm_up(&warming));
        let router = routes::router(Arc::clone(&shared));
        connection::serve(listener, router, &shared, stop, options.timeout).await;
        Ok(())
    });
    // What still runs has nobody who waits for it.
    runtime.shutdown_background();
    served
}

/// Makes what the first question would have to wait for.
fn warm_up(shared: &Shared) {
    for run in &shared.runs {
        let (model, graph) = (&run.model, run.model.graph());
        model.naming();
        model.index().complete_entity("a", graph, 1);
        model.index().complete_relation("a", graph, 1);
        model.rules_of(ruleguider::graph::RelationId(0), 2.0, 0, 1);
    }
    shared.warm.store(true, Ordering::Relaxed);
}

/// Comes when the server is told to stop, by SIGTERM or Ctrl-C.
fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let mut asked = signal(SignalKind::terminate()).context("waiting for SIGTERM")?;
    let mut typed = signal(SignalKind::interrupt()).context("waiting for Ctrl-C")?;
    Ok(async move {
        tokio::select! {
            _ = asked.recv() => {}
            _ = typed.recv() => {}
        }
    })
}
