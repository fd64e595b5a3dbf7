//! What all requests share: the runs, the gate, the counters.

use super::batch::Batches;
use crate::http::{Frame, Gate, Problem};
use ruleguider::ask::{MissingFacts, Model};
use ruleguider::graph::Link;
use ruleguider::run::Checksum;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Relations of a run whose missing facts are kept.
const KEPT: usize = 64;

/// A run that is served.
pub struct Run {
    /// What it is called in addresses.
    pub name: String,
    /// The run.
    pub model: Arc<Model>,
    /// What its answers depend on.
    pub fingerprint: Checksum,
    /// Questions that are answered together.
    pub batches: Batches,
    missing: Mutex<HashMap<Link, Arc<MissingFacts>>>,
    /// Held while missing facts are looked for: a second one who asks for them waits and finds them there.
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

    /// The missing facts of `link`, if they were looked for before.
    pub fn missing(&self, link: Link) -> Option<Arc<MissingFacts>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).get(&link).cloned()
    }

    /// Keeps the missing facts of `link`.
    pub fn keep(&self, link: Link, facts: &Arc<MissingFacts>) {
        let mut kept = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            // Whichever: they are found again when they are asked for again.
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
    /// Who lets work in.
    pub gate: Arc<Gate>,
    /// What every server has.
    pub frame: Arc<Frame>,
    /// Whether indexes are made.
    pub warm: AtomicBool,
}

impl Shared {
    /// The run called `name`.
    ///
    /// # Errors
    /// If there is none, with those that there are.
    pub fn run(&self, name: &str) -> Result<&Arc<Run>, Problem> {
        let found = self.runs.iter().find(|run| run.name == name);
        found.ok_or_else(|| {
            let names = self.runs.iter().map(|run| run.name.clone()).collect();
            Problem::unknown(format!("no run `{name}` is served here"), names)
        })
    }

    /// Whether requests should be sent here.
    pub fn is_ready(&self) -> bool {
        self.warm.load(Ordering::Relaxed) && !self.frame.draining.load(Ordering::Relaxed)
    }
}
