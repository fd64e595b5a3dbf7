//! What a score came from: an exact sum over the members, and within a member over rules, paths and cases.
//!
//! A score is compared with a typical candidate of the same query: for each member, the candidate that is in the middle
//! by what this member contributes. So
//!
//! ```text
//! score = typical + Σ share of a member        typical = Σ contribution to the middle candidate
//! share of a member = Σ share of its parts     rules, paths, cases, features, and the rest
//! ```
//!
//! Scores of a blend are log-odds between the candidates of a query, so a share of `ln 2` doubles the odds. A member
//! whose weights are zero has no share and is never named.

use super::{Case, Found, Reasoned};
use crate::rule::ScoredRule;
use std::fmt;

/// The members' names in decompositions.
pub(super) const RULES: &str = "rules";
pub(super) const WALKER: &str = "walker";
pub(super) const EMBEDDING: &str = "embedding";
pub(super) const PROPAGATOR: &str = "propagator";
/// Features of a candidate: what the graph says of it without any member.
pub(super) const GRAPH: &str = "graph";
/// A reasoner that does not say what it is.
pub(super) const REASONER: &str = "reasoner";

/// A smaller rest is rounding.
const ROUNDING: f64 = 1e-9;

/// How much of a decomposition is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What costs next to nothing after a search: the members' shares, the best rules, the walker's path.
    Brief,
    /// The same, and the embedding model's cases, chosen among few: for the answers that a person sees.
    Shown,
    /// All of it: every rule with its groundings, the propagator's paths, the embedding model's cases.
    Full,
}

/// What a score came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Because {
    /// The score of a typical candidate of the query.
    pub typical: f64,
    /// The members' shares of what the score is above that, the largest first.
    pub members: Vec<MemberShare>,
}

/// A member's share of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberShare {
    /// The member.
    pub member: &'static str,
    /// Its share; negative if it speaks against the answer.
    pub share: f64,
    /// What the rules say together, as a confidence.
    pub together: Option<f64>,
    /// What the share consists of; empty if that was not looked for.
    pub parts: Vec<SharePart>,
}

impl MemberShare {
    /// Whether the member gives candidates, and does not only order those of others.
    pub fn gives_candidates(&self) -> bool {
        ![EMBEDDING, GRAPH].contains(&self.member)
    }
}

/// A part of a member's share.
#[derive(Clone, Debug, PartialEq)]
pub struct SharePart {
    /// How much it is.
    pub share: f64,
    /// Where it comes from.
    pub source: ShareSource,
}

/// Where a part of a score comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ShareSource {
    /// A rule that predicts the answer.
    Rule {
        /// The rule.
        rule: ScoredRule,
        /// The confidence with which it is applied.
        alone: f64,
        /// The ways in which it leads to the answer, if they were looked for.
        groundings: Vec<Reasoned>,
    },
    /// A path to the answer.
    Path(Reasoned),
    /// A similar entity that has this answer, or a similar answer that the subject has.
    Case(Case),
    /// What the graph says about the candidate.
    Feature(GraphFeature),
    /// What no other part explains, and how many further rules are in it.
    Rest(usize),
}

/// What the graph says about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFeature {
    /// It is linked to the subject, by any relation.
    Linked,
    /// It is linked to the subject by the relation asked for, in the other direction.
    LinkedBack,
    /// It is an answer of the relation for another subject.
    Taken,
    /// How often it is such an answer.
    Frequency,
    /// How well its types fit this side of the relation.
    Types,
    /// How well the relations that it has fit it.
    Relations,
}

impl fmt::Display for GraphFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linked => "linked",
            Self::LinkedBack => "linked_back",
            Self::Taken => "taken",
            Self::Frequency => "frequency",
            Self::Types => "types",
            Self::Relations => "relations",
        })
    }
}

impl Because {
    /// The decomposition of a score that one member gives alone.
    pub(super) fn alone(member: &'static str, score: f64, typical: f64, parts: Vec<SharePart>) -> Self {
        let members = vec![MemberShare { member, share: score - typical, together: None, parts }];
        Self { typical, members }
    }
}

/// `parts` of a `share`, with the rest of it; `others` rules are in the rest.
pub(super) fn with_rest(share: f64, mut parts: Vec<SharePart>, others: usize) -> Vec<SharePart> {
    let rest = share - parts.iter().map(|part| part.share).sum::<f64>();
    if others > 0 || rest.abs() > ROUNDING {
        parts.push(SharePart { share: rest, source: ShareSource::Rest(others) });
    }
    parts
}

/// The place of the value in the middle; of two, the lower one. `None` if there are not at least two values: nothing
/// can then be compared.
pub(super) fn middle(values: &[f64]) -> Option<usize> {
    if values.len() < 2 {
        return None;
    }
    let mut places: Vec<usize> = (0..values.len()).collect();
    let order = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]).then(a.cmp(b));
    Some(*places.select_nth_unstable_by((values.len() - 1) / 2, order).1)
}

/// The score of the candidate in the middle; 0 if there are no others.
pub(super) fn typical_score(found: &Found) -> f64 {
    let scores: Vec<f64> = found.candidates.iter().map(|candidate| candidate.score).collect();
    middle(&scores).map_or(0.0, |place| scores[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_the_lower_one() {
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[3.0]), None);
        assert_eq!(middle(&[3.0, 1.0]), Some(1));
        assert_eq!(middle(&[3.0, 1.0, 2.0]), Some(2));
        assert_eq!(middle(&[3.0, 1.0, 2.0, 9.0]), Some(2));
    }

    #[test]
    fn what_is_not_explained_is_named() {
        let part = |share| SharePart { share, source: ShareSource::Feature(GraphFeature::Linked) };
        assert_eq!(with_rest(1.0, vec![part(1.0)], 0), [part(1.0)]);
        let rest = |share, others| SharePart { share, source: ShareSource::Rest(others) };
        assert_eq!(with_rest(1.0, vec![part(1.5)], 0), [part(1.5), rest(-0.5, 0)]);
        assert_eq!(with_rest(1.0, vec![part(1.0)], 2), [part(1.0), rest(0.0, 2)]);
    }
}
