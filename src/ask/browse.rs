//! Looking around in a run: the facts of an entity, a relation with its figures, the rules for it. Long lists come in
//! pages. A page is identified by the number of items before it, which is stable because the graph does not change.

use super::{AskError, Model, RuleSummary, StepNote};
use crate::graph::{Direction, EntityId, Link, RelationId};
use crate::rule::UNSEEN;
use crate::run::{Checksum, Stages};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::HashMap;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// How many items all pages have together.
    pub total: usize,
    /// Where the next page begins; absent on the last.
    pub next: Option<usize>,
}

impl<T> Page<T> {
    /// The items of `all` from `after` on, at most `limit`, each made by `make`.
    pub(super) fn of<S>(all: &[S], after: usize, limit: usize, make: impl Fn(&S) -> T) -> Self {
        let from = after.min(all.len());
        let to = from.saturating_add(limit).min(all.len());
        let next = (to < all.len()).then_some(to);
        Self { items: all[from..to].iter().map(make).collect(), total: all.len(), next }
    }
}

impl<T> Page<Option<T>> {
    /// The same page without the `None` items.
    pub(super) fn flatten(self) -> Page<T> {
        let Self { items, total, next } = self;
        Page { items: items.into_iter().flatten().collect(), total, next }
    }
}

/// An entity with its facts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntityFacts {
    /// Its id.
    pub id: String,
    /// Its label, or its id if it has none.
    pub label: String,
    /// Numbers, texts and dates that the data give it: what is not a fact about two entities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<EntityAttribute>,
    /// Its relations, and how many facts it has of each.
    pub links: Vec<LinkCount>,
    /// Its facts, grouped by relation.
    pub facts: Page<EntityFact>,
}

/// An attribute of an entity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntityAttribute {
    /// What it is called.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// How many facts an entity has of one relation in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkCount {
    /// The relation.
    pub relation: String,
    /// Whether the entity is the tail of the facts.
    pub inverse: bool,
    /// How many there are.
    pub facts: usize,
}

/// A fact from the point of view of one of its entities.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntityFact {
    /// The relation.
    pub relation: String,
    /// Whether the entity is the tail of the fact.
    pub inverse: bool,
    /// The entity at the other end, by id.
    pub entity: String,
    /// Its label, or its id if it has none.
    pub label: String,
    /// What the data say about this fact, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<StepNote>,
}

/// A relation and how it is used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelationUse {
    /// Its name.
    pub relation: String,
    /// Its label, or its name if it has none.
    pub label: String,
    /// How many facts the graph has of it.
    pub facts: usize,
    /// How many entities are heads of them.
    pub heads: usize,
    /// How many are tails.
    pub tails: usize,
    /// How many rules predict it.
    pub rules: usize,
}

impl EntityAttribute {
    fn of((name, value): (&str, &str)) -> Self {
        Self { name: name.to_owned(), value: value.to_owned() }
    }
}

/// Which rules predict a relation, the most confident first.
pub(super) type RulesByHead = HashMap<RelationId, Vec<u32>>;

impl Model {
    /// The facts of `entity`; with `link`, only those of that link. Returns the page after the first `after` facts,
    /// with at most `limit`.
    pub fn facts_of(&self, entity: EntityId, link: Option<Link>, after: usize, limit: usize) -> EntityFacts {
        let (graph, names) = (self.graph(), self.names());
        let relation =
            |link: Link| link.relation().map_or("", |relation| names.relation(relation)).to_owned();
        let inverse = |link: Link| link.direction() == Direction::Inverse;
        let counted = graph.edges(entity).chunk_by(|a, b| a.link == b.link).map(|run| LinkCount {
            relation: relation(run[0].link),
            inverse: inverse(run[0].link),
            facts: run.len(),
        });
        let edges = match link {
            Some(link) => graph.adjacency().edges_by(entity, link),
            None => graph.edges(entity),
        };
        EntityFacts {
            id: names.entity(entity).to_owned(),
            label: names.label(entity).to_owned(),
            attributes: names.attributes.of(entity).map(EntityAttribute::of).collect(),
            links: counted.collect(),
            facts: Page::of(edges, after, limit, |edge| EntityFact {
                relation: relation(edge.link),
                inverse: inverse(edge.link),
                entity: names.entity(edge.target).to_owned(),
                label: names.label(edge.target).to_owned(),
                note: self.note_of(entity, edge.link, edge.target),
            }),
        }
    }

