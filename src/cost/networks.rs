//! The networks for a graph within a time budget: their sizes and training costs.
//!
//! The estimates count multiply-adds and divide by the measured throughput of a core; they choose sizes and numbers of
//! epochs, and are easily off by a factor of two.

use super::propagation::fitting_propagator;
use crate::embed::{self, LARGE, ModelKind, Settings};
use crate::eval::{Protocol, Side};
use crate::graph::Dataset;
use crate::propagate::PropagateSettings;
use crate::walk::{Pool, WalkConfig};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Giga multiply-adds per second and core: what small networks reach in training on a core with AVX-512. By
/// benches/README.md large ones get 47: W2 takes 0.525 s on one thread for 3 × 512 × 40,000 × 400. A stage is stopped
/// when its time is up, so a wrong estimate costs size or epochs, not minutes.
const A_CORE: f64 = 20.0;
/// How many such cores one NVIDIA GPU is worth. By benches/README.md an H200 trains walkers as fast as 45 to 125 of its
/// cores and an embedding model as fast as 340: this is one number in between, for all cards.
const A_CARD: f64 = 150.0;
/// The speed-up of matrix products for embedding models with very many entities: 47 (above) over [`A_CORE`], less an
/// allowance for load on the machine.
const LARGE_PRODUCTS: f64 = 2.0;
/// From this mean degree on, a graph gets the walker settings of FB15k-237, below it those of WN18RR. It lies between
/// their degrees, 37.5 and 4.3 (results/NOTES.md, *Degrees*); no graph in between has been tried.
const DENSE: f64 = 15.0;
/// The walker's share of the time. These shares were chosen by hand; results/NOTES.md, *Your own graph*, has the
/// figures that `run` reaches with them.
const WALKING: f64 = 0.5;
/// The embedding model's share.
const EMBEDDING: f64 = 0.3;
/// Its share beside a propagator that is trained, and beside one that is only asked.
const BESIDE: f64 = 0.2;
const BESIDE_UNIVERSAL: f64 = 0.35;
/// Its share if there is no other network.
const ALONE: f64 = 0.5;
/// The cost of an epoch of the relation agent alone, relative to an epoch of both: it is one of two agents.
const PRETRAINING: f64 = 0.5;
/// Walks may share more states than assumed: walkers have been up to this many times as fast as estimated.
const HOPE: f64 = 3.0;
/// A network is made smaller until there is time for the first number of epochs, and left out if the smallest gets
/// fewer than the second: a barely trained network does not help, and its rewards are noise. results/NOTES.md, *Your
/// own graph*: on WN18RR's facts in 8 minutes 47.3 by small networks, 39.3 by a large one after one epoch.
const EPOCHS_WANTED: [usize; 2] = [10, 5];
/// The sizes of walkers, the largest first: from this many entities on, the width, layers, batch and rollouts per
/// query.
const WALKERS: [(usize, [usize; 4]); 3] =
    [(LARGE, [200, 3, 256, 20]), (1000, [100, 2, 128, 20]), (0, [64, 1, 128, 10])];
/// The dimensions of embedding models, the largest first.
const DIMENSIONS: [usize; 3] = [200, 100, 64];

/// The size of a graph, as far as planning needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphSize {
    /// How many entities there are.
    pub entities: usize,
    /// How many relations.
    pub relations: usize,
    /// How many facts.
    pub facts: usize,
    /// How many training queries the walker has.
    pub training: usize,
    /// How many queries are ranked in the end.
    pub ranked: usize,
}

impl GraphSize {
    /// The size of the graph of `dataset`, whose test split, or a sample of it, is ranked in the end on this side.
    pub fn of(dataset: &Dataset, side: Side) -> Self {
        let protocol = Protocol { side, ..Protocol::default() };
        let entities = dataset.names.entities.len();
        Self {
            entities,
            relations: dataset.names.relations.len(),
            facts: dataset.known.facts.len(),
            training: dataset.known.queries.len(),
            ranked: side.directions().len() * protocol.sample(Cow::Borrowed(&dataset.test), entities).len(),
        }
    }

    pub(super) fn degree(&self) -> f64 {
        2.0 * self.facts as f64 / self.entities.max(1) as f64
    }

