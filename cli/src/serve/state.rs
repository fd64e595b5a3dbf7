//! What all requests share: the runs, the gate, the counters.

use super::batch::Batches;
use crate::http::{Frame, Gate, Problem};
use ruleguider::ask::{HeldOutFacts, MissingFacts, Model};
use ruleguider::graph::Link;
use ruleguider::run::Checksum;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The most relations of a run whose missing facts are cached.
const KEPT: usize = 64;

/// A run that is served.
pub struct Run {
    /// Its name in URLs.
    pub name: String,
    /// The run.
    pub model: Arc<Model>,
    /// The name of its folder. Another run may take its place under the same name in URLs.
    pub folder: Arc<str>,
    /// The checksum of everything that its answers depend on.
    pub fingerprint: Checksum,
    /// The last change that is in its answers, if facts may change.
    pub overlay: Option<i64>,
    /// Questions that are answered together.
    pub batches: Batches,
    /// Missing facts that were found before.
    pub missing: FoundBefore,
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
        let folder = folder_of(&model);
        Ok(Self {
            name,
            model,
            folder,
            fingerprint,
            overlay: None,
            batches: Batches::default(),
            missing: FoundBefore::default(),
            looking: tokio::sync::Mutex::new(()),
        })
    }
}

#[cfg(feature = "live")]
impl Run {
    /// The same after change number `seq`, of the run in `folder`.
    pub fn after(self, seq: i64, folder: &Arc<str>) -> Self {
        let fingerprint = Checksum::of(&(&self.fingerprint, seq));
        Self { fingerprint, overlay: Some(seq), folder: Arc::clone(folder), ..self }
    }
}

/// The name of the folder that `model` was read from: of the run itself, where its path is a link to it.
pub fn folder_of(model: &Model) -> Arc<str> {
    let path = model.run_path();
    let whole = path.canonicalize();
    let name = whole.as_deref().unwrap_or(path).file_name().unwrap_or_default();
    name.to_string_lossy().into()
}

tokio::task_local! {
    /// The run that answers the request of a task, so that all of the answer is from one run.
    static ANSWERING: Arc<Run>;
}

/// Lets `run` answer whatever is asked of its name in `work`, although another one may take its place meanwhile.
pub async fn answered_by<T>(run: Arc<Run>, work: impl Future<Output = T>) -> T {
    ANSWERING.scope(run, work).await
}

/// The place of a run: requests that began on one run finish on it when another one takes its place.
pub struct Slot {
    /// The name in URLs, which stays.
    pub name: String,
    now: RwLock<Arc<Run>>,
}

impl Slot {
    /// The place of `run`.
    pub fn new(run: Run) -> Self {
        Self { name: run.name.clone(), now: RwLock::new(Arc::new(run)) }
    }

    /// The run that answers now.
    pub fn now(&self) -> Arc<Run> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts `run` into the place. The one that was there goes with its last request, not under the lock.
    #[cfg(feature = "live")]
    pub fn swap(&self, run: Run) {
        let before =
            std::mem::replace(&mut *self.now.write().unwrap_or_else(PoisonError::into_inner), Arc::new(run));
        drop(before);
    }
}

/// What is asked of a relation's missing facts.
type Which = (Link, HeldOutFacts);

/// Lists of missing facts.
#[derive(Default)]
pub struct FoundBefore(Mutex<HashMap<Which, Arc<MissingFacts>>>);

impl FoundBefore {
    /// The list, if there is one. A list for which the time was too short is good for its `further` pages, so that they
    /// fit the first; who asks for the first page again gets a new list.
    pub fn get(&self, which: Which, further: bool) -> Option<Arc<MissingFacts>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&which).cloned();
        found.filter(|found| further || found.asked == found.subjects)
    }

    /// Keeps a list.
    pub fn keep(&self, which: Which, facts: &Arc<MissingFacts>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            // Any entry will do: it is computed again when it is requested again.
            let any = kept.keys().next().copied();
            any.map(|which| kept.remove(&which));
        }
        kept.insert(which, Arc::clone(facts));
    }
}

/// What all requests share.
pub struct Shared {
    /// The runs, in the order in which they were given.
    pub runs: Vec<Arc<Slot>>,
    /// Changes to a run.
    #[cfg(feature = "live")]
    pub live: Option<Arc<crate::live::Live>>,
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
    pub fn run(&self, name: &str) -> Result<Arc<Run>, Problem> {
        let answering = ANSWERING.try_with(|run| (run.name == name).then(|| Arc::clone(run)));
        if let Ok(Some(run)) = answering {
            return Ok(run);
        }
        let found = self.runs.iter().find(|run| run.name == name);
        found.map(|slot| slot.now()).ok_or_else(|| {
            let names = self.runs.iter().map(|run| run.name.clone()).collect();
            Problem::unknown(format!("this server has no run `{name}`"), names)
        })
    }

    /// Whether requests should be sent here.
    pub fn is_ready(&self) -> bool {
        self.warm.load(Ordering::Relaxed) && !self.frame.draining.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_ran_out_of_time_is_found_again_from_its_first_page() {
        let (before, link) = (FoundBefore::default(), (Link(3), HeldOutFacts::Hide));
        let list = |asked| Arc::new(MissingFacts { asked, subjects: 10, ..MissingFacts::default() });
        before.keep(link, &list(4));
        assert!(before.get(link, false).is_none(), "the next visit has more time");
        assert_eq!(before.get(link, true).unwrap().asked, 4, "the second page is one of the same list");
        before.keep(link, &list(10));
        assert_eq!(before.get(link, false).unwrap().asked, 10);
        assert!(before.get((Link(4), HeldOutFacts::Hide), true).is_none());
    }
}
