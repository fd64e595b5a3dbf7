//! The log in a file (SQLite): entries are appended, all of a request or none, and are on the disk when
//! [`Log::append`] returns. There is one writer, which holds a lock beside the file; readers may open it meanwhile.

use super::event::{Event, Fact, Kind, Said};
use anyhow::{Context, bail, ensure};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The application id in SQLite's header: `RGLV`.
const APPLICATION: i64 = 0x5247_4c56;
/// The migration from each version to the next. Entries are never changed, only added.
const STEPS: [&str; 1] = [include_str!("schema.sql")];
/// How long a writer waits for someone else who has locked the file.
const PATIENCE: Duration = Duration::from_secs(3);

/// The log of one graph.
pub struct Log {
    connection: Connection,
    /// The number of the last entry.
    last: i64,
    /// Held by the writer.
    _lock: Option<File>,
}

/// A request with an idempotency key.
#[derive(Clone, Debug)]
pub struct Keyed {
    /// The key that the client chose.
    pub key: String,
    /// The checksum of the request.
    pub sum: String,
}

impl Log {
    /// Opens the log at `path` for writing, exclusively until it is closed; creates it if there is none.
    ///
    /// # Errors
    /// If it is something else, damaged, cannot be written, or another process has it open.
    pub fn work_on(path: &Path) -> anyhow::Result<Self> {
        let lock_path = beside(path, "lock");
        let lock = File::create(&lock_path)
            .with_context(|| format!("{}: cannot be written", lock_path.display()))?;
        if lock.try_lock().is_err() {
            bail!("{}: another server is using it; stop it first", path.display());
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || -> anyhow::Result<Self> {
            let mut connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            let tables: i64 = connection
                .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
                .map_err(|_| anyhow::anyhow!("is not a file of live facts; choose another name"))?;
            if tables == 0 {
                connection.pragma_update(None, "application_id", APPLICATION)?;
            }
            expect_live(&connection)?;
            // A commit is synced before it returns.
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            migrate(&mut connection)?;
            let last = last_of(&connection)?;
            Ok(Self { connection, last, _lock: Some(lock) })
        };
        open().with_context(|| path.display().to_string())
    }

    /// Opens the log at `path` to read it, whoever writes to it.
    ///
    /// # Errors
    /// If there is none, or it is something else.
    pub fn look_at(path: &Path) -> anyhow::Result<Self> {
        let open = || -> anyhow::Result<Self> {
            ensure!(path.is_file(), "there is no such file; `ruleguider serve RUN --live FILE` makes one");
            // The index of a write-ahead log is shared memory, so even readers open it for writing.
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            expect_live(&connection)?;
            let last = last_of(&connection)?;
            Ok(Self { connection, last, _lock: None })
        };
        open().with_context(|| path.display().to_string())
    }

    /// The number of the last entry; 0 if there is none.
    pub fn last(&self) -> i64 {
        self.last
    }

    /// Appends `said`, all or nothing, with the reply to the request if it has a key. On the disk when it returns; the
    /// entries are returned. `reply` is given the number that the last entry has then.
    ///
    /// # Errors
    /// If it cannot be written: then nothing was.
    pub fn append(
        &mut self,
        said: Vec<Said>,
        who: &Arc<str>,
        keyed: Option<&Keyed>,
        reply: impl FnOnce(i64) -> String,
    ) -> rusqlite::Result<(Vec<Event>, String)> {
        let time_ms = now();
        let mut events = Vec::with_capacity(said.len());
        let mut last = self.last;
        let change = self.connection.transaction()?;
        {
            let mut insert = change.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
            for said in said {
                last += 1;
                let Said { kind, fact: [subject, relation, object], confidence, source, note } = &said;
                insert.execute(params![
                    last,
                    kind.name(),
                    &**subject,
                    &**relation,
                    &**object,
                    confidence,
                    source,
                    note,
                    &**who,
                    time_ms
                ])?;
                events.push(Event { seq: last, said, who: Arc::clone(who), time_ms });
            }
        }
        let reply = reply(last);
        if let Some(Keyed { key, sum }) = keyed {
            change.execute(
                "INSERT INTO requests VALUES (?, ?, ?, ?, ?)",
                params![&**who, key, sum, reply, time_ms],
            )?;
        }
        change.commit()?;
        self.last = last;
        Ok((events, reply))
    }

    /// The checksum of the request with this key, and what was answered.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn answered(&self, who: &str, key: &str) -> rusqlite::Result<Option<(String, String)>> {
        let query = "SELECT sum, reply FROM requests WHERE who = ? AND key = ?";
        self.connection.query_row(query, [who, key], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// At most `limit` entries after number `after`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn after(&self, after: i64, limit: usize) -> rusqlite::Result<Vec<Event>> {
        let mut events = Vec::new();
        self.each(after, limit, |event| events.push(event))?;
        Ok(events)
    }

    /// Calls `each` with at most `limit` entries after number `after`, in order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn each(&self, after: i64, limit: usize, mut each: impl FnMut(Event)) -> rusqlite::Result<()> {
        let query = "SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?";
        let mut statement = self.connection.prepare(query)?;
        let mut rows = statement.query(params![after, i64::try_from(limit).unwrap_or(i64::MAX)])?;
        // Names repeat, so each is kept once.
        let mut names: HashSet<Arc<str>> = HashSet::new();
        while let Some(row) = rows.next()? {
            each(event(row, &mut names)?);
        }
        Ok(())
    }
}

