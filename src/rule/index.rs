//! The graph as the miner walks it, and the list of what to count, in a mapped file.
//!
//! Reading data, indexing it and listing the work takes a process longer than counting a small part of it. Processes
//! that share the counting build this file once. Each can then start immediately, and those on one machine share the
//! memory. The file belongs to one job: it records data, settings and version.

use super::mine::{MineOptions, MinedShard, TaskList, mine_indexed};
use super::reach::Reach;
use super::{RuleError, RuleType};
use crate::graph::{ArrayReader, ArrayWriter, Graph, Names, Vocabulary};
use crate::progress::Progress;
use crate::shard::{Shard, difference};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What identifies the files that an index was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexSource {
    /// Their fingerprint, as [`stamp`](crate::graph::stamp) computes it.
    pub stamp: String,
    /// A [`glance`](crate::graph::glance) at them, if it did not change while they were read.
    pub glance: Option<String>,
}

/// What an index was made from.
#[derive(Serialize, Deserialize)]
struct About {
    version: String,
    source: IndexSource,
    /// The checksum of the data.
    data: String,
    relations: Vec<String>,
    options: MineOptions,
    /// The lengths of the bodies whose prefixes are listed.
    lengths: Vec<usize>,
}

/// A mapped index.
pub struct MiningIndex {
    path: PathBuf,
    about: About,
    names: Names,
    reach: Reach,
    lists: Vec<TaskList>,
}

impl MiningIndex {
    /// Indexes `graph` for `options` into the file at `path`; false if the user interrupts. `source` and `data`
    /// identify the data.
    ///
    /// # Errors
    /// If the options are not valid or depend on the clock, or the file cannot be written.
    pub fn write(
        path: &Path,
        source: &IndexSource,
        data: &str,
        names: &Names,
        graph: &Arc<Graph>,
        options: &MineOptions,
        progress: &dyn Progress,
    ) -> Result<bool, RuleError> {
        let began = Instant::now();
        options.check_repeatable()?;
        options.check_with(graph)?;
        let reach = Reach::unless(graph, options.distinct, &|| progress.interrupted());
        let Some(reach) = reach else { return Ok(false) };
        let Some(lists) = TaskList::all(&reach, options, progress) else { return Ok(false) };
        let (text, ends) = entity_names(names, options);
        let mut arrays = ArrayWriter::default();
        arrays.add(text.as_bytes());
        arrays.add(&ends);
        reach.write(&mut arrays);
        lists.iter().for_each(|list| list.write(&mut arrays));
        let about = About {
            version: crate::VERSION.to_owned(),
            source: source.clone(),
            data: data.to_owned(),
            relations: names.relations.iter().map(str::to_owned).collect(),
            options: options.clone(),
            lengths: lists.iter().map(|list| list.length).collect(),
        };
        arrays.write(path, &about, began.elapsed())?;
        Ok(true)
    }

    /// Maps the index at `path`, of whatever data.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or belongs to another version.
    pub fn open(path: &Path) -> Result<Self, RuleError> {
        let (mut file, about): (_, About) = ArrayReader::open(path)?;
        if about.version != crate::VERSION {
            let what = format!("made by version {}, this is version {}", about.version, crate::VERSION);
            return Err(RuleError::Index { path: path.to_owned(), what });
        }
        let (text, ends) = (file.array::<u8>()?, file.array::<u64>()?);
        let entities = vocabulary(&text, &ends).ok_or_else(|| file.damaged("invalid names"))?;
        let relations: Vocabulary = about.relations.iter().map(String::as_str).collect();
        let reach = Reach::mapped(relations.len(), about.options.distinct, &mut file)?;
        let lists = about.lengths.iter().map(|&length| TaskList::mapped(length, &mut file));
        let lists = lists.collect::<Result<_, _>>()?;
        let names = Names { entities, relations, ..Names::default() };
        Ok(Self { path: path.to_owned(), about, names, reach, lists })
    }

    /// Whether a [`glance`](crate::graph::glance) at the data shows that it was made from it. If not, its
    /// [stamp](Self::expect_stamp) tells.
    pub fn is_of(&self, glance: Option<&str>) -> bool {
        glance.is_some() && self.about.source.glance.as_deref() == glance
    }

    /// Checks that it was made from the data with this stamp.
    ///
    /// # Errors
    /// If it was not.
    pub fn expect_stamp(&self, stamp: &str) -> Result<(), RuleError> {
        if self.about.source.stamp == stamp {
            return Ok(());
        }
        let what = "made from other data, or from data that was read with other options".to_owned();
        Err(RuleError::Index { path: self.path.clone(), what })
    }

    /// Checks that it was made for these options.
    ///
    /// # Errors
    /// If it was not; the message names an option that differs.
    pub fn expect(&self, options: &MineOptions) -> Result<(), RuleError> {
        let value = |options| serde_json::to_value(options).expect("options are plain data");
        match difference(&value(&self.about.options), &value(options), "") {
            None => Ok(()),
            Some((key, made, asked)) => {
                let what = format!("made with {key} = {made}, but now {key} = {asked}");
                Err(RuleError::Index { path: self.path.clone(), what })
            }
        }
    }

    /// The names of relations, and those of entities if rules may have constants.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The options it was made for.
    pub fn options(&self) -> &MineOptions {
        &self.about.options
    }

    /// The checksum of the data.
    pub fn data(&self) -> &str {
        &self.about.data
    }

    /// As [`mine_shard`](super::mine_shard), with the graph and the options of this index.
    ///
    /// # Errors
    /// Only those that would have occurred when the index was made.
    pub fn mine_shard(&self, shard: Shard, progress: &dyn Progress) -> Result<MinedShard, RuleError> {
        mine_indexed(&self.reach, &self.lists, &self.about.options, shard, progress)
    }
}

/// The names of entities, one after another, and where each ends; empty if no rule can have a constant.
fn entity_names(names: &Names, options: &MineOptions) -> (String, Vec<u64>) {
    let (mut text, mut ends) = (String::new(), Vec::new());
    if options.types.iter().any(|&of| of != RuleType::Cyclic) {
        for name in names.entities.iter() {
            text.push_str(name);
            ends.push(text.len() as u64);
        }
    }
    (text, ends)
}

fn vocabulary(text: &[u8], ends: &[u64]) -> Option<Vocabulary> {
    let text = std::str::from_utf8(text).ok()?;
    let mut start = 0;
    let names = ends.iter().map(|&end| {
        let name = text.get(start..usize::try_from(end).ok()?);
        start = end as usize;
        name
    });
    Vocabulary::distinct(names.collect::<Option<Vec<&str>>>()?).ok()
}
