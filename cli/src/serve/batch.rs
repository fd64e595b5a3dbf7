//! Questions that come at the same time are answered together: a batch costs far less than its questions one by one.
//!
//! Whoever asks puts the question into the queue and sends for a worker. A worker takes as many questions as the
//! reasoner likes at once; one that comes too late finds the queue empty and goes home. Nobody waits for a batch to
//! fill: a question that is alone is answered alone.

use super::state::Run;
use crate::http::{Deadline, Gate, Problem, failed};
use ruleguider::ask::Prediction;
use ruleguider::graph::Query;
use ruleguider::progress::Progress;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Questions that are answered together at most: with more, the first would wait for the last.
const LARGEST: usize = 64;

type Answered = Result<Arc<Prediction>, Problem>;

/// The questions of a run that wait.
#[derive(Default)]
pub struct Batches {
    queue: Mutex<VecDeque<Asked>>,
}

struct Asked {
    query: Query,
    top: usize,
    answer: oneshot::Sender<Answered>,
}

impl Batches {
    /// The oldest questions that want equally many answers; those whose asker has gone are dropped.
    fn take(&self) -> Vec<Asked> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.retain(|asked| !asked.answer.is_closed());
        let Some(top) = queue.front().map(|asked| asked.top) else { return Vec::new() };
        let mut taken = Vec::new();
        let mut left = VecDeque::with_capacity(queue.len());
        for asked in queue.drain(..) {
            if asked.top == top && taken.len() < LARGEST { taken.push(asked) } else { left.push_back(asked) }
        }
        *queue = left;
        taken
    }
}

/// The answers to `query`, perhaps found together with others.
///
/// # Errors
/// If there is no place, the time is up, or the reasoner fails.
pub async fn predict(gate: &Arc<Gate>, run: &Arc<Run>, query: Query, top: usize) -> Answered {
    let _place = gate.enter()?;
    let (answer, answered) = oneshot::channel();
    run.batches.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(Asked { query, top, answer });
    tokio::spawn(send_worker(Arc::clone(gate), Arc::clone(run)));
    gate.in_time(async { answered.await.unwrap_or_else(|_| Err(failed())) }).await
}

async fn send_worker(gate: Arc<Gate>, run: Arc<Run>) {
    let Some(permit) = gate.worker().await else { return };
    // A panic in there drops the questions, and those who wait for them learn that it failed.
    let _ = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        answer_batch(&gate, &run);
    })
    .await;
}

/// The work for a batch: stopped when its time is up, or nobody waits for it any longer.
struct Awaited<'a> {
    askers: &'a [Asked],
    deadline: Deadline,
}

impl Progress for Awaited<'_> {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {}
    fn end(&self, _summary: &dyn Display) {}

    fn interrupted(&self) -> bool {
        self.deadline.interrupted() || self.askers.iter().all(|asked| asked.answer.is_closed())
    }
}

fn answer_batch(gate: &Gate, run: &Run) {
    let taken = run.batches.take();
    let Some(first) = taken.first() else { return };
    let queries: Vec<Query> = taken.iter().map(|asked| asked.query).collect();
    let awaited = Awaited { askers: &taken, deadline: Deadline::new(gate.timeout()) };
    match run.model.predict_many(&queries, first.top, 1, 0, &awaited) {
        Ok(answers) => {
            for (asked, answer) in taken.into_iter().zip(answers) {
                // Whoever has gone does not hear it.
                let _ = asked.answer.send(Ok(answer));
            }
        }
        Err(error) => {
            let problem = gate.problem(error);
            for asked in taken {
                let _ = asked.answer.send(Err(problem.clone()));
            }
        }
    }
}
