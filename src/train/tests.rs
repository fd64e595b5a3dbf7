//! The harness with a very small network: interrupted, killed, cut short or extended, it learns the same weights.

use super::*;
use crate::eval::Figures;
use crate::progress::{Metric, Progress, Silent};
use crate::tensor::{AdamOptions, Device, Gradients, Initial, ParameterId, Parameters, Tape, Tensor};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

const WIDTH: usize = 4;
const EPOCH_STEPS: usize = 5;

/// Learns the weights of a sum of four numbers, from examples drawn by the position of the step.
struct Tiny {
    parameters: Parameters,
    weights: ParameterId,
    shift: u64,
    breaks_at: u64,
    /// How long a validation takes.
    look: Duration,
}

impl Tiny {
    fn new(first: u64) -> Self {
        let mut parameters = Parameters::new(&Device::cpu(1).unwrap(), first);
        let weights = parameters.dense("weights", 1, WIDTH, Initial::Normal(1.0)).unwrap();
        Tiny { parameters, weights, shift: 0, breaks_at: u64::MAX, look: Duration::ZERO }
    }

    fn values(&self) -> Vec<f32> {
        self.parameters.value(self.weights).to_vec().unwrap()
    }

    fn error(&self) -> f64 {
        self.values().iter().zip(1..).map(|(w, k)| f64::from(w - k as f32).powi(2)).sum()
    }
}

impl Trainable for Tiny {
    type Error = TrainError;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    fn begin_epoch(&mut self, epoch: usize) {
        self.shift = 10 * epoch as u64;
    }

    fn step(&mut self, place: Place, gradients: &mut Gradients, sums: &mut Sums) -> Result<(), TrainError> {
        let device = self.parameters.device().clone();
        let mixed = |k: u64| ((place.step + 1) * (k + 3) * (k + 2) + self.shift) % 13;
        let inputs: Vec<f32> = (0..WIDTH as u64).map(|k| mixed(k) as f32 / 6.0 - 1.0).collect();
        let target: f32 = inputs.iter().zip(1..).map(|(x, k)| x * k as f32).sum();
        let mut tape = Tape::training(&self.parameters, place.step);
        let weights = tape.parameter(self.weights);
        let inputs = tape.constant(Tensor::new(&device, &inputs, 1, WIDTH)?)?;
        let sum = tape.row_dot(weights, inputs)?; // [1, 1]
        let minus = tape.constant(Tensor::vector(&device, &[-target])?)?;
        let difference = tape.add(sum, minus)?;
        let loss = tape.row_dot(difference, difference)?;
        sums.add("examples", 1.0);
        sums.remember("steps", sums.remembered("steps").unwrap_or(0.0) + 1.0);
        assert_eq!(sums.remembered("steps"), Some(place.step as f64 + 1.0));
        let broken = place.step == self.breaks_at;
        let message = if broken { Tensor::vector(&device, &[f32::INFINITY])? } else { tape.value(loss) };
        sums.add_later(Sums::LOSS, message);
        Ok(tape.backward(loss, gradients)?)
    }

    fn validate(&self, progress: &dyn Progress) -> Result<Option<Look>, TrainError> {
        if progress.interrupted() {
            return Ok(None);
        }
        std::thread::sleep(self.look);
        let figures = Figures { mrr: 1.0 / (1.0 + self.error()), ..Figures::default() };
        Ok(Some(Look { figures, more: Map::from_iter([("error".to_owned(), self.error().into())]) }))
    }

    fn figures(&self, epoch: &EpochEnd<'_>) -> Map<String, Value> {
        assert_eq!(epoch.sums.total("examples"), epoch.steps as f64);
        let loss = epoch.sums.total(Sums::LOSS) / epoch.steps as f64;
        let norm = epoch.sums.total(Sums::GRADIENT_NORM);
        Map::from_iter([("loss".to_owned(), loss.into()), ("norms".to_owned(), norm.into())])
    }

    fn line(&self, sums: &Sums, _last: Option<&Metric>) -> String {
        format!("{} examples", sums.total("examples"))
    }
}

fn plan(folder: Option<&Path>) -> TrainingPlan<'_> {
    TrainingPlan {
        stage: "tiny",
        title: "training tiny".to_owned(),
        epoch_steps: EPOCH_STEPS,
        // The last epoch is a fraction.
        steps: 6 * EPOCH_STEPS + 2,
        adam: AdamOptions::default(),
        learning_rate: LearningRate {
            initial: 0.3,
            decay: Decay::Cosine(0.1),
            within: Within::Epochs(6),
            warm_up: 3,
        },
        clip: Some(5.0),
        validate_every: Some(2),
        patience: 0,
        folder,
        checkpoint_every: Duration::ZERO,
        checkpoint_key: CheckpointKey::default()
            .value("seed", &7)
            .settings("tiny.", &AsSettings { width: WIDTH }),
    }
}

