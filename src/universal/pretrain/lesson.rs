//! A graph to train on: variants of it, prepared ahead on other threads, and their batches.

use super::corpus::{name_of, read_data};
use super::invented::invented;
use super::settings::{PretrainSettings, TrainingGraph, Variety};
use super::variant::{Facts, Variant};
use crate::graph::Graph;
use crate::tensor::{Device, EdgeIndex, Indices, ReachQuery, Without};
use crate::universal::UniversalError;
use crate::universal::network::Relations;
use crate::universal::reasoner::edge_index;
use crate::universal::relations::kind_of;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// How many variants of a graph are prepared ahead.
const AHEAD: usize = 2;
/// The name of invented graphs in lines and checkpoints.
pub(super) const INVENTED: &str = "invented";

/// Everything that a variant depends on, but its number.
struct Maker {
    name: String,
    /// The graph that was read; without one, graphs are invented.
    read: Option<(Facts, Graph)>,
    variety: Variety,
    /// The most queries of a variant.
    most: usize,
    seed: u64,
}

impl Maker {
    fn variant(&self, number: u64) -> Option<Variant> {
        match &self.read {
            Some((facts, graph)) => {
                Variant::new((facts, graph), &self.variety, self.most, (self.seed, number))
            }
            None => {
                let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ 0x5851_f42d_4c95_7f2d);
                random.set_stream(number);
                let facts = invented(&mut random);
                let graph = Graph::new(facts.entities, facts.relations, &facts.facts);
                // Small as they are, and different enough.
                let variety = Variety { part: 0.0, relations: 0.0, ..self.variety.clone() };
                Variant::new((&facts, &graph), &variety, self.most, (self.seed, number))
            }
        }
    }
}

/// A variant on its way.
struct Coming {
    number: u64,
    /// `None` if no thread could be started: it is made when it is needed.
    thread: Option<JoinHandle<Option<Variant>>>,
}

/// A graph to train on.
pub(super) struct Lesson {
    pub(super) name: String,
    pub(super) share: f64,
    batch: usize,
    maker: Arc<Maker>,
    size: String,
    coming: VecDeque<Coming>,
}

/// A variant on a device.
pub(super) struct Turn {
    variant: Variant,
    batch: usize,
    pub(super) edge_index: EdgeIndex,
    pub(super) relations: Relations,
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
    /// A graph that is read.
    pub(super) fn new(
        spec: &TrainingGraph,
        data: &Path,
        settings: &PretrainSettings,
        seed: u64,
    ) -> Result<Lesson, UniversalError> {
        let path = data.join(&spec.path);
        let dataset = read_data(&path)?;
        let facts = dataset.known.facts.to_vec();
        let (entities, relations) = (dataset.names.entities.len(), dataset.names.relations.len());
        let graph = Graph::new(entities, relations, &facts);
        let name = name_of(&spec.path);
        let size = format!("{name}: {entities} entities, {relations} relations, {} facts", facts.len());
        let read = Some((Facts { entities, relations, facts }, graph));
        Ok(Lesson::of((name, size, read), (spec.share, spec.batch), settings, seed))
    }

    /// Graphs that are invented, if the settings want any.
    pub(super) fn invented(settings: &PretrainSettings, seed: u64) -> Option<Lesson> {
        let wanted = settings.invented.as_ref()?;
        let what = (INVENTED.to_owned(), format!("{INVENTED}: a graph for every turn"), None);
        Some(Lesson::of(what, (wanted.share, wanted.batch), settings, seed))
    }

    fn of(
        (name, size, read): (String, String, Option<(Facts, Graph)>),
        (share, batch): (f64, usize),
        settings: &PretrainSettings,
        seed: u64,
    ) -> Lesson {
        let (variety, most) = (settings.variety.clone(), settings.turn * batch);
        let maker = Arc::new(Maker { name: name.clone(), read, variety, most, seed });
        Lesson { name, share, batch, maker, size, coming: VecDeque::new() }
    }

    /// A line about its size.
    pub(super) fn size(&self) -> &str {
        &self.size
    }

    /// Variant `number`. While it is trained on, the next ones are made.
    pub(super) fn turn(&mut self, number: u64, device: &Device) -> Result<Turn, UniversalError> {
        if self.coming.front().is_none_or(|coming| coming.number != number) {
            self.coming.clear();
        }
        let started = number + self.coming.len() as u64;
        for number in started..=number + AHEAD as u64 {
            self.coming.push_back(Coming::start(&self.maker, number));
        }
        let coming = self.coming.pop_front().expect("one was started");
        let variant = coming.wait(&self.maker);
        let variant =
            variant.ok_or_else(|| UniversalError::NothingToAsk { graph: self.maker.name.clone() })?;
        Ok(Turn {
            edge_index: edge_index(device, &variant.graph, |_, _| true)?,
            relations: Relations::new(device, &variant.relations)?,
            batch: self.batch,
            variant,
        })
    }
}

impl Coming {
    fn start(maker: &Arc<Maker>, number: u64) -> Coming {
        let maker = maker.clone();
        let make = move || {
            // All work is done on that thread: others wait for this one with workers of their own.
            let alone = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
            match alone.build() {
                Ok(pool) => pool.install(|| maker.variant(number)),
                Err(_) => maker.variant(number),
            }
        };
        Coming { number, thread: thread::Builder::new().spawn(make).ok() }
    }

    fn wait(self, maker: &Maker) -> Option<Variant> {
        match self.thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => maker.variant(self.number),
        }
    }
}

impl Turn {
    /// How many batches there are.
    pub(super) fn batches(&self) -> usize {
        self.variant.asked.len().div_ceil(self.batch)
    }

    /// A batch; with `hide_pairs`, all links between subject and answer are hidden.
    pub(super) fn batch(
        &self,
        number: usize,
        hide_pairs: bool,
        device: &Device,
    ) -> Result<Batch, UniversalError> {
        let entities = self.variant.graph.entities();
        let (mut asks, mut links) = (Vec::new(), Vec::new());
        let (mut targets, mut closed) = (Vec::new(), Vec::new());
        let asked = self.variant.asked.chunks(self.batch).nth(number).expect("a batch of those there are");
        for (row, &(query, target)) in asked.iter().enumerate() {
            let without = hide_pairs.then_some(Without { node: target.0, kind: None });
            asks.push(ReachQuery { start: query.subject.0, without });
            links.push(kind_of(query.link));
            targets.push(target.0);
            closed.extend(self.variant.others(query, target).map(|other| (row * entities) as u32 + other.0));
        }
        let (targets, closed) = (Indices::new(device, &targets)?, Indices::new(device, &closed)?);
        Ok(Batch { asks, links, targets, closed })
    }
}
