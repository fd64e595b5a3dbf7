//! The data file: a data set with its graph, in a form that is mapped instead of parsed.
//!
//! A run writes one and is self-contained by it; every command opens it. Opening compares checksums and builds nothing:
//! names, labels, splits and the indexed graph are arrays of the file. Notes of facts, negatives, types and attributes are
//! sections that are there only if the data have them. More can be added under names of their own: readers take those
//! that they know.

use super::array::Array;
use super::labels::LabelMap;
use super::mapped::{SectionReader, SectionWriter};
use super::{
    Attributes, Dataset, Findings, Graph, GraphError, Known, Names, Notes, Prefixes, Triple, Types,
    Vocabulary,
};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// The ending of data files.
pub const DATA_FILE_ENDING: &str = "rg";

const ENTITIES: &str = "entities";
const RELATIONS: &str = "relations";
const ENTITY_LABELS: &str = "entity_labels";
const RELATION_LABELS: &str = "relation_labels";
const RELATION_PHRASES: &str = "relation_phrases";
const FACTS: &str = "facts";
const QUERIES: &str = "queries";
const VALID: &str = "valid";
const TEST: &str = "test";
const TEST_LEFT_OUT: &str = "test_left_out";
const NEGATIVES: &str = "negatives";
const VALID_NEGATIVES: &str = "valid_negatives";
const TEST_NEGATIVES: &str = "test_negatives";
const NOTES: &str = "notes";
const TEST_NOTES: &str = "test_notes";
const TYPES: &str = "types";
const ATTRIBUTES: &str = "attributes";

/// What the header of a data file says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct About {
    /// The version of the program that wrote it.
    version: String,
    findings: Findings,
    test_unseen: usize,
    sums: Option<DataSums>,
    #[serde(default, skip_serializing_if = "Prefixes::is_empty")]
    prefixes: Prefixes,
}

/// The checksums by which runs identify data. They are kept with it, so that nobody has to compute them again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSums {
    /// Of what may be learnt from.
    pub known: String,
    /// Of the whole data set.
    pub whole: String,
}

/// The data file at a path, or its bytes.
pub struct DataFile {
    /// The data set; its arrays lie in the file.
    pub dataset: Dataset,
    /// Its checksums, if the writer gave them.
    pub sums: Option<DataSums>,
}

