//! Mining in parts, from an index that all parts share.

use super::{ShardReport, rules_header, unless_there};
use crate::aside::try_lock;
use crate::ask::AskError;
use crate::graph::Dataset;
use crate::progress::Progress;
use crate::rule::{IndexSource, MineOptions, MiningIndex, RuleError, write_rule_shard};
use crate::run::{Checksum, RunError};
use crate::shard::Shard;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a process waits before it checks again whether another has made the index.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The data that an index is made from, as one process sees it.
pub trait IndexedData {
    /// What can fail.
    type Error: From<AskError>;

    /// A [`glance`](crate::graph::glance) at the files, if one can be trusted.
    fn glance(&self) -> Option<String>;

    /// The [`stamp`](crate::graph::stamp) of the files.
    ///
    /// # Errors
    /// If they cannot be read.
    fn stamp(&self) -> Result<String, Self::Error>;

    /// The data, and what to mine in it.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self) -> Result<(Dataset, MineOptions), Self::Error>;
}

/// What becomes of a file that is not the index that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is an error: the user named the file, which may be of use elsewhere.
    Refused,
    /// It is made again: the program named the file.
    Replaced,
}

/// The index at `path` of `data`. If there is none, it is built. Of several processes that need it, one builds it and
/// the others wait.
///
/// # Errors
/// If the data cannot be read, the index cannot be read or written or is of other data and not to be replaced, or the
/// user interrupts.
pub fn mining_index<D: IndexedData>(
    path: &Path,
    data: &D,
    unfit: Unfit,
    progress: &dyn Progress,
) -> Result<MiningIndex, D::Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lock = path.with_file_name(format!(".{name}.lock"));
    let found = || {
        let index = path.exists().then(|| open(path, data))?;
        (index.is_ok() || unfit == Unfit::Refused).then_some(index)
    };
    loop {
        if let Some(index) = found() {
            return index;
        }
        let held = try_lock(&lock).map_err(|error| cannot_lock(&lock, error))?;
        if held.is_some() {
            // Another process may have made it before the lock was free.
            if let Some(index) = found() {
                return index;
            }
            make(path, data, progress)?;
            if unfit == Unfit::Replaced {
                let path = path.display();
                progress
                    .note(&format_args!("{path}: the data, indexed for all parts; delete it after merging"));
            }
            // Waiting processes check for the index first, so the lock file is no longer needed.
            let _ = std::fs::remove_file(&lock);
            return MiningIndex::open(path).map_err(|error| AskError::from(error).into());
        }
        if progress.interrupted() {
            return Err(AskError::from(RunError::Interrupted).into());
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Opens the index and checks that it is of `data`, which is read only if a glance at it does not suffice.
fn open<D: IndexedData>(path: &Path, data: &D) -> Result<MiningIndex, D::Error> {
    let glance = data.glance();
    let index = MiningIndex::open(path).map_err(AskError::from)?;
    if !index.is_of(glance.as_deref()) {
        index.expect_stamp(&data.stamp()?).map_err(AskError::from)?;
    }
    Ok(index)
}

fn make<D: IndexedData>(path: &Path, data: &D, progress: &dyn Progress) -> Result<(), D::Error> {
    let glance = data.glance();
    let stamp = data.stamp()?;
    let (dataset, options) = data.read()?;
    // If the files changed while they were read, the glance is not of what was read.
    let glance = glance.filter(|before| data.glance().as_ref() == Some(before));
    write_mining_index(path, &IndexSource { stamp, glance }, &dataset, &options, progress)?;
    Ok(())
}

fn cannot_lock(path: &Path, source: std::io::Error) -> AskError {
    let path: PathBuf = path.to_owned();
    RuleError::Unwritable { path, source }.into()
}

/// Builds the index at `path` for mining `dataset` with `options`; `source` identifies the files it was read from.
///
/// # Errors
/// If the options are invalid or depend on the clock, the file cannot be written, or the user interrupts.
pub fn write_mining_index(
    path: &Path,
    source: &IndexSource,
    dataset: &Dataset,
    options: &MineOptions,
    progress: &dyn Progress,
) -> Result<(), AskError> {
    let Dataset { names, known, .. } = dataset;
    let data = Checksum::of_known(names, known).to_string();
    match MiningIndex::write(path, source, &data, names, &dataset.graph(), options, progress)? {
        true => Ok(()),
        false => Err(RunError::Interrupted.into()),
    }
}

/// As [`mine_shard`](super::mine_shard), with the data and the options of `index`.
///
/// # Errors
/// If the file cannot be written, or the user interrupts.
pub fn mine_indexed_shard(
    index: &MiningIndex,
    shard: Shard,
    out: &Path,
    progress: &dyn Progress,
) -> Result<ShardReport, AskError> {
    let header = rules_header(index.names(), index.data().to_owned(), index.options(), shard);
    unless_there(&header, out, |began| {
        let mined = index.mine_shard(shard, progress)?;
        if mined.mined.interrupted {
            return Err(RunError::Interrupted.into());
        }
        Ok(write_rule_shard(out, &header, &mined, index.names(), began.elapsed())?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ReadOptions, glance, read, stamp, write_dataset};
    use crate::progress::Silent;
    use crate::rule::{MiningBudget, RuleType, mine, write_rules};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Data in files.
    struct InFiles {
        path: PathBuf,
        options: MineOptions,
    }

    impl IndexedData for InFiles {
        type Error = AskError;

        fn glance(&self) -> Option<String> {
            glance(&self.path, &ReadOptions::default())
        }

        fn stamp(&self) -> Result<String, AskError> {
            Ok(stamp(&self.path, &ReadOptions::default())?)
        }

        fn read(&self) -> Result<(Dataset, MineOptions), AskError> {
            Ok((read(&self.path, &ReadOptions::default())?, self.options.clone()))
        }
    }

    /// Data that says of itself what it is.
    struct Named<'a> {
        stamp: &'a str,
        options: MineOptions,
        read: &'a AtomicUsize,
    }

    impl IndexedData for Named<'_> {
        type Error = AskError;

        fn glance(&self) -> Option<String> {
            None
        }

        fn stamp(&self) -> Result<String, AskError> {
            Ok(self.stamp.to_owned())
        }

        fn read(&self) -> Result<(Dataset, MineOptions), AskError> {
            self.read.fetch_add(1, Ordering::Relaxed);
            // The other processes arrive while the index is being built.
            std::thread::sleep(2 * BETWEEN_LOOKS);
            Ok((crate::generate::demonstration(), self.options.clone()))
        }
    }

    /// Data whose glances are given in advance, one after the other.
    struct Glanced<'a> {
        glances: Cell<&'a [&'a str]>,
        stamp: Option<&'a str>,
    }

    impl IndexedData for Glanced<'_> {
        type Error = AskError;

        fn glance(&self) -> Option<String> {
            let (first, rest) = self.glances.get().split_first()?;
            self.glances.set(rest);
            Some((*first).to_owned())
        }

        fn stamp(&self) -> Result<String, AskError> {
            Ok(self.stamp.expect("the data is not read").to_owned())
        }

        fn read(&self) -> Result<(Dataset, MineOptions), AskError> {
            let asked = options(MiningBudget::Samples(50), &[RuleType::Cyclic], 2, true);
            Ok((crate::generate::demonstration(), asked))
        }
    }

    fn options(budget: MiningBudget, types: &[RuleType], max_length: usize, distinct: bool) -> MineOptions {
        let types = types.to_vec();
        MineOptions { types, max_length, budget, distinct, ..MineOptions::default() }
    }

    #[test]
    fn parts_from_an_index_make_the_file_that_one_process_writes() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        write_dataset(&data, "tsv", &crate::generate::demonstration()).unwrap();
        let dataset = read(&data, &ReadOptions::default()).unwrap();
        let bytes = |path: &Path| std::fs::read(path).unwrap();
        let all = [RuleType::Cyclic, RuleType::Acyclic, RuleType::Zero];
        for (number, (options, counts)) in [
            (options(MiningBudget::Samples(3000), &all, 4, true), &[1, 2, 3, 7, 16][..]),
            (options(MiningBudget::Saturation, &all[..1], 3, true), &[3, 16]),
            (options(MiningBudget::Saturation, &all[..1], 4, false), &[2]),
        ]
        .into_iter()
        .enumerate()
        {
            let whole = folder.path().join("whole.tsv");
            let mined = mine(&dataset.graph(), &options, &Silent).unwrap();
            write_rules(&whole, &mined.rules, &dataset.names).unwrap();
            let path = folder.path().join(format!("{number}.index"));
            let in_files = InFiles { path: data.clone(), options: options.clone() };
            for &count in counts {
                let parts = (1..=count).map(|part| {
                    let index = mining_index(&path, &in_files, Unfit::Refused, &Silent).unwrap();
                    index.expect(&options).unwrap();
                    let out = folder.path().join(format!("{number}-{part}-{count}.shard"));
                    let shard = Shard::new(part, count).unwrap();
                    mine_indexed_shard(&index, shard, &out, &Silent).unwrap();
                    if count == 3 {
                        let alone = folder.path().join(format!("{number}-{part}-alone.shard"));
                        crate::ask::mine_shard(&dataset, &options, shard, &alone, &Silent).unwrap();
                        assert_eq!(
                            bytes(&out),
                            bytes(&alone),
                            "parts with and without an index can be mixed"
                        );
                    }
                    out
                });
                let parts: Vec<PathBuf> = parts.collect();
                let merged = folder.path().join("merged.tsv");
                crate::ask::merge(&parts, Some(&merged)).unwrap();
                assert_eq!(bytes(&merged), bytes(&whole), "{options:?}, {count} parts");
            }
        }
    }

    #[test]
    fn an_index_is_made_once_and_not_taken_for_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work.index");
        let asked = options(MiningBudget::Samples(500), &[RuleType::Cyclic], 3, true);
        let made = AtomicUsize::new(0);
        let named = |stamp, options: &MineOptions| Named { stamp, options: options.clone(), read: &made };
        let open = || mining_index(&path, &named("this data", &asked), Unfit::Refused, &Silent);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            all.into_iter().for_each(|one| drop(one.join().unwrap().unwrap()));
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(files.collect::<Vec<_>>(), ["work.index"]);

        let index = MiningIndex::open(&path).unwrap();
        let other = MineOptions { seed: 2, ..asked.clone() };
        let said = index.expect(&other).err().unwrap().to_string();
        assert!(said.contains("work.index: made with seed = 1, but now seed = 2; remove it"), "{said}");
        let open = |stamp, unfit| mining_index(&path, &named(stamp, &asked), unfit, &Silent).map(drop);
        let said = open("other data", Unfit::Refused).err().unwrap().to_string();
        assert!(said.contains("made from other data"), "{said}");
        open("this data", Unfit::Replaced).unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 1, "it fits");
        open("other data", Unfit::Replaced).unwrap();
        std::fs::write(&path, "damaged").unwrap();
        assert!(open("other data", Unfit::Refused).is_err());
        open("other data", Unfit::Replaced).unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 3);
        open("other data", Unfit::Refused).unwrap();
        let clock = MineOptions { budget: MiningBudget::Seconds(1.0), ..asked };
        let again = folder.path().join("clock.index");
        let refused = mining_index(&again, &named("", &clock), Unfit::Refused, &Silent);
        assert!(refused.err().unwrap().to_string().contains("not repeatable"));
    }

    #[test]
    fn data_that_looks_the_same_is_not_read_again_and_other_data_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work.index");
        let open = |glances: &[&str], stamp| {
            let data = Glanced { glances: Cell::new(glances), stamp };
            mining_index(&path, &data, Unfit::Refused, &Silent).map(drop).map_err(|error| error.to_string())
        };
        open(&["seen", "seen"], Some("stamp")).unwrap();
        open(&["seen"], None).unwrap();
        open(&["touched"], Some("stamp")).unwrap();
        open(&[], Some("stamp")).unwrap();
        assert!(open(&["touched"], Some("other")).unwrap_err().contains("made from other data"));
        assert!(open(&[], Some("other")).unwrap_err().contains("made from other data"));

        // What changed while it was read is not known by how it looked before, nor by how it looked afterwards.
        std::fs::remove_file(&path).unwrap();
        open(&["before", "after"], Some("stamp")).unwrap();
        for glance in ["before", "after"] {
            assert!(open(&[glance], Some("other")).unwrap_err().contains("made from other data"));
        }
    }
}
