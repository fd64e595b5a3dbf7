//! Names shared by two data sets: maps the ids of one to the ids of the other.

use super::{EntityId, Link, Names, RelationId, Triple, Vocabulary};

/// For each id of one data set, the id of the same name in another.
#[derive(Clone, Debug)]
pub struct Renumbering {
    entities: Vec<Option<u32>>,
    relations: Vec<Option<u32>>,
}

impl Renumbering {
    /// Maps the ids of `from` to those of `to`.
    pub fn new(from: &Names, to: &Names) -> Self {
        let ids = |from: &Vocabulary, to: &Vocabulary| from.iter().map(|name| to.get(name)).collect();
        Self { entities: ids(&from.entities, &to.entities), relations: ids(&from.relations, &to.relations) }
    }

    /// The entity of the same name, if there is one.
    pub fn entity(&self, id: EntityId) -> Option<EntityId> {
        self.entities[id.index()].map(EntityId)
    }

    /// The relation of the same name, if there is one.
    pub fn relation(&self, id: RelationId) -> Option<RelationId> {
        self.relations[id.index()].map(RelationId)
    }

    /// The same link, if there is one; reserved links are the same everywhere.
    pub fn link(&self, link: Link) -> Option<Link> {
        match link.relation() {
            Some(relation) => Some(Link::new(self.relation(relation)?, link.direction())),
            None => Some(link),
        }
    }

    /// The same fact, if its names are known.
    pub fn fact(&self, fact: Triple) -> Option<Triple> {
        let (head, tail) = (self.entity(fact.head)?, self.entity(fact.tail)?);
        Some(Triple { head, relation: self.relation(fact.relation)?, tail })
    }

    /// For each entity, its row in a per-entity table of the other data set.
    pub fn entity_rows(&self) -> &[Option<u32>] {
        &self.entities
    }

    /// The same for links, including the reserved ones.
    pub fn link_rows(&self) -> Vec<Option<u32>> {
        let links = (0..Link::count(self.relations.len()) as u32).map(Link);
        links.map(|link| self.link(link).map(|link| link.0)).collect()
    }

    /// How many entities and relations have no counterpart.
    pub fn without(&self) -> [usize; 2] {
        [&self.entities, &self.relations].map(|ids| ids.iter().filter(|id| id.is_none()).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_followed_and_reserved_links_stay() {
        let names = |entities: &[&str], relations: &[&str]| Names {
            entities: entities.iter().copied().collect(),
            relations: relations.iter().copied().collect(),
            ..Names::default()
        };
        let (from, to) = (names(&["a", "b", "c"], &["r", "s"]), names(&["c", "d", "a"], &["s"]));
        let ids = Renumbering::new(&from, &to);
        assert_eq!(ids.entity_rows(), [Some(2), None, Some(0)]);
        assert_eq!(ids.fact(Triple::new(0, 1, 2)), Some(Triple::new(2, 0, 0)));
        assert_eq!((ids.fact(Triple::new(0, 0, 2)), ids.fact(Triple::new(1, 1, 2))), (None, None));
        let back = Link::inverse_of(RelationId(1));
        assert_eq!(ids.link(back), Some(Link::inverse_of(RelationId(0))));
        let s = Link::forward(RelationId(0)).0;
        assert_eq!(ids.link_rows(), [Some(0), Some(1), Some(2), None, None, Some(s), Some(s + 1)]);
        assert_eq!(ids.without(), [1, 1]);
    }
}
