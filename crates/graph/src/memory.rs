//! Data sets from triples that are already in memory, given as ids or as names.

use super::by_time::divided_by_time;
use super::read::{Splits, assemble, columns_by_role};
use super::split::{self, SplitShares};
use super::{Array, Dataset, Findings, GraphError, Known, Names, Triple, Vocabulary};
use std::sync::Arc;

/// How many ids may be unused, in addition to one for every mention of an entity.
const SPARE_IDS: usize = 1 << 16;

/// How triples that come without splits are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    /// The share of each split.
    pub shares: SplitShares,
    /// The seed of the division.
    pub seed: u64,
}

/// Triples in memory, with the names of their ids.
#[derive(Clone, Default)]
pub struct MemoryTriples {
    /// The names behind the ids.
    pub names: Names,
    /// The training triples.
    pub train: Vec<Triple>,
    /// The validation triples, if given.
    pub valid: Option<Vec<Triple>>,
    /// The test triples, if given.
    pub test: Option<Vec<Triple>>,
}

impl MemoryTriples {
    /// Triples that are numbered already. `entities` and `relations` name the ids; without them an id is called by its
    /// number.
    ///
    /// # Errors
    /// If a name occurs twice, a triple has an id without a name, or most ids of unnamed triples are unused.
    pub fn numbered(
        train: Vec<Triple>,
        valid: Option<Vec<Triple>>,
        test: Option<Vec<Triple>>,
        entities: Option<Vocabulary>,
        relations: Option<Vocabulary>,
    ) -> Result<Self, GraphError> {
        let splits = || [Some(&train), valid.as_ref(), test.as_ref()].into_iter().flatten().flatten();
        let mentions = 2 * splits().count();
        let most = |of: fn(&Triple) -> u32| splits().map(of).max().map_or(0, |id| id as usize + 1);
        let ids = [most(|t| t.head.0.max(t.tail.0)), most(|t| t.relation.0)];
        let names = Names {
            entities: vocabulary("entity", entities, ids[0], mentions)?,
            relations: vocabulary("relation", relations, ids[1], mentions)?,
            ..Names::default()
        };
        Ok(Self { names, train, valid, test })
    }

    /// The triple of ids for three names; new names are numbered by first appearance.
    ///
    /// # Errors
    /// If one of them is empty.
    pub fn number(&mut self, [head, relation, tail]: [&str; 3]) -> Result<Triple, GraphError> {
        if let Some(at) = [head, relation, tail].iter().position(|name| name.is_empty()) {
            let role = ["head", "relation", "tail"][at];
            return Err(GraphError::Data(format!("expected three names, found an empty {role}")));
        }
        let Names { entities, relations, .. } = &mut self.names;
        let head = entities.intern(head);
        let relation = relations.intern(relation);
        Ok(Triple::new(head, relation, entities.intern(tail)))
    }

    /// The data set. Triples without splits are divided by `division`. If a split is given, or there is no
    /// `division`, missing splits stay empty.
    ///
    /// # Errors
    /// If there is no triple to learn from, or too few to hold some out.
    pub fn into_dataset(self, division: Option<Division>) -> Result<Dataset, GraphError> {
        let Self { names, train, valid, test } = self;
        if train.is_empty() {
            return Err(GraphError::Data("expected at least one triple, found none".to_owned()));
        }
        match (valid, test, division) {
            (None, None, Some(Division { shares: SplitShares { since: Some(since), .. }, .. })) => {
                let whole = divided(names, [train, Vec::new(), Vec::new()], 0);
                divided_by_time(&whole, since).map_err(|[expected, found]| {
                    GraphError::Data(format!("expected {expected}, found {found}"))
                })
            }
            (None, None, Some(Division { shares, seed })) => {
                let (facts, duplicates) = split::distinct(names.entities.len(), train);
                let parts = split::divide(&facts, &shares, seed).map_err(|found| {
                    GraphError::Data(format!(
                        "expected enough triples to hold some out for validation and test, found {found}"
                    ))
                })?;
                Ok(divided(names, parts, duplicates))
            }
            (valid, test, _) => {
                let [valid, test] = [valid, test].map(Option::unwrap_or_default);
                Ok(assemble(names, Splits { graph: None, train, valid, test, test_with_unseen: Vec::new() }))
            }
        }
    }
}

/// A data set of [divided](split::divide) distinct facts: splits are disjoint, and training contains all entities.
pub(super) fn divided(names: Names, [train, valid, test]: [Vec<Triple>; 3], duplicates: usize) -> Dataset {
    let facts: Array<Triple> = train.into();
    let known = Known { queries: facts.clone(), facts, valid: valid.into(), ..Known::default() };
    let findings = Findings { duplicates, ..Findings::default() };
    Dataset { names: Arc::new(names), known, test: test.into(), findings, ..Dataset::default() }
}

