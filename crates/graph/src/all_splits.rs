//! Splits that a data set lacks, taken from its training facts.

use super::split::{Place, SplitShares, divide_others};
use super::{Array, Dataset, Division, GraphError, Known, Triple};
use std::collections::HashSet;

/// `dataset` with a validation and a test split: one that it lacks is drawn from its training facts, which lose it. The
/// splits that it has stay as they are.
///
/// # Errors
/// If too few training facts can be held out.
pub fn with_all_splits(dataset: Dataset, division: Division) -> Result<Dataset, GraphError> {
    let Dataset { known, test, .. } = &dataset;
    if !known.valid.is_empty() && !test.is_empty() {
        return Ok(dataset);
    }
    let share = |split: &[Triple], share| if split.is_empty() { share } else { 0.0 };
    let Division { shares, seed } = division;
    let (valid_share, test_share) = (share(&known.valid, shares.valid), share(test, shares.test));
    let shares = SplitShares { valid: valid_share, test: test_share, ..shares };
    let parts: [(&[Triple], Option<Place>); 3] =
        [(&known.queries, None), (&known.valid, Some(1)), (test, Some(2))];
    let all = parts.map(|(facts, _)| facts).concat();
    let placed: Vec<Option<Place>> =
        parts.iter().flat_map(|(facts, place)| facts.iter().map(|_| *place)).collect();
    let [train, valid, test] = divide_others(&all, &placed, &shares, seed).map_err(|found| {
        GraphError::Data(format!(
            "expected enough facts to hold some out for validation and test, found {found}"
        ))
    })?;
    let queries: Array<Triple> = train.into();
    let facts = match known.has_own_graph() {
        true => {
            let held_out: HashSet<&Triple> = valid.iter().chain(&test).collect();
            known.facts.iter().filter(|fact| !held_out.contains(fact)).copied().collect()
        }
        false => queries.clone(),
    };
    let notes = known.notes.and(&dataset.test_notes);
    let known = Known { facts, queries, valid: valid.into(), ..known.clone() };
    Ok(Dataset { known, test: test.into(), ..dataset }.with_notes(notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_that_is_missing_comes_from_the_training_facts() {
        let made = crate::generate::family(60, 1).dataset;
        let division = Division { shares: SplitShares::default(), seed: 2 };
        let count = made.known.facts.len();
        let untouched = with_all_splits(made.clone(), division).unwrap();
        assert_eq!((untouched.known.facts.len(), &untouched.test), (count, &made.test));
        let without_valid =
            Dataset { known: Known { valid: [].into(), ..made.known.clone() }, ..made.clone() };
        let filled = with_all_splits(without_valid, division).unwrap();
        assert_eq!(filled.test, made.test);
        let held_out = filled.known.valid.len();
        // About a tenth, as far as facts can be spared.
        assert_eq!(filled.known.facts.len(), count - held_out);
        assert!((count / 20..=count.div_ceil(10)).contains(&held_out), "{held_out} of {count}");
        assert!(filled.known.valid.iter().all(|fact| made.known.facts.contains(fact)));
        let alone =
            Dataset { test: [].into(), known: Known { valid: [].into(), ..made.known.clone() }, ..made };
        let filled = with_all_splits(alone, division).unwrap();
        assert!(!filled.test.is_empty() && !filled.known.valid.is_empty());
        assert_eq!(filled.known.facts.len() + filled.known.valid.len() + filled.test.len(), count);
    }
}
