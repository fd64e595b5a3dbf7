//! Loss, rewards and gradients of a batch, against one walk at a time.

use super::slow::{Slow, open};
use super::{Small, asks, assert_close, plain, rules, small, walker};
use crate::graph::{Edge, EntityId, Link};
use crate::tensor::{Gradients, Tape};
use crate::walk::episode::{Lesson, Moment, Phase, Script};
use crate::walk::measure::Watch;
use crate::walk::world::Ask;
use crate::walk::{Agents, Baseline, PathRules, SoftRewardError, Teacher, WalkConfig, Walker};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn soft(facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> {
    Ok(facts.iter().map(|(s, q, e)| ((s.0 * 7 + q.0 * 3 + e.0) % 10) as f32 / 20.0).collect())
}

/// Random walks over open actions: a script for an episode, and the paths by walk.
pub(super) fn random_walks(
    small: &Small,
    asks: &[Ask],
    config: &WalkConfig,
    seed: u64,
) -> (Script, Vec<Vec<Edge>>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut paths: Vec<Vec<Edge>> = vec![Vec::new(); asks.len() * config.rollouts];
    let mut script = Vec::new();
    for hop in 0..config.hops {
        let mut actions = Vec::new();
        for (walk, path) in paths.iter_mut().enumerate() {
            let open = open(small, &asks[walk / config.rollouts], path, hop + 1 == config.hops);
            let edge = open[(random.next_u64() % open.len() as u64) as usize];
            actions.push((edge.link.0, edge.target.0));
            path.push(edge);
        }
        script.push(actions);
    }
    (script, paths)
}

/// The training step and the moving average of the reward.
const STEP: u64 = 300;
const AVERAGE: f32 = 0.3;

fn lesson<'a>(walker: &'a Walker, teacher: Teacher<'a>, phase: Phase) -> Lesson<'a> {
    let Walker { config, world, network, .. } = walker;
    Lesson { config, world, network, teacher, phase, moment: Moment::of(config, STEP, AVERAGE) }
}

/// The loss of an episode and the slow version of it.
fn losses(config: &WalkConfig, phase: Phase, seed: u64) -> (f64, f64) {
    let small = small(7, 22, seed);
    let walker = walker(config, &small);
    let asks = asks(&small.known.queries);
    let (script, paths) = random_walks(&small, &asks, config, seed);
    let table = rules(config.hops);
    let teacher = Teacher { rules: &table, soft: Some(&soft) };
    let mut tape = Tape::training(&walker.parameters, 1);
    let episode =
        lesson(&walker, teacher, phase).episode(&mut tape, &asks, Some(&script), &mut Watch::off()).unwrap();
    let ours = f64::from(tape.value(episode.loss).number().unwrap());

    let slow = Slow::new(&walker);
    let mut rewards = Vec::new();
    let (mut log_probs, mut entropy) = (Vec::new(), 0.0);
    for (walk, path) in paths.iter().enumerate() {
        let ask = &asks[walk / config.rollouts];
        let end = path[config.hops - 1].target;
        let links: Vec<Link> = path.iter().map(|edge| edge.link).collect();
        let by_rule = f64::from(table.confidence(ask.query.link, &links));
        let other_answer = config.close_answers
            && small.known.facts.iter().any(|fact| {
                fact.head == ask.query.subject
                    && Link::forward(fact.relation) == ask.query.link
                    && fact.tail == end
            });
        let by_end = match (Some(end) == ask.target, other_answer || !config.soft_reward) {
            (true, _) => 1.0,
            (false, true) => 0.0,
            (false, false) => f64::from(soft(&[(ask.query.subject, ask.query.link, end)]).unwrap()[0]),
        };
        let lambda = f64::from(config.lambda);
        rewards.push(if phase == Phase::Pretrain {
            by_rule
        } else {
            lambda * by_rule + (1.0 - lambda) * by_end
        });
        let mut total = 0.0;
        for hop in 0..config.hops {
            let last = hop + 1 == config.hops;
            let open = open(&small, ask, &path[..hop], last && config.close_answers);
            let of_open = slow.log_probs(ask, &path[..hop], &open);
            let (relation, entity) = of_open[open.iter().position(|edge| *edge == path[hop]).unwrap()];
            total += if phase == Phase::Pretrain { relation } else { relation + entity };
            entropy -= of_open.iter().map(|(_, log_prob)| log_prob.exp() * log_prob).sum::<f64>();
        }
        log_probs.push(total);
    }
    let count = rewards.len() as f64;
    let (mut theirs, mut less) = (0.0, Vec::new());
    for (walk, reward) in rewards.iter().enumerate() {
        let of_query = &rewards[walk / config.rollouts * config.rollouts..][..config.rollouts];
        let baseline = match config.baseline {
            Baseline::None => 0.0,
            Baseline::Query => of_query.iter().sum::<f64>() / of_query.len() as f64,
            Baseline::Moving => f64::from(AVERAGE),
        };
        less.push(reward - baseline);
    }
    if config.normalise_rewards {
        let mean = less.iter().sum::<f64>() / count;
        let deviation = (less.iter().map(|x| x * x).sum::<f64>() / count - mean * mean).sqrt();
        less.iter_mut().for_each(|x| *x = (*x - mean) / deviation);
    }
    for (less, log_prob) in less.iter().zip(&log_probs) {
        theirs -= less * log_prob / count;
    }
    if phase == Phase::Joint {
        theirs -= f64::from(config.entropy_at(STEP)) * entropy / (config.hops as f64 * count);
        assert_close(
            f64::from(episode.entropy.unwrap().number().unwrap()),
            entropy / (config.hops as f64 * count),
            "entropy",
        );
    }
    assert_close(episode.tally.reward, rewards.iter().sum(), "rewards");
    (ours, theirs)
}

#[test]
fn forget_gates_start_where_they_are_told_to() {
    let config = WalkConfig { forget_bias: 1.5, history: 3, layers: 2, ..plain(Agents::Single) };
    let walker = walker(&config, &small(7, 22, 1));
    for layer in 0..2 {
        let bias = walker.parameters.find(&format!("agent.lstm.{layer}.bias")).unwrap();
        let values = walker.parameters.value(bias).to_vec().unwrap();
        assert_eq!(values, [0.0, 0.0, 0.0, 1.5, 1.5, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}

#[test]
fn peepholes_start_as_tensorflow_starts_a_vector_and_leave_the_rest_alone() {
    let config = WalkConfig { peepholes: true, history: 50, layers: 2, ..plain(Agents::Single) };
    let small = small(7, 22, 1);
    let (with, without) =
        (walker(&config, &small), walker(&WalkConfig { peepholes: false, ..config }, &small));
    let values = |walker: &Walker, name: &str| {
        walker.parameters.find(name).map(|id| walker.parameters.value(id).to_vec().unwrap())
    };
    for layer in 0..2 {
        let name = format!("agent.lstm.{layer}.peepholes");
        let peepholes = values(&with, &name).unwrap();
        assert_eq!((peepholes.len(), values(&without, &name)), (150, None));
        let (limit, largest) = ((3.0f32 / 50.0).sqrt(), peepholes.iter().fold(0.0f32, |a, b| a.max(b.abs())));
        assert!(largest <= limit && largest > 0.9 * limit, "{largest}");
    }
    for id in without.parameters.ids() {
        let name = without.parameters.name(id);
        assert_eq!(values(&with, name), values(&without, name), "{name}");
    }
}

#[test]
fn the_loss_is_that_of_one_walk_at_a_time() {
    let two = plain(Agents::Two);
    let configs = [
        two.clone(),
        WalkConfig { entropy: 0.3, baseline: Baseline::Query, lambda: 0.2, ..two.clone() },
        WalkConfig { baseline: Baseline::Moving, entropy: 0.3, entropy_decay: 0.9, ..two.clone() },
        WalkConfig { baseline: Baseline::Moving, normalise_rewards: true, ..plain(Agents::Single) },
        WalkConfig { normalise_rewards: true, entropy: 0.2, entropy_decay: 0.5, ..two.clone() },
        WalkConfig { output_relu: true, forget_bias: 1.0, ..plain(Agents::Single) },
        WalkConfig { output_relu: true, ..two.clone() },
        WalkConfig { peepholes: true, layers: 2, ..plain(Agents::Single) },
        WalkConfig { peepholes: true, ..two.clone() },
        WalkConfig { hops: 1, ..two.clone() },
        WalkConfig { hops: 5, rollouts: 2, ..two.clone() },
        WalkConfig { entropy: 0.1, ..plain(Agents::Single) },
        WalkConfig { hops: 2, ..two.clone().multihop() },
    ];
    for (seed, config) in configs.iter().enumerate() {
        let (ours, theirs) = losses(config, Phase::Joint, seed as u64);
        assert_close(ours, theirs, &format!("loss {seed}"));
    }
    let (ours, theirs) = losses(&two, Phase::Pretrain, 9);
    assert_close(ours, theirs, "pre-training's loss");
}

/// The gradients of all parameters.
pub(super) fn gradient(
    walker: &Walker,
    asks: &[Ask],
    script: &Script,
    phase: Phase,
    weight: f64,
    sum: &mut [Vec<f64>],
) {
    let table = rules(walker.config.hops);
    let teacher = Teacher { rules: &table, soft: Some(&soft) };
    let mut tape = Tape::training(&walker.parameters, 1);
    let episode =
        lesson(walker, teacher, phase).episode(&mut tape, asks, Some(script), &mut Watch::off()).unwrap();
    let mut gradients = Gradients::new(&walker.parameters);
    tape.backward(episode.loss, &mut gradients).unwrap();
    for (id, sum) in walker.parameters.ids().zip(sum) {
        let part = gradients.of(id).unwrap();
        sum.resize(part.len(), 0.0);
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += weight * f64::from(part));
    }
}

#[test]
fn shared_states_give_the_gradient_of_unshared_ones() {
    for (agents, phase, share_states) in [
        (Agents::Two, Phase::Joint, true),
        (Agents::Two, Phase::Pretrain, true),
        (Agents::Single, Phase::Joint, true),
        (Agents::Two, Phase::Joint, false),
        (Agents::Two, Phase::Pretrain, false),
        (Agents::Single, Phase::Joint, false),
    ] {
        let config = WalkConfig { rollouts: 12, entropy: 0.05, share_states, ..plain(agents) };
        let small = small(6, 16, 3);
        let shared = walker(&config, &small);
        let asks = asks(&small.known.queries);
        let (script, _) = random_walks(&small, &asks, &config, 4);
        let mut together = vec![Vec::new(); shared.parameters.ids().count()];
        gradient(&shared, &asks, &script, phase, 1.0, &mut together);
        // The same walks one by one: nothing to share, and each counts 1/N of the whole.
        let alone = walker(&WalkConfig { rollouts: 1, ..config.clone() }, &small);
        let mut apart = vec![Vec::new(); together.len()];
        let count = asks.len() * config.rollouts;
        for walk in 0..count {
            let one: Script = script.iter().map(|hop| vec![hop[walk]]).collect();
            let ask = asks[walk / config.rollouts];
            gradient(&alone, &[ask], &one, phase, 1.0 / count as f64, &mut apart);
        }
        let mut largest = 0.0f64;
        for (id, (together, apart)) in shared.parameters.ids().zip(together.iter().zip(&apart)) {
            for (ours, theirs) in together.iter().zip(apart) {
                largest = largest.max(theirs.abs());
                let close = (ours - theirs).abs() <= 1e-6 + 1e-4 * theirs.abs();
                assert!(close, "{}: {ours} is not {theirs}", shared.parameters.name(id));
            }
        }
        assert!(largest > 1e-3, "there is a gradient to compare");
    }
}

#[test]
fn sharing_leaves_few_states() {
    let small = small(6, 16, 3);
    let config = WalkConfig { rollouts: 50, ..plain(Agents::Two) };
    let asks = asks(&small.known.queries);
    let (script, _) = random_walks(&small, &asks, &config, 4);
    let (layer, stands) = crate::walk::layer::Layer::first(&asks);
    let moves: Vec<_> = script[0]
        .iter()
        .enumerate()
        .map(|(walk, &(link, target))| crate::walk::layer::Move { from: stands[walk / 50], link, target })
        .collect();
    let (next, ends) = layer.after(Agents::Two, &asks, &moves);
    assert_eq!(ends.len(), moves.len());
    let mut distinct: Vec<_> = moves.iter().map(|step| (step.from.state, step.target)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(next.states(), distinct.len());
    for (step, end) in moves.iter().zip(&ends) {
        assert_eq!(next.entities[end.state as usize], step.target);
        assert_eq!(next.parents[end.state as usize], step.from.state);
        assert_eq!(next.history_links[end.history as usize], step.link);
        assert_eq!(next.head_histories[end.head as usize], end.history);
        let item = next.items[end.state as usize];
        assert_eq!(next.head_queries[end.head as usize], asks[item as usize].query.link.0);
    }
}

#[test]
fn walks_that_are_kept_apart_have_states_and_dropout_of_their_own() {
    let small = small(6, 16, 3);
    let asks = asks(&small.known.queries);
    let (layer, stands) = crate::walk::layer::Layer::first_apart(&asks, 3);
    assert_eq!((layer.states(), stands.len()), (3 * asks.len(), 3 * asks.len()));
    for (walk, stand) in stands.iter().enumerate() {
        let (ask, state) = (&asks[walk / 3], stand.state as usize);
        assert_eq!(state, walk);
        assert_eq!((layer.items[state], layer.entities[state]), (walk as u32 / 3, ask.query.subject.0));
        assert_eq!(layer.history_links[stand.history as usize], Link::START.0);
        assert_eq!(layer.head_queries[layer.head_histories[stand.head as usize] as usize], ask.query.link.0);
    }
    // One query whose walks all do the same: with dropout of their own the loss is a mean over 64 masks, not that of one,
    // and its variance a 64th. (A relation agent is compared with one dropped-out table a batch in both cases.)
    let variance = |share_states| -> f64 {
        let dropout = WalkConfig { embedding_dropout: 0.3, hidden_dropout: 0.1, ..plain(Agents::Single) };
        let config = WalkConfig { rollouts: 64, share_states, ..dropout };
        let walker = walker(&config, &small);
        let (script, _) = random_walks(&small, &asks[..1], &WalkConfig { rollouts: 1, ..config.clone() }, 4);
        let same: Script = script.iter().map(|hop| vec![hop[0]; 64]).collect();
        let table = rules(config.hops);
        let lesson = lesson(&walker, Teacher { rules: &table, soft: Some(&soft) }, Phase::Joint);
        let loss = |seed| -> f64 {
            let mut tape = Tape::training(&walker.parameters, seed);
            let episode = lesson.episode(&mut tape, &asks[..1], Some(&same), &mut Watch::off()).unwrap();
            f64::from(tape.value(episode.loss).to_vec().unwrap()[0])
        };
        let losses: Vec<f64> = (0..200).map(loss).collect();
        let mean = losses.iter().sum::<f64>() / 200.0;
        losses.iter().map(|loss| (loss - mean).powi(2)).sum::<f64>() / 200.0
    };
    let times = variance(true) / variance(false);
    assert!((40.0..100.0).contains(&times), "{times}");
}
