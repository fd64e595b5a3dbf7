//! The only place that writes to the terminal: results on stdout, progress and errors on stderr.

use crate::arguments::Common;
use crate::system;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ruleguider::progress::Progress;
use ruleguider::shown::{Shown, shortened_to};
use serde::Serialize;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How often progress is printed without a terminal.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(5);

/// The longest error message, in bytes: names and arguments may be arbitrarily long.
const LONGEST_COMPLAINT: usize = 2000;

/// Prints a line of results, or several. Names in it are [`Shown`].
pub fn print(text: &dyn Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{text}").map_err(stdout_fails)
}

/// Prints a result as one JSON document.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let written = serde_json::to_writer_pretty(&mut out, value).map_err(std::io::Error::from);
    written.and_then(|()| writeln!(out)).map_err(stdout_fails)
}

/// The error if stdout cannot be written to: the disk is full, or the reader is gone.
pub fn stdout_fails(error: std::io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("stdout: cannot be written")
}

/// Flushes stdout.
pub fn flush() -> anyhow::Result<()> {
    std::io::stdout().flush().map_err(stdout_fails)
}

/// Prints an error on stderr in one line, as `ruleguider: the chain of causes`.
pub fn complain(error: &anyhow::Error) {
    let chain = format!("{error:#}").replace('\n', " ");
    write_line(&format_args!("ruleguider: {}", shortened_to(&chain, LONGEST_COMPLAINT)));
}

/// Progress on stderr: a bar with rate and remaining time on a terminal, plain lines elsewhere.
pub struct Console {
    quiet: bool,
    terminal: bool,
    stage: Mutex<Option<Stage>>,
}

struct Stage {
    name: String,
    unit: String,
    total: Option<u64>,
    began: Instant,
    last_line: Instant,
    /// Count and time of the first report: a job that resumes from a checkpoint does not begin at 0.
    first: Option<(u64, Instant)>,
    bar: Option<ProgressBar>,
}

impl Console {
    /// Progress as `common` asks for it.
    pub fn new(common: &Common) -> Self {
        Self { quiet: common.quiet, terminal: std::io::stderr().is_terminal(), stage: Mutex::new(None) }
    }

    /// The same; from now on Ctrl-C asks the job to stop instead of killing it. A second Ctrl-C kills.
    pub fn with_interrupt(common: &Common) -> Self {
        static HANDLER: OnceLock<()> = OnceLock::new();
        HANDLER.get_or_init(|| system::heed_interrupts(!common.quiet));
        Self::new(common)
    }

    /// A line for the user, on stderr.
    pub fn note(&self, text: &dyn Display) {
        if self.quiet {
            return;
        }
        match self.lock().as_ref().and_then(|stage| stage.bar.clone()) {
            Some(bar) => bar.println(Shown(text).to_string()),
            None => write_line(text),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Stage>> {
        self.stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Progress for Console {
    fn begin(&self, stage: &str, unit: &str, total: Option<u64>) {
        system::note_job(stage);
        if self.quiet {
            return;
        }
        let now = Instant::now();
        let bar = self.terminal.then(|| new_bar(stage, unit, total));
        *self.lock() = Some(Stage {
            name: stage.to_owned(),
            unit: unit.to_owned(),
            total,
            began: now,
            last_line: now,
            first: None,
            bar,
        });
    }

    fn advance(&self, done: u64, figures: &dyn Display) {
        let mut guard = self.lock();
        let Some(stage) = guard.as_mut() else { return };
        if stage.first.is_none() {
            stage.first = Some((done, Instant::now()));
            if let Some(bar) = &stage.bar {
                bar.set_position(done);
                bar.reset_eta();
            }
        }
        match &stage.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(figures.to_string());
            }
            None if stage.last_line.elapsed() >= PLAIN_LINE_EVERY => {
                stage.last_line = Instant::now();
                write_line(&stage.plain_line(done, figures));
            }
            None => {}
        }
    }

    fn end(&self, summary: &dyn Display) {
        let Some(stage) = self.lock().take() else { return };
        if let Some(bar) = &stage.bar {
            bar.finish_and_clear();
        }
        write_line(&format!("{}: {summary} ({:.1} s)", stage.name, stage.began.elapsed().as_secs_f64()));
    }

    fn note(&self, text: &dyn Display) {
        Console::note(self, text);
    }

    fn interrupted(&self) -> bool {
        system::is_interrupted()
    }
}

impl Stage {
    /// Units per second, not counting those done before the first report.
    fn rate(&self, done: u64) -> f64 {
        match self.first {
            Some((first, when)) if done > first => {
                (done - first) as f64 / when.elapsed().as_secs_f64().max(1e-9)
            }
            _ => done as f64 / self.began.elapsed().as_secs_f64().max(1e-9),
        }
    }

    fn plain_line(&self, done: u64, figures: &dyn Display) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        let rate = self.rate(done);
        let place = match self.total {
            Some(total) => {
                let left = (total.saturating_sub(done)) as f64 / rate;
                let time =
                    if rate > 0.0 { format!(", {rate:.1}/s, {left:.0} s left") } else { String::new() };
                format!("{done} of {total} {}{time}", self.unit)
            }
            None => format!("{done} {}, {rate:.1}/s, {seconds:.0} s", self.unit),
        };
        format!("{}: {place}  {figures}", self.name)
    }
}

fn new_bar(stage: &str, unit: &str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => format!(
            "{{prefix}} {{wide_bar}} {{human_pos}}/{{human_len}} {unit} {{per_sec}} {{eta}} left  {{msg}}"
        ),
        None => format!("{{prefix}} {{spinner}} {{human_pos}} {unit} {{per_sec}} {{elapsed}}  {{msg}}"),
    };
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar.set_prefix(stage.to_owned());
    bar
}

fn write_line(text: &dyn Display) {
    // A closed stderr must not end the work.
    let _ = writeln!(std::io::stderr().lock(), "{}", Shown(text));
}