    fn is_dense(&self) -> bool {
        self.degree() >= DENSE
    }
}

/// The available resources.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// The budget.
    pub minutes: f64,
    /// Threads of the CPU.
    pub threads: usize,
    /// Whether tensors are on a GPU.
    pub cuda: bool,
}

impl Resources {
    /// The budget.
    pub fn seconds(&self) -> f64 {
        60.0 * self.minutes
    }

    /// Multiply-adds in a second.
    pub(super) fn rate(&self) -> f64 {
        1e9 * A_CORE * if self.cuda { A_CARD } else { self.threads as f64 }
    }
}

/// A network that suits a graph, and whether there is time for it.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedNetwork<T> {
    /// Its settings.
    pub settings: T,
    /// Whether there is time enough to train it.
    pub fits: bool,
}

/// The networks that suit a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Networks {
    /// The walker.
    pub walker: FittedNetwork<WalkConfig>,
    /// The embedding model.
    pub embedding: FittedNetwork<Settings>,
    /// The propagator.
    pub propagator: FittedNetwork<PropagateSettings>,
}

/// What answers beside the networks that are trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// A walker is trained as well, which is so only where it was asked for: beside rules and an embedding model or a
    /// propagator the blend gives it a weight of about zero, and their time is better spent on them (results/NOTES.md,
    /// *Blends* and *Your own graph*).
    pub walker: bool,
    /// The universal propagator answers, which takes time for asking.
    pub universal: bool,
}

impl Networks {
    /// The networks for a graph of this size with these resources.
    pub fn within(shape: &GraphSize, resources: &Resources, beside: Beside) -> Self {
        let propagator = fitting_propagator(shape, resources);
        let part = match beside {
            Beside { walker: true, .. } => EMBEDDING,
            _ if propagator.fits => BESIDE,
            Beside { universal: true, .. } => BESIDE_UNIVERSAL,
            _ => ALONE,
        };
        let embedding = embedding_within(shape, resources, part);
        Self { walker: fitting_walker(shape, resources), embedding, propagator }
    }
}

/// The embedding model in this share of the time.
fn embedding_within(shape: &GraphSize, resources: &Resources, part: f64) -> FittedNetwork<Settings> {
    let embedding = fitting_embedding(shape, resources, part);
    if embedding.fits || shape.entities < LARGE {
        return embedding;
    }
    // A softmax over a sample learns less from an epoch than one over all entities, so it comes last.
    fitting_sampled(shape, resources, part)
}

/// The first of `sizes`, largest first, that gets its epochs; otherwise the smallest.
fn largest<T>(sizes: impl IntoIterator<Item = T>, epochs: impl Fn(&T) -> usize) -> FittedNetwork<T> {
    let [wanted, least] = EPOCHS_WANTED;
    let mut sizes = sizes.into_iter().peekable();
    loop {
        let size = sizes.next().expect("there is a size for every graph");
        if epochs(&size) >= wanted || sizes.peek().is_none() {
            return FittedNetwork { fits: epochs(&size) >= least, settings: size };
        }
    }
}

fn fitting_walker(shape: &GraphSize, resources: &Resources) -> FittedNetwork<WalkConfig> {
    let sizes = WALKERS.iter().filter(|(from, _)| shape.entities >= *from);
    let trained = |(_, size): &(usize, [usize; 4])| {
        let config = walker(shape, *size);
        let in_time = WALKING * resources.seconds() / walk_epoch(shape, resources, &config);
        // Pre-training takes its share of the walker's time, at most half.
        let alone = (f64::from(config.pretrain_epochs) * PRETRAINING).min(0.5 * in_time);
        // The learning rate is constant, so a training that is slower than estimated can be stopped when its time is
        // up.
        let epochs = (HOPE * (in_time - alone)).clamp(1.0, 40.0) as usize;
        let validate_every = (epochs / 8).max(1);
        WalkConfig { pretrain_epochs: (alone / PRETRAINING) as f32, epochs, validate_every, ..config }
    };
    largest(sizes.map(trained), |config| config.epochs)
}

