//! The graphs as they are read, and those to rank.

use super::settings::{RankedGraph, RankedSplit};
use crate::eval::{Figures, Protocol, Side, Truth, Unseen, evaluate};
use crate::graph::{
    Adjacency, Dataset, EntityId, Graph, Link, ReadOptions, SplitShares, Triple, evenly, read,
};
use crate::progress::{Progress, Quiet};
use crate::tensor::{Device, EdgeIndex};
use crate::universal::network::Relations;
use crate::universal::reasoner::edge_index;
use crate::universal::relations::RelationGraph;
use crate::universal::{Universal, UniversalError, UniversalReasoner};
use std::path::Path;
use std::sync::Arc;

/// How a single file of facts is divided.
const SHARES: SplitShares = SplitShares { train: 0.9, valid: 0.05, test: 0.05, since: None };
/// The name of such a file in a folder without splits.
const FACTS: &str = "facts.";

/// Reads a data set: a folder of splits, a folder with one file `facts`, or a file of facts.
pub(super) fn read_data(path: &Path) -> Result<Dataset, UniversalError> {
    let options = ReadOptions { shares: SHARES, incomplete: true, ..ReadOptions::default() };
    let has_name = |path: &Path, name: &str| {
        path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
    };
    let mut files: Vec<_> = match path.is_dir() {
        true => std::fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
            .map_err(|source| UniversalError::File { path: path.to_owned(), source })?,
        false => Vec::new(),
    };
    files.sort();
    let splits = files.iter().any(|file| has_name(file, "train."));
    let facts = files.iter().find(|file| has_name(file, FACTS)).filter(|_| !splits);
    Ok(read(facts.map_or(path, |file| file), &options)?)
}

/// The name of a data set: that of its folder or file.
pub(super) fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// A graph to rank.
pub(super) struct Exam {
    pub(super) name: String,
    graph: Graph,
    answers: Adjacency,
    split: Vec<Triple>,
    edge_index: EdgeIndex,
    relations: Relations,
}

impl Exam {
    /// At most `queries` queries of a graph's split, half of them in either direction; 0 for all.
    pub(super) fn new(
        spec: &RankedGraph,
        data: &Path,
        queries: usize,
        device: &Device,
    ) -> Result<Exam, UniversalError> {
        let dataset = read_data(&data.join(&spec.path))?;
        let split = match spec.split {
            RankedSplit::Valid => &dataset.known.valid,
            RankedSplit::Test => &dataset.test,
        };
        let graph =
            Graph::new(dataset.names.entities.len(), dataset.names.relations.len(), &dataset.known.facts);
        let seen = |entity: EntityId| !graph.edges(entity).is_empty();
        let known = |triple: &Triple| {
            seen(triple.head) && seen(triple.tail) && !graph.pairs(Link::forward(triple.relation)).is_empty()
        };
        let split: Vec<Triple> = split.iter().copied().filter(known).collect();
        Ok(Exam {
            name: name_of(&spec.path),
            answers: dataset.answers(),
            split: evenly(&split, queries.div_ceil(2)),
            edge_index: edge_index(device, &graph, |_, _| true)?,
            relations: Relations::new(device, &RelationGraph::new(&graph))?,
            graph,
        })
    }

    /// How well `universal` ranks it, in both directions; ties count half.
    pub(super) fn figures(
        &self,
        universal: &Arc<Universal>,
        progress: &dyn Progress,
    ) -> Result<Figures, UniversalError> {
        let (edge_index, relations) = (self.edge_index.clone(), self.relations.clone());
        let reasoner = UniversalReasoner::of(universal.clone(), edge_index, relations);
        let protocol = Protocol { side: Side::Both, unseen: Unseen::LeaveOut, ..Protocol::default() };
        let truth = Truth { graph: &self.graph, answers: &self.answers };
        Ok(evaluate(&reasoner, &self.split, truth, protocol, &Quiet(progress))?.figures())
    }
}
