//! A data set: names, what may be learnt from, and the test split, which only evaluation sees.

use super::{Adjacency, EntityId, Graph, RelationId, Triple, Vocabulary};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// The names behind the ids, and the labels shown to people instead.
#[derive(Clone, Default)]
pub struct Names {
    /// Entity names; ids of entities of the graph come first.
    pub entities: Vocabulary,
    /// Relation names.
    pub relations: Vocabulary,
    /// Readable labels, for entities that have one.
    pub labels: HashMap<EntityId, String>,
    /// Readable labels, for relations that have one.
    pub relation_labels: HashMap<RelationId, String>,
}

impl Names {
    /// The name of an entity, as in the data.
    pub fn entity(&self, id: EntityId) -> &str {
        self.entities.name(id.0)
    }

    /// The name of a relation, as in the data.
    pub fn relation(&self, id: RelationId) -> &str {
        self.relations.name(id.0)
    }

    /// The label of a relation, or its name where it has none.
    pub fn relation_label(&self, id: RelationId) -> &str {
        self.relation_labels.get(&id).map_or_else(|| self.relation(id), String::as_str)
    }

    /// The label of an entity, or its name where it has none.
    pub fn label(&self, id: EntityId) -> &str {
        self.labels.get(&id).map_or_else(|| self.entity(id), String::as_str)
    }
}

/// What training, mining and tuning may see. It contains no test split, so no stage can use it.
#[derive(Clone, Default)]
pub struct Known {
    /// The facts to walk on, to mine rules from and to train embeddings on; distinct.
    pub facts: Arc<[Triple]>,
    /// The queries the walker trains on. The same as `facts` (and sharing its memory) unless the data set
    /// has a graph larger than its set of training queries.
    pub queries: Arc<[Triple]>,
    /// The validation split, for tuning.
    pub valid: Arc<[Triple]>,
}

impl Known {
    /// Whether there are more facts to walk on than queries to learn from.
    pub fn has_own_graph(&self) -> bool {
        !Arc::ptr_eq(&self.facts, &self.queries)
    }

    /// All answers that tuning may know, over this many entities: the ones that rankings for tuning filter out.
    pub fn answers(&self, entities: usize) -> Adjacency {
        Adjacency::new(entities, &[&self.facts, &self.queries, &self.valid])
    }

    /// What the model for the test figure is trained on and queried on. A data set with a graph of its own adds its
    /// validation split once all settings are chosen; others do not.
    pub fn for_test(&self) -> Known {
        if self.has_own_graph() { self.with_valid_learnt() } else { self.clone() }
    }

    /// The same with the validation split moved into facts and training queries: what the final figure of
    /// a data set such as NELL-995 is trained on, once every setting has been chosen without it.
    pub fn with_valid_learnt(&self) -> Known {
        let facts: Arc<[Triple]> = self.and_valid(&self.facts);
        let queries = if Arc::ptr_eq(&self.facts, &self.queries) {
            facts.clone()
        } else {
            self.and_valid(&self.queries)
        };
        Known { facts, queries, valid: self.valid.clone() }
    }

    /// The same with the validation split among the training queries alone: the walker is taught its answers, but they
    /// are not facts to walk on, to mine from or to train embeddings on.
    pub fn with_valid_as_queries(&self) -> Known {
        Known { queries: self.and_valid(&self.queries), ..self.clone() }
    }

    /// `split`, followed by the validation triples that it lacks.
    fn and_valid(&self, split: &[Triple]) -> Arc<[Triple]> {
        let mut all = split.to_vec();
        let known: HashSet<Triple> = all.iter().copied().collect();
        all.extend(self.valid.iter().filter(|triple| !known.contains(triple)));
        Arc::from(all)
    }
}

/// What was odd in the files of a data set: worth knowing, but not an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// First lines of TSV files that name the columns; they are skipped.
    pub headers: usize,
    /// Lines that repeat a fact of the same split; the repetitions are left out.
    pub duplicates: usize,
    /// Validation triples that are also in training.
    pub valid_in_train: usize,
    /// Test triples that are also in training.
    pub test_in_train: usize,
    /// Test triples that are also in validation.
    pub test_in_valid: usize,
    /// Validation triples with an entity that is not in the graph.
    pub valid_unseen: usize,
    /// Test triples, those left out included, with an entity that is not in the graph they are answered on.
    #[serde(skip)]
    pub test_unseen: usize,
    /// Labels of entities and relations that no split mentions.
    pub labels_unused: usize,
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { names, known, test, .. } = self;
        let (entities, relations) = (names.entities.len(), names.relations.len());
        let (facts, valid, test) = (known.facts.len(), known.valid.len(), test.len());
        write!(
            f,
            "Dataset({entities} entities, {relations} relations, {facts} facts, {valid} valid, {test} test)"
        )
    }
}

