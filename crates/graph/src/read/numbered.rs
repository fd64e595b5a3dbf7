//! Triples of ids beside tables of their names, as PyKEEN saves a factory (`to_path_binary`): `numeric_triples.tsv.gz`,
//! `entity_to_id.tsv.gz` and `relation_to_id.tsv.gz`. A data set is such a folder for each split: `training`, `validation`
//! and `testing`.

use super::folder::expect_rows;
use super::table::fields;
use super::{Builder, ReadOptions, Splits, assemble, files_of, part_stem};
use crate::memory::divided;
use crate::{Dataset, GraphError, Triple, split};
use std::path::{Path, PathBuf};

const TRIPLES: &str = "numeric_triples";
const ENTITIES: &str = "entity_to_id";
const RELATIONS: &str = "relation_to_id";
const SPLITS: [&str; 3] = ["training", "validation", "testing"];

/// A folder of triples of ids, or of one such folder for each split.
pub(super) enum Numbered {
    Undivided(PathBuf),
    Split([PathBuf; 3]),
}

/// Whether `folder`, which has these files, is one.
pub(super) fn numbered(folder: &Path, files: &[PathBuf]) -> Option<Numbered> {
    if called(files, TRIPLES).is_some() {
        return Some(Numbered::Undivided(folder.to_owned()));
    }
    let folders = SPLITS.map(|name| folder.join(name));
    let is_one = |folder: &PathBuf| {
        folder.is_dir() && files_of(folder).is_ok_and(|files| called(&files, TRIPLES).is_some())
    };
    folders.iter().all(is_one).then_some(Numbered::Split(folders))
}

fn called<'f>(files: &'f [PathBuf], name: &str) -> Option<&'f PathBuf> {
    files.iter().find(|path| path.is_file() && part_stem(path) == Some(name))
}

impl Numbered {
    /// Reads it, without the test split unless `with_test`; triples without splits are divided as those of a file are.
    pub(super) fn read(self, options: &ReadOptions, with_test: bool) -> Result<Dataset, GraphError> {
        let mut builder = Builder::default();
        let folder = match self {
            Numbered::Split([train, valid, test]) => {
                let (train, valid) = (facts_of(&train, &mut builder)?, facts_of(&valid, &mut builder)?);
                let test = if with_test { facts_of(&test, &mut builder)? } else { Vec::new() };
                let names = std::mem::take(&mut builder.names);
                let splits = Splits { graph: None, train, valid, test, test_with_unseen: Vec::new() };
                return builder.finish(assemble(names, splits));
            }
            Numbered::Undivided(folder) => folder,
        };
        let all = facts_of(&folder, &mut builder)?;
        let (all, duplicates) = split::distinct(builder.names.entities.len(), all);
        let parts = super::parts_of(all, options, &folder)?;
        let names = std::mem::take(&mut builder.names);
        builder.finish(divided(names, parts, duplicates))
    }
}

/// The facts of a folder, by name.
fn facts_of(folder: &Path, builder: &mut Builder) -> Result<Vec<Triple>, GraphError> {
    let files = files_of(folder)?;
    let table = |name: &str| called(&files, name).map(|path| names_of(path)).transpose();
    let (entities, relations) = (table(ENTITIES)?, table(RELATIONS)?);
    let path = called(&files, TRIPLES).expect("the folder was chosen by this file");
    let mut rows = expect_rows(path)?;
    let bad = |line: u64, expected: &str, found: &str| GraphError::line(path, line, expected, found);
    let mut facts = Vec::new();
    while rows.advance().map_err(|(line, expected, found)| bad(line, &expected, &found))? {
        let mut row = Vec::new();
        fields(path, &*rows, &mut row)?;
        if rows.line() == 1 && row == ["head", "relation", "tail"] {
            continue;
        }
        let ids: Option<Vec<usize>> = row.iter().map(|field| field.parse().ok()).collect();
        let Some([head, relation, tail]) = ids.as_deref().and_then(|ids| <[usize; 3]>::try_from(ids).ok())
        else {
            return Err(bad(rows.line(), "three ids", &row.join(", ")));
        };
        let name = |names: &Option<Vec<String>>, id: usize| match names {
            Some(names) => names.get(id).filter(|name| !name.is_empty()).cloned(),
            // Without a table, ids are names.
            None => Some(id.to_string()),
        };
        let words = (name(&entities, head), name(&relations, relation), name(&entities, tail));
        let (Some(head), Some(relation), Some(tail)) = words else {
            return Err(bad(rows.line(), "ids that the tables name", &row.join(", ")));
        };
        let names = &mut builder.names;
        let head = names.entities.intern(&head);
        facts.push(Triple::new(head, names.relations.intern(&relation), names.entities.intern(&tail)));
    }
    match facts.is_empty() {
        true => Err(GraphError::file(path, "at least one fact", "none")),
        false => Ok(facts),
    }
}

/// The names in the order of their ids; where a number has no name, the empty text.
fn names_of(path: &Path) -> Result<Vec<String>, GraphError> {
    let mut rows = expect_rows(path)?;
    let bad = |line: u64, expected: &str, found: &str| GraphError::line(path, line, expected, found);
    let (mut named, mut id_at) = (Vec::new(), 0);
    while rows.advance().map_err(|(line, expected, found)| bad(line, &expected, &found))? {
        let mut row = Vec::new();
        fields(path, &*rows, &mut row)?;
        let [first, second] = row[..] else {
            return Err(bad(rows.line(), "an id and a name", &format!("{} fields", row.len())));
        };
        if rows.line() == 1 && ["id", "label"].contains(&first) {
            id_at = usize::from(first == "label");
            continue;
        }
        let (id, name) = if id_at == 0 { (first, second) } else { (second, first) };
        let id: u32 = id.parse().map_err(|_| bad(rows.line(), "an id and a name", id))?;
        named.push((id as usize, name.to_owned()));
    }
    // Ids are as many as names, so that a damaged one asks for no memory.
    let mut names = vec![String::new(); named.len()];
    for (id, name) in named {
        let count = names.len();
        let place = names.get_mut(id).ok_or_else(|| {
            GraphError::file(path, format!("ids below the number of names, {count}"), id.to_string())
        })?;
        *place = name;
    }
    Ok(names)
}
