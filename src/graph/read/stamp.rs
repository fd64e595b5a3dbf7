//! Whether the files of a data set are still those that something was derived from.
//!
//! A [`stamp`] is taken over all bytes. A [`glance`] only asks the file system, as git does for the files of a working
//! tree: whoever has both can do without reading the files while the glance stays the same.

use super::{ReadOptions, files_of, part_called};
use crate::graph::mapped::sum_of;
use crate::graph::{GraphError, SplitShares};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Files that changed less than this long ago may change again without a new time of change: file systems count in
/// steps of up to two seconds, and the clock of a file server may be off by more. Chosen by hand.
const SETTLED: Duration = Duration::from_secs(60);

/// How many bytes of a file are read and summed at a time: they are still in the cache when they are summed.
const SUMMED_AT_ONCE: usize = 1 << 16;

/// A fingerprint of the files at `path` and of the options they are read with. It tells whether something derived
/// from this data is still up to date, at the cost of reading all bytes.
///
/// # Errors
/// If a file cannot be read.
pub fn stamp(path: &Path, options: &ReadOptions) -> Result<String, GraphError> {
    let (files, mut sum) = files_and_options(path, options)?;
    let mut block = vec![0; SUMMED_AT_ONCE];
    for file in files {
        sum = sum_of(name(&file).as_bytes(), sum);
        sum = sum_of_file(&file, sum, &mut block).map_err(GraphError::reading(&file))?;
    }
    Ok(format!("{sum:016x}"))
}

/// A fingerprint of what the file system says about the same files: device, inode, size, and the times of the last
/// changes, of which one cannot be set by programs. While it stays the same, so does the [`stamp`].
///
/// `None` if it cannot vouch for that: a file changed in the last minute, so that its next change might have the same
/// time, a file cannot be found, or the system does not tell enough.
pub fn glance(path: &Path, options: &ReadOptions) -> Option<String> {
    glance_at(path, options, SystemTime::now())
}

fn glance_at(path: &Path, options: &ReadOptions, now: SystemTime) -> Option<String> {
    let (files, mut sum) = files_and_options(path, options).ok()?;
    for file in files {
        sum = sum_of(name(&file).as_bytes(), sum);
        sum = sum_of(&identity(&file.metadata().ok()?, now)?, sum);
    }
    Some(format!("{sum:016x}"))
}

/// The files that are read for a data set, and the sum of the options that matter.
fn files_and_options(path: &Path, options: &ReadOptions) -> Result<(Vec<PathBuf>, u64), GraphError> {
    let (files, options) = match path.is_dir() {
        // A folder is not divided, so these options do not matter.
        true => (
            files_of(path)?.into_iter().filter(|path| part_called(path).is_some()).collect(),
            ReadOptions { shares: SplitShares::default(), seed: 0, ..options.clone() },
        ),
        false => (vec![path.to_owned()], options.clone()),
    };
    Ok((files, sum_of(format!("{options:?}").as_bytes(), 0)))
}

fn name(file: &Path) -> std::borrow::Cow<'_, str> {
    file.file_name().unwrap_or_default().to_string_lossy()
}

/// What tells a file from any other, and from itself after a change; `None` if it changed just now.
#[cfg(unix)]
fn identity(file: &Metadata, now: SystemTime) -> Option<Vec<u8>> {
    use std::os::unix::fs::MetadataExt;
    let since = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.checked_sub(SETTLED)?;
    let settled = |seconds: i64| seconds < since.as_secs() as i64;
    let numbers = [
        file.dev(),
        file.ino(),
        file.size(),
        file.mtime() as u64,
        file.mtime_nsec() as u64,
        file.ctime() as u64,
        file.ctime_nsec() as u64,
    ];
    let settled = settled(file.mtime()) && settled(file.ctime());
    settled.then(|| numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}

/// Elsewhere, programs can set every time that a file has.
#[cfg(not(unix))]
fn identity(_: &Metadata, _: SystemTime) -> Option<Vec<u8>> {
    None
}

fn sum_of_file(path: &Path, mut sum: u64, block: &mut [u8]) -> io::Result<u64> {
    let mut file = File::open(path)?;
    loop {
        // Blocks are full up to the last one, however much the system returns at a time.
        let mut filled = 0;
        while filled < block.len() {
            match file.read(&mut block[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if filled == 0 {
            return Ok(sum);
        }
        sum = sum_of(&block[..filled], sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_glance_sees_every_change_that_is_not_too_recent_to_be_seen() {
        let folder = tempfile::tempdir().unwrap();
        let train = folder.path().join("train.txt");
        std::fs::write(&train, "a\tb\tc\n").unwrap();
        let options = ReadOptions::default();
        let later = SystemTime::now() + 2 * SETTLED;
        let look = || glance_at(folder.path(), &options, later);
        assert_eq!(glance(folder.path(), &options), None, "it was written just now");
        assert_eq!(glance_at(folder.path(), &options, later - 4 * SETTLED), None, "the clock is behind");
        let before = look();
        assert!(before.is_some());
        std::fs::write(folder.path().join("notes.md"), "no data").unwrap();
        assert_eq!(look(), before);
        let header = ReadOptions { header: Some(true), ..options.clone() };
        assert_ne!(glance_at(folder.path(), &header, later), before);

        // Other bytes of the same length, with the old time of modification.
        let modified = train.metadata().unwrap().modified().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&train, "a\tb\td\n").unwrap();
        File::options().write(true).open(&train).unwrap().set_modified(modified).unwrap();
        assert_eq!(train.metadata().unwrap().modified().unwrap(), modified);
        let changed = look();
        assert!(changed.is_some() && changed != before);

        // Another file in its place.
        let aside = folder.path().join("aside");
        std::fs::write(&aside, "a\tb\td\n").unwrap();
        std::fs::rename(&aside, &train).unwrap();
        let replaced = look();
        assert!(replaced.is_some() && replaced != changed);
        std::fs::write(folder.path().join("valid.txt"), "").unwrap();
        assert_ne!(look(), replaced);
        assert_eq!(glance_at(&folder.path().join("nowhere"), &options, later), None);
    }
}
