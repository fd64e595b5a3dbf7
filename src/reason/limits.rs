//! Which paths may be reasons: over which relations, through which entities, and how long.

use super::Reasoned;
use crate::graph::{EntityId, Link, Query, RelationId};
use std::collections::BTreeSet;

/// What is asked of the path of a reason; by default nothing.
///
/// The entities of a path are those between the subject and the answer. A rule without a body has no path: it passes where
/// nothing has to be on the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathLimits {
    /// The relations that it may use; all if there are none.
    pub relations: BTreeSet<RelationId>,
    /// The relations that it may not use.
    pub without_relations: BTreeSet<RelationId>,
    /// It has to pass through an entity of each of these sets.
    pub through: Vec<BTreeSet<EntityId>>,
    /// The entities that it may not pass through.
    pub without: BTreeSet<EntityId>,
    /// The most facts that it consists of.
    pub max_hops: Option<usize>,
}

impl PathLimits {
    /// Whether every path may be a reason.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a path along `links` may be a reason, as far as they tell.
    pub fn admit_links<'a>(&self, links: impl Iterator<Item = &'a Link>) -> bool {
        let mut hops = 0;
        let mut relations = links.filter_map(|link| link.relation()).inspect(|_| hops += 1);
        let allowed = relations.by_ref().all(|relation| {
            (self.relations.is_empty() || self.relations.contains(&relation))
                && !self.without_relations.contains(&relation)
        });
        allowed && self.max_hops.is_none_or(|most| hops <= most)
    }

    /// Whether `way` may be a reason for its answer of `query`. What has neither path nor rule is none.
    pub fn admit(&self, query: Query, way: &Reasoned) -> bool {
        let has_to_pass = !self.relations.is_empty() || !self.through.is_empty();
        if way.path.is_empty() {
            return way.rule.is_some() && !has_to_pass;
        }
        let targets = way.path.iter().map(|hop| hop.target);
        let between: BTreeSet<EntityId> = std::iter::once(way.start)
            .chain(targets)
            .filter(|entity| *entity != query.subject && *entity != way.entity)
            .collect();
        self.admit_links(way.path.iter().map(|hop| &hop.link))
            && self.through.iter().all(|some| !some.is_disjoint(&between))
            && self.without.is_disjoint(&between)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Hop;

    #[test]
    fn a_path_is_judged_by_what_is_between_its_ends() {
        // 0 -r0-> 1 -r1-> 2
        let query = Query { subject: EntityId(0), link: Link::forward(RelationId(2)) };
        let hop = |relation, target| Hop {
            link: Link::forward(RelationId(relation)),
            target: EntityId(target),
            scores: None,
        };
        let stay = Hop { link: Link::NO_OP, target: EntityId(2), scores: None };
        let way = Reasoned {
            entity: EntityId(2),
            score: 0.0,
            start: EntityId(0),
            path: vec![hop(0, 1), hop(1, 2), stay],
            rule: None,
            without: None,
        };
        let relations = |of: &[u32]| of.iter().map(|&id| RelationId(id)).collect::<BTreeSet<_>>();
        let entities = |of: &[u32]| of.iter().map(|&id| EntityId(id)).collect::<BTreeSet<_>>();
        let none = PathLimits::default;
        let cases = [
            (true, none()),
            (true, PathLimits { relations: relations(&[0, 1, 3]), ..none() }),
            (false, PathLimits { relations: relations(&[0]), ..none() }),
            (false, PathLimits { without_relations: relations(&[1]), ..none() }),
            (true, PathLimits { through: vec![entities(&[1, 5])], ..none() }),
            // The ends are not on the way.
            (false, PathLimits { through: vec![entities(&[2])], ..none() }),
            (false, PathLimits { through: vec![entities(&[1]), entities(&[5])], ..none() }),
            (false, PathLimits { without: entities(&[1]), ..none() }),
            (true, PathLimits { without: entities(&[0, 2]), ..none() }),
            (true, PathLimits { max_hops: Some(2), ..none() }),
            (false, PathLimits { max_hops: Some(1), ..none() }),
        ];
        for (expected, limits) in cases {
            assert_eq!(limits.admit(query, &way), expected, "{limits:?}");
        }
        let bare = Reasoned { path: Vec::new(), ..way };
        assert!(!none().admit(query, &bare), "nothing supports it");
    }
}
