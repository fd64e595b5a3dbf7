//! Many queries at once: as many workers as threads, each answering a batch of its own from end to end.
//!
//! A batch is too small to keep all threads busy at every step of it, so the threads share the batches and not the
//! steps; best on a device that computes on the thread that asks ([`Device::cpu`](crate::tensor::Device::cpu) with
//! one). Queries are sorted before they are cut into batches, because those of one relation share states of the
//! networks, and a query that comes twice is answered once. The answers of a query do not depend on its neighbours, but
//! for the last digits of their scores.

use super::ask::Prediction;
use super::reason::Explains;
use super::{Opened, PipelineError};
use crate::graph::Query;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

impl Opened {
    /// The answers to many queries, in their order, by `workers` threads.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn predict_all(
        &self,
        reasoner: &dyn Explains,
        queries: &[Query],
        top: usize,
        workers: usize,
    ) -> Result<Vec<Arc<Prediction>>, PipelineError> {
        let mut order: Vec<u32> = (0..queries.len() as u32).collect();
        let key = |&at: &u32| (queries[at as usize].link, queries[at as usize].subject);
        order.sort_unstable_by_key(key);
        let mut distinct: Vec<Query> = order.iter().map(|&at| queries[at as usize]).collect();
        distinct.dedup();
        let answers = self.by_workers(reasoner, &distinct, top, workers.max(1))?;
        let mut place = 0;
        let mut all: Vec<Option<Arc<Prediction>>> = vec![None; queries.len()];
        for at in order {
            let query = queries[at as usize];
            place += usize::from(distinct[place] != query);
            all[at as usize] = Some(Arc::clone(&answers[place]));
        }
        Ok(all.into_iter().map(|answer| answer.expect("every query is in the order once")).collect())
    }

    fn by_workers(
        &self,
        reasoner: &dyn Explains,
        queries: &[Query],
        top: usize,
        workers: usize,
    ) -> Result<Vec<Arc<Prediction>>, PipelineError> {
        // As large as the reasoner likes them, whatever the threads: the size of a batch shows in the last digits.
        let size = reasoner.reasoner().batch().max(1);
        let batches: Vec<(usize, &[Query])> = queries.chunks(size).enumerate().collect();
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(batches.len()));
        let work = || {
            while let Some(&(place, batch)) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                let answers = self.predict_batch(reasoner, batch, top);
                let failed = answers.is_err();
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
        let mut all = Vec::with_capacity(queries.len());
        for (_, answers) in done {
            all.extend(answers?.into_iter().map(Arc::new));
        }
        Ok(all)
    }
}
