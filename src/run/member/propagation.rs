//! The propagator, in the manner of NBFNet: messages along all paths from the subject.

use super::universal::ByUniversal;
use super::{Cost, Epochs, Member};
use crate::config::{Config, System};
use crate::cost::{GraphSize, Resources, propagated, propagating};
use crate::graph::{Array, Known};
use crate::propagate::{
    self, FrontierBound, InitialWeights, PropagateTask, Propagator, TrainedPropagator, WarmPropagator,
};
use crate::reason::{ByPropagator, Explains};
use crate::run::directory::PROPAGATOR;
use crate::run::material::{Learnable, Material};
use crate::run::record::Finished;
use crate::run::{Artifacts, MemberReport, RunError, halved};
use crate::settings::expect;
use crate::train;
use crate::universal::{UniversalError, UniversalSettings};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// Its name.
pub const PROPAGATION: &str = "propagation";

/// The propagator.
pub(super) struct Propagation;

impl Member for Propagation {
    fn name(&self) -> &'static str {
        PROPAGATION
    }

    fn system(&self) -> Option<System> {
        Some(System::Propagator)
    }

    fn is_wanted(&self, config: &Config) -> bool {
        let walks = config.includes(System::Walker);
        config.includes(System::Propagator) || (walks && config.walk.needs_propagator())
    }

    fn settings(&self, config: &Config) -> Value {
        let own = super::value(&config.propagate);
        match config.propagate.start {
            InitialWeights::Random => own,
            InitialWeights::Universal => json!([own, ByUniversal.settings(config)]),
        }
    }

    fn cost(&self, config: &Config, size: &GraphSize, resources: &Resources) -> Cost {
        let settings = &config.propagate;
        Cost::new(propagating(size, resources, settings), propagated(size, resources, settings))
    }

    fn planned(&self, config: &Config) -> Option<String> {
        let propagate::PropagateSettings { layers, width, networks, frontier, .. } = config.propagate;
        let mut text = format!("propagator of {layers} layers of width {width},");
        if networks > 1 {
            let _ = write!(text, " the mean of {networks} networks,");
        }
        if let FrontierBound::Most(most) = frontier {
            let _ = write!(text, " at most {most} entities send messages per layer,");
        }
        Some(text + " about")
    }

    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        let Artifacts { learnable, config, device, .. } = &*artifacts;
        // A validation split that is learnt from cannot choose anything, so the last epoch is kept.
        let known = match learnable.valid_learnt {
            true => Known { valid: Array::default(), ..learnable.known.clone() },
            false => learnable.known.clone(),
        };
        let folder = material.checkpoints(PROPAGATION)?;
        let earlier = material.warm.and_then(|warm| warm.file(PROPAGATOR));
        let initial = initial_weights(artifacts)?;
        let key = material.warm.map_or_else(String::new, |warm| warm.stages.to_string());
        let task = PropagateTask {
            known: &known,
            size: (learnable.names.entities.len(), learnable.names.relations.len()),
            settings: &config.propagate,
            seed: material.seed,
            device,
            folder: Some(&folder),
            warm: earlier.as_ref().map(|path| WarmPropagator { path, key: &key, names: &learnable.names }),
            initial: initial.as_ref(),
        };
        let TrainedPropagator { propagator, summary, hides_all_links, valid } =
            propagate::train(task, material.progress)?;
        propagator.save(&material.directory.file(PROPAGATOR), &learnable.names)?;
        train::forget(&folder);
        let outcome = MemberReport {
            parameters: Some(propagator.parameters()),
            ..MemberReport::of(&json!({ "hides_all_links": hides_all_links, "valid": valid }))
        };
        artifacts.put(PROPAGATION, propagator);
        Ok(Finished {
            files: vec![PROPAGATOR.to_owned()],
            figures: outcome.trained(&summary),
            seconds: Some(summary.seconds),
        })
    }

    fn epochs(&self, config: &Config) -> Option<Epochs> {
        Some(Epochs { epochs: config.propagate.epochs, validate_every: config.propagate.validate_every })
    }

    fn settle(&self, config: &mut Config, outcome: &MemberReport) {
        if let Some(best) = outcome.best_epoch() {
            config.propagate.epochs = best;
        }
    }

    fn shorten(&self, config: &mut Config, outcome: &MemberReport) {
        if let Some(best) = outcome.best_epoch() {
            config.propagate.learning_rate *= super::UPDATE_RATE;
            config.propagate.epochs = halved(best);
            config.propagate.validate_every = config.propagate.validate_every.min(config.propagate.epochs);
        }
    }

    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        Ok(Some(Arc::new(artifacts.by_propagator()?)))
    }

    fn space(&self) -> Option<(&'static str, &'static str)> {
        Some(("propagator", include_str!("../../../configs/space/propagator.toml")))
    }
}

/// The universal weights as those that training starts from, if the settings say so.
fn initial_weights(artifacts: &Artifacts) -> Result<Option<BTreeMap<String, Vec<f32>>>, RunError> {
    let settings = &artifacts.config.propagate;
    if settings.start != InitialWeights::Universal {
        return Ok(None);
    }
    let universal = ByUniversal::weights(artifacts)?;
    let given = universal.settings();
    let sizes = [
        ("propagate.width", settings.width, given.width),
        ("propagate.layers", settings.layers, given.layers),
        ("propagate.hidden", settings.hidden, UniversalSettings::HIDDEN),
    ];
    for (key, found, expected) in sizes {
        let fits = found == expected;
        expect(fits, key, &format!("{expected}, as the universal weights have"), found)
            .map_err(UniversalError::from)?;
    }
    Ok(Some(universal.propagator_start(&artifacts.learnable.graph)?))
}

impl Artifacts {
    /// The propagator on the graph.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn propagator(&self) -> Result<Arc<Propagator>, RunError> {
        self.get(PROPAGATION, || {
            let Learnable { graph, names, .. } = &self.learnable;
            let (path, archive) = (self.path(PROPAGATOR), self.archive(PROPAGATOR)?);
            Ok(Propagator::from_archive(&archive, &path, names, graph, &self.device)?)
        })
    }

    /// The propagator as a reasoner. Its paths are shown with the rules that they follow.
    pub(super) fn by_propagator(&self) -> Result<ByPropagator, RunError> {
        Ok(ByPropagator::new(self.propagator()?, &self.learnable.graph, self.path_rules()?))
    }
}
