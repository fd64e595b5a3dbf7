//! Sorted blocks of missing facts on disk, and how they are merged.
//!
//! A block holds the results of some queries. It is written atomically, so that a resumed run finds the finished
//! blocks and computes only the others. Merging opens a bounded number of blocks at once, in several rounds if
//! needed, and reads them line by line: memory does not grow with the number of facts.

use super::row::{Rank, RankedFact};
use crate::aside::write_aside;
use crate::ask::AskError;
use crate::run::{Checksum, RunError};
use crate::shard::Merge;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Blocks that are read at once.
const AT_ONCE: usize = 64;
/// The file with the checksum of the blocks' inputs.
const MADE_FROM: &str = "made_from";

/// The blocks beside a file that is being made.
pub struct Blocks {
    folder: PathBuf,
}

impl Blocks {
    /// The blocks for the file `out`, made from `inputs`; blocks made from other inputs are stale and are
    /// removed.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn beside(out: &Path, inputs: &Checksum) -> Result<Self, RunError> {
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        let folder = out.with_file_name(format!("{name}.blocks"));
        let text = serde_json::to_string(inputs).expect("a checksum is plain data");
        let made_from = folder.join(MADE_FROM);
        if std::fs::read_to_string(&made_from).is_ok_and(|before| before == text) {
            return Ok(Self { folder });
        }
        if made_from.exists() {
            std::fs::remove_dir_all(&folder).map_err(RunError::writing(&folder))?;
        }
        std::fs::create_dir_all(&folder).map_err(RunError::writing(&folder))?;
        write_aside(&made_from, |out| out.write_all(text.as_bytes()))
            .map_err(RunError::writing(&made_from))?;
        Ok(Self { folder })
    }

    fn file(&self, block: u64) -> PathBuf {
        self.folder.join(format!("block-{block:08}.jsonl"))
    }

    /// Whether a block is finished.
    pub fn has(&self, block: u64) -> bool {
        self.file(block).exists()
    }

    /// Writes a block whose rows are sorted.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, block: u64, rows: &[RankedFact]) -> Result<(), RunError> {
        let path = self.file(block);
        write_rows(&path, rows.iter().cloned().map(Ok)).map_err(RunError::writing(&path))
    }

    /// The ranks of a finished block, in their order.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn ranks(&self, block: u64) -> Result<Vec<Rank>, RunError> {
        let path = self.file(block);
        let read =
            || -> io::Result<Vec<Rank>> { Rows::open(&path)?.map(|row| row.map(|row| row.0)).collect() };
        read().map_err(RunError::reading(&path))
    }

    /// All rows of the blocks in their order, `most` at most, handed to `take`.
    ///
    /// # Errors
    /// If a block cannot be read, or `take` fails.
    pub fn merged<T>(
        &self,
        blocks: &[u64],
        most: usize,
        take: impl FnOnce(&mut dyn Iterator<Item = io::Result<RankedFact>>) -> Result<T, AskError>,
    ) -> Result<T, AskError> {
        let mut files: Vec<PathBuf> = blocks.iter().map(|&block| self.file(block)).collect();
        let mut round = 0;
        while files.len() > AT_ONCE {
            let joined: Result<Vec<PathBuf>, RunError> = files
                .chunks(AT_ONCE)
                .enumerate()
                .map(|(at, group)| {
                    let path = self.folder.join(format!("merged-{round}-{at:08}.jsonl"));
                    let written = merged(group).and_then(|rows| write_rows(&path, rows.take(most)));
                    written.map_err(RunError::writing(&path)).map(|()| path)
                })
                .collect();
            files = joined?;
            round += 1;
        }
        take(&mut merged(&files).map_err(RunError::reading(&self.folder))?.take(most))
    }

    /// Removes the folder, once the file is complete.
    ///
    /// # Errors
    /// If that cannot be done.
    pub fn remove(self) -> Result<(), RunError> {
        std::fs::remove_dir_all(&self.folder).map_err(RunError::writing(&self.folder))
    }
}

