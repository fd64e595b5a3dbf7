//! The second phase of the walker: both agents, on the full reward (MINERVA, MultiHop and RuleGuider by its settings).

use super::{Cost, EMBEDDINGS, Epochs, Member, PRETRAINING, PROPAGATION, RULES};
use crate::config::{Config, System};
use crate::cost::{GraphSize, Resources, searching, walking};
use crate::graph::{Array, Known, Query, Renumbering, Triple, evenly};
use crate::reason::{ByWalker, EmbeddingReward, Explains, PropagatorReward, path_table};
use crate::run::directory::{PRETRAINED, WALKER};
use crate::run::material::{Learnable, Material};
use crate::run::record::{Finished, Stages};
use crate::run::{Artifacts, Checksum, MemberReport, RunError, halved};
use crate::train;
use crate::walk::{self, Phase, RewardBy, SoftReward, Start, Teacher, TrainOptions, Walker};
use serde_json::{Value, json};
use std::sync::Arc;

/// Its name.
pub const TRAINING: &str = "training";
/// The cost of ranking by a blend, relative to the walker alone. A rough figure.
const IN_BLEND: f64 = 3.0;

/// The walker, with both agents trained.
pub(super) struct Training;

impl Member for Training {
    fn name(&self) -> &'static str {
        TRAINING
    }

    fn system(&self) -> Option<System> {
        Some(System::Walker)
    }

    fn settings(&self, config: &Config) -> Value {
        json!([super::value(&config.walk), config.rules.threshold])
    }

    fn checkpoint_settings(&self, config: &Config) -> Value {
        json!([config.walk.checkpoint_settings(Phase::Joint), config.rules.threshold])
    }

    fn after(&self, config: &Config) -> Vec<&'static str> {
        let walk = &config.walk;
        let read = [
            (walk.needs_embedding(), EMBEDDINGS),
            (walk.needs_propagator(), PROPAGATION),
            (super::has(config, RULES), RULES),
            (walk.pretrains(), PRETRAINING),
        ];
        read.into_iter().filter(|read| read.0).map(|read| read.1).collect()
    }

    fn inputs(&self, artifacts: &Artifacts, records: &Stages<'_>) -> Result<Vec<Checksum>, RunError> {
        rewarding(&self.after(&artifacts.config), artifacts, records)
    }

    fn cost(&self, config: &Config, size: &GraphSize, resources: &Resources) -> Cost {
        let ranking = searching(size, resources, &config.walk);
        let training = walking(size, resources, &config.walk)[1];
        Cost { training, ranking, blending: IN_BLEND * ranking }
    }

    fn planned(&self, config: &Config) -> Option<String> {
        let walk::WalkConfig { dimension, hops, epochs, .. } = &config.walk;
        Some(format!("walker of width {dimension}, {hops} hops, at most {epochs} epochs, about"))
    }

    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        let (finished, walker) = train_walker(artifacts, material, Phase::Joint, WALKER)?;
        artifacts.put(TRAINING, walker);
        Ok(finished)
    }

    fn epochs(&self, config: &Config) -> Option<Epochs> {
        let walk = &config.walk;
        (walk.steps == 0).then_some(Epochs { epochs: walk.epochs, validate_every: walk.validate_every })
    }

    fn settle(&self, config: &mut Config, outcome: &MemberReport) {
        if let Some(best) = outcome.best_epoch() {
            config.walk.epochs = best;
        }
    }

    /// A relation agent that has been through both phases is not pre-trained again.
    fn shorten(&self, config: &mut Config, outcome: &MemberReport) {
        if let Some(best) = outcome.best_epoch() {
            config.walk.learning_rate *= super::UPDATE_RATE as f32;
            config.walk.epochs = halved(best);
            config.walk.validate_every = config.walk.validate_every.min((config.walk.epochs / 4).max(1));
            config.walk.pretrain_epochs = 0.0;
        }
    }

    fn starts_over(&self, config: &Config) -> Option<&'static str> {
        let why =
            "a learning rate that decays until the last epoch (walk.final_rate below 1) cannot be extended";
        (config.walk.final_rate < 1.0).then_some(why)
    }

    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        Ok(Some(Arc::new(artifacts.by_walker()?)))
    }

    fn knows_entities(&self, config: &Config) -> Option<&'static str> {
        config.walk.entity_embeddings.then_some("the walker with entity embeddings")
    }

    fn space(&self) -> Option<(&'static str, &'static str)> {
        Some(("paper", include_str!("../../../configs/space/paper.toml")))
    }
}