impl DataFile {
    /// Writes `dataset` to `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(path: &Path, dataset: &Dataset, sums: Option<&DataSums>) -> Result<(), GraphError> {
        let graph = dataset.graph();
        sections(dataset, &graph).write(path, &about(dataset, sums))
    }

    /// `dataset` as the bytes of a data file, to be sent to other processes.
    pub fn to_bytes(dataset: &Dataset) -> Vec<u8> {
        let graph = dataset.graph();
        sections(dataset, &graph).to_bytes(&about(dataset, None))
    }

    /// Maps the data file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is no data file, or is damaged.
    pub fn open(path: &Path) -> Result<Self, GraphError> {
        let (file, about) = SectionReader::open(path)?;
        Self::of_sections(&file, about)
    }

    /// The data set in the bytes of a data file; `name` stands for a path in messages.
    ///
    /// # Errors
    /// If they are not those of a data file, or damaged.
    pub fn of_bytes(name: &str, bytes: &[u8]) -> Result<Self, GraphError> {
        let (file, about) = SectionReader::of_bytes(name, bytes)?;
        Self::of_sections(&file, about)
    }

    /// Whether the file at `path` is a data file, whatever it is called.
    pub fn is_one(path: &Path) -> bool {
        SectionReader::is_one(path)
    }

    fn of_sections(file: &SectionReader, about: About) -> Result<Self, GraphError> {
        let names = Names {
            entities: Vocabulary::mapped(ENTITIES, file)?,
            relations: Vocabulary::mapped(RELATIONS, file)?,
            labels: LabelMap::mapped(ENTITY_LABELS, file)?,
            relation_labels: LabelMap::mapped(RELATION_LABELS, file)?,
            relation_phrases: LabelMap::mapped(RELATION_PHRASES, file)?,
            types: Types::mapped(TYPES, file)?,
            attributes: Attributes::mapped(ATTRIBUTES, file)?,
            prefixes: about.prefixes,
        };
        let facts: Array<Triple> = file.array(FACTS)?;
        let queries = if file.has(QUERIES) { file.array(QUERIES)? } else { facts.clone() };
        let optional = |name: &str| if file.has(name) { file.array(name) } else { Ok(Array::default()) };
        let known = Known {
            facts,
            queries,
            valid: file.array(VALID)?,
            notes: Notes::mapped(NOTES, file)?,
            negatives: optional(NEGATIVES)?,
            valid_negatives: optional(VALID_NEGATIVES)?,
        };
        let (test_notes, test_negatives) = (Notes::mapped(TEST_NOTES, file)?, optional(TEST_NEGATIVES)?);
        let (test, test_left_out) = (file.array(TEST)?, file.array(TEST_LEFT_OUT)?);
        let sizes = (names.entities.len(), names.relations.len());
        let facts = [&known.facts, &known.queries, &known.valid, &test, &test_left_out];
        let negatives = [&known.negatives, &known.valid_negatives, &test_negatives];
        for split in facts.into_iter().chain(negatives) {
            check_ids(split, sizes, file)?;
        }
        let graph = Graph::mapped(sizes, file)?;
        let findings = Findings { test_unseen: about.test_unseen, ..about.findings };
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
        Ok(Self { dataset: dataset.indexed_as(graph), sums: about.sums })
    }
}

fn about(dataset: &Dataset, sums: Option<&DataSums>) -> About {
    About {
        version: ruleguider_support::VERSION.to_owned(),
        findings: dataset.findings,
        test_unseen: dataset.findings.test_unseen,
        sums: sums.cloned(),
        prefixes: dataset.names.prefixes.clone(),
    }
}

fn sections<'a>(dataset: &'a Dataset, graph: &'a Graph) -> SectionWriter<'a> {
    let Dataset { names, known, test, test_left_out, test_notes, test_negatives, .. } = dataset;
    let mut out = SectionWriter::default();
    names.entities.write(ENTITIES, &mut out);
    names.relations.write(RELATIONS, &mut out);
    names.labels.write(ENTITY_LABELS, &mut out);
    names.relation_labels.write(RELATION_LABELS, &mut out);
    names.relation_phrases.write(RELATION_PHRASES, &mut out);
    out.add(FACTS, &known.facts);
    if known.has_own_graph() {
        out.add(QUERIES, &known.queries);
    }
    out.add(VALID, &known.valid);
    out.add(TEST, test);
    out.add(TEST_LEFT_OUT, test_left_out);
    for (name, negatives) in [
        (NEGATIVES, &known.negatives),
        (VALID_NEGATIVES, &known.valid_negatives),
        (TEST_NEGATIVES, test_negatives),
    ] {
        if !negatives.is_empty() {
            out.add(name, negatives);
        }
    }
    known.notes.write(NOTES, &mut out);
    test_notes.write(TEST_NOTES, &mut out);
    names.types.write(TYPES, &mut out);
    names.attributes.write(ATTRIBUTES, &mut out);
    graph.write(&mut out);
    out
}

