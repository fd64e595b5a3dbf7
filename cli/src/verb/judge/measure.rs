//! `judge measure`: figures about paths that need no judges.

use super::systems::Systems;
use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use ruleguider::judge::{PathMeasures, measure};
use std::fmt;

/// Arguments of `judge measure`.
#[derive(clap::Args)]
#[command(
    after_help = "All systems are measured on the same facts of the validation split: the first --triples facts, in a random order set \
by --seed, that every system explains with a path. The rules are those of the first run that has mined any. These \
figures do not replace human judgement: they do not say whether a path convinces a person.

Examples:
  ruleguider judge measure runs/ours runs/theirs --triples 300 --seed 1
  ruleguider judge measure runs/ours runs/theirs runs/propagator --names Ours,Theirs,Propagator --json"
)]
pub struct Measure {
    #[command(flatten)]
    systems: Systems,
}

impl Measure {
    /// Measures and prints a table.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let console = Console::with_interrupt(common);
        let contenders = self.systems.open(1, common)?;
        let measured = match measure(&contenders, &self.systems.options(common)?, &console) {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            measured => measured?,
        };
        if common.json { console::print_json(&measured) } else { console::print(&Table(&measured)) }?;
        let some = measured.first().is_some_and(|first| first.paths > 0);
        Ok(if some { Outcome::Done } else { Outcome::Negative })
    }
}

/// The figures as a Markdown table, a column for each system.
struct Table<'a>(&'a [PathMeasures]);

impl Table<'_> {
    fn row(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        value: impl Fn(&PathMeasures) -> String,
    ) -> fmt::Result {
        let cells: Vec<String> = self.0.iter().map(value).collect();
        write!(f, "\n| {name} | {} |", cells.join(" | "))
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let given =
            |value: Option<f64>, shown: &dyn Fn(f64) -> String| value.map_or_else(|| "–".to_owned(), shown);
        let number = |value: f64| format!("{value:.3}");
        let names: Vec<&str> = self.0.iter().map(|measures| measures.system.as_str()).collect();
        write!(f, "| | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()))?;
        self.row(f, "facts explained", |m| format!("{} of {}", m.answered, m.looked_at))?;
        self.row(f, "paths measured", |m| m.paths.to_string())?;
        self.row(f, "follow a mined rule", |m| given(m.rule_share, &percent))?;
        self.row(f, "follow a trusted rule", |m| given(m.trusted_rule_share, &percent))?;
        self.row(f, "mean confidence of the rules followed, smoothed", |m| {
            given(m.rule_confidence, &number)
        })?;
        self.row(f, "mean confidence of all paths as rules, smoothed", |m| number(m.path_confidence))?;
        self.row(f, "mean length", |m| format!("{:.2}", m.length))?;
        self.row(f, "paths of 1, 2, 3, … links", |m| {
            m.lengths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        })?;
        self.row(f, "visit an entity twice", |m| percent(m.revisiting_share))?;
        self.row(f, "hold for another fact of the relation", |m| percent(m.supported_share))?;
        self.row(f, "median number of such facts", |m| m.support_median.to_string())?;
        self.row(f, "mean share of the relation's facts", |m| percent(m.support_share))
    }
}
