//! What verdicts are fitted to: facts of the validation split, and false facts, given with the data or in a file, or
//! drawn.
//!
//! A drawn false fact has the right types, as far as the graph shows them ([`corrupted`]).

use super::list::{TRIPLES, given_triple};
use super::verdict::{Sample, Verdicts, features};
use super::view::{BOTH_ENDS, View};
use crate::ask::{AskError, Model};
use crate::graph::{Adjacency, Direction, Graph, NamedRows, Query, Triple, corrupted, evenly};
use crate::progress::Progress;
use std::path::Path;
use std::sync::OnceLock;

/// The most validation facts that verdicts are fitted to.
const FACTS: usize = 5000;
/// Rows of a file of negatives that are read at a time.
const BLOCK: usize = 4096;

/// What keeps the negatives of the test split apart from those that verdicts are fitted to.
pub(super) const FOR_TEST: u64 = 1;
const FOR_FIT: u64 = 0;

/// What a model has fitted on first use.
#[derive(Default)]
pub(crate) struct FittedVerdicts {
    /// What tells true facts from drawn false ones.
    facts: OnceLock<Option<Verdicts>>,
    /// What tells the relations of a pair apart.
    pub(super) relations: OnceLock<Option<Verdicts>>,
}

impl Model {
    /// What tells true facts from false ones, fitted on the validation split and on the false facts in the file
    /// `negatives`, those of the data, or drawn ones; `None` without examples.
    ///
    /// # Errors
    /// If the validation split has been learnt, the file has an unknown name or cannot be read, the reasoner fails, or
    /// the user interrupts.
    pub(super) fn verdicts(
        &self,
        negatives: Option<&Path>,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Option<Verdicts>, AskError> {
        self.expect_valid_unlearnt()?;
        // Those for drawn false facts are fitted once.
        if negatives.is_none()
            && let Some(fitted) = self.fitted.facts.get()
        {
            return Ok(fitted.clone());
        }
        let fitted = self.verdicts_of(&View::whole(self)?, negatives, workers, progress)?;
        if negatives.is_none() {
            let _ = self.fitted.facts.set(fitted.clone());
        }
        Ok(fitted)
    }

    /// The same for what a view says.
    pub(super) fn verdicts_of(
        &self,
        view: &View<'_>,
        negatives: Option<&Path>,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Option<Verdicts>, AskError> {
        let graph = self.graph();
        let known = self.dataset.known.answers(graph.entities());
        let new = |fact: &Triple| {
            !graph.contains(fact.head, Query::of(*fact, Direction::Forward).0.link, fact.tail)
        };
        let valid: Vec<Triple> = self.dataset.known.valid.iter().copied().filter(new).collect();
        let trues = evenly(&valid, FACTS);
        let falses = match negatives {
            Some(path) => self.read_negatives(path)?,
            None if !self.dataset.known.valid_negatives.is_empty() => {
                evenly(&self.dataset.known.valid_negatives, FACTS)
            }
            None => drawn_negatives(graph, &trues, &known, self.seed(), FOR_FIT),
        };
        progress.begin("fitting thresholds", "facts", None);
        let mut samples = Vec::with_capacity(trues.len() + falses.len());
        for (facts, is_true) in [(&trues, true), (&falses, false)] {
            let ends = view.judge(facts, BOTH_ENDS, graph.adjacency(), workers, progress)?;
            samples.extend(facts.iter().zip(&ends).map(|(fact, ends)| Sample {
                row: features(&view.graph, ends),
                relation: fact.relation,
                is_true,
            }));
        }
        progress.end(&format_args!("{} true and {} false facts", trues.len(), falses.len()));
        Ok(Verdicts::fit(&samples, graph.relations()))
    }

    /// The false facts in a file.
    fn read_negatives(&self, path: &Path) -> Result<Vec<Triple>, AskError> {
        let mut rows = NamedRows::open(path, TRIPLES)?;
        let mut facts = Vec::new();
        loop {
            let block = rows.next_block(BLOCK)?;
            if block.is_empty() {
                break;
            }
            for row in block {
                let given = given_triple(&row, self.index());
                let at =
                    |what: String| AskError::Cannot(format!("{}:{}: {what}", path.display(), row.number));
                match given.ids {
                    Err(error) => return Err(at(error.to_string())),
                    Ok(_) if given.label == Some(true) => {
                        return Err(at("expected a false fact, found one labelled true".to_owned()));
                    }
                    Ok(fact) => facts.push(fact),
                }
            }
        }
        match facts.is_empty() {
            true => Err(AskError::Cannot(format!("{}: expected false facts, found none", path.display()))),
            false => Ok(facts),
        }
    }
}

/// A false fact for each of `facts`, where one can be drawn.
pub(super) fn drawn_negatives(
    graph: &Graph,
    facts: &[Triple],
    known: &Adjacency,
    seed: u64,
    stream: u64,
) -> Vec<Triple> {
    corrupted(graph, facts, known, seed, stream).into_iter().flatten().collect()
}
