//! The weights of the blend, fitted on the validation split.

use super::{Cost, Member};
use crate::config::{BlendConfig, Config, System};
use crate::cost::{GraphSize, Resources};
use crate::graph::evenly;
use crate::reason::{Blend, Further, Kinds, Members, Recipe};
use crate::run::directory::BLEND;
use crate::run::material::{Learnable, Material};
use crate::run::record::Finished;
use crate::run::{Added, Artifacts, MemberReport, RunError};
use serde_json::{Value, json};
use std::sync::Arc;

/// Its name.
pub const BLENDING: &str = "blending";

/// The kinds of entities among the artifacts.
const KINDS: &str = "kinds";

/// The weights of the blend.
pub(super) struct Blending;

impl Member for Blending {
    fn name(&self) -> &'static str {
        BLENDING
    }

    fn is_wanted(&self, config: &Config) -> bool {
        config.system == System::Blend || (config.system == System::Rules && config.rules.features)
    }

    fn settings(&self, config: &Config) -> Value {
        let settings = json!([super::value(&config.blend), config.rules.aggregate, config.rules.top]);
        super::with_types(settings, config)
    }

    fn after(&self, config: &Config) -> Vec<&'static str> {
        super::answering(config).filter(|member| !member.is_fitted()).map(|member| member.name()).collect()
    }

    fn is_fitted(&self) -> bool {
        true
    }

    /// It asks some validation queries, as the ranking asks those of the test split, which is about as large.
    fn cost(&self, config: &Config, size: &GraphSize, resources: &Resources) -> Cost {
        let asked = super::asked(size, config.blend.validation_queries);
        Cost { training: super::ranking(config, &asked, resources), ..Cost::default() }
    }

    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        let Artifacts { learnable, config, .. } = &*artifacts;
        let directory = material.directory;
        let blended = config.blended();
        let mut recipe = Recipe::given(&blended);
        if let Some(text) = material.taken_over(BLEND)? {
            let broken = |error| RunError::Broken {
                path: directory.file(BLEND),
                what: format!("is damaged ({error})"),
            };
            recipe = serde_json::from_str(&text).map_err(broken)?;
        } else if config.blend.fit && !learnable.valid_learnt {
            let known = &learnable.known;
            let truth = known.answers(learnable.names.entities.len());
            let blend = artifacts.blend(&recipe)?;
            let asked = evenly(&known.valid, config.blend.validation_queries);
            let explained = config.blend.explained;
            let mut negatives = [&*known.negatives, &known.valid_negatives].concat();
            negatives.sort_unstable();
            let given = (&truth, &*negatives);
            recipe = blend.fit(&asked, given, &learnable.names, explained, material.progress)?;
        }
        let text = serde_json::to_vec_pretty(&recipe).expect("weights are plain data");
        directory.write(BLEND, &text)?;
        let mut outcome = MemberReport::of(&recipe.general);
        let added = |(name, &mrr): (&String, &f64)| {
            let error = recipe.errors.get(name).copied();
            (name.clone(), Added { mrr, error, kept: recipe.general.has(name) })
        };
        outcome.adds = recipe.adds.iter().map(added).collect();
        artifacts.put(BLENDING, recipe);
        Ok(Finished { files: vec![BLEND.to_owned()], figures: outcome, seconds: None })
    }
}

impl Artifacts {
    /// The weights of the blend.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn recipe(&self) -> Result<Arc<Recipe>, RunError> {
        self.get(BLENDING, || self.json(BLEND)?.ok_or_else(|| RunError::changed(self.path(BLEND))))
    }

    /// The blend of the run by `recipe`.
    ///
    /// # Errors
    /// If one of its members cannot be loaded.
    pub fn blend(&self, recipe: &Recipe) -> Result<Blend, RunError> {
        let BlendConfig { with_rules, with_walker, with_embedding, with_propagator, also, .. } =
            self.config.blended();
        let mut further = Vec::with_capacity(also.len());
        for member in super::all().into_iter().filter(|member| also.iter().any(|name| name == member.name()))
        {
            if let Some(reasoner) = member.reasoner(self)? {
                further.push(Further { name: member.name(), reasoner });
            }
        }
        let members = Members {
            rules: with_rules.then(|| self.applied()).transpose()?,
            walker: with_walker.then(|| self.by_walker()).transpose()?,
            embedding: with_embedding.then(|| self.embedding()).transpose()?,
            propagator: with_propagator.then(|| self.by_propagator()).transpose()?,
            further,
        };
        let Learnable { graph, names, .. } = &self.learnable;
        let blend = Blend::new(members, recipe, graph, names);
        Ok(blend.with_kinds(self.kinds()))
    }

    /// The kinds of entities.
    pub fn kinds(&self) -> Arc<Kinds> {
        let Learnable { graph, names, .. } = &self.learnable;
        let made = self.get(KINDS, || Ok(Kinds::new(graph, names, self.config.types.mode)));
        made.expect("it is made from what is in memory")
    }
}