fn walker(shape: &GraphSize, [width, layers, batch, rollouts]: [usize; 4]) -> WalkConfig {
    let dense = shape.is_dense();
    let published = if dense { WalkConfig::fb15k_237() } else { WalkConfig::wn18rr() };
    // A small graph has too few batches for the published learning rate.
    let learning_rate = if shape.training < 20_000 { 0.003 } else { published.learning_rate };
    let beam = if shape.entities < 1000 { 64 } else { 128 };
    let lambda = if dense { 0.1 } else { 0.3 };
    // Users ask for heads as well as tails.
    let side = Side::Both;
    // The relation agent needs about a thousand batches alone, which is many epochs over few queries.
    let batches = (shape.training * side.directions().len()).div_ceil(batch).max(1);
    let pretrain_epochs = (1000 / batches).clamp(1, 15) as f32;
    // On graphs as dense as FB15k-237, less entropy and less embedding dropout than published learns faster.
    let entropy = if dense { 0.01 } else { published.entropy };
    // Small graphs are explored fast enough with little action dropout.
    let hidden = if shape.entities < LARGE { 0.1 } else { published.relation_dropout };
    WalkConfig {
        side,
        pool: Pool::Sum,
        pretrain_epochs,
        embedding_dropout: 0.1,
        relation_dropout: hidden,
        entity_dropout: hidden,
        entropy,
        dimension: width,
        history: width,
        layers,
        batch,
        rollouts,
        learning_rate,
        beam,
        lambda,
        ..published
    }
}

/// An embedding model trained with a softmax over all entities.
fn fitting_embedding(shape: &GraphSize, resources: &Resources, part: f64) -> FittedNetwork<Settings> {
    fitting(shape, resources, part, |settings| Settings { negatives: 0, ..settings })
}

/// An embedding model trained with a softmax over a sample of the entities.
fn fitting_sampled(shape: &GraphSize, resources: &Resources, part: f64) -> FittedNetwork<Settings> {
    fitting(shape, resources, part, embed::sampled)
}

/// The largest embedding model that gets its epochs in this share of the time, with the softmax that `by` sets.
fn fitting(
    shape: &GraphSize,
    resources: &Resources,
    part: f64,
    by: impl Fn(Settings) -> Settings,
) -> FittedNetwork<Settings> {
    let suited = embed::suited(ModelKind::ComplEx, shape.entities);
    let trained = |&dimension: &usize| {
        let settings = by(Settings { dimension, ..suited.clone() });
        let in_time = part * resources.seconds() / embed_epoch(shape, resources, &settings);
        let epochs = in_time.clamp(1.0, suited.epochs as f64) as usize;
        // Few epochs need a large learning rate.
        let learning_rate = if epochs < suited.epochs { 0.01 } else { suited.learning_rate };
        // If the validation split is learnt as well, there is no time to find the number of epochs without it first.
        let (final_epochs, evaluate_every) = (epochs, (epochs / 8).max(1));
        Settings { epochs, final_epochs, evaluate_every, learning_rate, ..settings }
    };
    let sizes = DIMENSIONS.iter().filter(|dimension| **dimension <= suited.dimension);
    largest(sizes.map(trained), |settings| settings.epochs)
}

/// Seconds of an epoch of the embedding model.
pub fn embed_epoch(shape: &GraphSize, resources: &Resources, settings: &Settings) -> f64 {
    let cost = settings.multiply_adds(shape.entities, shape.facts);
    (cost / product_rate(resources, settings.compared(shape.entities))).max(1e-3)
}

/// Seconds of comparing all queries that are ranked in the end with all entities.
pub fn comparing(shape: &GraphSize, resources: &Resources, settings: &Settings) -> f64 {
    let each = shape.entities as f64 * settings.width() as f64;
    shape.ranked as f64 * each / product_rate(resources, shape.entities)
}

/// Multiply-adds in a second of products with the vectors of this many entities.
fn product_rate(resources: &Resources, entities: usize) -> f64 {
    resources.rate() * if entities >= LARGE { LARGE_PRODUCTS } else { 1.0 }
}

/// Seconds of an epoch of joint training. Walks share states: over all hops `benches/walk` counts half as many states
/// as walks on WN18RR and NELL-995, and one and a half times as many on FB15k-237.
pub(crate) fn walk_epoch(shape: &GraphSize, resources: &Resources, config: &WalkConfig) -> f64 {
    let shared = if shape.is_dense() { 0.5 } else { 0.18 };
    let states = shared * (config.rollouts * config.hops) as f64;
    let asked = shape.training * config.side.directions().len();
    let cost = 3.0 * asked as f64 * states * state_cost(shape, config);
    (cost / resources.rate()).max(1e-3)
}

