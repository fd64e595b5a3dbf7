//! Rules as the walker uses them: relation paths of a fixed number of hops, looked up by query.

use super::config::MOST_HOPS;
use super::reward::PathRules;
use crate::graph::Link;
use hashbrown::HashMap;

/// The confidence of relation paths of `hops` links, for each query link.
pub struct PathTable {
    hops: usize,
    confidences: HashMap<(Link, [Link; MOST_HOPS]), f32, foldhash::fast::FixedState>,
}

impl PathTable {
    /// A table for walks of `hops` hops. `rules` are a head, a body and a confidence; bodies shorter than the walk
    /// are padded with NO_OP, longer and empty ones are left out, and of rules with the same head and body the
    /// most confident counts.
    pub fn new<B: AsRef<[Link]>>(hops: usize, rules: impl IntoIterator<Item = (Link, B, f32)>) -> Self {
        let mut confidences = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        for (head, body, confidence) in rules {
            let body = body.as_ref();
            if body.is_empty() || body.len() > hops.min(MOST_HOPS) {
                continue;
            }
            let best = confidences.entry((head, padded(body))).or_insert(confidence);
            *best = confidence.max(*best);
        }
        Self { hops, confidences }
    }

    /// All paths with the link they are rules for and their confidence, in a fixed order.
    pub fn entries(&self) -> Vec<(u32, Vec<u32>, f32)> {
        let numbers = |path: &[Link]| path[..self.hops].iter().map(|link| link.0).collect::<Vec<u32>>();
        let mut all: Vec<(u32, Vec<u32>, f32)> = self
            .confidences
            .iter()
            .map(|((query, path), &confidence)| (query.0, numbers(path), confidence))
            .collect();
        all.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        all
    }

    /// How many paths are rules.
    pub fn len(&self) -> usize {
        self.confidences.len()
    }

    /// Whether no path is a rule.
    pub fn is_empty(&self) -> bool {
        self.confidences.is_empty()
    }
}

impl PathRules for PathTable {
    fn confidence(&self, query: Link, path: &[Link]) -> f32 {
        if path.len() != self.hops {
            return 0.0;
        }
        self.confidences.get(&(query, padded(path))).copied().unwrap_or(0.0)
    }
}

fn padded(path: &[Link]) -> [Link; MOST_HOPS] {
    let mut padded = [Link::NO_OP; MOST_HOPS];
    padded[..path.len()].copy_from_slice(path);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rules_are_padded_and_the_best_of_equals_counts() {
        let (a, b, c, stay) = (Link(3), Link(4), Link(5), Link::NO_OP);
        let rules = [
            (a, vec![b], 0.3),
            (a, vec![b], 0.5),
            (a, vec![b, c], 0.2),
            (a, vec![b, c, b, c], 0.9),
            (b, vec![], 0.9),
        ];
        let table = PathTable::new(3, rules);
        assert_eq!(table.len(), 2);
        assert_eq!(table.entries(), [(3, vec![4, 2, 2], 0.5), (3, vec![4, 5, 2], 0.2)]);
        assert_eq!(table.confidence(a, &[b, stay, stay]), 0.5);
        assert_eq!(table.confidence(a, &[b, c, stay]), 0.2);
        assert_eq!(table.confidence(a, &[b, stay, c]), 0.0, "staying in the middle is another path");
        assert_eq!(table.confidence(b, &[b, stay, stay]), 0.0);
        assert_eq!(table.confidence(a, &[b, stay]), 0.0, "a walk of other length");
    }
}
