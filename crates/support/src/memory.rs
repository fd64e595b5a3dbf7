//! The peak memory of the process, where the system reports it.
//!
//! Every module may use this one; it knows none of them.

/// Resets the peak, so that [`peak_mb`] reports only what follows. Does nothing on systems that cannot reset it.
pub fn restart_peak() {
    // Linux: writing 5 resets the peak to the current size. Elsewhere, or where /proc is read-only, the peak remains
    // that of the whole process: still correct, but less precise.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The peak resident memory in bytes since the start or the last [`restart_peak`]; `None` where the system does not
/// report it.
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kibibytes)
}

/// The same in MB (10⁶ bytes), rounded to a tenth.
pub fn peak_mb() -> Option<f64> {
    Some((peak_bytes()? as f64 / 1e6 * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holding_much_shows() {
        let held = vec![1u8; 50_000_000];
        match peak_mb() {
            Some(peak) => assert!(peak > 50.0 && held[7] == 1, "{peak}"),
            None => crate::skip::skip(crate::skip::Need::System, "the peak of memory is not told"),
        }
    }
}
