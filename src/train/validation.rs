//! Ranks the validation split.

use super::TrainError;
use crate::eval::{EvalError, Figures, Protocol, Reasoner, Truth, evaluate};
use crate::graph::{Adjacency, Graph, Known, Triple, evenly};
use crate::progress::{Progress, Quiet};

/// The validation split, and what ranking it needs to know.
pub struct Validation<'a> {
    graph: &'a Graph,
    /// The known true answers.
    answers: Adjacency,
    split: Vec<Triple>,
    protocol: Protocol,
}

impl<'a> Validation<'a> {
    /// The validation split of `known`, or `most` triples of it, evenly spread; 0 for all.
    pub fn new(graph: &'a Graph, known: &Known, most: usize, protocol: Protocol) -> Self {
        let answers = known.answers(graph.entities());
        Self { graph, answers, split: evenly(&known.valid, most), protocol }
    }

    /// The triples to rank.
    pub fn split(&self) -> &[Triple] {
        &self.split
    }

    /// Whether there is nothing to rank.
    pub fn is_empty(&self) -> bool {
        self.split.is_empty()
    }

    /// The figures of `reasoner`; `None` if the user interrupted in the meantime.
    ///
    /// # Errors
    /// If the split cannot be ranked.
    pub fn figures(
        &self,
        reasoner: &dyn Reasoner,
        progress: &dyn Progress,
    ) -> Result<Option<Figures>, TrainError> {
        let truth = Truth { graph: self.graph, answers: &self.answers };
        match evaluate(reasoner, &self.split, truth, self.protocol, &Quiet(progress)) {
            Ok(evaluation) => Ok(Some(evaluation.figures())),
            Err(EvalError::Interrupted) => Ok(None),
            Err(error) => Err(TrainError::Validation(error)),
        }
    }
}
