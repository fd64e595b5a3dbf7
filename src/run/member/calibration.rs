//! The last member: probabilities, fitted on the validation split.

use super::{Cost, Member};
use crate::config::Config;
use crate::cost::{GraphSize, Resources};
use crate::eval::calibration::{Calibration, outcomes_to_fit, queries_to_fit};
use crate::graph::evenly;
use crate::progress::Progress;
use crate::run::directory::CALIBRATION as CALIBRATION_FILE;
use crate::run::material::{Learnable, Material};
use crate::run::record::Finished;
use crate::run::{Artifacts, MemberReport, RunError};
use serde_json::{Value, json};
use std::sync::Arc;

/// Its name.
pub const CALIBRATION: &str = "calibration";
/// Increased when calibration alone would give another result than in an older version: 2 has probabilities for
/// completing, 3 has one probability for every use.
const VERSION: u32 = 3;

/// The calibration of the run's reasoner. If the validation split was learnt or is empty, there is nothing to calibrate
/// on; that is recorded as well.
pub(super) struct Calibrating;

impl Member for Calibrating {
    fn name(&self) -> &'static str {
        CALIBRATION
    }

    fn is_wanted(&self, _config: &Config) -> bool {
        true
    }

    /// Everything that affects an answer's score.
    fn settings(&self, config: &Config) -> Value {
        let Config { system, rules, walk, blend, eval, .. } = config;
        let rules = super::rules::with_file(super::value(rules), &rules.file);
        let settings = [super::value(system), rules, super::value(walk), super::value(blend)];
        super::with_types(json!([VERSION, settings, eval.calibration_queries]), config)
    }

    fn after(&self, config: &Config) -> Vec<&'static str> {
        super::answering(config).map(|member| member.name()).filter(|name| *name != CALIBRATION).collect()
    }

    fn is_fitted(&self) -> bool {
        true
    }

    /// It asks some validation queries, as the ranking asks those of the test split, which is about as large, and for
    /// each of them some others.
    fn cost(&self, config: &Config, size: &GraphSize, resources: &Resources) -> Cost {
        let asked = super::asked(size, config.eval.calibration_queries);
        let ranked = queries_to_fit(asked.ranked, asked.ranked < size.ranked);
        Cost {
            training: super::ranking(config, &GraphSize { ranked, ..asked }, resources),
            ..Cost::default()
        }
    }

    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        let progress = material.progress;
        let Learnable { known, graph, names, valid_learnt, .. } = &artifacts.learnable;
        let asked = evenly(&known.valid, artifacts.config.eval.calibration_queries);
        let calibration = if let Some(text) = material.taken_over(CALIBRATION_FILE)? {
            progress.begin(CALIBRATION, "", None);
            progress.end(&"taken from the run with facts held out");
            let broken = |error| RunError::Broken {
                path: material.directory.file(CALIBRATION_FILE),
                what: format!("is damaged ({error})"),
            };
            serde_json::from_str(&text).map_err(broken)?
        } else if *valid_learnt || asked.is_empty() {
            progress.begin(CALIBRATION, "", None);
            progress.end(&"nothing to calibrate on: answers get no probability");
            None
        } else {
            let reasoner = artifacts.reasoner()?;
            progress.begin(CALIBRATION, "queries", None);
            let outcomes = outcomes_to_fit(reasoner.reasoner(), &asked, known, graph, progress)?;
            let calibration = Calibration::fit(&outcomes, names);
            match calibration.as_ref().and_then(Calibration::why_rough) {
                Some(why) => progress.end(&format_args!("{why}; probabilities are rough")),
                None => progress.end(&format_args!("{} queries", outcomes.outcomes.len())),
            }
            calibration
        };
        let text = serde_json::to_vec_pretty(&calibration).expect("a calibration is plain data");
        material.directory.write(CALIBRATION_FILE, &text)?;
        let outcome = calibration.as_ref().map(|Calibration { queries, answers, is_true, .. }| {
            MemberReport::of(&json!({ "queries": queries, "answers": answers, "true": is_true }))
        });
        artifacts.put(CALIBRATION, calibration);
        Ok(Finished {
            files: vec![CALIBRATION_FILE.to_owned()],
            figures: outcome.unwrap_or_default(),
            seconds: None,
        })
    }
}

impl Artifacts {
    /// The calibration; `None` if there was nothing to calibrate on, or the member has not run.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn calibration(&self) -> Result<Arc<Option<Calibration>>, RunError> {
        self.get(CALIBRATION, || self.json(CALIBRATION_FILE))
    }
}
