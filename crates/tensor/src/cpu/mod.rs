//! The CPU side of a device: its threads, its pool of vectors, and loops over fixed chunks of rows.
//!
//! Every parallel loop of the crate goes through [`Cpu`]. Chunks are cut by size alone, never by the number of
//! threads, and sums are added chunk by chunk in order, so any number of threads gives the same bits. The numerical
//! parts are in [`simd`] (element-wise, dispatched to the machine's vector units) and [`product`] (matrix products).

pub(crate) mod disjoint;
pub(crate) mod product;
pub(crate) mod simd;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use rayon::prelude::*;

use super::error::{Result, TensorError};

/// The number of elements that makes a chunk worth a task.
const CHUNK: usize = 16 * 1024;

/// Threads and memory of the CPU as a device.
pub(crate) struct Cpu {
    threads: usize,
    pool: Option<rayon::ThreadPool>,
    floats: Shelf<f32>,
    integers: Shelf<u32>,
}

impl Cpu {
    pub(crate) fn new(threads: usize) -> Result<Cpu> {
        let threads = threads.max(1);
        let pool = match threads {
            1 => None,
            _ => Some(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .thread_name(|index| format!("tensor-{index}"))
                    .build()
                    .map_err(|error| TensorError::Threads { threads, why: error.to_string() })?,
            ),
        };
        Ok(Cpu { threads, pool, floats: Shelf::default(), integers: Shelf::default() })
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn floats(&self) -> &Shelf<f32> {
        &self.floats
    }

    pub(crate) fn integers(&self) -> &Shelf<u32> {
        &self.integers
    }

    /// Runs `work` on one of the threads.
    pub(crate) fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Runs `task` for every index below `count`, on all threads.
    pub(crate) fn each(&self, count: usize, task: impl Fn(usize) + Sync + Send) {
        match &self.pool {
            Some(pool) if count > 1 => pool.install(|| (0..count).into_par_iter().for_each(task)),
            _ => (0..count).for_each(task),
        }
    }

    /// How many rows of `width` elements make a chunk.
    pub(crate) fn rows_per_chunk(width: usize) -> usize {
        (CHUNK / width.max(1)).max(1)
    }

    /// Calls `task` with consecutive chunks of rows: the index of the first row, and the rows themselves.
    pub(crate) fn rows(
        &self,
        data: &mut [f32],
        width: usize,
        task: impl Fn(usize, &mut [f32]) + Sync + Send,
    ) {
        if width == 0 {
            return;
        }
        let rows = Self::rows_per_chunk(width);
        self.zip([(data, width)], rows, |first, [chunk]| task(first, chunk));
    }

    /// Calls `task` with chunks of `rows` rows of several arrays at once; each array has its own width.
    pub(crate) fn zip<const N: usize>(
        &self,
        arrays: [(&mut [f32], usize); N],
        rows: usize,
        task: impl Fn(usize, [&mut [f32]; N]) + Sync + Send,
    ) {
        let widths = arrays.each_ref().map(|(_, width)| *width);
        let count =
            arrays.iter().map(|(data, width)| data.len().checked_div(*width).unwrap_or(0)).max().unwrap_or(0);
        if count == 0 {
            return;
        }
        let mut rests = arrays.map(|(data, _)| data);
        let chunks: Vec<(usize, [&mut [f32]; N])> = (0..count)
            .step_by(rows.max(1))
            .map(|first| {
                let taken = rows.min(count - first);
                let mut index = 0;
                let parts = rests.each_mut().map(|rest| {
                    let (head, tail) = std::mem::take(rest).split_at_mut(taken * widths[index]);
                    *rest = tail;
                    index += 1;
                    head
                });
                (first, parts)
            })
            .collect();
        self.run(chunks, |(first, parts)| task(first, parts));
    }

    /// Calls `task` with the values of consecutive segments: chunks of whole segments, as the index of the first
    /// segment, the index after the last, and the values from the start of the first.
    pub(crate) fn segments(
        &self,
        data: &mut [f32],
        starts: &[u32],
        task: impl Fn(std::ops::Range<usize>, &mut [f32]) + Sync + Send,
    ) {
        self.segments_of(data, starts, 1, task);
    }

    /// As [`Cpu::segments`], for work that costs `weight` per element: chunks are smaller.
    pub(crate) fn segments_of(
        &self,
        data: &mut [f32],
        starts: &[u32],
        weight: usize,
        task: impl Fn(std::ops::Range<usize>, &mut [f32]) + Sync + Send,
    ) {
        let count = starts.len() - 1;
        let most = (8 * CHUNK / weight.max(1)).clamp(1, CHUNK);
        let mut chunks = Vec::new();
        let mut rest = data;
        let mut first = 0;
        while first < count {
            let mut end = first + 1;
            while end < count && ((starts[end + 1] - starts[first]) as usize) < most && end - first < CHUNK {
                end += 1;
            }
            let (head, tail) = rest.split_at_mut((starts[end] - starts[first]) as usize);
            rest = tail;
            chunks.push((first..end, head));
            first = end;
        }
        self.run(chunks, |(range, values)| task(range, values));
    }

    /// Hands the chunks to the threads.
    pub(crate) fn run<T: Send>(&self, chunks: Vec<T>, task: impl Fn(T) + Sync + Send) {
        match &self.pool {
            Some(pool) if chunks.len() > 1 => pool.install(|| chunks.into_par_iter().for_each(task)),
            _ => chunks.into_iter().for_each(task),
        }
    }

    /// Sums the results of `task` over fixed chunks of `count` items, in the order of the chunks.
    pub(crate) fn sum(
        &self,
        count: usize,
        chunk: usize,
        task: impl Fn(std::ops::Range<usize>) -> f64 + Sync + Send,
    ) -> f64 {
        let mut parts = vec![0.0f64; count.div_ceil(chunk.max(1))];
        let numbered: Vec<_> = parts.iter_mut().enumerate().collect();
        self.run(numbered, |(index, part)| *part = task(index * chunk..((index + 1) * chunk).min(count)));
        parts.iter().sum()
    }
}

/// A pool of used vectors, so that a training step does not allocate memory (and does not wait for the system to zero
/// pages).
pub(crate) struct Shelf<T> {
    state: Mutex<Stock<T>>,
}

/// The free vectors, least recently used first, and their bytes.
struct Stock<T> {
    free: VecDeque<Vec<T>>,
    free_bytes: usize,
    used_bytes: usize,
    most_used: usize,
    peak: usize,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        let (free, free_bytes, used_bytes, most_used, peak) = (VecDeque::new(), 0, 0, 0, 0);
        Shelf { state: Mutex::new(Stock { free, free_bytes, used_bytes, most_used, peak }) }
    }
}

