//! A run directory: its lock, its files, and how they are written.
//!
//! Invariant: a file under its own name is complete. Everything is written to a temporary file, synced and renamed; a
//! kill leaves a `.partial` file that is never read and that the next run removes. The directory knows no stage and no
//! model, only names of files.

use super::RunError;
use crate::aside::{is_leftover, sweep, try_lock, write_aside};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The manifest: marks a directory as a run, with its data and version.
pub const MANIFEST: &str = "run.json";
/// The settings, resolved.
pub const CONFIG: &str = "config.toml";
/// Which stages are finished.
pub const STAGES: &str = "stages.json";
/// The rules.
pub const RULES: &str = "rules.tsv";
/// The embedding model.
pub const EMBEDDING: &str = "embedding.safetensors";
/// The walker at the end of pre-training.
pub const PRETRAINED: &str = "pretrained.safetensors";
/// The walker.
pub const WALKER: &str = "walker.safetensors";
/// The propagator.
pub const PROPAGATOR: &str = "propagator.safetensors";
/// The weights of the universal propagator.
pub const UNIVERSAL: &str = "universal.safetensors";
/// The weights of the blend.
pub const BLEND: &str = "blend.json";
/// What scores mean as probabilities.
pub const CALIBRATION: &str = "calibration.json";
/// The data with its splits, as it was understood.
pub const DATA: &str = "data.rg";
/// Learning curves, one JSON object per line.
pub const METRICS: &str = "metrics.jsonl";
/// The figures at the end.
pub const RESULTS: &str = "results.json";
/// The folder of the second run, on all facts.
pub const EVERYTHING: &str = "everything";
const LOCK: &str = "lock";

/// A run directory. One that was opened for work holds the lock.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Held by the operating system, so that even a killed process leaves no lock behind.
    _lock: Option<File>,
}

impl RunDirectory {
    /// Opens `path` to work in it; creates it if needed.
    ///
    /// # Errors
    /// If it cannot be created or written to, holds something other than a run, or is locked by another process.
    pub fn work_in(path: &Path) -> Result<Self, RunError> {
        std::fs::create_dir_all(path).map_err(RunError::writing(path))?;
        if !path.join(MANIFEST).exists() && holds_other_things(path)? {
            return Err(RunError::Occupied { path: path.to_owned() });
        }
        let lock = path.join(LOCK);
        match try_lock(&lock).map_err(RunError::writing(&lock))? {
            Some(held) => Ok(Self { path: path.to_owned(), _lock: Some(held) }),
            None => Err(RunError::Locked { path: path.to_owned() }),
        }
    }

    /// Opens the finished or unfinished run at `path` to read from it. Takes no lock: files are always complete.
    ///
    /// # Errors
    /// If there is no run.
    pub fn look_at(path: &Path) -> Result<Self, RunError> {
        if !path.join(MANIFEST).is_file() {
            return Err(RunError::NotARun { path: path.to_owned(), file: MANIFEST });
        }
        Ok(Self { path: path.to_owned(), _lock: None })
    }

    /// Whether a process holds its lock at this moment.
    pub fn is_worked_in(path: &Path) -> bool {
        let held = |lock: File| matches!(lock.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock));
        File::open(path.join(LOCK)).is_ok_and(held)
    }

    /// Removes partial files of killed runs.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn sweep(&self) -> Result<(), RunError> {
        sweep(&self.path).map_err(RunError::writing(&self.path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Reads a file as text, `None` if it is not there.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<String>, RunError> {
        let path = self.file(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Err(RunError::Broken { path, what: "is not valid UTF-8".to_owned() })
            }
            Err(error) => Err(RunError::reading(&path)(error)),
        }
    }

    /// Writes a file whole or not at all.
    ///
    /// # Errors
    /// If the disk is full or the folder cannot be written to; the previous file is then untouched.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), RunError> {
        write_whole(&self.file(name), |out| out.write_all(content))
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// If it is there and cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), RunError> {
        let path = self.file(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(RunError::Io { path, action: "removed", source })
            }
            _ => Ok(()),
        }
    }
}

/// The settings that the run at `path` was last given, as its configuration file has them; `None` if there is no run.
pub fn settings_of(path: &Path) -> Option<String> {
    RunDirectory::look_at(path).ok()?.read(CONFIG).ok()?
}

/// Writes the file `path` whole or not at all, by `fill`.
///
/// # Errors
/// If that fails; the previous file at `path` is then untouched, and no temporary file remains.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
) -> Result<(), RunError> {
    write_aside(path, fill).map_err(RunError::writing(path))
}

fn holds_other_things(path: &Path) -> Result<bool, RunError> {
    for entry in std::fs::read_dir(path).map_err(RunError::reading(path))? {
        let name = entry.map_err(RunError::reading(path))?.file_name();
        let own = name == LOCK || is_leftover(&name.to_string_lossy());
        if !own {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cannot_work_in_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let first = RunDirectory::work_in(&path).unwrap();
        let second = RunDirectory::work_in(&path).unwrap_err();
        assert!(
            second
                .to_string()
                .ends_with("another run is using this folder; wait for it, or choose another folder")
        );
        drop(first);
        RunDirectory::work_in(&path).unwrap();
    }

    #[test]
    fn a_folder_of_other_things_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis.tex"), "").unwrap();
        let error = RunDirectory::work_in(folder.path()).unwrap_err();
        assert!(matches!(error, RunError::Occupied { .. }), "{error}");
        let error = RunDirectory::look_at(folder.path()).unwrap_err();
        assert!(error.to_string().contains("not a run directory (it has no run.json)"), "{error}");
    }

    #[test]
    fn what_a_killed_run_left_half_written_is_gone_when_the_next_begins() {
        let folder = tempfile::tempdir().unwrap();
        let half = crate::aside::beside(&folder.path().join(RULES));
        std::fs::write(&half, "half").unwrap();
        let run = RunDirectory::work_in(folder.path()).unwrap();
        run.sweep().unwrap();
        assert!(!half.exists());
        let occupied = folder.path().join("a file/is no folder");
        std::fs::write(occupied.parent().unwrap(), "").unwrap();
        let error = write_whole(&occupied, |out| out.write_all(b"text")).unwrap_err();
        assert!(error.to_string().ends_with("is no folder: cannot be written"), "{error}");
        run.write(RULES, b"whole").unwrap();
        assert_eq!(run.read(RULES).unwrap().as_deref(), Some("whole"));
    }
}