#[derive(serde::Serialize)]
struct AsSettings {
    width: usize,
}

/// A progress that dies, interrupts or runs out of time after this many steps of an invocation.
#[derive(Default)]
struct Listener {
    dies: Option<u64>,
    interrupts: Option<u64>,
    hurries: Option<u64>,
    steps: Mutex<u64>,
    message: Mutex<Vec<String>>,
}

impl Listener {
    fn is_past(&self, limit: Option<u64>) -> bool {
        limit.is_some_and(|limit| *self.steps.lock().unwrap() >= limit)
    }
}

impl Progress for Listener {
    fn begin(&self, _: &str, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64, _: &dyn Display) {
        *self.steps.lock().unwrap() += 1;
        assert!(!self.is_past(self.dies), "killed");
    }
    fn end(&self, summary: &dyn Display) {
        self.message.lock().unwrap().push(summary.to_string());
    }
    fn interrupted(&self) -> bool {
        self.is_past(self.interrupts)
    }
    fn time_is_up(&self) -> bool {
        self.is_past(self.hurries)
    }
}

/// A progress whose steps take 20 ms, and whose time is up after this many seconds.
struct Slow {
    began: std::time::Instant,
    seconds: f64,
}

impl Progress for Slow {
    fn begin(&self, _: &str, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64, _: &dyn Display) {
        std::thread::sleep(Duration::from_millis(20));
    }
    fn end(&self, _: &dyn Display) {}
    fn seconds_left(&self) -> Option<f64> {
        Some((self.seconds - self.began.elapsed().as_secs_f64()).max(0.0))
    }
    fn time_is_up(&self) -> bool {
        self.seconds_left() == Some(0.0)
    }
}

#[test]
fn the_learning_rate_has_fallen_when_the_time_is_up() {
    let learning_rate =
        LearningRate { initial: 0.3, decay: Decay::Cosine(0.1), within: Within::Epochs(200), warm_up: 0 };
    let plan = TrainingPlan { steps: 200 * EPOCH_STEPS, learning_rate, ..plan(None) };
    let slow = Slow { began: std::time::Instant::now(), seconds: 2.0 };
    let summary = train(&mut Tiny::new(1), &plan, &slow).unwrap();
    let last = summary.history.last().unwrap();
    assert!(summary.epochs < 100, "the plan would have taken 20 s");
    assert!(last.figures["learning_rate"].as_f64().unwrap() < 0.06, "{last:?}");
}

#[test]
fn the_last_validation_is_within_the_time() {
    let plan = TrainingPlan { steps: 200 * EPOCH_STEPS, ..plan(None) };
    let slow = Slow { began: std::time::Instant::now(), seconds: 2.0 };
    let mut tiny = Tiny { look: Duration::from_millis(300), ..Tiny::new(1) };
    let summary = train(&mut tiny, &plan, &slow).unwrap();
    let looks = summary.history.iter().filter(|metric| metric.figures.contains_key("valid_mrr")).count();
    assert!(looks >= 2 && !slow.time_is_up(), "{looks} {:?}", slow.seconds_left());
    assert!(summary.out_of_time && !whole().0.out_of_time);
}

#[test]
fn what_the_last_minute_brought_is_counted_from_the_last_validation_before_it() {
    let seen = |looks: &[(f64, f64)]| {
        let record = |(step, &(seconds, mrr)): (u64, &(f64, f64))| {
            let figures = Map::from_iter([("valid_mrr".to_owned(), mrr.into())]);
            Metric { stage: "tiny".to_owned(), step, seconds, figures }
        };
        let history = (1..).zip(looks).map(record).collect();
        let epochs = looks.len();
        let (seconds, step_seconds, out_of_time) = (0.0, 0.0, false);
        let summary = TrainingSummary { epochs, best: None, history, seconds, step_seconds, out_of_time };
        summary.last_minute().map(|LastMinute { seconds, mrr }| (seconds, (100.0 * mrr).round()))
    };
    assert_eq!(seen(&[(10.0, 0.1), (40.0, 0.2), (90.0, 0.3), (101.0, 0.25)]), Some((61.0, 10.0)));
    assert_eq!(seen(&[(10.0, 0.1), (40.0, 0.2)]), Some((30.0, 10.0)));
    assert_eq!(seen(&[(10.0, 0.2), (40.0, 0.1)]), Some((30.0, 0.0)));
    assert_eq!((seen(&[]), seen(&[(10.0, 0.2)]), seen(&[(1.0, 0.2), (1.5, 0.3)])), (None, None, None));
}

