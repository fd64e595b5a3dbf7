//! The propagator for a graph within a time budget: its size, how many queries it is trained on, and the cost.
//!
//! Operations are counted as in `networks`: every reached entity is updated, and every edge of an entity that passes
//! messages on carries one. A message is bound by memory traffic, so it counts as several multiply-adds.

use super::networks::{FittedNetwork, GraphSize, Resources};
use crate::embed::LARGE;
use crate::propagate::{FrontierBound, InitialWeights, PropagateSettings};

/// The propagator's share of the time.
pub(crate) const PROPAGATING: f64 = 0.5;
/// Layers and widths, the largest first.
const SIZES: [[usize; 2]; 2] = [[6, 32], [4, 32]];
/// Multiply-adds that each number of a message counts for, on a CPU and on a GPU: messages are bound by memory traffic.
/// An H200 takes 1.1 ms a training query on FB15k-237 (results/NOTES.md), which the updates alone nearly account for.
const A_MESSAGE: [f64; 2] = [10.0, 2.0];
/// Giga multiply-adds per second and core, in products as small as these. Two cores take 0.36 ms a query on UMLS (four
/// layers), 6.3 ms on WN18RR and 33 ms on FB15k-237 (benches/README.md); this makes 0.4, 8.8 and 33 ms.
const A_CORE: f64 = 20.0;
/// How much faster it is on smaller graphs, where the states of all entities stay in the cache. From the universal weights
/// a query on MITRE ATT&CK takes 4 ms on two cores and a training query 17, this makes 5 and 22; from random ones a training
/// query on WN18RR v1 takes 0.17 ms, this makes 0.3 (results/own-graphs.md).
const IN_CACHE: f64 = 2.0;
/// Inputs of an update, in multiples of the width: four aggregates with three scalings each, and the state itself.
const AN_UPDATE: f64 = 13.0;
/// Multiply-adds per entity, reached or not: its score, the softmax over all entities, its rank.
const A_SCORE: f64 = 50.0;
/// The largest share of the time that ranking may take, and how many queries it asks at least: where there is no time for
/// more, a sample is ranked.
const RANKING: f64 = 0.2;
const FEWEST_QUERIES: f64 = 1200.0;
/// A training query costs this many times the updates of a forward pass, and its messages on a CPU and on a GPU: their
/// derivatives go along every edge in three orders. By benches/README.md a training query takes 1.5 ms on UMLS, 32 ms on
/// WN18RR and 324 ms on FB15k-237 on two cores; this makes 2.4, 27 and 180 ms.
const BACKWARD: f64 = 3.0;
const BACKWARD_MESSAGE: [f64; 2] = [9.0, 3.0];
/// The most passes over the training queries: small graphs are memorised within a few (results/NOTES.md).
const MOST_PASSES: f64 = 4.0;
/// The fewest passes for which a propagator is trained on a CPU: with less, the time is better spent on the embedding
/// model. On a GPU FB15k-237 had an MRR of 39.6 after a twelfth of a pass in 46 s (results/NOTES.md), so there is
/// always time.
const LEAST_PASSES: f64 = 0.5;
/// The same for a network that starts from the universal weights: a thousand queries already adapt it.
const LEAST_TUNED: f64 = 1000.0;
/// The learning rate of such a network, and the queries in its steps (results/own-graphs.md).
const TUNING_RATE: f64 = 3e-3;
const TUNING_BATCH: usize = 8;
/// So many times as many queries are planned as there should be time for: a machine may be faster than estimated, a
/// training measures how many steps there is time for, and time that is not needed is lost.
const HOPE: f64 = 3.0;
/// The most relations of a graph for that: the weights of the links take a map for each of them.
const UNIVERSAL_RELATIONS: usize = 2000;
/// The share of all entities that messages must reach, over the layers.
const MOSTLY: f64 = 0.4;
/// The most networks whose mean answers. Each takes its time again, and adds less than the one before it.
const MOST_NETWORKS: usize = 3;
/// Validations during a training, the share of its time that they may take, and the fewest facts they ask: of fewer the
/// best weights are not told from others.
const LOOKS: usize = 8;
const LOOKING: f64 = 0.15;
const FEWEST_SEEN: usize = 300;
/// Bytes per number of a state in training: by benches/README.md FB15k-237 takes 2,356 MiB for 16 queries.
const BYTES: f64 = 56.0;
/// Bytes per link weight in training: the weight, its gradient and Adam's two moments.
const A_WEIGHT: f64 = 16.0;
/// The most bytes that training may take, on a CPU and on a GPU.
const MEMORY: [f64; 2] = [2e9, 8e9];
/// Rows that a layer with a bounded frontier updates for each one that passes messages on.
const RECEIVERS: f64 = 3.0;

