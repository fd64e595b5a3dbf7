//! Which rules about one constant are kept when there are too many.
//!
//! The most confident rules are often small and lucky, and explain the same few facts again and again. Others matter
//! for what they add: the facts that they explain, weighted by their confidence, as far as the rules kept before have
//! not explained them. Rules of confidence `c₁, c₂, …` explain a fact to the degree `1 − Π (1 − cᵢ)`, as in noisy-or.
//! The former rank the first answer, the latter find it at all; by default both are kept.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// Which rules with constants are kept if there are more than wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Those that add most, and the most confident: the wanted number of each. Of longer bodies, whose overlap is not
    /// known, those that add most.
    #[default]
    Both,
    /// Those that add most to what the others explain.
    Adding,
    /// The most confident.
    Confident,
}

/// The `most` of `rules` that are kept, by index; of both kinds, `most` of each. A rule is given as its confidence and
/// the indices of the facts that it explains; the most confident come first.
pub(crate) fn kept(keep: Keep, rules: &[(f64, &[u32])], facts: usize, most: usize) -> Vec<usize> {
    match keep {
        Keep::Confident => (0..rules.len().min(most)).collect(),
        Keep::Adding => adding(rules, facts, most),
        Keep::Both => {
            let mut kept = adding(rules, facts, most);
            let chosen: HashSet<usize> = kept.iter().copied().collect();
            kept.extend((0..rules.len().min(most)).filter(|at| !chosen.contains(at)));
            kept
        }
    }
}

/// The `most` of `rules` that together explain most of `facts` facts, greedily, in the order of choice. A rule is
/// given as its confidence and the indices of the facts that it explains.
fn adding(rules: &[(f64, &[u32])], facts: usize, most: usize) -> Vec<usize> {
    if rules.len() <= most {
        return (0..rules.len()).collect();
    }
    let mut left = vec![1.0f64; facts];
    let adds = |at: usize, left: &[f64]| {
        let (confidence, explained) = rules[at];
        confidence * explained.iter().map(|&fact| left[fact as usize]).sum::<f64>()
    };
    // The gain of a rule never rises, so a rule whose gain is still the highest after an update is the best. Positive
    // floats are ordered like their bits.
    let mut queue: BinaryHeap<(u64, Reverse<usize>, usize)> =
        (0..rules.len()).map(|at| (adds(at, &left).to_bits(), Reverse(at), 0)).collect();
    let mut kept = Vec::new();
    while let Some((_, Reverse(at), counted)) = queue.pop() {
        if counted == kept.len() {
            let (confidence, explained) = rules[at];
            explained.iter().for_each(|&fact| left[fact as usize] *= 1.0 - confidence);
            kept.push(at);
            if kept.len() == most {
                break;
            }
        } else {
            queue.push((adds(at, &left).to_bits(), Reverse(at), kept.len()));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by recomputing every rule's gain for every choice.
    fn plainly(rules: &[(f64, &[u32])], facts: usize, most: usize) -> Vec<usize> {
        let mut left = vec![1.0f64; facts];
        let mut kept: Vec<usize> = Vec::new();
        while kept.len() < most.min(rules.len()) {
            let gain = |at: usize| rules[at].0 * rules[at].1.iter().map(|&f| left[f as usize]).sum::<f64>();
            let open = (0..rules.len()).filter(|at| !kept.contains(at));
            let best = open.max_by(|&a, &b| gain(a).total_cmp(&gain(b)).then(b.cmp(&a))).unwrap();
            rules[best].1.iter().for_each(|&fact| left[fact as usize] *= 1.0 - rules[best].0);
            kept.push(best);
        }
        kept
    }

    proptest! {
        #[test]
        fn every_choice_adds_most(
            rules in prop::collection::vec((1u8..10, prop::collection::btree_set(0u32..30, 1..12)), 1..20),
            most in 1usize..8,
        ) {
            let rules: Vec<(f64, Vec<u32>)> =
                rules.into_iter().map(|(c, f)| (f64::from(c) / 10.0, f.into_iter().collect())).collect();
            let rules: Vec<(f64, &[u32])> = rules.iter().map(|(c, facts)| (*c, facts.as_slice())).collect();
            if rules.len() > most {
                prop_assert_eq!(adding(&rules, 30, most), plainly(&rules, 30, most));
            } else {
                prop_assert_eq!(adding(&rules, 30, most).len(), rules.len());
            }
        }
    }

    #[test]
    fn those_that_add_most_are_kept_and_the_most_confident() {
        let facts: Vec<Vec<u32>> = vec![vec![0], vec![0], vec![1], (0..9).collect(), (9..20).collect()];
        let confidences = [0.9, 0.8, 0.7, 0.6, 0.5];
        let rules: Vec<(f64, &[u32])> =
            confidences.into_iter().zip(facts.iter().map(Vec::as_slice)).collect();
        assert_eq!(kept(Keep::Confident, &rules, 20, 2), [0, 1]);
        assert_eq!(kept(Keep::Adding, &rules, 20, 2), [4, 3]);
        assert_eq!(kept(Keep::Both, &rules, 20, 2), [4, 3, 0, 1]);
        assert_eq!(kept(Keep::Both, &rules, 20, 1), [4, 0]);
        assert_eq!(kept(Keep::Both, &rules, 20, usize::MAX).len(), 5);
    }

    #[test]
    fn a_rule_that_explains_nearly_everything_is_kept_before_small_lucky_ones() {
        let all: Vec<u32> = (0..1000).collect();
        let lucky: Vec<Vec<u32>> = (0..30).map(|at| vec![at, at + 1]).collect();
        let mut rules: Vec<(f64, &[u32])> = lucky.iter().map(|facts| (0.999, facts.as_slice())).collect();
        rules.push((0.99, &all));
        assert_eq!(adding(&rules, 1000, 20)[0], 30);
    }
}
