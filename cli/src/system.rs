//! The relation of the operating system before anything begins, and what is said when memory is at its end.
//!
//! An allocation that fails would end the process by a signal, with nothing said that a person can use. Here it ends
//! in one line and exit code 2 like any other thing that is not there. What a run has written is whole, as after a kill.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The job at hand, for the message: kept without allocating anything.
static JOB: Mutex<([u8; 48], usize)> = Mutex::new(([0; 48], 0));

/// The system's allocator, which never fails silently: it says so and ends the process.
pub struct Allocator;

// SAFETY: every call is handed to the system's allocator as it is; nothing else is done unless that has failed, and
// then the process ends.
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

/// Says that `size` bytes could not be had, and ends the process. Nothing here allocates.
#[cold]
fn out_of_memory(size: usize) -> ! {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::SeqCst) {
        // Another thread is saying it.
        loop {
            std::thread::park();
        }
    }
    let mut line = std::io::Cursor::new([0u8; 400]);
    // A line that does not fit is cut; there is nobody to tell.
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
        None => writeln!(line, "; a smaller graph, smaller networks or fewer --threads need less"),
    }
}

/// Keeps in mind what is being done, should memory be short for it.
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

/// To be called before any other thread is started.
pub fn prepare() {
    // A file that may not grow any more (ulimit -f) should be an error of writing, not the end of the process.
    #[cfg(unix)]
    // SAFETY: sets how a signal is taken; no handler of ours runs.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    // Every thread gets a region of memory of its own. Where the address space is limited there is no room for that,
    // and the allocator would try again at each allocation.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if memory_limit().is_some() {
        // SAFETY: sets a number in the allocator.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Gives memory that was freed back to the system, where the allocator would keep it.
pub fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: concerns free memory only; the allocator takes its own locks.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// The stack of a thread, as the standard library has it.
const STACK: usize = 2 << 20;
/// What a thread needs beside its stack when it begins. One that cannot have that ends the process, so it is seen to first.
const BESIDE: usize = 1 << 20;

/// How many threads can be started at once, up to `wanted`: as many are, and end again.
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
        // Only now it has all that it needs.
        let _ = seen.recv();
    }
    drop(let_go);
    let started = threads.len();
    threads.into_iter().for_each(|thread| drop(thread.join()));
    started
}