/// The propagator that suits a graph, and whether there is time for it.
pub(crate) fn fitting_propagator(
    shape: &GraphSize,
    resources: &Resources,
) -> FittedNetwork<PropagateSettings> {
    let sized = |&[layers, width]: &[usize; 2]| PropagateSettings { layers, width, ..Default::default() };
    // Weights from other graphs come first where they cost little more than random ones.
    let universal = starts_from_universal(shape).then(|| PropagateSettings {
        start: InitialWeights::Universal,
        learning_rate: TUNING_RATE,
        batch: TUNING_BATCH,
        ..Default::default()
    });
    let fits = |plain: PropagateSettings| {
        within_memory(shape, resources, plain).and_then(|settings| within_time(shape, resources, settings))
    };
    match universal.into_iter().chain(SIZES.iter().map(sized)).find_map(fits) {
        Some(settings) => FittedNetwork { settings: several(shape, resources, settings), fits: true },
        None => FittedNetwork { settings: PropagateSettings::default(), fits: false },
    }
}

/// Whether a propagator starts from the universal weights. Then every entity has a state in every layer, which costs much
/// more in graphs where messages reach few.
fn starts_from_universal(shape: &GraphSize) -> bool {
    let plain = PropagateSettings::default();
    let all = (shape.entities * plain.layers) as f64;
    shape.relations <= UNIVERSAL_RELATIONS
        && layers(shape, &plain).iter().map(|layer| layer.updated).sum::<f64>() >= MOSTLY * all
}

/// The mean of as many such networks as there is time to train in full: once one has had all the passes that help it,
/// another one helps more.
fn several(shape: &GraphSize, resources: &Resources, one: PropagateSettings) -> PropagateSettings {
    let full = |settings: &PropagateSettings| {
        in_time(shape, resources, settings) >= MOST_PASSES * 2.0 * shape.training as f64
    };
    let with = |networks| {
        let settings = PropagateSettings { networks, ..one.clone() };
        let settings = within_memory(shape, resources, settings)?;
        within_time(shape, resources, settings).filter(full)
    };
    (2..=MOST_NETWORKS).rev().find_map(with).unwrap_or(one)
}

/// `settings`, if a training with them fits into memory.
fn within_memory(
    shape: &GraphSize,
    resources: &Resources,
    settings: PropagateSettings,
) -> Option<PropagateSettings> {
    let numbers = (MEMORY[usize::from(resources.cuda)]
        - A_WEIGHT * settings.networks as f64 * weights(shape, &settings))
        / (BYTES * (settings.batch * settings.width) as f64);
    let updated: f64 = layers(shape, &settings).iter().map(|layer| layer.updated).sum();
    (updated <= numbers).then_some(settings)
}

/// How many training queries there should be time for.
fn in_time(shape: &GraphSize, resources: &Resources, settings: &PropagateSettings) -> f64 {
    (1.0 - LOOKING) * PROPAGATING * resources.seconds() / query(shape, resources, settings)
}

/// `settings` with as many training queries as there may be time for; `None` if those are too few.
fn within_time(
    shape: &GraphSize,
    resources: &Resources,
    settings: PropagateSettings,
) -> Option<PropagateSettings> {
    let all = 2.0 * shape.training as f64;
    let seconds = PROPAGATING * resources.seconds();
    let in_time = in_time(shape, resources, &settings);
    let least = match settings.start {
        InitialWeights::Random => LEAST_PASSES * all,
        InitialWeights::Universal => LEAST_TUNED.min(LEAST_PASSES * all),
    };
    let asked = forward(shape, resources, &settings).total() / rate(shape, resources);
    let asks_in_time = asked * FEWEST_QUERIES <= RANKING * resources.seconds();
    if !asks_in_time || (in_time < least && !resources.cuda) {
        return None;
    }
    let queries = (HOPE * in_time).min(MOST_PASSES * all).max(1.0);
    // Both ends of every fact are asked. With little time there are fewer looks at fewer facts.
    let looked_at = |looks: usize| (LOOKING * seconds / (2.0 * asked * looks as f64)) as usize;
    let enough = |looks: &usize| looked_at(*looks) >= FEWEST_SEEN;
    let looks = (1..=LOOKS).rev().find(enough).unwrap_or(1);
    let validation_queries = looked_at(looks).clamp(FEWEST_SEEN, settings.validation_queries);
    // Looks are as far apart, however many queries there is time for in the end.
    let epochs = (looks as f64 * (queries / in_time).max(1.0)).ceil() as usize;
    let epoch_queries = ((queries / epochs as f64).ceil() as usize).max(1);
    // A short training must still reach its peak learning rate.
    let steps = queries.min(in_time) / settings.batch as f64;
    let warm_up = (steps / 10.0).clamp(1.0, settings.warm_up as f64) as u64;
    Some(PropagateSettings { epochs, epoch_queries, warm_up, validation_queries, ..settings })
}

