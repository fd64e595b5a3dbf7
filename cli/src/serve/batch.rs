//! Questions that arrive at the same time are answered together: a batch costs far less than its questions one by one.
//!
//! A request puts its question into the queue. While questions wait, one worker is scheduled. When it starts, it
//! schedules the next one if it leaves questions behind, so that there are as many workers as there is work for. A
//! worker takes its share of the open questions, at most the reasoner's batch size. No question waits for a batch to
//! fill: a single question is answered alone.
//!
//! The worker also serialises the answers to JSON: the I/O threads only send them.

use super::state::Run;
use crate::http::{Deadline, Gate, Problem, failed};
use axum::body::Bytes;
use ruleguider::graph::Query;
use ruleguider::progress::Progress;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A prediction as JSON.
type Answered = Result<Bytes, Problem>;

/// The questions of a run that are in the server.
#[derive(Default)]
pub struct Batches(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<OpenQuery>,
    /// How many are being answered.
    taken: usize,
    /// Whether a worker is scheduled, as is always the case while questions wait.
    sent: bool,
}

struct OpenQuery {
    query: Query,
    top: usize,
    answer: oneshot::Sender<Answered>,
}

impl Batches {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Adds a question; returns whether a worker has to be scheduled.
    fn push(&mut self, asked: OpenQuery) -> bool {
        self.waiting.push_back(asked);
        !std::mem::replace(&mut self.sent, true)
    }

    /// The questions that one of `workers` takes, and whether another one has to be scheduled. It takes the oldest
    /// questions that want the same number of answers: an equal share of the open ones, at most `largest`. Those whose
    /// client has disconnected are dropped.
    fn take(&mut self, workers: usize, largest: usize) -> (Vec<OpenQuery>, bool) {
        let share = (self.waiting.len() + self.taken).div_ceil(workers.max(1)).clamp(1, largest.max(1));
        let (mut batch, mut others): (Vec<OpenQuery>, Vec<OpenQuery>) = (Vec::new(), Vec::new());
        while batch.len() < share {
            let Some(asked) = self.waiting.pop_front() else { break };
            match batch.first() {
                _ if asked.answer.is_closed() => {}
                Some(first) if first.top != asked.top => others.push(asked),
                _ => batch.push(asked),
            }
        }
        others.into_iter().rev().for_each(|asked| self.waiting.push_front(asked));
        self.taken += batch.len();
        self.sent = !self.waiting.is_empty();
        (batch, self.sent)
    }
}

/// The answers to `query`, possibly computed in a batch with others.
///
/// # Errors
/// If the server is full, the time is up, or the reasoner fails.
pub async fn predict(gate: &Arc<Gate>, run: &Arc<Run>, query: Query, top: usize) -> Answered {
    let _place = gate.enter()?;
    let (answer, answered) = oneshot::channel();
    if run.batches.queue().push(OpenQuery { query, top, answer }) {
        send_worker(Arc::clone(gate), Arc::clone(run));
    }
    gate.in_time(async { answered.await.unwrap_or_else(|_| Err(failed())) }).await
}

/// Schedules a worker, which answers the questions that wait when it starts.
fn send_worker(gate: Arc<Gate>, run: Arc<Run>) {
    tokio::spawn(async move {
        let Some(permit) = gate.worker().await else { return };
        // A panic in the worker drops the questions, so their clients get an error.
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let (taken, more) = run.batches.queue().take(gate.workers(), run.model.batch());
            if more {
                send_worker(Arc::clone(&gate), Arc::clone(&run));
            }
            let _taken = Taken { batches: &run.batches, count: taken.len() };
            answer(&gate, &run, taken);
        });
    });
}

/// Counts questions as being answered until it is dropped.
struct Taken<'a> {
    batches: &'a Batches,
    count: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.batches.queue().taken -= self.count;
    }
}

/// The work for a batch: stopped when its time is up, or no client waits any longer.
struct Awaited<'a> {
    askers: &'a [OpenQuery],
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

fn answer(gate: &Gate, run: &Run, taken: Vec<OpenQuery>) {
    let Some(first) = taken.first() else { return };
    let queries: Vec<Query> = taken.iter().map(|asked| asked.query).collect();
    let awaited = Awaited { askers: &taken, deadline: Deadline::new(gate.timeout()) };
    let mut written = Vec::new();
    match run.model.predict_many(&queries, first.top, 1, 0, &awaited) {
        Ok(answers) => {
            for (asked, answer) in taken.into_iter().zip(answers) {
                // The client may have disconnected.
                let _ = asked.answer.send(gate.json_via(&*answer, &mut written));
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

#[cfg(test)]
mod tests {
    use super::*;
    use ruleguider::graph::{EntityId, Link, RelationId};

    /// Questions about the entities `numbers`, for `top` answers each, with their receivers.
    fn asked(
        queue: &mut Queue,
        numbers: std::ops::Range<u32>,
        top: usize,
    ) -> Vec<oneshot::Receiver<Answered>> {
        let one = |number| {
            let (answer, asker) = oneshot::channel();
            let query = Query { subject: EntityId(number), link: Link::forward(RelationId(0)) };
            let first = queue.waiting.is_empty();
            assert_eq!(queue.push(OpenQuery { query, top, answer }), first, "a worker is sent for once");
            asker
        };
        numbers.map(one).collect()
    }

    /// The entities that a worker takes, and whether it schedules another one.
    fn takes(queue: &mut Queue, workers: usize, largest: usize) -> (Vec<u32>, bool) {
        let (batch, more) = queue.take(workers, largest);
        assert_eq!(more, !queue.waiting.is_empty());
        (batch.iter().map(|asked| asked.query.subject.0).collect(), more)
    }

    #[test]
    fn workers_share_what_there_is() {
        let mut queue = Queue::default();
        let _askers = asked(&mut queue, 0..7, 10);
        assert_eq!(takes(&mut queue, 2, 100), ((0..4).collect(), true));
        // Four are being answered, so three are less than a share.
        assert_eq!(takes(&mut queue, 2, 100), ((4..7).collect(), false));
        assert_eq!(takes(&mut queue, 2, 100), (vec![], false));
        let _more = asked(&mut queue, 7..27, 10);
        assert_eq!(takes(&mut queue, 2, 5), ((7..12).collect(), true), "no more than the reasoner likes");
        assert_eq!(queue.taken, 12);
        queue.taken = 0;
        assert_eq!(takes(&mut queue, 1, 100), ((12..27).collect(), false), "one worker takes all");
        let _alone = asked(&mut queue, 27..28, 10);
        assert_eq!(takes(&mut queue, 2, 100), (vec![27], false), "nobody waits for a batch to fill");
    }

    #[test]
    fn those_who_want_other_numbers_of_answers_come_next_and_those_who_left_are_dropped() {
        let mut queue = Queue::default();
        let mut askers = asked(&mut queue, 0..4, 10);
        let _others = asked(&mut queue, 4..6, 3);
        let _last = asked(&mut queue, 6..8, 10);
        askers.remove(1);
        assert_eq!(takes(&mut queue, 1, 100), (vec![0, 2, 3, 6, 7], true));
        assert_eq!(takes(&mut queue, 1, 100), (vec![4, 5], false));
    }
}