/// Everything that was read.
#[derive(Clone, Default)]
pub struct Dataset {
    /// Names of all entities and relations, those of the test split included.
    pub names: Arc<Names>,
    /// What may be learnt from; no test split.
    pub known: Known,
    /// The test split: for evaluation and nothing else.
    pub test: Arc<[Triple]>,
    /// Test triples left out because the graph does not have their entities: they are not evaluated, but every figure
    /// on the test split reports how many there are.
    pub test_left_out: Arc<[Triple]>,
    /// What was odd in the files.
    pub findings: Findings,
}

impl Dataset {
    /// The facts as a graph over all entities and relations.
    pub fn graph(&self) -> Arc<Graph> {
        self.graph_of(&self.known)
    }

    /// The facts of `known` (this data set's, or its [`Known::for_test`]) as a graph over all entities and
    /// relations.
    pub fn graph_of(&self, known: &Known) -> Arc<Graph> {
        Arc::new(Graph::new(self.names.entities.len(), self.names.relations.len(), &known.facts))
    }

    /// The same with the facts of all splits as training facts and none held out: for the final answers, once the
    /// figures are known. Nothing can be tuned or evaluated with it.
    pub fn everything(&self) -> Dataset {
        let Known { facts, queries, valid } = &self.known;
        let mut met = HashSet::new();
        let splits: [&[Triple]; 5] = [facts, queries, valid, &self.test, &self.test_left_out];
        let all: Arc<[Triple]> =
            splits.into_iter().flatten().copied().filter(|&fact| met.insert(fact)).collect();
        Dataset {
            names: self.names.clone(),
            known: Known { facts: all.clone(), queries: all, valid: Arc::from([]) },
            findings: self.findings,
            ..Dataset::default()
        }
    }

    /// The same without its test split, numbered as if it had never had one: names that only test facts mention are
    /// gone.
    pub fn without_test(&self) -> Dataset {
        let mut renumbered = Renumbered { of: &self.names, names: Names::default() };
        let Known { facts, queries, valid } = &self.known;
        let own_queries = self.known.has_own_graph();
        let facts = renumbered.triples(facts);
        let queries = if own_queries { renumbered.triples(queries) } else { facts.clone() };
        let valid = renumbered.triples(valid);
        let findings = Findings { test_in_train: 0, test_in_valid: 0, test_unseen: 0, ..self.findings };
        let (known, names) = (Known { facts, queries, valid }, Arc::new(renumbered.names));
        Dataset { names, known, findings, ..Dataset::default() }
    }

    /// All true answers of every query, in any split: what filtered ranking removes. For evaluation only.
    pub fn answers(&self) -> Adjacency {
        let Known { facts, queries, valid } = &self.known;
        Adjacency::new(self.names.entities.len(), &[facts, queries, valid, &self.test])
    }
}

/// Names in the order in which triples mention them.
struct Renumbered<'a> {
    of: &'a Names,
    names: Names,
}

impl Renumbered<'_> {
    fn triples(&mut self, triples: &[Triple]) -> Arc<[Triple]> {
        triples
            .iter()
            .map(|triple| {
                let head = self.entity(triple.head);
                let relation = self.relation(triple.relation);
                Triple::new(head, relation, self.entity(triple.tail))
            })
            .collect()
    }

    fn entity(&mut self, old: EntityId) -> u32 {
        let new = self.names.entities.intern(self.of.entity(old));
        if let Some(label) = self.of.labels.get(&old) {
            self.names.labels.entry(EntityId(new)).or_insert_with(|| label.clone());
        }
        new
    }

    fn relation(&mut self, old: RelationId) -> u32 {
        let new = self.names.relations.intern(self.of.relation(old));
        if let Some(label) = self.of.relation_labels.get(&old) {
            self.names.relation_labels.entry(RelationId(new)).or_insert_with(|| label.clone());
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_every_fact_once_and_nothing_held_out() {
        let split = |facts: &[(u32, u32, u32)]| -> Arc<[Triple]> {
            facts.iter().map(|&(head, relation, tail)| Triple::new(head, relation, tail)).collect()
        };
        let dataset = Dataset {
            known: Known {
                facts: split(&[(0, 0, 1), (1, 0, 2)]),
                queries: split(&[(0, 0, 1)]),
                valid: split(&[(2, 0, 3)]),
            },
            test: split(&[(3, 0, 4), (0, 0, 1)]),
            test_left_out: split(&[(8, 0, 9)]),
            ..Dataset::default()
        };
        let all = dataset.everything();
        let expected = split(&[(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 4), (8, 0, 9)]);
        assert_eq!((&all.known.facts, all.known.has_own_graph()), (&expected, false));
        assert!(all.known.valid.is_empty() && all.test.is_empty() && all.test_left_out.is_empty());
        assert_eq!(all.everything().known.facts, expected);
    }
}
