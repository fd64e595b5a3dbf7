//! Ids of entities and relations, triples, and links (a relation walked in one of its two directions).
//!
//! Ids are dense: entity `i` is the `i`-th name of the entity vocabulary. Every relation `r` gives two
//! links, `r` and `r⁻¹`; three links are reserved and belong to no relation: PAD, START and NO_OP.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// An entity, by its index in the entity vocabulary.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Pod, Zeroable,
)]
#[repr(transparent)]
pub struct EntityId(pub u32);

/// A relation, by its index in the relation vocabulary.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Pod, Zeroable,
)]
#[repr(transparent)]
pub struct RelationId(pub u32);

impl EntityId {
    /// The id as an index into per-entity arrays.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RelationId {
    /// The id as an index into per-relation arrays.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which way a relation is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From head to tail.
    Forward,
    /// From tail to head.
    Inverse,
}

/// One fact: `head —relation→ tail`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Triple {
    /// Where the relation starts.
    pub head: EntityId,
    /// The relation.
    pub relation: RelationId,
    /// Where the relation ends.
    pub tail: EntityId,
}

impl Triple {
    /// A fact from plain ids.
    pub fn new(head: u32, relation: u32, tail: u32) -> Self {
        Self { head: EntityId(head), relation: RelationId(relation), tail: EntityId(tail) }
    }
}

/// A relation in one direction, or one of the three reserved links: the label of an edge.
///
/// The number doubles as a row of the relation embedding tables, which is why the reserved links come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Link(pub u32);

impl Link {
    /// Padding; never walked.
    pub const PAD: Link = Link(0);
    /// The "previous relation" of the first hop; never walked.
    pub const START: Link = Link(1);
    /// Stay where you are.
    pub const NO_OP: Link = Link(2);
    /// How many links are reserved.
    pub const RESERVED: usize = 3;

    /// `relation` walked in `direction`.
    pub fn new(relation: RelationId, direction: Direction) -> Self {
        Link(Self::RESERVED as u32 + 2 * relation.0 + (direction == Direction::Inverse) as u32)
    }

    /// `relation` from head to tail.
    pub fn forward(relation: RelationId) -> Self {
        Self::new(relation, Direction::Forward)
    }

    /// `relation` from tail to head.
    pub fn inverse_of(relation: RelationId) -> Self {
        Self::new(relation, Direction::Inverse)
    }

    /// How many links there are over `relations` relations, the reserved ones included.
    pub fn count(relations: usize) -> usize {
        Self::RESERVED + 2 * relations
    }

    /// The same relation walked the other way; a reserved link is its own reverse.
    #[inline]
    pub fn reversed(self) -> Self {
        if self.is_reserved() { self } else { Link(((self.0 - 3) ^ 1) + 3) }
    }

    /// Whether this is PAD, START or NO_OP.
    #[inline]
    pub fn is_reserved(self) -> bool {
        (self.0 as usize) < Self::RESERVED
    }

    /// The relation walked, if this is not a reserved link.
    pub fn relation(self) -> Option<RelationId> {
        (!self.is_reserved()).then(|| RelationId((self.0 - 3) / 2))
    }

    /// Which way the relation is walked; reserved links count as forward.
    pub fn direction(self) -> Direction {
        if !self.is_reserved() && (self.0 - 3) % 2 == 1 { Direction::Inverse } else { Direction::Forward }
    }

    /// The link as an index into per-link arrays.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A question `(subject, link, ?)`. Head queries `(?, r, o)` are `(o, r⁻¹, ?)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// The subject of the query.
    pub subject: EntityId,
    /// The relation; an inverse link asks for the head.
    pub link: Link,
}

impl Query {
    /// The query that `triple` answers in `direction`, and that answer.
    pub fn of(triple: Triple, direction: Direction) -> (Query, EntityId) {
        let link = Link::new(triple.relation, direction);
        match direction {
            Direction::Forward => (Query { subject: triple.head, link }, triple.tail),
            Direction::Inverse => (Query { subject: triple.tail, link }, triple.head),
        }
    }

    /// The fact that `answer` makes; `None` for a reserved link.
    pub fn fact(self, answer: EntityId) -> Option<Triple> {
        let relation = self.link.relation()?;
        Some(match self.link.direction() {
            Direction::Forward => Triple { head: self.subject, relation, tail: answer },
            Direction::Inverse => Triple { head: answer, relation, tail: self.subject },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_keeps_its_relation_and_direction() {
        for relation in (0..5).map(RelationId) {
            for direction in [Direction::Forward, Direction::Inverse] {
                let link = Link::new(relation, direction);
                assert_eq!((link.relation(), link.direction()), (Some(relation), direction));
                assert_eq!(link.reversed().reversed(), link);
                assert_ne!(link.reversed(), link);
                assert_eq!(link.reversed().relation(), Some(relation));
                assert!(!link.is_reserved() && link.index() < Link::count(5));
            }
        }
    }

    #[test]
    fn reserved_links_have_no_relation() {
        for link in [Link::PAD, Link::START, Link::NO_OP] {
            assert_eq!((link.relation(), link.reversed()), (None, link));
        }
    }

    #[test]
    fn a_head_query_walks_the_inverse() {
        let (query, answer) = Query::of(Triple::new(4, 1, 7), Direction::Inverse);
        assert_eq!((query.subject, answer), (EntityId(7), EntityId(4)));
        assert_eq!(query.link, Link::inverse_of(RelationId(1)));
    }
}
