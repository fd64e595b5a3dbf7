//! CPU-bound work: never on the I/O threads, limited in number, and stopped when its time is up or its client is gone.
//!
//! There are two semaphores: *waiting* bounds the requests in the server and turns the rest away; *running* has one
//! permit per worker. The work itself holds the running permit, not the task that waits for it: abandoned work that
//! has not ended yet still keeps other work from starting.

use super::problem::Problem;
use ruleguider::ask::AskError;
use ruleguider::progress::Progress;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The fraction of the timeout after which work that can return a partial result does so.
const EARLY: f64 = 0.8;

/// Admits work.
pub struct Gate {
    waiting: Arc<Semaphore>,
    running: Arc<Semaphore>,
    /// The capacity: waiting and running.
    size: (usize, usize),
    timeout: Duration,
    /// Requests that were turned away, and work that was stopped.
    pub refused: AtomicU64,
    /// Work whose time was up.
    pub timed_out: AtomicU64,
}

/// When work has to end, and whether its client still waits.
#[derive(Clone)]
pub struct Deadline {
    began: Instant,
    timeout: Duration,
    abandoned: Arc<AtomicBool>,
}

/// Marks the work as abandoned when dropped.
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
    /// Admits `waiting` requests, of which `running` are worked on at a time, each for at most `timeout`.
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

    /// How many requests are worked on at a time.
    pub fn workers(&self) -> usize {
        self.size.1
    }

    /// How many requests are in the server, and how many of them are worked on.
    pub fn load(&self) -> (usize, usize) {
        let (waiting, running) = self.size;
        (waiting - self.waiting.available_permits(), running - self.running.available_permits())
    }

    /// A permit to wait.
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

    /// The result of `work`, which is stopped when its time is up or the client disconnects.
    ///
    /// # Errors
    /// If the server is full, the time is up, or the work fails.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Deadline) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let _place = self.enter()?;
        self.run_inside(work).await
    }

    /// The same for a caller that already has a permit.
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

    /// The result of `job`, if it ends within the timeout.
    ///
    /// # Errors
    /// Those of the job, or that it took too long.
    pub async fn in_time<T>(&self, job: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
        tokio::time::timeout(self.timeout, job).await.unwrap_or_else(|_| Err(self.too_late()))
    }

    /// Counts a timeout and returns its error.
    pub fn too_late(&self) -> Problem {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
        Problem::timeout(self.timeout.as_secs_f64())
    }

    /// A model's error as a problem; interrupted work has timed out.
    pub fn problem(&self, error: AskError) -> Problem {
        if error.is_interrupted() { Problem::timeout(self.timeout.as_secs_f64()) } else { error.into() }
    }
}

/// A bug: the work ended without an answer.
pub fn failed() -> Problem {
    let detail = "the request failed because of a bug in the server; its stderr has the details";
    Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "bug", detail)
}
