//! The universal propagator: weights that were trained on other graphs, as they are. Nothing is learnt from this one.

use super::{Cost, Member};
use crate::config::{Config, System};
use crate::cost::{GraphSize, Resources, propagated};
use crate::propagate::{InitialWeights, PropagateSettings};
use crate::reason::{ByPropagator, Explains};
use crate::run::directory::UNIVERSAL as WEIGHTS;
use crate::run::material::Material;
use crate::run::record::Finished;
use crate::run::{Artifacts, Checksum, MemberReport, RunError};
use crate::universal::{StoredPrecision, Universal, UniversalReasoner};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Its name.
pub const UNIVERSAL: &str = "universal";
/// Its weights, which do not depend on the graph.
pub(in crate::run) const UNIVERSAL_WEIGHTS: &str = "universal weights";

/// The universal propagator.
pub(super) struct ByUniversal;

impl ByUniversal {
    /// The file of weights that the settings name; `None` for those of the program.
    fn file(config: &Config) -> Option<&Path> {
        let file = config.members.get(UNIVERSAL).and_then(|settings| settings.get("weights")?.as_str());
        file.filter(|file| !file.is_empty()).map(Path::new)
    }

    pub(super) fn weights(artifacts: &Artifacts) -> Result<Universal, RunError> {
        Ok(match Self::file(&artifacts.config) {
            Some(path) => Universal::load(path, &artifacts.device)?,
            None => Universal::shipped(&artifacts.device)?,
        })
    }
}

impl Member for ByUniversal {
    fn name(&self) -> &'static str {
        UNIVERSAL
    }

    fn knows_relations(&self) -> bool {
        false
    }

    fn system(&self) -> Option<System> {
        Some(System::Further(UNIVERSAL))
    }

    /// A file of weights may replace those of the program.
    fn defaults(&self) -> toml::Table {
        toml::Table::from_iter([("weights".to_owned(), "".into())])
    }

    /// The content of a file of weights counts, not its name.
    fn settings(&self, config: &Config) -> Value {
        let given = Self::file(config).map(|path| match Checksum::of_file(path) {
            Ok(sum) => sum.to_string(),
            // An unreadable file is reported when it is read.
            Err(_) => path.display().to_string(),
        });
        json!([given, Universal::shipped_fingerprint()])
    }

    fn cost(&self, _config: &Config, size: &GraphSize, resources: &Resources) -> Cost {
        // It costs what a propagator costs that started from its weights.
        let start = InitialWeights::Universal;
        Cost::new(
            0.0,
            propagated(size, resources, &PropagateSettings { start, ..PropagateSettings::default() }),
        )
    }

    fn planned(&self, _config: &Config) -> Option<String> {
        Some("universal propagator, as it is, about".to_owned())
    }

    /// Keeps the weights with the run, so that another version of the program answers as this one.
    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        let universal = Self::weights(artifacts)?;
        universal.save(&material.directory.file(WEIGHTS), StoredPrecision::Half)?;
        let figures = MemberReport { parameters: Some(universal.parameters()), ..MemberReport::default() };
        // What was stored is what answers, even if it was rounded.
        artifacts.remove(UNIVERSAL);
        artifacts.remove(UNIVERSAL_WEIGHTS);
        Ok(Finished { files: vec![WEIGHTS.to_owned()], figures, seconds: None })
    }

    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        Ok(Some(Arc::new(artifacts.by_universal()?)))
    }
}

impl Artifacts {
    /// The universal propagator on the graph; its paths are shown with the rules that they follow.
    fn by_universal(&self) -> Result<ByPropagator, RunError> {
        Ok(ByPropagator::new(self.universal()?, &self.learnable.graph, self.path_rules()?))
    }

    /// The weights of the run on its graph.
    fn universal(&self) -> Result<Arc<UniversalReasoner>, RunError> {
        let weights = self.get(UNIVERSAL_WEIGHTS, || {
            let (path, archive) = (self.path(WEIGHTS), self.archive(WEIGHTS)?);
            Ok(Universal::from_archive(&archive, &path, &self.device)?)
        })?;
        self.get(UNIVERSAL, || Ok(UniversalReasoner::new(weights, &self.learnable.graph)?))
    }
}
