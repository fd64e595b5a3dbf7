//! CPU-bound work: never on the I/O threads, limited in number, and stopped when its time is up or its client is gone.
//!
//! There are two semaphores: *waiting* bounds the requests in the server and turns the rest away; *running* has one
//! permit per worker. The work itself holds the running permit, not the task that waits for it: abandoned work that
//! has not ended yet still keeps other work from starting. What requests and responses take in memory is bounded by two
//! budgets, so that bodies which are sent slowly do not keep other answers from being sent.
//!
//! `tower`'s layers for concurrency limits and timeouts drop the future of a request. This work is no future: it computes
//! on a thread of its own, has to be told to stop, and holds its place until it has.

use super::budget::{Bounded, Budget, Charge};
use super::problem::Problem;
use axum::body::Bytes;
use axum::http::StatusCode;
use ruleguider::ask::AskError;
use ruleguider::progress::Progress;
use serde::Serialize;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The fraction of the timeout after which work that can return a partial result does so.
const EARLY: f64 = 0.8;
/// The largest response in one piece.
pub const LARGEST_RESPONSE: usize = 16 << 20;

/// How much a server takes on.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The most requests in the server at once.
    pub waiting: usize,
    /// The most requests that are worked on at once.
    pub running: usize,
    /// How long a request may take.
    pub timeout: Duration,
    /// The most bytes of request bodies and responses in memory at once; half of it for each.
    pub in_flight: usize,
}

/// Admits work.
pub struct Gate {
    waiting: Arc<Semaphore>,
    running: Arc<Semaphore>,
    /// The capacity: waiting and running.
    size: (usize, usize),
    timeout: Duration,
    /// The memory of request bodies, and of what was parsed from them.
    bodies: Budget,
    /// The memory of responses that are not sent yet.
    responses: Budget,
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
    /// A gate with these limits.
    pub fn new(limits: Limits) -> Self {
        let Limits { waiting, running, timeout, in_flight } = limits;
        Self {
            bodies: Budget::new(in_flight / 2),
            responses: Budget::new(in_flight / 2),
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
        Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| self.refuse())
    }

    /// Counts a request that is turned away and returns its error.
    fn refuse(&self) -> Problem {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Problem::busy()
    }

    /// How many bytes of request bodies and of responses are in memory.
    pub fn in_flight(&self) -> (usize, usize) {
        (self.bodies.used(), self.responses.used())
    }

    /// Charges `bytes` of a request.
    ///
    /// # Errors
    /// If requests take too much memory already.
    pub fn charge_body(&self, bytes: usize) -> Result<Charge, Problem> {
        self.bodies.try_take(bytes).ok_or_else(|| self.refuse())
    }

    /// Changes the charge of a request to `bytes`.
    ///
    /// # Errors
    /// If requests take too much memory already.
    pub fn recharge_body(&self, charge: Charge, bytes: usize) -> Result<Charge, Problem> {
        charge.resized(bytes, &self.bodies).ok_or_else(|| self.refuse())
    }

    /// Waits until a response of about `bytes` fits in memory.
    ///
    /// # Errors
    /// If it does not before the time is up.
    pub async fn reserve(&self, bytes: usize) -> Result<Charge, Problem> {
        let reserved = tokio::time::timeout(self.timeout, self.responses.take(bytes)).await;
        reserved.ok().flatten().ok_or_else(|| self.refuse())
    }

    /// A response that was `reserved` for, charged for what it really has.
    ///
    /// # Errors
    /// If responses take too much memory already.
    pub fn charged(&self, bytes: Vec<u8>, reserved: Charge) -> Result<Bytes, Problem> {
        let charge = reserved.resized(bytes.len(), &self.responses).ok_or_else(|| self.refuse())?;
        Ok(charge.on(bytes))
    }

    /// `value` as a JSON document, charged until it is sent. It is written via `scratch`, a buffer that is reused.
    ///
    /// # Errors
    /// If it is too large, or responses take too much memory already.
    pub fn json_via(&self, value: &impl Serialize, scratch: &mut Vec<u8>) -> Result<Bytes, Problem> {
        scratch.clear();
        let written = serde_json::to_writer(Bounded { bytes: scratch, most: LARGEST_RESPONSE }, value);
        written.map_err(|error| if error.is_io() { too_large() } else { failed() })?;
        let charge = self.responses.try_take(scratch.len()).ok_or_else(|| self.refuse())?;
        Ok(charge.on(scratch.clone()))
    }

    /// `value` as a JSON document, charged until it is sent.
    ///
    /// # Errors
    /// As [`Gate::json_via`].
    pub fn json(&self, value: &impl Serialize) -> Result<Bytes, Problem> {
        self.json_via(value, &mut Vec::new())
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
        self.run_until(Deadline::new(self.timeout), work).await
    }

    /// The same for one of several pieces of work that have a deadline together.
    ///
    /// # Errors
    /// If the time is up, or the work fails.
    pub async fn run_until<T: Send + 'static>(
        &self,
        deadline: Deadline,
        work: impl FnOnce(&Deadline) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        // Each piece of work is abandoned on its own: the end of one is not the end of all.
        let deadline = Deadline { abandoned: Arc::default(), ..deadline };
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

/// The response would be too large, whatever the reason: long names, or very many relations.
pub fn too_large() -> Problem {
    let detail =
        format!("the response is larger than {LARGEST_RESPONSE} bytes; ask for less with `limit` or `top`");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "too-large", detail)
}

/// A bug: the work ended without an answer.
pub fn failed() -> Problem {
    let detail = "the request failed because of a bug in the server; its stderr has the details";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_work_with_one_deadline_have_its_time_together() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let timeout = Duration::from_secs(600);
        let gate = Gate::new(Limits { waiting: 4, running: 1, timeout, in_flight: 1 << 20 });
        let is_over = |deadline: &Deadline| Ok((deadline.time_is_up(), deadline.interrupted()));
        // Another piece took all of the time: this one is to stop at once. Work of its own has its own time.
        let used_up = Deadline::new(Duration::ZERO);
        assert!(matches!(runtime.block_on(gate.run_until(used_up, is_over)), Ok((true, true))));
        assert!(matches!(runtime.block_on(gate.run_inside(is_over)), Ok((false, false))));
    }
}
