//! A data set with errors: some of its training facts replaced by false ones of the right types.

use crate::{Array, Dataset, Indexed, Known, Triple, corrupted, mixed};

/// The stream of draws that replaces facts.
const STREAM: u64 = 2;

/// A data set with errors, and which facts are false.
pub struct WithErrors {
    /// The data set.
    pub dataset: Dataset,
    /// The false facts.
    pub errors: Vec<Triple>,
}

/// `dataset` with this share of its training facts replaced by false ones: one end of each is another entity that the
/// relation has at that end. Its other splits stay as they are, and so do its names.
pub fn with_errors(dataset: &Dataset, share: f64, seed: u64) -> WithErrors {
    let facts = &dataset.known.facts;
    let wanted = (share * facts.len() as f64).round() as usize;
    let mut order: Vec<(u64, usize)> =
        (0..facts.len()).map(|place| (mixed(seed ^ mixed(place as u64)), place)).collect();
    order.sort_unstable();
    let chosen: Vec<Triple> = order.iter().take(wanted).map(|&(_, place)| facts[place]).collect();
    let false_ones = corrupted(&dataset.graph(), &chosen, &dataset.answers(), seed, STREAM);
    let mut all: Vec<Triple> = facts.to_vec();
    let mut errors = Vec::with_capacity(wanted);
    for (&(_, place), false_one) in order.iter().zip(false_ones) {
        if let Some(false_one) = false_one {
            all[place] = false_one;
            errors.push(false_one);
        }
    }
    let facts: Array<Triple> = all.into();
    // Training queries that are the facts share their memory: that is how they are known to be the same.
    let queries = if dataset.known.has_own_graph() { dataset.known.queries.clone() } else { facts.clone() };
    let known = Known { facts, queries, ..dataset.known.clone() };
    // The graph of the facts has to be made anew.
    let dataset = Dataset { known, indexed: Indexed::default(), ..dataset.clone() };
    WithErrors { dataset, errors }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn as_many_facts_as_wanted_are_false() {
        let family = super::super::family(120, 3).dataset;
        let WithErrors { dataset, errors } = with_errors(&family, 0.03, 1);
        let wanted = (0.03 * family.known.facts.len() as f64).round() as usize;
        assert_eq!(errors.len(), wanted);
        let before: HashSet<&Triple> = family.known.facts.iter().collect();
        let new: Vec<&Triple> = dataset.known.facts.iter().filter(|fact| !before.contains(fact)).collect();
        assert_eq!(new.len(), wanted);
        assert!(errors.iter().all(|fact| new.contains(&fact)));
        assert_eq!(dataset.known.facts.len(), family.known.facts.len());
        assert_eq!(dataset.known.valid.to_vec(), family.known.valid.to_vec());
        assert!(!dataset.known.has_own_graph());
        assert_ne!(with_errors(&family, 0.03, 2).errors, errors);
    }
}