/// Seconds of pre-training and of joint training, which stops when its time is up.
pub fn walking(shape: &GraphSize, resources: &Resources, config: &WalkConfig) -> [f64; 2] {
    let epoch = walk_epoch(shape, resources, config);
    let pretrained = if config.pretrains() { config.pretrain_epochs } else { 0.0 };
    let alone = f64::from(pretrained) * PRETRAINING * epoch;
    [alone, (epoch * config.epochs as f64).min(WALKING * resources.seconds() - alone).max(0.0)]
}

/// Seconds of beam search for all queries that are ranked in the end.
pub fn searching(shape: &GraphSize, resources: &Resources, config: &WalkConfig) -> f64 {
    let states = 0.3 * config.beam as f64 * config.hops as f64;
    shape.ranked as f64 * states * state_cost(shape, config) / resources.rate()
}

/// Multiply-adds of one state: two LSTMs, two heads, the candidates.
fn state_cost(shape: &GraphSize, config: &WalkConfig) -> f64 {
    let (width, layers) = (config.dimension as f64, config.layers as f64);
    let candidates = (3.0 * shape.degree()).min(config.bandwidth as f64);
    2.0 * layers * 8.0 * width * width + 8.0 * width * width + candidates * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_shrink_with_the_time_and_go_when_there_is_none() {
        let shape =
            GraphSize { entities: 9_000, relations: 40, facts: 75_000, training: 75_000, ranked: 9_000 };
        let sizes = |minutes: f64| {
            let resources = Resources { minutes, threads: 2, cuda: false };
            let beside = Beside { walker: true, ..Beside::default() };
            let Networks { walker, embedding, .. } = Networks::within(&shape, &resources, beside);
            let (width, dimension) = (walker.settings.dimension, embedding.settings.dimension);
            (walker.fits.then_some(width), embedding.fits.then_some(dimension))
        };
        let minutes = [0.1, 1.0, 5.0, 30.0, 600.0];
        let met = minutes.map(sizes);
        assert_eq!(met[0], (None, None));
        assert!(met.is_sorted() && met[4].0 > met[3].0.min(Some(99)), "{met:?}");
        assert!(met[1..4].iter().any(|size| size.1 < met[4].1 && size.1.is_some()), "{met:?}");
    }

    #[test]
    fn a_graph_too_large_for_a_softmax_over_all_entities_has_one_over_a_sample() {
        // The packages of a distribution; a tenth each for validation and test.
        let shape =
            GraphSize { entities: 151_414, relations: 40, facts: 738_689, training: 738_689, ranked: 92_336 };
        let planned = |minutes: f64| {
            let resources = Resources { minutes, threads: 2, cuda: false };
            let FittedNetwork { settings, fits } =
                Networks::within(&shape, &resources, Beside::default()).embedding;
            (fits, settings.dimension, settings.negatives > 0, settings.epochs >= EPOCHS_WANTED[0])
        };
        assert_eq!(planned(60.0), (true, 200, true, true));
        assert_eq!(planned(10.0), (true, 64, true, true));
        let all = Settings { negatives: 0, ..embed::suited(ModelKind::ComplEx, shape.entities) };
        let hour = Resources { minutes: 60.0, threads: 2, cuda: false };
        // Against all entities its share of the hour would not be enough for one epoch.
        assert!(embed_epoch(&shape, &hour, &all) > EMBEDDING * hour.seconds());
    }

    #[test]
    fn the_embedding_model_has_more_time_without_a_walker() {
        let shape =
            GraphSize { entities: 9_000, relations: 40, facts: 75_000, training: 75_000, ranked: 9_000 };
        let resources = Resources { minutes: 2.0, threads: 2, cuda: false };
        let epochs = |walker| {
            let beside = Beside { walker, ..Beside::default() };
            let embedding = Networks::within(&shape, &resources, beside).embedding.settings;
            (embedding.dimension, embedding.epochs)
        };
        assert!(epochs(false) > epochs(true));
    }
}
