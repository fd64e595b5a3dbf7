//! The report on a part.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use ruleguider::ask::{AskError, ShardReport};

/// Prints the report of a verb that made a part.
pub fn made(report: Result<ShardReport, AskError>, common: &Common) -> anyhow::Result<Outcome> {
    let report = match report {
        Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
        report => report?,
    };
    if common.json { console::print_json(&report) } else { console::print(&report) }?;
    Ok(Outcome::Done)
}
