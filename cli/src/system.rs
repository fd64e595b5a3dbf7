//! Setup of the process before anything begins, requests to stop, and the message when memory runs out.
//!
//! A failed allocation would end the process by a signal, without a useful message. Here it ends with one line and exit
//! code 2, like any other missing resource. The files of a run stay complete, as after a kill.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The current job, for the message: stored without allocating.
static JOB: Mutex<([u8; 48], usize)> = Mutex::new(([0; 48], 0));

/// The system's allocator, which never fails silently: it says so and ends the process.
pub struct Allocator;

// SAFETY: every call is passed unchanged to the system's allocator; nothing else is done unless that fails, and then
// the process ends.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        expect_memory(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        expect_memory(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        expect_memory(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline(always)]
fn expect_memory(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        out_of_memory(size);
    }
    memory
}

/// Reports that `size` bytes could not be allocated, and ends the process. Nothing here allocates.
#[cold]
fn out_of_memory(size: usize) -> ! {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::SeqCst) {
        // Another thread is already reporting it.
        loop {
            std::thread::park();
        }
    }
    let mut line = std::io::Cursor::new([0u8; 400]);
    // A line that does not fit is truncated; that error cannot be reported.
    let _ = say(&mut line, size);
    let length = line.position() as usize;
    let _ = std::io::stderr().write_all(&line.get_ref()[..length]);
    #[cfg(unix)]
    // SAFETY: ends the process without running anything that might allocate.
    unsafe {
        libc::_exit(2)
    }
    #[cfg(not(unix))]
    std::process::abort()
}

fn say(line: &mut impl Write, size: usize) -> std::io::Result<()> {
    match size {
        0..1_000_000 => write!(line, "ruleguider: out of memory: {size} more bytes were needed")?,
        _ => write!(line, "ruleguider: out of memory: {:.1} MB more were needed", size as f64 / 1e6)?,
    }
    if let Ok(job) = JOB.try_lock() {
        let text = std::str::from_utf8(&job.0[..job.1]).unwrap_or_default();
        if !text.is_empty() {
            write!(line, " for {text}")?;
        }
    }
    match memory_limit() {
        Some(limit) => writeln!(line, "; the limit (ulimit -v) is {:.0} MB", limit as f64 / 1e6),
        None => writeln!(line, "; use a smaller graph, smaller networks or fewer --threads"),
    }
}

/// Remembers the current job, for the message if memory runs out.
pub fn note_job(name: &str) {
    if let Ok(mut job) = JOB.lock() {
        let cut = (0..=job.0.len().min(name.len())).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
        job.0[..cut].copy_from_slice(&name.as_bytes()[..cut]);
        job.1 = cut;
    }
}

/// The most bytes of address space that the process may have, if there is a limit.
#[cfg(not(unix))]
fn memory_limit() -> Option<u64> {
    None
}

/// The most bytes of address space that the process may have, if there is a limit.
#[cfg(unix)]
fn memory_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the system fills the structure that it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// A stream that results or messages are printed on.
#[derive(Clone, Copy)]
pub enum Stream {
    /// Results.
    Out,
    /// Messages and progress.
    Err,
}

