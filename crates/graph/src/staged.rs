//! Replaces the files of a data set in a folder: all of them or none.
//!
//! The new files are written to a hidden folder within the folder. Then the old training split is removed first, and the
//! new one is moved in last: a folder without it is not a data set, and no reader takes it for one. So a process that is
//! killed at any moment leaves the old set, the new set, or a folder that is refused, but never files of both. One process
//! at a time may write to a folder, and it removes what killed ones left. The checksums of the files go with them
//! ([`sums`](super::sums)), for readers that were there already.

use super::GraphError;
use super::read::{TRAIN, files_of};
use super::sums::{self, SUMS};
use ruleguider_support::aside::{Claim, claim};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The hidden folder with files that are being written.
const STAGING: &str = ".staging.partial";
/// The file that is locked by the process that writes.
const LOCK: &str = ".lock";

/// Files that will be moved to a folder together.
pub struct Staged {
    folder: PathBuf,
    staging: PathBuf,
    claim: Option<Claim>,
}

impl Staged {
    /// Begins to replace files of `folder`, which is created if it does not exist.
    ///
    /// # Errors
    /// If another process writes to it, or it cannot be written to.
    pub fn within(folder: &Path) -> Result<Self, GraphError> {
        fs::create_dir_all(folder).map_err(GraphError::writing(folder))?;
        let claim = claim(&folder.join(LOCK)).map_err(GraphError::writing(folder))?;
        let Some(claim) = claim else {
            return Err(GraphError::Data(format!(
                "{}: another process is writing to this folder; wait for it, or choose another",
                folder.display()
            )));
        };
        let staging = folder.join(STAGING);
        match fs::remove_dir_all(&staging) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(GraphError::removing(&staging)(error));
            }
            _ => {}
        }
        fs::create_dir(&staging).map_err(GraphError::writing(&staging))?;
        Ok(Self { folder: folder.to_owned(), staging, claim: Some(claim) })
    }

    /// Where to write the files.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// `error` about a file as if it were in the folder already, as users know it.
    pub fn named(&self, mut error: GraphError) -> GraphError {
        let (GraphError::Io { path, .. } | GraphError::Line { path, .. } | GraphError::File { path, .. }) =
            &mut error
        else {
            return error;
        };
        if let Ok(name) = path.strip_prefix(&self.staging) {
            *path = self.folder.join(name);
        }
        error
    }

    /// Moves the files to the folder. Files of the same name are replaced, and those of which `is_old` holds are removed.
    ///
    /// # Errors
    /// If a file cannot be moved or removed.
    pub fn commit(self, is_old: impl Fn(&Path) -> bool) -> Result<(), GraphError> {
        sums::write(&self.staging)?;
        let mut new = files_of(&self.staging)?;
        new.retain(|path| !path.ends_with(SUMS));
        let names: Vec<&OsStr> = new.iter().filter_map(|path| path.file_name()).collect();
        let mut old = files_of(&self.folder)?;
        old.retain(|path| {
            path.is_file() && (is_old(path) || path.file_name().is_some_and(|name| names.contains(&name)))
        });
        let (old_train, old): (Vec<_>, Vec<_>) = old.into_iter().partition(|path| is_train(path));
        let (train, new): (Vec<_>, Vec<_>) = new.into_iter().partition(|path| is_train(path));
        // The folder is synced between the steps, so that they are in this order on the disk, too.
        remove(&old_train)?;
        sync(&self.folder);
        self.move_in(&[self.staging.join(SUMS)])?;
        remove(&old)?;
        sync(&self.folder);
        self.move_in(&new)?;
        sync(&self.folder);
        self.move_in(&train)?;
        sync(&self.folder);
        Ok(())
    }

    fn move_in(&self, files: &[PathBuf]) -> Result<(), GraphError> {
        files.iter().try_for_each(|path| {
            let target = self.folder.join(path.file_name().unwrap_or_default());
            fs::rename(path, &target).map_err(GraphError::writing(&target))
        })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // After success it is empty; after a failure, that failure is what gets reported.
        let _ = fs::remove_dir_all(&self.staging);
        drop(self.claim.take());
        // A folder that got no files is removed; one with files in it stays.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Whether nothing would be replaced in `folder`: it does not exist, or is empty except for what a killed process left.
///
/// # Errors
/// If it cannot be read, or is a file.
pub fn is_free(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if name != STAGING && name != LOCK {
            return Ok(false);
        }
    }
    Ok(true)
}

fn remove(files: &[PathBuf]) -> Result<(), GraphError> {
    files.iter().try_for_each(|path| fs::remove_file(path).map_err(GraphError::removing(path)))
}

fn is_train(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.split('.').next() == Some(TRAIN)
}

/// Not every system can sync a folder; the order of the steps is the same either way.
fn sync(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(folder: &Path, text: &str) -> Staged {
        let staged = Staged::within(folder).unwrap();
        for name in ["test.tsv", "train.tsv", "valid.tsv"] {
            fs::write(staged.path().join(name), text).unwrap();
        }
        staged
    }

    fn names_in(folder: &Path) -> Vec<String> {
        files_of(folder)
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn files_are_replaced_together_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        stage(&out, "old").commit(|_| false).unwrap();
        for name in ["notes.txt", "labels.tsv"] {
            fs::write(out.join(name), "mine").unwrap();
        }
        stage(&out, "new").commit(|path| path.ends_with("labels.tsv")).unwrap();
        assert_eq!(names_in(&out), ["notes.txt", SUMS, "test.tsv", "train.tsv", "valid.tsv"]);
        assert_eq!(fs::read_to_string(out.join("valid.tsv")).unwrap(), "new");
    }

    #[test]
    fn what_is_not_committed_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        assert!(is_free(&out).unwrap());
        drop(stage(&out, "new"));
        assert!(!out.exists());
        // A killed process leaves its files, which are in nobody's way.
        std::mem::forget(stage(&out, "half"));
        assert!(is_free(&out).unwrap());
        fs::remove_file(out.join(LOCK)).unwrap();
        stage(&out, "whole").commit(|_| false).unwrap();
        assert!(!is_free(&out).unwrap());
        assert_eq!(names_in(&out), [SUMS, "test.tsv", "train.tsv", "valid.tsv"]);
    }

    #[test]
    fn one_process_writes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = stage(folder.path(), "first");
        let refused = Staged::within(folder.path()).err().unwrap().to_string();
        assert!(refused.contains("another process is writing to this folder"), "{refused}");
        first.commit(|_| false).unwrap();
        stage(folder.path(), "second").commit(|_| false).unwrap();
    }
}
