//! Reads data sets: a folder of splits, or a single file of triples, which is then divided.
//!
//! Nothing is skipped silently. Wrong input is an error with the file and the line; input that is merely odd
//! (duplicates, a fact in two splits, a test entity that the graph lacks) is counted in [`Findings`].

mod about;
mod blocks;
// Only the RDF readers read through it; its limits are those of all.
#[cfg_attr(not(feature = "rdf"), allow(dead_code))]
mod bounded;
mod columns;
mod conflicts;
mod csv;
#[cfg_attr(not(feature = "rdf"), allow(dead_code))]
mod entities;
mod facts;
mod finish;
mod folder;
#[cfg(feature = "parquet")]
mod layout;
mod lines;
#[cfg(not(feature = "rdf"))]
mod no_rdf;
#[cfg(feature = "rdf")]
mod ntriples;
mod numbered;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "rdf")]
mod rdf;
mod records;
mod sif;
#[cfg(feature = "rdf")]
mod statement;
mod table;
mod tabs;
#[cfg(test)]
#[cfg(feature = "rdf")]
mod tests;
#[cfg(feature = "parquet")]
mod thrift;
mod unnamed_header;

pub use columns::{ChosenColumns, ColumnChoice, beside_columns, chosen_columns};
pub use conflicts::Conflicts;
#[cfg(not(feature = "rdf"))]
pub(crate) use no_rdf::RdfFormat;
#[cfg(feature = "rdf")]
pub(crate) use oxrdfio::RdfFormat;
#[cfg(feature = "parquet")]
pub use parquet::panic_is_caught;
#[cfg(feature = "rdf")]
pub(super) use rdf::{named_node, node, term};
pub(super) use unnamed_header::begins_like_header;

use super::by_time::divided_by_time;
use super::format::{FileKind, Format};
use super::memory::divided;
use super::split::{self, SplitShares};
use super::sums::Sums;
use super::{
    Array, DataFile, Dataset, EntityId, Findings, GraphError, Known, Names, NotesBuilder, Prefixes,
    RelationId, Triple, Vocabulary,
};
use about::About;
use bounded::{LONGEST, LONGEST_IN_WORDS};
use facts::Facts;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Whether the panic that is being reported is caught, so that nobody needs to hear of it: never, without Parquet.
#[cfg(not(feature = "parquet"))]
pub fn panic_is_caught() -> bool {
    false
}

/// How to read a data set.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// How to divide a single file of triples.
    pub shares: SplitShares,
    /// The seed of that division.
    pub seed: u64,
    /// Whether a TSV or CSV file begins with a header; `None` decides by its first line. Other files have no header,
    /// and setting this for them is an error.
    pub header: Option<bool>,
    /// Which columns of a table are what; `None` decides by the names of the columns.
    pub columns: Option<ColumnChoice>,
    /// What literals of RDF are.
    pub literals: Literals,
    /// Read only this named graph of RDF files; `None` reads all graphs as one.
    pub named_graph: Option<String>,
    /// What becomes of facts that are also known to be false.
    pub conflicts: Conflicts,
    /// The format of the files; `None` decides by their endings.
    pub format: Option<FileKind>,
    /// Whether data without a validation or test split is acceptable, as for counting: a missing split is empty, and
    /// a file with too few facts to divide becomes training facts only.
    pub incomplete: bool,
}

/// What literals of RDF (texts, numbers, dates) are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Literals {
    /// Labels and attributes of entities. Statements about labels, domains and ranges are not facts then.
    #[default]
    Apart,
    /// Entities: every statement is a fact.
    Keep,
}

impl FromStr for Literals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "apart" => Ok(Literals::Apart),
            "keep" => Ok(Literals::Keep),
            _ => Err(format!("expected apart or keep, found {text}")),
        }
    }
}