/// The columns of the terminal that a stream is; `None` if it is none.
#[cfg(unix)]
pub fn columns(stream: Stream) -> Option<usize> {
    let file = match stream {
        Stream::Out => libc::STDOUT_FILENO,
        Stream::Err => libc::STDERR_FILENO,
    };
    // SAFETY: a structure of numbers, for which zeros are a value.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: the system fills the structure that it is given.
    let known = unsafe { libc::ioctl(file, libc::TIOCGWINSZ, &mut size) } == 0;
    (known && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// The columns of the terminal that a stream is; `None` if it is none.
#[cfg(not(unix))]
pub fn columns(stream: Stream) -> Option<usize> {
    use std::io::IsTerminal;
    let terminal = match stream {
        Stream::Out => std::io::stdout().is_terminal(),
        Stream::Err => std::io::stderr().is_terminal(),
    };
    terminal.then_some(80)
}

/// Must be called before any other thread is started.
pub fn prepare() {
    // Reaching the file size limit (ulimit -f) should be a write error, not the end of the process.
    #[cfg(unix)]
    // SAFETY: sets the disposition of a signal; no handler of ours runs.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    // By default every thread gets an arena of its own. With a limited address space there is no room for that, and the
    // allocator would try again at each allocation.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if memory_limit().is_some() {
        // SAFETY: sets a number in the allocator.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

#[cfg(feature = "serve")]
/// Returns freed memory that the allocator would otherwise keep to the system.
pub fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: concerns free memory only; the allocator takes its own locks.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Set by the first request to stop: Ctrl-C, `kill`, or a terminal that is closed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether that request is answered on stderr, and whether a progress bar may be there.
static ANSWERS: AtomicBool = AtomicBool::new(false);
static HAS_BAR: AtomicBool = AtomicBool::new(false);
macro_rules! answer {
    () => {
        "stopping after this step; Ctrl-C again stops at once\n"
    };
}
const ANSWER: &str = answer!();
#[cfg(unix)]
/// Replaces the bar. When it is drawn again, it first clears as many lines as it had: the empty one here, not the answer.
const ANSWER_FOR_BAR: &str = concat!("\r\x1b[2K", answer!(), "\n");

/// Whether the process was asked to stop.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// From now on the first request to stop is only noted, and answered on stderr if `answers`; the second one ends the
/// process. Without this, and where it fails, the first one does.
pub fn heed_interrupts(answers: bool) {
    ANSWERS.store(answers, Ordering::SeqCst);
    HAS_BAR.store(std::io::stderr().is_terminal(), Ordering::SeqCst);
    #[cfg(unix)]
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all zeros is a valid value: no flags, no signals blocked.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = interrupted as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // Reading and writing go on after the signal.
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler does only what a signal handler may do.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
    #[cfg(not(unix))]
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        if ANSWERS.load(Ordering::SeqCst) {
            // A closed stderr must not end the work.
            let _ = std::io::stderr().write_all(ANSWER.as_bytes());
        }
    });
}

/// May run between any two instructions of a thread: it takes no lock and allocates nothing.
#[cfg(unix)]
extern "C" fn interrupted(_: libc::c_int) {
    if INTERRUPTED.swap(true, Ordering::SeqCst) {
        // SAFETY: ends the process without running anything else.
        unsafe { libc::_exit(130) }
    }
    if ANSWERS.load(Ordering::SeqCst) {
        let text = if HAS_BAR.load(Ordering::SeqCst) { ANSWER_FOR_BAR } else { ANSWER };
        // SAFETY: writes bytes that live as long as the process. A closed stderr must not end the work.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
}

/// The stack with which the program runs if the main thread has less than [`STACK`].
const ENOUGH_STACK: usize = 8 << 20;

/// Whether the main thread's stack is limited to less than the program needs.
#[cfg(not(unix))]
fn has_little_stack() -> bool {
    false
}

/// Whether the main thread's stack is limited to less than the program needs.
#[cfg(unix)]
fn has_little_stack() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a plain struct that the call fills.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    known && limit.rlim_cur != libc::RLIM_INFINITY && limit.rlim_cur < STACK as libc::rlim_t
}

/// The result of `main`, which runs on a thread of its own if the main thread's stack is too small; `None` if that cannot
/// be started.
pub fn with_enough_stack<T: Send>(main: impl FnOnce() -> T + Send) -> Option<T> {
    if !has_little_stack() {
        return Some(main());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(ENOUGH_STACK).spawn_scoped(scope, main).ok()?;
        thread.join().ok()
    })
}

/// The stack of a thread, as the standard library has it.
const STACK: usize = 2 << 20;
/// What a thread needs beside its stack when it starts. A thread that cannot get it ends the process, so that is
/// checked first.
const BESIDE: usize = 1 << 20;

/// How many threads can be started at once, up to `wanted`. Tries it out: the threads start and end again.
pub fn startable_threads(wanted: usize) -> usize {
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Arc::new(Mutex::new(held));
    let (begun, seen) = std::sync::mpsc::channel::<()>();
    let mut threads = Vec::with_capacity(wanted);
    for _ in 0..wanted {
        if Vec::<u8>::new().try_reserve_exact(STACK + BESIDE).is_err() {
            break;
        }
        let held = held.clone();
        let begun = begun.clone();
        let wait = move || {
            let _ = begun.send(());
            drop(held.lock().map(|held| held.recv()));
        };
        match std::thread::Builder::new().spawn(wait) {
            Ok(thread) => threads.push(thread),
            Err(_) => break,
        }
        // Only now does the thread have everything it needs.
        let _ = seen.recv();
    }
    drop(let_go);
    let started = threads.len();
    threads.into_iter().for_each(|thread| drop(thread.join()));
    started
}