fn write_rows(path: &Path, rows: impl Iterator<Item = io::Result<RankedFact>>) -> io::Result<()> {
    write_aside(path, |out| {
        for row in rows {
            serde_json::to_writer(&mut *out, &row?)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// The rows of one file.
struct Rows(BufReader<File>);

impl Rows {
    fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(|file| Self(BufReader::new(file)))
    }
}

impl Iterator for Rows {
    type Item = io::Result<RankedFact>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).map_err(io::Error::from)),
            Err(error) => Some(Err(error)),
        }
    }
}

/// The rows of several sorted files, merged.
fn merged(paths: &[PathBuf]) -> io::Result<impl Iterator<Item = io::Result<RankedFact>>> {
    let files: io::Result<Vec<Rows>> = paths.iter().map(|path| Rows::open(path)).collect();
    Ok(Merge::new(files?, |row: &RankedFact| row.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::complete::row::MissingFact;
    use crate::ask::{Probability, Reason};
    use proptest::prelude::*;

    fn row(probability: u8, id: u32) -> RankedFact {
        let probability = Some(f64::from(probability) / 10.0);
        let fact = MissingFact {
            head: format!("h{id}"),
            relation: "r".to_owned(),
            tail: "t".to_owned(),
            head_label: String::new(),
            tail_label: String::new(),
            probability: Probability(probability),
            score: 0.25,
            reason: Reason {
                from: String::new(),
                from_id: String::new(),
                path: Vec::new(),
                rule: None,
                propagator: None,
            },
            words: "why".to_owned(),
            held_out: None,
        };
        RankedFact(Rank { probability, score: 0.25, ids: [0, id, 0] }, fact)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn merging_is_sorting_all_at_once(
            seen in prop::collection::vec(prop::collection::vec(0u8..10, 0..6), 0..150),
            most in 0usize..40,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let blocks = Blocks::beside(&folder.path().join("facts.tsv"), &Checksum::of(&1)).unwrap();
            let mut all: Vec<RankedFact> = Vec::new();
            for (block, seen) in seen.iter().enumerate() {
                let from = all.len() as u32;
                let mut rows: Vec<RankedFact> = seen.iter().zip(from..).map(|(&share, id)| row(share, id)).collect();
                rows.sort_by_key(|row| row.0);
                blocks.write(block as u64, &rows).unwrap();
                prop_assert_eq!(blocks.ranks(block as u64).unwrap().len(), rows.len());
                all.extend(rows);
            }
            all.sort_by_key(|row| row.0);
            all.truncate(most);
            let numbers: Vec<u64> = (0..seen.len() as u64).collect();
            let merged: Vec<RankedFact> = blocks
                .merged(&numbers, most, |rows| Ok(rows.collect::<io::Result<_>>().unwrap()))
                .unwrap();
            prop_assert_eq!(merged, all);
        }
    }

    #[test]
    fn blocks_of_other_inputs_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("facts.tsv");
        let begun = |inputs: u32| Blocks::beside(&out, &Checksum::of(&inputs)).unwrap();
        begun(1).write(3, &[row(5, 1)]).unwrap();
        assert!(begun(1).has(3) && !begun(1).has(2));
        assert!(!begun(2).has(3));
        begun(2).remove().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_block_is_an_error_and_not_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = Blocks::beside(&folder.path().join("facts.tsv"), &Checksum::of(&1)).unwrap();
        blocks.write(0, &[row(5, 1), row(4, 2)]).unwrap();
        let text = std::fs::read_to_string(blocks.file(0)).unwrap();
        std::fs::write(blocks.file(0), &text[..text.len() - 9]).unwrap();
        let read = blocks.merged(&[0], 9, |rows| Ok(rows.collect::<Vec<_>>())).unwrap();
        assert_eq!(read.len(), 2);
        assert!(read[0].is_ok() && read[1].is_err());
    }
}