fn event(row: &Row<'_>, names: &mut HashSet<Arc<str>>) -> rusqlite::Result<Event> {
    let mut name = |column: &str| -> rusqlite::Result<Arc<str>> {
        let text = row.get_ref(column)?.as_str()?;
        if let Some(known) = names.get(text) {
            return Ok(Arc::clone(known));
        }
        let new: Arc<str> = text.into();
        names.insert(Arc::clone(&new));
        Ok(new)
    };
    let fact: Fact = [name("subject")?, name("relation")?, name("object")?];
    let who = name("who")?;
    // The table only allows these words for a kind.
    let kind = Kind::named(row.get_ref("kind")?.as_str()?).unwrap_or(Kind::Unsure);
    let said = Said {
        kind,
        fact,
        confidence: row.get("confidence")?,
        source: row.get("source")?,
        note: row.get("note")?,
    };
    Ok(Event { seq: row.get("seq")?, said, who, time_ms: row.get("time_ms")? })
}

fn expect_live(connection: &Connection) -> anyhow::Result<()> {
    let application = connection.query_row("PRAGMA application_id", [], |row| row.get::<_, i64>(0));
    ensure!(application.ok() == Some(APPLICATION), "is not a file of live facts; choose another name");
    Ok(())
}

fn last_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))
}

/// Brings the tables to the newest version. Each step is atomic.
fn migrate(connection: &mut Connection) -> anyhow::Result<()> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    ensure!(done <= STEPS.len(), "was made by a newer version of ruleguider; use that version");
    for (at, step) in STEPS.iter().enumerate().skip(done) {
        let change = connection.transaction()?;
        change.execute_batch(step)?;
        change.pragma_update(None, "user_version", at as i64 + 1)?;
        change.commit()?;
    }
    Ok(())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{ending}"));
    path.with_file_name(name)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: Kind, subject: &str) -> Said {
        let fact = [subject, "knows", "Ben"].map(Arc::from);
        Said { kind, fact, confidence: Some(0.5), source: None, note: Some("seen".to_owned()) }
    }

    #[test]
    fn what_was_appended_is_read_again_and_a_request_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.db");
        let who: Arc<str> = "ada".into();
        let keyed = Keyed { key: "k".to_owned(), sum: "s".to_owned() };
        {
            let mut log = Log::work_on(&path).unwrap();
            let both = vec![said(Kind::Add, "Ada"), said(Kind::Reject, "Cy")];
            let (events, reply) = log.append(both, &who, Some(&keyed), |last| last.to_string()).unwrap();
            assert_eq!((events.len(), reply.as_str(), log.last()), (2, "2", 2));
            // The same key again breaks the rule of the table, and with it the whole request.
            let again = log.append(vec![said(Kind::Add, "Di")], &who, Some(&keyed), |_| String::new());
            assert!(again.is_err());
            assert_eq!((log.last(), log.after(0, 10).unwrap()), (2, events));
            assert!(Log::work_on(&path).is_err_and(|error| format!("{error:#}").contains("another server")));
        }
        let log = Log::look_at(&path).unwrap();
        assert_eq!(log.answered("ada", "k").unwrap(), Some(("s".to_owned(), "2".to_owned())));
        assert_eq!(log.answered("ben", "k").unwrap(), None);
        let events = log.after(1, 10).unwrap();
        assert_eq!((events.len(), events[0].said.clone()), (1, said(Kind::Reject, "Cy")));
        std::fs::write(folder.path().join("other"), "not a database").unwrap();
        assert!(Log::work_on(&folder.path().join("other")).is_err());
        assert!(Log::look_at(&folder.path().join("none")).is_err());
    }
}
