//! A data set in the relation ids of another: how a model learnt from one graph is used on another.

use super::dataset::sorted;
use super::{Array, Dataset, Known, Names, RelationId, Triple, Vocabulary};
use std::sync::Arc;

/// The relations of a data set that a vocabulary lacks, and their facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherRelations {
    /// The relations, by name.
    pub names: Vec<String>,
    /// How many facts of all splits have these relations.
    pub facts: usize,
}

impl Dataset {
    /// The same data with its relations numbered as in `relations`. Facts of other relations are left out and counted.
    pub fn with_relations(&self, relations: &Vocabulary) -> (Dataset, OtherRelations) {
        let ours = &self.names.relations;
        let places: Vec<Option<RelationId>> =
            ours.iter().map(|name| relations.get(name).map(RelationId)).collect();
        let mut other = OtherRelations {
            names: ours
                .iter()
                .zip(&places)
                .filter(|(_, place)| place.is_none())
                .map(|(n, _)| n.to_owned())
                .collect(),
            facts: 0,
        };
        let mut moved = |split: &[Triple]| -> Array<Triple> {
            let moved: Vec<Triple> = split
                .iter()
                .filter_map(|fact| Some(Triple { relation: places[fact.relation.index()]?, ..*fact }))
                .collect();
            other.facts += split.len() - moved.len();
            moved.into()
        };
        let place = |relation: RelationId| places[relation.index()];
        let moved_fact = |fact: Triple| Some(Triple { relation: place(fact.relation)?, ..fact });
        let Known { facts, queries, valid, notes, negatives, valid_negatives } = &self.known;
        let moved_facts = moved(facts);
        let queries = if self.known.has_own_graph() { moved(queries) } else { moved_facts.clone() };
        let negatives_of =
            |split: &[Triple]| sorted(split.iter().filter_map(|&fact| moved_fact(fact)).collect());
        let known = Known {
            facts: moved_facts,
            queries,
            valid: moved(valid),
            notes: notes.map(moved_fact),
            negatives: negatives_of(negatives),
            valid_negatives: negatives_of(valid_negatives),
        };
        let (test_notes, test_negatives) =
            (self.test_notes.map(moved_fact), negatives_of(&self.test_negatives));
        let (test, test_left_out) = (moved(&self.test), moved(&self.test_left_out));
        let labels = self.names.relation_labels.iter();
        let relation_labels = labels
            .filter_map(|(relation, label)| Some((places[relation.index()]?, label.to_owned())))
            .collect();
        let types = self.names.types.map(Some, place);
        let names =
            Names { relations: relations.clone(), relation_labels, types, ..Names::clone(&self.names) };
        let findings = self.findings;
        let names = Arc::new(names);
        let dataset = Dataset {
            names,
            known,
            test,
            test_left_out,
            test_notes,
            test_negatives,
            findings,
            ..Dataset::default()
        };
        (dataset, other)
    }

    /// The same with those of its relations that `relations` lacks after the others; what these are is told beside it.
    pub fn with_relations_first(&self, relations: &Vocabulary) -> (Dataset, OtherRelations) {
        let mut all = relations.clone();
        for name in self.names.relations.iter() {
            all.intern(name);
        }
        let names = all.iter().skip(relations.len()).map(str::to_owned).collect();
        let (dataset, _) = self.with_relations(&all);
        let Dataset { known: Known { facts, valid, .. }, test, test_left_out, .. } = &dataset;
        let splits = [facts, valid, test, test_left_out].into_iter().flat_map(|split| split.iter());
        let facts = splits.filter(|fact| fact.relation.index() >= relations.len()).count();
        (dataset, OtherRelations { names, facts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset() -> Dataset {
        let facts: Array<Triple> =
            [(0, 0, 1), (1, 1, 2), (2, 2, 0)].map(|(h, r, t)| Triple::new(h, r, t)).into();
        Dataset {
            names: Arc::new(Names {
                entities: ["a", "b", "c"].into_iter().collect(),
                relations: ["likes", "knows", "owns"].into_iter().collect(),
                relation_labels: [(RelationId(1), "is acquainted with".to_owned())].into_iter().collect(),
                ..Names::default()
            }),
            known: Known {
                queries: facts.clone(),
                facts,
                valid: [Triple::new(0, 1, 2)].into(),
                ..Known::default()
            },
            test: [Triple::new(2, 2, 1), Triple::new(2, 0, 1)].into(),
            ..Dataset::default()
        }
    }

    #[test]
    fn relations_are_found_by_name_and_others_are_counted() {
        let relations: Vocabulary = ["knows", "fears", "likes"].into_iter().collect();
        let (moved, other) = dataset().with_relations(&relations);
        assert_eq!(other, OtherRelations { names: vec!["owns".to_owned()], facts: 2 });
        assert_eq!(moved.known.facts[..], [Triple::new(0, 2, 1), Triple::new(1, 0, 2)]);
        assert_eq!(
            (&moved.known.valid[..], &moved.test[..]),
            (&[Triple::new(0, 0, 2)][..], &[Triple::new(2, 2, 1)][..])
        );
        assert!(!moved.known.has_own_graph());
        assert_eq!(moved.names.relation_label(RelationId(0)), "is acquainted with");
        assert_eq!(moved.graph().relations(), 3);
    }

    #[test]
    fn other_relations_can_come_after_those_that_are_known() {
        let relations: Vocabulary = ["knows", "fears", "likes"].into_iter().collect();
        let (moved, other) = dataset().with_relations_first(&relations);
        assert_eq!(other, OtherRelations { names: vec!["owns".to_owned()], facts: 2 });
        let facts = [Triple::new(0, 2, 1), Triple::new(1, 0, 2), Triple::new(2, 3, 0)];
        assert_eq!(moved.known.facts[..], facts);
        assert_eq!(moved.test[..], [Triple::new(2, 3, 1), Triple::new(2, 2, 1)]);
        assert_eq!((moved.names.relation(RelationId(3)), moved.graph().relations()), ("owns", 4));
    }

    #[test]
    fn the_same_relations_change_nothing() {
        let dataset = dataset();
        let (same, other) = dataset.with_relations(&dataset.names.relations);
        assert_eq!(other, OtherRelations::default());
        assert_eq!((same.known.facts, same.test), (dataset.known.facts, dataset.test));
    }
}