/// Reads the folder of splits, or the single file of triples, at `path`.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Dataset, GraphError> {
    if let Some(since) = options.shares.since {
        let whole = ReadOptions { shares: SplitShares::WHOLE, incomplete: true, ..options.clone() };
        let whole = read(path, &whole)?;
        return divided_by_time(&whole, since)
            .map_err(|[expected, found]| GraphError::file(path, expected, found));
    }
    match path.is_dir() {
        true => read_folder(path, options, &PARTS),
        // A data file has its splits; the options say how to read text.
        false if DataFile::is_one(path) => Ok(DataFile::open(path)?.dataset),
        false => read_single(path, options),
    }
}

/// The same without the test split, for choosing settings: its files are not opened, and its names get no ids. In a
/// single file, the part held out for testing is dropped.
pub fn read_known(path: &Path, options: &ReadOptions) -> Result<Dataset, GraphError> {
    match path.is_dir() && options.shares.since.is_none() {
        true => read_folder(path, options, &PARTS.map(|part| if is_test(part) { "" } else { part })),
        false => Ok(read(path, options)?.without_test()),
    }
}

/// Reads a whole file of triples without dividing it. Duplicates stay, unless they are so many among millions of
/// facts that reading removed some: then all are removed, and [`Findings`] has their number.
pub fn read_file(path: &Path, options: &ReadOptions) -> Result<(Names, Vec<Triple>, Findings), GraphError> {
    let read = read_undivided(path, options)?;
    Ok((Arc::unwrap_or_clone(read.names), read.known.facts.to_vec(), read.findings))
}

/// The same with everything that is said beside the facts, which are all to be learnt from.
pub fn read_undivided(path: &Path, options: &ReadOptions) -> Result<Dataset, GraphError> {
    if DataFile::is_one(path) {
        return Ok(DataFile::open(path)?.dataset.everything());
    }
    let mut builder = Builder::default();
    let mut facts = builder.read(path, options)?;
    let mut duplicates = builder.copies;
    if duplicates > 0 {
        let (distinct, more) = split::distinct(builder.names.entities.len(), facts);
        (facts, duplicates) = (distinct, duplicates + more);
    }
    let findings = Findings { duplicates, ..Findings::default() };
    let all = divided(std::mem::take(&mut builder.names), [facts, Vec::new(), Vec::new()], 0);
    builder.finish(Dataset { findings, ..all })
}

/// The names of the files of a data set, without their endings.
pub(super) const GRAPH: &str = "graph";
pub(super) const TRAIN: &str = "train";
pub(super) const VALID: &str = "valid";
pub(super) const TEST: &str = "test";
pub(super) const TEST_WITH_UNSEEN: &str = "test_with_unseen";
pub(super) const LABELS: &str = "entity_labels";
pub(super) const RELATION_LABELS: &str = "relation_labels";
pub(super) const RELATION_PHRASES: &str = "relation_phrases";
pub(super) const NEGATIVES: &str = "negatives";
pub(super) const VALID_NEGATIVES: &str = "valid_negatives";
pub(super) const TEST_NEGATIVES: &str = "test_negatives";
pub(super) const TYPES: &str = "types";
pub(super) const SCHEMA: &str = "schema";
const NODES: &str = "nodes";
const PARTS: [&str; 14] = [
    GRAPH,
    TRAIN,
    VALID,
    TEST,
    TEST_WITH_UNSEEN,
    LABELS,
    RELATION_LABELS,
    RELATION_PHRASES,
    NEGATIVES,
    VALID_NEGATIVES,
    TEST_NEGATIVES,
    TYPES,
    SCHEMA,
    NODES,
];

fn is_test(part: &str) -> bool {
    [TEST, TEST_WITH_UNSEEN, TEST_NEGATIVES].contains(&part)
}

/// Reads the files of a folder whose names are in `parts`, and checks them if the folder has checksums.
fn read_folder(folder: &Path, options: &ReadOptions, parts: &[&str]) -> Result<Dataset, GraphError> {
    let sums = Sums::of(folder)?;
    let dataset = read_parts(folder, options, parts)?;
    sums.check(|part| parts.contains(&part))?;
    Ok(dataset)
}

