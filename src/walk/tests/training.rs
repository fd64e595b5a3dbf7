//! Training continues from a checkpoint as if it had not stopped; every system trains.

use super::{Small, plain, rules, small, train_all, walker};
use crate::eval::{Protocol, Side, Truth, evaluate};
use crate::graph::{Adjacency, EntityId, Graph, Known, Link, Query, Triple};
use crate::progress::{Metric, Progress, Silent};
use crate::tensor::Tensor;
use crate::train::{Recording, TrainError, TrainingSummary, forget, read_curves};
use crate::walk::{
    Agents, Baseline, NetworkError, NoRules, Phase, SoftRewardError, Teacher, TrainOptions, WalkConfig,
    Walker, train,
};
use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

fn soft(facts: &[(EntityId, Link, EntityId)]) -> Result<Vec<f32>, SoftRewardError> {
    Ok(facts.iter().map(|fact| (fact.2.0 % 4) as f32 / 8.0).collect())
}

fn config() -> WalkConfig {
    WalkConfig {
        embedding_dropout: 0.1,
        hidden_dropout: 0.1,
        relation_dropout: 0.2,
        entity_dropout: 0.2,
        pretrain_epochs: 1.5,
        epochs: 4,
        final_rate: 0.1,
        clip: 5.0,
        ..plain(Agents::Two)
    }
}

fn with_valid() -> Small {
    let mut small = small(9, 40, 2);
    small.known.valid = [Triple::new(0, 0, 3), Triple::new(2, 1, 4), Triple::new(5, 2, 1)].into();
    small
}

/// Interrupts after this many batches.
struct Impatient(AtomicUsize);

impl Progress for Impatient {
    fn begin(&self, _: &str, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64, figures: &dyn Display) {
        assert!(figures.to_string().starts_with("epoch ") && figures.to_string().contains(", reward "));
        self.0.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(1))).unwrap();
    }
    fn end(&self, _: &dyn Display) {}
    fn interrupted(&self) -> bool {
        self.0.load(Relaxed) == 0
    }
}

/// Reports that time is up after this many batches.
struct Hurried(AtomicUsize);

impl Progress for Hurried {
    fn begin(&self, _: &str, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64, _: &dyn Display) {
        self.0.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(1))).unwrap();
    }
    fn end(&self, _: &dyn Display) {}
    fn time_is_up(&self) -> bool {
        self.0.load(Relaxed) == 0
    }
}

fn teach(
    walker: &mut Walker,
    small: &Small,
    folder: Option<&Path>,
    progress: &dyn Progress,
) -> Result<TrainingSummary, NetworkError> {
    let table = rules(walker.config.hops);
    let teacher = Teacher { rules: &table, soft: Some(&soft) };
    let options =
        TrainOptions { seed: 3, folder, checkpoint_every: Duration::ZERO, ..TrainOptions::default() };
    train_all(walker, small, teacher, options, progress)
}

fn weights(walker: &Walker) -> Vec<Vec<f32>> {
    walker.parameters.ids().map(|id| walker.parameters.value(id).to_vec().unwrap()).collect()
}

/// The summary without its timings.
fn timeless(trained: &TrainingSummary) -> TrainingSummary {
    let history = trained.history.iter().map(timeless_metric).collect();
    TrainingSummary { history, seconds: 0.0, step_seconds: 0.0, ..trained.clone() }
}

fn timeless_metric(metric: &Metric) -> Metric {
    let mut metric = Metric { seconds: 0.0, ..metric.clone() };
    metric.figures.remove("ms_per_batch").expect("every epoch was timed");
    metric
}

fn figure(metric: &Metric, name: &str) -> f64 {
    metric.figures[name].as_f64().unwrap()
}

#[test]
fn training_whose_time_is_up_is_finished_with_the_best_it_has() {
    let small = with_valid();
    let config = WalkConfig { pretrain_epochs: 0.0, validate_every: 3, ..config() };
    let whole = teach(&mut walker(&config, &small), &small, None, &Silent).unwrap();
    let batches = figure(&whole.history[0], "batches") as usize;
    assert!(batches > 1, "an epoch can be cut short");
    for allowed in [1, batches, batches + 1] {
        let mut walker = walker(&config, &small);
        let hurried = Hurried(AtomicUsize::new(allowed));
        let trained = teach(&mut walker, &small, None, &hurried).unwrap();
        let epochs = allowed.div_ceil(batches);
        assert_eq!(trained.epochs, epochs);
        let last = &trained.history[epochs - 1];
        assert!(last.figures.contains_key("valid_mrr"), "it looks at the validation split once more");
        assert_eq!(figure(last, "batches") as usize, allowed - batches * (epochs - 1));
        assert_eq!(trained.best.unwrap().epoch, epochs);
    }
}