/// Trains with a file of curves in the folder; `None` if it was killed.
fn sitting(
    plan: &TrainingPlan<'_>,
    first: u64,
    listener: &Listener,
) -> Option<(Result<TrainingSummary, TrainError>, Vec<f32>)> {
    let mut tiny = Tiny::new(first);
    let curves = plan.folder.map(|folder| folder.join("metrics.jsonl"));
    let trained = catch_unwind(AssertUnwindSafe(|| match &curves {
        Some(curves) => train(&mut tiny, plan, &Recording::new(curves, listener)),
        None => train(&mut tiny, plan, listener),
    }));
    trained.ok().map(|trained| (trained, tiny.values()))
}

fn timeless(history: &[Metric]) -> Vec<Metric> {
    history.iter().map(|metric| Metric { seconds: 0.0, ..metric.clone() }).collect()
}

/// The same training without any interruption.
fn whole() -> (TrainingSummary, Vec<f32>) {
    let (trained, weights) = sitting(&plan(None), 1, &Listener::default()).unwrap();
    (trained.unwrap(), weights)
}

#[test]
fn it_learns_and_keeps_the_best() {
    let (trained, weights) = whole();
    assert_eq!((trained.epochs, trained.history.len()), (7, 7));
    let looked: Vec<u64> =
        trained.history.iter().filter(|m| m.figures.contains_key("valid_mrr")).map(|m| m.step).collect();
    assert_eq!(looked, [2, 4, 6, 7]);
    let best = trained.best.unwrap();
    let errors = trained.history.iter().filter_map(|metric| metric.figures.get("error")?.as_f64());
    assert_eq!(1.0 / (1.0 + errors.fold(f64::MAX, f64::min)), best.figures.mrr);
    assert_eq!(trained.kept().unwrap().step, best.epoch as u64);
    let before = Tiny::new(1).error();
    let after: f64 = weights.iter().zip(1..).map(|(w, k)| f64::from(w - k as f32).powi(2)).sum();
    assert!(after < before / 4.0, "{before} {after}");
}

#[test]
fn killed_and_stopped_again_and_again_it_comes_to_the_same_bits_and_records() {
    let (expected, weights) = whole();
    // After how many steps of an invocation it is killed, and the interval between checkpoints in microseconds.
    for (dies, every) in [(1, 0), (2, 0), (7, 0), (9, 1), (3, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let plan =
            TrainingPlan { checkpoint_every: Duration::from_micros(every), ..plan(Some(folder.path())) };
        let mut sittings = 0;
        let trained = loop {
            // Every third invocation is interrupted instead: its checkpoint is newer than a periodic one.
            let listener = match sittings % 3 {
                2 => Listener { interrupts: Some(dies), ..Listener::default() },
                _ => Listener { dies: Some(dies + 1), ..Listener::default() },
            };
            match sitting(&plan, 1 + sittings, &listener) {
                Some((Ok(trained), found)) => {
                    assert_eq!(found, weights);
                    break trained;
                }
                Some((Err(TrainError::Interrupted { .. }), _)) | None => sittings += 1,
                Some((Err(error), _)) => panic!("{error}"),
            }
            assert!(sittings < 200);
        };
        assert!(sittings > 2, "{sittings}");
        assert_eq!((trained.epochs, trained.best), (expected.epochs, expected.best));
        assert_eq!(timeless(&trained.history), timeless(&expected.history));
        let told = read_curves(&folder.path().join("metrics.jsonl")).unwrap();
        assert_eq!(timeless(&told), timeless(&expected.history), "no record is lost or repeated");
    }
}

#[test]
fn what_the_time_cut_short_goes_on_as_if_it_had_not_been() {
    let (expected, weights) = whole();
    for hurries in [1, EPOCH_STEPS as u64, EPOCH_STEPS as u64 + 3] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(Some(folder.path()));
        let (cut, _) =
            sitting(&plan, 1, &Listener { hurries: Some(hurries), ..Listener::default() }).unwrap();
        let cut = cut.unwrap();
        assert_eq!(cut.epochs, (hurries as usize).div_ceil(EPOCH_STEPS));
        assert!(cut.kept().unwrap().figures.contains_key("valid_mrr"), "it is validated");
        let (trained, found) = sitting(&plan, 2, &Listener::default()).unwrap();
        assert_eq!(found, weights);
        assert_eq!(timeless(&trained.unwrap().history), timeless(&expected.history));
        let told = read_curves(&folder.path().join("metrics.jsonl")).unwrap();
        assert_eq!(timeless(&told), timeless(&expected.history));
    }
}

