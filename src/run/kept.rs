//! Data that a run keeps itself: triples that came from memory and are in no file that could be read again.
//!
//! One file of weights' format holds ids, splits and names as they were, so that a run that is opened again has the same
//! numbers.

use super::RunError;
use crate::graph::{Dataset, EntityId, Known, Names, RelationId, Triple, Vocabulary};
use crate::tensor::Archive;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

const FACTS: &str = "facts";
const QUERIES: &str = "queries";
const VALID: &str = "valid";
const TEST: &str = "test";
const LEFT_OUT: &str = "test_left_out";
const ENTITIES: &str = "entities";
const RELATIONS: &str = "relations";
const LABELS: &str = "entity_labels";
const RELATION_LABELS: &str = "relation_labels";

/// Writes `dataset` to `path`, whole or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn keep(path: &Path, dataset: &Dataset) -> Result<(), RunError> {
    let mut archive = Archive::new();
    let Dataset { names, known, test, test_left_out, .. } = dataset;
    let mut splits: Vec<(&str, &[Triple])> =
        vec![(FACTS, &known.facts), (VALID, &known.valid), (TEST, test), (LEFT_OUT, test_left_out)];
    if known.has_own_graph() {
        splits.push((QUERIES, &known.queries));
    }
    for (name, split) in splits {
        let ids = split.iter().flat_map(|fact| [fact.head.0, fact.relation.0, fact.tail.0]).collect();
        archive.insert_indices(name, ids)?;
    }
    let text = |value: &serde_json::Value| serde_json::to_string(value).expect("plain data");
    let listed = |vocabulary: &Vocabulary| text(&vocabulary.iter().collect());
    archive.set_metadata(ENTITIES, &listed(&names.entities));
    archive.set_metadata(RELATIONS, &listed(&names.relations));
    let labels = |labels: Vec<(u32, &String)>| serde_json::to_string(&labels).expect("plain data");
    archive.set_metadata(LABELS, &labels(names.labels.iter().map(|(id, label)| (id.0, label)).collect()));
    let of_relations = names.relation_labels.iter().map(|(id, label)| (id.0, label)).collect();
    archive.set_metadata(RELATION_LABELS, &labels(of_relations));
    Ok(archive.write(path)?)
}

/// Reads what [`keep`] has written.
///
/// # Errors
/// If the file is gone or damaged.
pub fn kept(path: &Path) -> Result<Dataset, RunError> {
    let archive = Archive::read(path)?;
    let broken = |what: String| RunError::Broken { path: path.to_owned(), what };
    let text = |key: &str| archive.metadata(key).ok_or_else(|| broken(format!("has no {key}")));
    let damaged = |error: serde_json::Error| broken(format!("is damaged ({error})"));
    let vocabulary = |key: &str| -> Result<Vocabulary, RunError> {
        let names: Vec<String> = serde_json::from_str(text(key)?).map_err(damaged)?;
        Ok(names.iter().map(String::as_str).collect())
    };
    let labels = |key: &str| -> Result<Vec<(u32, String)>, RunError> {
        serde_json::from_str(text(key)?).map_err(damaged)
    };
    let of_entities = labels(LABELS)?.into_iter().map(|(id, label)| (EntityId(id), label));
    let of_relations = labels(RELATION_LABELS)?.into_iter().map(|(id, label)| (RelationId(id), label));
    let names = Names {
        entities: vocabulary(ENTITIES)?,
        relations: vocabulary(RELATIONS)?,
        labels: of_entities.collect::<HashMap<_, _>>(),
        relation_labels: of_relations.collect::<HashMap<_, _>>(),
    };
    let split = |name: &str| -> Result<Arc<[Triple]>, RunError> {
        let ids = archive.indices(name, archive.shape(name).map_or(0, |shape| shape[0]))?;
        Ok(ids.chunks_exact(3).map(|ids| Triple::new(ids[0], ids[1], ids[2])).collect())
    };
    let facts = split(FACTS)?;
    let queries = if archive.contains(QUERIES) { split(QUERIES)? } else { facts.clone() };
    Ok(Dataset {
        names: Arc::new(names),
        known: Known { facts, queries, valid: split(VALID)? },
        test: split(TEST)?,
        test_left_out: split(LEFT_OUT)?,
        ..Dataset::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Checksum;

    #[test]
    fn what_is_kept_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.safetensors");
        let mut dataset = crate::generate::demonstration();
        dataset.known.queries = dataset.known.queries[1..].into();
        let names = Arc::make_mut(&mut dataset.names);
        names.entities.intern("a name\twith\nbreaks");
        names.relation_labels.insert(RelationId(0), "a label".to_owned());
        keep(&path, &dataset).unwrap();
        let back = kept(&path).unwrap();
        let sum = |dataset: &Dataset| {
            Checksum::of_dataset(dataset, &Checksum::of_known(&dataset.names, &dataset.known))
        };
        assert_eq!(sum(&back), sum(&dataset));
        assert_eq!(back.names.labels, dataset.names.labels);
        assert_eq!(back.names.relation_labels, dataset.names.relation_labels);
        std::fs::write(&path, "nothing").unwrap();
        assert!(kept(&path).is_err());
    }
}
