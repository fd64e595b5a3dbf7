//! The probabilities of answers, and their reliability.

use super::{AskError, Model, Probability};
use crate::eval::calibration::{
    Calibrator, Outcome, RankedScores, Reliability, TOP, outcomes_on_test, outcomes_on_valid,
};
use crate::eval::{Split, of_relations};
use crate::graph::{Graph, Link, RelationId, evenly};
use crate::progress::Progress;
use crate::reason::{Found, ScoreBounds};
use crate::run::member;
use crate::shard::Shard;

/// Rough probabilities, and why they are.
#[derive(Clone)]
pub(super) struct Rough {
    pub(super) calibrator: Calibrator,
    pub(super) why: String,
}

/// The probabilities of the answers to one query.
pub(super) struct Probabilities<'a> {
    calibrator: Option<&'a Calibrator>,
    list: RankedScores,
}

impl Probabilities<'_> {
    /// The probability of an answer with this score.
    pub(crate) fn of(&self, score: f64) -> Probability {
        Probability(self.calibrator.map(|calibrator| calibrator.within(&self.list)(score)))
    }
}

impl Model {
    /// The probabilities of the candidates of `found`, which has at least 10 of them if that many exist.
    pub(super) fn probabilities(&self, found: &Found) -> Probabilities<'_> {
        self.probabilities_on(found, self.graph())
    }

    /// The same if the candidates were found on `graph`, which lacks some facts of the model's own.
    pub(super) fn probabilities_on(&self, found: &Found, graph: &Graph) -> Probabilities<'_> {
        let scores = found.candidates.iter().map(|candidate| candidate.score);
        let list = RankedScores::new(found.query, graph, scores);
        Probabilities { calibrator: self.calibrator_of(found.query.link), list }
    }

    /// A bound on the probabilities of answers with such scores; `None` if there are no probabilities.
    pub(super) fn probability_at_most(&self, bounds: &ScoreBounds) -> Option<f64> {
        let calibrator = self.calibrator_of(bounds.query.link)?;
        let list = |scores: &[f64]| RankedScores::new(bounds.query, self.graph(), scores.iter().copied());
        Some(calibrator.at_most([&list(&bounds.lowest), &list(&bounds.highest)]))
    }

    /// Why probabilities are rough; `None` if they are not, or if there are none.
    pub fn why_rough(&self) -> Option<&str> {
        self.calibrator.as_ref().and(self.why_rough.as_deref())
    }

    /// Whether a probability of an answer to a query by `link` is rough.
    pub(super) fn is_rough(&self, link: Link, probability: Probability) -> bool {
        probability.0.is_some() && (self.why_rough().is_some() || !self.is_learnt(link))
    }

    /// Whether the relation was learnt.
    fn is_learnt(&self, link: Link) -> bool {
        let learnt = self.artifacts.learnable.learnt_beside_others();
        let is_other = |(learnt, relation): (usize, RelationId)| relation.index() >= learnt;
        !learnt.zip(link.relation()).is_some_and(is_other)
    }

    /// What gives the answers to queries by `link` their probabilities.
    pub(super) fn calibrator_of(&self, link: Link) -> Option<&Calibrator> {
        match self.is_learnt(link) {
            true => self.calibrator.as_ref(),
            false => self.not_learnt.as_ref().map(|rough| &rough.calibrator),
        }
    }

    /// Why answers have no probability, and the remedy; `None` if they have one.
    ///
    /// # Errors
    /// If the list of stages cannot be read.
    pub fn why_no_probability(&self) -> Result<Option<String>, AskError> {
        if self.calibrator.is_some() || self.not_learnt.is_some() {
            return Ok(None);
        }
        if let Some(on) = self.on().filter(|on| !on.members_left_out.is_empty()) {
            let left_out = on.members_left_out.join(" and ");
            return Ok(Some(format!(
                "no probabilities: they were calibrated with {left_out}, left out on this graph"
            )));
        }
        let roughly = self.on().is_some() && !member::knows_relations(self.config());
        if roughly || self.dataset.known.valid.is_empty() {
            let why = match self.can_afford_rough() {
                true => "this graph has too few facts to take some away and ask for them",
                false => {
                    "this graph is too large to take facts away and ask for them at once; \
                     `run DATA --instant` does so"
                }
            };
            return Ok(Some(format!("no probabilities: {why}")));
        }
        let why = match self.valid_is_learnt() {
            true => {
                "this run has learnt its validation facts, so nothing is left to calibrate on; \
                 learn with `data.learn_valid = \"never\"` to keep them apart"
            }
            false => "no query of the validation split has an answer, so nothing can be calibrated",
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
        self.reliability_on(split, relations, None, progress)
    }

    /// The same on at most this many facts.
    pub(super) fn reliability_on(
        &self,
        split: Split,
        relations: &[RelationId],
        most: Option<usize>,
        progress: &dyn Progress,
    ) -> Result<Option<Reliability>, AskError> {
        let Some(calibrator) = &self.calibrator else { return Ok(None) };
        let outcomes = self.outcomes(split, relations, most, Shard::WHOLE, progress)?;
        if outcomes.is_empty() {
            return Ok(None);
        }
        let reliability = calibrator.reliability(&outcomes, TOP, |id| self.names().relation(id).to_owned());
        let Reliability { ece, error_above, .. } = reliability;
        progress.end(&format_args!("expected calibration error {ece:.4}, above 0.2 {error_above:.4}"));
        Ok(Some(reliability))
    }

    /// The outcomes that probabilities are checked against, for the queries of `shard`; `most` bounds the facts further
    /// than the settings do.
    pub(super) fn outcomes(
        &self,
        split: Split,
        relations: &[RelationId],
        most: Option<usize>,
        shard: Shard,
        progress: &dyn Progress,
    ) -> Result<Vec<Outcome>, AskError> {
        // 0 stands for all.
        let settings = Some(self.config().eval.calibration_queries).filter(|&queries| queries > 0);
        let most = settings.into_iter().chain(most).min().unwrap_or(0);
        // Those of relations that were not learnt have probabilities of their own, which are rough.
        let learnt = self.artifacts.learnable.learnt_beside_others();
        let relations: Vec<RelationId> = match (learnt, relations) {
            (None, _) => relations.to_vec(),
            (Some(learnt), []) => (0..learnt as u32).map(RelationId).collect(),
            (Some(learnt), _) => relations.iter().copied().filter(|one| one.index() < learnt).collect(),
        };
        if learnt.is_some() && relations.is_empty() {
            return Ok(Vec::new());
        }
        let asked = evenly(&of_relations(split.triples(&self.dataset), &relations), most);
        let (reasoner, graph) = (self.reasoner.reasoner(), self.graph());
        progress.begin("checking probabilities", "queries", None);
        Ok(match split {
            Split::Test => {
                outcomes_on_test(reasoner, (&asked, &relations), &self.dataset, graph, shard, progress)?
            }
            _ => {
                let known = &self.dataset.known;
                outcomes_on_valid(reasoner, (&asked, &relations), known, graph, shard, progress)?
            }
        })
    }
}
