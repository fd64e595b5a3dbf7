//! A study in a file (SQLite): what is judged, by whom, and the votes.
//!
//! A vote is on the disk when [`Store::vote`] returns: the journal is a write-ahead log (WAL), synced with
//! every transaction. There is one writer: the process that serves a study holds its lock.

use super::schema::{APPLICATION, STEPS, migrate};
use crate::token;
use anyhow::{Context, bail, ensure};
use ruleguider::ask::PathStep;
use ruleguider::judge::{Choice, LabelledEntity, Secret, Study, StudyItem, StudyPair, Vote, screens};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, named_params, params};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAMAGED: &str = "the study is damaged: its tables do not fit each other; use a copy of it";
/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(10);

/// A study in a file.
pub struct Store {
    connection: Connection,
    /// Held by the writer.
    _lock: Option<File>,
}

/// A judge's standing.
#[derive(Debug, PartialEq)]
pub struct Standing {
    /// Screens that are judged.
    pub done: usize,
    /// Screens in all.
    pub total: usize,
    /// Whether the last vote can be undone.
    pub can_undo: bool,
    /// The screen to judge, if there is one left.
    pub next: Option<Shown>,
}

/// A screen as it is shown.
#[derive(Debug, PartialEq)]
pub struct Shown {
    /// The true fact, in labels.
    pub fact: [String; 3],
    /// The paths on the left and on the right.
    pub paths: [Vec<PathStep>; 2],
}

/// The outcome of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is on the disk.
    Kept,
    /// The judge is on another screen: this one is already judged, or not due yet.
    Elsewhere,
}