/// Seconds of a training query.
fn query(shape: &GraphSize, resources: &Resources, settings: &PropagateSettings) -> f64 {
    let Work { messages, updates } = forward(shape, resources, settings);
    let work = BACKWARD_MESSAGE[usize::from(resources.cuda)] * messages + BACKWARD * updates;
    work / rate(shape, resources)
}

/// Multiply-adds in a second.
fn rate(shape: &GraphSize, resources: &Resources) -> f64 {
    if resources.cuda {
        return resources.rate();
    }
    let in_cache = if shape.entities < LARGE { IN_CACHE } else { 1.0 };
    1e9 * A_CORE * in_cache * resources.threads as f64
}

/// The number of link weights in all layers of a network; each is used once per query.
fn weights(shape: &GraphSize, settings: &PropagateSettings) -> f64 {
    let width = settings.width as f64;
    let each = if settings.weights_of_query(shape.relations) { width * width } else { width };
    (settings.layers * 2 * shape.relations) as f64 * each
}

/// Multiply-adds of a query's forward pass.
struct Work {
    /// Of its messages.
    messages: f64,
    /// Of the updates of states, the scores, and the weights of the links.
    updates: f64,
}

impl Work {
    fn total(&self) -> f64 {
        self.messages + self.updates
    }
}

fn forward(shape: &GraphSize, resources: &Resources, settings: &PropagateSettings) -> Work {
    let (width, hidden, networks) = (settings.width as f64, settings.hidden as f64, settings.networks as f64);
    let layers = layers(shape, settings);
    let sum = |of: fn(&LayerSize) -> f64| layers.iter().map(of).sum::<f64>();
    let messages = sum(|layer| layer.messages) * width * A_MESSAGE[usize::from(resources.cuda)];
    let an_update = AN_UPDATE * width * width;
    // With a bounded frontier every new state is scored, because the scores decide who passes on.
    let a_choice = if settings.frontier == FrontierBound::All { 0.0 } else { width * hidden };
    let updates = sum(|layer| layer.updated) * (an_update + a_choice);
    let scores = shape.entities as f64 * A_SCORE;
    Work { messages: networks * messages, updates: networks * (scores + updates + weights(shape, settings)) }
}

/// What a layer does.
struct LayerSize {
    messages: f64,
    updated: f64,
}

/// The layers of a query: the entities reached in one pass messages on in the next; at first only the subject does.
fn layers(shape: &GraphSize, settings: &PropagateSettings) -> Vec<LayerSize> {
    let (degree, entities) = (shape.degree().max(1.0), shape.entities.max(1) as f64);
    if settings.start == InitialWeights::Universal {
        // Every entity has a state from the first layer on.
        let layer = |_| LayerSize { messages: entities * degree, updated: entities };
        return (0..settings.layers).map(layer).collect();
    }
    let most = match settings.frontier {
        FrontierBound::All => f64::INFINITY,
        FrontierBound::Most(most) => most as f64,
    };
    let mut reached = 1.0f64;
    let layer = |_| {
        let messages = reached.min(most) * degree;
        reached = (reached + messages.min(RECEIVERS * most)).min(entities);
        LayerSize { messages, updated: reached.min(RECEIVERS * most) }
    };
    (0..settings.layers).map(layer).collect()
}

/// Seconds of a training with `settings`.
pub fn propagating(shape: &GraphSize, resources: &Resources, settings: &PropagateSettings) -> f64 {
    let all = 2 * shape.training;
    let epoch = if settings.epoch_queries == 0 { all } else { settings.epoch_queries };
    let seconds = (settings.epochs * epoch) as f64 * query(shape, resources, settings);
    seconds.min((1.0 - LOOKING) * PROPAGATING * resources.seconds())
}

