//! The only place that writes to the terminal: results on stdout, progress and errors on stderr.

use crate::arguments::Common;
use crate::system::{self, Stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
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

/// Prints a line of results, or several. Names in it are [`Shown`]. On a terminal, longer lines are continued below their
/// beginning, and words stay whole; elsewhere a line is a line.
pub fn print(text: &dyn Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match system::columns(Stream::Out) {
        Some(columns) => writeln!(out, "{}", folded(&text.to_string(), columns)),
        None => writeln!(out, "{text}"),
    }
    .map_err(stdout_fails)
}

/// How many columns of a terminal `text` takes: letters of Chinese, Japanese and Korean take two each, accents none.
pub fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// `text`, and spaces up to the given number of columns.
pub fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` in lines of at most `columns`, as far as its words allow.
fn folded(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if width(line) <= columns {
            lines.push(line.to_owned());
            continue;
        }
        let indent: String = line.chars().take_while(|&letter| letter == ' ').take(columns / 2).collect();
        let (mut now, mut written) = (String::new(), false);
        // A split keeps the spaces that align columns.
        for word in line.split_inclusive(' ') {
            if width(&now) + width(word.trim_end()) > columns && written {
                lines.push(now.trim_end().to_owned());
                (now, written) = (format!("{indent}  "), false);
            }
            if written || !word.trim().is_empty() || lines.is_empty() || now.trim().is_empty() {
                now.push_str(word);
            }
            written |= !word.trim().is_empty();
        }
        lines.push(now.trim_end().to_owned());
    }
    lines.join("\n")
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

/// Prints a line of a server's log on stderr.
#[cfg(feature = "live")]
pub fn log(line: &dyn Display) {
    write_line(line);
}

/// Progress on stderr: a bar with rate and remaining time on a terminal, plain lines elsewhere.
pub struct Console {
    quiet: bool,
    terminal: bool,
    /// When the time for all stages is up, if it is limited.
    until: Option<Instant>,
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
    until: Option<Instant>,
}

impl Console {
    /// Progress as `common` asks for it.
    pub fn new(common: &Common) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { quiet: common.quiet, terminal, until: None, stage: Mutex::new(None) }
    }

    /// The same; from now on Ctrl-C asks the job to stop instead of killing it. A second Ctrl-C kills.
    pub fn with_interrupt(common: &Common) -> Self {
        static HANDLER: OnceLock<()> = OnceLock::new();
        HANDLER.get_or_init(|| system::heed_interrupts(!common.quiet));
        Self::new(common)
    }

    /// The same; from now on no stage is said to need longer than is left of the budget that `began` then, if there is one.
    pub fn within(self, began: Instant, minutes: Option<f64>) -> Self {
        let budget = minutes.and_then(|minutes| Duration::try_from_secs_f64(60.0 * minutes).ok());
        Self { until: budget.and_then(|budget| began.checked_add(budget)), ..self }
    }

    /// A line for the user, on stderr.
    pub fn note(&self, text: &dyn Display) {
        if self.quiet {
            return;
        }
        match self.lock().as_ref().and_then(|stage| stage.bar.clone()) {
            Some(bar) => bar.println(for_stderr(text)),
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
        let bar = self.terminal.then(|| new_bar(stage, unit, total, self.until));
        *self.lock() = Some(Stage {
            name: stage.to_owned(),
            unit: unit.to_owned(),
            total,
            began: now,
            last_line: now,
            first: None,
            bar,
            until: self.until,
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
                let left = self.until.map_or(left, |until| left.min(seconds_until(until)));
                let time = match rate > 0.0 {
                    true => format!(", {}/s, {left:.0} s left", sane(rate)),
                    false => String::new(),
                };
                format!("{done} of {total} {}{time}", self.unit)
            }
            None => format!("{done} {}, {}/s, {seconds:.0} s", self.unit, sane(rate)),
        };
        format!("{}: {place}  {figures}", self.name)
    }
}

/// A rate as people say it: three digits, no more.
fn sane(rate: f64) -> String {
    match rate {
        large if large >= 100.0 => format!("{large:.0}"),
        middle if middle >= 10.0 => format!("{middle:.1}"),
        small => format!("{small:.2}"),
    }
}

fn seconds_until(until: Instant) -> f64 {
    until.saturating_duration_since(Instant::now()).as_secs_f64()
}

/// Nothing is left for longer than until `until`, if there is such a time.
fn new_bar(stage: &str, unit: &str, total: Option<u64>, until: Option<Instant>) -> ProgressBar {
    // The message has what is left of the line and is cut there: a bar that gives way to it would vanish.
    let template = match total {
        Some(_) => format!(
            "{{prefix}} {{bar:16}} {{human_pos}}/{{human_len}} {unit} {{rate}} {{left}} left  {{wide_msg}}"
        ),
        None => format!("{{prefix}} {{spinner}} {{human_pos}} {unit} {{rate}} {{elapsed}}  {{wide_msg}}"),
    };
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(&template) {
        // Writing to a line cannot fail.
        let rate = |state: &ProgressState, line: &mut dyn std::fmt::Write| {
            let _ = write!(line, "{}/s", sane(state.per_sec()));
        };
        let left = move |state: &ProgressState, line: &mut dyn std::fmt::Write| {
            let most = until.map_or(f64::INFINITY, seconds_until);
            let left = state.eta().as_secs_f64().min(most);
            let _ = match left {
                long if long >= 100.0 => write!(line, "{:.0} min", long / 60.0),
                short => write!(line, "{short:.0} s"),
            };
        };
        bar.set_style(style.with_key("rate", rate).with_key("left", left));
    }
    bar.set_prefix(stage.to_owned());
    bar
}

fn write_line(text: &dyn Display) {
    // A closed stderr must not end the work.
    let _ = writeln!(std::io::stderr().lock(), "{}", for_stderr(text));
}

/// A line as stderr shows it: on a terminal, words stay whole.
fn for_stderr(text: &dyn Display) -> String {
    let text = Shown(text).to_string();
    system::columns(Stream::Err).map(|columns| folded(&text, columns)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_between_words() {
        let text =
            "short\n     Paula is an aunt of Ilse and a sibling of Olga; this held in 3 of 4 cases\n1  2";
        assert_eq!(
            folded(text, 40),
            "short\n     Paula is an aunt of Ilse and a\n       sibling of Olga; this held in 3\n       of 4 cases\n1  2"
        );
        // Nothing is lost, and what has no spaces stays whole.
        let long = "x".repeat(50);
        assert_eq!(folded(&long, 40), long);
        assert_eq!(folded("  1  name   0.5", 80), "  1  name   0.5");
        // Wide letters take two columns, accents of their own none.
        assert_eq!(folded("東京 大阪 京都", 10), "東京 大阪\n  京都");
        assert_eq!(folded("e\u{301}e\u{301} e\u{301}e\u{301}", 5), "e\u{301}e\u{301} e\u{301}e\u{301}");
        assert_eq!([padded("東京", 6), padded("Tokyo", 6)], ["東京  ", "Tokyo "]);
    }

    #[test]
    fn rates_have_three_digits() {
        assert_eq!([357.8061, 35.78061, 3.578061].map(sane), ["358", "35.8", "3.58"]);
    }

    #[test]
    fn no_stage_needs_longer_than_the_budget() {
        let stage = |until| Stage {
            name: "training".to_owned(),
            unit: "epochs".to_owned(),
            total: Some(1000),
            began: Instant::now() - Duration::from_secs(10),
            last_line: Instant::now(),
            first: None,
            bar: None,
            until,
        };
        assert!(stage(None).plain_line(1, &"").contains(", 9990 s left"));
        let soon = Some(Instant::now() + Duration::from_secs(60));
        let line = stage(soon).plain_line(1, &"");
        assert!(line.contains(", 60 s left"), "{line}");
    }
}
