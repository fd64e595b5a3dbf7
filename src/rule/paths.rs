//! The confidence of a walked path of links as a rule for a query, looked up in constant time.
//!
//! The walker takes a fixed number of hops and stays where it is (NO_OP) once it has arrived, so rules with
//! fewer links are padded with NO_OP at the end. A query for an inverse link is answered by the same rules read
//! backwards: the pairs that such a rule joins, and so its counts, are the same.

use super::Map;
use super::clause::{ScoredRule, Shape};
use crate::graph::Link;

/// Relation paths of a fixed length that imply a link, with their confidence.
#[derive(Clone, Debug, Default)]
pub struct RulePaths {
    hops: usize,
    /// By query link: its paths.
    paths: Vec<Map<Box<[Link]>, f32>>,
}

impl RulePaths {
    /// The paths of at most `hops` links that `rules` hold with a confidence above `threshold`, over `links`
    /// links (see [`Graph::links`](crate::graph::Graph::links)). `unseen` is the p_c of the confidence.
    pub fn new(rules: &[ScoredRule], links: usize, hops: usize, threshold: f64, unseen: f64) -> Self {
        let mut paths: Vec<Map<Box<[Link]>, f32>> = vec![Map::default(); links];
        for scored in rules {
            let confidence = scored.counts.confidence(unseen);
            let fits = scored.rule.shape == Shape::Cyclic && scored.rule.body.len() <= hops;
            if !fits || confidence <= threshold {
                continue;
            }
            for rule in [&scored.rule, &scored.rule.reversed()] {
                let mut path = rule.body.to_vec();
                path.resize(hops, Link::NO_OP);
                let known = paths[rule.head.index()].entry(path.into()).or_insert(0.0);
                *known = known.max(confidence as f32);
            }
        }
        Self { hops, paths }
    }

    /// How many links every path has, padding included.
    pub fn hops(&self) -> usize {
        self.hops
    }

    /// How many paths there are for all queries together.
    pub fn len(&self) -> usize {
        self.paths.iter().map(Map::len).sum()
    }

    /// Whether there is no path at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The confidence of `path`, padded with NO_OP to [`hops`](Self::hops) links, as a rule for `query`; 0 if it
    /// is none.
    #[inline]
    pub fn confidence(&self, query: Link, path: &[Link]) -> f32 {
        self.paths[query.index()].get(path).copied().unwrap_or(0.0)
    }

    /// All paths for `query` with their confidence, in no particular order but always the same.
    pub fn of(&self, query: Link) -> impl Iterator<Item = (&[Link], f32)> {
        self.paths[query.index()].iter().map(|(path, &confidence)| (&**path, confidence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RelationId;
    use crate::rule::clause::{Counts, Rule};

    fn link(relation: u32) -> Link {
        Link::forward(RelationId(relation))
    }

    #[test]
    fn a_path_is_found_padded_and_from_both_ends() {
        let scored = |body: &[Link], predicted, correct| ScoredRule {
            rule: Rule::cyclic(link(0), body),
            counts: Counts::exact(predicted, correct),
        };
        let rules =
            [scored(&[link(1), link(2)], 5, 5), scored(&[link(1)], 95, 1), scored(&[link(2); 4], 5, 5)];
        let paths = RulePaths::new(&rules, Link::count(3), 3, 0.15, 5.0);
        assert_eq!((paths.len(), paths.hops()), (2, 3));
        assert_eq!(paths.confidence(link(0), &[link(1), link(2), Link::NO_OP]), 0.5);
        let back = [link(2).reversed(), link(1).reversed(), Link::NO_OP];
        assert_eq!(paths.confidence(link(0).reversed(), &back), 0.5);
        assert_eq!(paths.of(link(0).reversed()).collect::<Vec<_>>(), [(&back[..], 0.5)]);
        assert_eq!(paths.confidence(link(0), &back), 0.0);
        assert_eq!(paths.confidence(link(0), &[link(1), Link::NO_OP, Link::NO_OP]), 0.0);
    }
}
