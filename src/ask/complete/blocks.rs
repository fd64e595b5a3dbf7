//! Sorted blocks of missing facts on disk, and how they are merged.
//!
//! A block holds the results of some queries. It is a file like a part of a shared job ([`crate::shard`]), with the same
//! checksum: a resumed run finds the finished blocks and computes the others, and those that were damaged, again. Merging
//! opens a bounded number of blocks at once, in several rounds if needed, and reads them line by line: memory does not
//! grow with the number of facts.

use super::kept::{HeldOutFacts, Kept};
use super::row::{Rank, RankedFact};
use crate::aside::write_aside;
use crate::ask::AskError;
use crate::run::{Checksum, RunError};
use crate::shard::{Header, Merge, Part, RowWriter, Shard, ShardError, ShardKind, write_part};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};

/// Blocks that are read at once.
const AT_ONCE: usize = 64;
/// The file with the checksum of the blocks' inputs.
const MADE_FROM: &str = "made_from";

/// The blocks beside a file that is being made.
pub(crate) struct Blocks {
    folder: PathBuf,
    kind: ShardKind,
    /// The checksum of what they are made from.
    inputs: String,
}

impl Blocks {
    /// The blocks for the file `out`, made from `inputs`; blocks made from other inputs are stale and are
    /// removed.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn beside(out: &Path, inputs: &Checksum) -> Result<Self, RunError> {
        Self::of_kind(ShardKind::Facts, out, inputs)
    }

    /// The same for rows of any kind.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn of_kind(kind: ShardKind, out: &Path, inputs: &Checksum) -> Result<Self, RunError> {
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        let folder = out.with_file_name(format!("{name}.blocks"));
        let text = inputs.to_string();
        let made_from = folder.join(MADE_FROM);
        if std::fs::read_to_string(&made_from).is_ok_and(|before| before == text) {
            return Ok(Self { folder, kind, inputs: text });
        }
        if made_from.exists() {
            std::fs::remove_dir_all(&folder).map_err(RunError::writing(&folder))?;
        }
        std::fs::create_dir_all(&folder).map_err(RunError::writing(&folder))?;
        write_aside(&made_from, |out| out.write_all(text.as_bytes()))
            .map_err(RunError::writing(&made_from))?;
        Ok(Self { folder, kind, inputs: text })
    }

    fn file(&self, block: u64) -> PathBuf {
        self.folder.join(format!("block-{block:08}.shard"))
    }

    /// The header of a block: a block of other inputs, or with another number, is not this one.
    fn header(&self, block: u64) -> Header {
        Header::new(self.kind, Shard::WHOLE, block, self.inputs.clone(), &"block")
    }

    /// Writes a block whose rows are sorted.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, block: u64, rows: &[RankedFact]) -> Result<(), ShardError> {
        write_rows(&self.file(block), &self.header(block), rows.iter().map(Ok))
    }

    /// Writes a block whose rows keep their order.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write_rows<R: Serialize>(&self, block: u64, rows: &[R]) -> Result<(), ShardError> {
        let write = |out: &mut RowWriter<'_>| rows.iter().try_for_each(|row| out.row(row));
        write_part(&self.file(block), &self.header(block), write).map(drop)
    }

    /// Whether a block is finished and undamaged.
    pub(crate) fn has<R: DeserializeOwned>(&self, block: u64) -> bool {
        Part::open(&self.file(block))
            .is_ok_and(|part| *part.header() == self.header(block) && part.rows::<R>().all(|row| row.is_ok()))
    }

    /// The rows of a finished block, in their order.
    pub(crate) fn rows<R: DeserializeOwned>(
        &self,
        block: u64,
    ) -> impl Iterator<Item = io::Result<R>> + use<R> {
        let (rows, failed) = match Part::open(&self.file(block)) {
            Ok(part) => (Some(part.rows::<R>().map(|row| row.map_err(io::Error::other))), None),
            Err(error) => (None, Some(Err(io::Error::other(error)))),
        };
        failed.into_iter().chain(rows.into_iter().flatten())
    }

    /// The ranks of the facts of a finished block that are shown, in their order; `None` if it is missing or damaged and has
    /// to be made again.
    pub(crate) fn ranks(&self, block: u64, held_out: HeldOutFacts) -> Option<Vec<Rank>> {
        let part = Part::open(&self.file(block)).ok()?;
        if *part.header() != self.header(block) {
            return None;
        }
        let shown = |row: &RankedFact| held_out.shows(row.1.held_out);
        let rows: Option<Vec<RankedFact>> = part.rows().map(Result::ok).collect();
        Some(rows?.iter().filter(|row| shown(row)).map(|row| row.0).collect())
    }

    /// The rows of the blocks that are `kept`, in their order, handed to `take`.
    ///
    /// # Errors
    /// If a block cannot be read, or `take` fails.
    pub(crate) fn merged<T>(
        &self,
        blocks: &[u64],
        kept: Kept,
        take: impl FnOnce(&mut dyn Iterator<Item = io::Result<RankedFact>>) -> Result<T, AskError>,
    ) -> Result<T, AskError> {
        let mut files: Vec<PathBuf> = blocks.iter().map(|&block| self.file(block)).collect();
        let mut round = 0;
        while files.len() > AT_ONCE {
            let joined: Result<Vec<PathBuf>, ShardError> = files
                .chunks(AT_ONCE)
                .enumerate()
                .map(|(at, group)| {
                    let path = self.folder.join(format!("merged-{round}-{at:08}.shard"));
                    write_rows(&path, &self.header(at as u64), kept.of(merged(group)?))?;
                    Ok(path)
                })
                .collect();
            files = joined?;
            round += 1;
        }
        take(&mut kept.of(merged(&files)?))
    }

    /// Removes the folder, once the file is complete.
    ///
    /// # Errors
    /// If that cannot be done.
    pub(crate) fn remove(self) -> Result<(), RunError> {
        std::fs::remove_dir_all(&self.folder).map_err(RunError::writing(&self.folder))
    }
}

