//! What somebody sees first of a run: questions to try, the kinds of things in the graph, what its relations say.

use super::{AskError, Model};
use crate::graph::{EntityId, Link, RelationId};
use serde::Serialize;
use std::collections::HashSet;

/// What a run is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// Questions that have answers, of different relations where there are several.
    pub questions: Vec<ExampleQuestion>,
    /// The kinds of things in the graph, the most frequent first; empty if the data do not say.
    pub kinds: Vec<EntityKind>,
    /// The relations with most facts, each with one of them.
    pub relations: Vec<RelationExample>,
}

/// A kind of things.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntityKind {
    /// Its label, or its name if it has none.
    pub label: String,
    /// How many entities are of that kind.
    pub entities: usize,
}

/// A question to try.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExampleQuestion {
    /// The entity asked about, by id.
    pub subject: String,
    /// Its label, or its id if it has none.
    pub subject_label: String,
    /// The relation.
    pub relation: String,
    /// Its label, or its name if it has none.
    pub relation_label: String,
}

/// A relation with one of its facts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelationExample {
    /// Its name.
    pub id: String,
    /// Its label, or its name if it has none.
    pub label: String,
    /// How many facts the graph has of it.
    pub facts: usize,
    /// The label of the head of one of them.
    pub head: String,
    /// The label of its tail.
    pub tail: String,
}

impl Model {
    /// What the run is about, with at most `questions` questions and `relations` relations.
    ///
    /// # Errors
    /// If the results of the run are damaged.
    pub fn overview(&self, questions: usize, relations: usize) -> Result<Overview, AskError> {
        let by_facts = self.relations_by_facts();
        let example = |&relation: &RelationId| {
            let pairs = self.graph().pairs(Link::forward(relation));
            let (names, (head, tail)) = (self.names(), pairs.pairs().next()?);
            Some(RelationExample {
                id: names.relation(relation).to_owned(),
                label: names.relation_label(relation).to_owned(),
                facts: pairs.len(),
                head: names.label(head).to_owned(),
                tail: names.label(tail).to_owned(),
            })
        };
        Ok(Overview {
            questions: self.example_questions(&by_facts, questions),
            kinds: self.kinds(relations),
            relations: by_facts.iter().filter_map(example).take(relations).collect(),
        })
    }

    fn kinds(&self, most: usize) -> Vec<EntityKind> {
        let types = &self.names().types;
        let kind = |(kind, entities)| EntityKind { label: types.label(kind).to_owned(), entities };
        types.by_frequency().into_iter().take(most).map(kind).collect()
    }

    fn relations_by_facts(&self) -> Vec<RelationId> {
        let mut all: Vec<RelationId> = (0..self.graph().relations() as u32).map(RelationId).collect();
        all.sort_by_key(|&relation| std::cmp::Reverse(self.graph().pairs(Link::forward(relation)).len()));
        all
    }

    /// The questions that the run answered as examples; without them, or if they are too few, the best connected heads
    /// of the largest relations.
    fn example_questions(&self, by_facts: &[RelationId], most: usize) -> Vec<ExampleQuestion> {
        let answered = self.results().map_or(&[][..], |results| &results.examples);
        let by_name = answered.iter().filter_map(|example| {
            let relation = self.relation(&example.relation).ok()?;
            Some((self.index().entity(&example.subject).ok()?, relation))
        });
        let connected = by_facts.iter().filter_map(|&relation| {
            let heads = self.graph().pairs(Link::forward(relation)).sources.iter().copied();
            Some((heads.max_by_key(|&head| self.graph().edges(head).len())?, relation))
        });
        // Questions of other relations first; then, if there are too few relations, more of the same.
        let all: Vec<(EntityId, RelationId)> = by_name.chain(connected).collect();
        let (mut relations, mut chosen) = (HashSet::new(), Vec::new());
        for &one in &all {
            if relations.insert(one.1) {
                chosen.push(one);
            }
        }
        let more: Vec<_> = all.iter().filter(|one| !chosen.contains(one)).copied().collect();
        chosen.extend(more);
        let names = self.names();
        let question = |(subject, relation): (EntityId, RelationId)| ExampleQuestion {
            subject: names.entity(subject).to_owned(),
            subject_label: names.label(subject).to_owned(),
            relation: names.relation(relation).to_owned(),
            relation_label: names.relation_label(relation).to_owned(),
        };
        chosen.into_iter().take(most).map(question).collect()
    }
}
