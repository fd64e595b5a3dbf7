//! The embedding model.

use super::{Cost, Epochs, Member};
use crate::config::{Config, System};
use crate::cost::{GraphSize, Resources, comparing, embed_epoch};
use crate::embed::{self, Embedding, ModelKind, Size, Stop, Task, TrainedEmbedding, WarmEmbedding};
use crate::reason::{ByEmbedding, Explains};
use crate::run::directory::EMBEDDING;
use crate::run::material::Material;
use crate::run::record::Finished;
use crate::run::{Artifacts, BestEpoch, MemberReport, RunError, halved};
use crate::train;
use serde_json::Value;
use std::sync::Arc;

/// Its name.
pub const EMBEDDINGS: &str = "embeddings";

/// The embedding model: a soft opinion on any fact.
pub(super) struct Embeddings;

impl Member for Embeddings {
    fn name(&self) -> &'static str {
        EMBEDDINGS
    }

    fn system(&self) -> Option<System> {
        Some(System::Embedding)
    }

    fn is_wanted(&self, config: &Config) -> bool {
        let walks = config.includes(System::Walker);
        config.includes(System::Embedding) || (walks && config.walk.needs_embedding())
    }

    fn settings(&self, config: &Config) -> Value {
        super::value(&config.embed)
    }

    fn cost(&self, config: &Config, size: &GraphSize, resources: &Resources) -> Cost {
        let training = embed_epoch(size, resources, &config.embed) * config.embed.epochs as f64;
        Cost::new(training, comparing(size, resources, &config.embed))
    }

    fn planned(&self, config: &Config) -> Option<String> {
        let embed::Settings { model, dimension, epochs, .. } = &config.embed;
        Some(format!("{} of dimension {dimension}, {epochs} epochs, about", model.name()))
    }

    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        let Artifacts { learnable, config, device, .. } = &*artifacts;
        let size =
            Size { entities: learnable.names.entities.len(), relations: learnable.names.relations.len() };
        let folder = material.checkpoints(EMBEDDINGS)?;
        let earlier = material.warm.and_then(|warm| warm.file(EMBEDDING));
        let key = material.warm.map_or_else(String::new, |warm| warm.stages.to_string());
        let task = Task {
            known: &learnable.tuning,
            size,
            settings: &config.embed,
            stop: Stop::Validation,
            seed: material.seed,
            device,
            folder: Some(&folder),
            warm: earlier.as_ref().map(|path| WarmEmbedding { path, key: &key, names: &learnable.names }),
        };
        let whole = learnable.valid_learnt.then_some(&learnable.known);
        let TrainedEmbedding { mut embedding, summary } = embed::learn(task, whole, material.progress)?;
        embedding.save(&material.directory.file(EMBEDDING), &learnable.names, &[])?;
        train::forget(&folder);
        embedding.settle()?;
        artifacts.put(EMBEDDINGS, embedding);
        let best =
            BestEpoch { epoch: summary.best_epoch, mrr: summary.valid.as_ref().map(|valid| valid.mrr) };
        let outcome =
            MemberReport { epochs: Some(summary.epochs), best: Some(best), ..MemberReport::of(&summary) };
        Ok(Finished {
            files: vec![EMBEDDING.to_owned()],
            figures: outcome,
            seconds: Some(summary.training_seconds),
        })
    }

    fn epochs(&self, config: &Config) -> Option<Epochs> {
        Some(Epochs { epochs: config.embed.epochs, validate_every: config.embed.evaluate_every })
    }

    fn settle(&self, config: &mut Config, outcome: &MemberReport) {
        if let Some(best) = outcome.best_epoch() {
            config.embed.final_epochs = best;
        }
    }

    fn shorten(&self, config: &mut Config, outcome: &MemberReport) {
        if let Some(best) = outcome.best_epoch() {
            let epochs = halved(best);
            config.embed.learning_rate *= super::UPDATE_RATE;
            (config.embed.epochs, config.embed.final_epochs) = (epochs, epochs);
            config.embed.evaluate_every = config.embed.evaluate_every.min((epochs / 4).max(1));
        }
    }

    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        Ok(Some(Arc::new(ByEmbedding::new(artifacts.embedding()?, &artifacts.learnable.graph))))
    }

    fn knows_entities(&self, _config: &Config) -> Option<&'static str> {
        Some("the embedding model")
    }

    fn space(&self) -> Option<(&'static str, &'static str)> {
        Some(("embedding", include_str!("../../../configs/space/embedding.toml")))
    }
}

impl Artifacts {
    /// The embedding model.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn embedding(&self) -> Result<Arc<Embedding>, RunError> {
        self.get(EMBEDDINGS, || {
            let (path, names) = (self.path(EMBEDDING), &self.learnable.names);
            let (archive, kind) = (self.archive(EMBEDDING)?, ModelKind::default());
            Ok(Embedding::from_archive(&archive, &path, names, kind, &self.device)?)
        })
    }
}
