//! What verdicts are fitted to: facts of the validation split, and false facts, given with the data or in a file, or
//! drawn.
//!
//! A drawn false fact has the right types, as far as the graph shows them ([`corrupted`]).

use super::list::{TRIPLES, given_triple};
use super::verdict::{Sample, Verdicts, features};
use super::view::{BOTH_ENDS, End, View};
use crate::ask::{AskError, Model};
use crate::graph::{Adjacency, Direction, Graph, NamedRows, Query, Triple, corrupted, evenly};
use crate::progress::Progress;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The most validation facts that verdicts are fitted to.
const FACTS: usize = 5000;
/// Rows of a file of negatives that are read at a time.
const BLOCK: usize = 4096;
/// Facts that are judged at a time while verdicts are fitted.
const JUDGED: usize = 512;

/// What keeps the negatives of the test split apart from those that verdicts are fitted to.
pub(super) const FOR_TEST: u64 = 1;
const FOR_FIT: u64 = 0;

/// What a model has fitted on first use.
#[derive(Default)]
pub(crate) struct FittedVerdicts {
    /// What tells true facts from drawn false ones.
    facts: FittedOnce,
    /// What tells the relations of a pair apart.
    pub(super) relations: FittedOnce,
}

/// Verdicts that are fitted once. What was judged before a call was stopped, by the deadline of a request, is kept, and
/// the next call goes on from there.
#[derive(Default)]
pub(super) struct FittedOnce {
    fitted: OnceLock<Option<Verdicts>>,
    samples: Mutex<Vec<Sample>>,
}

/// Facts that are known to be true or false.
type Examples = Vec<(Triple, bool)>;

impl FittedOnce {
    /// The verdicts; `examples` are what they are fitted to, in the same order at every call.
    pub(super) fn get(
        &self,
        view: &View<'_>,
        examples: impl FnOnce() -> Result<Examples, AskError>,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Option<Verdicts>, AskError> {
        if let Some(fitted) = self.fitted.get() {
            return Ok(fitted.clone());
        }
        let examples = examples()?;
        progress.begin("fitting thresholds", "facts", Some(examples.len() as u64));
        loop {
            // Nobody waits for another call, which may have more time: both may judge the same facts, and one is kept.
            let from = self.samples().len();
            let Some(block) = examples.get(from..).filter(|rest| !rest.is_empty()) else { break };
            let block = &block[..block.len().min(JUDGED)];
            let facts: Vec<Triple> = block.iter().map(|one| one.0).collect();
            let ends = view.judge(&facts, BOTH_ENDS, view.model.graph().adjacency(), workers, progress)?;
            let sample = |(&(fact, is_true), ends): (&(Triple, bool), &[End; 2])| Sample {
                row: features(&view.graph, ends),
                relation: fact.relation,
                is_true,
            };
            let mut samples = self.samples();
            if samples.len() == from {
                samples.extend(block.iter().zip(&ends).map(sample));
            }
            progress.advance((from + block.len()) as u64, &"");
        }
        let fitted = || Verdicts::fit(&self.samples(), view.graph.relations());
        let fitted = self.fitted.get_or_init(fitted).clone();
        let trues = examples.iter().filter(|one| one.1).count();
        progress.end(&format_args!("{trues} true and {} false facts", examples.len() - trues));
        Ok(fitted)
    }

    fn samples(&self) -> MutexGuard<'_, Vec<Sample>> {
        self.samples.lock().expect("no code panics while it holds the examples")
    }
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
        let view = View::whole(self)?;
        match negatives {
            Some(_) => self.verdicts_of(&view, negatives, workers, progress),
            // Those for drawn false facts are fitted once.
            None => self.fitted.facts.get(&view, || self.labelled(None), workers, progress),
        }
    }

    /// The same for what a view says.
    pub(super) fn verdicts_of(
        &self,
        view: &View<'_>,
        negatives: Option<&Path>,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Option<Verdicts>, AskError> {
        FittedOnce::default().get(view, || self.labelled(negatives), workers, progress)
    }

    /// The facts of the validation split, and false ones.
    fn labelled(&self, negatives: Option<&Path>) -> Result<Examples, AskError> {
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
        let trues = trues.into_iter().map(|fact| (fact, true));
        Ok(trues.chain(falses.into_iter().map(|fact| (fact, false))).collect())
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
