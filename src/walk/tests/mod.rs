//! Compares the walker with slow, obvious reimplementations on small graphs.

mod device;
mod edge_cases;
mod episodes;
mod family;
mod search;
mod slow;
mod training;
mod worlds;

use super::world::Ask;
use super::{Agents, NetworkError, PathTable, Phase, Teacher, TrainOptions, WalkConfig, Walker, train};
use crate::graph::{Array, Direction, Graph, Known, Link, Query, RelationId, Triple};
use crate::progress::Progress;
use crate::tensor::Device;
use crate::train::TrainingSummary;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Facts over a few entities, some of which are training queries as well.
struct Small {
    graph: Graph,
    known: Known,
}

const RELATIONS: usize = 3;

fn small(entities: u32, facts: usize, seed: u64) -> Small {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut below = |count: u32| (random.next_u64() % u64::from(count)) as u32;
    let mut facts: Vec<Triple> =
        (0..facts).map(|_| Triple::new(below(entities), below(RELATIONS as u32), below(entities))).collect();
    facts.sort_unstable();
    facts.dedup();
    let queries: Array<Triple> = facts.iter().copied().step_by(2).collect();
    let graph = Graph::new(entities as usize, RELATIONS, &facts);
    Small { graph, known: Known { facts: facts.into(), queries, valid: [].into(), ..Known::default() } }
}

/// Narrow networks without any dropout, so that everything but the draws is exact.
fn plain(agents: Agents) -> WalkConfig {
    WalkConfig {
        agents,
        dimension: 6,
        history: 5,
        layers: 2,
        rollouts: 4,
        batch: 8,
        embedding_dropout: 0.0,
        hidden_dropout: 0.0,
        relation_dropout: 0.0,
        entity_dropout: 0.0,
        close_subject: false,
        ..WalkConfig::default()
    }
}

fn walker(config: &WalkConfig, small: &Small) -> Walker {
    Walker::new(config, &small.graph, &small.known, &Device::cpu(1).unwrap(), 5).unwrap()
}

fn asks(triples: &[Triple]) -> Vec<Ask> {
    let ask = |&triple: &Triple| {
        let (query, target) = Query::of(triple, Direction::Forward);
        Ask { query, target: Some(target) }
    };
    triples.iter().map(ask).collect()
}

fn forward(relation: u32) -> Link {
    Link::forward(RelationId(relation))
}

fn inverse(relation: u32) -> Link {
    Link::inverse_of(RelationId(relation))
}

/// Rules over the small graphs' relations: some paths of one, two and three links under every relation.
fn rules(hops: usize) -> PathTable {
    let heads = (0..RELATIONS as u32).map(forward);
    let links = || (0..RELATIONS as u32).flat_map(|relation| [forward(relation), inverse(relation)]);
    let rules = heads.flat_map(|head| {
        let one = links().map(|first| vec![first]);
        let two = links().map(|first| vec![first, forward(1)]);
        let three = links().map(|first| vec![first, inverse(2), forward(0)]);
        let confidence = move |body: &[Link]| (head.0 + body[0].0 + body.len() as u32) as f32 / 20.0;
        one.chain(two).chain(three).map(move |body| (head, body.clone(), confidence(&body)))
    });
    PathTable::new(hops, rules)
}

fn assert_close(ours: f64, theirs: f64, what: &str) {
    assert!((ours - theirs).abs() <= 2e-5 * (1.0 + theirs.abs()), "{what}: {ours} is not {theirs}");
}

/// Trains both phases (pre-training only if the settings ask for it), each in its own folder; returns the
/// records of both.
fn train_all(
    walker: &mut Walker,
    small: &Small,
    teacher: Teacher,
    options: TrainOptions,
    progress: &dyn Progress,
) -> Result<TrainingSummary, NetworkError> {
    let pretrains = walker.config.pretrains();
    let mut phase = |phase: Phase| {
        let folder = options.folder.map(|folder| folder.join(format!("{phase:?}")));
        let options = TrainOptions { phase, folder: folder.as_deref(), ..options };
        train(walker, &small.graph, &small.known, teacher, options, progress)
    };
    let mut history = Vec::new();
    if pretrains {
        history = phase(Phase::Pretrain)?.history;
    }
    let trained = phase(Phase::Joint)?;
    history.extend(trained.history);
    Ok(TrainingSummary { history, ..trained })
}
