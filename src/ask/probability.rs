//! The probabilities of answers, and their reliability.

use super::{AskError, Model, Probability};
use crate::eval::calibration::{
    Calibrator, Outcome, RankedScores, Reliability, TOP, outcomes_on_test, outcomes_on_valid,
};
use crate::eval::{Split, of_relations};
use crate::graph::{RelationId, evenly};
use crate::plan::Stage;
use crate::progress::Progress;
use crate::reason::{Found, ScoreBounds};
use crate::run::Stages;
use crate::shard::Shard;

/// The probabilities of the answers to one query.
pub(super) struct Probabilities<'a> {
    calibrator: Option<&'a Calibrator>,
    list: RankedScores,
}

impl Probabilities<'_> {
    /// The probability of an answer with this score.
    pub fn of(&self, score: f64) -> Probability {
        Probability(self.calibrator.map(|calibrator| calibrator.within(&self.list)(score)))
    }
}

impl Model {
    /// The probabilities of the candidates of `found`, which has at least 10 of them if that many exist.
    pub(super) fn probabilities(&self, found: &Found) -> Probabilities<'_> {
        let scores = found.candidates.iter().map(|candidate| candidate.score);
        let list = RankedScores::new(found.query, self.graph(), scores);
        Probabilities { calibrator: self.calibrator.as_ref(), list }
    }

    /// The same for a query that may have no answer, as when a graph is completed.
    pub(super) fn open_probabilities(&self, found: &Found) -> Probabilities<'_> {
        let calibrator = self.open_calibrator.as_ref().or(self.calibrator.as_ref());
        Probabilities { calibrator, ..self.probabilities(found) }
    }

    /// A bound on the [open](Self::open_probabilities) probabilities of answers with such scores; `None` if there are
    /// no probabilities.
    pub(super) fn open_probability_at_most(&self, bounds: &ScoreBounds) -> Option<f64> {
        let calibrator = self.open_calibrator.as_ref().or(self.calibrator.as_ref())?;
        let list = |scores: &[f64]| RankedScores::new(bounds.query, self.graph(), scores.iter().copied());
        Some(calibrator.at_most([&list(&bounds.lowest), &list(&bounds.highest)]))
    }

    /// Why answers have no probability, and the remedy; `None` if they have one.
    ///
    /// # Errors
    /// If the list of stages cannot be read.
    pub fn why_no_probability(&self) -> Result<Option<String>, AskError> {
        if self.calibrator.is_some() {
            return Ok(None);
        }
        if let Some(on) = self.on().filter(|on| !on.members_left_out.is_empty()) {
            let left_out = on.members_left_out.join(" and ");
            return Ok(Some(format!(
                "no probabilities: they were calibrated with {left_out}, left out on this graph"
            )));
        }
        let calibrated = Stages::of(self.directory())?.record(Stage::Calibration.name()).is_some();
        let why = match (calibrated, self.valid_is_learnt()) {
            (false, _) => {
                "this run was made by a version without probabilities; run the same `ruleguider run` again to add them"
            }
            (true, true) => {
                "this run has learnt its validation facts, so nothing is left to calibrate on; \
                 learn with `data.learn_valid = \"never\"` to keep them apart"
            }
            (true, false) => "no query of the validation split has an answer, so nothing can be calibrated",
        };
        Ok(Some(format!("no probabilities: {why}")))
    }

    /// The reliability of the probabilities on a split; `None` where there are none. On the validation split, which
    /// they were fitted to, they look better than they are.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn reliability(
        &self,
        split: Split,
        progress: &dyn Progress,
    ) -> Result<Option<Reliability>, AskError> {
        self.reliability_of(split, &[], progress)
    }

    /// The same on the facts of these relations only; on all if the list is empty.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn reliability_of(
        &self,
        split: Split,
        relations: &[RelationId],
        progress: &dyn Progress,
    ) -> Result<Option<Reliability>, AskError> {
        let Some(calibrator) = &self.calibrator else { return Ok(None) };
        let outcomes = self.outcomes(split, relations, Shard::WHOLE, progress)?;
        let reliability = calibrator.reliability(&outcomes, TOP);
        progress.end(&format_args!("expected calibration error {:.4}", reliability.ece));
        Ok(Some(reliability))
    }

    /// The outcomes that probabilities are checked against, for the queries of `shard`.
    pub(super) fn outcomes(
        &self,
        split: Split,
        relations: &[RelationId],
        shard: Shard,
        progress: &dyn Progress,
    ) -> Result<Vec<Outcome>, AskError> {
        let asked = evenly(
            &of_relations(split.triples(&self.dataset), relations),
            self.config().eval.calibration_queries,
        );
        let (reasoner, graph) = (self.reasoner.reasoner(), self.graph());
        progress.begin("checking probabilities", "queries", None);
        Ok(match split {
            Split::Test => outcomes_on_test(reasoner, &asked, &self.dataset, graph, shard, progress)?,
            _ => outcomes_on_valid(reasoner, &asked, &self.dataset.known, graph, shard, progress)?,
        })
    }
}
