//! The inputs of a member: data, settings, seed, and the files of the members before it, as one checksum.

use super::Checksum;
use super::material::Learnable;
use super::member::MemberRef;
use super::run::RunSpec;
use serde_json::{Value, json};

/// Increased when a member would give another result than in an older version.
const VERSION: u32 = 4;

/// What a member depends on.
pub(crate) struct Inputs<'a> {
    /// The member.
    pub member: MemberRef,
    /// What is asked for.
    pub spec: &'a RunSpec,
    /// The data.
    pub learnable: &'a Learnable,
    /// The checksums of what it reads of the members before it.
    pub before: Vec<Checksum>,
}

impl Inputs<'_> {
    /// The checksum of everything that the member depends on but the time that it was given, which counts only where it
    /// was too short (`StageRecord::within`).
    pub(crate) fn of_result(&self) -> Checksum {
        let Inputs { member, spec, .. } = self;
        self.sum(json!([member.name(), member.settings(&spec.config)]))
    }

    /// The checksum of everything that its checkpoints depend on.
    pub(crate) fn of_checkpoints(&self) -> Checksum {
        self.sum(self.member.checkpoint_settings(&self.spec.config))
    }

    fn sum(&self, settings: Value) -> Checksum {
        let Inputs { member, spec, learnable, before } = self;
        let data = (&learnable.checksum, learnable.valid_learnt);
        let first = spec.first.as_ref().filter(|_| member.is_fitted()).map(|first| &first.stages);
        let warm = spec.warm.as_ref().filter(|_| !member.is_fitted()).map(|warm| &warm.stages);
        Checksum::of(&(VERSION, settings, data, spec.seed, before, first.or(warm)))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::run::member::{PRETRAINING, named};

    #[test]
    fn pretraining_does_not_look_at_what_only_joint_training_uses() {
        let mut config = Config::default();
        let pretraining = named(PRETRAINING).unwrap();
        let before = pretraining.settings(&config);
        (config.walk.epochs, config.walk.lambda) = (7, 0.5);
        assert_eq!(pretraining.settings(&config), before);
    }
}