/// The columns of a table that hold head, relation and tail: recognised by name, or else the only three columns in
/// order.
///
/// # Errors
/// If neither applies.
pub fn triple_columns(columns: &[&str]) -> Result<[usize; 3], GraphError> {
    match columns_by_role(columns.iter().copied()) {
        Some(found) => Ok(found),
        None if columns.len() == 3 => Ok([0, 1, 2]),
        None => Err(GraphError::Data(format!(
            "expected columns called head, relation and tail (or subject, predicate and object), or three columns; found {}",
            columns.join(", ")
        ))),
    }
}

/// The names of `ids` ids: those given, or their numbers.
fn vocabulary(
    kind: &str,
    given: Option<Vocabulary>,
    ids: usize,
    mentions: usize,
) -> Result<Vocabulary, GraphError> {
    match given {
        Some(names) if names.len() < ids => Err(GraphError::Data(format!(
            "a triple has the {kind} {}, but there are only {} names",
            ids - 1,
            names.len()
        ))),
        Some(names) => Ok(names),
        None if ids > SPARE_IDS + 2 * mentions => Err(GraphError::Data(format!(
            "the largest {kind} id is {}, but {mentions} mentions use few of the numbers below it; number them from 0 \
             without gaps, or give them as text",
            ids - 1
        ))),
        None => Ok(Vocabulary::of_numbers(ids)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triples(ids: &[(u32, u32, u32)]) -> Vec<Triple> {
        ids.iter().map(|&(head, relation, tail)| Triple::new(head, relation, tail)).collect()
    }

    fn numbered(ids: &[(u32, u32, u32)]) -> Result<MemoryTriples, GraphError> {
        MemoryTriples::numbered(triples(ids), None, None, None, None)
    }

    #[test]
    fn ids_keep_their_numbers_and_are_called_by_them() {
        let dataset = numbered(&[(3, 1, 0), (3, 1, 0), (2, 0, 3)]).unwrap().into_dataset(None).unwrap();
        assert_eq!(*dataset.known.facts, *triples(&[(3, 1, 0), (2, 0, 3)]));
        assert_eq!(dataset.names.entities.iter().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
        assert_eq!((dataset.findings.duplicates, dataset.test.len()), (1, 0));
    }

    #[test]
    fn what_divides_a_file_divides_memory() {
        let dataset = crate::generate::demonstration();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.tsv");
        super::super::write_file(&path, &dataset.names, &dataset.known.facts).unwrap();
        let options = super::super::ReadOptions { seed: 5, ..Default::default() };
        let read = super::super::read(&path, &options).unwrap();
        let mut memory = MemoryTriples::default();
        for fact in dataset.known.facts.iter() {
            let names = &dataset.names;
            let words = [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)];
            let number = memory.number(words).unwrap();
            memory.train.push(number);
        }
        let division = Division { shares: SplitShares::default(), seed: 5 };
        let made = memory.into_dataset(Some(division)).unwrap();
        assert_eq!(
            (made.known.facts, made.known.valid, made.test),
            (read.known.facts, read.known.valid, read.test)
        );
        assert_eq!(made.findings, read.findings);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let message = |result: Result<MemoryTriples, GraphError>| result.err().unwrap().to_string();
        assert!(message(numbered(&[(90_000_000, 0, 1)])).contains("number them from 0 without gaps"));
        let two: Vocabulary = ["a", "b"].into_iter().collect();
        let short = MemoryTriples::numbered(triples(&[(0, 0, 2)]), None, None, Some(two), None);
        assert_eq!(message(short), "a triple has the entity 2, but there are only 2 names");
        let mut memory = MemoryTriples::default();
        assert!(memory.number(["a", "", "b"]).unwrap_err().to_string().contains("an empty relation"));
        assert!(memory.into_dataset(None).err().unwrap().to_string().contains("at least one triple"));
        let division = Division { shares: SplitShares::default(), seed: 1 };
        let few = numbered(&[(0, 0, 1)]).unwrap().into_dataset(Some(division)).err().unwrap().to_string();
        assert!(few.contains("found 1 facts, of which 0 can be held out"), "{few}");
    }

    #[test]
    fn columns_are_found_by_name_or_place() {
        assert_eq!(triple_columns(&["weight", "Object", "subject", "predicate"]).unwrap(), [2, 3, 1]);
        assert_eq!(triple_columns(&["0", "1", "2"]).unwrap(), [0, 1, 2]);
        assert!(triple_columns(&["a", "b"]).unwrap_err().to_string().ends_with("found a, b"));
    }
}
