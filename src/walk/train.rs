//! Stages 3 and 4: passes over the training queries, on the harness of [`train`](crate::train).
//!
//! A training has one phase. Joint training starts from the walker's current weights, so trainings that differ only in
//! later settings share pre-training.
//!
//! Every random number of a batch comes from the seed, the phase, the epoch and the batch's number.

use super::config::{Baseline, WalkConfig};
use super::episode::{Lesson, Moment, Phase};
use super::measure::Watch;
use super::reward::Teacher;
use super::world::Ask;
use super::{NetworkError, Noting, Walker};
use crate::eval::Protocol;
use crate::graph::{Graph, Known, Query};
use crate::progress::{Metric, Progress};
use crate::tensor::{AdamOptions, Gradients, Parameters, Tape};
use crate::train::{
    self, CheckpointKey, Decay, EpochEnd, LearningRate, Look, Place, Sums, Trainable, TrainingPlan,
    TrainingSummary, Validation, Within,
};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;

/// The name of the moving average of the mean batch reward.
const AVERAGE: &str = "reward average";

/// How a training is run, beside the walker's own settings.
#[derive(Clone, Copy, Debug)]
pub struct TrainOptions<'a> {
    /// Which of the two phases.
    pub phase: Phase,
    /// Where all random numbers come from.
    pub seed: u64,
    /// The folder for checkpoints; `None` writes none. If it holds one, training resumes from it. The checkpoint stays
    /// when training ends, so that a longer training can continue from it; [`train::forget`] removes it.
    pub folder: Option<&'a Path>,
    /// The longest time between two checkpoints.
    pub checkpoint_every: Duration,
}

impl Default for TrainOptions<'_> {
    fn default() -> Self {
        Self { phase: Phase::Joint, seed: 1, folder: None, checkpoint_every: TrainingPlan::CHECKPOINT_EVERY }
    }
}

/// Trains `walker` on the training queries of `known`: one phase, from its current weights or from the checkpoint of
/// the same training. Afterwards it holds the weights of the best validation, or of the last epoch if there was no
/// validation.
///
/// # Errors
/// If the soft reward fails, or as [`train::train`].
pub fn train(
    walker: &mut Walker,
    graph: &Graph,
    known: &Known,
    teacher: Teacher,
    options: TrainOptions,
    progress: &dyn Progress,
) -> Result<TrainingSummary, NetworkError> {
    let mut lessons = Lessons::new(walker, graph, known, teacher, options);
    let plan = lessons.plan(checkpoint_key(lessons.walker, known, options));
    train::train(&mut lessons, &plan, progress)
}

/// A walker and its training data.
struct Lessons<'a> {
    walker: &'a mut Walker,
    asks: Vec<Ask>,
    /// The asks of the current epoch, batch by batch.
    order: Vec<Ask>,
    validation: Validation<'a>,
    teacher: Teacher<'a>,
    options: TrainOptions<'a>,
}

impl<'a> Lessons<'a> {
    fn new(
        walker: &'a mut Walker,
        graph: &'a Graph,
        known: &Known,
        teacher: Teacher<'a>,
        options: TrainOptions<'a>,
    ) -> Self {
        let WalkConfig { side, validation_queries, freeze_relation_agent, .. } = walker.config;
        let asks: Vec<Ask> =
            side.asked(&known.queries).map(|(query, target)| Ask { query, target: Some(target) }).collect();
        let protocol = Protocol { side, ..Protocol::default() };
        let validation = Validation::new(graph, known, validation_queries, protocol);
        let frozen = options.phase == Phase::Joint && freeze_relation_agent;
        walker.network.freeze_relation_agent(&mut walker.parameters, frozen);
        Self { walker, asks, order: Vec::new(), validation, teacher, options }
    }

