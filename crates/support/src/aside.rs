//! Atomic files (written to a temporary sibling, synced, then renamed) and locks between processes.
//!
//! Every module may use this one; it knows none of them.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};

/// The suffix of a file that is still being written.
const ENDING: &str = ".partial";

/// Lets `fill` write a temporary sibling of `path`, then renames it: readers never see a partial file. Links are
/// followed; pipes and devices are written to directly.
///
/// # Errors
/// If `fill` or the system fails. Nothing partial remains then, and the previous file at `path` is untouched.
pub fn write_aside(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    if is_special(path) {
        let mut out = BufWriter::new(File::options().append(true).open(path)?);
        return fill(&mut out).and_then(|()| out.flush());
    }
    let path = &pointed_to(path)?;
    let aside = beside(path);
    let written = create_locked(&aside).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        fill(&mut out)?;
        let file = out.into_inner().map_err(IntoInnerError::into_error)?;
        if let Ok(before) = fs::metadata(path) {
            // Keep the permissions of the previous file, where the system allows it.
            let _ = file.set_permissions(before.permissions());
        }
        file.sync_all()?;
        fs::rename(&aside, path)
    });
    match written {
        Ok(()) => sync_folder(path),
        // The partial file is useless. If removing it fails too, the first error is still the one to report.
        Err(_) => drop(fs::remove_file(&aside)),
    }
    written
}