impl Artifacts {
    /// The walker, searching as the settings say.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn walker(&self) -> Result<Arc<Walker>, RunError> {
        self.get(TRAINING, || {
            let Learnable { graph, known, .. } = &self.learnable;
            let (path, archive) = (self.path(WALKER), self.archive(WALKER)?);
            let mut walker = Walker::from_archive(&archive, &path, graph, known, &self.device)?;
            walker.set_search(self.config.walk.beam, self.config.walk.pool)?;
            Ok(walker)
        })
    }

    pub(super) fn by_walker(&self) -> Result<ByWalker, RunError> {
        Ok(ByWalker::new(self.walker()?, &self.learnable.graph, self.path_rules()?))
    }
}

/// The checksums of what a walker reads of the members called `names`. It sees only the rules that reward a path, so
/// runs that mine more rules for other uses can share it.
pub(super) fn rewarding(
    names: &[&'static str],
    artifacts: &Artifacts,
    records: &Stages<'_>,
) -> Result<Vec<Checksum>, RunError> {
    let Artifacts { config, .. } = artifacts;
    let mut sums = Vec::new();
    for &name in names {
        if name == RULES {
            let table = path_table(&artifacts.rules()?, config.walk.hops, config.rules.threshold);
            sums.push(Checksum::of(&table.entries()));
        } else {
            sums.extend(records.files_of(name));
        }
    }
    Ok(sums)
}

/// Trains the walker in one of its phases and saves it as `file`.
pub(super) fn train_walker(
    artifacts: &Artifacts,
    material: &Material<'_>,
    phase: Phase,
    file: &str,
) -> Result<(Finished, Walker), RunError> {
    let Material { seed, directory, progress, .. } = *material;
    let Artifacts { learnable, config, device, .. } = artifacts;
    let settings = &config.walk;
    let rules = path_table(&artifacts.rules()?, settings.hops, config.rules.threshold);
    // Pre-training uses rules alone, and joint training starts from its weights.
    let goes_on = phase == Phase::Joint && settings.pretrains();
    let starts = settings.start == Start::Embedding && !goes_on;
    let rewards = settings.soft_reward && phase == Phase::Joint;
    let by_embedding = rewards && settings.reward == RewardBy::Embedding;
    let embedding = (starts || by_embedding).then(|| artifacts.embedding()).transpose()?;
    let asked =
        |triples: &[Triple]| -> Vec<Query> { settings.side.asked(triples).map(|(query, _)| query).collect() };
    let reward: Option<Box<dyn SoftReward>> = match embedding.as_ref().filter(|_| by_embedding) {
        Some(embedding) => Some(Box::new(EmbeddingReward::new(embedding, asked(&learnable.known.queries))?)),
        None if rewards && settings.reward == RewardBy::Propagator => {
            let queries = asked(&learnable.known.queries);
            let propagator = artifacts.propagator()?;
            let reward = PropagatorReward::new(&propagator, queries, progress);
            let reward = reward.map_err(RunError::Reasoner)?;
            Some(Box::new(reward.ok_or(RunError::Interrupted)?))
        }
        None => None,
    };
    let soft = reward.as_deref();
    // A validation split that is learnt from cannot choose anything, so the last epoch is kept.
    let known = match learnable.valid_learnt {
        true => Known { valid: Array::default(), ..learnable.known.clone() },
        false => learnable.known.clone(),
    };
    let folder = material.checkpoints(if phase == Phase::Pretrain { PRETRAINING } else { TRAINING })?;
    let mut walker = Walker::new(settings, &learnable.graph, &known, device, seed)?;
    let earlier = material.warm.and_then(|warm| Some((warm, warm.file(WALKER)?)));
    if let Some((warm, path)) = &earlier {
        let ids = Renumbering::new(&learnable.names, &warm.names);
        walker.take_over(path, ids.entity_rows(), &ids.link_rows())?;
    } else if let Some(embedding) = embedding.filter(|_| starts) {
        walker.start_from(&embedding.entity_vectors(), &embedding.link_vectors(), seed)?;
    }
    if goes_on {
        walker.go_on_from(&directory.file(PRETRAINED))?;
    }
    let teacher = Teacher { rules: &rules, soft };
    let options = TrainOptions { phase, seed, folder: Some(&folder), ..TrainOptions::default() };
    let trained = walk::train(&mut walker, &learnable.graph, &known, teacher, options, progress)?;
    walker.save(&directory.file(file))?;
    if phase == Phase::Pretrain {
        // Only joint training can be extended later; pre-training is finished.
        train::forget(&folder);
    }
    let noted = trained.kept().and_then(|metric| metric.figures.get("rule_share")?.as_f64());
    let share = match noted {
        Some(share) => share,
        None => {
            let some = evenly(&learnable.tuning.valid, settings.validation_queries);
            walker.rule_share(&asked(&some), &rules)?
        }
    };
    let outcome = MemberReport {
        parameters: Some(walker.parameter_count()),
        rule_share: Some(share),
        ..MemberReport::default()
    };
    let finished = Finished {
        files: vec![file.to_owned()],
        figures: outcome.trained(&trained),
        seconds: Some(trained.step_seconds),
    };
    Ok((finished, walker))
}