    fn plan(&self, checkpoint_key: CheckpointKey) -> TrainingPlan<'a> {
        let config = &self.walker.config;
        let batches = self.asks.len().div_ceil(config.batch);
        let (stage, title, steps) = match self.options.phase {
            Phase::Pretrain => {
                let epochs = f64::from(config.pretrain_epochs);
                ("pretraining", "pre-training", (batches as f64 * epochs).ceil() as usize)
            }
            Phase::Joint if config.steps > 0 => ("training", "training", config.steps),
            Phase::Joint => ("training", "training", batches * config.epochs),
        };
        let joint = self.options.phase == Phase::Joint;
        let decay = if joint { Decay::Linear(config.final_rate) } else { Decay::Constant };
        let within = match config.steps {
            steps if joint && steps > 0 => Within::Steps(steps),
            _ => Within::Epochs(config.epochs),
        };
        let learning_rate = LearningRate { initial: config.learning_rate.into(), decay, within, warm_up: 0 };
        TrainingPlan {
            stage,
            title: title.to_owned(),
            epoch_steps: batches,
            steps,
            adam: AdamOptions::default(),
            learning_rate,
            clip: Some(if config.clip > 0.0 { config.clip } else { f32::INFINITY }),
            validate_every: (joint && !self.validation.is_empty()).then_some(config.validate_every),
            patience: config.patience,
            folder: self.options.folder,
            checkpoint_every: self.options.checkpoint_every,
            checkpoint_key,
        }
    }
}

impl Trainable for Lessons<'_> {
    type Error = NetworkError;

    fn parameters(&self) -> &Parameters {
        &self.walker.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.walker.parameters
    }

    fn begin_epoch(&mut self, epoch: usize) {
        let seed = number_of(self.options.seed, self.options.phase, epoch, u64::MAX);
        self.order = order(&self.asks, &self.walker.config, &mut ChaCha8Rng::seed_from_u64(seed));
    }

    fn step(&mut self, place: Place, gradients: &mut Gradients, sums: &mut Sums) -> Result<(), NetworkError> {
        let Walker { config, world, network, parameters } = &*self.walker;
        let TrainOptions { phase, seed, .. } = self.options;
        let first = place.batch * config.batch;
        let asks = &self.order[first..(first + config.batch).min(self.order.len())];
        let average = sums.remembered(AVERAGE).unwrap_or(0.0);
        let moment = Moment::of(config, place.step, average as f32);
        let lesson = Lesson { config, world, network, teacher: self.teacher, phase, moment };
        let mut tape = Tape::training(parameters, number_of(seed, phase, place.epoch, place.batch as u64));
        let episode = lesson.episode(&mut tape, asks, None, &mut Watch::off())?;
        tape.backward(episode.loss, gradients)?;
        let tally = episode.tally;
        for (name, value) in
            [("walks", tally.walks), ("reward", tally.reward), ("hits", tally.hits), ("rules", tally.rules)]
        {
            sums.add(name, value);
        }
        if let Some(entropy) = episode.entropy {
            sums.add_later("entropy", entropy);
        }
        if config.baseline == Baseline::Moving {
            let mean = tally.reward / tally.walks.max(1.0);
            sums.remember(AVERAGE, average + f64::from(config.baseline_weight) * (mean - average));
        }
        Ok(())
    }

    fn validate(&self, progress: &dyn Progress) -> Result<Option<Look>, NetworkError> {
        let noting = Noting::new(self.walker, self.teacher.rules);
        let Some(figures) = self.validation.figures(&noting, progress)? else { return Ok(None) };
        let asked = self.walker.config.side.asked(self.validation.split());
        let queries: Vec<Query> = asked.map(|(query, _)| query).collect();
        let more = Map::from_iter([("rule_share".to_owned(), noting.share(&queries).into())]);
        Ok(Some(Look { figures, more }))
    }

    /// `reward`, `hit_rate` (0 in pre-training, which does not measure it) and `rule_rate` are means over walks.
    /// `entropy`, that of the agent that chooses entities, is a mean over hops; `gradient_norm`, before clipping, a
    /// mean over batches.
    fn figures(&self, epoch: &EpochEnd<'_>) -> Map<String, Value> {
        let EpochEnd { steps, seconds, sums } = *epoch;
        let (walks, batches) = (sums.total("walks").max(1.0), steps.max(1) as f64);
        let figures: [(&str, Value); 7] = [
            ("batches", steps.into()),
            ("reward", (sums.total("reward") / walks).into()),
            ("hit_rate", (sums.total("hits") / walks).into()),
            ("rule_rate", (sums.total("rules") / walks).into()),
            ("entropy", (sums.total("entropy") / batches).into()),
            ("gradient_norm", (sums.total(Sums::GRADIENT_NORM) / batches).into()),
            ("ms_per_batch", (1e3 * seconds / batches).into()),
        ];
        figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn line(&self, sums: &Sums, last: Option<&Metric>) -> String {
        let of_last = |name: &str| last.and_then(|metric| metric.figures[name].as_f64()).unwrap_or(0.0);
        let [reward, hits, rules] = match sums.total("walks") {
            0.0 => ["reward", "hit_rate", "rule_rate"].map(of_last),
            walks => ["reward", "hits", "rules"].map(|name| sums.total(name) / walks),
        };
        format!("reward {reward:.3}, hits {:.1} %, rules {:.1} %", 100.0 * hits, 100.0 * rules)
    }
}

