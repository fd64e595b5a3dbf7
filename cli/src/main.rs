//! The program `ruleguider`; its code is in the library beside it.

use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: ruleguider_cli::Allocator = ruleguider_cli::Allocator;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(ruleguider_cli::run_with_enough_stack(&arguments))
}