fn read_parts(folder: &Path, options: &ReadOptions, parts: &[&str]) -> Result<Dataset, GraphError> {
    let files = files_of(folder)?;
    // A folder with any split is one of splits, even if one is missing: a killed writer may have left it so.
    let is_split =
        |path: &PathBuf| [TRAIN, VALID, TEST, GRAPH].iter().any(|part| part_called(path) == Some(*part));
    let has_splits = files.iter().any(is_split);
    if !has_splits && let Some(numbered) = numbered::numbered(folder, &files) {
        return numbered.read(options, parts.contains(&TEST));
    }
    if !has_splits && let Some(tables) = folder::tables(&files, options)? {
        return tables.read(folder, options);
    }
    let mut builder = Builder::default();
    let find = |name: &str| match parts.contains(&name) {
        true => find(folder, &files, name, options.format),
        false => Ok(None),
    };
    let graph = match find(GRAPH)? {
        Some(path) => Some(builder.read_some(&path, options)?),
        None => None,
    };
    let mut split = |name: &str| match find(name)? {
        Some(path) if options.incomplete && name != TRAIN => builder.read(&path, options),
        Some(path) => builder.read_some(&path, options),
        None if options.incomplete && name != TRAIN => Ok(Vec::new()),
        None if !parts.contains(&name) => Ok(Vec::new()),
        None => {
            let found = list_names(&files);
            Err(GraphError::file(
                folder,
                format!("a file {name}.txt, {name}.tsv.gz, {name}.nt or the like"),
                found,
            ))
        }
    };
    let (train, valid, test) = (split(TRAIN)?, split(VALID)?, split(TEST)?);
    let test_with_unseen = match find(TEST_WITH_UNSEEN)? {
        Some(path) => builder.read_some(&path, options)?,
        None => Vec::new(),
    };
    let labels = find(LABELS)?;
    let relation_labels = find(RELATION_LABELS)?;
    let relation_phrases = find(RELATION_PHRASES)?;
    for (part, split) in [(NEGATIVES, 0), (VALID_NEGATIVES, 1), (TEST_NEGATIVES, 2)] {
        if let Some(path) = find(part)? {
            builder.read_negatives(&path, split, options)?;
        }
    }
    if let Some(path) = find(NODES)? {
        folder::read_nodes(&path, &mut builder)?;
    }
    if let Some(path) = find(TYPES)? {
        folder::read_types(&path, &mut builder)?;
    }
    if let Some(path) = find(SCHEMA)? {
        folder::read_schema(&path, &mut builder)?;
    }
    let names = std::mem::take(&mut builder.names);
    let mut dataset = assemble(names, Splits { graph, train, valid, test, test_with_unseen });
    let Dataset { names, findings, .. } = &mut dataset;
    // There is no other reference yet, so nothing is copied.
    let names = Arc::make_mut(names);
    let Names { entities, relations, labels: known, relation_labels: known_relations, .. } = names;
    if let Some(path) = labels {
        findings.labels_unused +=
            read_labels(&path, "an entity, a tab and its label", entities, |id, label| {
                known.insert(EntityId(id), label);
                true
            })?;
    }
    if let Some(path) = relation_labels {
        findings.labels_unused +=
            read_labels(&path, "a relation, a tab and its label", relations, |id, label| {
                known_relations.insert(RelationId(id), label);
                true
            })?;
    }
    if let Some(path) = relation_phrases {
        let (relations, phrases) = (&names.relations, &mut names.relation_phrases);
        let what = "a relation, a tab and a phrase with {s} for its subject and {o} for its object";
        findings.labels_unused += read_labels(&path, what, relations, |id, phrase| {
            let is_one = phrase.split('\t').all(|one| one.contains("{s}") && one.contains("{o}"));
            phrases.insert(RelationId(id), phrase);
            is_one
        })?;
    }
    names.entities.shrink();
    builder.finish(dataset)
}

