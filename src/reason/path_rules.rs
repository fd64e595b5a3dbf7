//! Which mined rule a path follows.

use super::Hop;
use crate::graph::{EntityId, Link, Query};
use crate::rule::{ScoredRule, Shape};
use std::collections::HashMap;

/// Cyclic rules by the query link and the relation path of their body.
pub struct PathRuleIndex {
    rules: HashMap<(Link, Box<[Link]>), ScoredRule>,
}

impl PathRuleIndex {
    /// Indexes the cyclic rules of `rules`; of several with the same body, the first.
    pub fn new(rules: &[ScoredRule]) -> Self {
        let mut by_path: HashMap<(Link, Box<[Link]>), ScoredRule> = HashMap::new();
        for scored in rules.iter().filter(|scored| scored.rule.shape == Shape::Cyclic) {
            for rule in [scored.rule.clone(), scored.rule.reversed()] {
                by_path.entry((rule.head, rule.body)).or_insert_with(|| scored.clone());
            }
        }
        Self { rules: by_path }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule for `link` whose body these links are.
    pub fn with_body(&self, link: Link, body: &[Link]) -> Option<&ScoredRule> {
        self.rules.get(&(link, body.into()))
    }

    /// The rule that `path` grounds: its links are the body, and its entities are all different, as when the rule was
    /// counted.
    pub fn of(&self, query: Query, path: &[Hop]) -> Option<&ScoredRule> {
        let links: Vec<Link> = path.iter().map(|hop| hop.link).filter(|link| *link != Link::NO_OP).collect();
        self.with_body(query.link, &links).filter(|_| repeats_nobody(query.subject, path))
    }
}

/// Whether all entities of a path from `start` are different, not counting hops that stay.
pub(super) fn repeats_nobody(start: EntityId, path: &[Hop]) -> bool {
    let mut visited = vec![start];
    path.iter().filter(|hop| hop.link != Link::NO_OP).all(|hop| {
        let new = !visited.contains(&hop.target);
        visited.push(hop.target);
        new
    })
}