/// The asks of an epoch, batch by batch: all of them shuffled, or as many full batches drawn with replacement.
fn order(asks: &[Ask], config: &WalkConfig, random: &mut ChaCha8Rng) -> Vec<Ask> {
    if config.with_replacement {
        let count = asks.len().next_multiple_of(config.batch);
        return (0..count).map(|_| asks[random.random_range(..asks.len())]).collect();
    }
    let mut order = asks.to_vec();
    order.shuffle(random);
    order
}

/// What a checkpoint of this training depends on.
fn checkpoint_key(walker: &Walker, known: &Known, options: TrainOptions) -> CheckpointKey {
    CheckpointKey::default()
        .settings("walk.", &walker.config.checkpoint_settings(options.phase))
        .value("phase", &options.phase)
        .value("seed", &options.seed)
        .triples("set of facts", &known.facts)
        .triples("set of training queries", &known.queries)
}

/// The seed of one batch (or of an epoch's order, with the last number).
fn number_of(seed: u64, phase: Phase, epoch: usize, batch: u64) -> u64 {
    let mut mixed = seed;
    for part in [phase as u64, epoch as u64, batch] {
        mixed = (mixed ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{EntityId, Link};

    #[test]
    fn an_epoch_has_every_ask_once_or_full_batches_of_any() {
        let query = |subject| Query { subject: EntityId(subject), link: Link::NO_OP };
        let asks: Vec<Ask> = (0..21).map(|subject| Ask { query: query(subject), target: None }).collect();
        let subjects = |with_replacement, seed| -> Vec<u32> {
            let config = WalkConfig { with_replacement, batch: 8, ..WalkConfig::default() };
            let order = order(&asks, &config, &mut ChaCha8Rng::seed_from_u64(seed));
            order.iter().map(|ask| ask.query.subject.0).collect()
        };
        let mut pass = subjects(false, 1);
        pass.sort_unstable();
        assert_eq!(pass, (0..21).collect::<Vec<_>>());
        let drawn: Vec<u32> = (0..100).flat_map(|seed| subjects(true, seed)).collect();
        assert_eq!(drawn.len(), 100 * 24);
        assert_ne!(drawn[..24], drawn[24..48]);
        // 114 of each are expected, with a standard deviation of 10.
        for subject in 0..21 {
            let times = drawn.iter().filter(|&&other| other == subject).count();
            assert!((64..165).contains(&times), "{subject} was drawn {times} times");
        }
        let config = WalkConfig { with_replacement: true, ..WalkConfig::default() };
        assert!(order(&[], &config, &mut ChaCha8Rng::seed_from_u64(1)).is_empty());
    }
}