/// Checks that [`write_aside`] can write to `path`, creates missing parent folders, and removes what killed processes left
/// beside it.
///
/// # Errors
/// If it cannot.
pub fn check(path: &Path) -> io::Result<()> {
    if is_special(path) {
        return Ok(());
    }
    let path = &pointed_to(path)?;
    let named_like_a_folder = path.to_string_lossy().ends_with(std::path::is_separator);
    if path.is_dir() || named_like_a_folder {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    sweep_beside(path);
    let aside = beside(path);
    File::create(&aside)?;
    fs::remove_file(&aside)
}

/// Creates a partial file that [`sweep_beside`] recognises as being written.
fn create_locked(aside: &Path) -> io::Result<File> {
    loop {
        let file = File::create(aside)?;
        // Not every file system has locks; without them nothing is swept either.
        let _ = file.try_lock();
        if is_at(&file, aside) {
            return Ok(file);
        }
    }
}

/// Removes the partial files beside `path` that killed processes left when they wrote to it. Those that are being written
/// are locked and stay.
pub fn sweep_beside(path: &Path) {
    let Ok(path) = pointed_to(path) else { return };
    let start = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let is_partial = |name: &str| {
        let process = name.strip_prefix(&start).and_then(|rest| rest.strip_suffix(ENDING));
        process.is_some_and(|process| process.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let Ok(entries) = fs::read_dir(folder_of(&path)) else { return };
    for entry in entries.flatten().filter(|entry| is_partial(&entry.file_name().to_string_lossy())) {
        let abandoned =
            File::options().write(true).open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if abandoned {
            // It is only in the way; whoever may remove it will.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The right to write to a place, held until dropped or until the process ends.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    _file: File,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Still locked: who opened it meanwhile sees that it is gone, and begins again.
        let _ = fs::remove_file(&self.path);
    }
}

/// Claims what the lock file `path` stands for; `None` if another process has it. The file is removed in the end.
///
/// # Errors
/// If the lock file cannot be created or locked.
pub fn claim(path: &Path) -> io::Result<Option<Claim>> {
    loop {
        let Some(file) = try_lock(path)? else { return Ok(None) };
        if is_at(&file, path) {
            return Ok(Some(Claim { path: path.to_owned(), _file: file }));
        }
    }
}

/// Claims the file `path` for writing, by a hidden lock file beside it; `None` if another process has it.
///
/// # Errors
/// If the lock file cannot be created or locked.
pub fn claim_file(path: &Path) -> io::Result<Option<Claim>> {
    let path = pointed_to(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    claim(&path.with_file_name(format!(".{name}.lock")))
}

/// Whether `file` is still what is found at `path`, and was not removed by another process.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let place = |found: fs::Metadata| (found.dev(), found.ino());
        file.metadata().map(place).ok() == fs::metadata(path).map(place).ok()
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Takes the lock `path`, held until dropped or until the process ends; `None` if held elsewhere.
///
/// # Errors
/// If the lock file cannot be created or locked.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether `path` exists and is neither a file nor a folder, or names a file that is already open, such as
/// `/dev/stdout`.
fn is_special(path: &Path) -> bool {
    let open = |path: &Path| path.starts_with("/proc") || path.starts_with("/dev/fd");
    open(path)
        || fs::read_link(path).is_ok_and(|target| open(&target))
        || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Follows symbolic links to their end; `path` itself if it is not a link. The target need not exist yet.
fn pointed_to(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // Operating systems follow about as many links.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("a cycle of symbolic links"))
}

/// A path beside `path` that no other process on this machine writes to.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}{ENDING}", std::process::id()))
}

/// Whether a file of this name was left behind by a process killed while writing.
pub fn is_leftover(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(ENDING)
}

/// Removes the partial files of killed processes in `folder` and below. The caller must hold the lock.
///
/// # Errors
/// If something cannot be read or removed.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sweep(&entry.path())?;
        } else if is_leftover(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Syncs the folder, so that the rename survives a crash. Not every system can sync a folder; the file is complete
/// either way.
fn sync_folder(path: &Path) {
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
}

/// The folder that `path` is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_that_fails_half_way_leaves_the_old_one_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.tsv");
        write_aside(&path, |out| out.write_all(b"first")).unwrap();
        let failed = write_aside(&path, |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names_in(folder.path()), ["rules.tsv"]);
    }

    #[test]
    #[cfg(unix)]
    fn links_and_pipes_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let [link, second, file, pipe] =
            ["link", "second", "file", "pipe"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("second", &link).unwrap();
        std::os::unix::fs::symlink("file", &second).unwrap();
        for text in ["new", "changed"] {
            check(&link).unwrap();
            write_aside(&link, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        check(&pipe).unwrap();
        write_aside(&pipe, |out| out.write_all(b"through")).unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(!fs::metadata(&pipe).unwrap().is_file());
    }

    #[test]
    fn partial_files_of_dead_processes_are_removed_and_those_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for dead in [".c.tsv.17.partial", ".c.tsv.tsv.17.partial", ".c.tsv.x.partial", ".d.tsv.17.partial"] {
            fs::write(at(dead), "half").unwrap();
        }
        let alive = create_locked(&at(".c.tsv.18.partial")).unwrap();
        check(&at("c.tsv")).unwrap();
        let mut left = names_in(folder.path());
        left.sort();
        assert_eq!(
            left,
            [".c.tsv.18.partial", ".c.tsv.tsv.17.partial", ".c.tsv.x.partial", ".d.tsv.17.partial"]
        );
        drop(alive);
        sweep_beside(&at("c.tsv"));
        assert!(!at(".c.tsv.18.partial").exists());
    }

    #[test]
    fn a_place_is_claimed_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let first = claim_file(&path).unwrap().unwrap();
        assert!(claim_file(&path).unwrap().is_none());
        drop(first);
        assert!(claim_file(&path).unwrap().is_some());
        assert!(names_in(folder.path()).is_empty());
        // Many at once: never two at a time, and nobody fails.
        let (inside, claimed) =
            (std::sync::atomic::AtomicUsize::new(0), std::sync::atomic::AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Some(_claim) = claim_file(&path).unwrap() else { continue };
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        claimed.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(claimed.into_inner() > 0);
    }

    #[test]
    fn what_a_killed_process_left_is_swept_out_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("checkpoints");
        fs::create_dir(&inner).unwrap();
        for path in [folder.path().join("rules.tsv"), inner.join("walker.partial")] {
            fs::write(beside(&path), "half").unwrap();
            fs::write(path, "whole").unwrap();
        }
        sweep(folder.path()).unwrap();
        assert_eq!(names_in(&inner), ["walker.partial"]);
        assert_eq!(names_in(folder.path()).len(), 2);
    }
}
