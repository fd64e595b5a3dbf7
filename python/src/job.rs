//! Work on its own thread, while the calling thread waits without the interpreter's lock.
//!
//! The waiting thread checks for signals every [`LOOK`] and shows progress. Ctrl-C asks the work to stop, which keeps
//! finished results. If its current step takes longer than [`GRACE`], the step ends in the background, and the next job
//! that writes (or the interpreter's exit) waits for it. A panic becomes an exception. After a fork the threads are
//! gone, and an error says so.

use crate::error::{Error, raised};
use pyo3::prelude::*;
use ruleguider::ask::AskError;
use ruleguider::progress::{Metric, Progress};
use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often signals are checked.
const LOOK: Duration = Duration::from_millis(20);
/// How often progress is shown.
const SHOW: Duration = Duration::from_millis(100);
/// How long an interrupted job may take to end before its caller goes on without it.
const GRACE: Duration = Duration::from_millis(120);

/// The process in which the first job ran: threads do not survive a fork.
static HOME: OnceLock<u32> = OnceLock::new();
/// Jobs that were interrupted and had not ended when their caller went on.
static ENDING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

type Outcome<T> = Result<Result<T, AskError>, Box<dyn Any + Send>>;

/// Runs `work` without the interpreter's lock; `bars` is a Python object that shows progress, if wanted.
///
/// # Errors
/// Those of the work, `KeyboardInterrupt` if the user stops it, or what a signal handler raises.
pub fn work<T: Send + 'static>(
    py: Python<'_>,
    bars: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Progress) -> Result<T, AskError> + Send + 'static,
) -> PyResult<T> {
    expect_home()?;
    let reported = Arc::new(Reported { shown: bars.is_some(), ..Reported::default() });
    let (sender, mut receiver) = sync_channel::<Outcome<T>>(1);
    let progress = Arc::clone(&reported);
    let job = move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&*progress)));
        // The receiver is gone if the caller was interrupted.
        let _ = sender.send(outcome);
    };
    let thread = std::thread::Builder::new().name("ruleguider".to_owned()).stack_size(8 << 20).spawn(job)?;
    let mut shown = Instant::now();
    let stopped = loop {
        let waited = wait(py, receiver, LOOK);
        receiver = waited.0;
        match waited.1 {
            Ok(outcome) => {
                reported.show(py, bars)?;
                return ended(outcome);
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Error::new_err("the work has no outcome")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let looked = py.check_signals().and_then(|()| match shown.elapsed() >= SHOW {
            true => {
                shown = Instant::now();
                reported.show(py, bars)
            }
            false => Ok(()),
        });
        if let Err(stopped) = looked {
            break stopped;
        }
    };
    reported.stop.store(true, Ordering::SeqCst);
    if matches!(wait(py, receiver, GRACE).1, Err(RecvTimeoutError::Timeout)) {
        lock(&ENDING).push(thread);
    }
    Err(stopped)
}

/// Waits for an outcome without the interpreter's lock.
fn wait<T: Send>(
    py: Python<'_>,
    receiver: Receiver<T>,
    time: Duration,
) -> (Receiver<T>, Result<T, RecvTimeoutError>) {
    py.detach(move || {
        let received = receiver.recv_timeout(time);
        (receiver, received)
    })
}

fn ended<T>(outcome: Outcome<T>) -> PyResult<T> {
    match outcome {
        Ok(result) => result.map_err(raised),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(Error::new_err(format!("the library panicked, which is a bug; please report it: {text}")))
        }
    }
}

/// # Errors
/// If this process was forked from one in which jobs have run.
fn expect_home() -> PyResult<()> {
    let here = std::process::id();
    if *HOME.get_or_init(|| here) == here {
        return Ok(());
    }
    Err(Error::new_err(
        "this process was forked from one that had used ruleguider, and does not have its threads; start processes with \
         multiprocessing.get_context(\"spawn\"), or fork before the first use",
    ))
}

/// Waits for jobs that were interrupted before and may still be writing; a signal ends the wait.
///
/// # Errors
/// What the signal's handler raises.
pub fn wait_for_ending(py: Python<'_>) -> PyResult<()> {
    loop {
        lock(&ENDING).retain(|thread| !thread.is_finished());
        if lock(&ENDING).is_empty() {
            return Ok(());
        }
        py.detach(|| std::thread::sleep(LOOK));
        py.check_signals()?;
    }
}

/// Waits until interrupted jobs have kept what they have: called when the interpreter ends.
#[pyfunction]
pub fn finish(py: Python<'_>) -> PyResult<()> {
    if HOME.get().is_none_or(|&home| home != std::process::id()) {
        return Ok(());
    }
    wait_for_ending(py)
}

/// Panics where work panics, so that tests see what becomes of it.
#[pyfunction]
pub fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
    work(py, None, |_| panic!("asked for by a test"))
}

/// The reports of the work that are not shown yet.
#[derive(Default)]
struct Reported {
    shown: bool,
    stop: AtomicBool,
    /// How many stages have begun, and of which of them the caller has enough.
    begun: AtomicU64,
    enough: AtomicU64,
    /// What is to be told, with the number of its stage.
    news: Mutex<Vec<(u64, News)>>,
}

enum News {
    Begin(String, String, Option<u64>),
    Advance(u64, String),
    Record(Metric),
    End(String),
}

impl Reported {
    fn tell(&self, news: News) {
        if self.shown {
            lock(&self.news).push((self.begun.load(Ordering::SeqCst), news));
        }
    }

    /// Passes new reports on to Python.
    fn show(&self, py: Python<'_>, bars: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(bars) = bars else { return Ok(()) };
        let news = std::mem::take(&mut *lock(&self.news));
        for (stage_number, one) in news {
            let answer = match one {
                News::Begin(stage, unit, total) => bars.call_method1("begin", (stage, unit, total))?,
                News::Advance(done, figures) => bars.call_method1("advance", (done, figures))?,
                News::Record(Metric { stage, step, seconds, figures }) => {
                    let figures = serde_json::to_string(&figures).expect("figures are plain data");
                    bars.call_method1("record", (stage, step, seconds, figures))?
                }
                News::End(summary) => bars.call_method1("end", (summary,))?,
            };
            if answer.is_truthy()? {
                self.enough.store(stage_number, Ordering::SeqCst);
            }
        }
        py.check_signals()
    }
}

impl Progress for Reported {
    fn begin(&self, stage: &str, unit: &str, total: Option<u64>) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.tell(News::Begin(stage.to_owned(), unit.to_owned(), total));
    }

    fn advance(&self, done: u64, figures: &dyn Display) {
        if !self.shown {
            return;
        }
        let mut news = lock(&self.news);
        // Only the last one is shown.
        if matches!(news.last(), Some((_, News::Advance(..)))) {
            news.pop();
        }
        news.push((self.begun.load(Ordering::SeqCst), News::Advance(done, figures.to_string())));
    }

    fn end(&self, summary: &dyn Display) {
        self.tell(News::End(summary.to_string()));
    }

    fn record(&self, metric: &Metric) {
        self.tell(News::Record(metric.clone()));
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn time_is_up(&self) -> bool {
        let begun = self.begun.load(Ordering::SeqCst);
        begun > 0 && self.enough.load(Ordering::SeqCst) == begun
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
