//! The checksums of a data set's files, which the program writes beside the splits: files of two sets are not taken for one.
//!
//! `splits.sha256` has the form of `sha256sum`, whose `--check` reads it too. A folder without it is read as it is, and so
//! are files that it does not list.
//!
//! A reader takes the sums before it lists the folder and compares them after it has read the files.
//! [`Staged`](super::staged::Staged) puts new sums in their place when the old training split is gone, before all other
//! files, and the new training split last. So a reader to whom any new file was shown finds other sums at the end than at
//! the beginning, unless all files were new.

use super::GraphError;
use super::read::{files_of, part_of};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The name of the file.
pub(super) const SUMS: &str = "splits.sha256";

/// The checksums in a folder, as they were before its files were read.
pub(super) struct Sums {
    path: PathBuf,
    text: Option<String>,
}

impl Sums {
    /// Those of `folder`.
    ///
    /// # Errors
    /// If there are some that cannot be read.
    pub(super) fn of(folder: &Path) -> Result<Self, GraphError> {
        let path = folder.join(SUMS);
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(GraphError::reading(&path)(error)),
        };
        Ok(Self { path, text })
    }

    /// Checks that the files whose part of a data set `is_read` are those that the sums were written with.
    ///
    /// # Errors
    /// If a file is another or missing, if the folder was replaced meanwhile, or if the sums are not in their form.
    pub(super) fn check(&self, is_read: impl Fn(&str) -> bool) -> Result<(), GraphError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        if Self::of(folder)?.text != self.text {
            let folder = folder.display();
            return Err(GraphError::Data(format!("{folder}: was replaced while it was read; read it again")));
        }
        for (line, number) in self.text.iter().flat_map(|text| text.lines()).zip(1..) {
            let Some((sum, name)) = parse(line) else {
                let expected = "a SHA-256 sum, two spaces and the name of a file in this folder";
                return Err(GraphError::line(&self.path, number, expected, line));
            };
            let path = folder.join(name);
            if !part_of(&path).is_some_and(&is_read) {
                continue;
            }
            let found = match sum_of(&path) {
                Ok(found) if found == sum => continue,
                Ok(_) => "another one",
                Err(error) if error.kind() == io::ErrorKind::NotFound => "none",
                Err(error) => return Err(GraphError::reading(&path)(error)),
            };
            let expected = format!("the file that {SUMS} was written with");
            let remedy = format!("{found} (remove {SUMS} if you changed the data set yourself)");
            return Err(GraphError::file(&path, expected, remedy));
        }
        Ok(())
    }
}

/// The sum and the name on a line.
fn parse(line: &str) -> Option<(&str, &str)> {
    let (sum, name) = line.split_once("  ")?;
    let is_sum = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_sum && !name.is_empty() && !name.contains(['/', '\\'])).then_some((sum, name))
}

/// Writes the sums of the data set's files in `folder` beside them.
///
/// # Errors
/// If a file cannot be read, or the sums cannot be written.
pub(super) fn write(folder: &Path) -> Result<(), GraphError> {
    let mut text = String::new();
    for path in files_of(folder)? {
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|_| part_of(&path).is_some()) {
            text += &format!("{}  {name}\n", sum_of(&path).map_err(GraphError::reading(&path))?);
        }
    }
    let path = folder.join(SUMS);
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(GraphError::writing(&path))
}

fn sum_of(path: &Path) -> io::Result<String> {
    let (mut file, mut sum) = (File::open(path)?, Sha256::new());
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            length => sum.update(&piece[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::staged::Staged;
    use crate::{ReadOptions, read, read_known};

    const NAMES: [&str; 3] = ["test.tsv", "train.tsv", "valid.tsv"];

    fn stage(folder: &Path, entity: &str) -> Staged {
        let staged = Staged::within(folder).unwrap();
        for name in NAMES {
            fs::write(staged.path().join(name), format!("{entity}\tr\tb\n")).unwrap();
        }
        staged
    }

    #[track_caller]
    fn refused(folder: &Path, reported: &str) {
        let message = read(folder, &ReadOptions::default()).unwrap_err().to_string();
        assert_eq!(message.replace(&folder.display().to_string(), "set"), reported);
    }

    #[test]
    fn a_set_with_a_file_of_another_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        stage(&one, "a").commit(|_| false).unwrap();
        stage(&two, "c").commit(|_| false).unwrap();
        for name in NAMES {
            let own = fs::read(one.join(name)).unwrap();
            fs::copy(two.join(name), one.join(name)).unwrap();
            refused(
                &one,
                &format!(
                    "set/{name}: expected the file that splits.sha256 was written with, found another one \
                     (remove splits.sha256 if you changed the data set yourself)"
                ),
            );
            fs::write(one.join(name), own).unwrap();
            read(&one, &ReadOptions::default()).unwrap();
        }
        // What is not read is not opened, not even for its checksum.
        fs::copy(two.join("test.tsv"), one.join("test.tsv")).unwrap();
        read_known(&one, &ReadOptions::default()).unwrap();
        fs::remove_file(one.join("test.tsv")).unwrap();
        let incomplete = ReadOptions { incomplete: true, ..ReadOptions::default() };
        let message = read(&one, &incomplete).unwrap_err().to_string();
        assert!(message.contains("test.tsv: expected the file that splits.sha256"), "{message}");
        // Without sums it is the user's own.
        fs::remove_file(one.join(SUMS)).unwrap();
        read(&one, &incomplete).unwrap();
        // Files that were added are, too; and a new set has new sums.
        fs::write(two.join("entity_labels.tsv"), "c\tCarl\n").unwrap();
        assert_eq!(read(&two, &ReadOptions::default()).unwrap().names.labels.len(), 1);
        stage(&two, "d").commit(|_| false).unwrap();
        read(&two, &ReadOptions::default()).unwrap();
        fs::write(two.join(SUMS), "what?\n").unwrap();
        refused(
            &two,
            "set/splits.sha256:1: expected a SHA-256 sum, two spaces and the name of a file in this folder, found what?",
        );
    }

    #[test]
    fn a_folder_that_is_replaced_while_it_is_read_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        for name in NAMES {
            fs::write(folder.path().join(name), "a\tr\tb\n").unwrap();
        }
        let before = Sums::of(folder.path()).unwrap();
        before.check(|_| true).unwrap();
        stage(folder.path(), "c").commit(|_| false).unwrap();
        let message = before.check(|_| true).unwrap_err().to_string();
        assert!(message.ends_with(": was replaced while it was read; read it again"), "{message}");
        Sums::of(folder.path()).unwrap().check(|_| true).unwrap();
    }
}