impl<T: Copy + Default> Shelf<T> {
    /// A vector of `len` elements with unspecified values.
    pub(crate) fn take(&self, len: usize) -> Vec<T> {
        let mut stock = self.stock();
        let fits = |vector: &Vec<T>| vector.capacity() >= len && vector.capacity() <= len + len / 4 + 64;
        let places = 0..stock.free.len();
        let best = places.filter(|&at| fits(&stock.free[at])).min_by_key(|&at| stock.free[at].capacity());
        let kept = best.and_then(|at| stock.free.remove(at));
        let bytes = kept.as_ref().map_or(len, Vec::capacity) * size_of::<T>();
        stock.free_bytes -= if kept.is_some() { bytes } else { 0 };
        stock.used_bytes += bytes;
        stock.most_used = stock.most_used.max(stock.used_bytes);
        stock.peak = stock.peak.max(stock.used_bytes + stock.free_bytes);
        drop(stock);
        match kept {
            Some(mut vector) => {
                vector.resize(len, T::default());
                vector
            }
            None => vec![T::default(); len],
        }
    }

    /// Returns a vector to the pool. Ragged steps need different sizes each time, so the least recently used vectors
    /// are freed when the pool holds over a quarter more than was ever in use at once.
    pub(crate) fn give(&self, vector: Vec<T>) {
        const ALWAYS: usize = 16 << 20;
        let bytes = vector.capacity() * size_of::<T>();
        let mut stock = self.stock();
        stock.used_bytes -= bytes.min(stock.used_bytes);
        if bytes > 0 {
            stock.free_bytes += bytes;
            stock.free.push_back(vector);
        }
        while stock.used_bytes + stock.free_bytes > stock.most_used + stock.most_used / 4 + ALWAYS {
            let Some(oldest) = stock.free.pop_front() else { break };
            stock.free_bytes -= oldest.capacity() * size_of::<T>();
        }
    }

    /// Most bytes ever held, in use or not.
    pub(crate) fn peak(&self) -> usize {
        self.stock().peak
    }

    fn stock(&self) -> MutexGuard<'_, Stock<T>> {
        self.state.lock().expect("no code panics while it holds the shelf")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_back_and_the_shelf_stays_small() {
        let shelf = Shelf::<f32>::default();
        let first = shelf.take(1000);
        let address = first.as_ptr();
        shelf.give(first);
        let again = shelf.take(900);
        assert_eq!((again.as_ptr(), again.len()), (address, 900));
        shelf.give(again);
        // Sizes that never fit one another, one at a time: the pool stays near the size of one vector.
        let million = 1 << 20;
        for step in 0..40 {
            shelf.give(shelf.take(10 * million + step * 3 * million));
        }
        let largest = (10 + 39 * 3) * million * 4;
        assert!(shelf.peak() <= 2 * largest + (64 << 20), "{} MiB", shelf.peak() >> 20);
    }
}
