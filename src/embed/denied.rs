//! Facts that are known to be false, as training examples.
//!
//! Of a query with a known answer `a` and one that is denied, `d`, the loss is `−ln σ(f(a) − f(d))`: whatever the scale of
//! the scores, the known answer should be far above. A query without known answers says nothing that could be compared.
//! Every step takes some of them in turn, each counted as one example of its batch.

use super::examples::Batch;
use super::model::{Model, scores_of};
use crate::graph::{Direction, Graph, Query, Triple};
use crate::tensor::{Device, Indices, Result, Tape, Var};

/// The share of a batch that denied facts may take.
const SHARE: usize = 8;

/// The queries to which facts that are known to be false would be answers.
pub(super) struct Denied<'a> {
    graph: &'a Graph,
    asked: Vec<(Query, u32)>,
}

impl<'a> Denied<'a> {
    /// Both queries of each of `negatives`, if they have answers in `graph`.
    pub(super) fn new(graph: &'a Graph, negatives: &[Triple]) -> Self {
        let ends = [Direction::Forward, Direction::Inverse];
        let asked = negatives.iter().flat_map(|&fact| ends.map(|end| Query::of(fact, end)));
        let answered = |(query, _): &(Query, _)| !graph.targets(query.subject, query.link).is_empty();
        Self { graph, asked: asked.filter(answered).map(|(query, denied)| (query, denied.0)).collect() }
    }

    /// The loss of those whose turn it is at `step`, beside that of `batch`; `None` if there are none.
    pub(super) fn loss(
        &self,
        model: &dyn Model,
        tape: &mut Tape<'_>,
        device: &Device,
        batch: &Batch,
        step: u64,
    ) -> Result<Option<Var>> {
        let of_batch = batch.subjects.len();
        let count = self.asked.len().min((of_batch / SHARE).max(1));
        if count == 0 {
            return Ok(None);
        }
        let turn = (0..count as u64).map(|at| (step * count as u64 + at) as usize % self.asked.len());
        let taken: Vec<(Query, u32)> = turn.map(|at| self.asked[at]).collect();
        let list = |of: &dyn Fn(&(Query, u32)) -> u32| {
            Indices::new(device, &taken.iter().map(of).collect::<Vec<u32>>())
        };
        let subjects = list(&|(query, _)| query.subject.0)?;
        let links = list(&|(query, _)| query.link.0)?;
        let denied = list(&|(_, denied)| *denied)?;
        let known = list(&|(query, _)| {
            let answers = self.graph.targets(query.subject, query.link);
            answers[step as usize % answers.len()].0
        })?;
        let query = model.query(tape, &subjects, &links)?;
        let right = scores_of(model, tape, query, &known)?;
        let wrong = scores_of(model, tape, query, &denied)?;
        let both = tape.concatenate(&[right, wrong])?; // [count, 2]
        let loss = tape.softmax_loss(both, &list(&|_| 0)?, &Indices::new(device, &[])?)?;
        tape.scale(loss, count as f32 / of_batch.max(1) as f32).map(Some)
    }
}
