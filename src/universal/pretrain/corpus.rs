//! The graphs: those to train on, with their examples, and those to rank.

use super::settings::{RankedGraph, RankedSplit, TrainingGraph};
use crate::eval::{Figures, Protocol, Side, Truth, Unseen, evaluate};
use crate::graph::{
    Adjacency, Array, Dataset, Direction, Edge, EntityId, Graph, Link, Query, ReadOptions, SplitShares,
    Triple, evenly, read,
};
use crate::progress::{Progress, Quiet};
use crate::tensor::{Device, EdgeIndex, Indices, ReachQuery, Without};
use crate::universal::network::Relations;
use crate::universal::reasoner::edge_index;
use crate::universal::relations::{RelationGraph, kind_of};
use crate::universal::{Universal, UniversalError, UniversalReasoner};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
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

/// A graph to train on. An example is a fact in one direction.
pub(super) struct Lesson {
    pub(super) name: String,
    pub(super) share: f64,
    batch: usize,
    graph: Graph,
    facts: Array<Triple>,
    pub(super) relations: Relations,
    device: Device,
    /// The examples in the order of one pass, with its number.
    order: (u64, Vec<u32>),
}

/// Queries of one step.
pub(super) struct Batch {
    pub(super) asks: Vec<ReachQuery>,
    pub(super) links: Vec<u32>,
    pub(super) targets: Indices,
    /// Other answers of the queries, as places in `[queries, entities]`.
    pub(super) closed: Indices,
}

impl Lesson {
    pub(super) fn new(spec: &TrainingGraph, data: &Path, device: &Device) -> Result<Lesson, UniversalError> {
        let path = data.join(&spec.path);
        let dataset = read_data(&path)?;
        // Names that only other splits mention are no answers here.
        let facts = dataset.known.facts.clone();
        let entities = facts.iter().map(|fact| fact.head.0.max(fact.tail.0) as usize + 1).max().unwrap_or(0);
        let graph = Graph::new(entities, dataset.names.relations.len(), &facts);
        let relations = Relations::new(device, &RelationGraph::new(&graph))?;
        let (name, share, batch) = (name_of(&spec.path), spec.share, spec.batch);
        let order = (u64::MAX, Vec::new());
        Ok(Lesson { name, share, batch, graph, facts, relations, device: device.clone(), order })
    }

    /// A line about its size.
    pub(super) fn size(&self) -> String {
        let (entities, relations) = (self.graph.entities(), self.graph.relations());
        format!("{}: {entities} entities, {relations} relations, {} facts", self.name, self.facts.len())
    }

    /// The graph without a share of its facts, drawn at random by `seed`.
    pub(super) fn thinned(&self, share: f64, seed: u64) -> Result<EdgeIndex, UniversalError> {
        let limit = (share.clamp(0.0, 1.0) * u64::MAX as f64) as u64;
        edge_index(&self.device, &self.graph, |entity, edge| {
            // Both directions of a fact are drawn alike.
            let Edge { link, target } = *edge;
            let kind = kind_of(link);
            let (head, tail) = if kind & 1 == 0 { (entity, target) } else { (target, entity) };
            drawn(seed, [head.0, kind / 2, tail.0]) >= limit
        })
    }

    /// The examples of batch `number`, counted over all passes: a pass visits all examples in its own order.
    fn examples(&mut self, number: u64, seed: u64) -> &[u32] {
        let all = 2 * self.facts.len();
        let batch = self.batch.min(all);
        let batches = (all / batch) as u64;
        let (pass, place) = (number / batches, (number % batches) as usize);
        if self.order.0 != pass {
            let mut random = ChaCha8Rng::seed_from_u64(seed ^ drawn(0, [self.facts.len() as u32, 0, 0]));
            random.set_stream(pass);
            let mut order: Vec<u32> = (0..all as u32).collect();
            order.shuffle(&mut random);
            self.order = (pass, order);
        }
        &self.order.1[place * batch..(place + 1) * batch]
    }

    /// Batch `number`, counted over all passes; with `hide_pairs`, all links between subject and answer are hidden.
    pub(super) fn batch(
        &mut self,
        number: u64,
        seed: u64,
        hide_pairs: bool,
    ) -> Result<Batch, UniversalError> {
        let examples = self.examples(number, seed).to_vec();
        let entities = self.graph.entities();
        let (mut asks, mut links) = (Vec::new(), Vec::new());
        let (mut targets, mut closed) = (Vec::new(), Vec::new());
        for (row, &example) in examples.iter().enumerate() {
            let direction = if example % 2 == 0 { Direction::Forward } else { Direction::Inverse };
            let (query, target) = Query::of(self.facts[example as usize / 2], direction);
            let kind = (!hide_pairs).then(|| kind_of(query.link));
            asks.push(ReachQuery { start: query.subject.0, without: Some(Without { node: target.0, kind }) });
            links.push(kind_of(query.link));
            targets.push(target.0);
            let others =
                self.graph.targets(query.subject, query.link).iter().filter(|&&other| other != target);
            closed.extend(others.map(|other| (row * entities) as u32 + other.0));
        }
        let (targets, closed) = (Indices::new(&self.device, &targets)?, Indices::new(&self.device, &closed)?);
        Ok(Batch { asks, links, targets, closed })
    }
}

/// A number drawn for a fact.
fn drawn(seed: u64, fact: [u32; 3]) -> u64 {
    let mut number = seed ^ 0x9e37_79b9_7f4a_7c15;
    for word in fact {
        number = (number ^ u64::from(word)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        number ^= number >> 32;
    }
    number.wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

/// The share of facts that a turn leaves out: between 0 and `most`.
pub(super) fn thinning(most: f64, seed: u64, step: u64) -> (f64, u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(step);
    let (share, own) = (random.next_u64(), random.next_u64());
    (most * (share as f64 / u64::MAX as f64), own)
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
