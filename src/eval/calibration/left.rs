//! How often a query has an answer left to find, by its link and by how many answers it has already.
//!
//! Who was born in a town has room for another answer; where somebody was born has none once it is known. The shares are
//! counted over all sensible queries, so they cost no answer of any reasoner. Shares of few queries are drawn towards those of
//! the link, and these towards those of all links.

use crate::graph::Link;
use std::collections::BTreeMap;

/// Groups of queries by how many answers they have already: 0, 1, 2, 3 to 4, 5 to 8, 9 to 16, 17 to 32, more.
pub(super) const GROUPS: usize = 8;

/// How many queries with the wider share every share begins with.
const PRIOR: f64 = 20.0;

/// The shares of the queries of each group that have an answer left.
pub(super) type Shares = [f64; GROUPS];

/// How often queries have an answer left.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswersLeft {
    /// For links without shares of their own.
    pub others: Shares,
    /// By link.
    pub links: BTreeMap<Link, Shares>,
}

impl Default for AnswersLeft {
    /// Nothing is known.
    fn default() -> Self {
        Self { others: [0.5; GROUPS], links: BTreeMap::new() }
    }
}

impl AnswersLeft {
    /// How often a query over `link` with so many known answers has another one.
    pub fn share(&self, link: Link, known: usize) -> f64 {
        self.links.get(&link).unwrap_or(&self.others)[group(known)]
    }
}

fn group(known: usize) -> usize {
    match known {
        0 => 0,
        _ => (1 + known.next_power_of_two().trailing_zeros() as usize).min(GROUPS - 1),
    }
}

/// Counts sensible queries.
#[derive(Default)]
pub(super) struct LeftCounts(BTreeMap<Link, [[usize; 2]; GROUPS]>);

impl LeftCounts {
    /// Counts a query over `link` with so many known answers.
    pub(super) fn add(&mut self, link: Link, known: usize, has_answer: bool) {
        let [left, all] = &mut self.0.entry(link).or_default()[group(known)];
        *left += usize::from(has_answer);
        *all += 1;
    }

    /// The shares.
    pub(super) fn shares(&self) -> AnswersLeft {
        let mut all = [[0; 2]; GROUPS];
        for counts in self.0.values() {
            add(&mut all, counts);
        }
        let base = share(summed(&all), 0.5);
        let others = all.map(|counts| share(counts, base));
        let of_link = |counts: &[[usize; 2]; GROUPS]| {
            let own = share(summed(counts), base);
            counts.map(|counts| share(counts, own))
        };
        AnswersLeft { others, links: self.0.iter().map(|(&link, counts)| (link, of_link(counts))).collect() }
    }
}

fn add(sums: &mut [[usize; 2]; GROUPS], counts: &[[usize; 2]; GROUPS]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        (sum[0], sum[1]) = (sum[0] + count[0], sum[1] + count[1]);
    }
}

fn summed(counts: &[[usize; 2]; GROUPS]) -> [usize; 2] {
    counts.iter().fold([0; 2], |[left, all], one| [left + one[0], all + one[1]])
}

fn share([left, all]: [usize; 2], wider: f64) -> f64 {
    (left as f64 + PRIOR * wider) / (all as f64 + PRIOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RelationId;

    #[test]
    fn queries_are_grouped_by_their_known_answers() {
        let groups: Vec<usize> = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 1_000_000].map(group).to_vec();
        assert_eq!(groups, [0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]);
    }

    #[test]
    fn a_functional_relation_has_an_answer_left_only_while_it_has_none() {
        let [born_in, speaks, rare] = [0, 1, 2].map(|id| Link::forward(RelationId(id)));
        let mut counts = LeftCounts::default();
        for query in 0..1000 {
            counts.add(born_in, 0, query % 2 == 0);
            counts.add(born_in, 1, false);
            counts.add(speaks, 1, query % 4 == 0);
        }
        counts.add(rare, 0, false);
        let left = counts.shares();
        assert!((left.share(born_in, 0) - 0.5).abs() < 0.02, "{left:?}");
        assert!(left.share(born_in, 1) < 0.02, "{left:?}");
        assert!((left.share(speaks, 1) - 0.25).abs() < 0.02, "{left:?}");
        // One query says little, and an unknown link is like all others.
        assert!(left.share(rare, 0) > 0.15, "{left:?}");
        assert_eq!(left.share(Link::inverse_of(RelationId(0)), 0), left.others[0]);
    }
}
