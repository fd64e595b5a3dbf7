//! A test that cannot run here says so where somebody looks: `.ci/run` prints the list, and fails if this machine has
//! what a test was skipped for.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a skipped test says so, and must be able to")]
#![allow(unreachable_pub, reason = "it is a module of several test programs")]

use std::fmt::Display;
use std::io::Write;

/// What a test needs and did not find.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "every test program uses some of them")]
pub enum Need {
    /// The benchmark graphs (`RULEGUIDER_DATA`).
    Data,
    /// A CUDA device.
    Cuda,
    /// A machine without a CUDA device.
    NoCuda,
    /// Chromium.
    Chromium,
    /// axe-core, the accessibility checker.
    Axe,
    /// Something of the operating system.
    System,
}

/// Notes that a test was skipped, for want of `need`, in the file that `RULEGUIDER_SKIPPED` names.
pub fn skip(need: Need, why: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("{need:?}\t{test}\t{why}\n").to_lowercase();
    eprint!("skipped: {line}");
    if let Some(path) = std::env::var_os("RULEGUIDER_SKIPPED") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
