//! The first phase of the walker: the relation agent alone, on the rewards of rules.

use super::training::{rewarding, train_walker};
use super::{Cost, EMBEDDINGS, Member, RULES};
use crate::config::{Config, System};
use crate::cost::{GraphSize, Resources, walking};
use crate::run::directory::PRETRAINED;
use crate::run::material::Material;
use crate::run::record::{Finished, Stages};
use crate::run::{Artifacts, Checksum, RunError};
use crate::walk::{Phase, Start};
use serde_json::{Value, json};

/// Its name.
pub const PRETRAINING: &str = "pretraining";

/// The relation agent, trained alone.
pub(super) struct Pretraining;

impl Member for Pretraining {
    fn name(&self) -> &'static str {
        PRETRAINING
    }

    fn is_wanted(&self, config: &Config) -> bool {
        config.includes(System::Walker) && config.walk.pretrains()
    }

    fn settings(&self, config: &Config) -> Value {
        json!([super::value(&config.walk.checkpoint_settings(Phase::Pretrain)), config.rules.threshold])
    }

    fn after(&self, config: &Config) -> Vec<&'static str> {
        match config.walk.start {
            Start::Random => vec![RULES],
            Start::Embedding => vec![EMBEDDINGS, RULES],
        }
    }

    fn inputs(&self, artifacts: &Artifacts, records: &Stages<'_>) -> Result<Vec<Checksum>, RunError> {
        rewarding(&self.after(&artifacts.config), artifacts, records)
    }

    fn answers(&self) -> bool {
        false
    }

    fn cost(&self, config: &Config, size: &GraphSize, resources: &Resources) -> Cost {
        Cost { training: walking(size, resources, &config.walk)[0], ..Cost::default() }
    }

    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        Ok(train_walker(artifacts, material, Phase::Pretrain, PRETRAINED)?.0)
    }
}
