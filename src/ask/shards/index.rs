//! Mining in parts, from an index that all parts share.

use super::{ShardReport, rules_header, unless_there};
use crate::aside::try_lock;
use crate::ask::AskError;
use crate::graph::Dataset;
use crate::progress::Progress;
use crate::rule::{MineOptions, MiningIndex, RuleError, write_rule_shard};
use crate::run::{Checksum, RunError};
use crate::shard::Shard;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a process waits before it checks again whether another has made the index.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The index at `path` of the data that `source` identifies (a [`stamp`](crate::graph::stamp)). If there is none, it is
/// built for the data and the options that `read` returns. Of several processes that need it, one builds it and the
/// others wait.
///
/// # Errors
/// If the data cannot be read, the index cannot be read or written or is of other data, or the user interrupts.
pub fn mining_index<E: From<AskError>>(
    path: &Path,
    source: &str,
    progress: &dyn Progress,
    read: impl FnOnce() -> Result<(Dataset, MineOptions), E>,
) -> Result<MiningIndex, E> {
    let open = || MiningIndex::open(path, Some(source)).map_err(|error| E::from(error.into()));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lock = path.with_file_name(format!(".{name}.lock"));
    loop {
        if path.exists() {
            return open();
        }
        let held = try_lock(&lock).map_err(|error| E::from(cannot_lock(&lock, error)))?;
        if held.is_some() && !path.exists() {
            let (dataset, options) = read()?;
            write_mining_index(path, source, &dataset, &options, progress).map_err(E::from)?;
            // Waiting processes check for the index first, so the lock file is no longer needed.
            let _ = std::fs::remove_file(&lock);
            return open();
        }
        if progress.interrupted() {
            return Err(E::from(RunError::Interrupted.into()));
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

fn cannot_lock(path: &Path, source: std::io::Error) -> AskError {
    let path: PathBuf = path.to_owned();
    RuleError::Unwritable { path, source }.into()
}

/// Builds the index at `path` for mining `dataset` with `options`; `source` identifies the data.
///
/// # Errors
/// If the options are invalid or depend on the clock, the file cannot be written, or the user interrupts.
pub fn write_mining_index(
    path: &Path,
    source: &str,
    dataset: &Dataset,
    options: &MineOptions,
    progress: &dyn Progress,
) -> Result<(), AskError> {
    let Dataset { names, known, .. } = dataset;
    let data = Checksum::of_known(names, known).to_string();
    match MiningIndex::write(path, [source, &data], names, &dataset.graph(), options, progress)? {
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
    unless_there(&header, out, || {
        let mined = index.mine_shard(shard, progress)?;
        if mined.mined.interrupted {
            return Err(RunError::Interrupted.into());
        }
        Ok(write_rule_shard(out, &header, &mined, index.names())?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ReadOptions, read, stamp, write_dataset};
    use crate::progress::Silent;
    use crate::rule::{MiningBudget, RuleType, mine, write_rules};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn options(budget: MiningBudget, types: &[RuleType], max_length: usize, distinct: bool) -> MineOptions {
        let types = types.to_vec();
        MineOptions { types, max_length, budget, distinct, ..MineOptions::default() }
    }

    #[test]
    fn parts_from_an_index_make_the_file_that_one_process_writes() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        write_dataset(&data, "tsv", &crate::generate::demonstration()).unwrap();
        let reading = ReadOptions::default();
        let dataset = read(&data, &reading).unwrap();
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
            let source = stamp(&data, &reading).unwrap();
            for &count in counts {
                let parts = (1..=count).map(|part| {
                    let read = || Ok::<_, AskError>((dataset.clone(), options.clone()));
                    let index = mining_index(&path, &source, &Silent, read).unwrap();
                    index.expect(&options).unwrap();
                    let out = folder.path().join(format!("{number}-{part}-{count}.shard"));
                    let shard = Shard::new(part, count).unwrap();
                    mine_indexed_shard(&index, shard, &out, &Silent).unwrap();
                    out
                });
                let parts: Vec<PathBuf> = parts.collect();
                let merged = folder.path().join("merged.tsv");
                crate::ask::merge(&parts, Some(&merged)).unwrap();
                let bytes = |path: &Path| std::fs::read(path).unwrap();
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
        let open = || {
            mining_index(&path, "this data", &Silent, || {
                made.fetch_add(1, Ordering::Relaxed);
                // The other processes arrive while it is being built.
                std::thread::sleep(2 * BETWEEN_LOOKS);
                Ok::<_, AskError>((crate::generate::demonstration(), asked.clone()))
            })
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            all.into_iter().for_each(|one| drop(one.join().unwrap().unwrap()));
        });
        assert_eq!(made.into_inner(), 1);
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(files.collect::<Vec<_>>(), ["work.index"]);

        let index = MiningIndex::open(&path, None).unwrap();
        let other = MineOptions { seed: 2, ..asked.clone() };
        let said = index.expect(&other).err().unwrap().to_string();
        assert!(said.contains("work.index: made with seed = 1, but now seed = 2; remove it"), "{said}");
        let said = MiningIndex::open(&path, Some("other data")).err().unwrap().to_string();
        assert!(said.contains("made from other data"), "{said}");
        let clock = MineOptions { budget: MiningBudget::Seconds(1.0), ..asked };
        let again = folder.path().join("clock.index");
        let refused = mining_index(&again, "", &Silent, || {
            Ok::<_, AskError>((crate::generate::demonstration(), clock))
        });
        assert!(refused.err().unwrap().to_string().contains("not repeatable"));
    }
}
