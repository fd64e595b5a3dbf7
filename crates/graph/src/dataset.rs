//! A data set: names, what may be learnt from, and the test split, which only evaluation sees.

use super::{
    Adjacency, Array, Attributes, EntityId, Graph, LabelMap, Link, Note, Notes, Prefixes, RelationId, Triple,
    Types, Vocabulary,
};
use ruleguider_support::shown::grouped;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// The names behind the ids, the labels shown to people instead, and what the data say about entities beside facts.
#[derive(Clone, Default)]
pub struct Names {
    /// Entity names; ids of entities of the graph come first.
    pub entities: Vocabulary,
    /// Relation names.
    pub relations: Vocabulary,
    /// Readable labels, for entities that have one.
    pub labels: LabelMap<EntityId>,
    /// Readable labels, for relations that have one.
    pub relation_labels: LabelMap<RelationId>,
    /// Phrases with a place for each side, `{s} uses {o}`, for relations that have one; after a tab one that begins with
    /// the object, if the user gave it.
    pub relation_phrases: LabelMap<RelationId>,
    /// What kind of thing entities are; which types relations connect.
    pub types: Types,
    /// Numbers and texts of entities.
    pub attributes: Attributes,
    /// Abbreviations of IRIs.
    pub prefixes: Prefixes,
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
        self.relation_labels.get(id).unwrap_or_else(|| self.relation(id))
    }

    /// The label of an entity, or its name where it has none.
    pub fn label(&self, id: EntityId) -> &str {
        self.labels.get(id).unwrap_or_else(|| self.entity(id))
    }
}

/// What training, mining and tuning may see. It contains no test split, so no stage can use it.
#[derive(Clone, Default)]
pub struct Known {
    /// The facts to walk on, to mine rules from and to train embeddings on; distinct.
    pub facts: Array<Triple>,
    /// The queries the walker trains on. The same as `facts` (and sharing its memory) unless the data set
    /// has a graph larger than its set of training queries.
    pub queries: Array<Triple>,
    /// The validation split, for tuning.
    pub valid: Array<Triple>,
    /// How certain these facts are, where they come from and when; nothing about any other fact.
    pub notes: Notes,
    /// Known to be false: counts against rules, is a negative example of training, and is never predicted. None of
    /// them is a fact. Sorted.
    pub negatives: Array<Triple>,
    /// Known to be false, for tuning and calibration.
    pub valid_negatives: Array<Triple>,
}

impl Known {
    /// Whether there are more facts to walk on than queries to learn from.
    pub fn has_own_graph(&self) -> bool {
        !self.facts.is_same(&self.queries)
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
        // Without validation facts nothing is moved, and the facts stay where they are indexed.
        if self.valid.is_empty() {
            return self.clone();
        }
        let facts: Array<Triple> = self.and_valid(&self.facts);
        let queries = if !self.has_own_graph() { facts.clone() } else { self.and_valid(&self.queries) };
        Known { facts, queries, ..self.clone() }
    }

    /// The same with the validation split among the training queries alone: the walker is trained on its answers, but they
    /// are not facts to walk on, to mine from or to train embeddings on.
    pub fn with_valid_as_queries(&self) -> Known {
        Known { queries: self.and_valid(&self.queries), ..self.clone() }
    }

    /// `split`, followed by the validation triples that it lacks.
    fn and_valid(&self, split: &[Triple]) -> Array<Triple> {
        let mut all = split.to_vec();
        let known: HashSet<Triple> = all.iter().copied().collect();
        all.extend(self.valid.iter().filter(|triple| !known.contains(triple)));
        all.into()
    }
}

/// What was odd in the files of a data set: worth knowing, but not an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// LabelMap of entities and relations that no split mentions.
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

/// Facts whose graph is known already; by default none.
#[derive(Clone, Default)]
pub struct Indexed(Option<(Array<Triple>, Arc<Graph>)>);