/// Seconds of answering all queries that are ranked in the end.
pub fn propagated(shape: &GraphSize, resources: &Resources, settings: &PropagateSettings) -> f64 {
    shape.ranked as f64 * forward(shape, resources, settings).total() / rate(shape, resources)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Resources = Resources { minutes: 10.0, threads: 2, cuda: false };
    const CARD: Resources = Resources { cuda: true, ..CPU };

    fn shape(entities: usize, facts: usize) -> GraphSize {
        GraphSize { entities, relations: 40, facts, training: facts, ranked: facts / 10 }
    }

    #[test]
    fn small_graphs_have_a_propagator_on_a_cpu_and_dense_ones_only_on_a_card() {
        let (small, dense) = (shape(135, 5_216), shape(14_541, 272_115));
        assert!(fitting_propagator(&small, &CPU).fits);
        assert!(!fitting_propagator(&dense, &CPU).fits);
        // From the universal weights a few thousand queries are enough, where messages reach most entities anyway.
        let medium = fitting_propagator(&shape(4_202, 21_579), &Resources { minutes: 3.0, ..CPU });
        assert!(medium.fits && medium.settings.start == InitialWeights::Universal);
        assert!(!fitting_propagator(&shape(4_202, 21_579), &Resources { minutes: 0.5, ..CPU }).fits);
        assert_eq!(fitting_propagator(&shape(22_000, 25_000), &CARD).settings.start, InitialWeights::Random);
        let on_card = fitting_propagator(&dense, &CARD);
        assert!(on_card.fits);
        assert_eq!((on_card.settings.layers, on_card.settings.width), (6, 32));
        assert_eq!(on_card.settings.frontier, FrontierBound::All);
        // More time never gives a smaller network.
        let hurried = fitting_propagator(&small, &Resources { minutes: 0.5, ..CPU }).settings;
        assert!(hurried.layers <= fitting_propagator(&small, &CPU).settings.layers);
    }

    #[test]
    fn time_that_one_network_does_not_need_goes_to_others() {
        let networks = |minutes: f64| {
            let resources = Resources { minutes, ..CPU };
            fitting_propagator(&shape(135, 5_216), &resources).settings.networks
        };
        assert_eq!(networks(1.0), 1);
        assert!([1.0, 5.0, 20.0, 120.0].map(networks).is_sorted() && networks(120.0) == MOST_NETWORKS);
        // Nothing is left over where one network has not had all its passes.
        assert_eq!(fitting_propagator(&shape(14_541, 272_115), &CARD).settings.networks, 1);
    }

    #[test]
    fn hundreds_of_thousands_of_relations_have_more_weights_than_there_is_memory_for() {
        let many = GraphSize { relations: 333_000, ..shape(5_003, 1_000_000) };
        assert!(!fitting_propagator(&many, &CPU).fits && !fitting_propagator(&many, &CARD).fits);
    }

    #[test]
    fn a_bounded_frontier_costs_the_same_on_any_graph() {
        let bounded = |frontier| PropagateSettings { frontier, ..PropagateSettings::default() };
        let cost =
            |facts: usize, frontier| forward(&shape(facts / 10, facts), &CPU, &bounded(frontier)).total();
        let entities_apart = |facts: usize| facts as f64 / 10.0 * A_SCORE;
        let few = FrontierBound::Most(1000);
        let (small, large) = (cost(1_000_000, few), cost(10_000_000, few));
        assert!(small - entities_apart(1_000_000) > 0.99 * (large - entities_apart(10_000_000)));
        assert!(cost(1_000_000, FrontierBound::All) > 10.0 * small);
        // One that bounds nothing costs what all cost, and the choice.
        let all = cost(1_000, FrontierBound::All);
        let none = cost(1_000, FrontierBound::Most(1_000_000));
        assert!(none >= all && none < 1.2 * all, "{none} and {all}");
    }

    #[test]
    fn a_training_is_no_longer_than_its_share_nor_than_it_helps() {
        for (entities, facts) in [(30, 100), (135, 5_216), (40_943, 86_835), (14_541, 272_115)] {
            for resources in [CPU, CARD] {
                let shape = shape(entities, facts);
                let FittedNetwork { settings, fits } = fitting_propagator(&shape, &resources);
                if fits {
                    let queries = settings.epochs * settings.epoch_queries;
                    assert!(queries as f64 <= MOST_PASSES * 2.0 * facts as f64 + HOPE * LOOKS as f64);
                    assert!(propagating(&shape, &resources, &settings) <= PROPAGATING * resources.seconds());
                    settings.check().unwrap();
                }
            }
        }
    }
}