fn write_rows<R: std::borrow::Borrow<RankedFact>>(
    path: &Path,
    header: &Header,
    mut rows: impl Iterator<Item = io::Result<R>>,
) -> Result<(), ShardError> {
    write_part(path, header, |out| rows.try_for_each(|row| out.row(row?.borrow()))).map(drop)
}

/// The rows of several sorted files, merged.
fn merged(paths: &[PathBuf]) -> Result<impl Iterator<Item = io::Result<RankedFact>>, ShardError> {
    let rows = |path: &PathBuf| {
        let part = Part::open(path)?;
        // The message names the block, and the next attempt makes it again.
        Ok(part.rows::<RankedFact>().map(|row| row.map_err(io::Error::other)))
    };
    let files: Result<Vec<_>, ShardError> = paths.iter().map(rows).collect();
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
            reason: Reason::default(),
            typical: None,
            because: Vec::new(),
            words: "why".to_owned(),
            held_out: None,
            probability_rough: false,
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
                prop_assert_eq!(blocks.ranks(block as u64, HeldOutFacts::Show).unwrap().len(), rows.len());
                all.extend(rows);
            }
            all.sort_by_key(|row| row.0);
            all.truncate(most);
            let numbers: Vec<u64> = (0..seen.len() as u64).collect();
            let merged: Vec<RankedFact> = blocks
                .merged(&numbers, Kept { held_out: HeldOutFacts::Show, most }, |rows| Ok(rows.collect::<io::Result<_>>().unwrap()))
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
        assert!(
            begun(1).ranks(3, HeldOutFacts::Show).is_some()
                && begun(1).ranks(2, HeldOutFacts::Show).is_none()
        );
        // Nor does a block that got the name of another one.
        std::fs::copy(begun(1).file(3), begun(1).file(2)).unwrap();
        assert!(begun(1).ranks(2, HeldOutFacts::Show).is_none());
        assert!(begun(2).ranks(3, HeldOutFacts::Show).is_none());
        begun(2).remove().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_block_does_not_count_and_is_no_end_of_rows() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = Blocks::beside(&folder.path().join("facts.tsv"), &Checksum::of(&1)).unwrap();
        blocks.write(0, &[row(5, 1), row(4, 2)]).unwrap();
        let text = std::fs::read_to_string(blocks.file(0)).unwrap();
        let row_of_4 = text.rfind("0.4").unwrap();
        let damaged = [
            String::new(),
            text[..text.len() / 2].to_owned(),
            text[..row_of_4].to_owned() + "0.6" + &text[row_of_4 + 3..],
        ];
        for damaged in damaged {
            std::fs::write(blocks.file(0), damaged).unwrap();
            assert_eq!(blocks.ranks(0, HeldOutFacts::Show).map(|ranks| ranks.len()), None);
            let read = blocks.merged(&[0], Kept { held_out: HeldOutFacts::Show, most: 9 }, |mut rows| {
                Ok(Iterator::any(&mut rows, |row| row.is_err()))
            });
            assert!(read.unwrap_or(true));
        }
        std::fs::write(blocks.file(0), text).unwrap();
        assert_eq!(blocks.ranks(0, HeldOutFacts::Show).map(|ranks| ranks.len()), Some(2));
    }
}
