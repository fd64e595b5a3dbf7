//! The version of a study's tables, and how older ones become the newest.

use anyhow::{Context, bail};
use rusqlite::Connection;

/// What a file of ours says it is, in SQLite's header: `RGJS`.
pub const APPLICATION: i64 = 0x5247_4a53;

/// What leads from each version to the next; the first one makes all tables. Entries are never changed, only added.
pub const STEPS: [&str; 1] = [include_str!("schema.sql")];

/// Brings the tables to the newest version. A step is done whole or not at all.
///
/// # Errors
/// If a newer program made them, or the file cannot be written.
pub fn migrate(connection: &mut Connection, steps: &[&str]) -> anyhow::Result<()> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > steps.len() {
        bail!(
            "was made by a newer version of ruleguider (tables of version {version}, known are {}); use that one",
            steps.len()
        );
    }
    for (at, step) in steps.iter().enumerate().skip(done) {
        let change = connection.transaction()?;
        change.execute_batch(step).with_context(|| format!("making tables of version {}", at + 1))?;
        change.pragma_update(None, "user_version", at as i64 + 1)?;
        change.commit()?;
    }
    Ok(())
}