/// Checks that the ids of `split` have names: the checksums of a forged file may fit. Only the first million facts are
/// looked at, since looking at a fact brings it into memory.
fn check_ids(
    split: &[Triple],
    (entities, relations): (usize, usize),
    file: &SectionReader,
) -> Result<(), GraphError> {
    const LOOKED_AT: usize = 1 << 20;
    let fits = |triple: &Triple| {
        triple.head.index().max(triple.tail.index()) < entities && triple.relation.index() < relations
    };
    match split.iter().take(LOOKED_AT).all(fits) {
        true => Ok(()),
        false => Err(file.damaged("one with facts about entities that have no name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AttributesBuilder, Direction, EntityId, Note, NotesBuilder, RelationId, TypeId, TypesBuilder,
    };

    fn family() -> Dataset {
        let mut dataset = crate::generate::family(60, 3).dataset;
        let names = Arc::make_mut(&mut dataset.names);
        names.labels.insert(EntityId(3), "a\tlabel\nof two lines".to_owned());
        names.relation_labels.insert(RelationId(1), "is sibling of".to_owned());
        names.relation_phrases.insert(RelationId(1), "{s} and {o} are siblings".to_owned());
        dataset
    }

    /// A data set with everything that the data can say beside facts.
    fn annotated() -> Dataset {
        let mut dataset = family();
        let [first, second] = [dataset.known.facts[0], dataset.known.facts[1]];
        let mut notes = NotesBuilder::default();
        notes.add(first, Note { confidence: Some(0.25), source: Some("PMID:1"), time: None });
        notes.add(second, Note { confidence: None, source: Some("PMID:2"), time: Some("1815-12-10") });
        dataset.known.notes = notes.finish();
        let mut notes = NotesBuilder::default();
        notes.add(dataset.test[0], Note { time: Some("1852"), ..Note::default() });
        dataset.test_notes = notes.finish();
        dataset.known.negatives = [Triple { tail: first.head, ..first }].into();
        dataset.known.valid_negatives = [Triple { tail: second.head, ..second }].into();
        dataset.test_negatives = [Triple { head: second.tail, ..second }].into();
        let (mut types, mut attributes) = (TypesBuilder::default(), AttributesBuilder::default());
        types.add(first.head, "Woman");
        types.add(first.head, "Author");
        types.add_parent("Woman", "Person");
        types.declare(first.relation, Direction::Inverse, "Person");
        types.labels.insert(TypeId(0), "a woman".to_owned());
        attributes.add(first.tail, "born", "\"1815-12-10\"^^<http://www.w3.org/2001/XMLSchema#date>");
        let names = Arc::make_mut(&mut dataset.names);
        (names.types, names.attributes) = (types.finish(), attributes.finish());
        names.prefixes.add("ex", "http://example.org/");
        dataset
    }

    fn same(one: &Dataset, other: &Dataset) {
        assert!(one.names.entities.iter().eq(other.names.entities.iter()));
        assert!(one.names.relations.iter().eq(other.names.relations.iter()));
        assert_eq!(one.names.labels, other.names.labels);
        assert_eq!(one.names.relation_labels, other.names.relation_labels);
        assert_eq!(one.names.relation_phrases, other.names.relation_phrases);
        let splits = |data: &Dataset| {
            let Known { facts, queries, valid, negatives, valid_negatives, .. } = data.known.clone();
            let test = [data.test.clone(), data.test_left_out.clone(), data.test_negatives.clone()];
            ([facts, queries, valid, negatives, valid_negatives], test)
        };
        let said = |data: &Dataset| {
            let Names { types, attributes, prefixes, .. } = Names::clone(&data.names);
            (data.known.notes.clone(), data.test_notes.clone(), types, attributes, prefixes)
        };
        assert_eq!(said(one), said(other));
        assert_eq!(splits(one), splits(other));
        assert_eq!(one.known.has_own_graph(), other.known.has_own_graph());
        assert_eq!(one.findings, other.findings);
        assert_eq!(one.graph().adjacency(), other.graph().adjacency());
        for link in (0..one.graph().links() as u32).map(crate::Link) {
            assert!(one.graph().pairs(link).pairs().eq(other.graph().pairs(link).pairs()));
        }
    }

    #[test]
    fn a_data_set_is_what_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("family.rg");
        let sums = DataSums { known: "k".to_owned(), whole: "w".to_owned() };
        let mut own_graph = family();
        own_graph.known.queries = own_graph.known.queries[..7].into();
        own_graph.findings.test_unseen = 5;
        for dataset in [family(), own_graph, annotated(), Dataset::default()] {
            DataFile::write(&path, &dataset, Some(&sums)).unwrap();
            let opened = DataFile::open(&path).unwrap();
            same(&opened.dataset, &dataset);
            assert_eq!(opened.sums.as_ref(), Some(&sums));
            same(&DataFile::of_bytes("sent", &DataFile::to_bytes(&dataset)).unwrap().dataset, &dataset);
            // A data file of a data file is the same file.
            let again = folder.path().join("again.rg");
            DataFile::write(&again, &opened.dataset, Some(&sums)).unwrap();
            assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&path).unwrap());
        }
    }

    #[test]
    fn names_are_found_and_new_ones_can_be_added() {
        let dataset = family();
        let opened = DataFile::of_bytes("sent", &DataFile::to_bytes(&dataset)).unwrap().dataset;
        let mut names = Names::clone(&opened.names);
        for (id, name) in dataset.names.entities.iter().enumerate() {
            assert_eq!(names.entities.get(name), Some(id as u32));
        }
        assert_eq!(names.entities.get("nobody"), None);
        let new = names.entities.intern("nobody");
        assert_eq!((new as usize, names.entities.get("nobody")), (dataset.names.entities.len(), Some(new)));
        names.labels.insert(EntityId(new), "Nobody".to_owned());
        assert_eq!(names.label(EntityId(new)), "Nobody");
        assert_eq!(names.label(EntityId(3)), "a\tlabel\nof two lines");
    }

    #[test]
    fn what_is_said_about_facts_is_found_by_fact_and_follows_other_ids() {
        let dataset = annotated();
        let opened = DataFile::of_bytes("sent", &DataFile::to_bytes(&dataset)).unwrap().dataset;
        let (first, test) = (dataset.known.facts[0], dataset.test[0]);
        let notes = &opened.known.notes;
        assert_eq!(
            (notes.confidence(first), notes.source(first), notes.time(first)),
            (0.25, Some("PMID:1"), None)
        );
        // What learning sees knows nothing about test facts; all facts together know everything.
        assert_eq!((notes.time(test), opened.test_notes.time(test)), (None, Some("1852")));
        let all = opened.everything();
        assert_eq!((all.known.notes.time(test), all.known.negatives.len()), (Some("1852"), 3));
        // Numbered again without the test split, everything is about the same names.
        let rest = opened.without_test();
        let again = rest.known.facts[0];
        assert_eq!(rest.names.entity(again.head), opened.names.entity(first.head));
        assert_eq!((rest.known.notes.source(again), rest.known.negatives.len()), (Some("PMID:1"), 1));
        let types = rest.names.types.all_of(again.head);
        assert_eq!(
            types.iter().map(|&of| rest.names.types.name(of)).collect::<Vec<_>>(),
            ["Woman", "Author", "Person"]
        );
        assert_eq!(rest.names.attributes.of(again.tail).count(), 1);
        assert_eq!(rest.names.types.declared(again.relation, Direction::Inverse).count(), 1);
        assert!(rest.test_notes.is_empty() && rest.test_negatives.is_empty());
    }

    #[test]
    fn what_nothing_is_said_about_takes_no_section() {
        let plain = DataFile::to_bytes(&family());
        let names = ["notes", "negatives", "types", "attributes", "prefixes"];
        let header = String::from_utf8_lossy(&plain[..4096]).into_owned();
        assert!(names.iter().all(|name| !header.contains(name)), "{header}");
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let bytes = DataFile::to_bytes(&annotated());
        for at in (0..bytes.len()).step_by(13) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            // Only the padding between sections may be anything.
            assert!(DataFile::of_bytes("changed", &changed).is_err() || bytes[at] == 0, "byte {at}");
        }
    }
}
