//! The program `ruleguider`; its code is in the library beside it.

use std::ffi::OsString;
use std::process::ExitCode;

// What unwinds the stack comes with the program: loading libgcc_s would take a tenth of a millisecond at every start.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[link(name = "gcc_eh", kind = "static")]
#[allow(unsafe_code, reason = "nothing is declared here")]
unsafe extern "C" {}

#[global_allocator]
static ALLOCATOR: ruleguider_cli::Allocator = ruleguider_cli::Allocator;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(ruleguider_cli::run(&arguments))
}
