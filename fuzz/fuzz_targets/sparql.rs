#![no_main]

#[path = "../allocation.rs"]
mod allocation;
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::fuzz("sparql", data));