#[test]
fn a_checkpoint_that_is_no_use_is_said_to_be_so_and_training_begins_anew() {
    let (_, weights) = whole();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let plan = plan(Some(folder.path()));
    let interrupted = sitting(&plan, 1, &Listener { interrupts: Some(8), ..Listener::default() }).unwrap().0;
    assert!(matches!(interrupted, Err(TrainError::Interrupted { epoch: 2 })));
    let good = std::fs::read(&path).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut of_before = crate::tensor::Archive::new();
    Tiny::new(1).parameters.store(&mut of_before).unwrap();
    of_before.set_metadata("training.state", "{}");
    of_before.write(&folder.path().join("before")).unwrap();
    let of_before = std::fs::read(folder.path().join("before")).unwrap();
    for (bytes, message) in [
        (good[..good.len() / 2].to_vec(), "checkpoint.safetensors is damaged; starting over"),
        (flipped, "checkpoint.safetensors is damaged; starting over"),
        (of_before, "was written by another version of the program; starting over"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let listener = Listener::default();
        let (trained, found) = sitting(&plan, 1, &listener).unwrap();
        trained.unwrap();
        assert_eq!(found, weights);
        let heard = listener.message.lock().unwrap();
        assert!(heard[0].ends_with(message), "{heard:?}");
    }
    // A checkpoint of another training is not touched.
    for (key, name) in [
        (plan.checkpoint_key.clone().value("seed", &8), "seed"),
        (plan.checkpoint_key.clone().settings("tiny.", &AsSettings { width: 5 }), "tiny.width"),
        (plan.checkpoint_key.clone().triples("facts", &[crate::graph::Triple::new(0, 1, 2)]), "facts"),
    ] {
        let before = std::fs::read(&path).unwrap();
        let other = TrainingPlan { checkpoint_key: key, ..plan.clone() };
        let error = sitting(&other, 1, &Listener::default()).unwrap().0.unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("belongs to a training with another {name}; remove it to start over")),
            "{error}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_training_can_be_made_longer_and_a_shorter_one_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(Some(folder.path()));
    let of = |epochs: usize| TrainingPlan { steps: epochs * EPOCH_STEPS, ..plan.clone() };
    let alone = |epochs: usize| {
        let plan = TrainingPlan { folder: None, ..of(epochs) };
        sitting(&plan, 1, &Listener::default()).unwrap().1
    };
    for epochs in [2, 4, 4, 3] {
        let (trained, found) = sitting(&of(epochs), 1, &Listener::default()).unwrap();
        assert_eq!(trained.unwrap().epochs, epochs);
        assert_eq!(found, alone(epochs), "{epochs}");
    }
    forget(folder.path());
    assert!(!folder.path().join("checkpoint.safetensors").exists());
}

#[test]
fn two_trainings_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(Some(folder.path()));
    let held = crate::aside::try_lock(&folder.path().join("lock")).unwrap().unwrap();
    let error = sitting(&plan, 1, &Listener::default()).unwrap().0.unwrap_err();
    assert!(matches!(error, TrainError::Locked { .. }), "{error}");
    drop(held);
    let leftover = crate::aside::beside(&folder.path().join("checkpoint.safetensors"));
    std::fs::write(&leftover, "half").unwrap();
    assert!(sitting(&plan, 1, &Listener::default()).unwrap().0.is_ok());
    assert!(!leftover.exists(), "what a killed process left is swept out");
}

#[test]
fn patience_ends_it_and_so_does_a_loss_that_is_no_number() {
    let still = TrainingPlan {
        learning_rate: LearningRate::constant(0.0),
        validate_every: Some(1),
        patience: 3,
        ..plan(None)
    };
    let trained = train(&mut Tiny::new(1), &still, &Silent).unwrap();
    assert_eq!((trained.epochs, trained.kept_epoch()), (4, 1));
    let mut breaks = Tiny { breaks_at: EPOCH_STEPS as u64 + 1, ..Tiny::new(1) };
    let error = train(&mut breaks, &plan(None), &Silent).unwrap_err().to_string();
    assert!(error.starts_with("training diverged in epoch 2: the loss is not a number"), "{error}");
    let nothing = TrainingPlan { epoch_steps: 0, steps: 0, ..plan(None) };
    assert_eq!(train(&mut Tiny::new(1), &nothing, &Silent).unwrap().epochs, 0);
}
