//! How much memory the process held at most, where the system tells.
//!
//! Every room may use this module; it knows none of them.

/// Forgets the peak so far, so that [`peak_mb`] tells of what comes next. Does nothing where that cannot be done.
pub fn restart_peak() {
    // Linux: writing 5 resets the peak to what is held now. Elsewhere, or where /proc cannot be written, the
    // peak stays that of the whole process, which is still true, only less sharp.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most resident memory since the start or [`restart_peak`], in bytes; `None` where the system does not tell.
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kibibytes)
}

/// The same in MB (of a million bytes), to a tenth.
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
