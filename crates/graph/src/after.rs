//! Data that has changed since a model was learnt from it: facts keep their splits, and learnt facts are not used for
//! evaluation.

use super::memory::{Division, divided};
use super::read::{ReadOptions, read};
use super::split::{self, Place, SplitShares};
use super::{Array, Dataset, GraphError, Known, Names, Renumbering, Triple};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Reads the data at `path` as the successor of `before`. Also returns how many facts were [left out](after).
///
/// # Errors
/// If it cannot be read, or a single file has too few facts to hold some out.
pub fn read_after(
    path: &Path,
    options: &ReadOptions,
    before: &Dataset,
) -> Result<(Dataset, usize), GraphError> {
    let ReadOptions { shares, seed, .. } = *options;
    // By time a fact stays where it was, unless it was learnt.
    let shares_now = if shares.since.is_some() { shares } else { SplitShares::WHOLE };
    let whole = ReadOptions { shares: shares_now, ..options.clone() };
    after(read(path, &whole)?, Division { shares, seed }, before)
}

/// `dataset` as the successor of `before`. If `dataset` has no splits, known facts keep their splits from `before`,
/// and new ones are divided by `division`. If it has splits, validation and test facts that were learnt before are
/// left out, because a model cannot be measured on facts it has learnt. Also returns how many were left out.
///
/// # Errors
/// If there are too few facts to hold some out.
pub fn after(dataset: Dataset, division: Division, before: &Dataset) -> Result<(Dataset, usize), GraphError> {
    let earlier = Earlier::new(&dataset.names, before);
    if dataset.known.valid.is_empty() && dataset.test.is_empty() {
        return Ok((earlier.divide(dataset, division)?, 0));
    }
    let mut dataset = dataset;
    let mut learnt = 0;
    for split in [&mut dataset.known.valid, &mut dataset.test] {
        let kept: Array<Triple> =
            split.iter().copied().filter(|&fact| earlier.place(fact) != Some(0)).collect();
        learnt += split.len() - kept.len();
        *split = kept;
    }
    Ok((dataset, learnt))
}

/// Where facts were in an earlier version of the data, known by names.
struct Earlier {
    ids: Renumbering,
    places: HashMap<Triple, Place>,
}

impl Earlier {
    fn new(names: &Names, before: &Dataset) -> Self {
        let Known { facts, queries, valid, .. } = &before.known;
        // Later entries win: a fact that was learnt counts as learnt, whatever other splits it was in.
        let splits: [(&[Triple], Place); 5] =
            [(&before.test_left_out, 2), (&before.test, 2), (valid, 1), (queries, 0), (facts, 0)];
        let mut places = HashMap::new();
        for (facts, place) in splits {
            places.extend(facts.iter().map(|&fact| (fact, place)));
        }
        Self { ids: Renumbering::new(names, &before.names), places }
    }

    fn place(&self, fact: Triple) -> Option<Place> {
        self.places.get(&self.ids.fact(fact)?).copied()
    }

    /// Divides the facts that the earlier version did not have.
    fn divide(&self, dataset: Dataset, Division { shares, seed }: Division) -> Result<Dataset, GraphError> {
        let Dataset { names, known, findings, test_negatives, .. } = dataset;
        let placed: Vec<Option<Place>> = known.facts.iter().map(|&fact| self.place(fact)).collect();
        let parts = split::divide_others(&known.facts, &placed, &shares, seed).map_err(|found| {
            let expected = "enough facts to hold some out for validation and test";
            GraphError::Data(format!("expected {expected}, found {found}"))
        })?;
        let parted = divided(Arc::unwrap_or_clone(names), parts, 0);
        let Known { notes, negatives, valid_negatives, .. } = known;
        let known = Known { negatives, valid_negatives, ..parted.known };
        Ok(Dataset { findings, known, test_negatives, ..parted }.with_notes(notes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::write_file;
    use super::*;

    #[test]
    fn facts_stay_where_they_were_whether_they_come_from_a_file_or_from_memory() {
        let made = crate::generate::family(60, 1).dataset;
        let all = made.everything();
        let facts = &all.known.facts;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("facts.tsv");
        let options = ReadOptions { seed: 3, ..ReadOptions::default() };
        write_file(&path, &made.names, &facts[..facts.len() / 2]).unwrap();
        let before = read(&path, &options).unwrap();
        write_file(&path, &made.names, facts).unwrap();
        let (now, left_out) = read_after(&path, &options, &before).unwrap();
        assert_eq!((now.everything().known.facts.len(), left_out), (facts.len(), 0));
        let ids = Renumbering::new(&before.names, &now.names);
        let stay = |before: &[Triple], now: &[Triple]| {
            before.iter().all(|&fact| ids.fact(fact).is_some_and(|fact| now.contains(&fact)))
        };
        assert!(stay(&before.known.facts, &now.known.facts) && stay(&before.test, &now.test));
        assert!(stay(&before.known.valid, &now.known.valid) && now.test.len() > before.test.len());
        let division = Division { shares: options.shares, seed: options.seed };
        let memory = read(&path, &ReadOptions { shares: SplitShares::WHOLE, ..options }).unwrap();
        let (same, _) = after(memory, division, &before).unwrap();
        assert_eq!(
            (same.known.facts, same.known.valid, same.test),
            (now.known.facts, now.known.valid, now.test)
        );
        // If the data has its own splits, learnt facts are removed from validation and test.
        let swapped = Dataset { test: before.known.facts.clone(), ..before.clone() };
        let (rest, left_out) = after(swapped, division, &before).unwrap();
        assert_eq!((rest.test.len(), left_out), (0, before.known.facts.len()));
    }
}