/// The facts of `path` divided into splits as `options` say, or all of them as the first where there may be too few.
fn parts_of(all: Vec<Triple>, options: &ReadOptions, path: &Path) -> Result<[Vec<Triple>; 3], GraphError> {
    match split::divide(&all, &options.shares, options.seed) {
        Ok(parts) => Ok(parts),
        Err(_) if options.incomplete => Ok([all, Vec::new(), Vec::new()]),
        Err(found) => {
            let expected = "enough facts to hold some out for validation and test";
            Err(GraphError::file(path, expected, found))
        }
    }
}

fn read_single(path: &Path, options: &ReadOptions) -> Result<Dataset, GraphError> {
    let mut builder = Builder::default();
    let all = builder.read_some(path, options)?;
    let (all, duplicates) = split::distinct(builder.names.entities.len(), all);
    let parts = parts_of(all, options, path)?;
    let names = std::mem::take(&mut builder.names);
    builder.finish(divided(names, parts, duplicates))
}

/// The content of the files of a data set, as read.
pub(super) struct Splits {
    pub(super) graph: Option<Vec<Triple>>,
    pub(super) train: Vec<Triple>,
    pub(super) valid: Vec<Triple>,
    pub(super) test: Vec<Triple>,
    /// The test split with its triples of unknown entities, if the data set provides it.
    pub(super) test_with_unseen: Vec<Triple>,
}

/// Removes duplicates from every split and counts overlaps and unseen entities.
pub(super) fn assemble(names: Names, splits: Splits) -> Dataset {
    let entities = names.entities.len();
    let mut duplicates = 0;
    let mut clean = |split: Vec<Triple>| -> Array<Triple> {
        let (kept, repeated) = split::distinct(entities, split);
        duplicates += repeated;
        kept.into()
    };
    let graph = splits.graph.map(&mut clean);
    let queries = clean(splits.train);
    let (valid, test) = (clean(splits.valid), clean(splits.test));
    let test_left_out = left_out(clean(splits.test_with_unseen), &test);
    let facts = graph.unwrap_or_else(|| queries.clone());
    let mut findings = Findings { duplicates, ..Findings::default() };
    findings.valid_in_train = split::shared(&valid, &[&facts, &queries]);
    findings.test_in_train = split::shared(&test, &[&facts, &queries]);
    findings.test_in_valid = split::shared(&test, &[&valid]);
    let known = Known { facts, queries, valid, ..Known::default() };
    findings.valid_unseen = unseen(entities, &known.facts, &known.valid);
    let answered_on = known.for_test().facts;
    findings.test_unseen =
        unseen(entities, &answered_on, &test) + unseen(entities, &answered_on, &test_left_out);
    Dataset { names: Arc::new(names), known, test, test_left_out, findings, ..Dataset::default() }
}

/// The triples of `all` that are not in `kept`.
fn left_out(all: Array<Triple>, kept: &[Triple]) -> Array<Triple> {
    let kept: HashSet<&Triple> = kept.iter().collect();
    all.iter().filter(|triple| !kept.contains(triple)).copied().collect()
}

/// How many triples of `split` have an entity that no fact mentions.
fn unseen(entities: usize, facts: &[Triple], split: &[Triple]) -> usize {
    let mut mentioned = vec![false; entities];
    for fact in facts {
        mentioned[fact.head.index()] = true;
        mentioned[fact.tail.index()] = true;
    }
    split.iter().filter(|t| !mentioned[t.head.index()] || !mentioned[t.tail.index()]).count()
}

/// The accepted column names for heads, relations and tails.
const ROLES: [&[&str]; 3] = [
    &["x_index", "head", "subject", "source", "from", "start", "h", "s"],
    &["predicate", "relation", "relationship", "metaedge", "property", "type", "label", "edge", "r", "p"],
    &["y_index", "tail", "object", "target", "to", "end", "t", "o"],
];

