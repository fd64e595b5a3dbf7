//! What a search was started with: only the same search can resume.

use super::sweep::TRIALS;
use super::{Search, Sweep, SweepError};
use crate::aside::{is_leftover, sweep as sweep_leftovers, try_lock};
use crate::run::{Checksum, RunError, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// The file that says what is searched.
const MANIFEST: &str = "sweep.json";
/// The file that a search's process keeps locked while it runs.
const LOCK: &str = "lock";

/// What a resumed search must have in common with the one that was started.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct SweepManifest {
    version: String,
    dataset: String,
    data: Checksum,
    system: String,
    base: String,
    space: BTreeMap<String, String>,
    search: Search,
    trials: usize,
    seed: u64,
}

impl Sweep {
    /// Takes the folder's lock and checks that the folder belongs to this search.
    ///
    /// # Errors
    /// If another process holds the lock, or the folder belongs to something else.
    pub(super) fn begin(&self) -> Result<File, SweepError> {
        let out = &self.out;
        self.claim()?;
        let lock = out.join(LOCK);
        let Some(lock) = try_lock(&lock).map_err(RunError::writing(&lock))? else {
            return Err(RunError::Locked { path: out.clone() }.into());
        };
        sweep_leftovers(out).map_err(RunError::writing(out))?;
        Ok(lock)
    }

    /// Checks that the folder belongs to this search, and claims it if it is new.
    ///
    /// # Errors
    /// If it belongs to something else, or cannot be written to.
    pub(super) fn claim(&self) -> Result<(), SweepError> {
        let Self { out, data, .. } = self;
        let path = out.join(MANIFEST);
        if !path.exists() && holds_other_things(out) {
            return Err(SweepError::Cannot(format!(
                "{}: holds files but no search; choose an empty or a new folder",
                out.display()
            )));
        }
        let now = SweepManifest {
            version: crate::VERSION.to_owned(),
            dataset: data.name().to_owned(),
            data: Checksum::of_known(&data.dataset().names, &data.dataset().known),
            system: self.system.clone(),
            base: self.base.to_toml(),
            space: self.space.described(),
            search: self.search,
            trials: self.trials,
            seed: self.seed,
        };
        if let Some(before) = SweepManifest::read(&path)? {
            before.expect_same(&now, out)?;
        }
        std::fs::create_dir_all(out.join(TRIALS)).map_err(RunError::writing(out))?;
        let text = serde_json::to_vec_pretty(&now).expect("a manifest is plain data");
        Ok(write_whole(&path, |out| out.write_all(&text))?)
    }
}

/// Whether `folder` holds more than the leftovers of a search that was killed at its start.
fn holds_other_things(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.into_iter().any(|name| ![LOCK, TRIALS].contains(&name.as_str()) && !is_leftover(&name))
}

impl SweepManifest {
    fn read(path: &Path) -> Result<Option<Self>, SweepError> {
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read(path).map_err(RunError::reading(path))?;
        let parsed = serde_json::from_slice(&text);
        parsed.map(Some).map_err(|error| {
            let what = format!("is damaged, or of another version ({error}); choose another folder");
            SweepError::Cannot(format!("{}: {what}", path.display()))
        })
    }

    fn expect_same(&self, now: &Self, path: &Path) -> Result<(), SweepError> {
        let more = self.search == Search::Random && now.trials >= self.trials;
        let differs = |what: &'static str, before: &dyn std::fmt::Display, now: &dyn std::fmt::Display| {
            let (before, now) = (before.to_string(), now.to_string());
            if before == now {
                return Ok(());
            }
            Err(SweepError::Mismatch { path: path.to_owned(), what, before, now })
        };
        differs("version of the program", &self.version, &now.version)?;
        differs("data set", &self.dataset, &now.dataset)?;
        differs("content of the data", &self.data.short(), &now.data.short())?;
        differs("system", &self.system, &now.system)?;
        differs("search", &self.search.name(), &now.search.name())?;
        differs("seed", &self.seed, &now.seed)?;
        differs("number of trials", &self.trials, &if more { self.trials } else { now.trials })?;
        for key in self.space.keys().chain(now.space.keys()) {
            let of = |space: &BTreeMap<String, String>| match space.get(key) {
                Some(domain) => format!("{key}: {domain}"),
                None => format!("no {key}"),
            };
            differs("space", &of(&self.space), &of(&now.space))?;
        }
        let line = |one: &str, other: &str| {
            let lines = one.lines().find(|line| !other.lines().any(|known| known == *line));
            lines.unwrap_or("fewer settings").to_owned()
        };
        differs("configuration", &line(&self.base, &now.base), &line(&now.base, &self.base))
    }
}
