//! Counters in Prometheus' text format.

use super::work::Gate;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The upper bounds of the histogram of times, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

/// Counters since the server started.
pub struct Metrics {
    began: Instant,
    /// Connections that are open.
    pub connections: AtomicU64,
    routes: Mutex<BTreeMap<String, Route>>,
}

#[derive(Default)]
struct Route {
    by_status: BTreeMap<u16, u64>,
    /// How many took at most each bound; the last bucket counts all.
    buckets: [u64; BOUNDS.len() + 1],
    seconds: f64,
}

impl Metrics {
    /// Counters at zero.
    pub fn new() -> Self {
        Self { began: Instant::now(), connections: AtomicU64::new(0), routes: Mutex::new(BTreeMap::new()) }
    }

    /// Counts an answered request.
    pub fn count(&self, route: &str, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        // Routes are few and known, so the map does not grow with what clients send.
        if !routes.contains_key(route) {
            routes.insert(route.to_owned(), Route::default());
        }
        let Some(counted) = routes.get_mut(route) else { return };
        *counted.by_status.entry(status).or_default() += 1;
        counted.seconds += seconds;
        for (bucket, bound) in counted.buckets.iter_mut().zip(BOUNDS.into_iter().chain([f64::INFINITY])) {
            *bucket += u64::from(seconds <= bound);
        }
    }

    /// All metrics as text, with the load of `gate`; `own` are gauges of the server itself, each with its
    /// help text.
    pub fn text(&self, gate: &Gate, own: &[(&str, &str, f64)]) -> String {
        let mut out = String::new();
        let mut gauge = |name: &str, kind: &str, help: &str, value: f64| {
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "# HELP ruleguider_{name} {help}\n# TYPE ruleguider_{name} {kind}\nruleguider_{name} {value}\n"
            );
        };
        let (waiting, running) = gate.load();
        let connections = self.connections.load(Ordering::Relaxed);
        let refused = gate.refused.load(Ordering::Relaxed);
        let timed_out = gate.timed_out.load(Ordering::Relaxed);
        gauge(
            "uptime_seconds",
            "gauge",
            "Seconds since the server started.",
            self.began.elapsed().as_secs_f64(),
        );
        for (name, help, value) in own {
            gauge(name, "gauge", help, *value);
        }
        gauge("connections", "gauge", "Open connections.", connections as f64);
        gauge("work_waiting", "gauge", "Requests in the server, waiting or running.", waiting as f64);
        gauge("work_running", "gauge", "Requests running.", running as f64);
        let (bodies, responses) = gate.in_flight();
        gauge("request_bytes", "gauge", "Bytes of request bodies in memory.", bodies as f64);
        gauge("response_bytes", "gauge", "Bytes of responses that are not sent yet.", responses as f64);
        gauge("work_refused_total", "counter", "Requests rejected with 503.", refused as f64);
        gauge("work_timed_out_total", "counter", "Requests stopped by the time limit.", timed_out as f64);
        if let Some(bytes) = resident() {
            gauge("resident_memory_bytes", "gauge", "Resident memory of the process.", bytes as f64);
        }
        self.write_routes(&mut out);
        out
    }

    fn write_routes(&self, out: &mut String) {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let name = "ruleguider_requests_total";
        let _ = write!(out, "# HELP {name} Requests answered.\n# TYPE {name} counter\n");
        for (route, counted) in &*routes {
            for (status, count) in &counted.by_status {
                let _ = writeln!(out, "{name}{{route=\"{route}\",status=\"{status}\"}} {count}");
            }
        }
        let name = "ruleguider_request_seconds";
        let _ = write!(out, "# HELP {name} Time to the head of the response.\n# TYPE {name} histogram\n");
        for (route, counted) in &*routes {
            for (bucket, bound) in counted.buckets.iter().zip(BOUNDS) {
                let _ = writeln!(out, "{name}_bucket{{route=\"{route}\",le=\"{bound}\"}} {bucket}");
            }
            let all = counted.buckets[BOUNDS.len()];
            let _ = writeln!(out, "{name}_bucket{{route=\"{route}\",le=\"+Inf\"}} {all}");
            let _ = writeln!(out, "{name}_sum{{route=\"{route}\"}} {}", counted.seconds);
            let _ = writeln!(out, "{name}_count{{route=\"{route}\"}} {all}");
        }
    }
}

/// The resident memory of the process, if the system reports it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}