/// Which of the columns with these names hold head, relation and tail, if all three are recognised and none of them is
/// there twice. Case and a final `_id` do not matter.
pub(super) fn columns_by_role<'n>(columns: impl IntoIterator<Item = &'n str>) -> Option<[usize; 3]> {
    let role_name = |column: &str| column.trim().to_ascii_lowercase().trim_end_matches("_id").to_owned();
    let columns: Vec<String> = columns.into_iter().map(role_name).collect();
    let called = |name: &&str| columns.iter().position(|column| column == name);
    let [head, relation, tail] = ROLES.map(|names| names.iter().find_map(called));
    let found = [head?, relation?, tail?];
    let twice = |&place: &usize| columns.iter().filter(|column| **column == columns[place]).count() > 1;
    (!found.iter().any(twice)).then_some(found)
}

/// The state that all files of a data set share while it is read.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) names: Names,
    /// First lines recognised as headers in formats that rarely have one.
    headers: usize,
    /// Whether the first fact of the file that is being read was its first line.
    first_is_a_fact: bool,
    /// A first line that was taken for a header, though its names say nothing.
    unnamed_header: Option<[String; 3]>,
    /// Duplicate facts removed while reading.
    copies: usize,
    /// Blank nodes of RDF files, by the parser's id, numbered by first appearance.
    #[cfg_attr(not(feature = "rdf"), allow(dead_code))]
    anonymous: HashMap<u128, usize>,
    /// What is said about entities, relations and types.
    about: About,
    /// What is said about facts.
    notes: NotesBuilder,
    /// What is known to be false: the split, the fact, the file and, in tables of facts, the line.
    negatives: Vec<(usize, Triple, PathBuf, u64)>,
    prefixes: Prefixes,
    /// Whether a file is RDF, whose names are abbreviated for people.
    is_rdf: bool,
    /// The files that were read, and how.
    files: Vec<(PathBuf, ReadOptions)>,
    conflicts: Conflicts,
    /// Whether names of nodes begin with their ID space, because several spaces have the same ids.
    with_spaces: bool,
    /// What was understood, in sentences.
    understood: Vec<String>,
}

impl Builder {
    /// Adds the fact that three names state to `facts`.
    fn take_fact(&mut self, [head, relation, tail]: [&str; 3], facts: &mut Facts) {
        let fact = self.fact([head, relation, tail]);
        facts.push(fact, self.names.entities.len());
    }

    fn read(&mut self, path: &Path, options: &ReadOptions) -> Result<Vec<Triple>, GraphError> {
        if path.is_dir() {
            return Err(GraphError::file(path, "a file of triples", "a folder"));
        }
        // A missing file is reported before a wrong ending.
        std::fs::metadata(path).map_err(GraphError::reading(path))?;
        let kind = options.format.map_or_else(|| FileKind::expect(path), Ok)?;
        if options.header.is_some() && !matches!(kind.format, Format::Tabs | Format::Commas | Format::Sif) {
            return Err(GraphError::file(
                path,
                "a TSV or CSV file (other formats have no header)",
                kind.format.words(),
            ));
        }
        self.files.push((path.to_owned(), options.clone()));
        self.conflicts = options.conflicts;
        let open = || kind.compression.open(path);
        let before = [self.names.entities.len(), self.names.relations.len()];
        self.first_is_a_fact = false;
        let facts = match kind.format {
            Format::Tabs => tabs::read(path, open()?, options, self),
            Format::Commas => csv::read(path, open()?, options, self),
            Format::Sif => sif::read(path, open()?, options, self),
            #[cfg(feature = "rdf")]
            Format::Rdf(format) => rdf::read(path, open()?, format, options, self),
            #[cfg(feature = "parquet")]
            Format::Parquet => parquet::read(path, kind.compression, options, self),
            #[cfg(not(all(feature = "rdf", feature = "parquet")))]
            Format::Rdf(_) | Format::Parquet => return Err(FileKind::not_built(path, kind.format)),
        };
        let (mut facts, copies) = facts?.into_parts();
        self.copies += copies;
        self.leave_out_header(path, options, before, &mut facts);
        Ok(facts)
    }