#[test]
fn training_from_a_checkpoint_equals_training_without_interruption() {
    let small = with_valid();
    let mut whole = walker(&config(), &small);
    let expected = teach(&mut whole, &small, None, &Silent).unwrap();
    assert_eq!(expected.epochs, 4);
    assert_eq!(
        expected.history.len(),
        2 + 4,
        "one and a half epochs of pre-training, four of joint training"
    );
    assert!(expected.history[0].stage == "pretraining" && expected.best.is_some());
    let folder = tempfile::tempdir().unwrap();
    let curves = folder.path().join("metrics.jsonl");
    let mut interruptions = 0;
    let resumed = loop {
        // Another seed for the first weights: everything must come from the checkpoint.
        let device = crate::tensor::Device::cpu(2).unwrap();
        let first = if interruptions == 0 { 5 } else { 77 };
        let mut walker = Walker::new(&config(), &small.graph, &small.known, &device, first).unwrap();
        let patience = Impatient(AtomicUsize::new(interruptions % 3 + 1));
        let recording = Recording::new(&curves, &patience);
        match teach(&mut walker, &small, Some(folder.path()), &recording) {
            Ok(trained) => {
                assert_eq!(weights(&walker), weights(&whole));
                break trained;
            }
            Err(NetworkError::Train(TrainError::Interrupted { .. })) => interruptions += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(interruptions < 100);
    };
    assert!(interruptions > 3, "{interruptions}");
    assert_eq!(timeless(&resumed), timeless(&expected));
    let told: Vec<Metric> = read_curves(&curves).unwrap().iter().map(timeless_metric).collect();
    assert_eq!(told, timeless(&expected).history, "no record is lost, repeated or different");
    for name in ["reward", "hit_rate", "rule_rate", "entropy", "gradient_norm", "valid_mrr", "rule_share"] {
        assert!(told[5].figures.contains_key(name), "{name} is missing in {:?}", told[5]);
    }
    // Training a finished phase again changes nothing.
    let mut again = walker(&config(), &small);
    assert_eq!(
        timeless(&teach(&mut again, &small, Some(folder.path()), &Silent).unwrap()),
        timeless(&expected)
    );
    assert_eq!(weights(&again), weights(&whole));
}

/// As MINERVA: a fixed number of batches, a moving baseline, normalised rewards, a decaying entropy weight.
fn by_steps(steps: usize) -> WalkConfig {
    WalkConfig {
        steps,
        baseline: Baseline::Moving,
        baseline_weight: 0.3,
        entropy: 0.1,
        entropy_decay: 0.5,
        entropy_steps: 2,
        entity_embeddings: false,
        ..config().minerva()
    }
}

#[test]
fn a_training_by_steps_ends_after_them_and_goes_on_from_a_checkpoint() {
    let small = with_valid();
    let batches = small.known.queries.len().div_ceil(config().batch);
    assert!(batches > 1, "an epoch can be cut short");
    let steps = 3 * batches + 1;
    let passes = [false, true].map(|normalise_rewards| WalkConfig { normalise_rewards, ..by_steps(steps) });
    let drawn = WalkConfig { with_replacement: true, peepholes: true, ..passes[1].clone() };
    for config in passes.into_iter().chain([drawn]) {
        let mut whole = walker(&config, &small);
        let expected = teach(&mut whole, &small, None, &Silent).unwrap();
        let taken: Vec<usize> =
            expected.history.iter().map(|metric| figure(metric, "batches") as usize).collect();
        assert_eq!(taken, [batches, batches, batches, 1]);
        assert!(expected.history[3].figures.contains_key("valid_mrr"), "the last look is the last batch's");
        let folder = tempfile::tempdir().unwrap();
        let resumed = loop {
            let mut part = walker(&config, &small);
            let impatient = Impatient(AtomicUsize::new(2));
            match teach(&mut part, &small, Some(folder.path()), &impatient) {
                Ok(trained) => {
                    assert_eq!(weights(&part), weights(&whole));
                    break trained;
                }
                Err(NetworkError::Train(TrainError::Interrupted { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(timeless(&resumed), timeless(&expected));
        let mut longer = walker(&WalkConfig { steps: steps + 1, ..config }, &small);
        let error = teach(&mut longer, &small, Some(folder.path()), &Silent).unwrap_err();
        assert!(error.to_string().contains("walk.steps"), "{error}");
    }
}

#[test]
fn a_checkpoint_of_another_training_is_refused_by_name() {
    let small = with_valid();
    let folder = tempfile::tempdir().unwrap();
    let mut first = walker(&WalkConfig { epochs: 1, ..config() }, &small);
    teach(&mut first, &small, Some(folder.path()), &Silent).unwrap();
    for (config, key) in [
        (WalkConfig { epochs: 1, lambda: 0.5, ..config() }, "walk.lambda"),
        // The learning rate falls towards the last epoch.
        (WalkConfig { epochs: 2, ..config() }, "walk.epochs"),
    ] {
        let mut other = walker(&config, &small);
        let error = teach(&mut other, &small, Some(folder.path()), &Silent).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn pretraining_is_shared_by_all_that_differ_in_what_comes_after() {
    let small = with_valid();
    let folder = tempfile::tempdir().unwrap();
    let mut first = walker(&config(), &small);
    let table = rules(first.config.hops);
    let teacher = Teacher { rules: &table, soft: Some(&soft) };
    let options = TrainOptions { phase: Phase::Pretrain, folder: Some(folder.path()), ..Default::default() };
    let pretrain = |walker: &mut Walker| {
        train(walker, &small.graph, &small.known, teacher, options, &Silent).map(|trained| timeless(&trained))
    };
    let trained = pretrain(&mut first).unwrap();
    assert_eq!((trained.epochs, trained.best.is_none()), (2, true));
    let later = WalkConfig { epochs: 9, lambda: 0.9, final_rate: 0.5, entropy: 0.3, ..config() };
    let mut second = walker(&WalkConfig { freeze_relation_agent: true, ..later }, &small);
    assert_eq!(pretrain(&mut second).unwrap(), trained, "there is nothing left to do");
    assert_eq!(weights(&second), weights(&first));
    let mut other = walker(&WalkConfig { rollouts: 3, ..config() }, &small);
    assert!(pretrain(&mut other).unwrap_err().to_string().contains("walk.rollouts"));
    // Its weights are what a joint training elsewhere continues from.
    let file = folder.path().join("pretrained.safetensors");
    first.save(&file).unwrap();
    let mut fresh = walker(&config(), &small);
    fresh.go_on_from(&file).unwrap();
    assert_eq!(weights(&fresh), weights(&first));
    forget(folder.path());
    assert!(!folder.path().join("checkpoint.safetensors").exists());
}

#[test]
fn a_shorter_training_is_not_what_a_longer_one_left() {
    let small = with_valid();
    let of = |epochs| WalkConfig { epochs, final_rate: 1.0, ..config() };
    let folder = tempfile::tempdir().unwrap();
    teach(&mut walker(&of(4), &small), &small, Some(folder.path()), &Silent).unwrap();
    let (mut shorter, mut alone) = (walker(&of(2), &small), walker(&of(2), &small));
    let trained = teach(&mut shorter, &small, Some(folder.path()), &Silent).unwrap();
    assert_eq!(trained.epochs, 2);
    assert_eq!(timeless(&trained), timeless(&teach(&mut alone, &small, None, &Silent).unwrap()));
    assert_eq!(weights(&shorter), weights(&alone));
}

#[test]
fn every_system_trains_and_a_frozen_relation_agent_stays() {
    let small = with_valid();
    let base = WalkConfig { epochs: 1, pretrain_epochs: 1.0, ..config() };
    for system in [
        base.clone(),
        WalkConfig { pretrain_epochs: 0.0, ..base.clone() },
        base.clone().single(),
        base.clone().multihop(),
        base.clone().minerva(),
    ] {
        let mut walker = walker(&system, &small);
        let before = weights(&walker);
        let trained = teach(&mut walker, &small, None, &Silent).unwrap();
        assert_eq!(trained.epochs, 1);
        let last = trained.history.last().unwrap();
        for name in ["reward", "gradient_norm", "entropy"] {
            assert!(figure(last, name) > 0.0, "{last:?}");
        }
        assert!(weights(&walker).iter().zip(&before).all(|(after, before)| after != before));
    }
    let values = |walker: &Walker, name: &str| {
        walker.parameters.value(walker.parameters.find(name).unwrap()).to_vec().unwrap()
    };
    let mut frozen =
        walker(&WalkConfig { freeze_relation_agent: true, pretrain_epochs: 0.0, ..base }, &small);
    let names = ["relations", "relation_agent.lstm.0.input", "relation_agent.head.second.weight", "entities"];
    let before = names.map(|name| values(&frozen, name));
    teach(&mut frozen, &small, None, &Silent).unwrap();
    let stayed: Vec<bool> =
        names.iter().zip(&before).map(|(name, before)| &values(&frozen, name) == before).collect();
    assert_eq!(stayed, [true, true, true, false]);
}

#[test]
fn threads_do_not_change_what_is_learnt() {
    let small = with_valid();
    let learnt = |threads| {
        let device = crate::tensor::Device::cpu(threads).unwrap();
        let mut walker = Walker::new(&config(), &small.graph, &small.known, &device, 5).unwrap();
        let trained = teach(&mut walker, &small, None, &Silent).unwrap();
        (timeless(&trained), weights(&walker))
    };
    assert_eq!(learnt(1), learnt(2));
}

#[test]
fn patience_ends_a_training_that_no_longer_improves() {
    let small = with_valid();
    let config = WalkConfig { learning_rate: 0.0, epochs: 50, validate_every: 1, patience: 3, ..config() };
    let mut walker = walker(&config, &small);
    let trained = teach(&mut walker, &small, None, &Silent).unwrap();
    assert_eq!((trained.epochs, trained.best.unwrap().epoch), (4, 1));
}

#[test]
fn a_failing_soft_reward_and_a_wrong_number_of_values_are_errors() {
    let small = with_valid();
    let mut walker = walker(&WalkConfig { pretrain_epochs: 0.0, ..config() }, &small);
    let none = |_: &[(EntityId, Link, EntityId)]| -> Result<Vec<f32>, SoftRewardError> { Ok(Vec::new()) };
    let teacher = Teacher { rules: &NoRules, soft: Some(&none) };
    let error = train(&mut walker, &small.graph, &small.known, teacher, TrainOptions::default(), &Silent)
        .unwrap_err();
    assert!(matches!(error, NetworkError::SoftReward(why) if why.to_string().contains("0 values for")));
}

/// A ring in which `p` leads one place further and `q` two; a third of the `q` facts are held out.
fn ring() -> (Small, Vec<Triple>) {
    const PLACES: u32 = 30;
    let (mut facts, mut queries, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for place in 0..PLACES {
        facts.push(Triple::new(place, 0, (place + 1) % PLACES));
        let further = Triple::new(place, 1, (place + 2) % PLACES);
        if place % 3 == 0 { unknown.push(further) } else { queries.push(further) }
    }
    facts.extend(&queries);
    let graph = Graph::new(PLACES as usize, super::RELATIONS, &facts);
    let known = Known { facts: facts.into(), queries: queries.into(), valid: [].into(), ..Known::default() };
    (Small { graph, known }, unknown)
}

#[test]
fn a_walker_that_was_asked_for_both_ends_finds_both() {
    let (small, unknown) = ring();
    let found = |side: Side| {
        let config = WalkConfig {
            side,
            dimension: 16,
            history: 16,
            hops: 2,
            learning_rate: 0.01,
            lambda: 0.0,
            pretrain_epochs: 0.0,
            epochs: 40,
            ..config()
        };
        let mut walker = walker(&config, &small);
        let teacher = Teacher { rules: &NoRules, soft: None };
        let options = TrainOptions::default();
        let trained = train(&mut walker, &small.graph, &small.known, teacher, options, &Silent).unwrap();
        let batches = (20 * side.directions().len()).div_ceil(config.batch);
        assert_eq!(figure(&trained.history[0], "batches") as usize, batches);
        let answers = Adjacency::new(small.graph.entities(), &[&small.known.facts, &unknown]);
        let truth = Truth { graph: &small.graph, answers: &answers };
        [Side::Tail, Side::Head].map(|side| {
            let protocol = Protocol { side, ..Protocol::default() };
            evaluate(&walker, &unknown, truth, protocol, &Silent).unwrap().figures().hits_at_1
        })
    };
    let ([tails, _], [both_tails, both_heads]) = (found(Side::Tail), found(Side::Both));
    assert!(tails >= 0.9 && both_tails >= 0.9 && both_heads >= 0.9, "{tails} {both_tails} {both_heads}");
}

#[test]
fn without_embeddings_of_entities_only_relations_tell_actions_apart() {
    let small = with_valid();
    let config =
        WalkConfig { agents: Agents::Single, entity_embeddings: false, pretrain_epochs: 0.0, ..config() };
    let mut walker = walker(&config, &small);
    let table = small.graph.entities() * config.dimension;
    assert_eq!(walker.parameter_count() + table, walker.parameters.len());
    let before = weights(&walker);
    teach(&mut walker, &small, None, &Silent).unwrap();
    let after = weights(&walker);
    assert_ne!(before, after);
    assert!(after.contains(&vec![0.0; table]), "the table of entities stays as it was");
    let queries: Vec<Query> =
        (0..9).map(|subject| Query { subject: EntityId(subject), link: super::forward(0) }).collect();
    let (mut scores, mut steps) = (std::collections::HashMap::new(), 0);
    for (query, answers) in queries.iter().zip(walker.answers(&queries).unwrap()) {
        for answer in &answers {
            let first = &answer.path[0];
            let score = *scores.entry((query.subject, first.link)).or_insert(first.entity_score);
            assert_eq!(score, first.entity_score, "{first:?}");
            steps += 1;
        }
    }
    assert!(scores.len() > 9 && steps > 2 * scores.len(), "{} of {steps}", scores.len());
}

#[test]
fn what_is_alike_elsewhere_begins_alike() {
    let small = with_valid();
    let config = WalkConfig { dimension: 48, ..config() };
    let mut walker = walker(&config, &small);
    let device = walker.parameters.device().clone();
    let (entities, links) = (small.graph.entities(), Link::count(small.graph.relations()));
    // Two kinds of entities: equal vectors within a kind, orthogonal ones between the kinds.
    let started = |walker: &mut Walker, width: usize| {
        let value =
            |at: usize| if (at % width < width / 2) == (at / width).is_multiple_of(2) { 7.0 } else { 0.0 };
        let vectors: Vec<f32> = (0..entities * width).map(value).collect();
        let vectors = Tensor::new(&device, &vectors, entities, width).unwrap();
        let links = Tensor::new(&device, &vec![2.0; links * width], links, width).unwrap();
        walker.start_from(&vectors, &links, 5).unwrap();
        let links = walker.parameters.value(walker.network.relation_table()).to_vec().unwrap();
        assert!(links.chunks(48).all(|row| row == &links[..48]), "{width}");
        walker.parameters.value(walker.network.entity_table()).to_vec().unwrap()
    };
    for width in [48, 96, 20] {
        let table = started(&mut walker, width);
        assert_eq!(table, started(&mut walker, width), "the same seed, the same directions");
        let rows: Vec<&[f32]> = table.chunks(48).collect();
        let product = |a: usize, b: usize| rows[a].iter().zip(rows[b]).map(|(x, y)| x * y).sum::<f32>();
        let cosine = |a: usize, b: usize| product(a, b) / (product(a, a) * product(b, b)).sqrt();
        assert!((cosine(0, 2) - 1.0).abs() < 1e-5 && (cosine(1, 3) - 1.0).abs() < 1e-5, "{width}");
        assert!(
            cosine(0, 1).abs() < 0.5 && (width != 48 || cosine(0, 1) == 0.0),
            "{width}: {}",
            cosine(0, 1)
        );
        let mean_square = table.iter().map(|x| x * x).sum::<f32>() / table.len() as f32;
        assert!((mean_square.sqrt() - 0.25).abs() < 1e-4, "{width}: {mean_square}");
    }
    let zeros = |rows| Tensor::zeros(&device, rows, 48).unwrap();
    assert!(walker.start_from(&zeros(entities - 1), &zeros(links), 5).is_err(), "one row is missing");
    assert!(walker.start_from(&zeros(entities), &zeros(links + 1), 5).is_err(), "one row is too many");
    teach(&mut walker, &small, None, &Silent).unwrap();
}