/// Everything that was read.
#[derive(Clone, Default)]
pub struct Dataset {
    /// Names of all entities and relations, those of the test split included.
    pub names: Arc<Names>,
    /// What may be learnt from; no test split.
    pub known: Known,
    /// The test split: for evaluation and nothing else.
    pub test: Array<Triple>,
    /// Test triples left out because the graph does not have their entities: they are not evaluated, but every figure
    /// on the test split reports how many there are.
    pub test_left_out: Array<Triple>,
    /// Notes of facts of the test split.
    pub test_notes: Notes,
    /// Known to be false, for evaluation.
    pub test_negatives: Array<Triple>,
    /// What was odd in the files.
    pub findings: Findings,
    /// What was understood of the files beyond plain triples, and what was left out and why: sentences.
    pub understood: Vec<String>,
    /// The graph of the facts, where a data file has it.
    pub indexed: Indexed,
}

/// How many facts the user gave, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactCounts {
    /// All of them.
    pub facts: u64,
    /// How many may be learnt from.
    pub learnt: u64,
    /// How many were kept back, to choose settings by and to check answers with.
    pub kept_back: u64,
}

impl fmt::Display for FactCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [facts, learnt, kept_back] = [self.facts, self.learnt, self.kept_back].map(grouped);
        write!(f, "{facts} facts, of which {learnt} learnt from and {kept_back} kept back to check")
    }
}

impl Dataset {
    /// How many facts the data has, and how many of them are in `graph`, which answers are given on.
    pub fn counts(&self, graph: &Graph) -> FactCounts {
        let Known { facts, queries, valid, .. } = &self.known;
        let apart = [queries, valid, &self.test, &self.test_left_out];
        // Where the graph is the training facts, these are the same memory.
        let apart = apart.into_iter().filter(|part| !part.is_same(facts)).flat_map(|part| part.iter());
        let absent = |fact: &&Triple| !graph.contains(fact.head, Link::forward(fact.relation), fact.tail);
        let kept_back = apart.filter(absent).collect::<HashSet<&Triple>>().len() as u64;
        let learnt = graph.facts() as u64;
        FactCounts { facts: learnt + kept_back, learnt, kept_back }
    }

    /// The facts as a graph over all entities and relations.
    pub fn graph(&self) -> Arc<Graph> {
        self.graph_of(&self.known)
    }

    /// The facts of `known` (this data set's, or its [`Known::for_test`]) as a graph over all entities and
    /// relations.
    pub fn graph_of(&self, known: &Known) -> Arc<Graph> {
        match &self.indexed.0 {
            Some((facts, graph)) if known.facts.is_same(facts) => graph.clone(),
            _ => Arc::new(Graph::new(self.names.entities.len(), self.names.relations.len(), &known.facts)),
        }
    }

    /// What the data say about `fact`, of whatever split. For people who read it: learning looks at
    /// [`Known::notes`].
    pub fn note(&self, fact: Triple) -> Note<'_> {
        let known = self.known.notes.of(fact);
        if known.is_empty() { self.test_notes.of(fact) } else { known }
    }

    /// The same with `notes`: those of facts that only the test split has are kept apart.
    pub(super) fn with_notes(self, notes: Notes) -> Self {
        if notes.is_empty() {
            return self;
        }
        let Known { facts, queries, valid, .. } = &self.known;
        let test: [&[Triple]; 3] = [&self.test, &self.test_left_out, &self.test_negatives];
        let mut held_out: HashSet<Triple> = test.into_iter().flatten().copied().collect();
        for fact in [facts, queries, valid].into_iter().flat_map(|split| split.iter()) {
            held_out.remove(fact);
        }
        let known_notes = notes.map(|fact| (!held_out.contains(&fact)).then_some(fact));
        let test_notes = notes.map(|fact| held_out.contains(&fact).then_some(fact));
        Self { known: Known { notes: known_notes, ..self.known }, test_notes, ..self }
    }

    /// The same with the graph of its facts, which is then not built again.
    pub(super) fn indexed_as(self, graph: Graph) -> Self {
        Self { indexed: Indexed(Some((self.known.facts.clone(), Arc::new(graph)))), ..self }
    }

    /// The same with the facts of all splits as training facts and none held out: for the final answers, once the
    /// figures are known. Nothing can be tuned or evaluated with it.
    pub fn everything(&self) -> Dataset {
        let Known { facts, queries, valid, negatives, valid_negatives, .. } = &self.known;
        let mut met = HashSet::new();
        let splits: [&[Triple]; 5] = [facts, queries, valid, &self.test, &self.test_left_out];
        let all: Array<Triple> =
            splits.into_iter().flatten().copied().filter(|&fact| met.insert(fact)).collect();
        let negatives = [negatives, valid_negatives, &self.test_negatives].map(|split| &split[..]).concat();
        let known = Known {
            facts: all.clone(),
            queries: all,
            notes: self.known.notes.and(&self.test_notes),
            negatives: sorted(negatives),
            ..Known::default()
        };
        Dataset { names: self.names.clone(), known, findings: self.findings, ..Dataset::default() }
    }

    /// The same without its test split, numbered as if it had never had one: names that only test facts mention are
    /// gone.
    pub fn without_test(&self) -> Dataset {
        let mut renumbered = Renumbered { of: &self.names, names: Names::default() };
        let Known { facts, queries, valid, notes, negatives, valid_negatives } = &self.known;
        let own_queries = self.known.has_own_graph();
        let facts = renumbered.triples(facts);
        let queries = if own_queries { renumbered.triples(queries) } else { facts.clone() };
        let valid = renumbered.triples(valid);
        let [negatives, valid_negatives] =
            [negatives, valid_negatives].map(|split| sorted(renumbered.triples(split).to_vec()));
        let notes = notes.map(|fact| Some(renumbered.triple(fact)));
        renumbered.what_is_said_about_entities();
        let findings = Findings { test_in_train: 0, test_in_valid: 0, test_unseen: 0, ..self.findings };
        let known = Known { facts, queries, valid, notes, negatives, valid_negatives };
        let names = Arc::new(renumbered.names);
        Dataset { names, known, findings, ..Dataset::default() }
    }

    /// All true answers of every query, in any split: what filtered ranking removes. For evaluation only.
    pub fn answers(&self) -> Adjacency {
        let Known { facts, queries, valid, .. } = &self.known;
        Adjacency::new(self.names.entities.len(), &[facts, queries, valid, &self.test])
    }
}

