//! The version of a study's tables, and migrations to the newest.

use anyhow::{Context, bail};
use rusqlite::Connection;

/// The application id of a study in SQLite's header: `RGJS`.
pub const APPLICATION: i64 = 0x5247_4a53;

/// The migration from each version to the next; the first one creates all tables. Entries are never changed, only
/// added.
pub const STEPS: [&str; 1] = [include_str!("schema.sql")];

/// Brings the tables to the newest version. Each step is atomic.
///
/// # Errors
/// If a newer program made them, or the file cannot be written.
pub fn migrate(connection: &mut Connection, steps: &[&str]) -> anyhow::Result<()> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > steps.len() {
        bail!(
            "was made by a newer version of ruleguider (schema version {version}, expected at most {}); use that version",
            steps.len()
        );
    }
    for (at, step) in steps.iter().enumerate().skip(done) {
        let change = connection.transaction()?;
        change
            .execute_batch(step)
            .with_context(|| format!("creating the tables of schema version {}", at + 1))?;
        change.pragma_update(None, "user_version", at as i64 + 1)?;
        change.commit()?;
    }
    Ok(())
}