    /// Like [`read`](Self::read), but a file without a single fact is an error.
    fn read_some(&mut self, path: &Path, options: &ReadOptions) -> Result<Vec<Triple>, GraphError> {
        let facts = self.read(path, options)?;
        if facts.is_empty() {
            return Err(GraphError::line(path, 1, "at least one fact", "none"));
        }
        Ok(facts)
    }
}

/// Which of three fields is empty, in words.
fn first_empty(fields: &[&str; 3]) -> Option<&'static str> {
    let place = fields.iter().position(|field| field.is_empty())?;
    Some(["head", "relation", "tail"][place])
}

pub(super) fn files_of(folder: &Path) -> Result<Vec<PathBuf>, GraphError> {
    let entries = std::fs::read_dir(folder).map_err(GraphError::reading(folder))?;
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry.map_err(GraphError::reading(folder))?.path());
    }
    files.sort();
    Ok(files)
}

/// Whether `path` would be read as part of a data set in its folder.
pub fn is_part(path: &Path) -> bool {
    part_called(path).is_some()
}

/// The part of a data set that `path` would be taken for.
pub(super) fn part_of(path: &Path) -> Option<&'static str> {
    FileKind::of(path).and(part_called(path))
}

/// The same, whatever the ending.
fn part_called(path: &Path) -> Option<&'static str> {
    let stem = part_stem(path)?;
    PARTS.into_iter().find(|&name| name == stem)
}

/// The name of a file without its endings.
fn part_stem(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.split('.').next()
}

/// The one file of `files` called `name`: with any supported ending, or with any ending at all if the format is given
/// and the file contains triples.
fn find(
    folder: &Path,
    files: &[PathBuf],
    name: &str,
    format: Option<FileKind>,
) -> Result<Option<PathBuf>, GraphError> {
    let by_ending = format.is_none() || [LABELS, RELATION_LABELS].contains(&name);
    let part = if by_ending { part_of } else { part_called };
    let found: Vec<&PathBuf> = files.iter().filter(|path| part(path) == Some(name)).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        several => Err(GraphError::file(
            folder,
            format!("one file for the split {name}"),
            list_names(several.iter().copied()),
        )),
    }
}

fn list_names<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let names: Vec<String> = files
        .into_iter()
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Reads `id<TAB>label` lines and passes on those whose id is in `vocabulary`. Returns how many are not: a label of
/// something that no fact mentions is not an error.
fn read_labels(
    path: &Path,
    what: &str,
    vocabulary: &Vocabulary,
    mut insert: impl FnMut(u32, String) -> bool,
) -> Result<usize, GraphError> {
    let mut unused = 0;
    use std::io::{BufRead, BufReader};
    let kind = FileKind::expect(path)?;
    let mut reader = BufReader::new(kind.compression.open(path)?);
    let bad = |line: u64, expected: &str, found: String| GraphError::line(path, line, expected, found);
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let length = (&mut reader)
            .take(LONGEST as u64 + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| bad(line, "more of the file", format!("an error: {error}")))?;
        if length > LONGEST {
            return Err(bad(line, what, format!("a line of more than {LONGEST_IN_WORDS}")));
        }
        if length == 0 {
            break;
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            bad(line, "UTF-8 text", format!("the byte 0x{:02x}", bytes[error.valid_up_to()]))
        })?;
        let text = text.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            continue;
        }
        let Some((name, label)) = text.split_once('\t') else {
            return Err(bad(line, what, "no tab".to_owned()));
        };
        match vocabulary.get(name) {
            Some(id) if insert(id, label.to_owned()) => {}
            Some(_) => return Err(bad(line, what, label.to_owned())),
            None => unused += 1,
        }
    }
    Ok(unused)
}
