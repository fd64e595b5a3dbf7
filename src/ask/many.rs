//! Many queries at once: as many workers as threads, each answering a batch of its own from end to end.
//!
//! A batch is too small to keep all threads busy at every step, so the threads work on different batches rather than on
//! one together. This works best on a device that computes on the calling thread
//! ([`Device::cpu`](crate::tensor::Device::cpu) with one thread). Queries are sorted before they are cut into batches,
//! because those of one relation share network states, and duplicate queries are answered once. The answers of a query
//! do not depend on the rest of its batch, except for the last digits of their scores.

use super::{AnswersAmong, AskError, Model, Prediction};
use crate::graph::Query;
use crate::progress::Progress;
use crate::run::RunError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

impl Model {
    /// The most queries that the reasoner answers at once.
    pub fn batch(&self) -> usize {
        self.reasoner.reasoner().batch().max(1)
    }

    /// The answers to many queries, in their order, by `workers` threads; `before` queries were answered earlier.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn predict_many(
        &self,
        queries: &[Query],
        top: usize,
        workers: usize,
        before: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<Arc<Prediction>>, AskError> {
        self.predict_many_among(queries, (top, &AnswersAmong::default()), workers, before, progress)
    }

    /// The same with answers among some entities only.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn predict_many_among(
        &self,
        queries: &[Query],
        (top, among): (usize, &AnswersAmong),
        workers: usize,
        before: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<Arc<Prediction>>, AskError> {
        self.predict_each((queries, top, true), among, workers, before, progress)
    }

    /// The same without reasons, which costs little more than ranking: answers have scores and probabilities, no path
    /// and no rule, and those that nothing supports are among them.
    ///
    /// # Errors
    /// If something is asked of paths, the reasoner fails or the user interrupts.
    pub fn rank_many(
        &self,
        queries: &[Query],
        (top, among): (usize, &AnswersAmong),
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Arc<Prediction>>, AskError> {
        if !among.paths().is_none() {
            return Err(AskError::Cannot("without reasons there are no paths to ask anything of".to_owned()));
        }
        self.predict_each((queries, top, false), among, workers, 0, progress)
    }

    fn predict_each(
        &self,
        (queries, top, reasons): (&[Query], usize, bool),
        among: &AnswersAmong,
        workers: usize,
        before: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<Arc<Prediction>>, AskError> {
        let mut order: Vec<u32> = (0..queries.len() as u32).collect();
        let key = |&at: &u32| (queries[at as usize].link, queries[at as usize].subject);
        order.sort_unstable_by_key(key);
        let mut distinct: Vec<Query> = order.iter().map(|&at| queries[at as usize]).collect();
        distinct.dedup();
        let answer = |batch: &[Query]| {
            if progress.interrupted() {
                return Err(RunError::Interrupted.into());
            }
            self.predict_batch(batch, (top, reasons), among, progress)
        };
        // The batch size does not depend on the number of threads, since it affects the last digits of scores.
        let batches: Vec<&[Query]> = distinct.chunks(self.batch()).collect();
        let answers = by_workers(&batches, workers, before, answer, progress)?;
        let answers: Vec<Arc<Prediction>> = answers.into_iter().map(Arc::new).collect();
        let mut place = 0;
        let mut all: Vec<Option<Arc<Prediction>>> = vec![None; queries.len()];
        for at in order {
            let query = queries[at as usize];
            place += usize::from(distinct[place] != query);
            all[at as usize] = Some(Arc::clone(&answers[place]));
        }
        Ok(all.into_iter().map(|answer| answer.expect("every query is in the order once")).collect())
    }
}

/// The result of `answer` for each batch, in their order, by `workers` threads; they stop at the first failure.
/// `progress` is told how many queries are answered, including `before` earlier ones.
pub(super) fn by_workers<Q: Sync, T: Send>(
    batches: &[&[Q]],
    workers: usize,
    before: u64,
    answer: impl Fn(&[Q]) -> Result<Vec<T>, AskError> + Sync,
    progress: &dyn Progress,
) -> Result<Vec<T>, AskError> {
    let (next, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let done = Mutex::new(Vec::with_capacity(batches.len()));
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(batch) = batches.get(place) else { break };
            let answers = answer(batch);
            let failed = answers.is_err();
            if !failed {
                let done = answered.fetch_add(batch.len(), Ordering::Relaxed) + batch.len();
                progress.advance(before + done as u64, &"");
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, answers));
            if failed {
                next.store(batches.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.min(batches.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(place, _)| *place);
    let mut all = Vec::new();
    for (_, answers) in done {
        all.extend(answers?);
    }
    Ok(all)
}
