//! CPU time and memory of the process, where the system reports them.

use std::fs::read_to_string;

/// The clock ticks in a second that Linux counts processor time in, on every architecture it runs on.
const TICKS: f64 = 100.0;

/// Seconds of CPU time over all threads.
pub fn cpu_seconds() -> Option<f64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS)
}

/// The peak memory, in megabytes of a million bytes.
pub fn peak_memory_mb() -> Option<f64> {
    Some(ruleguider::memory::peak_bytes()? as f64 / 1e6)
}
