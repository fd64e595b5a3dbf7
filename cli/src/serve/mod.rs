//! `ruleguider serve`: an HTTP API over runs, and a page that uses it.
//!
//! A request passes the shared layers ([`http`](crate::http)), [`routes`] and its handler in [`api`] or [`many`], which
//! has a worker ask the model ([`batch`]). Nothing is written to a run; model logic is in the library.

mod api;
mod batch;
mod given;
mod many;
mod page;
mod routes;
mod state;

use crate::http::{self, Frame, Gate, Limits};
#[cfg(feature = "live")]
pub use api::{MISSING, Parameters, at_most};
use ruleguider::ask::Model;
#[cfg(not(feature = "live"))]
use state::{Run, Shared, Slot};
#[cfg(feature = "live")]
pub use state::{Run, Shared, Slot, folder_of};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a server is run.
pub struct Options {
    /// The other site whose pages may send requests.
    pub cors: Option<String>,
    /// Names by which the server may be addressed.
    pub hosts: Vec<String>,
    /// How much it takes on.
    pub limits: Limits,
    /// Whether facts may change, and where that is kept.
    #[cfg(feature = "live")]
    pub live: Option<Editable>,
}

/// Facts that may change.
#[cfg(feature = "live")]
pub struct Editable {
    /// The folder of the run, which is the only one.
    pub run: std::path::PathBuf,
    /// The log of changes.
    pub log: crate::live::log::Log,
    /// Who may do what.
    pub tokens: Option<crate::live::tokens::Tokens>,
    /// How other runs are opened.
    pub open: ruleguider::ask::OpenOptions,
}

/// Serves `models` at `listener` until told to stop, and finishes open requests.
///
/// # Errors
/// If the system refuses threads or signals.
pub fn serve(
    listener: TcpListener,
    models: Vec<(String, Arc<Model>)>,
    options: Options,
) -> anyhow::Result<()> {
    let runs: Vec<Arc<Slot>> = models
        .into_iter()
        .map(|(name, model)| Ok(Arc::new(Slot::new(Run::new(name, model)?))))
        .collect::<anyhow::Result<_>>()?;
    let Options { cors, hosts, limits, .. } = options;
    #[cfg(feature = "live")]
    let live = match (options.live, runs.first()) {
        (Some(Editable { run, log, tokens, open }), Some(slot)) => {
            Some(crate::live::Live::open(slot, &run, log, tokens, open)?)
        }
        _ => None,
    };
    let gate = Arc::new(Gate::new(limits));
    let frame = Arc::new(Frame::new(&gate, hosts, cors));
    let shared = Arc::new(Shared {
        runs,
        #[cfg(feature = "live")]
        live,
        gate,
        frame: Arc::clone(&frame),
        warm: AtomicBool::new(false),
    });
    let warming = Arc::clone(&shared);
    http::serve(listener, &frame, routes::router(shared), limits.running, move || warm_up(&warming))
}

/// Builds the indexes that the first question would otherwise wait for.
fn warm_up(shared: &Shared) {
    #[cfg(all(feature = "live", unix))]
    if let Some(live) = &shared.live {
        tokio::runtime::Handle::current().spawn(crate::live::reload_on_hangup(Arc::clone(live)));
    }
    for slot in &shared.runs {
        let run = slot.now();
        let (model, graph) = (&run.model, run.model.graph());
        model.naming();
        model.index().complete_entity("a", graph, 1);
        model.index().complete_relation("a", graph, 1);
        model.rules_of(ruleguider::graph::RelationId(0), 2.0, 0, 1);
    }
    shared.warm.store(true, Ordering::Relaxed);
}