/// Facts that are known to be false, as they are kept.
pub(super) fn sorted(mut facts: Vec<Triple>) -> Array<Triple> {
    facts.sort_unstable();
    facts.dedup();
    facts.into()
}

/// Names in the order in which triples mention them.
struct Renumbered<'a> {
    of: &'a Names,
    names: Names,
}

impl Renumbered<'_> {
    fn triples(&mut self, triples: &[Triple]) -> Array<Triple> {
        triples.iter().map(|&triple| self.triple(triple)).collect()
    }

    fn triple(&mut self, triple: Triple) -> Triple {
        let head = self.entity(triple.head);
        let relation = self.relation(triple.relation);
        Triple::new(head, relation, self.entity(triple.tail))
    }

    /// Types and attributes of the entities that have a number by now.
    fn what_is_said_about_entities(&mut self) {
        let Names { entities, relations, .. } = &self.names;
        let entity = |old: EntityId| entities.get(self.of.entity(old)).map(EntityId);
        let relation = |old: RelationId| relations.get(self.of.relation(old)).map(RelationId);
        let types = self.of.types.map(entity, relation);
        let attributes = self.of.attributes.map(entity);
        self.names = Names {
            types,
            attributes,
            prefixes: self.of.prefixes.clone(),
            ..std::mem::take(&mut self.names)
        };
    }

    fn entity(&mut self, old: EntityId) -> u32 {
        let new = self.names.entities.intern(self.of.entity(old));
        if let Some(label) = self.of.labels.get(old) {
            self.names.labels.insert(EntityId(new), label.to_owned());
        }
        new
    }

    fn relation(&mut self, old: RelationId) -> u32 {
        let new = self.names.relations.intern(self.of.relation(old));
        if let Some(label) = self.of.relation_labels.get(old) {
            self.names.relation_labels.insert(RelationId(new), label.to_owned());
        }
        if let Some(phrase) = self.of.relation_phrases.get(old) {
            self.names.relation_phrases.insert(RelationId(new), phrase.to_owned());
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_every_fact_once_and_nothing_held_out() {
        let split = |facts: &[(u32, u32, u32)]| -> Array<Triple> {
            facts.iter().map(|&(head, relation, tail)| Triple::new(head, relation, tail)).collect()
        };
        let dataset = Dataset {
            known: Known {
                facts: split(&[(0, 0, 1), (1, 0, 2)]),
                queries: split(&[(0, 0, 1)]),
                valid: split(&[(2, 0, 3)]),
                ..Known::default()
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