    /// How `relation` is used.
    pub fn relation_use(&self, relation: RelationId) -> RelationUse {
        let [forward, back] =
            [Link::forward(relation), Link::inverse_of(relation)].map(|link| self.graph().pairs(link));
        RelationUse {
            relation: self.names().relation(relation).to_owned(),
            label: self.names().relation_label(relation).to_owned(),
            facts: forward.len(),
            heads: forward.sources.len(),
            tails: back.sources.len(),
            rules: self.rules_by_head().get(&relation).map_or(0, Vec::len),
        }
    }

    /// The rules that predict `head` with a smoothed confidence of at least `min_confidence`, the highest first: the page after the first
    /// `after`, with at most `limit`.
    pub fn rules_of(
        &self,
        head: RelationId,
        min_confidence: f64,
        after: usize,
        limit: usize,
    ) -> Page<RuleSummary> {
        let all = self.rules_by_head().get(&head).map_or(&[][..], Vec::as_slice);
        let confidence = |&place: &u32| self.rules()[place as usize].counts.confidence(UNSEEN);
        let enough = all.partition_point(|place| confidence(place) >= min_confidence);
        Page::of(&all[..enough], after, limit, |&place| {
            RuleSummary::new(&self.rules()[place as usize], self.names(), self.naming())
        })
    }

    /// The checksum of everything that answers depend on: the program, the data, and what was learnt from it.
    ///
    /// # Errors
    /// If the list of stages cannot be read.
    pub fn fingerprint(&self) -> Result<Checksum, AskError> {
        let stages = Stages::of(self.directory())?;
        let made: Vec<_> = stages.records().values().map(|record| (&record.inputs, &record.files)).collect();
        // Answers show labels, which are not part of what is learnt from.
        let names = self.names();
        let labels: BTreeMap<u32, &str> = names.labels.iter().map(|(id, label)| (id.0, label)).collect();
        let relations: BTreeMap<u32, &str> =
            names.relation_labels.iter().map(|(id, label)| (id.0, label)).collect();
        let phrases: BTreeMap<u32, &str> =
            names.relation_phrases.iter().map(|(id, phrase)| (id.0, phrase)).collect();
        let shown = (labels, relations, phrases);
        Ok(Checksum::of(&(crate::VERSION, self.checksum(), made, self.config().walk.beam, shown)))
    }

    /// The relation that `text` names; its direction is ignored.
    ///
    /// # Errors
    /// If there is none, with similar names.
    pub fn relation(&self, text: &str) -> Result<RelationId, AskError> {
        let link = self.index().link(text)?;
        link.relation().ok_or_else(|| AskError::Cannot(format!("`{text}` is not a relation of the graph")))
    }

    pub(super) fn rules_by_head(&self) -> &RulesByHead {
        self.rules_by_head.get_or_init(|| {
            let rules = self.rules();
            let mut by_head = RulesByHead::new();
            for (place, scored) in (0..).zip(rules) {
                by_head.entry(scored.rule.relation()).or_default().push(place);
            }
            let confidence = |place: u32| rules[place as usize].counts.confidence(UNSEEN);
            for places in by_head.values_mut() {
                // The sort is stable: ties keep the order of the file.
                places.sort_by(|&a, &b| confidence(b).total_cmp(&confidence(a)));
            }
            by_head
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn pages_join_without_a_gap_and_end() {
        let all: Vec<u32> = (0..25).collect();
        let (mut seen, mut after) = (Vec::new(), Some(0));
        while let Some(from) = after {
            let page = Page::of(&all, from, 10, |&item| item);
            assert_eq!(page.total, 25);
            seen.extend(page.items);
            after = page.next;
        }
        assert_eq!(seen, all);
        for (after, limit) in [(25, 10), (usize::MAX, usize::MAX), (0, 0)] {
            assert!(Page::of(&all, after, limit, |&item| item).items.is_empty());
        }
    }
}
