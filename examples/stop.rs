//! Long work reports itself and can be stopped: a progress of one's own that stops after a second, and then goes on.
//!
//!     cargo run --release --example stop

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::progress::Progress;
use ruleguider::{Error, Learn};
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Prints what is told, and has had enough at some time.
struct Patience {
    until: Option<Instant>,
}

impl Progress for Patience {
    fn begin(&self, stage: &str, _unit: &str, _total: Option<u64>) {
        println!("{stage} …");
    }

    fn advance(&self, _done: u64, _figures: &dyn Display) {}

    fn end(&self, summary: &dyn Display) {
        println!("  {summary}");
    }

    fn interrupted(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

fn main() -> Result<(), Error> {
    // One stage is enough to see it.
    let learn = Learn::demonstration().set("system=embedding").out("runs/example-stopped");
    let second = Instant::now() + Duration::from_secs(1);
    match learn.clone().prepare()?.run(&Patience { until: Some(second) }) {
        Err(error) if error.is_interrupted() => println!("stopped; what is finished stays"),
        other => println!("done within a second, test MRR {:.3}", other?.results()?.report.figures.mrr),
    }
    let model = learn.prepare()?.run(&Patience { until: None })?;
    println!("test MRR {:.3}", model.results()?.report.figures.mrr);
    Ok(())
}