impl Store {
    /// Writes `study` to a new file.
    ///
    /// # Errors
    /// If the file already exists, or cannot be written.
    pub fn create(path: &Path, study: &Study) -> anyhow::Result<()> {
        expect_new(path)?;
        let unwritable = || format!("{}: cannot be written", path.display());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A name of its own, since another process may be preparing a study in the same place.
        let aside =
            tempfile::Builder::new().prefix(".study-").tempfile_in(folder).with_context(unwritable)?;
        write_study(aside.path(), study)
            .and_then(|()| Ok(File::open(aside.path())?.sync_all()?))
            .with_context(unwritable)?;
        match aside.persist_noclobber(path) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => expect_new(path),
            Err(error) => Err(error.error).with_context(unwritable),
        }
    }

    /// Opens a study for reading.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let connection = open(path).with_context(|| path.display().to_string())?;
        Ok(Self { connection, _lock: None })
    }

    /// Opens a study for judging, exclusively until it is closed.
    ///
    /// # Errors
    /// If there is none, it is damaged, or another process has it open.
    pub fn serve(path: &Path) -> anyhow::Result<Self> {
        let store = Self::open(path)?;
        let lock_path = beside(path, "lock");
        let lock = File::create(&lock_path)
            .with_context(|| format!("{}: cannot be written", lock_path.display()))?;
        if lock.try_lock().is_err() {
            bail!("{}: another server is using this study; stop it first", path.display());
        }
        store.connection.pragma_update(None, "journal_mode", "WAL")?;
        store.connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(Self { _lock: Some(lock), ..store })
    }

    /// The study.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn study(&self) -> anyhow::Result<Study> {
        let (dataset, seed, version) =
            self.connection.query_row("SELECT dataset, seed, version FROM study", [], |row| {
                Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?))
            })?;
        let systems = self.rows("SELECT name FROM systems ORDER BY number", |row| row.get(0))?;
        let pairs =
            "SELECT first, second, looked_at, unanswered, identical, items FROM pairs ORDER BY number";
        let pairs = self.rows(pairs, |row| {
            Ok(StudyPair {
                systems: [row.get(0)?, row.get(1)?],
                looked_at: row.get(2)?,
                unanswered: row.get(3)?,
                identical: row.get(4)?,
                items: row.get(5)?,
            })
        })?;
        let items = self.rows("SELECT * FROM items ORDER BY number", |row| {
            let named = |id: &str, label: &str| -> rusqlite::Result<LabelledEntity> {
                Ok(LabelledEntity { id: row.get(id)?, label: row.get(label)? })
            };
            Ok(StudyItem {
                pair: row.get("pair")?,
                head: named("head", "head_label")?,
                relation: named("relation", "relation_label")?,
                tail: named("tail", "tail_label")?,
                paths: [path_at(row, "first_path")?, path_at(row, "second_path")?],
            })
        })?;
        let seed = seed.parse().context("the seed of the study is not a number")?;
        let study = Study { dataset, seed, version, systems, pairs, items };
        ensure!(is_consistent(&study) && self.is_sound()?, "{DAMAGED}");
        Ok(study)
    }

    /// Whether all references between tables lead somewhere, and rows are numbered without gaps.
    fn is_sound(&self) -> anyhow::Result<bool> {
        let broken = self.rows("PRAGMA foreign_key_check", |_| Ok(()))?;
        let gaps = |table: &str| -> anyhow::Result<bool> {
            let query =
                format!("SELECT count(*) <> coalesce(max(number) + 1, 0) OR min(number) < 0 FROM {table}");
            Ok(self.connection.query_row(&query, [], |row| row.get::<_, Option<bool>>(0))?.unwrap_or(false))
        };
        Ok(broken.is_empty() && !gaps("systems")? && !gaps("pairs")? && !gaps("items")?)
    }

    /// How many judges there are.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn judges(&self) -> anyhow::Result<usize> {
        Ok(self.connection.query_row("SELECT count(*) FROM judges", [], |row| row.get(0))?)
    }

    /// Adds a judge, identified by the checksum of their token, with their own screens; returns the judge's
    /// number. What the screens are drawn by is random and forgotten at once, so that nobody can compute them.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_judge(&mut self, study: &Study, token_sum: &str) -> anyhow::Result<usize> {
        let (judge, mut secret) = (self.judges()? + 1, Secret::default());
        token::fill(&mut secret)?;
        let change = self.connection.transaction()?;
        change.execute("INSERT INTO judges (number, token_sum) VALUES (?, ?)", params![judge, token_sum])?;
        {
            let mut insert = change.prepare("INSERT INTO screens VALUES (?, ?, ?, ?, ?)")?;
            for (position, screen) in screens(study.items.len(), &secret).into_iter().enumerate() {
                insert.execute(params![judge, position, screen.item, screen.repeat, screen.first_on_left])?;
            }
        }
        change.commit()?;
        Ok(judge)
    }

    /// Gives a judge a new token; the old one becomes invalid.
    ///
    /// # Errors
    /// If there is no such judge.
    pub fn renew(&mut self, judge: usize, token_sum: &str) -> anyhow::Result<()> {
        let change = "UPDATE judges SET token_sum = ? WHERE number = ?";
        let changed = self.connection.execute(change, params![token_sum, judge])?;
        ensure!(changed == 1, "there is no judge {judge}; the study has {} judges", self.judges()?);
        Ok(())
    }

    /// The judge whose token has this checksum.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn judge(&self, token_sum: &str) -> anyhow::Result<Option<usize>> {
        let found = "SELECT number FROM judges WHERE token_sum = ?";
        Ok(self.connection.query_row(found, [token_sum], |row| row.get(0)).optional()?)
    }

    /// The standing of `judge`.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn standing(&self, judge: usize) -> anyhow::Result<Standing> {
        let count = |what: &str| self.connection.query_row(what, [judge], |row| row.get::<_, usize>(0));
        let done = count("SELECT count(*) FROM votes WHERE judge = ?")?;
        let total = count("SELECT count(*) FROM screens WHERE judge = ?")?;
        // Only the last vote can be undone: after an undo, that item has to be judged again first.
        let undone = self.connection.query_row(
            "SELECT count(*) FROM undone WHERE judge = ? AND position >= ?",
            params![judge, done],
            |row| row.get::<_, usize>(0),
        )?;
        Ok(Standing { done, total, can_undo: done > 0 && undone == 0, next: self.shown(judge, done)? })
    }

    fn shown(&self, judge: usize, position: usize) -> anyhow::Result<Option<Shown>> {
        let screen = "SELECT head_label, relation_label, tail_label, first_path, second_path, first_on_left \
            FROM screens JOIN items ON items.number = screens.item WHERE judge = ? AND position = ?";
        let shown = self.connection.query_row(screen, params![judge, position], |row| {
            let mut paths = [path_at(row, "first_path")?, path_at(row, "second_path")?];
            if !row.get::<_, bool>("first_on_left")? {
                paths.reverse();
            }
            Ok(Shown { fact: [row.get(0)?, row.get(1)?, row.get(2)?], paths })
        });
        Ok(shown.optional()?)
    }

    /// Stores a vote on the judge's current screen.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn vote(
        &mut self,
        judge: usize,
        position: usize,
        choice: Choice,
        seconds: f64,
    ) -> anyhow::Result<Outcome> {
        let change = self.connection.transaction()?;
        // The primary key refuses a second vote; the condition refuses one on a later screen.
        let kept = change.execute(
            "INSERT INTO votes SELECT judge, position, :choice, :seconds, :now FROM screens \
             WHERE judge = :judge AND position = :position \
             AND position = (SELECT count(*) FROM votes WHERE judge = :judge) ON CONFLICT DO NOTHING",
            named_params! {
                ":judge": judge, ":position": position, ":choice": choice.name(), ":seconds": seconds, ":now": now(),
            },
        )?;
        change.commit()?;
        Ok(if kept == 1 { Outcome::Kept } else { Outcome::Elsewhere })
    }

    /// Undoes the vote on a screen, if it is the judge's last.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn undo(&mut self, judge: usize, position: usize) -> anyhow::Result<Outcome> {
        let standing = self.standing(judge)?;
        if !standing.can_undo || standing.done != position + 1 {
            return Ok(Outcome::Elsewhere);
        }
        let change = self.connection.transaction()?;
        change.execute(
            "INSERT INTO undone SELECT judge, position, choice, seconds, time_ms, ? FROM votes \
             WHERE judge = ? AND position = ?",
            params![now(), judge, position],
        )?;
        change.execute("DELETE FROM votes WHERE judge = ? AND position = ?", params![judge, position])?;
        change.commit()?;
        Ok(Outcome::Kept)
    }

    /// All votes, by judge and in the order of their screens.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn votes(&self) -> anyhow::Result<Vec<Vote>> {
        let votes = "SELECT * FROM votes NATURAL JOIN screens ORDER BY judge, position";
        // The table only allows these words for a choice.
        self.rows(votes, |row| {
            Ok(Vote {
                judge: row.get("judge")?,
                position: row.get("position")?,
                item: row.get("item")?,
                repeat: row.get("repeat")?,
                first_on_left: row.get("first_on_left")?,
                choice: Choice::named(row.get_ref("choice")?.as_str()?).unwrap_or(Choice::Neither),
                seconds: row.get("seconds")?,
                time_ms: row.get("time_ms")?,
            })
        })
    }

    fn rows<T>(
        &self,
        query: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map([], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// Checks that a new study can be written to `path`: votes are never overwritten.
///
/// # Errors
/// If the file already exists.
pub fn expect_new(path: &Path) -> anyhow::Result<()> {
    ensure!(
        !path.exists(),
        "{}: already exists and may hold votes; choose another --out, or remove it",
        path.display()
    );
    Ok(())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{ending}"));
    path.with_file_name(name)
}

fn open(path: &Path) -> anyhow::Result<Connection> {
    ensure!(path.is_file(), "there is no such study; `ruleguider judge prepare` makes one");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    let application = connection.query_row("PRAGMA application_id", [], |row| row.get::<_, i64>(0));
    ensure!(application.ok() == Some(APPLICATION), "is not a study; `ruleguider judge prepare` makes one");
    connection.pragma_update(None, "foreign_keys", true)?;
    migrate(&mut connection, &STEPS)?;
    Ok(connection)
}

fn write_study(path: &Path, study: &Study) -> anyhow::Result<()> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    migrate(&mut connection, &STEPS)?;
    let change = connection.transaction()?;
    let Study { dataset, seed, version, systems, pairs, items } = study;
    change.execute("INSERT INTO study VALUES (1, ?, ?, ?)", params![dataset, seed.to_string(), version])?;
    for (number, name) in systems.iter().enumerate() {
        change.execute("INSERT INTO systems VALUES (?, ?)", params![number, name])?;
    }
    for (number, pair) in pairs.iter().enumerate() {
        let StudyPair { systems: [first, second], looked_at, unanswered, identical, items } = pair;
        change.execute(
            "INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![number, first, second, looked_at, unanswered, identical, items],
        )?;
    }
    for (number, item) in items.iter().enumerate() {
        let StudyItem { pair, head, relation, tail, paths } = item;
        let [first, second] = paths.each_ref().map(|path| serde_json::to_string(path).expect("plain data"));
        change.execute(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                number,
                pair,
                head.id,
                head.label,
                relation.id,
                relation.label,
                tail.id,
                tail.label,
                first,
                second
            ],
        )?;
    }
    change.commit()?;
    connection.close().map_err(|(_, error)| error.into())
}

/// Whether the numbers in `study` fit each other.
fn is_consistent(study: &Study) -> bool {
    let items = |at: usize| study.items.iter().filter(|item| item.pair == at).count();
    study.items.iter().all(|item| item.pair < study.pairs.len())
        && study.pairs.iter().enumerate().all(|(at, pair)| {
            pair.systems.iter().all(|&system| system < study.systems.len()) && pair.items == items(at)
        })
}

fn path_at(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<PathStep>> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(0, kind, Box::new(error))
    })
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
