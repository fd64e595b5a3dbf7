//! The last stage: fits probabilities on the validation split.

use super::RunError;
use super::artifacts::Artifacts;
use super::directory::CALIBRATION;
use super::material::{Learnable, Material};
use super::record::Finished;
use crate::eval::calibration::{Calibration, outcomes_to_fit};
use crate::graph::evenly;
use crate::progress::Progress;
use serde_json::json;

/// Calibrates the run's reasoner on the validation split. If the split was learnt or is empty, there is nothing to
/// calibrate on; that is recorded as well.
///
/// # Errors
/// If the reasoner fails, the file cannot be written, or the user interrupts.
pub fn calibrate(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let progress = material.progress;
    let Learnable { known, graph, names, valid_learnt, .. } = &artifacts.learnable;
    let asked = evenly(&known.valid, artifacts.config.eval.calibration_queries);
    let calibration = if let Some(text) = material.taken_over(CALIBRATION)? {
        progress.begin("calibration", "", None);
        progress.end(&"taken from the run with facts held out");
        let broken = |error| RunError::Broken {
            path: material.directory.file(CALIBRATION),
            what: format!("is damaged ({error})"),
        };
        serde_json::from_str(&text).map_err(broken)?
    } else if *valid_learnt || asked.is_empty() {
        progress.begin("calibration", "", None);
        progress.end(&"nothing to calibrate on: answers get no probability");
        None
    } else {
        let reasoner = artifacts.reasoner()?;
        progress.begin("calibration", "queries", None);
        let outcomes = outcomes_to_fit(reasoner.reasoner(), &asked, known, graph, progress)?;
        let calibration = Calibration::fit_both(&outcomes, names);
        progress.end(&format_args!("{} queries", outcomes.asked.len()));
        calibration
    };
    let text = serde_json::to_vec_pretty(&calibration).expect("a calibration is plain data");
    material.directory.write(CALIBRATION, &text)?;
    let figures = calibration.as_ref().map(|calibration| {
        json!({
            "queries": calibration.queries, "answers": calibration.answers, "true": calibration.is_true,
        })
    });
    artifacts.put_calibration(calibration);
    Ok(Finished { files: vec![CALIBRATION.to_owned()], figures: figures.into(), seconds: None })
}
