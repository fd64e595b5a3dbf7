//! Work that takes a processor: never on the threads that speak to clients, never more than is asked for, and stopped
//! when its time is up or nobody waits for it any longer.
//!
//! Two semaphores: *waiting* bounds the questions that are in the server at once, and turns the rest away; *running*
//! has one permit a worker. A permit to run goes with the work itself, not with the one who waits for it: work that is
//! still on its way to its end keeps others from starting.

use super::problem::Problem;
use ruleguider::ask::AskError;
use ruleguider::progress::Progress;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The part of its time after which work that can end early does.
const EARLY: f64 = 0.8;

/// Who lets work in.
pub struct Gate {
    waiting: Arc<Semaphore>,
    running: Arc<Semaphore>,
    /// How many waits and runs there can be.
    size: (usize, usize),
    timeout: Duration,
    /// Questions that were turned away, and work that was stopped.
    pub refused: AtomicU64,
    /// Work whose time was up.
    pub timed_out: AtomicU64,
}

/// When work has to end, and whether anybody still waits for it.
#[derive(Clone)]
pub struct Deadline {
    began: Instant,
    timeout: Duration,
    abandoned: Arc<AtomicBool>,
}

/// Tells the work that nobody waits for it any longer.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Deadline {
    /// Work that begins now and may take `timeout`.
    pub fn new(timeout: Duration) -> Self {
        Self { began: Instant::now(), timeout, abandoned: Arc::new(AtomicBool::new(false)) }
    }
}

impl Progress for Deadline {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}

    fn interrupted(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || self.began.elapsed() >= self.timeout
    }

    fn time_is_up(&self) -> bool {
        self.began.elapsed() >= self.timeout.mul_f64(EARLY)
    }
}

impl Gate {
    /// Lets in `waiting` questions, of which `running` are worked on at a time, each for at most `timeout`.
    pub fn new(waiting: usize, running: usize, timeout: Duration) -> Self {
        Self {
            waiting: Arc::new(Semaphore::new(waiting)),
            running: Arc::new(Semaphore::new(running)),
            size: (waiting, running),
            timeout,
            refused: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
        }
    }

    /// How long work may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How many questions are worked on at a time.
    pub fn workers(&self) -> usize {
        self.size.1
    }

    /// How many questions are in the server, and how many of them are worked on.
    pub fn load(&self) -> (usize, usize) {
        let (waiting, running) = self.size;
        (waiting - self.waiting.available_permits(), running - self.running.available_permits())
    }

    /// A place among those that wait.
    ///
    /// # Errors
    /// If there is none.
    pub fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            Problem::busy()
        })
    }

    /// Waits for a worker.
    pub async fn worker(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.running).acquire_owned().await.ok()
    }

    /// What `work` comes to; it is stopped when its time is up or the one who asks goes away.
    ///
    /// # Errors
    /// If there is no place, the time is up, or the work fails.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Deadline) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let _place = self.enter()?;
        self.run_inside(work).await
    }

    /// The same for one who has a place already.
    ///
    /// # Errors
    /// If the time is up, or the work fails.
    pub async fn run_inside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Deadline) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let deadline = Deadline::new(self.timeout);
        let _waiting = Waiting(Arc::clone(&deadline.abandoned));
        let job = async {
            let permit = self.worker().await.ok_or_else(Problem::busy)?;
            let done = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                work(&deadline)
            });
            done.await.map_err(|_| failed())?
        };
        self.in_time(job).await
    }

    /// `job`, unless its time is up before.
    ///
    /// # Errors
    /// Those of the job, or that it took too long.
    pub async fn in_time<T>(&self, job: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
        tokio::time::timeout(self.timeout, job).await.unwrap_or_else(|_| Err(self.too_late()))
    }

    /// Says that the time is up.
    pub fn too_late(&self) -> Problem {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
        Problem::timeout(self.timeout.as_secs_f64())
    }

    /// What the model says is wrong; what was interrupted ran out of time.
    pub fn problem(&self, error: AskError) -> Problem {
        if error.is_interrupted() { Problem::timeout(self.timeout.as_secs_f64()) } else { error.into() }
    }
}

/// A bug: the work ended without an answer.
pub fn failed() -> Problem {
    let detail = "the work failed inside the program; this is a bug, and stderr of the server says more";
    Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "bug", detail)
}
