//! Files that are whole or not there: written beside their place, brought to the disk, then renamed.
//!
//! Every room may use this module; it knows none of them.

use std::fs::{self, File};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};

const ENDING: &str = ".partial";

/// Lets `fill` write a file beside `path`, then puts it in its place: nobody ever sees half of it.
///
/// # Errors
/// If `fill` fails or the system says no. Nothing is left of it then, and what stood at `path` stands there still.
pub fn write_aside(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let aside = beside(path);
    let written = File::create(&aside).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        fill(&mut out)?;
        out.into_inner().map_err(IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&aside, path)
    });
    match written {
        Ok(()) => sync_folder(path),
        // The half-written file is of no use to anyone; if it cannot be removed either, the first error tells more.
        Err(_) => drop(fs::remove_file(&aside)),
    }
    written
}

/// A place beside `path` that no other process writes to.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}{ENDING}", std::process::id()))
}

/// Whether a file of this name is what a killed process was about to write.
pub fn is_leftover(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(ENDING)
}

/// Takes away what killed processes left in `folder` and below. Only for one who knows that nobody else is writing there.
///
/// # Errors
/// If something cannot be looked at or removed.
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

/// Brings a renamed file's new name to the disk. Not every system can do so for a folder; the file is whole without.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
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
