//! What all requests share: the runs, the gate, the counters.

use super::batch::Batches;
use crate::http::{Frame, Gate, Problem};
use ruleguider::ask::{MissingFacts, Model};
use ruleguider::graph::Link;
use ruleguider::run::Checksum;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The most relations of a run whose missing facts are cached.
const KEPT: usize = 64;

/// A run that is served.
pub struct Run {
    /// Its name in URLs.
    pub name: String,
    /// The run.
    pub model: Arc<Model>,
    /// The checksum of everything that its answers depend on.
    pub fingerprint: Checksum,
    /// Questions that are answered together.
    pub batches: Batches,
    missing: Mutex<HashMap<Link, Arc<MissingFacts>>>,
    /// Held while missing facts are computed: a second request for them waits and then finds them in the
    /// cache.
    pub looking: tokio::sync::Mutex<()>,
}

impl Run {
    /// `model`, called `name`.
    ///
    /// # Errors
    /// If the list of its stages cannot be read.
    pub fn new(name: String, model: Arc<Model>) -> anyhow::Result<Self> {
        let fingerprint = model.fingerprint()?;
        Ok(Self {
            name,
            model,
            fingerprint,
            batches: Batches::default(),
            missing: Mutex::new(HashMap::new()),
            looking: tokio::sync::Mutex::new(()),
        })
    }

    /// The cached missing facts of `link`, if any.
    pub fn missing(&self, link: Link) -> Option<Arc<MissingFacts>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).get(&link).cloned()
    }

    /// Caches the missing facts of `link`.
    pub fn keep(&self, link: Link, facts: &Arc<MissingFacts>) {
        let mut kept = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            // Any entry will do: it is computed again when it is requested again.
            let any = kept.keys().next().copied();
            any.map(|link| kept.remove(&link));
        }
        kept.insert(link, Arc::clone(facts));
    }
}

/// What all requests share.
pub struct Shared {
    /// The runs, in the order in which they were given.
    pub runs: Vec<Arc<Run>>,
    /// Admits work.
    pub gate: Arc<Gate>,
    /// The state that all servers share.
    pub frame: Arc<Frame>,
    /// Whether the indexes are built.
    pub warm: AtomicBool,
}

impl Shared {
    /// The run called `name`.
    ///
    /// # Errors
    /// If there is none, with the names of all runs.
    pub fn run(&self, name: &str) -> Result<&Arc<Run>, Problem> {
        let found = self.runs.iter().find(|run| run.name == name);
        found.ok_or_else(|| {
            let names = self.runs.iter().map(|run| run.name.clone()).collect();
            Problem::unknown(format!("this server has no run `{name}`"), names)
        })
    }

    /// Whether requests should be sent here.
    pub fn is_ready(&self) -> bool {
        self.warm.load(Ordering::Relaxed) && !self.frame.draining.load(Ordering::Relaxed)
    }
}
